"""Who gets the next slot: parents that come back, then nested work, then new; first come, first served."""

from __future__ import annotations

import anyio
import pytest

from custodes.supervision.dispatching.slots import Places, Rank, Slots

pytestmark = pytest.mark.anyio

RETURNING: Rank = "returning"


async def test_parents_come_back_before_nested_work_and_that_before_new() -> None:
    slots, order = Slots(1), list[str]()
    await slots.take()

    async def work(name: str, rank: Rank) -> None:
        await slots.take(rank)
        order.append(name)
        slots.give_back()

    async with anyio.create_task_group() as group:
        came: list[tuple[str, Rank]] = [("new 1", "new"), ("new 2", "new"), ("nested", "nested")]
        for name, rank in (*came, ("parent", RETURNING)):
            group.start_soon(work, name, rank)
            await anyio.wait_all_tasks_blocked()
        assert (slots.waiting, slots.full) == (4, True)
        slots.give_back()
    assert order == ["parent", "nested", "new 1", "new 2"]
    assert (slots.taken, slots.waiting, slots.full) == (0, 0, False)


async def test_a_slot_that_is_free_again_is_given_to_whoever_waited_and_not_to_a_newcomer() -> None:
    slots, order = Slots(1), list[str]()
    await slots.take()

    async def work(name: str) -> None:
        await slots.take()
        order.append(name)
        slots.give_back()

    async with anyio.create_task_group() as group:
        group.start_soon(work, "first")
        await anyio.wait_all_tasks_blocked()
        slots.give_back()
        group.start_soon(work, "second")
    assert order == ["first", "second"]


async def test_a_limit_may_rise_and_fall_while_it_runs() -> None:
    slots = Slots(1)
    await slots.take()
    async with anyio.create_task_group() as group:
        group.start_soon(slots.take)
        await anyio.wait_all_tasks_blocked()
        slots.limit = 2
    assert slots.taken == 2
    slots.limit = 1
    slots.give_back()
    assert slots.full
    slots.give_back()
    assert not slots.full


async def test_one_that_is_cancelled_while_it_waits_takes_nothing() -> None:
    slots = Slots(1)
    await slots.take()
    async with anyio.create_task_group() as group:
        group.start_soon(slots.take)
        await anyio.wait_all_tasks_blocked()
        group.cancel_scope.cancel()
    assert slots.waiting == 0
    slots.give_back()
    assert slots.taken == 0


async def test_one_that_is_cancelled_in_the_moment_it_is_given_a_slot_passes_it_on() -> None:
    slots = Slots(1)
    await slots.take()
    async with anyio.create_task_group() as first, anyio.create_task_group() as second:
        first.start_soon(slots.take)
        await anyio.wait_all_tasks_blocked()
        second.start_soon(slots.take)
        await anyio.wait_all_tasks_blocked()
        slots.give_back()  # to the first, which has not gone on yet
        first.cancel_scope.cancel()
    assert (slots.taken, slots.waiting) == (1, 0)


async def test_what_is_beyond_the_limit_counts_and_holds_new_ones_back() -> None:
    slots = Slots(1)
    await slots.take()
    slots.take_beyond()
    assert slots.taken == 2
    slots.give_back()
    assert slots.full


async def test_places_that_are_given_back_while_they_are_taken_are_held_whole_after_it() -> None:
    mine, hosts = Slots(1), Slots(1)
    places = Places(mine, hosts)
    await hosts.take()
    async with anyio.create_task_group() as group:
        group.start_soon(places.take, "returning")
        await anyio.wait_all_tasks_blocked()
        places.give_back()  # nested work was asked for, and is over before its parent has come back
        hosts.give_back()
    assert (mine.taken, hosts.taken) == (1, 1)
    places.give_back()
    assert (mine.taken, hosts.taken) == (0, 0)


async def test_places_are_taken_all_or_none() -> None:
    mine, hosts = Slots(1), Slots(1)
    places = Places(mine, hosts)
    await hosts.take()
    async with anyio.create_task_group() as group:
        group.start_soon(places.take, "new")
        await anyio.wait_all_tasks_blocked()
        assert (mine.taken, places.full) == (1, True)
        group.cancel_scope.cancel()
    assert mine.taken == 0
    hosts.give_back()
    await places.take("new")
    places.give_back()
    places.give_back()
    assert (mine.taken, hosts.taken) == (0, 0)
