"""What a contender counts for itself."""

from __future__ import annotations

import subprocess
import sys

from bench.suite.contender import ENOUGH_CPU_S, Spent, processor, repeated


def burn(seconds: float) -> None:
    begun = processor()
    while processor() - begun < seconds:
        pass


def test_it_is_repeated_until_it_took_enough_and_told_for_each() -> None:
    runs = 0

    def action() -> None:
        nonlocal runs
        runs += 1
        burn(ENOUGH_CPU_S / 4)

    found = repeated(action, 10)
    assert runs >= 4
    assert found["cpu"] >= ENOUGH_CPU_S / 40
    assert found["seconds"] > 0


def test_what_runs_outside_of_the_counting_is_not_counted() -> None:
    spent = Spent()
    burn(0.05)
    with spent.counting(1):
        pass
    assert spent.figures()["cpu"] < 0.05
    assert not spent.enough


def test_a_process_that_was_waited_for_counts() -> None:
    before = processor()
    subprocess.run([sys.executable, "-c", "sum(range(3_000_000))"], check=True)
    assert processor() - before > 0.01
