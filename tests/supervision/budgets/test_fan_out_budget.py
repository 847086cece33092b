"""Tokens and USD of a whole fan-out: reserved before each start, and settled at what was used."""

from __future__ import annotations

import random
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest

import custodes
from custodes.adapters.port import DispatchRequest, DispatchResult, Failure, Progress, ProgressSink, Usage
from custodes.supervision.budgets.budget import Amount
from custodes.supervision.events import ChildEnded, Event
from custodes.supervision.fan_out import FanOut
from custodes.supervision.work import Budget, Outcome, Refusal, Shortfall, Work
from support import scripted

pytestmark = pytest.mark.anyio

COSTING = scripted.ADAPTER_YAML.replace("structured_output]", "structured_output, usage, cost]")
PRICED = scripted.ADAPTER_YAML.replace(
    "default: true}}",
    'default: true, price: {{input: 1, output: 1, source: a list, date: "2026-01-01"}}}}',
)


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> scripted.Script:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return scripted.install(tmp_path, "one", "two", adapter_yaml=COSTING)


def review(usd: float | None = None, tokens: int | None = None, **fields: Any) -> Work:
    return Work(role="reviewer", prompt="look", estimate_usd=usd, estimate_tokens=tokens, **fields)


def costs(usd: float) -> scripted.Act:
    return scripted.using(usage=Usage(cost_usd=usd, input_tokens=10, output_tokens=5))


async def run(project: Path, budget: Budget, *works: Work, max_parallel: int | None = None) -> FanOut:
    async with custodes.Supervision(project) as supervision, supervision.conversation("c") as parent:
        async with parent.fan_out(budget=budget, max_parallel=max_parallel) as fan:
            for work in works:
                fan.start(work)
    assert fan.ledger.reserved == Amount(), "nothing is set aside for anybody once all have ended"
    return fan


def statuses(fan: FanOut) -> list[str]:
    return [outcome.status for outcome in fan.outcomes]


def refusal_of(outcome: Outcome) -> Refusal:
    assert outcome.refusal is not None
    assert outcome.refusal.category == "budget"
    return outcome.refusal


async def test_of_10_with_9_9_spent_none_of_five_children_of_1_starts(
    tmp_path: Path, script: scripted.Script
) -> None:
    script.acts.append(costs(9.9))
    async with custodes.Supervision(tmp_path) as supervision, supervision.conversation("c") as parent:
        async with parent.fan_out(budget=Budget(usd=10)) as fan:
            await fan.start(review(9.9)).outcome()
            for _ in range(5):
                fan.start(review(1))
    assert statuses(fan) == ["done"] + ["refused"] * 5
    assert len(script.requests) == 1
    for outcome in fan.outcomes[1:]:
        refusal = refusal_of(outcome)
        assert refusal.shortfall == Shortfall(
            limit="usd", allowed=10, spent=9.9, left=0.1, needed=1, source="the caller's estimate"
        )
        assert (
            "leaves 0.1 USD (9.9 USD spent, 0 USD reserved); one more attempt needs 1 USD" in refusal.reason
        )
        assert refusal.route is not None
    assert (fan.spent.usd.spent, fan.spent.usd.left, fan.spent.usd.overrun) == (9.9, 0.1, 0)


async def test_what_fits_is_admitted_and_the_rest_is_refused_in_order_with_a_row_each(
    tmp_path: Path, script: scripted.Script
) -> None:
    begun, go = anyio.Event(), anyio.Event()

    async def hold(request: DispatchRequest, progress: ProgressSink) -> DispatchResult:
        begun.set()
        await go.wait()
        return await scripted.answer(request, progress)

    script.acts.append(hold)
    async with custodes.Supervision(tmp_path) as supervision, supervision.conversation("c") as parent:
        async with parent.fan_out(budget=Budget(tokens=100), max_parallel=1) as fan:
            children = [fan.start(review(tokens=30)) for _ in range(5)]
            await begun.wait()
            for child in children[3:]:
                refusal = refusal_of(await child.outcome())
                assert refusal.shortfall is not None
                assert (refusal.shortfall.left, refusal.shortfall.reserved) == (10, 90)
            assert fan.spent.tokens.reserved == 90
            go.set()
    assert statuses(fan) == ["done"] * 3 + ["refused"] * 2
    # None of the three reported what it used: each is settled at what was reserved for it.
    assert (fan.spent.tokens.spent, fan.spent.tokens.estimated) == (90, 90)
    with closing(sqlite3.connect(tmp_path / ".coding-os" / "custodes.db")) as reader:
        rows = reader.execute("SELECT status, category FROM attempts WHERE category = 'budget'").fetchall()
    assert rows == [("refused", "budget")] * 2


