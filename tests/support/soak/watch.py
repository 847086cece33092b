"""Looks again and again for what must not be, and tells what stands longer than it may."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Iterator
from typing import Any

import anyio
import anyio.to_thread
import msgspec
import psutil

from custodes.supervision.record.owner_identity import Owner, proven_dead
from support.soak import findings
from support.soak.crew import Crew
from support.soak.findings import Finding, Marked
from support.soak.plans import ESTIMATE
from support.soak.project import FOREIGN
from support.soak.record import Record, Row, integrity, look

EVERY_S = 1.5
LOGS = ("supervisor.log", "extensions-audit.log")
RUN = "CUSTODES_RUN"


class Watch:
    def __init__(self, crew: Crew) -> None:
        self._crew = crew
        self._since: dict[str, float] = {}
        self._told: set[str] = set()
        self._ended: dict[str, Row] = {}
        self._lines: list[Row] = []
        self._read = 0
        self._fencing = 0
        self.looks = 0

    async def work(self) -> None:
        while not self._crew.over:
            await anyio.to_thread.run_sync(self.look)
            await anyio.sleep(EVERY_S)

    @property
    def standing(self) -> bool:
        """Whether the last look found anything at all."""
        return bool(self._since)

    def look(self, *, patience: bool = True) -> None:
        """Look once. Without patience nothing may stand at all."""
        self.looks += 1
        found = {each.words: each for each in self._found()}
        now = time.monotonic()
        self._since = {words: self._since.get(words, now) for words in found}
        for words, since in self._since.items():
            bound = found[words].bound_s if patience else 0.0
            if now - since >= bound and words not in self._told:
                self._told.add(words)
                self._crew.fault(f"{words} (for {now - since:.0f} s)")

    def _found(self) -> Iterator[Finding]:
        place = self._crew.place
        yield from findings.settings(place.settings.read_text(), FOREIGN)
        before = list(self._journal())
        for name in LOGS:
            if (log := place.settings.with_name(name)).exists():
                yield from findings.lines_whole(name, log.read_bytes())
        marked = list(_marked(self._crew.struck, str(place.folder)))
        try:
            record = look(place.database)
            if self.looks % 15 == 1 and record is not None:
                for wrong in integrity(place.database):
                    yield Finding(f"the database is damaged: {wrong}")
        except sqlite3.Error as error:
            if "no such table" not in str(error):  # the file is being made
                yield Finding(f"the record cannot be read: {error}", 10.0)
            return
        if record is None:
            return
        journal = self._journal()
        excused = self._excused(record)
        yield from findings.writers(journal)
        yield from findings.repeated(journal, excused)
        yield from findings.probes(record, _alive)
        yield from findings.left_open(record, _alive)
        yield from findings.orphans(record, marked, _alive)
        yield from findings.overspent(record)
        yield from findings.overdrawn(record, before, ESTIMATE)
        yield from findings.untold(record, before, journal, excused)
        yield from findings.changed_ends(self._ended, record)
        yield from self._rising(record)
        self._ended |= {row["id"]: row for row in record.of("attempts") if row["status"] != "running"}

    def _rising(self, record: Record) -> Iterator[Finding]:
        last = record.of("fencing")[0]["last"]
        if last < self._fencing:
            yield Finding(f"the fencing number went back from {self._fencing} to {last}")
        self._fencing = last

    def _excused(self, record: Record) -> dict[str, int]:
        """By a deed's key, of what was counted by plan run and step."""
        names = {row["id"]: row["name"] for row in record.of("plans")}
        found = {}
        for place, times in self._crew.excused.items():
            run, _, step = place.partition("/")
            if run in names:
                found[f"{names[run]}/{step[1:]}"] = times
        return found

    def _journal(self) -> list[Row]:
        file = self._crew.place.journal / "journal"
        if file.exists():
            with file.open("rb") as lines:
                lines.seek(self._read)
                self._lines += (json.loads(line) for line in lines)
                self._read = lines.tell()
        return self._lines


def _alive(owner: Any) -> bool:
    return not proven_dead(msgspec.convert(owner, Owner))


def _marked(struck: set[str], folder: str) -> Iterator[Marked]:
    for process in psutil.process_iter():
        try:
            environment = process.environ()
            run = environment.get(RUN)
            if run is None or process.status() == psutil.STATUS_ZOMBIE:
                continue
            words = " ".join(process.cmdline())
            # A keeper carries the mark alone, and a tool what its program has: those of another soak differ.
            if folder in environment.get("XDG_CONFIG_HOME", folder):
                yield Marked(process.pid, run, words[-160:], run in struck)
        except psutil.Error:
            continue
