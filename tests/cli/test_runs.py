"""``cos runs`` and ``cos cognition trace``: what ran, from the record that real runs left."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

import custodes
from custodes import Budget, Work
from custodes.cli.app import call
from custodes.supervision.record.schema import DATABASE
from support.cos import Cos, Terminal
from support.program import running

COS = [sys.executable, "-m", "custodes.cli"]
PATIENCE_S = 60
PLAN = """\
steps:
  - {id: first, role: reviewer, prompt: Look., model: look}
  - {id: second, role: reviewer, prompt: Look., model: limit, needs: [first]}
  - {id: third, role: reviewer, prompt: Look., model: limit, needs: [first]}
max_parallel: 1
"""


@pytest.fixture
def conversation(cos: Cos, programs: Path) -> str:
    """The id of a plan's run, as the run itself tells it: one child done, one limited, one refused for it."""
    (programs / "plan.yaml").write_text(PLAN)
    answer = cos("run", "plan.yaml")
    assert answer.code == 1
    (told,) = re.findall(r"^conversation: (\S+)$", answer.out, re.MULTILINE)
    return str(told)


def runs(cos: Cos, *words: str) -> Any:
    (found,) = cos("runs", "list", "--format", "json", *words).document["conversations"]
    return found


def test_a_run_names_its_conversation_in_its_document_too(cos: Cos, programs: Path) -> None:
    report = cos("dispatch", "--role", "reviewer", "--model", "look", "x", "--format", "json").document
    found = runs(cos)
    assert found["conversation"] == report["conversation"]
    assert [run["run_id"] for run in found["runs"]] == [report["outcomes"][0]["run_id"]]


def test_the_list_has_each_conversation_with_its_runs(cos: Cos, conversation: str) -> None:
    found = runs(cos)
    assert (found["conversation"], found["abandoned"]) == (conversation, 0)
    assert found["by_status"] == {"done": 1, "failed": 1, "refused": 1}
    assert [(run["name"], run["status"]) for run in found["runs"]] == [
        ("first", "done"),
        ("second", "failed"),
        ("third", "refused"),
    ]
    assert [run["name"] for run in runs(cos, "--limit", "1")["runs"]] == ["third"]
    heading, plan, *lines = cos("runs", "list").out.splitlines()
    assert plan.startswith("  plan plan  ")
    assert "failed  1 of 3 steps done" in plan
    assert heading.startswith(conversation)
    assert "1 done, 1 failed, 1 refused" in heading
    for line, run in zip(lines, found["runs"], strict=True):
        assert line.startswith(f"  {run['name']}  reviewer  {run['status']}")
        assert line.endswith(f"run {run['run_id']}")


def test_one_run_is_shown_with_each_attempt_and_the_decision_of_its_pool(cos: Cos, conversation: str) -> None:
    second = runs(cos)["runs"][1]
    document = cos("runs", "show", second["run_id"], "--format", "json").document
    assert document == {**second, "threads": []}
    (attempt,) = document["attempts"]
    assert (attempt["adapter"], attempt["model"], attempt["pool"]) == ("command", "limit", "command:limit")
    assert (attempt["health_state"], attempt["category"], attempt["retry_after_s"]) == (
        "healthy",
        "capacity",
        60,
    )
    text = cos("runs", "show", second["run_id"]).out
    assert "1. command, model limit; pool command:limit healthy, let in; failed: capacity" in text
    assert f"conversation {conversation}, read-only" in text


def test_the_trace_tells_adapter_model_and_health_decision_of_every_child(
    cos: Cos, conversation: str
) -> None:
    heading, *lines = cos("cognition", "trace", conversation).out.splitlines()
    assert heading.startswith(conversation)
    attempts = [line.strip() for line in lines if line.strip().startswith("1.")]
    assert len(attempts) == 3
    assert attempts[0].startswith("1. command, model look; pool command:look healthy, let in; done")
    assert "let in; failed: capacity on command:limit, 60 s stated" in attempts[1]
    assert re.search(r"pool command:limit; refused: capacity, the soonest recovery in \d+ s$", attempts[2])
    document = cos("cognition", "trace", conversation, "--format", "json").document
    assert document["conversation"] == conversation
    assert [row["status"] for row in document["attempts"]] == ["done", "failed", "refused"]
    assert not any(row["abandoned"] for row in document["attempts"])


