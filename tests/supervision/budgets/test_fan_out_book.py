"""A fan-out's budget on record: seen from outside while it runs, and once it has ended."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest

import custodes
from custodes.adapters.port import DispatchRequest, DispatchResult, Progress, ProgressSink, Usage
from custodes.store import Connection, Database
from custodes.supervision.budgets.account import Account
from custodes.supervision.budgets.budget import Amount, Ledger
from custodes.supervision.budgets.fan_out_book import FanOutBook
from custodes.supervision.budgets.fan_out_table import FanOutRow, fan_outs_of, prune_fan_outs, save_fan_out
from custodes.supervision.budgets.fan_out_view import FanOutAccount, account_of
from custodes.supervision.plans.plan import Plan, Step
from custodes.supervision.plans.plan_run import run_plan
from custodes.supervision.record.record_file import RecordFile
from custodes.supervision.record.records import Group
from custodes.supervision.record.schema import MIGRATIONS
from custodes.supervision.record.trace import trace
from custodes.supervision.work import Budget, Work
from support import scripted
from support.full_disk import FullDisk

LOOK = Work(role="reviewer", prompt="look", estimate_tokens=30)


async def hang(_: DispatchRequest, __: ProgressSink) -> DispatchResult:
    await anyio.sleep_forever()
    raise AssertionError


async def until(project: Path, seen: Callable[[FanOutAccount], bool]) -> FanOutAccount:
    """The account, once it is as another process is to see it."""
    async with RecordFile(project) as file:
        with anyio.fail_after(20):
            while True:
                for account in await file.fan_outs("c", time.time()):
                    if seen(account):
                        return account


@pytest.mark.anyio
async def test_what_is_reserved_and_spent_is_seen_from_outside_while_it_runs(
    tmp_path: Path, script: scripted.Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("custodes.supervision.budgets.account.PACE_S", 0)
    go = anyio.Event()

    async def hold(_: DispatchRequest, __: ProgressSink) -> DispatchResult:
        await go.wait()
        usage = Usage(input_tokens=15, output_tokens=5)
        return DispatchResult(text='{"summary": "seen"}', usage=usage)

    script.acts.append(hold)
    budget = Budget(tokens=100, children=5, when_spent="stop")
    async with custodes.Supervision(tmp_path) as supervision, supervision.conversation("c") as parent:
        async with parent.fan_out(name="shards", budget=budget) as fan:
            child = fan.start(LOOK)
            account = await until(tmp_path, lambda each: each.spent.tokens.reserved == 30)
            assert (account.name, account.fan_out, account.ended) == ("shards", child.run_id, None)
            assert (account.spent.children.spent, account.spent.children.limit) == (1, 5)
            assert not account.abandoned
            go.set()
            await child.outcome()
            account = await until(tmp_path, lambda each: each.spent.tokens.spent == 20)
            assert account.spent.tokens.reserved == 0
    (ended,) = (await trace(tmp_path, "c")).fan_outs
    assert ended.ended is not None
    assert ended.budget == budget
    assert ended.spent.tokens == fan.spent.tokens
    assert ended.spent.wall_seconds.spent == pytest.approx(fan.spent.wall_seconds.spent, abs=0.5)


@pytest.mark.anyio
async def test_of_a_plan_it_is_seen_while_a_step_is_at_work(
    tmp_path: Path, script: scripted.Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("custodes.supervision.budgets.account.PACE_S", 0)
    go = anyio.Event()

    async def hold(_: DispatchRequest, progress: ProgressSink) -> DispatchResult:
        progress(Progress(kind="usage", usage=Usage(input_tokens=40, output_tokens=5)))
        await go.wait()
        return DispatchResult(text='{"summary": "seen"}', usage=Usage(input_tokens=50, output_tokens=10))

    script.acts.append(hold)
    step = Step(id="find", role="reviewer", prompt="find", estimate_tokens=30)
    plan = Plan(steps=(step,), budget=Budget(tokens=100))
    async with custodes.Supervision(tmp_path) as supervision, supervision.conversation("c") as parent:
        async with anyio.create_task_group() as group, RecordFile(tmp_path) as file:
            group.start_soon(run_plan, parent, plan)
            with anyio.fail_after(20):
                while True:
                    seen = await file.plan_accounts("c", time.time())
                    if seen and (tokens := seen[0].spent.tokens).spent + tokens.reserved == 45:
                        break
            go.set()
    (account,) = seen
    assert account.plan.status == "running"


@pytest.mark.anyio
async def test_its_end_is_on_record_however_soon_it_comes_and_though_it_is_cancelled(
    tmp_path: Path, script: scripted.Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("custodes.supervision.budgets.account.PACE_S", 3_600)
    async with custodes.Supervision(tmp_path) as supervision, supervision.conversation("c") as parent:
        async with parent.fan_out(budget=Budget(tokens=100)) as fan:
            for _ in range(3):
                fan.start(LOOK)
        script.acts.append(hang)
        with anyio.CancelScope() as scope:
            async with parent.fan_out(budget=Budget(tokens=100)) as cut:
                child = cut.start(LOOK)
                await until(tmp_path, lambda each: each.fan_out == child.run_id)
                scope.cancel()
    first, second = (await trace(tmp_path, "c")).fan_outs
    assert (first.spent.tokens, second.spent.tokens) == (fan.spent.tokens, cut.spent.tokens)
    assert None not in (first.ended, second.ended)


@pytest.mark.anyio
async def test_without_a_limit_and_for_work_alone_nothing_is_written_and_a_plans_is_the_plans(
    tmp_path: Path, script: scripted.Script
) -> None:
    plan = Plan(steps=(Step(id="find", role="reviewer", prompt="find"),), budget=Budget(tokens=50_000))
    async with custodes.Supervision(tmp_path) as supervision, supervision.conversation("c") as parent:
        async with parent.fan_out() as fan:
            fan.start(LOOK)
        await parent.dispatch(LOOK)
        await run_plan(parent, plan)
    assert (await trace(tmp_path, "c")).fan_outs == ()
    async with RecordFile(tmp_path) as file:
        (account,) = await file.plan_accounts("c", time.time())
        assert account.budget == plan.budget


@pytest.mark.anyio
async def test_a_store_that_cannot_take_it_stops_nothing_and_gets_it_with_the_next(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    database = await Database.open(tmp_path / "custodes.db", MIGRATIONS)
    try:
        failing = FullDisk(database)
        account = Account.of(Budget(children=3))
        account.open()
        book = FanOutBook.of(Group("g", "shards"), "c", account, lambda: failing)  # type: ignore[arg-type, return-value]  # the disk is full for a while
        over = anyio.Event()
        async with anyio.create_task_group() as group:
            group.start_soon(book.keep, over)
            while "is late" not in caplog.text:
                await anyio.lowlevel.checkpoint()
            account.take_child()
            failing.full = False
            over.set()
        await book.close()
        (row,) = await database.read(lambda connection: fan_outs_of(connection, "c"))
        assert row.ledger.children == 1
        assert row.ended is not None
    finally:
        await database.aclose()


@pytest.mark.anyio
async def test_what_nobody_has_written_for_long_is_deleted(tmp_path: Path) -> None:
    database = await Database.open(tmp_path / "custodes.db", MIGRATIONS)

    async def fold(connection: Connection) -> None:
        for at in (10.0, 20.0):
            await save_fan_out(connection, row(id=str(at), changed=at))
        await prune_fan_outs(connection, 15.0)

    try:
        await database.write(fold)
        (left,) = await database.read(lambda connection: fan_outs_of(connection, "c"))
        assert left == row(id="20.0", changed=20.0)
    finally:
        await database.aclose()


def row(**fields: Any) -> FanOutRow:
    ledger = Ledger(budget=Budget(tokens=100, wall_seconds=60), opened_at=5_000, spent=Amount(tokens=40))
    stated: dict[str, Any] = {"id": "g", "conversation": "c", "name": "n", "ledger": ledger, "started": 0.0}
    return FanOutRow(**{**stated, "changed": 0.0, **fields})


def test_of_one_whose_owner_died_the_account_stands_where_it_was_last_written() -> None:
    def seconds(account: FanOutAccount) -> float:
        return account.spent.wall_seconds.spent

    open_row = row(started=100.0, changed=107.0)
    lives, died = (account_of(open_row, lambda _, gone=gone: gone, 120.0) for gone in (False, True))  # type: ignore[misc]
    ended = account_of(row(started=100.0, changed=107.0, ended=109.0), lambda _: True, 120.0)
    assert (seconds(lives), seconds(died), seconds(ended)) == (20, 7, 9)
    assert [each.abandoned for each in (lives, died, ended)] == [False, True, False]
    assert {each.spent.tokens.left for each in (lives, died, ended)} == {60}


def test_a_wall_clock_that_was_stepped_back_takes_no_time_off() -> None:
    still_open = account_of(row(started=100.0, changed=40.0), lambda _: False, 50.0)
    ended = account_of(row(started=100.0, changed=40.0, ended=40.0), lambda _: False, 50.0)
    assert [each.spent.wall_seconds.spent for each in (still_open, ended)] == [0, 0]
