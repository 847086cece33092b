"""Contenders that are real processes: asked in rounds, and named where they cannot."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from bench.suite import pace
from bench.suite.contest import Contender, hold
from bench.suite.environment import CannotInstallError, environment
from bench.suite.measure import Base, Bench, Measure

CODE = """
import json, os, sys, time
from bench.suite.contender import Spent, serve
log = open(sys.argv[1], "a")

def told(size):
    log.write(f"{sys.argv[2]}{size} "); log.flush()
    return {"seconds": 0.001 * size, "cpu": 0.001 * size}

def slow(size, seconds=0.3):
    ends = time.process_time() + seconds
    while time.process_time() < ends: pass
    return told(size)

made = []

def makes(size):
    return told(size) if made else made.append(slow(size, 1.0)) or made[0]

def fails(size):
    raise ValueError("not of this size")

def noisy(size):
    print("a library's own words")
    return {"seconds": 1.0, "cpu": 1.0}

def ends(size):
    sys.exit("out of memory")

def closes(size):
    os.closerange(3, 64)  # its answers' end among them
    sys.stdin.read()  # its words come when nobody waits for an answer any more
    os.write(2, b"of a full disk")
    os._exit(1)

def hangs(size):
    time.sleep(600)

CASES = {
    "told": told,
    "slow": slow,
    "makes": makes,
    "fails": fails,
    "noisy": noisy,
    "ends": ends,
    "closes": closes,
    "hangs": hangs,
}
serve("7", CASES)
"""


def contender(tmp_path: Path, name: str) -> Contender:
    return Contender(name, [sys.executable, "-c", CODE, str(tmp_path / "log"), name])


def bench(tmp_path: Path, *measures: Measure) -> Bench:
    def contenders(_: ExitStack, __: Path | None) -> Iterator[Contender]:
        yield contender(tmp_path, "a")
        yield contender(tmp_path, "b")
        yield Contender("c", ["/nowhere/at/all"])

    return Bench("small", "", lambda _: measures, contenders)


@pytest.fixture(autouse=True)
def quick_pace(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is slow here is slow in a test already."""
    monkeypatch.setattr(pace, "PACE_S", 0.1)
    monkeypatch.setattr(pace, "LEAST_ASKS", 2)


def test_rounds_are_interleaved_and_every_second_one_goes_the_other_way(tmp_path: Path) -> None:
    measures = (
        Measure("told", 1, "one"),
        Measure("told", 2, "two", rounds=1),
        Measure("told", 1, "cpu", key="cpu"),
    )
    found = hold(bench(tmp_path, *measures), rounds=2)
    assert (tmp_path / "log").read_text().split() == ["a1", "b1", "b1", "a1", "a2", "b2"]
    sample = found.sample("a", "told", 1)
    assert sample is not None
    assert sample.rounds == ({"seconds": 0.001, "cpu": 0.001},) * 2
    assert [each.rounds for each in found.measures] == [2, 1, 2]


def test_what_is_held_against_one_another_has_its_rounds_together(tmp_path: Path) -> None:
    measures = (
        Measure("told", 1, "one", among=("a",)),
        Measure("told", 2, "two", among=("a",)),
        Measure("told", 3, "three", among=("a",), base=Base(size=1)),
    )
    hold(bench(tmp_path, *measures), rounds=2)
    assert (tmp_path / "log").read_text().split() == ["a1", "a3", "a1", "a3", "a2", "a2"]


def test_who_takes_long_is_asked_in_some_rounds_but_for_a_measure_that_says_how_many(tmp_path: Path) -> None:
    slow = Measure("slow", 1, "slow", among=("b",))
    counted = Measure("slow", 2, "so many", among=("b",), rounds=4)
    found = hold(bench(tmp_path, slow, counted, Measure("told", 1, "one")), rounds=4)
    assert [(each.case, each.contender, len(each.rounds)) for each in found.samples] == [
        ("told", "a", 4),
        ("slow", "b", 2),
        ("slow", "b", 4),
        ("told", "b", 4),
    ]


def test_what_only_the_first_ask_had_to_make_keeps_nobody_from_the_pace(tmp_path: Path) -> None:
    found = hold(bench(tmp_path, Measure("makes", 1, "makes", among=("a",))), rounds=12)
    assert [len(each.rounds) for each in found.samples] == [1 + 6], "the second is in the middle"


def test_one_that_cannot_be_started_is_named_and_the_others_run(tmp_path: Path) -> None:
    found = hold(bench(tmp_path, Measure("told", 1, "one")), rounds=1)
    a, b, c = found.entrants
    assert (a.version, a.cannot) == (b.version, b.cannot) == ("7", "")
    assert c.cannot.startswith("cannot be started: ")
    assert found.sample("c", "told", 1) is None


def test_only_those_are_asked_that_a_measure_is_among(tmp_path: Path) -> None:
    found = hold(bench(tmp_path, Measure("told", 1, "one", among=("b",))), rounds=1)
    assert [each.contender for each in found.samples] == ["b"]


@pytest.mark.parametrize(
    ("case", "why"),
    [
        ("fails", "ValueError: not of this size"),
        ("ends", "its process ended: out of memory"),
        ("closes", "its process ended: of a full disk"),
    ],
)
def test_a_case_that_fails_is_named_and_not_asked_again(tmp_path: Path, case: str, why: str) -> None:
    found = hold(bench(tmp_path, Measure(case, 1, "one"), Measure("told", 1, "then")), rounds=2)
    sample = found.sample("a", case, 1)
    assert sample is not None
    assert (sample.rounds, sample.cannot) == ((), why)
    then = found.sample("a", "told", 1)
    assert then is not None
    assert (len(then.rounds), then.cannot) == (2, ""), "one that has ended is started again"


def test_one_that_does_not_answer_in_time_is_ended_and_named(tmp_path: Path) -> None:
    with contender(tmp_path, "a") as asked:
        asked.answer_s = 0.1
        asked.measure(Measure("hangs", 1, "one"))
        asked.answer_s = 60
        asked.measure(Measure("told", 1, "then"))
    assert asked.left_out == {("hangs", 1): "did not answer within 0.1 s"}
    assert len(asked.found["told", 1]) == 1, "it is started again"


def test_what_a_library_prints_is_no_answer(tmp_path: Path) -> None:
    with contender(tmp_path, "a") as asked:
        asked.measure(Measure("noisy", 1, "one"))
    assert asked.found["noisy", 1] == [{"seconds": 1.0, "cpu": 1.0}]


def test_what_would_take_too_long_is_left_out_with_the_reckoning(tmp_path: Path) -> None:
    with contender(tmp_path, "a") as asked:
        asked.measure(Measure("told", 100, "some", bounded=True))
        asked.measure(Measure("told", 1_000, "more", bounded=True))
    assert ("told", 100) in asked.found
    assert asked.left_out["told", 1_000] == "would take 100 s"


def test_an_environment_that_cannot_be_made_says_why(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    with pytest.raises(CannotInstallError, match="no virtual environment can be made in"):
        environment(tmp_path / "taken" / "deeper", "anything")