async def test_an_early_end_gives_its_rest_to_the_next(tmp_path: Path, script: scripted.Script) -> None:
    script.acts.extend([costs(0.25), costs(0.25)])
    async with custodes.Supervision(tmp_path) as supervision, supervision.conversation("c") as parent:
        async with parent.fan_out(budget=Budget(usd=1)) as fan:
            first = fan.start(review(1))
            assert (await first.outcome()).status == "done"
            fan.start(review(0.75))
    assert statuses(fan) == ["done", "done"]
    assert fan.spent.usd.spent == 0.5


async def test_an_overrun_is_bounded_by_what_runs_and_stops_new_starts(
    tmp_path: Path, script: scripted.Script
) -> None:
    script.acts.append(costs(5))
    fan = await run(tmp_path, Budget(usd=2), *[review(0.5) for _ in range(4)], max_parallel=1)
    assert statuses(fan) == ["done", "refused", "refused", "refused"]
    assert len(script.requests) == 1
    assert (fan.spent.usd.spent, fan.spent.usd.overrun, fan.spent.usd.left) == (5, 3, 0)


async def test_what_is_cancelled_before_it_starts_gives_all_back(
    tmp_path: Path, script: scripted.Script
) -> None:
    begun, go = anyio.Event(), anyio.Event()

    async def hold(request: DispatchRequest, progress: ProgressSink) -> DispatchResult:
        begun.set()
        await go.wait()
        return await costs(0.5)(request, progress)

    script.acts.append(hold)
    async with custodes.Supervision(tmp_path) as supervision, supervision.conversation("c") as parent:
        async with parent.fan_out(budget=Budget(usd=1), max_parallel=1) as fan:
            fan.start(review(0.5))
            queued = fan.start(review(0.5))
            await begun.wait()
            assert (await fan.start(review(0.5)).outcome()).status == "refused"
            await queued.cancel()
            script.acts.append(costs(0.25))
            fan.start(review(0.5))
            go.set()
    assert statuses(fan) == ["done", "cancelled", "refused", "done"]
    assert (fan.spent.usd.spent, fan.spent.usd.estimated) == (0.75, 0)


async def test_what_is_cancelled_at_work_is_settled_at_its_reservation(
    tmp_path: Path, script: scripted.Script
) -> None:
    begun = anyio.Event()

    async def hang(request: DispatchRequest, progress: ProgressSink) -> DispatchResult:
        begun.set()
        await anyio.sleep_forever()
        raise AssertionError

    script.acts.append(hang)
    async with custodes.Supervision(tmp_path) as supervision, supervision.conversation("c") as parent:
        async with parent.fan_out(budget=Budget(usd=1)) as fan:
            child = fan.start(review(0.75))
            await begun.wait()
            await child.cancel()
    assert (fan.spent.usd.spent, fan.spent.usd.estimated) == (0.75, 0.75)


async def test_a_fallback_reserves_anew_and_a_refused_start_costs_nothing(
    tmp_path: Path, script: scripted.Script
) -> None:
    scripted.configure(tmp_path, fallback_policy="next_eligible")
    script.acts.extend([scripted.limit(retry_after_s=60), costs(0.5)])
    fan = await run(tmp_path, Budget(usd=1), review(1))
    assert [attempt.adapter for attempt in fan.outcomes[0].attempts] == ["one", "two"]
    assert statuses(fan) == ["done"]
    assert fan.spent.usd.spent == 0.5


async def test_a_fallback_that_no_longer_fits_is_refused(tmp_path: Path, script: scripted.Script) -> None:
    scripted.configure(tmp_path, fallback_policy="next_eligible")
    failure = Failure(category="provider", reason="500", retryable=True)

    async def spend_and_fail(request: DispatchRequest, progress: ProgressSink) -> DispatchResult:
        return DispatchResult(failure=failure, usage=Usage(cost_usd=0.5))

    script.acts.append(spend_and_fail)
    fan = await run(tmp_path, Budget(usd=1), review(1))
    assert statuses(fan) == ["refused"]
    assert len(fan.outcomes[0].attempts) == 1
    assert refusal_of(fan.outcomes[0]).shortfall == Shortfall(
        limit="usd",
        allowed=1,
        spent=0.5,
        left=0.5,
        needed=1,
        source="the caller's estimate",
    )


