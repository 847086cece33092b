"""The breaker as a contender of ``bench/health.py``, and the same statements by hand as the floor under it.

python -m bench.health_subject {custodes|hand} {asyncio|trio}
"""

from __future__ import annotations

import argparse
import sqlite3
import tempfile
from collections.abc import Awaitable, Callable
from contextlib import closing
from functools import partial
from importlib.metadata import version
from pathlib import Path

import anyio
import anyio.from_thread
import anyio.lowlevel
import anyio.to_thread

from bench.stall import longest_stall
from bench.suite.contender import Case, Figures, Spent, repeated, serve
from custodes.actors import ActorRef, ChildSpec, Supervisor
from custodes.adapters.port import Failure
from custodes.store import Connection, Database
from custodes.store.connection import transacted
from custodes.supervision.pools.admission import Admission, Admit, Candidate, Confirm, Settle
from custodes.supervision.pools.breaker import Ask, Pool, Settled, Ticket, decide
from custodes.supervision.pools.health import HealthActor, admit
from custodes.supervision.pools.pool_table import load_pools, load_unavailable, save_pools
from custodes.supervision.record import records
from custodes.supervision.record.clock import after, now
from custodes.supervision.record.owner_identity import this_process
from custodes.supervision.record.records import AttemptRow, AttemptStart
from custodes.supervision.record.schema import MIGRATIONS

START = AttemptStart(run_id="run", number=1, conversation="c", role="reviewer")
WARM = 20


def ask(pool: str) -> Admit:
    return Admit(candidates=(Candidate(pool=pool, adapter="one"),), attempt=START, lease_s=60)


async def admitted(health: ActorRef, pool: str = "one:a") -> Admission:
    answer = await admit(health, ask(pool))
    assert isinstance(answer, Admission), answer
    return answer


async def ours(health: ActorRef) -> None:
    ticket = (await admitted(health)).ticket
    await health.ask(Settle(ticket=ticket))


class Floor:
    """The same statements in two transactions, as one would write them by hand."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    async def call(self) -> None:
        row = AttemptRow(
            run_id="run", number=1, conversation="c", role="reviewer", adapter="one", pool="one:a"
        )
        for step in (self._admit, self._settle):
            await anyio.to_thread.run_sync(transacted, self._connection, partial(step, row=row))

    @staticmethod
    async def _admit(connection: Connection, row: AttemptRow) -> None:
        await load_pools(connection, {"one:a"})
        await load_unavailable(connection, {"one"})
        await records.insert(connection, [row])

    @staticmethod
    async def _settle(connection: Connection, row: AttemptRow) -> None:
        await records.by_id(connection, {row.id})
        await load_pools(connection, {"one:a"})
        await load_unavailable(connection, {"one"})
        await records.update(connection, [row])


async def calls(call: Callable[[], Awaitable[object]], times: int) -> Figures:
    """For one call, after a few that warm it up."""
    for _ in range(WARM):
        await call()
    spent = Spent()
    while not spent.enough:
        with spent.counting(times):
            for _ in range(times):
                await call()
    return spent.figures()


async def crowd(health: ActorRef, size: int) -> Figures:
    """For each of so many admissions that are asked for at once."""
    await ours(health)
    spent = Spent()
    while not spent.enough:
        with spent.counting(size):
            async with anyio.create_task_group() as group:
                for _ in range(size):
                    group.start_soon(admitted, health)
    return spent.figures()


async def stall(health: ActorRef, size: int) -> Figures:
    """While so many pools are written."""
    tickets = [(await admitted(health, f"one:{pool}")).ticket for pool in range(size)]
    return await longest_stall(lambda: limited(health, tickets))


async def door(database: Database, health: ActorRef, callers: int) -> Figures:
    """How many of so many callers an expired pool lets in."""
    await database.write(lambda connection: save_pools(connection, [due("one:door")]))
    answers: list[object] = []

    async def one() -> None:
        answers.append(await admit(health, ask("one:door")))

    async with anyio.create_task_group() as group:
        for _ in range(callers):
            group.start_soon(one)
    return {"through": sum(isinstance(answer, Admission) for answer in answers)}


def due(name: str) -> Pool:
    return Pool(name=name, generation=1, failure_count=1, deadline=after(0, now()))


def bare(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    for pragma in ("journal_mode = WAL", "synchronous = FULL"):
        connection.execute(f"PRAGMA {pragma}")
    for migration in MIGRATIONS:
        for statement in migration:
            connection.execute(statement)
    return connection


async def limited(health: ActorRef, tickets: list[Ticket]) -> None:
    """Every ticket's pool reports a limit, as fast as the mailbox takes it."""
    failure = Failure(category="capacity", reason="", retryable=True, outcome="known_failed")
    for number, ticket in enumerate(tickets):
        health.tell(Settle(ticket=ticket, failure=failure))
        if number % 100 == 99:
            await anyio.lowlevel.checkpoint()
    await health.ask(Confirm(tickets[-1]))  # answered after them all


def rule(times: int) -> Figures:
    moment, owner = now(), this_process()

    def some() -> None:
        pool = Pool(name="one:a")
        for _ in range(times):
            pool, ticket = decide(pool, Ask(attempt="a", owner=owner, lease_s=60), moment)
            assert isinstance(ticket, Ticket)
            pool, _answer = decide(pool, Settled(ticket=ticket), moment)

    return repeated(some, times)


async def with_ours(case: str, size: int) -> Figures:
    """In a project's file of its own, so that no case finds the rows of another."""
    with tempfile.TemporaryDirectory() as folder:
        database = await Database.open(Path(folder) / "ours.db", MIGRATIONS)
        try:
            spec = ChildSpec("health", lambda: HealthActor(lambda: database, now, wait_s=30))
            async with Supervisor([spec], id="root") as root:
                health = root.ref("health")
                if case == "an admission alone":
                    return await calls(lambda: admitted(health), size)
                if case == "at once":
                    return await crowd(health, size)
                if case == "stall":
                    return await stall(health, size)
                if case == "door":
                    return await door(database, health, size)
                return await calls(lambda: ours(health), size)
        finally:
            await database.aclose()


async def with_hands(size: int) -> Figures:
    with tempfile.TemporaryDirectory() as folder, closing(bare(Path(folder) / "bare.db")) as connection:
        return await calls(Floor(connection).call, size)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("subject", choices=["custodes", "hand"])
    parser.add_argument("backend", choices=["asyncio", "trio"])
    asked = parser.parse_args()

    def case(name: str) -> Case:
        return lambda size: anyio.run(with_ours, name, size, backend=asked.backend)

    if asked.subject == "hand":
        serve(
            sqlite3.sqlite_version,
            {"call": lambda size: anyio.run(with_hands, size, backend=asked.backend)},
        )
    else:
        cases = {
            name: case(name) for name in ("call", "guard", "an admission alone", "at once", "stall", "door")
        }
        serve(version("custodes"), {**cases, "rule": rule})


if __name__ == "__main__":
    main()
