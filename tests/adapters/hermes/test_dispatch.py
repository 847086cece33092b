"""Hermes as it was recorded, through the adapter and the real process runner."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from custodes.adapters import Progress, Registry, Runtime, Usage
from support.replay import FIXTURES, dispatched, replay, stand_in
from support.said import AUTH, BILLING, INVALID, OTHER, REFUSED, assert_failed

pytestmark = pytest.mark.anyio

CAPTURES: dict[str, dict[str, Any]] = {
    "429": {"category": "capacity", "retryable": True, "retry_after_s": 7, "outcome": "known_failed"},
    # "check your plan and billing details": it waits for a person.
    "quota": BILLING,
    "402": BILLING,
    "401": AUTH,
    "403": AUTH,
    "500": {"category": "provider", "retryable": True, "outcome": "unknown", "overloaded": False},
    "529": {"category": "provider", "retryable": True, "outcome": "unknown", "overloaded": True},
    "ctx400": INVALID,
    "model404": INVALID,
    "cut": OTHER,
    "malformed": OTHER,
    "hang": OTHER,
    "refused": REFUSED,
}


@pytest.fixture
def runtime(tmp_path: Path) -> Runtime:
    return Registry.discover(tmp_path).runtime("hermes")


@pytest.mark.parametrize("case", CAPTURES)
async def test_a_capture_reads_as_what_happened(case: str, runtime: Runtime, tmp_path: Path) -> None:
    """It exits 0 in most of them, with the error as its answer."""
    seen: list[Progress] = []
    result = await dispatched(
        runtime, replay(tmp_path, "hermes", FIXTURES / "hermes" / "captures" / case), tmp_path, seen
    )
    assert_failed(result, CAPTURES[case])
    assert result.text == ""
    assert result.usage is None
    assert "output" not in {each.kind for each in seen}


@pytest.mark.parametrize(
    ("case", "tokens"),
    [("success", (11, 5)), ("tool_sleep.sigTERM", (22, 10)), ("tool_sleep.sigINT", (22, 10))],
)
async def test_an_answer_comes_with_its_session_its_model_and_what_it_used(
    case: str, tokens: tuple[int, int], runtime: Runtime, tmp_path: Path
) -> None:
    seen: list[Progress] = []
    result = await dispatched(
        runtime,
        replay(tmp_path, "hermes", FIXTURES / "hermes" / "captures" / case),
        tmp_path,
        seen,
        mutable=True,
    )
    assert result.failure is None
    assert result.text == "MOCK-OK"
    assert result.native_thread_id is not None
    assert result.native_thread_id.startswith("20261130_")
    assert result.served_model == "mock-model"
    # A cost of 0.0 whose status is "unknown" is none.
    assert result.usage == Usage(input_tokens=tokens[0], output_tokens=tokens[1], cached_input_tokens=0)
    assert [each.kind for each in seen] == ["started", "output", "usage"]


def run(answer: str, code: int = 0, **report: object) -> str:
    """A program that answers and reports so."""
    return f"""#!/bin/sh
