"""What an admission costs, as ratios measured in one run, and who keeps a half-open door.

    python bench/health.py [--backend trio] [--peers-in FOLDER] [--no-peers]

The floor is the same reads and writes by hand: the standard library's sqlite3 in a worker thread, the same
pragmas and the same SQL, no actor, no rule. Rounds are interleaved, so that a noisy disk is noisy for both;
a ratio is the median of the rounds' own. The peers (other breakers) are installed by pip into a virtual
environment of their own (kept where ``--peers-in`` says).
"""

from __future__ import annotations

import argparse
import gc
import json
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import closing, suppress
from functools import partial
from pathlib import Path

import anyio
import anyio.from_thread
import anyio.lowlevel
import anyio.to_thread

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

if not __package__:
    sys.path[0] = str(Path(__file__).parents[1])  # run as a file
from bench.environment import CannotInstallError, environment
from bench.stall import longest_stall

PEERS = ("purgatory-circuitbreaker", "pybreaker", "aiobreaker", "litellm")
ROUNDS = 15
CALLS = 40
CROWD = 1_000
START = AttemptStart(run_id="run", number=1, conversation="c", role="reviewer")


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


async def timed(call: Callable[[], Awaitable[object]], times: int = CALLS) -> float:
    """Seconds for one call."""
    gc.collect()
    before = time.perf_counter()
    for _ in range(times):
        await call()
    return (time.perf_counter() - before) / times


async def crowd(health: ActorRef) -> float:
    """Seconds for each of a thousand admissions that are asked for at once."""
    before = time.perf_counter()
    async with anyio.create_task_group() as group:
        for _ in range(CROWD):
            group.start_soon(admitted, health)
    return (time.perf_counter() - before) / CROWD


async def through_the_door(database: Database, health: ActorRef) -> int:
    """How many of 50 callers an expired pool lets in."""
    await database.write(lambda connection: save_pools(connection, [due("one:door")]))
    answers: list[object] = []

    async def one() -> None:
        answers.append(await admit(health, ask("one:door")))

    async with anyio.create_task_group() as group:
        for _ in range(50):
            group.start_soon(one)
    return sum(isinstance(answer, Admission) for answer in answers)


def due(name: str) -> Pool:
    return Pool(name=name, generation=1, failure_count=1, deadline=after(0, now()))


async def measure(folder: Path) -> None:
    database = await Database.open(folder / "ours.db", MIGRATIONS)
    with closing(bare(folder / "bare.db")) as connection:
        try:
            spec = ChildSpec("health", lambda: HealthActor(lambda: database, now, wait_s=30))
            async with Supervisor([spec], id="root") as root:
                await report(database, root.ref("health"), Floor(connection))
        finally:
            await database.aclose()


def bare(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    for pragma in ("journal_mode = WAL", "synchronous = FULL"):
        connection.execute(f"PRAGMA {pragma}")
    for migration in MIGRATIONS:
        for statement in migration:
            connection.execute(statement)
    return connection


async def report(database: Database, health: ActorRef, floor: Floor) -> None:
    for _ in range(20):
        await ours(health)
        await floor.call()
    pairs, singles, crowds = [], [], []
    for _ in range(ROUNDS):
        pairs.append((await timed(floor.call), await timed(lambda: ours(health))))
        singles.append(await timed(lambda: admitted(health)))
        crowds.append(await crowd(health))
    bottom, top = (statistics.median(side) for side in zip(*pairs, strict=True))
    ratio = statistics.median(mine / theirs for theirs, mine in pairs)
    print(
        f"admission + settle of one call      {top * 1e6:8.0f} µs   "
        f"{ratio:5.2f} x of {bottom * 1e6:.0f} µs (<= 1.5)"
    )
    each = statistics.median(crowds)
    ratio = statistics.median(many / one for many, one in zip(crowds, singles, strict=True))
    print(
        f"each of {CROWD:,} admissions at once     {each * 1e6:8.0f} µs   "
        f"{ratio:5.2f} x of a single one (<= 0.2)"
    )

    idle = await longest_stall(lambda: anyio.sleep(0.5))
    stalls = []
    for number in range(5):
        tickets = [(await admitted(health, f"one:{number}-{pool}")).ticket for pool in range(CROWD)]
        stalls.append(await longest_stall(lambda: limited(health, tickets)))  # noqa: B023  # awaited at once
    print(
        f"longest stall of the host's loop    {statistics.median(stalls) * 1e3:8.1f} ms   "
        f"while 1,000 pools are written, median of 5 (idle: {idle * 1e3:.1f} ms; <= 5)"
    )

    raw = await anyio.to_thread.run_sync(rule_alone)
    print(f"the rule alone                      {raw * 1e6:8.1f} µs   an ask and its settle, in memory")
    print("\nguarding one call, and who gets through a half-open door before the first answer")
    through = await through_the_door(database, health)
    print(f"  {'custodes':<28} {top * 1e6:9.1f} µs   {through:>2} of 50   durable, over processes")


async def limited(health: ActorRef, tickets: list[Ticket]) -> None:
    """Every ticket's pool reports a limit, as fast as the mailbox takes it."""
    failure = Failure(category="capacity", reason="", retryable=True, outcome="known_failed")
    for number, ticket in enumerate(tickets):
        health.tell(Settle(ticket=ticket, failure=failure))
        if number % 100 == 99:
            await anyio.lowlevel.checkpoint()
    await health.ask(Confirm(tickets[-1]))  # answered after them all


def rule_alone() -> float:
    pool, moment, owner = Pool(name="one:a"), now(), this_process()
    before = time.perf_counter()
    for _ in range(20_000):
        pool, ticket = decide(pool, Ask(attempt="a", owner=owner, lease_s=60), moment)
        assert isinstance(ticket, Ticket)
        pool, _ = decide(pool, Settled(ticket=ticket), moment)
    return (time.perf_counter() - before) / 20_000


def peers(folder: Path) -> None:
    """One that cannot be installed says so itself."""
    python = environment(folder)
    for name in PEERS:
        with suppress(CannotInstallError):
            environment(folder, name)
    script = Path(__file__).with_name("health_peers.py")
    ran = subprocess.run([str(python), str(script)], capture_output=True, text=True, check=False)
    for line in ran.stdout.splitlines():
        if not line.startswith("{"):
            continue
        peer = json.loads(line)
        name = f"{peer['name']} {peer.get('version', '')}"
        if "cannot" in peer:
            print(f"  {name:<28} cannot run here: {peer['cannot']}")
        else:
            cost, through = peer["cost_us"], peer["through"]
            print(f"  {name:<28} {cost:9.1f} µs   {through:>2} of 50   in memory, one process")


def main() -> None:
    parser = argparse.ArgumentParser(description="What an admission costs, as ratios.")
    parser.add_argument("--backend", choices=["asyncio", "trio"], default="asyncio")
    parser.add_argument("--peers-in", type=Path, help="a folder to keep the peers' virtual environment in")
    parser.add_argument("--no-peers", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        print(f"{options.backend}, Python {sys.version.split()[0]}")
        anyio.run(measure, Path(folder), backend=options.backend)
        if not options.no_peers:
            peers(options.peers_in or Path(folder) / "peers")


if __name__ == "__main__":
    main()
