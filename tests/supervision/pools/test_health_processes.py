"""Several real processes over one file: they race, they burst, they are killed."""

from __future__ import annotations

import random
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

import anyio
import pytest

from custodes.store import Database
from custodes.supervision.pools.breaker import Pool
from custodes.supervision.pools.pool_table import load_pools, save_pools
from custodes.supervision.record import records
from custodes.supervision.record.clock import Deadline, now
from custodes.supervision.record.recovery import close_dead_owners
from custodes.supervision.record.schema import MIGRATIONS

TESTS = Path(__file__).parents[2]


class Worker:
    """One process that runs ``support.health_worker``."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process

    def tell(self, line: str) -> None:
        assert self.process.stdin is not None
        print(line, file=self.process.stdin, flush=True)

    def said(self) -> list[str]:
        assert self.process.stdout is not None
        return self.process.stdout.readline().split()

    def ask(self, line: str) -> list[str]:
        self.tell(line)
        return self.said()


@contextmanager
def workers(path: Path, count: int) -> Iterator[list[Worker]]:
    with ExitStack() as stack:
        group = []
        for number in range(count):
            arguments = [
                sys.executable,
                "-m",
                "support.health_worker",
                str(path),
                ("asyncio", "trio")[number % 2],
            ]
            process = stack.enter_context(
                subprocess.Popen(
                    arguments, cwd=TESTS, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
                )
            )
            stack.callback(process.kill)
            group.append(Worker(process))
        for worker in group:
            assert worker.said() == ["ready"]
        yield group


def said_together(group: list[Worker], line: str) -> list[list[str]]:
    for worker in group:
        worker.tell(line)
    return [worker.said() for worker in group]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / ".coding-os" / "custodes.db"


def stored(path: Path) -> dict[str, Pool]:
    async def read() -> dict[str, Pool]:
        database = await Database.open(path, MIGRATIONS)
        try:
            return await database.read(load_pools)
        finally:
            await database.aclose()

    return anyio.run(read)


def make_due(path: Path, *names: str) -> None:
    """Pools whose deadline has just passed."""

    async def write() -> None:
        moment = now()
        over = Deadline(moment.boot, moment.uptime - 1, moment.wall - 1, 300)
        database = await Database.open(path, MIGRATIONS)
        try:
            pools = [Pool(name=name, generation=1, failure_count=1, deadline=over) for name in names]
            await database.write(lambda connection: save_pools(connection, pools))
        finally:
            await database.aclose()

    anyio.run(write)


def test_b2_sixteen_tasks_in_each_of_four_processes_report_one_limit(path: Path) -> None:
    with workers(path, 4) as group:
        assert said_together(group, "admit one:a 16") == [["16", "0"]] * 4
        assert said_together(group, "settle") == [["settled"]] * 4
    pool = stored(path)["one:a"]
    assert pool.failure_count == 1
    assert pool.generation == 1
    assert pool.deadline is not None
    assert pool.deadline.length == 300


def test_b4_two_hundred_tasks_in_each_of_four_processes_get_one_probe(path: Path) -> None:
    make_due(path, "one:a")
    with workers(path, 4) as group:
        answers = said_together(group, "admit one:a 200")
    assert sorted(answer[:2] for answer in answers) == [["0", "0"]] * 3 + [["1", "1"]]


def test_b6_a_killed_probe_frees_its_lease_at_once_for_another_process(path: Path) -> None:
    make_due(path, "one:a")
    with workers(path, 2) as (first, second):
        assert first.ask("admit one:a") == ["1", "1"]
        assert second.ask("admit one:a")[:2] == ["0", "0"]
        first.process.kill()
        first.process.wait()
        assert second.ask("admit one:a") == ["1", "1"]


def test_b13_a_cooldown_outlives_kill_9_with_what_is_left_of_it(path: Path) -> None:
    with workers(path, 1) as (first,):
        first.ask("admit one:a")
        before = time.monotonic()
        first.ask("settle 40")
        after = time.monotonic()
        first.process.kill()
    with workers(path, 1) as (second,):
        at_most = 40 - (time.monotonic() - after) + 1  # told in whole seconds, rounded up
        admitted, _, left = second.ask("admit one:a")
        at_least = 40 - (time.monotonic() - before)
    assert admitted == "0"
    assert at_least <= int(left) <= at_most


def test_b15_while_another_process_writes_an_ask_is_refused_as_unavailable(path: Path) -> None:
    with workers(path, 2) as (first, second):
        second.ask("admit one:cooling")
        second.ask("settle 500")
        first.ask("hold")
        assert second.ask("admit one:a") == ["0", "0", "unavailable"]
        assert second.ask("admit one:cooling")[0] == "0"
        first.process.kill()
        first.process.wait()
        assert second.ask("admit one:a") == ["1", "0"]


def test_b19_another_process_sees_an_opened_pool_at_its_next_decision(path: Path) -> None:
    with workers(path, 2) as (first, second):
        assert second.ask("admit one:a") == ["1", "0"]
        first.ask("admit one:a")
        first.ask("settle 500")
        admitted, _, left = second.ask("admit one:a")
        assert admitted == "0"
        assert 400 < int(left) <= 500


@pytest.mark.parametrize(
    "rounds", [pytest.param(10, id="few"), pytest.param(200, id="many", marks=pytest.mark.full)]
)
def test_in_a_race_of_eight_processes_each_round_has_one_winner_and_no_error(path: Path, rounds: int) -> None:
    make_due(path, *(f"one:{number}" for number in range(rounds)))
    with workers(path, 8) as group:
        for number in range(rounds):
            answers = said_together(group, f"admit one:{number} 5")
            assert sorted(answer[:2] for answer in answers) == [["0", "0"]] * 7 + [["1", "1"]]
            assert all("unavailable" not in answer for answer in answers), "an operational error"


@pytest.mark.parametrize(
    "runs", [pytest.param(4, id="few"), pytest.param(200, id="many", marks=pytest.mark.full)]
)
def test_kill_9_at_any_moment_loses_nothing_that_was_acknowledged(path: Path, runs: int) -> None:
    chance = random.Random(runs)  # noqa: S311  # the seed replays it
    for run in range(runs):
        with workers(path, 1) as (worker,):
            opened = 0
            for number in range(chance.randrange(4)):
                assert worker.ask(f"admit one:{run}-{number}") == ["1", "0"]
                assert worker.ask("settle 600") == ["settled"]
                opened += 1
            worker.tell(f"admit two:{run} 30")
            time.sleep(chance.random() * 0.02)  # the random moment itself; nothing waits for it
            worker.process.kill()
        with closing(sqlite3.connect(path)) as connection:
            assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        pools = stored(path)
        assert all(pools[f"one:{run}-{number}"].failure_count == 1 for number in range(opened))
    anyio.run(nothing_is_left_open, path)


async def nothing_is_left_open(path: Path) -> None:
    database = await Database.open(path, MIGRATIONS)
    try:
        await close_dead_owners(database, now())
        assert await database.read(records.running) == []
    finally:
        await database.aclose()
