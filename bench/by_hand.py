"""The same shapes by hand: on anyio (the floor), raw trio, raw asyncio, and Pykka."""

from __future__ import annotations

import asyncio
import importlib
import importlib.util
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import anyio
import trio
import trio.testing
from anyio.abc import TaskStatus
from anyio.streams.memory import MemoryObjectReceiveStream

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


async def floor_dynamic(count: int) -> float:
    begin = perf_counter()
    async with anyio.create_task_group() as tasks:
        for _ in range(count):
            send, receive = anyio.create_memory_object_stream[Go](128)
            tasks.start_soon(floor_job, anyio.CancelScope(), receive)
            send.send_nowait(Go())
            send.close()
            await anyio.lowlevel.checkpoint()
    return perf_counter() - begin


async def floor_bare(count: int) -> float:
    """Without the checkpoint that an async call owes its caller: all are spawned before one runs."""
    begin = perf_counter()
    async with anyio.create_task_group() as tasks:
        for _ in range(count):
            send, receive = anyio.create_memory_object_stream[Go](128)
            tasks.start_soon(floor_job, anyio.CancelScope(), receive)
            send.send_nowait(Go())
            send.close()
    return perf_counter() - begin


async def floor_static(count: int) -> float:
    begin = perf_counter()
    async with anyio.create_task_group() as tasks:
        mailboxes = []
        for _ in range(count):
            send, receive = anyio.create_memory_object_stream[Go](128)
            await tasks.start(floor_job, anyio.CancelScope(), receive)
            mailboxes.append(send)
        for send in mailboxes:
            send.send_nowait(Go())
            send.close()
    return perf_counter() - begin


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


async def floor_ask(count: int) -> float:
    async with anyio.create_task_group() as tasks:
        send, receive = anyio.create_memory_object_stream[Slot](128)
        tasks.start_soon(floor_echo, receive)
        with send:
            begin = perf_counter()
            for number in range(count):
                slot = Slot(Echo(number), anyio.Event())
                send.send_nowait(slot)
                await slot.done.wait()
            elapsed = perf_counter() - begin
    return elapsed


async def floor_cancel(count: int) -> float:
    async with anyio.create_task_group() as tasks:
        for _ in range(count):
            send, receive = anyio.create_memory_object_stream[Go](128)
            tasks.start_soon(floor_sleeper, anyio.CancelScope(), receive)
            send.send_nowait(Go())
            send.close()
        await anyio.wait_all_tasks_blocked()
        begin = perf_counter()
        tasks.cancel_scope.cancel()
    return perf_counter() - begin


# -- Raw trio


async def trio_dynamic(count: int) -> float:
    async def job(scope: trio.CancelScope, mailbox: trio.MemoryReceiveChannel[Go]) -> None:
        with scope:
            await mailbox.receive()

    begin = perf_counter()
    async with trio.open_nursery() as nursery:
        for _ in range(count):
            send, receive = trio.open_memory_channel[Go](128)
            nursery.start_soon(job, trio.CancelScope(), receive)
            send.send_nowait(Go())
            await trio.lowlevel.checkpoint()
    return perf_counter() - begin


async def trio_static(count: int) -> float:
    async def job(
        mailbox: trio.MemoryReceiveChannel[Go], task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED
    ) -> None:
        with trio.CancelScope():
            task_status.started()
            await mailbox.receive()

    begin = perf_counter()
    async with trio.open_nursery() as nursery:
        mailboxes = []
        for _ in range(count):
            send, receive = trio.open_memory_channel[Go](128)
            await nursery.start(job, receive)
            mailboxes.append(send)
        for send in mailboxes:
            send.send_nowait(Go())
    return perf_counter() - begin