def test_a_fan_outs_budget_is_told_with_its_run_and_with_the_trace(cos: Cos, programs: Path) -> None:
    async def fan_out() -> str:
        async with custodes.Supervision(programs) as supervision, supervision.conversation("c") as parent:
            async with parent.fan_out(name="shards", budget=Budget(children=2, tokens=90_000)) as fan:
                child = fan.start(Work(role="reviewer", prompt="look", model="look"))
        assert fan.outcomes[0].status == "done"
        return child.run_id

    run_id = anyio.run(fan_out)
    said = r"fan-out shards  budget: 1 of 2 children, (\d+) of 90000 tokens \(\1 of it estimated\); "
    for words in (["runs", "show", run_id], ["cognition", "trace", "c"]):
        assert re.search(said + "at its end what runs finishes", cos(*words).out)
    (told,) = cos("cognition", "trace", "c", "--format", "json").document["fan_outs"]
    assert (told["fan_out"], told["name"], told["spent"]["children"]["spent"]) == (run_id, "shards", 1)


def test_a_plans_budget_is_told_with_its_run(cos: Cos, programs: Path) -> None:
    (programs / "plan.yaml").write_text(f"{PLAN}budget: {{children: 5, when_spent: stop}}\n")
    (plan_run,) = re.findall(r"^plan run: (\S+)$", cos("run", "plan.yaml").out, re.MULTILINE)
    out = cos("runs", "show", plan_run).out
    assert "budget: 3 of 5 children; at its end what runs is stopped\n" in out


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["runs", "show", "nix"], "no run 'nix' is on record"),
        (["cognition", "trace", "nix"], "nothing is on record of conversation 'nix'"),
        (["cognition", "trace", "nix", "--follow"], "nothing is on record of conversation 'nix'"),
    ],
)
def test_an_id_of_nothing_is_said_with_where_the_ids_are(cos: Cos, words: list[str], says: str) -> None:
    answer = cos(*words)
    assert (answer.code, answer.out) == (1, "")
    assert says in answer.err
    assert "`cos runs list` shows" in answer.err
    error = cos(*words, "--format", "json").document["error"]
    assert (error["kind"], says in error["message"]) == ("record", True)


def test_looking_back_makes_no_file(cos: Cos, project: Path) -> None:
    assert cos("runs", "list", "--format", "json").document == {
        "conversations": [],
        "plans": [],
    }
    assert "nothing ran here" in cos("runs", "list").out
    assert not (project / DATABASE).exists()


@pytest.mark.parametrize("limit", ["0", "-1"])
def test_a_list_of_no_runs_is_a_mistake(cos: Cos, limit: str) -> None:
    answer = cos("runs", "list", "--limit", limit)
    assert (answer.code, "1 or more would work" in answer.err) == (2, True)


def end(dispatch: subprocess.Popen[str]) -> None:
    dispatch.send_signal(signal.SIGTERM)


def kill(dispatch: subprocess.Popen[str]) -> None:
    dispatch.kill()


@pytest.mark.parametrize(
    ("stop", "last"), [(end, ("cancelled", False)), (kill, ("running", True))], ids=["ended", "killed"]
)
def test_a_trace_is_followed_until_nobody_works_on_it_any_more(
    cos: Cos, programs: Path, stop: Callable[[subprocess.Popen[str]], None], last: tuple[str, bool]
) -> None:
    os.mkfifo(programs / "pids")
    work = [*COS, "dispatch", "--role", "reviewer", "--model", "slow", "x"]
    with running(work, cwd=programs, stdout=subprocess.DEVNULL, text=True) as dispatch:
        (programs / "pids").read_text()  # the child is at work
        session = runs(cos)["conversation"]
        command = [*COS, "cognition", "trace", session, "--follow", "--format", "json"]
        with running(command, cwd=programs, stdout=subprocess.PIPE, text=True) as follow:
            assert follow.stdout is not None
            begun = json.loads(follow.stdout.readline())
            assert (begun["status"], begun["health_state"], begun["abandoned"]) == (
                "running",
                "healthy",
                False,
            )
            stop(dispatch)
            dispatch.wait(PATIENCE_S)
            *_, ended = [json.loads(line) for line in follow.communicate(timeout=PATIENCE_S)[0].splitlines()]
    assert follow.returncode == 0
    assert (ended["status"], ended["abandoned"]) == last
    if ended["abandoned"]:
        assert "its owner died" in cos("runs", "list").out
        assert "open, but its owner died" in cos("cognition", "trace", session, "--follow").out


