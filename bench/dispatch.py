"""What a dispatch costs through everything, beside what others take for a child that does nothing.

    python bench/dispatch.py [--quick] [--rounds 5] [--peers-in FOLDER] [--no-peers] [--json FILE]

Measured, for a runtime that returns at once (``bench/noop``): one dispatch after another; fan-outs of 16, 64,
1,000 and 10,000 children; the longest time for which the host's loop did not come round during one; the
resident memory that each of 10,000 live children adds. Each on asyncio and on trio, with spans (the SDK, its
batch processor, an exporter that drops them) and without. All of it is what a host gets: the settings and the
adapters are looked at for each child, a dispatch is admitted and settled in the project's file with a commit
to the disk (WAL, ``synchronous = FULL``), 16 run at a time (the most that the policy allows), evidence is
checked. Mutable work holds its scope's lease as well.

Beside it in the same rounds: bare anyio tasks (the floor); LangGraph's ``Send``, a map step; a run of the
OpenAI Agents SDK and one of Pydantic AI with a model that does nothing; LiteLLM's router with its mock
response; and the original (``coding-os``), its own tools with its own files and a dispatcher that does
nothing. Each of the peers is installed, at the versions in ``bench/peers``, into an environment of its own
and runs in a process of its own; one that cannot be installed or run is named with its error. None of them
but the original writes anything to a disk.

Every round asks every contender in turn, so that a noisy machine is noisy for all. A figure is the median of
the rounds, with the least and the most beside it, and a ratio is the median of the rounds' own.

Not measured: a real runtime, which takes seconds; the start of a host (the tree stands, and one dispatch has
gone through it, before the clock starts); a file that several processes write to at once
(``bench/health.py``). What a commit costs is the disk's, and is in the figures.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

if not __package__:
    sys.path[0] = str(Path(__file__).parents[1])  # run as a file
from bench.environment import CannotInstallError, environment

HERE = Path(__file__).parent
PEERS = {
    "langgraph": "LangGraph Send",
    "openai-agents": "OpenAI Agents SDK",
    "pydantic-ai-slim": "Pydantic AI",
    "litellm": "LiteLLM router",
    "coding-os": "the original",
}
TOO_LONG_S = 60.0
"""A run that would take longer, reckoned from the contender's last fan-out, is left out and said so."""
ONE_TIMES = 30


@dataclass(frozen=True)
class Measure:
    """``unit`` is what a figure is shown in, by its name and its value in the answer's own."""

    case: str
    size: int
    title: str
    rounds: int
    key: str = "seconds"
    unit: tuple[str, float] = ("µs", 1e-6)


@dataclass
class Contender:
    """A process that answers. ``cannot`` says why there is none."""

    name: str
    command: list[str]
    cannot: str = ""
    version: str = ""
    cases: tuple[str, ...] = ()
    found: dict[tuple[str, int], list[dict[str, Any]]] = field(default_factory=dict)
    left_out: dict[tuple[str, int], str] = field(default_factory=dict)

    def __enter__(self) -> Self:
        if self.cannot:
            return self
        self._process = subprocess.Popen(
            self.command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            cwd=HERE.parent,
        )
        hello = self._answer()
        self.cannot = hello.get("cannot", "")
        self.version = hello.get("version", "")
        self.cases = tuple(hello.get("cases", ()))
        return self

    def __exit__(self, *_: object) -> None:
        if self.command and hasattr(self, "_process"):
            self._process.communicate()

    def measure(self, what: Measure) -> None:
        place = (what.case, what.size)
        if self.cannot or what.case not in self.cases or place in self.left_out:
            return
        reckoned = what.size * self._last_each() if what.case == "fan-out" else 0
        if reckoned > TOO_LONG_S:
            self.left_out[place] = f"would take {reckoned:.0f} s"
            return
        assert self._process.stdin is not None
        try:
            print(json.dumps({"case": what.case, "size": what.size}), file=self._process.stdin, flush=True)
            answer = self._answer()
        except OSError as error:
            answer = {"cannot": f"it ended: {error}"}
        if "cannot" in answer:
            self.left_out[place] = answer["cannot"]
        else:
            self.found.setdefault(place, []).append(answer)

    def figures(self, what: Measure) -> list[float]:
        return [answer[what.key] for answer in self.found.get((what.case, what.size), [])]

    def _last_each(self) -> float:
        return max(
            (answers[-1]["seconds"] for (case, _), answers in self.found.items() if case == "fan-out"),
            default=0.0,
        )

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        answer: dict[str, Any] = json.loads(line) if line else {"cannot": "its process ended"}
        return answer


