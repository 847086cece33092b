"""The project's file as surfaces look at it."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from custodes.store import Database
from custodes.supervision.record.record_file import RecordFile
from custodes.supervision.record.schema import DATABASE, MIGRATIONS


@pytest.mark.anyio
async def test_who_looks_again_and_again_can_be_cancelled(tmp_path: Path) -> None:
    await (await Database.open(tmp_path / DATABASE, MIGRATIONS)).aclose()
    looks = 0
    async with RecordFile(tmp_path) as file:
        with anyio.CancelScope() as scope:
            while looks < 10:
                looks += 1
                await file.run("nobody")
                scope.cancel()
    assert scope.cancelled_caught
    assert looks == 2
