"""Qwen Code as it was recorded, through the adapter and the real process runner."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from custodes.adapters import Progress, Registry, Runtime, Usage
from support.replay import FIXTURES, dispatched, replay, stand_in
from support.said import AUTH, BILLING, INVALID, LIMIT, OTHER, REFUSED, SERVER, assert_failed

pytestmark = pytest.mark.anyio

SESSION = "00000000-0000-4000-8000-000000000001"
CAPTURES: dict[str, dict[str, Any]] = {
    "429.sj": {
        "category": "capacity",
        "retryable": True,
        "retry_after_s": 7,
        "outcome": "known_failed",
    },
    "401": AUTH,
    "403": AUTH,
    "402": BILLING,
    "ctx400": INVALID,
    "model404": INVALID,
    "cut": OTHER,
    "malformed": OTHER,
    "tool_sleep.sigTERM": OTHER,
    "tool_sleep.sigINT": OTHER,
    # Recorded without its debug log and ended by hand before it printed a word: nothing to be known.
    "429": OTHER,
    "500": OTHER,
    "529": OTHER,
    "quota": OTHER,
    "refused": OTHER,
    "hang": OTHER,
}
SILENT = {"429", "500", "529", "quota", "refused", "hang", "tool_sleep.sigTERM", "tool_sleep.sigINT"}


RECORDED: dict[str, dict[str, Any]] = {
    "limit": {**LIMIT, "retry_after_s": 7},
    "usage_limit": {**LIMIT, "retry_after_s": None},
    "quota": BILLING,
    "billing": BILLING,
    "auth": AUTH,
    "overload": SERVER,
    "server_error": SERVER,
    "context": INVALID,
    "unknown_model": INVALID,
    "cut": OTHER,
    "refused": REFUSED,
}
"""With its debug log on standard error, by `scripts/runtimes record`."""


@pytest.fixture
def runtime(tmp_path: Path) -> Runtime:
    return Registry.discover(tmp_path).runtime("qwen")


@pytest.mark.parametrize("case", CAPTURES)
async def test_a_capture_reads_as_what_happened(case: str, runtime: Runtime, tmp_path: Path) -> None:
    seen: list[Progress] = []
    result = await dispatched(
        runtime, replay(tmp_path, "qwen", FIXTURES / "qwen" / "captures" / case), tmp_path, seen
    )
    assert_failed(result, CAPTURES[case])
    assert result.native_thread_id == (None if case in SILENT else SESSION)
    assert result.usage is None
    # It words a provider's failure as if the model had said it: that confirms nothing.
    assert ("output" in {each.kind for each in seen}) is (case == "cut")


@pytest.mark.parametrize("case", RECORDED)
async def test_a_run_recorded_through_the_adapter_reads_the_same_again(
    case: str, runtime: Runtime, tmp_path: Path
) -> None:
    result = await dispatched(runtime, replay(tmp_path, "qwen", FIXTURES / "qwen" / case), tmp_path)
    assert_failed(result, RECORDED[case])
    assert result.native_thread_id


@pytest.mark.parametrize(
    ("case", "used"), [("success", (22, 10)), ("tool_write.ro", (33, 15)), ("structured", (11, 5))]
)
async def test_an_answer_comes_with_its_session_its_model_and_what_it_used(
    case: str, used: tuple[int, int], runtime: Runtime, tmp_path: Path
) -> None:
    result = await dispatched(
        runtime, replay(tmp_path, "qwen", FIXTURES / "qwen" / "captures" / case), tmp_path
    )
    assert result.failure is None
    assert "MOCK-OK" in result.text
    assert result.native_thread_id == SESSION
    assert result.usage == Usage(input_tokens=used[0], output_tokens=used[1], cached_input_tokens=0)


async def test_a_schema_is_answered_with_the_value_itself(runtime: Runtime, tmp_path: Path) -> None:
    result = await dispatched(
        runtime,
        replay(tmp_path, "qwen", FIXTURES / "qwen" / "captures" / "structured"),
        tmp_path,
        schema={"type": "object"},
    )
    assert result.failure is None
    assert result.structured == {"verdict": "MOCK-OK", "n": 1}


async def test_words_where_a_schema_was_asked_for_are_no_success(runtime: Runtime, tmp_path: Path) -> None:
    result = await dispatched(
        runtime,
        replay(tmp_path, "qwen", FIXTURES / "qwen" / "captures" / "success"),
        tmp_path,
        schema={"type": "object"},
    )
    assert result.failure is not None
    assert (result.failure.category, result.failure.outcome) == ("provider", "unknown")


def attempt(number: int, *fields: str, status: int | None = None, delay: str = "with backoff in 2s") -> str:
    """An attempt of its debug log."""
    with_status = f" with status {status}" if status else ""
    head = f"2026-01-01T00:00:00.000Z [WARN] [RETRY] Attempt {number} failed{with_status}. Retrying {delay}"
    return "\n".join((f"{head}... {{", *(f"  {field}," for field in fields), "} Error: x"))


LIMITED = attempt(
    1,
    "statusCode: 429",
    "providerCode: 'rate_limit_exceeded'",
    "providerMessage: 'Slow down.'",
    status=429,
    delay="after explicit delay of 52000ms",
)


def prints(*lines: str, errors: tuple[str, ...] = (), after: str = "exit 0") -> str:
    out, err = "\n".join(lines), "\n".join(errors)
    return f"#!/bin/sh\ncat <<'EOF'\n{out}\nEOF\ncat >&2 <<'EOF'\n{err}\nEOF\n{after}\n"


@pytest.mark.parametrize(
    ("attempts", "said"),
    [
        ((LIMITED,), ("capacity", True, 52, "known_failed")),
        (
            (attempt(1, "providerCode: 'insufficient_quota'", "statusCode: 429", status=429),),
            ("unavailable", False, None, "known_failed"),
        ),
        (
            (attempt(1, "statusCode: 500", status=500), attempt(2, "statusCode: 500", status=500)),
            ("provider", True, None, "unknown"),
        ),
        (
            (attempt(1, "transportCode: 'ECONNREFUSED'"), attempt(2, "transportCode: 'ECONNREFUSED'")),
            ("unavailable", True, None, "known_failed"),
        ),
        (
            (attempt(1, "transportCode: 'ECONNRESET'"), attempt(2, "transportCode: 'ECONNRESET'")),
            ("provider", False, None, "unknown"),
        ),
    ],
    ids=["limit", "billing", "server", "refused", "reset"],
)
async def test_it_is_ended_by_what_its_debug_log_tells(
    attempts: tuple[str, ...], said: tuple[object, ...], runtime: Runtime, tmp_path: Path
) -> None:
    seen: list[Progress] = []
    result = await dispatched(
        runtime, stand_in(tmp_path, "qwen", prints(errors=attempts, after="exec sleep 300")), tmp_path, seen
    )
    failure = result.failure
    assert failure is not None
    assert (failure.category, failure.retryable, failure.retry_after_s, failure.outcome) == said
    assert "retrying" in {each.kind for each in seen}


async def test_one_failed_attempt_may_still_be_mended(runtime: Runtime, tmp_path: Path) -> None:
    capture = FIXTURES / "qwen" / "captures" / "success.stdout"
    first = attempt(1, "statusCode: 500", status=500)
    script = f"#!/bin/sh\ncat >&2 <<'EOF'\n{first}\nEOF\ncat '{capture}'\n"
    result = await dispatched(runtime, stand_in(tmp_path, "qwen", script), tmp_path)
    assert result.failure is None


async def test_its_debug_log_comes_by_standard_error_and_leaves_nothing(
    runtime: Runtime, tmp_path: Path
) -> None:
    """A program that writes to the log as the real one does: to the file of its session's name."""
    script = f"""#!/bin/sh
while [ "$1" != --session-id ]; do shift; done
printf '%s\\n' '{attempt(1, "statusCode: 429", status=429)}' >> "$HOME/.qwen/debug/$2.txt"
exec sleep 300
"""
    result = await dispatched(runtime, stand_in(tmp_path, "qwen", script), tmp_path)
    assert result.failure is not None
    assert result.failure.category == "capacity"
    assert list((tmp_path / ".qwen" / "debug").iterdir()) == []