def measures(quick: bool, rounds: int) -> Iterator[Measure]:
    yield Measure("one", ONE_TIMES, "one dispatch", rounds)
    yield Measure("one mutable", ONE_TIMES, "one dispatch of mutable work", rounds)
    for size in (16, 64, 1_000):
        yield Measure("fan-out", size, f"a child in a fan-out of {size:,}", rounds)
    largest = 1_000 if quick else 10_000
    if not quick:
        yield Measure("fan-out", largest, f"a child in a fan-out of {largest:,}", 1)
    for size in (64, largest):
        yield Measure(
            "stall", size, f"longest stall, {size:,} children", rounds if size == 64 else 1, unit=("ms", 1e-3)
        )
    yield Measure("memory", largest, f"memory of a live child, {largest:,} alive", 1, "bytes", ("KB", 1e3))


def contenders(peers_in: Path | None) -> Iterator[Contender]:
    subject = [sys.executable, "-m", "bench.dispatch_subject"]
    for backend in ("asyncio", "trio"):
        yield Contender(f"bare tasks, {backend}", [*subject, "tasks", backend])
        yield Contender(f"custodes, {backend}", [*subject, "custodes", backend])
        yield Contender(f"custodes, {backend}, spans", [*subject, "custodes", backend, "--spans"])
    if peers_in is None:
        return
    for package, name in PEERS.items():
        print(f"installing {package} …", file=sys.stderr, flush=True)
        try:
            python = environment(peers_in / package, "-r", str(HERE / "peers" / f"{package}.txt"))
        except CannotInstallError as error:
            yield Contender(name, [], cannot=f"cannot be installed: {error}")
        else:
            yield Contender(name, [str(python), "-m", "bench.dispatch_peers", package])


def table(what: Measure, found: list[Contender], base: Contender | None) -> Iterator[str]:
    unit, scale = what.unit
    yield f"\n{what.title}"
    base_figures = base.figures(what) if base else []
    for contender in found:
        figures = contender.figures(what)
        why = contender.left_out.get((what.case, what.size))
        if not figures:
            if why:
                yield f"  {contender.name:<28} {why}"
            continue
        shown = [value / scale for value in figures]
        line = f"  {contender.name:<28} {statistics.median(shown):11,.1f} {unit}"
        if len(shown) > 1:
            line += f"   {min(shown):,.1f} to {max(shown):,.1f}"
        if base_figures and what.case in ("one", "fan-out"):
            assert base
            line += f"   {ratio(figures, base_figures):.3g} x {base.name}"
        yield line


def ratio(figures: list[float], base: list[float]) -> float:
    return statistics.median(mine / theirs for mine, theirs in zip(figures, base, strict=False))


def main() -> None:
    parser = argparse.ArgumentParser(description="What a dispatch costs, as ratios.")
    parser.add_argument("--quick", action="store_true", help="3 rounds, and nothing above 1,000 children")
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--peers-in", type=Path, help="a folder to keep the peers' virtual environments in")
    parser.add_argument("--no-peers", action="store_true")
    parser.add_argument("--json", type=Path, help="where to write every figure of every round")
    options = parser.parse_args()
    rounds = options.rounds or (3 if options.quick else 5)
    asked = list(measures(options.quick, rounds))
    with tempfile.TemporaryDirectory() as folder, ExitStack() as running:
        peers_in = None if options.no_peers else options.peers_in or Path(folder)
        found = [running.enter_context(contender) for contender in contenders(peers_in)]
        for number in range(max(what.rounds for what in asked)):
            print(f"round {number + 1} of {rounds} …", file=sys.stderr, flush=True)
            for what in asked:
                if number < what.rounds:
                    for contender in found:
                        contender.measure(what)
    print(f"Python {sys.version.split()[0]}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    for contender in found:
        print(f"  {contender.name:<28} {contender.version or contender.cannot}")
    by_name = {contender.name: contender for contender in found}
    bases = {"one": by_name.get("the original"), "fan-out": by_name.get("LangGraph Send")}
    for what in asked:
        for line in table(what, found, bases.get(what.case)):
            print(line)
    if options.json:
        options.json.write_text(json.dumps(report(found), indent=1) + "\n")


def report(found: list[Contender]) -> list[dict[str, Any]]:
    return [
        {
            "name": contender.name,
            "version": contender.version,
            "cannot": contender.cannot,
            "found": [
                {"case": case, "size": size, "rounds": answers}
                for (case, size), answers in contender.found.items()
            ],
            "left_out": [
                {"case": case, "size": size, "why": why} for (case, size), why in contender.left_out.items()
            ],
        }
        for contender in found
    ]


if __name__ == "__main__":
    main()
