"""Streams: what changes is told to whoever looks, as fast as each can take it."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path

import anyio
import msgspec
import pytest
from starlette.types import Message

from custodes.hub import live
from custodes.hub.documents import ErrorAnswer
from custodes.hub.hub import Hub
from custodes.policy.patch import PolicyPatch
from custodes.supervision.budgets.budget import Amount, Ledger
from custodes.supervision.budgets.fan_out_table import FanOutRow
from custodes.supervision.record.records import AttemptRow
from custodes.supervision.record.schema import DATABASE
from custodes.supervision.work import Budget
from support.hub import Browser, asked, put_on_record

pytestmark = pytest.mark.anyio


def row(run_id: str, conversation: str = "c", **fields: object) -> AttemptRow:
    return msgspec.structs.replace(
        AttemptRow(
            run_id=run_id, number=1, conversation=conversation, role="analyst", name=run_id, started=1.0
        ),
        **fields,
    )


class Follower:
    """A browser that follows a stream: events one by one, taken only when it wants the next."""

    def __init__(self) -> None:
        self._events, self._taken = anyio.create_memory_object_stream[str](0)
        self.gone = anyio.Event()
        self.status = 0

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
        for event in message.get("body", b"").decode().split("\n\n"):
            if event and event != ":":
                await self._events.send(event)

    async def receive(self) -> Message:
        await self.gone.wait()
        return {"type": "http.disconnect"}

    async def next(self) -> str:
        with anyio.fail_after(20):
            return await self._taken.receive()

    def close(self) -> None:
        self._events.close()
        self._taken.close()


@asynccontextmanager
async def following(hub: Hub, path: str, headers: dict[str, str] | None = None) -> AsyncIterator[Follower]:
    follower = Follower()
    async with anyio.create_task_group() as group:
        group.start_soon(asked, hub, "GET", path, follower.receive, headers, follower.send)
        yield follower
        follower.gone.set()
        group.cancel_scope.cancel()
    follower.close()


def mark_of(event: str) -> str:
    (mark,) = (line.removeprefix("id: ") for line in event.splitlines() if line.startswith("id: "))
    return mark


async def test_a_change_by_anybody_appears_on_a_page_that_is_open(page: Browser, pair: Path) -> None:
    text = (await page.get("/settings")).text
    since = text.partition("since=")[2].partition('"')[0]
    async with following(page.hub, f"/live/settings?since={since}") as follower:
        page.hub.project.settings.patch(PolicyPatch(mode="suggest"), page.hub.project.catalog())
        event = await follower.next()
        assert '<hx-partial hx-target="#group-0" hx-swap="outerMorph">' in event
        assert '<option value="suggest" selected>' in event
        assert "#group-2" not in event  # no role changed


async def test_a_page_that_shows_all_there_is_is_told_nothing_again(page: Browser, project: Path) -> None:
    await put_on_record(project, [row("first")])
    text = (await page.get("/conversations/c")).text
    since = text.partition("since=")[2].partition('"')[0]
    async with following(page.hub, f"/live/conversation?id=c&since={since}") as follower:
        await put_on_record(project, [row("second", started=2.0)])
        event = await follower.next()
        assert ">second<" in event
        assert ">first<" not in event


async def test_who_comes_back_is_told_from_where_it_was(page: Browser, project: Path) -> None:
    await put_on_record(project, [row("first")])
    async with following(page.hub, "/live/conversation?id=c") as follower:
        first = await follower.next()
        assert 'hx-target="#live"' in first
    await put_on_record(project, [row("second", started=2.0)])
    async with following(page.hub, "/live/conversation?id=c", {"last-event-id": mark_of(first)}) as follower:
        event = await follower.next()
        assert ">second<" in event
        assert 'hx-swap="beforeend"' in event


async def test_who_comes_back_to_a_hub_that_was_started_anew_gets_all_of_it(
    page: Browser, project: Path
) -> None:
    await put_on_record(project, [row("first")])
    async with following(page.hub, "/live/conversation?id=c", {"last-event-id": "ffffffff.7"}) as follower:
        assert 'hx-target="#live"' in await follower.next()


async def test_a_slow_browser_is_told_once_of_what_changed_often_and_keeps_no_other_waiting(
    page: Browser, project: Path
) -> None:
    first = row("first", status="running")
    await put_on_record(project, [first])
    path = "/live/conversation?id=c"
    async with following(page.hub, path) as slow, following(page.hub, path) as quick:
        await slow.next()
        await quick.next()
        for number in range(5):
            first = msgspec.structs.replace(
                first, pool="p:x", adapter="p", reason=f"name {number}", status="failed"
            )
            await put_on_record(project, [first], update=True)
            assert f"name {number}" in await quick.next()
        told = await slow.next()
        while "name 4" not in told:  # it may have been offered an early one before it stopped taking
            told = await slow.next()
        assert told.count("hx-target") <= 3  # the row once, the summary, the picture


async def test_nothing_is_looked_at_while_nobody_looks(page: Browser, project: Path) -> None:
    seen = page.hub.watch.version
    await put_on_record(project, [row("first")])
    await anyio.wait_all_tasks_blocked()
    assert page.hub.watch.version == seen


async def test_a_trace_is_streamed_as_json_each_attempt_whenever_it_changes(
    page: Browser, project: Path
) -> None:
    first = row("first", status="running")
    await put_on_record(project, [first])
    async with following(page.hub, "/api/cognition/trace/c/stream") as follower:
        assert (await follower.next()).startswith("event: reset")
        event = await follower.next()
        assert event.startswith("event: attempt")
        document = msgspec.json.decode(event.partition("data: ")[2])
        assert (document["name"], document["status"]) == ("first", "running")
        reached = mark_of(await follower.next())
        await put_on_record(project, [msgspec.structs.replace(first, status="done", ended=2.0)], update=True)
        event = await follower.next()
        assert msgspec.json.decode(event.partition("data: ")[2])["status"] == "done"
    async with following(page.hub, f"/api/cognition/trace/c/stream?since={reached}") as follower:
        event = await follower.next()
        assert msgspec.json.decode(event.partition("data: ")[2])["status"] == "done"


async def test_a_trace_that_cannot_be_read_for_a_while_is_told_as_a_problem_and_goes_on_after_it(
    page: Browser, project: Path
) -> None:
    await put_on_record(project, [row("first", status="running")])
    async with following(page.hub, "/api/cognition/trace/c/stream") as follower:
        assert (await follower.next()).startswith("event: reset")
        assert (await follower.next()).startswith("event: attempt")
        await follower.next()
        with closing(sqlite3.connect(project / DATABASE, isolation_level=None)) as other:
            other.execute("ALTER TABLE attempts RENAME TO elsewhere")
            assert (await follower.next()).startswith("event: reset")
            event = await follower.next()
            assert event.startswith("event: problem")
            error = msgspec.json.decode(event.partition("data: ")[2], type=ErrorAnswer).error
            assert error.kind == "store"
            assert "no such table" in error.message
            other.execute("ALTER TABLE elsewhere RENAME TO attempts")
        while not (event := await follower.next()).startswith("event: attempt"):
            pass
        assert msgspec.json.decode(event.partition("data: ")[2])["name"] == "first"


async def test_a_budget_is_streamed_as_it_is_spent(page: Browser, project: Path) -> None:
    ledger = Ledger(budget=Budget(tokens=100), opened_at=0, reserved=Amount(tokens=30))
    fan_out = FanOutRow(id="first", conversation="c", name="shards", ledger=ledger, started=1.0, changed=1.0)
    await put_on_record(project, [row("first", status="running")], fan_outs=[fan_out])
    path = "/api/cognition/trace/c/stream"
    async with following(page.hub, path) as follower, following(page.hub, "/live/conversation?id=c") as tab:
        while not (event := await follower.next()).startswith("event: fan_out"):
            pass
        assert msgspec.json.decode(event.partition("data: ")[2])["spent"]["tokens"]["reserved"] == 30
        assert "+ 30 reserved" in await tab.next()
        spent = msgspec.structs.replace(ledger, reserved=Amount(), spent=Amount(tokens=20))
        await put_on_record(project, [], fan_outs=[msgspec.structs.replace(fan_out, ledger=spent)])
        while "event: fan_out" not in (event := await follower.next()):
            pass
        assert msgspec.json.decode(event.partition("data: ")[2])["spent"]["tokens"]["spent"] == 20
        told = await tab.next()
        assert 'hx-target="#summary"' in told
        assert "20 of 100" in told


async def test_streams_are_bounded_and_end_with_their_asker_and_with_the_hub(
    page: Browser, project: Path
) -> None:
    await put_on_record(project, [row("first")])
    page.hub.views.streams = live.STREAMS
    assert (await page.get("/live/runs")).status_code == 503
    assert (await page.get("/api/cognition/trace/c/stream")).status_code == 503
    page.hub.views.streams = 0

    follower = Follower()
    async with anyio.create_task_group() as group:
        group.start_soon(asked, page.hub, "GET", "/live/runs", follower.receive, None, follower.send)
        await follower.next()
        assert page.hub.views.streams == 1
        follower.gone.set()
    assert page.hub.views.streams == 0
    follower.close()

    other = Follower()
    async with anyio.create_task_group() as group:
        group.start_soon(asked, page.hub, "GET", "/live/runs", other.receive, None, other.send)
        await other.next()
        page.hub.views.closing.set()
    assert page.hub.views.streams == 0
    other.close()


async def test_views_that_nobody_looks_at_are_given_up(page: Browser, project: Path) -> None:
    for number in range(live.KEPT + 5):
        await page.get(f"/runs?q=word{number}")
    assert len(page.hub.views._views) <= live.KEPT + 1


async def test_no_such_page_is_said(page: Browser) -> None:
    assert (await page.get("/live/nothing")).status_code == 404


async def test_a_database_that_is_deleted_and_made_anew_under_it_is_followed(
    page: Browser, project: Path
) -> None:
    await put_on_record(project, [row("first")])
    async with following(page.hub, "/live/runs") as follower:
        assert ">first<" in await follower.next()
        await delete(project / DATABASE)
        assert "Nothing ran here yet" in await follower.next()
        await put_on_record(project, [row("second")])
        told = await follower.next()
        assert ">second<" in told
        assert ">first<" not in told
    assert (await page.get("/conversations/c")).status_code == 200
    assert (await page.get("/api/health")).status_code == 200


async def test_a_database_that_another_takes_the_place_of_is_followed(page: Browser, project: Path) -> None:
    await put_on_record(project, [row("first")])
    kept = project / DATABASE
    async with following(page.hub, "/live/conversation?id=c") as follower:
        assert ">first<" in await follower.next()
        other = project / "other"
        (other / DATABASE).parent.mkdir(parents=True)
        await put_on_record(other, [row("second")])
        await anyio.Path(other / DATABASE).replace(kept)
        told = await follower.next()
        assert ">second<" in told
        assert ">first<" not in told


async def test_many_looks_at_once_at_a_file_that_is_gone_open_the_new_one_once(
    page: Browser, project: Path
) -> None:
    await put_on_record(project, [row("first")])
    file = page.hub.project.file
    assert await file.run("first")
    await delete(project / DATABASE)
    await put_on_record(project, [row("second")])
    found = []

    async def look() -> None:
        found.append(await file.run("second"))

    async with anyio.create_task_group() as group:
        for _ in range(20):
            group.start_soon(look)
    assert [len(each) for each in found] == [1] * 20
    assert file.opened == 2


async def delete(database: Path) -> None:
    for suffix in ("", "-wal", "-shm"):
        await anyio.Path(f"{database}{suffix}").unlink(missing_ok=True)
