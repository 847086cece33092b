"""asyncio's own ``Task.cancel()``, which knows no shield, against a host's whole tree."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing, suppress
from pathlib import Path

import anyio
import pytest

import custodes
from custodes.adapters.port import DispatchRequest, DispatchResult, Progress, ProgressSink
from support import scripted


def test_a_storm_of_native_cancels_leaves_no_task_and_no_open_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    script = scripted.install(tmp_path, "one")

    async def scenario() -> set[asyncio.Task[object]]:
        working = asyncio.Event()

        async def act(request: DispatchRequest, progress: ProgressSink) -> DispatchResult:
            progress(Progress(kind="output", chars=1))
            working.set()
            await anyio.sleep_forever()
            raise AssertionError

        script.acts.append(act)

        async def host() -> None:
            async with custodes.Supervision(tmp_path) as supervision, supervision.conversation("c") as parent:
                await parent.dispatch(custodes.Work(role="reviewer", prompt="look"))

        task = asyncio.create_task(host())
        await working.wait()
        while not task.done():
            task.cancel()
            await asyncio.sleep(0)
        with suppress(asyncio.CancelledError):
            await task
        return asyncio.all_tasks() - {asyncio.current_task()}

    assert asyncio.run(scenario()) == set()
    with closing(sqlite3.connect(tmp_path / ".coding-os" / "custodes.db")) as database:
        assert database.execute("SELECT status FROM attempts").fetchall() == [("cancelled",)]