while [ "$1" != --usage-file ]; do shift; done
cat > "$2" <<'EOF'
{json.dumps(report)}
EOF
cat <<'EOF'
{answer}
EOF
exit {code}
"""


async def test_an_answer_that_is_not_reported_as_complete_is_none(runtime: Runtime, tmp_path: Path) -> None:
    result = await dispatched(
        runtime,
        stand_in(tmp_path, "hermes", run("Half an answer", completed=False, failed=False, api_calls=1)),
        tmp_path,
    )
    assert result.failure is not None
    assert (result.failure.category, result.failure.outcome) == ("provider", "unknown")


async def test_an_answer_without_a_report_is_none(runtime: Runtime, tmp_path: Path) -> None:
    result = await dispatched(runtime, stand_in(tmp_path, "hermes", "#!/bin/sh\necho MOCK-OK\n"), tmp_path)
    assert result.failure is not None
    assert (result.failure.category, result.failure.outcome) == ("provider", "unknown")


async def test_an_answer_about_limits_is_an_answer(runtime: Runtime, tmp_path: Path) -> None:
    said = "HTTP 429: rate limit reached is what the log says."
    result = await dispatched(
        runtime, stand_in(tmp_path, "hermes", run(said, completed=True, failed=False, api_calls=1)), tmp_path
    )
    assert result.failure is None
    assert result.text == said


async def test_a_limit_at_a_later_request_leaves_open_what_its_tools_did(
    runtime: Runtime, tmp_path: Path
) -> None:
    limited = run("HTTP 429: Rate limit reached.", completed=False, failed=True, api_calls=2)
    result = await dispatched(runtime, stand_in(tmp_path, "hermes", limited), tmp_path, mutable=True)
    assert result.failure is not None
    assert (result.failure.category, result.failure.outcome) == ("capacity", "unknown")
    assert result.failure.accepted


@pytest.mark.parametrize("at", [0, 400], ids=["first", "last"])
async def test_a_limit_is_found_at_either_end_of_a_long_output(
    at: int, runtime: Runtime, tmp_path: Path
) -> None:
    lines = ["It said something about the work." for _ in range(400)]
    lines.insert(at, "HTTP 429: Rate limit reached. Please try again in 7s.")
    limited = run("\n".join(lines), completed=False, failed=True, api_calls=1)
    result = await dispatched(runtime, stand_in(tmp_path, "hermes", limited), tmp_path)
    assert result.failure is not None
    assert (result.failure.category, result.failure.retry_after_s) == ("capacity", 7)


@pytest.mark.parametrize("at", [0, 400], ids=["first", "last"])
@pytest.mark.parametrize("place", ["report", "standard error"])
async def test_a_limit_is_found_at_either_end_where_it_prints_none(
    place: str, at: int, runtime: Runtime, tmp_path: Path
) -> None:
    lines = ["It said something about the work." for _ in range(400)]
    lines.insert(at, "HTTP 429: Rate limit reached. Please try again in 7s.")
    told = "\n".join(lines)
    if place == "report":
        script = run("", completed=False, failed=True, api_calls=1, failure=told)
    else:
        script = f"#!/bin/sh\ncat >&2 <<'EOF'\n{told}\nEOF\nexit 1\n"
    result = await dispatched(runtime, stand_in(tmp_path, "hermes", script), tmp_path)
    assert result.failure is not None
    assert (result.failure.category, result.failure.retry_after_s) == ("capacity", 7)


async def test_what_came_from_the_cache_is_input_too(runtime: Runtime, tmp_path: Path) -> None:
    counts = {"input_tokens": 16, "output_tokens": 10, "cache_read_tokens": 6}
    done = run("Done.", completed=True, failed=False, **counts)
    result = await dispatched(runtime, stand_in(tmp_path, "hermes", done), tmp_path)
    assert result.usage == Usage(input_tokens=22, output_tokens=10, cached_input_tokens=6)


async def test_a_known_cost_is_told(runtime: Runtime, tmp_path: Path) -> None:
    paid = run("Done.", completed=True, failed=False, estimated_cost_usd=0.25, cost_status="estimated")
    result = await dispatched(runtime, stand_in(tmp_path, "hermes", paid), tmp_path)
    assert result.usage == Usage(cost_usd=0.25)


@pytest.mark.parametrize("mutable", [False, True])
async def test_read_only_work_may_write_to_an_empty_folder_alone(
    mutable: bool, runtime: Runtime, tmp_path: Path
) -> None:
    script = f"""#!/bin/sh
echo "$@" > {tmp_path}/words
env > {tmp_path}/environment
ls -A "$HERMES_WRITE_SAFE_ROOT" > {tmp_path}/inside
"""
    await dispatched(runtime, stand_in(tmp_path, "hermes", script), tmp_path, mutable=mutable)
    words, held = (tmp_path / "words").read_text(), (tmp_path / "environment").read_text()
    assert ("--toolsets file,todo" in words) is not mutable
    assert ("HERMES_WRITE_SAFE_ROOT=" in held) is not mutable
    if not mutable:
        assert (tmp_path / "inside").read_text() == ""


async def test_a_prompt_that_looks_like_an_option_stays_a_prompt(runtime: Runtime, tmp_path: Path) -> None:
    await dispatched(
        runtime,
        stand_in(tmp_path, "hermes", f'#!/bin/sh\nprintf "%s" "$1" > {tmp_path}/first\n'),
        tmp_path,
        prompt="--yolo",
    )
    assert (tmp_path / "first").read_text() == "--oneshot=--yolo"


async def test_a_prompt_that_is_too_long_for_the_system_is_invalid(runtime: Runtime, tmp_path: Path) -> None:
    result = await dispatched(
        runtime, stand_in(tmp_path, "hermes", "#!/bin/sh\n"), tmp_path, prompt="x" * 3_000_000
    )
    assert result.failure is not None
    assert (result.failure.category, result.failure.outcome) == ("invalid", "known_failed")


@pytest.mark.parametrize(
    "asked",
    [{"effort": "high"}, {"schema": {"type": "object"}}, {"model": "--yolo"}, {"resume": "5"}],
    ids=str,
)
async def test_what_it_cannot_do_is_invalid_and_runs_nothing(
    asked: dict[str, Any], runtime: Runtime, tmp_path: Path
) -> None:
    result = await dispatched(
        runtime, stand_in(tmp_path, "hermes", f"#!/bin/sh\ntouch {tmp_path}/ran\n"), tmp_path, **asked
    )
    assert result.failure is not None
    assert (result.failure.category, result.failure.outcome) == ("invalid", "known_failed")
    assert not (tmp_path / "ran").exists()