async def test_a_limit_after_a_tool_leaves_open_what_was_done(runtime: Runtime, tmp_path: Path) -> None:
    used = {"type": "assistant", "message": {"content": [{"type": "tool_use", "name": "edit"}]}}
    script = prints(json.dumps(used), errors=(LIMITED,), after="exec sleep 300")
    script = script.replace("cat >&2", "sleep 0.3\ncat >&2")
    result = await dispatched(runtime, stand_in(tmp_path, "qwen", script), tmp_path, mutable=True)
    assert result.failure is not None
    assert (result.failure.category, result.failure.outcome) == ("capacity", "unknown")


async def test_a_missing_login_is_auth(runtime: Runtime, tmp_path: Path) -> None:
    said = {
        "type": "result",
        "subtype": "error_during_execution",
        "is_error": True,
        "error": {"message": "No auth type is selected. Please configure an auth type."},
    }
    result = await dispatched(
        runtime, stand_in(tmp_path, "qwen", prints(json.dumps(said), after="exit 1")), tmp_path
    )
    assert result.failure is not None
    assert result.failure.category == "auth"


@pytest.mark.parametrize(
    ("code", "category"),
    [(41, "auth"), (42, "invalid"), (44, "unavailable"), (52, "invalid"), (9, "provider")],
)
async def test_its_own_exit_codes_are_read(
    code: int, category: str, runtime: Runtime, tmp_path: Path
) -> None:
    result = await dispatched(runtime, stand_in(tmp_path, "qwen", f"#!/bin/sh\nexit {code}\n"), tmp_path)
    assert result.failure is not None
    assert result.failure.category == category


