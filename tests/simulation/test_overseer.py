# ruff: noqa: S311  # chance here must be repeatable, not secret
"""Days of ticks with random faults, judged by a reckoning that shares nothing with the overseer's own."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from custodes.overseer.incident import Incident
from custodes.overseer.probe import Answer
from support.overseen import GOOD, REFUSED, TIMEOUT, World, status, world
from support.overseer import config

NAMES = ("a", "b", "c")
ROWS = {
    "one": {"primary": "a/x", "fallbacks": ["b/y", "c/z"]},
    "two": {"primary": "b/y", "fallbacks": ["c/z", "a/x"]},
    "three": {"primary": "c/z", "fallbacks": ["a/x"]},
}
COOLDOWN_S = 1_800
ILL: list[list[Answer]] = [
    [status(429)] * 20,
    [status(429, headers={"retry-after": "3000"})] * 3,
    [status(402)] * 30,
    [status(403)],
    [status(429)],
    [REFUSED] * 12,
    [status(503)] * 2,
    [status(500), GOOD] * 10,
    [TIMEOUT] * 8,
    [TIMEOUT, REFUSED] * 6,
    [status(404)] * 6,
    [status(429), GOOD, GOOD] * 6,
]


class Reckoning:
    """What a person would say who saw the answers alone."""

    def __init__(self) -> None:
        self.given: dict[str, list[Answer]] = {name: [] for name in NAMES}

    def gone(self, name: str) -> bool:
        """Limited or refused just now, or down three times in a row."""
        last = self.given[name][-3:]
        if last and last[-1].status in (402, 403, 429):
            return True
        return len(last) == 3 and all(_down(each) for each in last)

    def healthy(self, name: str) -> bool:
        return len(self.given[name]) >= 3 and all(each.status == 200 for each in self.given[name][-3:])


def _down(answer: Answer) -> bool:
    return answer.trouble == "refused" or (answer.status or 0) >= 500


async def live(w: World, seed: int, ticks: int) -> None:
    draw = random.Random(seed)
    scripts: dict[str, list[Answer]] = {name: [] for name in NAMES}
    reckoning = Reckoning()
    moved_at: dict[str, float] = {}
    by_hand: set[str] = set()
    seen = 0
    for number in range(ticks):
        if draw.random() < 0.02:
            await w.successor().start()
        if draw.random() < 0.005:
            profile = draw.choice(list(ROWS))
            model = str(ROWS[profile]["primary"]) if profile in by_hand else "their/own"
            w.shelf.set_by_hand(profile, model)
            by_hand ^= {profile}
            moved_at.pop(profile, None)
        before = len(w.asked)
        for name in NAMES:
            if not scripts[name] and draw.random() < 0.03:
                scripts[name] = list(draw.choice(ILL))
            w.answers[name] = scripts[name][0] if scripts[name] else GOOD
        standing = {profile: w.model(profile) for profile in ROWS}
        now = w.seconds
        await w.tick(300)
        for _, name, _ in w.asked[before:]:
            reckoning.given[name].append(w.answers[name])
            if scripts[name]:
                scripts[name].pop(0)
        asked = {name for _, name, _ in w.asked[before:]}
        for profile, old, _ in w.shelf.switches[seen:]:
            if reckoning.healthy(old[0]) and profile in moved_at:
                apart = now - moved_at[profile]
                assert apart >= COOLDOWN_S, f"tick {number}: {profile} flapped after {apart} s"
            moved_at[profile] = now
        seen = len(w.shelf.switches)
        for profile, row in ROWS.items():
            names = {str(each)[0] for each in (row["primary"], *row["fallbacks"])}
            here = w.model(profile)
            if profile in by_hand:
                assert here == standing[profile] == "their/own", f"tick {number}: a hand-made model was moved"
            elif reckoning.gone(here[0]):
                better = {name for name in names & asked if reckoning.healthy(name)}
                assert not better, f"tick {number}: {profile} is on {here}, and {better} are healthy"


def single(told: list[tuple[str, Incident]]) -> None:
    """No cause is opened again before it was resolved."""
    opened: set[str] = set()
    for event, incident in told:
        if event == "opened" or (event == "moved" and incident.status == "active"):
            assert event == "moved" or incident.cause not in opened, incident.cause
            opened.add(incident.cause)
        elif event == "resolved":
            opened.discard(incident.cause)


def simulated() -> dict[str, object]:
    return {"fallback_matrix": ROWS, "providers": {"a": {"quota_reset": "daily 06:00"}}}


@pytest.mark.trio
@pytest.mark.parametrize("seed", [1])
async def test_a_day_of_random_faults_keeps_every_promise(tmp_path: Path, seed: int) -> None:
    async with world(tmp_path, config(**simulated())) as w:
        await live(w, seed, 288)
        single(w.told)
        assert {method for _, _, method in w.asked} == {"GET"}
        assert w.shelf.switches, "the seed had nothing to do"


@pytest.mark.full
@pytest.mark.trio
@pytest.mark.parametrize("seed", range(100, 108))
async def test_a_week_of_random_faults_keeps_every_promise(tmp_path: Path, seed: int) -> None:
    async with world(tmp_path, config(**simulated())) as w:
        await live(w, seed, 2_016)
        single(w.told)
        assert {method for _, _, method in w.asked} == {"GET"}
        assert len(w.shelf.switches) > 10