def test_on_a_terminal_what_is_followed_is_drawn_anew_as_a_tree(
    cos: Cos, programs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dispatch = [*COS, "dispatch", "--role", "reviewer", "--model", "look", "x", "--format", "json"]
    ran = subprocess.run(dispatch, cwd=programs, capture_output=True, text=True, check=True)
    session = json.loads(ran.stdout)["conversation"]
    drawn = cos("cognition", "trace", session).out
    terminal = Terminal()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stdout", terminal)
    assert call(["cognition", "trace", session, "--follow"]) == 0
    assert terminal.getvalue() == f"\x1b[H\x1b[J{drawn}"


def test_a_trace_that_is_followed_ends_with_an_interrupt(cos: Cos, programs: Path) -> None:
    os.mkfifo(programs / "pids")
    work = [*COS, "dispatch", "--role", "reviewer", "--model", "slow", "x"]
    with running(work, cwd=programs, stdout=subprocess.DEVNULL) as dispatch:
        (programs / "pids").read_text()
        command = [*COS, "cognition", "trace", runs(cos)["conversation"], "--follow"]
        with running(
            command, cwd=programs, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as follow:
            assert follow.stdout is not None
            assert "let in; running" in follow.stdout.readline()
            follow.send_signal(signal.SIGINT)
            _, err = follow.communicate(timeout=PATIENCE_S)
        dispatch.terminate()
    assert (follow.returncode, err) == (130, "cos: interrupted\n")


THREAD = "0f3c2a51-6d0e-4b7a-9a53-8a1a2f0c9d11"
CLAUDE = f"""\
#!/bin/sh
read -r prompt
cat <<'EOF'
{{"type":"system","subtype":"init","session_id":"{THREAD}"}}
{{"type":"assistant","message":{{"id":"m","model":"claude-sonnet-5","content":[{{"type":"text","text":"x"}}]}}}}
{{"type":"result","subtype":"success","is_error":false,"result":"{{\\"summary\\":\\"seen\\"}}"}}
EOF
"""


@pytest.fixture
def thread(cos: Cos, project: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The id of a run whose attempt has a native thread."""
    place = project.parent / "bin"
    place.mkdir()
    (place / "claude").write_text(CLAUDE)
    (place / "claude").chmod(0o755)
    monkeypatch.setenv("PATH", f"{place}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("HOME", str(project.parent))
    monkeypatch.setenv("ANTHROPIC_API_KEY", "dummy")
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
    (project / ".coding-os.yaml").write_text("agents: [claude]\n")
    assert cos("supervision", "enable").code == 0
    report = cos("dispatch", "--role", "reviewer", "x", "--format", "json").document
    return str(report["outcomes"][0]["run_id"])


def test_a_thread_is_shown_with_its_transcript_and_what_goes_on_with_it(
    cos: Cos, thread: str, project: Path
) -> None:
    file = project.parent / ".claude" / "projects" / "-work" / f"{THREAD}.jsonl"
    (shown,) = cos("runs", "show", thread, "--format", "json").document["threads"]
    assert shown == {
        "attempt": 1,
        "adapter": "claude",
        "native_thread_id": THREAD,
        "place": None,
        "command": ["claude", "--resume", THREAD],
    }
    file.parent.mkdir(parents=True)
    file.touch()
    (shown,) = cos("runs", "show", thread, "--format", "json").document["threads"]
    assert shown["place"] == str(file)
    lines = cos("runs", "show", thread).out.splitlines()
    assert lines[-3:] == [
        f"attempt 1 is session {THREAD} of claude",
        f"  its transcript: {file}",
        f"  to go on with it, in its folder: claude --resume {THREAD}",
    ]


def test_a_thread_of_an_adapter_that_is_not_trusted_is_shown_without_more(
    cos: Cos, thread: str, project: Path
) -> None:
    own = project / ".coding-os" / "adapters" / "claude"
    own.mkdir(parents=True)
    (own / "adapter.yaml").write_text("runtime_entrypoints: {transcript: places.py}\n")
    (own / "places.py").write_text(f"open({str(project / 'ran')!r}, 'w')\n")
    answer = cos("runs", "show", thread)
    assert (answer.code, answer.out.splitlines()[-1]) == (0, f"attempt 1 is session {THREAD} of claude")
    assert not (project / "ran").exists()
