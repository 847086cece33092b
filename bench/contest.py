"""One shape for what is measured beside others: interleaved rounds, medians with their spread, ratios.

A contender is a process of its own that measures what it is asked to (``bench/contender.py``). Every round
asks each in turn, so that a noisy machine is noisy for all. A figure is the median of the rounds, with the
least and the most beside it, and a ratio is the median of the rounds' own. One that cannot run is named with
its error.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

HERE = Path(__file__).parent
TOO_LONG_S = 60.0
"""A fan-out that would take longer, reckoned from the contender's last one, is left out and said so."""


@dataclass(frozen=True)
class Measure:
    """``unit`` is what a figure is shown in, by its name and its value in the answer's own. ``base`` names
    the contender that the others are held against."""

    case: str
    size: int
    title: str
    rounds: int
    key: str = "seconds"
    unit: tuple[str, float] = ("µs", 1e-6)
    base: str = ""


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


def table(what: Measure, found: list[Contender]) -> Iterator[str]:
    unit, scale = what.unit
    yield f"\n{what.title}"
    answers = [
        one for each in found if each.name == what.base for one in each.found.get((what.case, what.size), [])
    ]
    base_figures, base_cpu = [one[what.key] for one in answers], [one["cpu"] for one in answers]
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
        cpu = [answer["cpu"] for answer in contender.found[what.case, what.size]]
        if what.key == "seconds":
            line += f"   cpu {statistics.median(cpu) / scale:,.1f}"
        if base_figures:
            line += f"   {ratio(figures, base_figures):.3g} x {what.base}"
            line += f", cpu {ratio(cpu, base_cpu):.3g} x" if what.key == "seconds" else ""
        yield line


def ratio(figures: list[float], base: list[float]) -> float:
    return statistics.median(mine / theirs for mine, theirs in zip(figures, base, strict=False))


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


def options(description: str) -> argparse.ArgumentParser:
    """What every bench of this shape takes."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--quick", action="store_true", help="3 rounds, and nothing large")
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--peers-in", type=Path, help="a folder to keep the peers' virtual environments in")
    parser.add_argument("--no-peers", action="store_true")
    parser.add_argument("--json", type=Path, help="where to write every figure of every round")
    return parser


def hold(
    given: argparse.Namespace,
    measures: Callable[[bool, int], Iterable[Measure]],
    contenders: Callable[[Path | None], Iterable[Contender]],
) -> None:
    """Run it and print it.

    :param measures: what is measured, from ``quick`` and the number of rounds.
    :param contenders: who is, from the folder for the peers' environments; None: no peers.
    """
    rounds = given.rounds or (3 if given.quick else 5)
    asked = list(measures(given.quick, rounds))
    with tempfile.TemporaryDirectory() as folder, ExitStack() as running:
        peers_in = None if given.no_peers else given.peers_in or Path(folder)
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
    for what in asked:
        for line in table(what, found):
            print(line)
    if given.json:
        given.json.write_text(json.dumps(report(found), indent=1) + "\n")
