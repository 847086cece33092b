"""The same shapes by hand: on anyio (the floor), raw trio and raw asyncio."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import anyio
import trio
import trio.testing
from anyio.abc import TaskStatus
from anyio.streams.memory import MemoryObjectReceiveStream

from bench.suite.contender import Spent
from custodes.actors import Message


@dataclass(frozen=True, slots=True)
class Go(Message[None]):
    pass


@dataclass(frozen=True, slots=True)
class Echo(Message[int]):
    number: int


# -- The floor: anyio by hand


async def floor_job(
    scope: anyio.CancelScope,
    mailbox: MemoryObjectReceiveStream[Go],
    *,
    task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED,
) -> None:
    with scope, mailbox:
        task_status.started()
        await mailbox.receive()


async def floor_sleeper(scope: anyio.CancelScope, mailbox: MemoryObjectReceiveStream[Go]) -> None:
    with scope, mailbox:
        await mailbox.receive()
        await anyio.sleep_forever()


async def floor_dynamic(spent: Spent, count: int) -> None:
    spent.begin()
    async with anyio.create_task_group() as tasks:
        for _ in range(count):
            send, receive = anyio.create_memory_object_stream[Go](128)
            tasks.start_soon(floor_job, anyio.CancelScope(), receive)
            send.send_nowait(Go())
            send.close()
            await anyio.lowlevel.checkpoint()
    spent.end(count)


async def floor_bare(spent: Spent, count: int) -> None:
    """Without the checkpoint that an async call owes its caller: all are spawned before one runs."""
    spent.begin()
    async with anyio.create_task_group() as tasks:
        for _ in range(count):
            send, receive = anyio.create_memory_object_stream[Go](128)
            tasks.start_soon(floor_job, anyio.CancelScope(), receive)
            send.send_nowait(Go())
            send.close()
    spent.end(count)


async def floor_static(spent: Spent, count: int) -> None:
    spent.begin()
    async with anyio.create_task_group() as tasks:
        mailboxes = []
        for _ in range(count):
            send, receive = anyio.create_memory_object_stream[Go](128)
            await tasks.start(floor_job, anyio.CancelScope(), receive)
            mailboxes.append(send)
        for send in mailboxes:
            send.send_nowait(Go())
            send.close()
    spent.end(count)


@dataclass(slots=True)
class Slot:
    message: Echo
    done: anyio.Event
    answer: int = 0


async def floor_echo(mailbox: MemoryObjectReceiveStream[Slot]) -> None:
    with mailbox:
        async for slot in mailbox:
            slot.answer = slot.message.number
            slot.done.set()


async def floor_ask(spent: Spent, count: int) -> None:
    async with anyio.create_task_group() as tasks:
        send, receive = anyio.create_memory_object_stream[Slot](128)
        tasks.start_soon(floor_echo, receive)
        with send:
            spent.begin()
            for number in range(count):
                slot = Slot(Echo(number), anyio.Event())
                send.send_nowait(slot)
                await slot.done.wait()
            spent.end(count)


async def floor_cancel(spent: Spent, count: int) -> None:
    async with anyio.create_task_group() as tasks:
        for _ in range(count):
            send, receive = anyio.create_memory_object_stream[Go](128)
            tasks.start_soon(floor_sleeper, anyio.CancelScope(), receive)
            send.send_nowait(Go())
            send.close()
        await anyio.wait_all_tasks_blocked()
        spent.begin()
        tasks.cancel_scope.cancel()
    spent.end(count)


# -- Raw trio


async def trio_dynamic(spent: Spent, count: int) -> None:
    async def job(scope: trio.CancelScope, mailbox: trio.MemoryReceiveChannel[Go]) -> None:
        with scope:
            await mailbox.receive()

    spent.begin()
    async with trio.open_nursery() as nursery:
        for _ in range(count):
            send, receive = trio.open_memory_channel[Go](128)
            nursery.start_soon(job, trio.CancelScope(), receive)
            send.send_nowait(Go())
            await trio.lowlevel.checkpoint()
    spent.end(count)


async def trio_static(spent: Spent, count: int) -> None:
    async def job(
        mailbox: trio.MemoryReceiveChannel[Go], task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED
    ) -> None:
        with trio.CancelScope():
            task_status.started()
            await mailbox.receive()

    spent.begin()
    async with trio.open_nursery() as nursery:
        mailboxes = []
        for _ in range(count):
            send, receive = trio.open_memory_channel[Go](128)
            await nursery.start(job, receive)
            mailboxes.append(send)
        for send in mailboxes:
            send.send_nowait(Go())
    spent.end(count)


async def trio_ask(spent: Spent, count: int) -> None:
    async def echo(mailbox: trio.MemoryReceiveChannel[tuple[Echo, trio.Event, list[int]]]) -> None:
        async for message, done, answer in mailbox:
            answer.append(message.number)
            done.set()

    async with trio.open_nursery() as nursery:
        send, receive = trio.open_memory_channel[tuple[Echo, trio.Event, list[int]]](128)
        nursery.start_soon(echo, receive)
        async with send:
            spent.begin()
            for number in range(count):
                done = trio.Event()
                send.send_nowait((Echo(number), done, []))
                await done.wait()
            spent.end(count)


async def trio_cancel(spent: Spent, count: int) -> None:
    async def job() -> None:
        with trio.CancelScope():
            await trio.sleep_forever()

    async with trio.open_nursery() as nursery:
        for _ in range(count):
            nursery.start_soon(job)
        await trio.testing.wait_all_tasks_blocked()
        spent.begin()
        nursery.cancel_scope.cancel()
    spent.end(count)


# -- Raw asyncio


async def asyncio_dynamic(spent: Spent, count: int) -> None:
    async def job(mailbox: asyncio.Queue[Go]) -> None:
        await mailbox.get()

    spent.begin()
    async with asyncio.TaskGroup() as tasks:
        for _ in range(count):
            mailbox = asyncio.Queue[Go](128)
            tasks.create_task(job(mailbox))
            mailbox.put_nowait(Go())
            await asyncio.sleep(0)
    spent.end(count)


async def asyncio_static(spent: Spent, count: int) -> None:
    async def job(mailbox: asyncio.Queue[Go], started: asyncio.Event) -> None:
        started.set()
        await mailbox.get()

    spent.begin()
    async with asyncio.TaskGroup() as tasks:
        mailboxes = []
        for _ in range(count):
            mailbox, started = asyncio.Queue[Go](128), asyncio.Event()
            tasks.create_task(job(mailbox, started))
            await started.wait()
            mailboxes.append(mailbox)
        for mailbox in mailboxes:
            mailbox.put_nowait(Go())
    spent.end(count)


async def asyncio_ask(spent: Spent, count: int) -> None:
    async def echo(mailbox: asyncio.Queue[tuple[Echo, asyncio.Future[int]] | None]) -> None:
        while (item := await mailbox.get()) is not None:
            message, answer = item
            answer.set_result(message.number)

    loop = asyncio.get_running_loop()
    async with asyncio.TaskGroup() as tasks:
        mailbox = asyncio.Queue[tuple[Echo, asyncio.Future[int]] | None](128)
        tasks.create_task(echo(mailbox))
        spent.begin()
        for number in range(count):
            answer = loop.create_future()
            mailbox.put_nowait((Echo(number), answer))
            await answer
        spent.end(count)
        mailbox.put_nowait(None)


async def asyncio_cancel(spent: Spent, count: int) -> None:
    tasks = [asyncio.create_task(asyncio.sleep(3600)) for _ in range(count)]
    await asyncio.sleep(0)
    spent.begin()
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    spent.end(count)


Shape = Callable[[Spent, int], Awaitable[None]]
FLOOR: dict[str, Shape] = {
    "dynamic": floor_dynamic,
    "bare": floor_bare,
    "static": floor_static,
    "ask": floor_ask,
    "cancel": floor_cancel,
}
RAW: dict[str, dict[str, Shape]] = {
    "trio": {"dynamic": trio_dynamic, "static": trio_static, "ask": trio_ask, "cancel": trio_cancel},
    "asyncio": {
        "dynamic": asyncio_dynamic,
        "static": asyncio_static,
        "ask": asyncio_ask,
        "cancel": asyncio_cancel,
    },
}
