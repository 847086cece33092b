"""A process with a health actor of its own over a project's file, led by lines on its standard input.

``admit POOL [TASKS]`` prints how many were let in, and of those how many as the probe; ``settle [SECONDS]``
ends everything admitted at once with a limit, ``done`` with success; ``hold`` takes the writer's turn and
keeps it. Each prints one line when it is done.
"""

from __future__ import annotations

import sqlite3
import sys
from pathlib import Path

import anyio
import anyio.to_thread

from custodes.actors import ChildSpec, Supervisor
from custodes.store import Database
from custodes.supervision.pools.admission import Admission, Settle
from custodes.supervision.pools.breaker import Ticket
from custodes.supervision.pools.health import HealthActor, admit
from custodes.supervision.record.clock import now
from custodes.supervision.record.recovery import close_dead_owners
from custodes.supervision.record.schema import MIGRATIONS
from support.health import ask, limit


async def serve(path: Path) -> None:
    database = await Database.open(path, MIGRATIONS)
    await close_dead_owners(database, now())
    try:
        spec = ChildSpec("health", lambda: HealthActor(lambda: database, now))
        async with Supervisor([spec], id="root") as root:
            health = root.ref("health")
            tickets: list[Ticket] = []
            print("ready", flush=True)
            while line := await anyio.to_thread.run_sync(sys.stdin.readline):
                command, *rest = line.split()
                if command == "admit":
                    pool, tasks = rest[0], int(rest[1]) if len(rest) > 1 else 1
                    admissions: list[Admission] = []
                    refusals: list[str] = []

                    async def one(pool: str = pool) -> None:
                        answer = await admit(health, ask(pool, lease_s=600))
                        if isinstance(answer, Admission):
                            admissions.append(answer)  # noqa: B023  # awaited in this round
                        else:
                            refusals.extend(str(each.recovery_s) for each in answer.waiting)  # noqa: B023  # likewise
                            refusals.extend(each.category for each in answer.unavailable)  # noqa: B023  # likewise

                    async with anyio.create_task_group() as group:
                        for _ in range(tasks):
                            group.start_soon(one)
                    tickets += [admission.ticket for admission in admissions]
                    probes = sum(admission.probe for admission in admissions)
                    print(len(admissions), probes, *sorted(set(refusals)), flush=True)
                elif command == "hold":
                    holder = sqlite3.connect(path, isolation_level=None)
                    holder.execute("BEGIN IMMEDIATE")
                    print("held", flush=True)
                else:
                    failure = None if command == "done" else limit(int(rest[0]) if rest else None)
                    async with anyio.create_task_group() as group:
                        for ticket in tickets:
                            group.start_soon(health.ask, Settle(ticket=ticket, failure=failure))
                    tickets.clear()
                    print("settled", flush=True)
    finally:
        await database.aclose()


if __name__ == "__main__":
    anyio.run(serve, Path(sys.argv[1]), backend=sys.argv[2])
