"""One attempt of a native program: what its adapter makes of its end, and what overrules that."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from custodes.adapters import DispatchRequest, Failure, failures, native
from custodes.adapters.process import ProcessResult, base_environment

pytestmark = pytest.mark.anyio


class Heard:
    """A reader that takes a line "tool" for a tool's use, and any other for the model's words."""

    def __init__(self) -> None:
        self.output_seen = False
        self.tools = False
        self.ends: list[ProcessResult] = []

    def output_line(self, line: bytes) -> bool:
        self.tools = self.tools or line == b"tool"
        self.output_seen = True
        return False

    def error_line(self, line: bytes) -> bool:
        return line == b"enough"

    def verdict(self, ended: ProcessResult) -> Failure | None:
        self.ends.append(ended)
        return None if ended.exit_code == 0 else failures.failure("limit", "it")


async def attempt(folder: Path, code: str, heard: Heard, *, timeout_s: float = 30.0) -> Failure | None:
    request = DispatchRequest(
        run_id="r", role="observer", prompt="", mutable=False, cwd=str(folder), timeout_s=timeout_s
    )
    return await native.attempt(
        "it",
        [sys.executable, "-c", f"import sys, time\n{code}"],
        request=request,
        environment=base_environment({}),
        stdin=b"",
        reader=heard,
        verdict=heard.verdict,
        progress=lambda _: None,
    )


async def test_its_verdict_is_the_adapters(tmp_path: Path) -> None:
    assert await attempt(tmp_path, "pass", Heard()) is None
    failure = await attempt(tmp_path, "sys.exit(1)", Heard())
    assert failure == failures.failure("limit", "it")


@pytest.mark.parametrize(("line", "outcome"), [("words", "known_failed"), ("tool", "unknown")])
async def test_a_failure_after_a_tool_was_used_is_of_unknown_outcome(
    tmp_path: Path, line: str, outcome: str
) -> None:
    failure = await attempt(tmp_path, f"print({line!r}); sys.exit(1)", Heard())
    assert failure is not None
    assert (failure.category, failure.outcome, failure.accepted) == ("capacity", outcome, True)


async def test_a_deadline_overrules_a_good_verdict_that_is_still_asked_for(tmp_path: Path) -> None:
    heard = Heard()
    heard.verdict = lambda ended: heard.ends.append(ended)  # type: ignore[method-assign]  # always good
    failure = await attempt(tmp_path, "time.sleep(60)", heard, timeout_s=0.5)
    assert failure is not None
    assert failure.category == "timeout"
    assert [ended.timed_out for ended in heard.ends] == [True]


async def test_a_program_that_did_not_start_is_not_judged(tmp_path: Path) -> None:
    heard = Heard()
    failure = await attempt(tmp_path / "gone", "pass", heard)
    assert failure is not None
    assert (failure.category, failure.outcome, failure.accepted) == ("invalid", "known_failed", False)
    assert heard.ends == []
