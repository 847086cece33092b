"""Rows that no client of ours wrote, or that hold what nobody can read, stop nobody's work."""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing
from pathlib import Path

import anyio
import pytest

import custodes
from custodes.adapters.port import DispatchRequest, DispatchResult, ProgressSink
from custodes.supervision.asks.operator_ask import cancel_in_file
from custodes.supervision.record.schema import DATABASE
from custodes.supervision.work import Work
from support import scripted
from support.works import fanning_out

pytestmark = pytest.mark.anyio


def put(project: Path, request_id: str, kind: str, body: str, client: str | None = None) -> None:
    """Write a request about the run that is at work."""
    with closing(sqlite3.connect(project / DATABASE)) as connection, connection:
        run_id, owner = connection.execute(
            "SELECT run_id, owner FROM attempts WHERE status = 'running'"
        ).fetchone()
        connection.execute(
            "INSERT INTO requests (id, kind, run_id, owner, client, proof, body, status, asked) "
            "VALUES (?, ?, ?, ?, ?, '', ?, 'asked', ?)",
            (request_id, kind, run_id, owner, client or owner, body, time.time()),
        )


async def test_they_are_passed_over_and_the_next_is_served(tmp_path: Path, script: scripted.Script) -> None:
    begun = anyio.Event()

    async def act(request: DispatchRequest, progress: ProgressSink) -> DispatchResult:
        begun.set()
        await anyio.sleep_forever()
        raise AssertionError

    script.acts.append(act)
    async with fanning_out(tmp_path) as fan:
        child = fan.start(Work(role="reviewer", prompt="look"))
        await begun.wait()
        put(tmp_path, "unread-1", "cancel", '{"by": "x"}', client="no JSON")
        for number in range(6):  # more crashes of an actor than its supervisor bears
            put(tmp_path, f"cancel-{number}", "cancel", "no JSON")
            put(tmp_path, f"answer-{number}", "answer", '{"ask": 1}')
        put(tmp_path, "dispatch", "dispatch", "no JSON")
        put(tmp_path, "other", "something new", "{}")
        report = await cancel_in_file(tmp_path, child.run_id, "cli", {})
    assert report is not None
    assert report.unanswered == ()
    assert [outcome.status for outcome in fan.outcomes] == ["cancelled"]


async def test_the_next_start_is_rid_of_what_cannot_be_read(tmp_path: Path, script: scripted.Script) -> None:
    async def act(request: DispatchRequest, progress: ProgressSink) -> DispatchResult:
        put(tmp_path, "unread", "cancel", "{}", client="no JSON")
        return await scripted.answer(request, progress)

    script.acts.append(act)
    for _ in range(2):
        async with custodes.Supervision(tmp_path) as supervision, supervision.conversation("c") as parent:
            outcome = await parent.dispatch(Work(role="reviewer", prompt="look"))
        assert outcome.status == "done"
    with closing(sqlite3.connect(tmp_path / DATABASE)) as connection:
        assert connection.execute("SELECT id FROM requests").fetchall() == []
