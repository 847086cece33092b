"""The kernel as a contender of ``bench/actors.py``, and the same shapes by hand.

python -m bench.actors_subject {custodes|hand|raw} {asyncio|trio}
"""

from __future__ import annotations

import argparse
import platform
from importlib.metadata import version

import anyio

from bench.by_hand import FLOOR, RAW, Echo, Go, Shape
from bench.suite.contender import Case, Figures, Spent, serve
from custodes.actors import Actor, ActorRef, ChildSpec, Supervisor, handles


class OneJob(Actor):
    @handles(Go)
    async def go(self, _message: Go) -> None:
        self.context.stop()


class StartedJob(OneJob):
    async def on_start(self) -> None:
        """Overridden, so that a start has something to wait for, as ``task_status.started()`` has."""


class Sleeper(Actor):
    @handles(Go)
    async def go(self, _message: Go) -> None:
        await anyio.sleep_forever()


class Echoing(Actor):
    @handles(Echo)
    async def echo(self, message: Echo) -> int:
        return message.number


async def ours_dynamic(spent: Spent, count: int) -> None:
    async with Supervisor() as root:
        spent.begin()
        refs = list[ActorRef]()
        for number in range(count):
            ref = await root.start_child(ChildSpec(id=str(number), start=OneJob, restart="temporary"))
            ref.tell(Go())
            refs.append(ref)
        for ref in refs:
            await ref.join()
        spent.end(count)


async def ours_static(spent: Spent, count: int) -> None:
    specs = [ChildSpec(id=str(number), start=StartedJob, restart="temporary") for number in range(count)]
    spent.begin()
    async with Supervisor(specs) as root:
        refs = [root.ref(spec.id) for spec in specs]
        for ref in refs:
            ref.tell(Go())
        for ref in refs:
            await ref.join()
    spent.end(count)


async def ours_ask(spent: Spent, count: int) -> None:
    async with Supervisor([ChildSpec(id="echo", start=Echoing)]) as root:
        ref = root.ref("echo")
        spent.begin()
        for number in range(count):
            await ref.ask(Echo(number))
        spent.end(count)


async def ours_cancel(spent: Spent, count: int) -> None:
    async with Supervisor() as root:
        for number in range(count):
            ref = await root.start_child(ChildSpec(id=str(number), start=Sleeper, restart="temporary"))
            ref.tell(Go())
        await anyio.wait_all_tasks_blocked()
        spent.begin()
        await root.stop()
        spent.end(count)


OURS: dict[str, Shape] = {
    "dynamic": ours_dynamic,
    "bare": ours_dynamic,
    "static": ours_static,
    "ask": ours_ask,
    "cancel": ours_cancel,
}


def case(shape: Shape, backend: str) -> Case:
    def measured(count: int) -> Figures:
        spent = Spent()
        while not spent.enough:
            anyio.run(shape, spent, count, backend=backend)
        return spent.figures()

    return measured


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("subject", choices=["custodes", "hand", "raw"])
    parser.add_argument("backend", choices=["asyncio", "trio"])
    asked = parser.parse_args()
    subjects: dict[str, dict[str, Shape]] = {"custodes": OURS, "hand": FLOOR, "raw": RAW[asked.backend]}
    shapes = subjects[asked.subject]
    library = {"custodes": "custodes", "hand": "anyio"}.get(asked.subject, asked.backend)
    found = platform.python_version() if library == "asyncio" else version(library)
    serve(found, {name: case(shape, asked.backend) for name, shape in shapes.items()})


if __name__ == "__main__":
    main()
