"""Any program as a runtime: what it gets, what it gives, how it fails."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from custodes.adapters import Descriptor, DispatchRequest, DispatchResult, Progress
from custodes.adapters.command.dispatch import MAX_OUTPUT, runtime
from custodes.adapters.descriptor import Model

pytestmark = pytest.mark.anyio

Run = Callable[..., Any]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    async def running(source: str, *, seen: list[Progress] | None = None, **fields: Any) -> DispatchResult:
        script = tmp_path / "program.py"
        script.write_text(f"import sys, json, os, time\n{source}\n")
        models = (
            Model(id="it", argv=(sys.executable, str(script))),
            Model(id="gone", argv=("/no/such/program",)),
        )
        base: dict[str, Any] = {
            "run_id": "r1",
            "role": "reviewer",
            "prompt": "look",
            "mutable": False,
            "cwd": str(tmp_path),
            "timeout_s": 30.0,
            "model": "it",
        }
        sink = (seen if seen is not None else []).append
        request = DispatchRequest(**{**base, **fields})
        return await runtime(Descriptor(id="command", models=models)).dispatch(request, sink)

    return running


async def test_the_prompt_goes_in_and_the_answer_comes_out(run: Run) -> None:
    seen: list[Progress] = []
    source = (
        'print(json.dumps({"summary": sys.stdin.read(),'
        ' "role": os.environ["CUSTODES_ROLE"], "x": os.environ["X"]}))'
    )
    result = await run(source, seen=seen, environment={"X": "7"})
    assert result.failure is None
    assert result.structured == json.loads(result.text) == {"summary": "look", "role": "reviewer", "x": "7"}
    assert [p.kind for p in seen] == ["started", "output"]
    assert seen[0].pid


async def test_text_is_an_answer_too(run: Run) -> None:
    result = await run("print('fine')")
    assert (result.failure, result.text, result.structured) == (None, "fine", None)


@pytest.mark.parametrize(
    ("source", "fields", "category", "outcome"),
    [
        ("sys.exit(3)", {}, "provider", "unknown"),
        ("pass", {}, "provider", "unknown"),
        ("os.kill(os.getpid(), 9)", {}, "provider", "unknown"),
        ("time.sleep(60)", {"timeout_s": 0.5}, "timeout", "unknown"),
        (f"print('x' * {MAX_OUTPUT + 2})", {}, "provider", "unknown"),
        ("print('ok')", {"model": "gone"}, "invalid", "known_failed"),
        ("print('ok')", {"model": "gone", "mutable": True}, "invalid", "known_failed"),
        ("print('ok')", {"model": "other"}, "invalid", "known_failed"),
        ("print('ok')", {"effort": "high"}, "invalid", "known_failed"),
        ("print('ok')", {"cwd": "/no/such/folder"}, "invalid", "known_failed"),
    ],
)
async def test_every_bad_end_has_its_row(
    run: Run, source: str, fields: dict[str, Any], category: str, outcome: str
) -> None:
    result = await run(source, **fields)
    assert result.failure is not None
    assert (result.failure.category, result.failure.retryable, result.failure.outcome) == (
        category,
        False,
        outcome,
    )
    assert result.text == ""


@pytest.mark.parametrize(
    ("stated", "wanted"),
    [
        ({"category": "capacity", "retry_after_s": 29.5}, ("capacity", True, 30, "known_failed")),
        ({"category": "capacity", "retryable": False}, ("capacity", False, None, "known_failed")),
        ({"category": "provider", "overloaded": True}, ("provider", True, None, "unknown")),
        ({"category": "auth", "retryable": True, "retry_after_s": 5}, ("auth", False, None, "known_failed")),
        (
            {"category": "timeout", "retryable": True, "outcome": "known_failed"},
            ("timeout", False, None, "unknown"),
        ),
        ({"category": "capacity", "retry_after_s": -5}, ("capacity", True, None, "known_failed")),
        ({"category": "boredom"}, ("provider", False, None, "unknown")),
        ("text", ("provider", False, None, "unknown")),
    ],
)
@pytest.mark.parametrize("code", [0, 1])
async def test_a_program_may_tell_the_truth_itself(
    run: Run, stated: object, wanted: tuple[str, bool, int | None, str], code: int
) -> None:
    line = json.dumps({"failure": stated})
    result = await run(f"print('starting'); print({line!r}); sys.exit({code})")
    found = result.failure
    assert found is not None
    assert (found.category, found.retryable, found.retry_after_s, found.outcome) == wanted


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("sys.exit(3)", "exit status 3"),
        ("os.kill(os.getpid(), 9)", "ended by SIGKILL"),
        ("sys.exit('429 Too Many Requests')", "exit status 1"),
        ("""print('{"failure": {"category": "auth"}}'); sys.exit(5)""", "exit status 5"),
        ("""print('{"failure": {"category": "capacity"}}'); sys.exit(6)""", "exit status 6"),
        ("""print('{"failure": "text"}'); sys.exit(7)""", "exit status 7"),
    ],
)
async def test_a_reason_says_how_the_program_ended(run: Run, source: str, says: str) -> None:
    assert says in (await run(source)).failure.reason


async def test_no_word_of_a_program_gets_into_a_reason(run: Run) -> None:
    line = json.dumps({"failure": {"category": "capacity", "reason": "canary"}})
    assert "canary" not in (await run(f"print({line!r})")).failure.reason
    assert "canary" not in (await run("sys.exit('canary: 429 Too Many Requests')")).failure.reason


@pytest.mark.parametrize("where", [0, 2_000, 4_000], ids=["first", "middle", "last"])
@pytest.mark.parametrize("file", ["stdout", "stderr"])
async def test_a_limit_is_found_wherever_it_stands_in_much_output(run: Run, where: int, file: str) -> None:
    found = (
        await run(
            f"lines = ['{'x' * 50}'] * 4000\n"
            f"lines.insert({where}, '429 Too Many Requests, try again in 52s')\n"
            f"print(*lines, sep='\\n', file=sys.{file}); sys.exit(1)"
        )
    ).failure
    assert (found.category, found.retry_after_s, found.outcome) == ("capacity", 52, "known_failed")


async def test_work_that_may_write_leaves_its_outcome_unknown_unless_the_program_knows(run: Run) -> None:
    worded = (await run("sys.exit('429 Too Many Requests')", mutable=True)).failure
    assert (worded.category, worded.outcome, worded.accepted) == ("capacity", "unknown", True)
    line = json.dumps({"failure": {"category": "capacity", "outcome": "known_failed"}})
    stated = (await run(f"print({line!r})", mutable=True)).failure
    assert (stated.outcome, stated.accepted) == ("known_failed", False)


async def test_evidence_that_speaks_of_failures_is_evidence(run: Run) -> None:
    line = json.dumps({"failure": {"category": "capacity"}, "summary": "what I found"})
    assert (await run(f"print({line!r})")).failure is None
    assert (await run("print('429 Too Many Requests was seen in the log')")).failure is None
    early = json.dumps({"failure": {"category": "capacity"}})
    assert (await run(f"print({early!r}); print('then it went well')")).failure is None
