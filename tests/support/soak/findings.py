"""What must not be, as pure functions of what was seen: each finding with how long it may stand.

Seen are the project's file (`record`), the programs' journal, and the living processes that carry a run's
mark. Design, section 8; a bound of 0 is for what must never be at all.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from support.soak.program import STATED
from support.soak.record import Record, Row

START_S = 60.0
"""A new host starts far more often than this, and with it what a dead one left is closed."""
KEEPER_S = 20.0
"""How long a keeper may take to end the tree of a host that died: grace, proof, and a busy machine."""
PROBE_S = 20.0
"""No lease of a probe is shorter than this; after it a second probe is right."""


class Finding(NamedTuple):
    """``words`` name it and stay the same for as long as it stands; ``bound_s`` is how long it may."""

    words: str
    bound_s: float = 0.0


class Marked(NamedTuple):
    """A living process that carries a run's mark. ``struck``: the killer had a hand in that run's tree."""

    pid: int
    run: str
    words: str
    struck: bool


Alive = Callable[[Any], bool]
"""Whether the owner in a row (`owner_identity.Owner` as JSON) lives."""


def writers(journal: Iterable[Row]) -> Iterator[Finding]:
    for line in journal:
        if line["what"] == "second writer":
            yield Finding(f"two writers at once: {line}")


def repeated(journal: Iterable[Row], excused: Mapping[str, int]) -> Iterator[Finding]:
    """``excused`` are the deeds that an operator said had left nothing behind, and how often."""
    effects = Counter(line["key"] for line in journal if line["what"] == "effect")
    for key, times in effects.items():
        if times > 1 + excused.get(key, 0):
            yield Finding(f"done {times} times: {key}")


def probes(record: Record, alive: Alive) -> Iterator[Finding]:
    running: defaultdict[tuple[str, int], list[str]] = defaultdict(list)
    for row in record.of("attempts"):
        probing = row["status"] == "running" and row["probe"] and not row["confirmed"]
        if probing and record.at - row["started"] < PROBE_S and alive(row["owner"]):
            running[row["pool"], row["generation"]].append(row["id"])
    for (pool, generation), ids in running.items():
        if len(ids) > 1:
            yield Finding(f"{len(ids)} probes at once of {pool}, generation {generation}: {ids}")


def left_open(record: Record, alive: Alive) -> Iterator[Finding]:
    """What belongs to dead owners, and what nobody closed."""
    for row in record.of("attempts"):
        if row["status"] == "running" and not alive(row["owner"]):
            yield Finding(f"open row of a dead owner: attempt {row['id']} of run {row['run_id']}", START_S)
    for row in record.of("leases"):
        if not alive(row["owner"]):
            yield Finding(f"scope lease of a dead owner: {row['id']} of run {row['run_id']}", START_S)
        elif row["left"]:
            yield Finding(f"scope still held by what is left of run {row['run_id']}: {row['left']}", START_S)
    for row in record.of("requests"):
        if not alive(row["owner"]) and not alive(row["client"]):
            yield Finding(f"request that nobody waits for: {row['id']}, {row['kind']}", START_S)
    for row in record.of("asks"):
        if row["answer"] is None and record.at > row["deadline"]:
            yield Finding(f"ask open beyond its deadline: {row['id']} of run {row['run_id']}", START_S)


def orphans(record: Record, marked: Iterable[Marked], alive: Alive) -> Iterator[Finding]:
    """Processes of runs that have ended, or whose owner is dead."""
    attempts = record.of("attempts")
    known = {row["run_id"] for row in attempts}  # others may be at work on this machine
    live = {row["run_id"] for row in attempts if row["status"] == "running" and alive(row["owner"])}
    for each in marked:
        if each.run in known - live:
            yield Finding(
                f"process of a run that nobody owns: pid {each.pid} of run {each.run}: {each.words}",
                START_S if each.struck else KEEPER_S,
            )


def overspent(record: Record) -> Iterator[Finding]:
    for row in record.of("plans"):
        ledger = row["ledger"]
        budget = ledger["budget"]
        for limit, spent in (("children", ledger["children"]), ("tokens", ledger["spent"]["tokens"])):
            if budget.get(limit) is not None and spent > budget[limit]:
                yield Finding(f"plan {row['name']} spent {spent} of {budget[limit]} {limit}")


def overdrawn(record: Record, journal: Iterable[Row], estimate: int) -> Iterator[Finding]:
    """Budgets that do not hold for what really ran, whatever the ledger says. Each attempt was reckoned at
    ``estimate`` tokens at least, and one that says of itself that it did nothing costs none."""
    begun = [line for line in journal if line["what"] == "begun"]
    for row in record.of("plans"):
        budget = row["ledger"]["budget"]
        its = [line for line in begun if line["key"].startswith(f"{row['name']}/")]
        children = len({line["key"] for line in its})
        tokens = estimate * sum(line["end"] not in STATED for line in its)
        for limit, used in (("children", children), ("tokens", tokens)):
            if budget.get(limit) is not None and used > budget[limit]:
                yield Finding(f"plan {row['name']} ran {used} {limit}, of {budget[limit]}")


def lines_whole(name: str, content: bytes) -> Iterator[Finding]:
    """Of a log that several processes write, each line is a document."""
    for number, line in enumerate(content.split(b"\n")[:-1]):
        try:
            json.loads(line)
        except ValueError:
            yield Finding(f"{name}, line {number + 1} is torn: {line[:200]!r}")


def untold(
    record: Record, before: Iterable[Row], after: Iterable[Row], excused: Mapping[str, int]
) -> Iterator[Finding]:
    """Mutable steps whose record says otherwise than what they did. The journal ``before`` the record was
    read has all that the record may not deny, and that from ``after`` it all that it may claim."""
    earlier, later = (
        Counter(line["key"] for line in journal if line["what"] == "effect") for journal in (before, after)
    )
    names = {row["id"]: row["name"] for row in record.of("plans")}
    for row in record.of("steps"):
        if not row["mutable"] or row["resolved"] or row["status"] == "running" or row["plan"] not in names:
            continue
        key = f"{names[row['plan']]}/{row['step'][1:]}"
        outcome = row["outcome"] or {}
        if row["status"] == "done" and not later[key]:
            yield Finding(f"step told as done that did nothing: {key}")
        if certainly_nothing(row["status"], outcome) and earlier[key] > excused.get(key, 0):
            yield Finding(f"step told as having done nothing, that did: {key}: {json.dumps(outcome)[:600]}")


def certainly_nothing(status: str, outcome: Mapping[str, Any]) -> bool:
    """Whether the record says that there was no effect."""
    if status == "refused":
        return True
    failure = outcome.get("failure") or {}
    return status == "failed" and failure.get("outcome") == "known_failed"


def changed_ends(before: Mapping[str, Row], record: Record) -> Iterator[Finding]:
    """Ended attempts that read otherwise now: an end is final."""
    for row in record.of("attempts"):
        old = before.get(row["id"])
        if old is None:
            continue
        for column in ("status", "outcome", "category", "ended", "started", "owner"):
            if old[column] != row[column]:
                yield Finding(f"end of {row['id']} changed: {column} {old[column]!r} -> {row[column]!r}")


def settings(text: str, foreign: Mapping[str, Any]) -> Iterator[Finding]:
    try:
        document = json.loads(text)
    except ValueError as error:
        yield Finding(f"settings half written: {error}: {text[:200]!r}")
        return
    kept = {key: value for key, value in document.items() if key != "model_routing"}
    if list(kept.items()) != list(foreign.items()):
        yield Finding(f"what stood beside the policy in the settings changed: {kept}")
