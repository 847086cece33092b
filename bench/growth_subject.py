"""Custodes as the contender of ``bench/growth.py``: the same thing done with more and more of it.

python -m bench.growth_subject {asyncio|trio}
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Awaitable, Callable
from functools import partial
from importlib.metadata import version
from pathlib import Path

import anyio

from bench.dispatch_subject import READ, fan_out, install
from bench.suite.contender import Figures, Spent, serve
from custodes import Supervision
from custodes.actors import ChildSpec, Supervisor
from custodes.store import Connection, Database
from custodes.supervision.pools.admission import Admission, Admit, Candidate, Settle
from custodes.supervision.pools.health import HealthActor
from custodes.supervision.record.clock import now
from custodes.supervision.record.history import recorded
from custodes.supervision.record.record_file import RecordFile
from custodes.supervision.record.records import AttemptStart
from custodes.supervision.record.schema import DATABASE, MIGRATIONS

CHILDREN_A_CONVERSATION = 100
DAYS = 80 * 86_400.0
"""The age of the oldest row: none is old enough to be pruned."""
_ROWS = """
    WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < :rows)
    INSERT INTO attempts (id, run_id, number, conversation, role, name, mutable, adapter, model, pool,
        generation, health_state, probe, confirmed, status, reason, owner, started, ended)
    SELECT printf('a%09d', i), printf('r%09d', i), 1, printf('c%06d', i / :each), 'reviewer', '', 0, 'noop',
        'large', 'noop:large', 0, 'healthy', 0, 0, 'done', '', '[1,2.0,"boot","space"]',
        :now - :age * (1 - 1.0 * i / :rows), :now - :age * (1 - 1.0 * i / :rows) + 1 FROM n
"""


class Projects:
    """A project for each number of rows, and each use that leaves some, made once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._made: dict[tuple[int, str], Path] = {}

    async def of(self, rows: int, use: str = "rows") -> Path:
        place = (rows, use)
        if place not in self._made:
            self._made[place] = install(self._folder / f"{rows}-{use}")
            database = await Database.open(self._made[place] / DATABASE, MIGRATIONS)
            try:
                await database.write(partial(_fill, rows=rows))
            finally:
                await database.aclose()
        return self._made[place]


async def _fill(connection: Connection, rows: int) -> None:
    if rows:
        given = {"rows": rows, "each": CHILDREN_A_CONVERSATION, "now": time.time(), "age": DAYS}
        await connection.execute_fetchall(_ROWS, given)


async def timed(step: Callable[[], Awaitable[object]], times: int = 1) -> Figures:
    """``step``, which does it so many times, once unmeasured and then until it is enough."""
    await step()
    spent = Spent()
    while not spent.enough:
        with spent.counting(times):
            await step()
    return spent.figures()


async def history(projects: Projects, rows: int) -> Figures:
    """What routing reads once in a while of what past attempts came to."""
    database = await Database.open(await projects.of(rows) / DATABASE, MIGRATIONS)
    try:
        return await timed(lambda: database.read(recorded))
    finally:
        await database.aclose()


async def conversation(projects: Projects, rows: int) -> Figures:
    """The trace of one conversation."""
    async with RecordFile(await projects.of(rows)) as file:
        return await timed(lambda: file.conversation("c000000"))


async def latest(projects: Projects, rows: int) -> Figures:
    """The newest 20 runs of all."""
    async with RecordFile(await projects.of(rows)) as file:
        return await timed(lambda: file.latest(20))


async def start(projects: Projects, rows: int) -> Figures:
    """A host from nothing to its first child's outcome, recovery included."""
    project = await projects.of(rows)

    async def host() -> None:
        async with Supervision(project) as supervision, supervision.conversation("bench") as parent:
            outcome = await parent.dispatch(READ)
            assert outcome.status == "done", outcome

    return await timed(host)


def start_of(number: int) -> AttemptStart:
    return AttemptStart(run_id=f"p{number}", number=1, conversation="pools", role="reviewer")


async def pools(projects: Projects, size: int) -> Figures:
    """An admission and its settle, for each of so many pools at once."""
    database = await Database.open(await projects.of(0, "pools") / DATABASE, MIGRATIONS)
    try:
        spec = ChildSpec("health", lambda: HealthActor(lambda: database, now))
        async with Supervisor([spec], id="root") as root:
            health = root.ref("health")

            async def one(number: int) -> None:
                ask = Admit(
                    candidates=(Candidate(pool=f"noop:{number}", adapter="noop"),),
                    attempt=start_of(number),
                    lease_s=60,
                )
                answer = await health.ask(ask)
                assert isinstance(answer, Admission), answer
                await health.ask(Settle(ticket=answer.ticket))

            async def every() -> None:
                async with anyio.create_task_group() as group:
                    for number in range(size):
                        group.start_soon(one, number)

            return await timed(every, size)
    finally:
        await database.aclose()


async def children(projects: Projects, size: int) -> Figures:
    return await fan_out(await projects.of(0, "children"), size)


Case = Callable[[Projects, int], Awaitable[Figures]]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("backend", choices=["asyncio", "trio"])
    backend = parser.parse_args().backend
    cases = {
        "children": children,
        "pools": pools,
        "history": history,
        "conversation": conversation,
        "latest": latest,
        "start": start,
    }
    with tempfile.TemporaryDirectory() as folder:
        projects = Projects(Path(folder))

        def measured(case: Case, size: int) -> Figures:
            return anyio.run(case, projects, size, backend=backend)

        serve(version("custodes"), {name: partial(measured, case) for name, case in cases.items()})


if __name__ == "__main__":
    main()