async def test_the_program_itself_is_run_and_not_the_entry_that_starts_it(
    runtime: Runtime, tmp_path: Path
) -> None:
    """Installed as its package does it: a link to an entry that would start a second process."""
    package = tmp_path / "package"
    package.mkdir()
    (package / "cli-entry.js").write_text(f"#!/bin/sh\ntouch {tmp_path}/entered\n")
    (package / "cli-entry.js").chmod(0o755)
    (package / "cli.js").write_text("")
    here = stand_in(tmp_path, "node", f'#!/bin/sh\necho "$1" > {tmp_path}/run\n')
    (here / "qwen").symlink_to(package / "cli-entry.js")
    await dispatched(runtime, here, tmp_path)
    assert (tmp_path / "run").read_text().strip() == str(package / "cli.js")
    assert not (tmp_path / "entered").exists()


@pytest.mark.parametrize("mutable", [False, True])
async def test_read_only_work_gets_no_tool_that_changes_something(
    mutable: bool, runtime: Runtime, tmp_path: Path
) -> None:
    await dispatched(
        runtime,
        stand_in(tmp_path, "qwen", f'#!/bin/sh\necho "$@" > {tmp_path}/words\n'),
        tmp_path,
        mutable=mutable,
    )
    words = (tmp_path / "words").read_text()
    assert ("--approval-mode plan" in words) is not mutable
    assert ("--exclude-tools run_shell_command" in words) is not mutable


@pytest.mark.parametrize("asked", [{"effort": "high"}, {"model": "--yolo"}, {"resume": "--yolo"}], ids=str)
async def test_what_it_cannot_do_is_invalid_and_runs_nothing(
    asked: dict[str, Any], runtime: Runtime, tmp_path: Path
) -> None:
    result = await dispatched(
        runtime, stand_in(tmp_path, "qwen", f"#!/bin/sh\ntouch {tmp_path}/ran\n"), tmp_path, **asked
    )
    assert result.failure is not None
    assert (result.failure.category, result.failure.outcome) == ("invalid", "known_failed")
    assert not (tmp_path / "ran").exists()
