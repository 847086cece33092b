"""One conversation's events, told without a wait and read at any pace."""

from __future__ import annotations

import anyio
import msgspec
import pytest
from anyio.lowlevel import checkpoint

from custodes.supervision.event_log import EventLog, EventStream
from custodes.supervision.events import ChildWaiting, Event, EventsMissed

pytestmark = pytest.mark.anyio


def tell(log: EventLog, times: int = 1) -> None:
    for _ in range(times):
        log.tell(ChildWaiting, "run", {"reason": "slot"})


async def take(stream: EventStream, count: int) -> list[Event | EventsMissed]:
    return [await anext(stream) for _ in range(count)]


async def rest(log: EventLog, since: int = 0) -> list[int]:
    log.close()
    async with EventStream(log, since) as stream:
        return [event.sequence async for event in stream]


async def test_events_are_numbered_from_1_and_read_in_order() -> None:
    log = EventLog("c")
    async with EventStream(log, 0) as stream:
        tell(log, 3)
        events = await take(stream, 3)
    assert [event.sequence for event in events] == [1, 2, 3]
    assert {event.conversation for event in events} == {"c"}


async def test_a_reader_that_waits_is_woken_by_the_next_event() -> None:
    log = EventLog("c")
    read: list[int] = []

    async def reader() -> None:
        async with EventStream(log, 0) as stream:
            async for event in stream:
                read.append(event.sequence)  # noqa: PERF401 - it is looked at meanwhile

    async with anyio.create_task_group() as group:
        for _ in range(3):
            group.start_soon(reader)
        await anyio.wait_all_tasks_blocked()
        tell(log)
        await anyio.wait_all_tasks_blocked()
        assert read == [1, 1, 1]
        tell(log)
        log.close()
    assert read == [1, 1, 1, 2, 2, 2]


async def test_telling_never_waits_and_a_slow_reader_learns_what_it_missed_and_goes_on() -> None:
    log = EventLog("c", kept=4)
    async with EventStream(log, 0) as slow:
        tell(log, 2)
        assert (await anext(slow)).sequence == 1
        tell(log, 8)
        missed, *others = await take(slow, 5)
        assert missed == EventsMissed(conversation="c", first=2, last=6)
        assert [event.sequence for event in others] == [7, 8, 9, 10]
        tell(log)
        assert (await anext(slow)).sequence == 11


async def test_a_slow_reader_takes_nothing_from_a_quick_one() -> None:
    log = EventLog("c", kept=2)
    async with EventStream(log, 0) as slow, EventStream(log, 0) as quick:
        for number in range(1, 6):
            tell(log)
            assert (await anext(quick)).sequence == number
        assert await anext(slow) == EventsMissed(conversation="c", first=1, last=3)


async def test_a_stream_goes_on_from_the_number_that_another_had_come_to() -> None:
    log = EventLog("c", kept=4)
    tell(log, 6)
    assert await rest(log, since=4) == [5, 6]
    assert await rest(log, since=6) == []
    async with EventStream(log, 0) as stream:
        missed = await anext(stream)
    assert missed.sequence == 2
    assert await rest(log, since=missed.sequence) == [3, 4, 5, 6]


@pytest.mark.parametrize("since", [-1, 3])
async def test_a_number_that_was_never_told_is_refused_with_the_last_there_is(since: int) -> None:
    log = EventLog("c")
    tell(log, 2)
    with pytest.raises(ValueError, match="is number 2; 0 reads all"):
        async with EventStream(log, since):
            pass


async def test_a_cancelled_wait_loses_nothing() -> None:
    log = EventLog("c")
    async with EventStream(log, 0) as stream:
        with anyio.CancelScope() as scope:
            scope.cancel()
            await anext(stream)
        assert scope.cancelled_caught
        tell(log)
        assert (await anext(stream)).sequence == 1


async def test_a_read_lets_others_run_though_there_is_more() -> None:
    log = EventLog("c")
    tell(log, 100)
    turns = 0

    async def other() -> None:
        nonlocal turns
        while True:
            turns += 1
            await checkpoint()

    async with anyio.create_task_group() as group:
        group.start_soon(other)
        async with EventStream(log, 0) as stream:
            await take(stream, 100)
        group.cancel_scope.cancel()
    assert turns > 1


async def test_it_is_read_inside_its_block_only() -> None:
    stream = EventStream(EventLog("c"), 0)
    with pytest.raises(RuntimeError, match="async with"):
        await anext(stream)
    async with stream:
        pass
    with pytest.raises(RuntimeError, match="async with"):
        await anext(stream)


async def test_a_gap_names_itself_as_json_like_every_event() -> None:
    missed = EventsMissed(conversation="c", first=1, last=2)
    assert msgspec.to_builtins(missed) == {
        "event": "events_missed",
        "conversation": "c",
        "first": 1,
        "last": 2,
    }