async def test_a_child_that_uses_more_than_there_is_is_stopped_by_policy(
    tmp_path: Path, script: scripted.Script
) -> None:
    ended = anyio.Event()

    async def spend(request: DispatchRequest, progress: ProgressSink) -> DispatchResult:
        try:
            progress(Progress(kind="usage", usage=Usage(input_tokens=50, output_tokens=40)))
            await anyio.lowlevel.checkpoint()
            progress(Progress(kind="usage", usage=Usage(input_tokens=60, output_tokens=50)))
            await anyio.sleep_forever()
        finally:
            ended.set()
        raise AssertionError

    script.acts.append(spend)
    fan = await run(tmp_path, Budget(tokens=100, when_spent="stop"), review(tokens=80))
    assert ended.is_set()
    assert statuses(fan) == ["cancelled"]
    assert "100 tokens is spent (110 tokens spent" in refusal_of(fan.outcomes[0]).reason
    assert fan.outcomes[0].attempts[0].usage == Usage(input_tokens=60, output_tokens=50)
    assert fan.spent.tokens.overrun == 10
    with closing(sqlite3.connect(tmp_path / ".coding-os" / "custodes.db")) as reader:
        rows = reader.execute("SELECT status, input_tokens, output_tokens FROM attempts").fetchall()
    assert rows == [("cancelled", 60, 50)]


async def test_by_default_what_runs_may_finish(tmp_path: Path, script: scripted.Script) -> None:
    total = Usage(input_tokens=100, output_tokens=50)
    script.acts.append(scripted.using(Usage(input_tokens=90, output_tokens=40), usage=total))
    fan = await run(tmp_path, Budget(tokens=100), review(tokens=80), review(tokens=20), max_parallel=1)
    assert statuses(fan) == ["done", "refused"]
    assert (fan.spent.tokens.spent, fan.spent.tokens.overrun) == (150, 50)


async def test_usage_that_is_none_is_not_believed_and_hurts_nobody(
    tmp_path: Path, script: scripted.Script
) -> None:
    lies = [Usage(input_tokens="many"), Usage(cost_usd=float("nan")), Usage(output_tokens=-5)]  # type: ignore[arg-type]
    script.acts.append(scripted.using(*lies, "lots"))  # type: ignore[arg-type]
    fan = await run(tmp_path, Budget(usd=1, tokens=100), review(0.5, 50))
    assert statuses(fan) == ["done"]
    assert (fan.spent.usd.spent, fan.spent.tokens.spent) == (0.5, 50)


async def test_an_adapter_that_states_its_cost_needs_no_estimate(
    tmp_path: Path, script: scripted.Script
) -> None:
    script.acts.extend([costs(0.75), costs(0.75)])
    fan = await run(tmp_path, Budget(usd=1), *[review() for _ in range(3)], max_parallel=1)
    assert statuses(fan) == ["done", "done", "refused"]
    assert (fan.spent.usd.spent, fan.spent.usd.overrun) == (1.5, 0.5)


async def test_without_cost_price_or_estimate_a_budget_in_usd_refuses_the_adapter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    script = scripted.install(tmp_path, "one")
    fan = await run(tmp_path, Budget(usd=1), review(), review(0.5))
    assert statuses(fan) == ["refused", "done"]
    refusal = refusal_of(fan.outcomes[0])
    assert "'one' reports no cost and model 'large' has no declared price" in refusal.reason
    assert refusal.shortfall is not None
    assert (refusal.shortfall.limit, refusal.shortfall.needed) == ("usd", None)
    assert len(script.requests) == 1


