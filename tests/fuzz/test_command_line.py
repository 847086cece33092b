"""Command lines of words in any order: an exit code that is documented, never a traceback."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from custodes.cli.app import call
from support.fuzz import CANARY, WORDS, tried

COMMANDS = (
    *("supervision", "run", "dispatch", "roles", "adapters", "runs", "cognition", "health", "scopes"),
    *("completion", "doctor", "init"),
)
"""Without those that go on until they are ended (mcp, hub, demo, overseer): each has tests of its own."""
BELOW = (
    *("show", "enable", "disable", "set", "explain", "turn-defaults", "list", "trust", "check", "cancel"),
    *("asks", "answer", "resolve", "trace", "clear", "release", "bash"),
)
OPTIONS = (
    *("--format", "--format=json", "json", "--help", "--version", "--", "-", "-x", "--role", "--prompt"),
    *("--scope", "--timeout", "--wait", "--adapter", "--model", "--effort", "--complexity", "--mode"),
    *("--max-parallel", "--cooldown-default", "--orchestrator-model", "--role-model", "--role-effort"),
    *("--clear", "--preset", "--resume", "--replan", "--health", "--limit", "--budget-usd", "--otlp"),
)
VALUES = (
    *("reviewer", "reviwer", "fixture", "nan", "inf", "-1", "1e400", "0", "plan.yaml", ".", "/", "\udcff"),
    *("a=b", "reviewer=", "=x", "mode", *(word for word in WORDS if "\0" not in word)),
)


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("typed")
    project = folder / "project"
    (project / ".coding-os" / "adapters" / "fixture").mkdir(parents=True)
    adapter = project / ".coding-os" / "adapters" / "fixture"
    (adapter / "adapter.yaml").write_text(
        'label: "\\e[31mred"\nruntime_entrypoints: {dispatch: dispatch.py, capabilities: [dispatch]}\n'
    )
    (adapter / "dispatch.py").write_text("")
    (project / ".coding-os.yaml").write_text("agents: [fixture]\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CONFIG_HOME", str(folder / "config"))
        patch.setenv("OPENAI_API_KEY", CANARY)
        patch.setenv("NO_COLOR", "1")
        patch.chdir(project)
        yield project


@given(
    command=st.sampled_from(COMMANDS),
    words=st.lists(st.sampled_from(BELOW) | st.sampled_from(OPTIONS) | st.sampled_from(VALUES), max_size=5),
)
@tried(60)
def test_whatever_is_typed_ends_with_a_documented_exit_code(
    here: Path, command: str, words: list[str]
) -> None:
    out, err = io.TextIOWrapper(io.BytesIO(), "utf-8"), io.TextIOWrapper(io.BytesIO(), "utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdin", io.StringIO(""))
        patch.setattr(sys, "stdout", out)
        patch.setattr(sys, "stderr", err)
        code = call([command, *words])
    assert code in (0, 1, 2)
    for stream in (out, err):
        said = stream.buffer.getvalue().decode()
        assert "Traceback" not in said
        assert "\x1b" not in said
        assert CANARY not in said or any(CANARY in word for word in words)
