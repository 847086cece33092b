"""The health actor over a real file: batches, rows, refusals, readiness; on both loops."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import anyio
import pytest

from custodes.actors import Message
from custodes.adapters.port import Usage
from custodes.policy.policy import Cooldown
from custodes.store import Database
from custodes.supervision.pools.admission import (
    Admission,
    Admit,
    Clear,
    Confirm,
    Record,
    Refused,
    Settle,
    Snapshot,
)
from custodes.supervision.pools.breaker import Ticket
from custodes.supervision.pools.health import admit, fold_and_commit, settle
from custodes.supervision.pools.health_view import HealthView, summarize
from custodes.supervision.record import file_actor, records
from custodes.supervision.record.records import AttemptEnd, AttemptRow
from custodes.supervision.record.schema import MIGRATIONS
from support.health import Clock, World, ask, candidate, failed, limit, overload, start, world

pytestmark = pytest.mark.anyio


async def rows(world: World, run_id: str = "run-1") -> list[AttemptRow]:
    return await world.database.read(lambda connection: records.of_run(connection, run_id))


async def view(world: World) -> HealthView:
    answer = await world.health.ask(Snapshot())
    assert isinstance(answer, HealthView)
    return answer


async def test_an_admission_and_its_running_row_are_one_commit(tmp_path: Path) -> None:
    async with world(tmp_path) as w:
        admission = await w.admitted("one:a")
        with closing(sqlite3.connect(w.database.path)) as other:
            assert other.execute("SELECT id, status, pool FROM attempts").fetchall() == [
                (admission.ticket.attempt, "running", "one:a")
            ]
        await w.settle(admission.ticket)
        (row,) = await rows(w)
        assert row.status == "done"
        assert row.ended is not None


@pytest.mark.parametrize("step", [-7_200.0, 86_400.0])
async def test_a_stepped_wall_clock_makes_an_attempt_neither_longer_nor_shorter(
    tmp_path: Path, step: float
) -> None:
    async with world(tmp_path) as w:
        admission = await w.admitted("one:a")
        w.clock.advance(12.5)
        w.clock.step_wall(step)
        await w.settle(admission.ticket)
        (row,) = await rows(w)
    assert row.ended is not None
    assert row.ended - row.started == pytest.approx(12.5)


async def test_b2_concurrent_limits_count_once(tmp_path: Path) -> None:
    async with world(tmp_path) as w:
        tickets = [(await w.admitted()).ticket for _ in range(16)]
        async with anyio.create_task_group() as group:
            for ticket in tickets:
                group.start_soon(w.settle, ticket, limit())
        (pool,) = (await view(w)).pools
        assert (pool.failure_count, pool.recovery_s) == (1, 300)


async def test_b4_of_many_askers_at_once_one_is_the_probe(tmp_path: Path) -> None:
    async with world(tmp_path) as w:
        await w.opened("one:a")
        w.clock.advance(300)
        answers: list[Admission | Refused] = []

        async def one() -> None:
            answers.append(await admit(w.health, ask("one:a")))

        async with anyio.create_task_group() as group:
            for _ in range(200):
                group.start_soon(one)
        (probe,) = [answer for answer in answers if isinstance(answer, Admission)]
        assert probe.probe
        assert probe.state == "half_open"
        assert len(answers) == 200


async def test_b11_buckets_are_limited_apart_and_cleared_together(tmp_path: Path) -> None:
    async with world(tmp_path) as w:
        await w.opened("one:x")
        assert (await w.refused("one:x")).waiting[0].pool == "one:x"
        await w.admitted("one:y")
        await w.opened("one:y", "two:z")
        assert await w.health.ask(Clear("one")) == ("one:x", "one:y")
        await w.admitted("one:x")
        await w.admitted("one:y")
        await w.refused("two:z")


async def test_b12_an_overloaded_pool_comes_after_the_others_and_is_never_refused(tmp_path: Path) -> None:
    async with world(tmp_path) as w:
        for _ in range(10):
            await w.settle((await w.admitted("one:a")).ticket, overload())
        assert (await w.admitted("one:a", "two:b")).candidate == 1
        assert (await w.admitted("one:a")).candidate == 0
        w.clock.advance(60)
        assert (await w.admitted("one:a", "two:b")).candidate == 0


async def test_b14_a_new_policy_leaves_deadlines_and_counts_as_they_are(tmp_path: Path) -> None:
    async with world(tmp_path) as w:
        await w.opened("one:a")
        before = await view(w)
        shorter = ask("one:a", cooldown=Cooldown(default_seconds=1, maximum_seconds=1))
        assert isinstance(await admit(w.health, shorter), Refused)
        assert await view(w) == before


async def test_b14_b29_state_outlives_the_tree(tmp_path: Path) -> None:
    clock = Clock()
    async with world(tmp_path, clock) as w:
        await w.opened("one:a")
        before = await view(w)
    async with world(tmp_path, clock) as w:
        assert await view(w) == before
        assert (await w.refused("one:a")).waiting[0].recovery_s == 300


async def test_b15_while_another_writer_holds_the_file_an_ask_is_refused_in_bounded_time(
    tmp_path: Path,
) -> None:
    async with world(tmp_path) as w:
        await w.opened("one:cooling")
        with closing(sqlite3.connect(w.database.path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            refused = await w.refused("one:a", "two:b")
            assert [each.pool for each in refused.unavailable] == ["one:a", "two:b"]
            assert all(each.category == "unavailable" for each in refused.unavailable)
            assert "another writer" in refused.unavailable[0].reason
            assert (await w.refused("one:cooling")).waiting, "what cools is known without a writer's turn"
            other.execute("ROLLBACK")
        await w.admitted("one:a")


async def test_an_end_that_cannot_be_written_is_written_before_anything_else_later(tmp_path: Path) -> None:
    async with world(tmp_path) as w:
        ticket = (await w.admitted("one:a")).ticket
        with closing(sqlite3.connect(w.database.path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            assert await w.health.ask(Settle(ticket=ticket, failure=limit(50))) is False
            other.execute("ROLLBACK")
        assert (await w.refused("one:a")).waiting[0].recovery_s == 50
        (row,) = await rows(w)
        assert row.status == "failed"


async def test_an_end_that_is_still_owed_is_written_at_the_stop(tmp_path: Path) -> None:
    async with world(tmp_path) as w:
        ticket = (await w.admitted("one:a")).ticket
        await w.database.aclose()
        assert await w.health.ask(Settle(ticket=ticket)) is False
        w.database.__dict__.update(  # the next batch finds the file open again
            (await Database.open(w.database.path, MIGRATIONS)).__dict__
        )
    async with world(tmp_path) as w:
        (row,) = await rows(w)
        assert row.status == "done"


async def test_b17_a_refusal_names_every_pool_that_waits_with_its_seconds(tmp_path: Path) -> None:
    async with world(tmp_path) as w:
        await w.opened("one:a", stated=60)
        await w.opened("two:b", stated=5)
        refused = await w.refused("one:a", "two:b")
        assert [(each.pool, each.recovery_s, each.state) for each in refused.waiting] == [
            ("one:a", 60, "cooling_down"),
            ("two:b", 5, "cooling_down"),
        ]
        assert await rows(w) == [row for row in await rows(w) if row.status == "failed"], (
            "a refusal has no row"
        )


async def test_b18_a_refusal_beside_a_probe_states_what_is_left_of_its_lease(tmp_path: Path) -> None:
    async with world(tmp_path) as w:
        await w.opened("one:a")
        w.clock.advance(300)
        await w.admitted("one:a", lease_s=610)
        w.clock.advance(10)
        (waiting,) = (await w.refused("one:a")).waiting
        assert (waiting.state, waiting.recovery_s) == ("half_open", 600)


async def test_b20_a_cooling_pool_admits_nobody_however_often_it_is_asked(tmp_path: Path) -> None:
    async with world(tmp_path) as w:
        await w.opened("one:a", stated=31)
        for _ in range(6):
            w.clock.advance(5)
            await w.refused("one:a")
        assert len(await rows(w)) == 1


async def test_b21_a_timeout_on_one_pool_changes_no_other(tmp_path: Path) -> None:
    async with world(tmp_path) as w:
        await w.opened("two:b")
        before = await view(w)
        await w.settle((await w.admitted("one:a")).ticket, failed("timeout"))
        assert await view(w) == before


async def test_b22_a_cancelled_run_is_closed_and_says_nothing_of_its_pool(tmp_path: Path) -> None:
    async with world(tmp_path) as w:
        await w.settle((await w.admitted("one:a")).ticket, cancelled=True)
        (row,) = await rows(w)
        assert row.status == "cancelled"
        assert (await view(w)).pools == ()


@pytest.mark.parametrize("failure", [failed("auth"), failed("unavailable")], ids=["auth", "configuration"])
async def test_b23_a_failed_login_is_not_tried_again_until_it_changed(tmp_path: Path, failure: Any) -> None:
    async with world(tmp_path) as w:
        await w.settle((await w.admitted("one:a")).ticket, failure)
        w.clock.advance(30 * 86_400)
        for pool in ("one:a", "one:b", "one:c"):
            (unavailable,) = (await w.refused(pool)).unavailable
            assert unavailable.category == failure.category
            assert "cos health clear one" in unavailable.reason
        assert len(await rows(w)) == 1, "one call reached the runtime"
        await w.admitted("two:d")
        await w.settle((await w.admitted(candidate("one:a", "f2"))).ticket)
        assert summarize("one", "f2", await view(w)).unavailable is None


async def test_b23_a_failed_login_is_tried_again_after_an_operators_clear(tmp_path: Path) -> None:
    async with world(tmp_path) as w:
        await w.settle((await w.admitted("one:a")).ticket, failed("auth"))
        assert summarize("one", "f1", await view(w)).unavailable is not None
        assert await w.health.ask(Clear("one")) == ("one",)
        await w.admitted("one:a")


async def test_a_refused_connection_waits_for_nobody(tmp_path: Path) -> None:
    async with world(tmp_path) as w:
        await w.settle((await w.admitted("one:a")).ticket, failed("unavailable", retryable=True))
        await w.admitted("one:a")


async def test_b28_the_first_candidate_that_admits_wins_beside_a_limit_and_beside_a_probe(
    tmp_path: Path,
) -> None:
    async with world(tmp_path) as w:
        await w.opened("one:a")
        await w.refused("one:a")
        assert (await w.admitted("one:a", "two:b")).candidate == 1
        w.clock.advance(300)
        assert (await w.admitted("one:a", "two:b")).probe
        assert (await w.admitted("one:a", "two:b")).candidate == 1


async def test_b32_a_probe_cleared_away_is_an_old_ticket(tmp_path: Path) -> None:
    async with world(tmp_path) as w:
        await w.opened("one:a")
        w.clock.advance(300)
        probe = (await w.admitted("one:a")).ticket
        await w.health.ask(Clear("one:a"))
        await w.settle(probe, limit())
        await w.admitted("one:a")


async def test_b33_a_confirmed_probe_lets_siblings_run_and_its_later_limit_counts(tmp_path: Path) -> None:
    async with world(tmp_path) as w:
        await w.opened("one:a")
        w.clock.advance(300)
        probe = (await w.admitted("one:a", lease_s=1900)).ticket
        await w.refused("one:a")
        await w.health.ask(Confirm(probe))
        assert not (await w.admitted("one:a")).probe
        w.clock.advance(1800)
        await w.settle(probe, limit())
        assert (await w.refused("one:a")).waiting[0].recovery_s == 300


async def test_settling_twice_is_settling_once(tmp_path: Path) -> None:
    async with world(tmp_path) as w:
        ticket = (await w.admitted("one:a")).ticket
        await w.settle(ticket, limit(50))
        before, row = await view(w), await rows(w)
        await w.settle(ticket, limit(5000))
        await w.settle(ticket)
        assert await view(w) == before
        assert await rows(w) == row


async def test_a_ticket_of_no_row_changes_nothing(tmp_path: Path) -> None:
    async with world(tmp_path) as w:
        forged = Ticket(pool="one:a", generation=0, attempt="nobody's")
        await w.settle(forged, limit())
        await w.health.ask(Confirm(forged))
        assert (await view(w)).pools == ()


async def test_a_cancelled_ask_leaves_neither_a_lease_nor_an_open_row(tmp_path: Path) -> None:
    async with world(tmp_path) as w:
        await w.opened("one:a")
        w.clock.advance(300)
        with closing(sqlite3.connect(w.database.path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            async with anyio.create_task_group() as group:
                group.start_soon(admit, w.health, ask("one:a"))
                await anyio.wait_all_tasks_blocked()
                assert w.health.statistics().mailbox_depth == 0, "the ask is in the actor's hand"
                group.cancel_scope.cancel()
                other.execute("ROLLBACK")
        assert (await w.admitted("one:a")).probe
        assert sorted(row.status for row in await rows(w)) == ["cancelled", "failed", "running"]


async def test_an_end_told_by_a_dying_task_is_written(tmp_path: Path) -> None:
    async with world(tmp_path) as w:
        ticket = (await w.admitted("one:a")).ticket
        with anyio.CancelScope() as scope:
            scope.cancel()
            await settle(w.health, Settle(ticket=ticket, failure=limit()))
        await w.refused("one:a")
        (row,) = await rows(w)
        assert row.category == "capacity"


async def test_what_a_batch_holds_is_answered_in_its_order(tmp_path: Path) -> None:
    """Seen in one fold: a limit told before an ask refuses it, and not the one before."""
    async with world(tmp_path) as w:
        ticket = (await w.admitted("one:a")).ticket
        messages: list[Message[Any]] = [
            ask("one:a"),
            Settle(ticket=ticket, failure=limit()),
            ask("one:a"),
            Snapshot(),
        ]
        answers, _ = await fold_and_commit(w.database, messages, w.clock)
        assert isinstance(answers[0], Admission)
        assert isinstance(answers[2], Refused)
        assert answers[3].pools[0].failure_count == 1


async def test_a_message_that_cannot_be_written_fails_alone(tmp_path: Path) -> None:
    async with world(tmp_path) as w:
        ticket = (await w.admitted("one:a")).ticket
        twice = ask("one:b")
        await admit(w.health, twice)
        answers: dict[str, Any] = {}

        async def say(name: str, message: Message[Any]) -> None:
            answers[name] = await w.health.ask(message)

        async with anyio.create_task_group() as group:
            group.start_soon(say, "twice", twice)  # an Admit is asked once: its row's id is taken
            group.start_soon(
                say, "half", Record(AttemptRow(run_id="\ud800", number=1, conversation="c", role="r"))
            )
            group.start_soon(say, "settled", Settle(ticket=ticket, failure=limit(9)))
        assert isinstance(answers["twice"], Refused)
        assert "cannot be written" in answers["twice"].unavailable[0].reason
        assert answers["settled"] is True
        assert (await w.refused("one:a")).waiting[0].recovery_s == 9


async def test_an_end_that_is_owed_at_the_stop_is_written_beside_one_that_never_can_be(
    tmp_path: Path,
) -> None:
    async with world(tmp_path) as w:
        ticket = (await w.admitted("one:a")).ticket
        await w.database.aclose()
        await w.health.ask(Record(AttemptRow(run_id="\ud800", number=1, conversation="c", role="r")))
        assert await w.health.ask(Settle(ticket=ticket)) is False
        w.database.__dict__.update(  # the stop finds the file open again
            (await Database.open(w.database.path, MIGRATIONS)).__dict__
        )
    async with world(tmp_path) as w:
        (row,) = await rows(w)
        assert row.status == "done"


async def test_what_a_store_that_fails_is_owed_is_bounded_and_an_end_outlives_a_thousand_refusals(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(file_actor, "OWED", 20)
    refusals = [
        AttemptRow(run_id=f"no-{number}", number=1, conversation="c1", role="reviewer", status="refused")
        for number in range(1_000)
    ]
    async with world(tmp_path) as w:
        first, second = (await w.admitted("one:a")).ticket, (await w.admitted("two:b")).ticket
        await w.database.aclose()
        assert await w.health.ask(Settle(ticket=first, failure=limit(50))) is False
        for row in refusals:
            w.health.tell(Record(row))
        assert await w.health.ask(Settle(ticket=second)) is False
        w.database.__dict__.update((await Database.open(w.database.path, MIGRATIONS)).__dict__)
        assert (await w.refused("one:a")).waiting, "the limit that was owed is known"
        assert {row.status for row in await rows(w)} == {"failed", "done"}
        kept = [row.run_id for row in refusals if await rows(w, row.run_id)]
    assert kept == [row.run_id for row in refusals[:18]], "the oldest refusals stay, and all else goes"
    assert any("rows were not written" in record.getMessage() for record in caplog.records)


async def test_a_figure_that_no_row_can_hold_counts_as_not_stated(tmp_path: Path) -> None:
    async with world(tmp_path) as w:
        ticket = (await w.admitted("one:a")).ticket
        end = AttemptEnd(usage=Usage(input_tokens=10**30, output_tokens=7, cost_usd=-1.0))
        assert await w.health.ask(Settle(ticket=ticket, failure=limit(10**30), end=end)) is True
        assert (await w.refused("one:a")).waiting, "the limit counts all the same"
        (row,) = await rows(w)
        assert (row.status, row.retry_after_s) == ("failed", None)
        assert (row.input_tokens, row.output_tokens, row.cost_usd) == (None, 7, None)


async def test_a_refused_row_is_recorded(tmp_path: Path) -> None:
    async with world(tmp_path) as w:
        row = AttemptRow(run_id="run-9", number=1, conversation="c1", role="reviewer", status="refused")
        await w.health.ask(Record(row))
        assert await rows(w, "run-9") == [row]


PLANTED = (
    "sk-ant-api03-" + "A" * 40,
    "sk-proj-" + "b" * 48,
    "AIza" + "C" * 35,
    "ghp_" + "d" * 36,
    "xoxb-1234567890-" + "e" * 24,
    "AKIA" + "F" * 16,
    "hf_" + "g" * 34,
    "Bearer eyJhbGciOiJIUzI1NiJ9.e30." + "h" * 43,
)


@pytest.mark.parametrize("secret", PLANTED, ids=[key[:6] for key in PLANTED])
async def test_no_secret_of_a_failures_own_words_reaches_the_file(tmp_path: Path, secret: str) -> None:
    async with world(tmp_path) as w:
        for kind in (limit(30), failed("auth"), failed("provider"), overload()):
            leaky = type(kind)(
                category=kind.category,
                reason=f"denied for {secret}",
                retryable=kind.retryable,
                retry_after_s=kind.retry_after_s,
                overloaded=kind.overloaded,
            )
            await w.settle((await w.admitted(f"{kind.category}{kind.overloaded}:p")).ticket, leaky)
    stored = b"".join(part.read_bytes() for part in (tmp_path / ".coding-os").iterdir())
    assert b"capacity on capacityFalse:p, 30 s stated" in stored
    assert secret.encode() not in stored


async def test_the_adapters_summary_is_its_most_restrictive_pool_and_its_soonest_recovery(
    tmp_path: Path,
) -> None:
    async with world(tmp_path) as w:
        await w.opened("one:a", stated=100)
        await w.opened("one:b", stated=20)
        w.clock.advance(20)
        await w.admitted("one:c")
        summary = summarize("one", "f1", await view(w))
        assert summary.state == "cooling_down"
        assert summary.recovery_s == 0, "b is due for its probe"
        assert summary.limited == ("one:a", "one:b")
        assert summarize("two", None, await view(w)).state == "healthy"


async def test_an_end_carries_usage_identity_and_its_own_status(tmp_path: Path) -> None:
    async with world(tmp_path) as w:
        ask_mutable = Admit(candidates=(candidate("one:a"),), attempt=start("run-7", mutable=True), lease_s=5)
        admission = await admit(w.health, ask_mutable)
        assert isinstance(admission, Admission)
        await w.health.ask(
            Settle(
                ticket=admission.ticket,
                failure=failed("timeout"),
                end=AttemptEnd(native_thread_id="t-1", served_model="m-2"),
            )
        )
        (row,) = await rows(w, "run-7")
        assert (row.status, row.native_thread_id, row.served_model) == ("unknown", "t-1", "m-2")