async def test_a_declared_price_makes_tokens_into_usd(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    script = scripted.install(tmp_path, "one", adapter_yaml=PRICED)
    script.acts.append(scripted.using(usage=Usage(input_tokens=200_000, output_tokens=50_000)))
    fan = await run(tmp_path, Budget(usd=0.3), review(), review(), max_parallel=1)
    assert statuses(fan) == ["done", "refused"]
    assert (fan.spent.usd.spent, fan.spent.usd.estimated) == (0.25, 0)
    assert "the reviewer's default at the price of a list, 2026-01-01" in refusal_of(fan.outcomes[1]).reason


async def test_past_attempts_say_what_the_next_one_needs(tmp_path: Path, script: scripted.Script) -> None:
    script.acts.extend([costs(0.5)] * 5)
    async with custodes.Supervision(tmp_path) as supervision, supervision.conversation("c") as parent:
        for _ in range(5):
            assert (await parent.dispatch(review())).status == "done"
    fan = await run(tmp_path, Budget(usd=0.4), review())
    assert statuses(fan) == ["refused"]
    shortfall = refusal_of(fan.outcomes[0]).shortfall
    assert shortfall is not None
    assert (shortfall.needed, shortfall.source) == (0.5, "past attempts")


async def test_without_limits_the_totals_are_what_was_reported(
    tmp_path: Path, script: scripted.Script
) -> None:
    script.acts.extend([costs(0.5), scripted.answer])
    fan = await run(tmp_path, Budget(), review(), review(3.0))
    spent = fan.spent
    assert (spent.usd.spent, spent.usd.limit, spent.usd.left) == (0.5, None, None)
    assert (spent.tokens.spent, spent.tokens.estimated) == (15, 0)
    assert spent.children.spent == 2


async def test_a_budget_that_allows_no_level_of_children_starts_none(
    tmp_path: Path, script: scripted.Script
) -> None:
    fan = await run(tmp_path, Budget(depth=0), review())
    shortfall = refusal_of(fan.outcomes[0]).shortfall
    assert shortfall is not None
    assert (shortfall.limit, shortfall.allowed, shortfall.needed) == ("depth", 0, 1)
    assert script.requests == []


async def test_children_that_ask_for_children_without_end_meet_the_cap(
    tmp_path: Path, script: scripted.Script
) -> None:
    async with custodes.Supervision(tmp_path) as supervision, supervision.conversation("c") as parent:
        async with parent.fan_out(budget=Budget(children=8)) as fan:

            async def breed(request: DispatchRequest, progress: ProgressSink) -> DispatchResult:
                script.acts.extend([breed, breed])
                children.extend([fan.start(review()), fan.start(review())])
                return await scripted.answer(request, progress)

            script.acts.append(breed)
            children = [fan.start(review())]
            for child in children:  # which grows meanwhile
                await child.outcome()
    assert statuses(fan).count("done") == 8
    over = [refusal_of(outcome).shortfall for outcome in fan.outcomes if outcome.status == "refused"]
    assert over == [Shortfall(limit="children", allowed=8, spent=8, left=0, needed=1)] * 9


@pytest.mark.parametrize("seed", range(4))
async def test_however_children_end_no_more_is_ever_given_than_there_is(
    tmp_path: Path, script: scripted.Script, seed: int
) -> None:
    scripted.configure(tmp_path, fallback_policy="next_eligible", max_parallel=4)
    chance = random.Random(seed)  # noqa: S311  # a replayable test, no secret
    worst, news = Amount(), anyio.Event()

    async def spend(request: DispatchRequest, progress: ProgressSink) -> DispatchResult:
        nonlocal worst
        worst = worst.at_least(fan.ledger.reserved + fan.ledger.spent)
        news.set()
        used = Usage(input_tokens=chance.randint(0, 5), output_tokens=chance.randint(0, 5))
        for _ in range(chance.randint(0, 3)):
            await anyio.lowlevel.checkpoint()
            progress(Progress(kind="usage", usage=used))
        failed = Failure(category="provider", reason="500", retryable=chance.random() < 0.5)
        end = chance.choice(["used", "silent", "failed", "raised", "cancelled"])
        if end == "raised":
            raise RuntimeError
        if end == "cancelled":
            await anyio.sleep_forever()
        text = DispatchResult(text='{"summary": "x"}', usage=used if end == "used" else None)
        return DispatchResult(failure=failed, usage=used) if end == "failed" else text

    script.acts.extend([spend] * 80)

    def watch(event: Event) -> None:
        if isinstance(event, ChildEnded):
            news.set()

    async with (
        custodes.Supervision(tmp_path, observer=watch) as supervision,
        supervision.conversation("c") as parent,
    ):
        async with parent.fan_out(budget=Budget(tokens=100)) as fan:
            for _ in range(6):
                news = anyio.Event()
                children = [fan.start(review(tokens=10)) for _ in range(8)]
                await news.wait()
                for child in children:  # queued, launched, admitted, at work or ended, as it happens
                    await child.cancel()
    assert 0 < worst.tokens <= 100
    assert fan.spent.tokens.spent <= 100
    assert fan.ledger.reserved == Amount()
    assert "refused" in statuses(fan), "the budget was never tried"


async def test_an_estimate_that_is_none_is_refused(tmp_path: Path, script: scripted.Script) -> None:
    fan = await run(tmp_path, Budget(), review(-1), review(tokens=-1), review(float("nan")))
    assert statuses(fan) == ["refused"] * 3
    assert {o.refusal.category for o in fan.outcomes if o.refusal} == {"invalid"}