async def trio_ask(count: int) -> float:
    async def echo(mailbox: trio.MemoryReceiveChannel[tuple[Echo, trio.Event, list[int]]]) -> None:
        async for message, done, answer in mailbox:
            answer.append(message.number)
            done.set()

    async with trio.open_nursery() as nursery:
        send, receive = trio.open_memory_channel[tuple[Echo, trio.Event, list[int]]](128)
        nursery.start_soon(echo, receive)
        async with send:
            begin = perf_counter()
            for number in range(count):
                done = trio.Event()
                send.send_nowait((Echo(number), done, []))
                await done.wait()
            return perf_counter() - begin


async def trio_cancel(count: int) -> float:
    async def job() -> None:
        with trio.CancelScope():
            await trio.sleep_forever()

    async with trio.open_nursery() as nursery:
        for _ in range(count):
            nursery.start_soon(job)
        await trio.testing.wait_all_tasks_blocked()
        begin = perf_counter()
        nursery.cancel_scope.cancel()
    return perf_counter() - begin


# -- Raw asyncio


async def asyncio_dynamic(count: int) -> float:
    async def job(mailbox: asyncio.Queue[Go]) -> None:
        await mailbox.get()

    begin = perf_counter()
    async with asyncio.TaskGroup() as tasks:
        for _ in range(count):
            mailbox = asyncio.Queue[Go](128)
            tasks.create_task(job(mailbox))
            mailbox.put_nowait(Go())
            await asyncio.sleep(0)
    return perf_counter() - begin


async def asyncio_static(count: int) -> float:
    async def job(mailbox: asyncio.Queue[Go], started: asyncio.Event) -> None:
        started.set()
        await mailbox.get()

    begin = perf_counter()
    async with asyncio.TaskGroup() as tasks:
        mailboxes = []
        for _ in range(count):
            mailbox, started = asyncio.Queue[Go](128), asyncio.Event()
            tasks.create_task(job(mailbox, started))
            await started.wait()
            mailboxes.append(mailbox)
        for mailbox in mailboxes:
            mailbox.put_nowait(Go())
    return perf_counter() - begin


async def asyncio_ask(count: int) -> float:
    async def echo(mailbox: asyncio.Queue[tuple[Echo, asyncio.Future[int]] | None]) -> None:
        while (item := await mailbox.get()) is not None:
            message, answer = item
            answer.set_result(message.number)

    loop = asyncio.get_running_loop()
    async with asyncio.TaskGroup() as tasks:
        mailbox = asyncio.Queue[tuple[Echo, asyncio.Future[int]] | None](128)
        tasks.create_task(echo(mailbox))
        begin = perf_counter()
        for number in range(count):
            answer = loop.create_future()
            mailbox.put_nowait((Echo(number), answer))
            await answer
        elapsed = perf_counter() - begin
        mailbox.put_nowait(None)
        return elapsed


async def asyncio_cancel(count: int) -> float:
    tasks = [asyncio.create_task(asyncio.sleep(3600)) for _ in range(count)]
    await asyncio.sleep(0)
    begin = perf_counter()
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    return perf_counter() - begin


# -- Pykka: a thread for each actor


def pykka_dynamic(count: int) -> float:
    pykka: Any = importlib.import_module("pykka")

    class Job(pykka.ThreadingActor):  # type: ignore[misc]  # Any: it is not installed where this is checked
        def on_receive(self, _message: Any) -> None:
            self.stop()

    begin = perf_counter()
    refs = []
    for _ in range(count):
        ref = Job.start()
        ref.tell(Go())
        refs.append(ref)
    for ref in refs:
        ref.actor_stopped.wait()
    return perf_counter() - begin


def pykka_ask(count: int) -> float:
    pykka: Any = importlib.import_module("pykka")

    class Echoes(pykka.ThreadingActor):  # type: ignore[misc]  # Any: it is not installed where this is checked
        def on_receive(self, message: Any) -> int:
            number: int = message.number
            return number

    ref = Echoes.start()
    begin = perf_counter()
    for number in range(count):
        ref.ask(Echo(number))
    elapsed = perf_counter() - begin
    ref.stop()
    return elapsed
