"""The one executor: contenders as processes, asked in interleaved rounds; a bench in, what it found out.

Every round asks each contender in turn, so that a noisy machine is noisy for all, and every second round in
the other order; one case has all its rounds before the next begins. One that cannot run, ends, or does not
answer in time is named with its error, and the others go on.
"""

from __future__ import annotations

import json
import os
import platform
import select
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import msgspec

from bench.suite.contender import Figures
from bench.suite.environment import CannotInstallError, environment
from bench.suite.measure import QUICK_ROUNDS, ROUNDS, Bench, Measure, Place
from bench.suite.pace import by_base, by_place, due
from bench.suite.results import Entrant, Found, Sample

ROOT = Path(__file__).parents[2]
PEERS = ROOT / "bench" / "peers"
TOO_LONG_S = 30.0
"""What would take more of the processor, reckoned from the contender's last size, is left out and said so."""
ANSWER_S = 300.0
"""A contender that says nothing for so long is ended."""
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
"""Every contender's: what one starts finds all that it imports compiled, ours, floors and peers alike. An
installer compiles what it installs; a checkout is compiled where it first runs, and some images forbid it."""


@dataclass
class Contender:
    """A process that answers. ``cannot`` says why there is none. As a context: while it runs."""

    name: str
    command: list[str]
    cannot: str = ""
    version: str = ""
    answer_s: float = ANSWER_S
    found: dict[Place, list[Figures]] = field(default_factory=dict)
    left_out: dict[Place, str] = field(default_factory=dict)
    each: dict[Place, float] = field(default_factory=dict)
    """What an ask uses of the processor; the first may have to make what the others find."""
    _cases: frozenset[str] = frozenset()
    _process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self._words = tempfile.TemporaryFile()
        if not self.cannot:
            self._start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end()
        self._words.close()

    def measure(self, what: Measure) -> None:
        place = what.place
        if self.cannot or what.case not in self._cases or place in self.left_out:
            return
        if what.bounded and (reckoned := what.size * self._each(what)) > TOO_LONG_S:
            self.left_out[place] = f"would take {reckoned:.0f} s"
            return
        if self._process is None:  # an earlier case has ended it
            self._start()
            if self.cannot:
                return
        try:
            assert self._process is not None and self._process.stdin is not None  # noqa: PT018 - for types
            self._process.stdin.write(json.dumps({"case": what.case, "size": what.size}).encode() + b"\n")
            self._process.stdin.flush()
            answer = self._answer()
        except OSError:
            answer = self._ended()
        if "cannot" in answer:
            self.left_out[place] = answer["cannot"]
        else:
            self.found.setdefault(place, []).append(answer["figures"])
            self.each[place] = min(answer["used"], self.each.get(place, answer["used"]))

    def due(self, what: Measure, number: int, rounds: int) -> bool:
        """Whether it is asked in this of so many rounds. A measure with a number of its own has them all."""
        if what.among and self.name not in what.among:
            return False
        asked, each = len(self.found.get(what.place, ())), self.each.get(what.place, 0.0)
        return bool(what.rounds) or due(number, rounds, asked, each)

    def entrant(self) -> Entrant:
        return Entrant(self.name, self.version, self.cannot)

    def samples(self) -> list[Sample]:
        places = dict.fromkeys([*self.found, *self.left_out])
        return [
            Sample(self.name, *place, tuple(self.found.get(place, ())), self.left_out.get(place, ""))
            for place in places
        ]

    def _each(self, what: Measure) -> float:
        """What one takes by the greatest size so far that is no greater: a small one is mostly set-up. By the
        clock a busy machine would leave out what another does not."""
        sizes = [size for case, size in self.found if case == what.case and size <= what.size]
        return min(each["cpu"] for each in self.found[what.case, max(sizes)]) if sizes else 0.0

    def _answer(self) -> dict[str, Any]:
        """Its next line. One that says nothing in time is killed; the next case starts another."""
        assert self._process is not None and self._process.stdout is not None  # noqa: PT018 - for types
        ends = time.monotonic() + self.answer_s
        line, out = b"", self._process.stdout.fileno()
        while not line.endswith(b"\n"):
            ready, _, _ = select.select([out], [], [], max(0.0, ends - time.monotonic()))
            if not ready:
                return self._over(f"did not answer within {self.answer_s:g} s")
            if not (part := os.read(out, 65_536)):
                return self._ended()
            line += part
        answer: dict[str, Any] = json.loads(line)
        return answer

    def _start(self) -> None:
        try:
            self._process = subprocess.Popen(
                self.command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._words,
                cwd=ROOT,
                env=ENVIRONMENT,
            )
        except OSError as error:
            self.cannot = f"cannot be started: {error}"
            return
        hello = self._answer()
        self.cannot = hello.get("cannot", "")
        self.version = hello.get("version", "")
        self._cases = frozenset(hello.get("cases", ()))

    def _over(self, why: str) -> dict[str, Any]:
        """The process is of no more use."""
        assert self._process is not None
        self._process.kill()
        self._end()
        return {"cannot": why}

    def _ended(self) -> dict[str, Any]:
        """It has closed its end. It is waited for: its last words may come after that."""
        self._end()
        self._words.seek(0)
        said = self._words.read().decode(errors="replace").strip().splitlines()
        return {"cannot": f"its process ended: {said[-1][:300] if said else 'it said nothing'}"}

    def _end(self) -> None:
        if self._process is None:
            return
        try:
            self._process.communicate(timeout=10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.communicate()
        self._process = None


def ours(name: str, module: str, *arguments: str) -> Contender:
    """A module of ``bench`` as a contender, in the project's own environment."""
    return Contender(name, [sys.executable, "-m", f"bench.{module}", *arguments])


def peer(name: str, package: str, module: str, folder: Path | None) -> list[Contender]:
    """A peer in an environment of its own, at the versions in ``bench/peers``; without a folder none."""
    if folder is None:
        return []
    print(f"installing {package} …", file=sys.stderr, flush=True)
    try:
        python = environment(folder / package, "-r", str(PEERS / f"{package}.txt"))
    except CannotInstallError as error:
        return [Contender(name, [], cannot=f"cannot be installed: {error}")]
    return [Contender(name, [str(python), "-m", f"bench.{module}", package])]


def hold(bench: Bench, *, quick: bool = False, rounds: int = 0, peers_in: Path | None = None) -> Found:
    """Run it.

    :param rounds: of every measure that does not say its own; 0: as many as a run, or a quick one, has.
    :param peers_in: the folder for the peers' environments; None: no peers.
    """
    rounds = rounds or (QUICK_ROUNDS if quick else ROUNDS)
    asked = list(bench.measures(quick))
    begun = os.getloadavg()[0]
    with ExitStack() as running:
        found = [running.enter_context(each) for each in bench.contenders(running, peers_in)]
        for group in by_base(asked):
            print(f"{bench.name}: {group[0].title} …", file=sys.stderr, flush=True)
            for number in range(max(each.rounds or rounds for each in group)):
                in_turn = found if number % 2 == 0 else found[::-1]
                for together in by_place(each for each in group if number < (each.rounds or rounds)):
                    for contender in in_turn:
                        if any(contender.due(each, number, rounds) for each in together):
                            contender.measure(together[0])
    return Found(
        at=time.strftime("%Y-%m-%d", time.gmtime()),
        machine=_machine(),
        load=(round(begun, 1), round(os.getloadavg()[0], 1)),
        about=bench.about,
        entrants=tuple(each.entrant() for each in found),
        measures=tuple(msgspec.structs.replace(each, rounds=each.rounds or rounds) for each in asked),
        samples=tuple(sample for each in found for sample in each.samples()),
        plots=bench.plots,
    )


def _machine() -> str:
    cores, python = os.cpu_count(), platform.python_version()
    return f"{platform.system()} {platform.machine()}, {cores} cores, Python {python}"
