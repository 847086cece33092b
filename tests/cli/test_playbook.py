"""The operator's playbook as typed: every command of it, in order, on the adapters that it names."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from custodes.policy.policy import Policy, Target
from custodes.policy.settings import Settings
from support.cos import Answer, Cos

LINES = (
    (Path(__file__).parents[1] / "fixtures" / "playbook.txt").read_text().replace("\\\n", " ").splitlines()
)
COMMANDS = [words for line in LINES if (words := shlex.split(line, comments=True))]
SESSION = "<session_id>"


@pytest.fixture
def configured(project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The two runtimes of the playbook are installed, as far as stats can tell; nothing of them is run."""
    (project / ".coding-os.yaml").write_text("agents: [claude, codex]\n")
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("claude", "codex"):
        (programs / name).write_text("#!/bin/sh\nexit 1\n")
        (programs / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(programs))
    return project


def run(cos: Cos, words: list[str]) -> Answer:
    answer = cos(*words[1:])
    assert (answer.code, answer.err) == (0, ""), words
    return answer


def trace_what_ran(cos: Cos, words: list[str]) -> None:
    """Give the playbook a session of its own: its runtime fails, and that is on record like any end."""
    work = shlex.split("cos dispatch Look. --role architect --complexity COMPLEX --format json")
    session = cos(*work[1:]).document["conversation"]
    answer = run(cos, [session if word == SESSION else word for word in words])
    assert "claude, model claude-opus-4-8, effort xhigh; pool claude:" in answer.out
    assert "healthy, let in; failed: " in answer.out


def test_every_command_of_the_playbook_works_as_typed_in_its_order(cos: Cos, configured: Path) -> None:
    assert [words[0] for words in COMMANDS] == ["cos"] * len(COMMANDS)
    back_out = COMMANDS.index(["cos", "supervision", "disable"])
    for words in COMMANDS[:back_out]:
        if SESSION in words:
            trace_what_ran(cos, words)
        else:
            run(cos, words)
    assert Settings(configured).read().policy == Policy(
        enabled=True,
        mode="adaptive",
        orchestrator=Target(model="claude-sonnet-5", effort="medium"),
        roles={
            "architect": Target(model="claude-opus-4-8", effort="xhigh"),
            "researcher": Target(model="claude-fable-5"),
            "implementer": Target(adapter="codex"),
        },
    )
    for words in COMMANDS[back_out:]:
        run(cos, words)
    policy = Settings(configured).read().policy
    assert (policy.enabled, policy.fallback_policy) == (False, "next_eligible")
    assert policy.roles["reviewer"] == Target(model="claude-haiku-4-5", effort="low")


def test_a_role_on_another_adapter_runs_on_that_one_s_own_model_and_says_why(
    cos: Cos, configured: Path
) -> None:
    run(cos, shlex.split("cos supervision enable"))
    run(
        cos,
        shlex.split("cos supervision set --orchestrator-model claude-sonnet-5 --orchestrator-effort medium"),
    )
    run(cos, shlex.split("cos supervision set --role implementer --role-adapter codex"))
    words = "cos supervision explain --role implementer --complexity COMPLEX --format json"
    (candidate,) = run(cos, shlex.split(words)).document["candidates"]
    assert candidate["route"]["adapter"] == "codex"
    assert candidate["route"]["model"] != "claude-sonnet-5"
    assert candidate["because"]["adapter"] == "the role's own policy"
    assert candidate["because"]["effort"] == "the orchestrator's policy"
