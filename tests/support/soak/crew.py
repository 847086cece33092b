"""What the surfaces of one soak share: place, seed, processes, what was done, and what was wrong."""

from __future__ import annotations

import itertools
import json
import random
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from subprocess import DEVNULL
from typing import Any, NamedTuple

import anyio
import anyio.abc

from support.soak.project import Place

BOUND_S = 150.0
"""How long any one command may take, in seconds, stopped for a while or not."""
TROUBLE = ("Traceback (most", "ResourceWarning", "RuntimeWarning", "DeprecationWarning", "never awaited")
"""What no process of ours may say on its standard error."""


class Ended(NamedTuple):
    """``hit``: it was signalled meanwhile. ``document`` is its JSON; None where it said none."""

    code: int
    document: Any
    error: str
    hit: bool


class Crew:
    def __init__(self, place: Place, seed: int, seconds: float) -> None:
        self.place = place
        self.seed = seed
        self.begun = time.monotonic()
        self.ends_at = self.begun + seconds
        self.faults: list[str] = []
        self.done: Counter[str] = Counter()
        self.hits: dict[int, str] = {}
        """Which processes were signalled, and how: what becomes of them is the killer's doing."""
        self.struck: set[str] = set()
        """Runs whose own keeper or program was signalled."""
        self.excused: Counter[str] = Counter()
        """Deeds that an operator said had left nothing behind: so they may be done once more."""
        self.immortal: set[int] = set()
        """Processes that the killer spares, to see what they grow to."""
        self._numbers = itertools.count()

    def chance(self, name: str) -> random.Random:
        """A surface's own choices."""
        return random.Random(f"{self.seed}/{name}")  # noqa: S311 - a simulation's

    @property
    def over(self) -> bool:
        return time.monotonic() >= self.ends_at

    @property
    def age(self) -> float:
        """Seconds since it began."""
        return time.monotonic() - self.begun

    def fault(self, words: str) -> None:
        line = f"[{self.age:7.1f} s] {words}"
        self.faults.append(line)
        print(f"FAULT {line}", flush=True)

    async def start(self, kind: str, *words: str, immortal: bool = False) -> tuple[anyio.abc.Process, Path]:
        """Start ``cos`` with these words; what it prints goes to ``PATH.out`` and ``PATH.err``."""
        log = self.place.logs / f"{next(self._numbers):06d}-{kind}"
        with log.with_suffix(".out").open("wb") as out, log.with_suffix(".err").open("wb") as err:
            process = await anyio.open_process(
                [self.place.cos, *words],
                stdin=DEVNULL,
                stdout=out,
                stderr=err,
                cwd=self.place.project,
                env=self.place.environment,
                # The system hangs up on a group that loses its shell while a member of it is stopped.
                start_new_session=True,
            )
        if immortal:
            self.immortal.add(process.pid)
        return process, log

    async def cos(self, kind: str, *words: str) -> Ended:
        """Run ``cos`` with these words to its end and judge how it ended. Its document is its last line."""
        process, log = await self.start(kind, *words, "--format", "json")
        try:
            with anyio.move_on_after(BOUND_S) as late:
                await process.wait()
            if late.cancelled_caught:
                self.fault(f"`cos {' '.join(words)}` did not end within {BOUND_S} s (pid {process.pid})")
        finally:
            await self.ended(process)
        return self._judged(process, log, words)

    async def ended(self, process: anyio.abc.Process) -> None:
        """End it where it has not ended, and give back what it holds here."""
        with anyio.CancelScope(shield=True), suppress(ProcessLookupError):
            if process.returncode is None:
                process.kill()
                self.hits.setdefault(process.pid, "ended by the soak")
            await process.aclose()

    def _judged(self, process: anyio.abc.Process, log: Path, words: tuple[str, ...]) -> Ended:
        code, hit = process.returncode or 0, process.pid in self.hits
        said, error = (log.with_suffix(each).read_text(errors="replace") for each in (".out", ".err"))
        command = f"`cos {' '.join(words)}`"
        document = None
        if not hit:
            if code not in (0, 1):
                self.fault(f"{command} ended with {code}: {error[-400:]}")
            try:
                document = json.loads(said)
            except ValueError:
                self.fault(f"{command} ({code}) printed no document: {said[-200:]!r} {error[-400:]!r}")
        self.done[f"{log.name.split('-', 1)[1]}: {'hit' if hit else code}"] += 1
        if isinstance(document, dict) and isinstance(told := document.get("error"), dict):
            self.done[f"error {told.get('kind')}: {told.get('message', '')[:60]}"] += 1
            if told.get("kind") == "internal":
                self.fault(f"{command} met a fault of ours: {told}")
        if not self.troubled(log, command):
            for each in (".out", ".err"):
                log.with_suffix(each).unlink()
        return Ended(code, document, error, hit)

    def troubled(self, log: Path, command: str) -> bool:
        """Whether it said what no process may say; then it is told."""
        error = log.with_suffix(".err").read_text(errors="replace")
        found = next((each for each in TROUBLE if each in error), None)
        if found is not None:
            self.fault(f"{command} said on stderr ({log.name}.err): {error[error.index(found) :][-1500:]}")
        return found is not None
