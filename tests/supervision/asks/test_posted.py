"""A request as its client sees it."""

from __future__ import annotations

from pathlib import Path

import pytest

from custodes.store import Database
from custodes.supervision.asks.posted import posted
from custodes.supervision.asks.requests import CancelAsk
from custodes.supervision.record.owner_identity import this_process
from custodes.supervision.record.schema import MIGRATIONS


@pytest.mark.anyio
async def test_a_request_that_cannot_be_taken_out_again_changes_nothing_of_how_its_block_ends(
    tmp_path: Path,
) -> None:
    database = await Database.open(tmp_path / "db", MIGRATIONS)
    async with posted(database, this_process(), "cancel", "run-1", CancelAsk("cli")) as request:
        await database.aclose()
    assert request.status == "asked"
