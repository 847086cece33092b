"""Every installed runtime, for real, through success and every fault of the table."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from live.harness import MATRIX, TRIED_AGAIN, Driven, Target, cancel_during_tool, drive, targets
from live.installed import installed
from support.loopback.answers import TEXT

pytestmark = [pytest.mark.live, pytest.mark.anyio]

TARGETS = targets()


@pytest.fixture
def anyio_backend() -> str:
    """One loop for the matrix: what differs between the two is proven with smaller programs."""
    return "asyncio"


@pytest.fixture(params=sorted(TARGETS))
def target(request: pytest.FixtureRequest) -> Target:
    return installed(TARGETS[request.param])


@pytest.mark.parametrize("case", MATRIX)
async def test_a_runtime_comes_to_what_the_table_says(
    target: Target, case: str, tmp_path: Path, note: Callable[[Driven], None]
) -> None:
    if target.sits_out and case in TRIED_AGAIN:
        pytest.skip(target.sits_out)
    driven = await drive(target, case, tmp_path)
    note(driven)
    expected = target.expected(case)
    assert driven.result is not None
    assert driven.left == []
    failure = driven.result.failure
    if expected.category is None:
        assert failure is None
        assert driven.result.text == TEXT
        assert driven.kinds()[0] == "started"
        assert "output" in driven.kinds()
        return
    assert failure is not None
    said = (failure.category, failure.retryable, failure.outcome)
    assert said == (expected.category, expected.retryable, expected.outcome), failure
    if expected.wait is None:
        assert failure.retry_after_s is None
    else:
        assert failure.retry_after_s is not None
        assert expected.wait[0] <= failure.retry_after_s <= expected.wait[1]


@pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])
async def test_cancel_during_a_running_tool_leaves_no_process(
    target: Target, tmp_path: Path, note: Callable[[Driven], None]
) -> None:
    if target.tools:
        pytest.skip(target.tools)
    driven = await cancel_during_tool(target, tmp_path)
    note(driven)
    assert driven.left == []
    assert "tool" in driven.kinds()


async def test_read_only_work_writes_nothing(target: Target, tmp_path: Path) -> None:
    driven = await drive(target, "tool", tmp_path, tool="echo hi > wrote.txt")
    assert not (driven.work / "wrote.txt").exists()
    assert any(asked.called for asked in driven.provider.journal) or not target.reads_with_shell
    assert driven.left == []
