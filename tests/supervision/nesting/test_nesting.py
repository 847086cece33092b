"""Nested work joins its parent's tree: acceptance F6 to F8, F19 and F20, and who may ask at all.

The runtime is scripted and asks as a process of its own would: by its variables, through the project's file.
"""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest

import custodes
from custodes.adapters.port import DispatchRequest, DispatchResult, ProgressSink, Usage
from custodes.store import Database
from custodes.supervision.asks import requests
from custodes.supervision.asks.owner import OwnerActor
from custodes.supervision.budgets.budget import NESTED_CHILDREN, NESTED_DEPTH, Ledger, take_child
from custodes.supervision.events import ChildEnded, ChildQueued, ChildWaiting, Event
from custodes.supervision.nesting import client
from custodes.supervision.nesting.nested_work import PROJECT, RUN, TOKEN, VARIABLES
from custodes.supervision.record.ids import new_id
from custodes.supervision.record.owner_identity import _identity, this_process
from custodes.supervision.record.schema import DATABASE, MIGRATIONS
from custodes.supervision.work import Budget, Outcome, Work
from support import scripted
from support.nesting import ask, nesting
from support.works import implement, review

pytestmark = pytest.mark.anyio


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> scripted.Script:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return scripted.install(tmp_path, "one", "two")


@pytest.fixture
def program() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as running:
        yield running
        running.kill()


def rows(project: Path) -> list[dict[str, Any]]:
    with closing(sqlite3.connect(project / DATABASE)) as database:
        database.row_factory = sqlite3.Row
        return [dict(row) for row in database.execute("SELECT * FROM attempts ORDER BY started")]


async def test_nested_work_is_the_owners_in_row_events_and_conversation(
    tmp_path: Path, script: scripted.Script
) -> None:
    inner: list[Outcome] = []
    events: list[Event] = []
    script.acts.append(nesting(tmp_path, review("inner"), outcomes=inner))
    async with (
        custodes.Supervision(tmp_path, observer=events.append) as supervision,
        supervision.conversation("c") as parent,
    ):
        outcome = await parent.dispatch(review("outer"))
    assert outcome.status == "done"
    assert inner[0].status == "done"
    assert inner[0].evidence is not None
    assert inner[0].evidence.summary == "inner"
    above, below = rows(tmp_path)
    assert (above["parent_run"], below["parent_run"]) == (None, outcome.run_id)
    assert below["run_id"] == inner[0].run_id
    assert below["conversation"] == "c"
    queued = [event for event in events if isinstance(event, ChildQueued)]
    assert [(event.run_id, event.parent_run) for event in queued] == [
        (outcome.run_id, None),
        (inner[0].run_id, outcome.run_id),
    ]
    ended = [event.run_id for event in events if isinstance(event, ChildEnded)]
    assert ended == [inner[0].run_id, outcome.run_id]
    assert [event.sequence for event in events] == list(range(1, len(events) + 1))


async def test_what_was_asked_is_not_in_the_file_once_it_is_done(
    tmp_path: Path, script: scripted.Script
) -> None:
    script.acts.append(nesting(tmp_path, review("a secret in a prompt"), outcomes=[]))
    async with custodes.Supervision(tmp_path) as supervision, supervision.conversation("c") as parent:
        await parent.dispatch(review())
    with closing(sqlite3.connect(tmp_path / DATABASE)) as database:
        assert database.execute("SELECT count(*) FROM requests").fetchone() == (0,)


async def test_f6_three_levels_finish_with_one_slot(tmp_path: Path, script: scripted.Script) -> None:
    scripted.configure(tmp_path, max_parallel=1)
    inner: list[Outcome] = []
    for _ in range(2):
        script.acts.append(nesting(tmp_path, review(), outcomes=inner))
    with anyio.fail_after(60):
        async with custodes.Supervision(tmp_path) as supervision, supervision.conversation("c") as parent:
            async with parent.fan_out(max_parallel=1) as fan:
                fan.start(review())
    assert [outcome.status for outcome in (*fan.outcomes, *inner)] == ["done"] * 3


async def test_f7_without_a_budget_depth_and_number_are_capped(
    tmp_path: Path, script: scripted.Script
) -> None:
    inner: list[Outcome] = []
    for _ in range(NESTED_DEPTH):
        script.acts.append(nesting(tmp_path, review(), outcomes=inner))
    async with custodes.Supervision(tmp_path) as supervision, supervision.conversation("c") as parent:
        await parent.dispatch(review())
    assert [outcome.status for outcome in inner] == ["refused", *["done"] * (NESTED_DEPTH - 1)]
    refusal = inner[0].refusal
    assert refusal is not None
    assert refusal.category == "budget"
    assert refusal.shortfall is not None
    assert (refusal.shortfall.limit, refusal.shortfall.allowed) == ("depth", NESTED_DEPTH)
    assert "the default" in refusal.reason


async def test_f7_a_budget_says_how_deep_and_how_many(tmp_path: Path, script: scripted.Script) -> None:
    inner: list[Outcome] = []
    script.acts.append(nesting(tmp_path, review(), review(), outcomes=inner))
    script.acts.append(nesting(tmp_path, review(), outcomes=inner))
    async with custodes.Supervision(tmp_path) as supervision, supervision.conversation("c") as parent:
        async with parent.fan_out(budget=Budget(children=2, depth=2)) as fan:
            fan.start(review())
    deepest, first, second = inner
    assert [first.status, second.status, deepest.status] == ["done", "refused", "refused"]
    assert deepest.refusal is not None
    assert deepest.refusal.shortfall is not None
    assert deepest.refusal.shortfall.limit == "depth"
    assert second.refusal is not None
    assert second.refusal.shortfall is not None
    assert second.refusal.shortfall.limit == "children"
    assert fan.spent.children.spent == 2


async def test_f7_a_childs_own_depth_narrows_and_never_widens(
    tmp_path: Path, script: scripted.Script
) -> None:
    inner: list[Outcome] = []

    async def narrow(request: DispatchRequest, progress: ProgressSink) -> DispatchResult:
        inner.append(await ask(tmp_path, request.environment, review(), budget=Budget(depth=1)))
        return await scripted.answer(request, progress)

    script.acts.append(narrow)
    script.acts.append(nesting(tmp_path, review(), outcomes=inner))
    async with custodes.Supervision(tmp_path) as supervision, supervision.conversation("c") as parent:
        async with parent.fan_out(budget=Budget(depth=9)) as fan:
            fan.start(review())
    assert [outcome.status for outcome in inner] == ["refused", "done"]
    assert fan.outcomes[0].status == "done"


async def test_f8_nested_spend_is_on_the_same_ledger(tmp_path: Path, script: scripted.Script) -> None:
    inner: list[Outcome] = []
    works = [review(estimate_tokens=100), review(estimate_tokens=100)]
    script.acts.append(nesting(tmp_path, *works, outcomes=inner))
    script.acts.append(scripted.using(usage=Usage(input_tokens=80, output_tokens=10)))
    async with custodes.Supervision(tmp_path) as supervision, supervision.conversation("c") as parent:
        async with parent.fan_out(budget=Budget(tokens=200)) as fan:
            fan.start(review(estimate_tokens=50))
    assert [outcome.status for outcome in inner] == ["done", "refused"]
    assert inner[1].refusal is not None
    assert inner[1].refusal.category == "budget"
    assert inner[1].refusal.shortfall is not None
    assert inner[1].refusal.shortfall.left == 60
    assert fan.spent.tokens.spent == 90 + 50
    assert fan.spent.tokens.reserved == 0


@pytest.mark.parametrize("parallel", [1, 2])
async def test_f19_fifty_parents_that_each_wait_for_a_child_all_finish(
    tmp_path: Path, script: scripted.Script, parallel: int
) -> None:
    scripted.configure(tmp_path, max_parallel=parallel, max_live=4)
    alive = most = working = most_working = 0
    inner: list[Outcome] = []

    async def work(request: DispatchRequest, progress: ProgressSink) -> DispatchResult:
        nonlocal alive, most, working, most_working
        working += 1
        most_working = max(most_working, working)
        if request.prompt == "leaf":
            await anyio.lowlevel.checkpoint()
        else:
            alive += 1
            most = max(most, alive)
            working -= 1  # it asks, and so it waits
            inner.append(await ask(tmp_path, request.environment, review("leaf")))
            working += 1
            most_working = max(most_working, working)
            alive -= 1
        working -= 1
        return await scripted.answer(request, progress)

    script.acts.extend([work] * 100)
    with anyio.fail_after(120):
        async with custodes.Supervision(tmp_path) as supervision, supervision.conversation("c") as parent:
            async with parent.fan_out() as fan:
                for number in range(50):
                    fan.start(review(str(number)))
    assert {outcome.status for outcome in (*fan.outcomes, *inner)} == {"done"}
    assert len(inner) == 50
    assert 1 < most <= 4
    assert most_working <= parallel


async def test_a_writer_that_max_live_holds_back_keeps_no_scope_from_nested_work(
    tmp_path: Path, script: scripted.Script
) -> None:
    """Else it would wait for those alive, and they for its scope."""
    scripted.configure(tmp_path, max_live=1)
    inner: list[Outcome] = []
    held_back = anyio.Event()

    def observe(event: Event) -> None:
        if isinstance(event, ChildWaiting) and event.reason == "slot":
            held_back.set()

    async def asks(request: DispatchRequest, progress: ProgressSink) -> DispatchResult:
        await held_back.wait()
        inner.append(await ask(tmp_path, request.environment, implement("src")))
        return await scripted.answer(request, progress)

    script.acts.append(asks)
    with anyio.fail_after(60):
        async with (
            custodes.Supervision(tmp_path, observer=observe) as supervision,
            supervision.conversation("c") as parent,
            parent.fan_out() as fan,
        ):
            fan.start(review())
            fan.start(implement("src"))
    assert [outcome.status for outcome in (*fan.outcomes, *inner)] == ["done"] * 3


async def test_f20_children_of_a_writer_borrow_inside_its_scope_and_take_turns(
    tmp_path: Path, script: scripted.Script
) -> None:
    writing: list[str] = []

    async def outer(request: DispatchRequest, progress: ProgressSink) -> DispatchResult:
        async with anyio.create_task_group() as group:
            for _ in range(2):
                group.start_soon(ask, tmp_path, request.environment, implement("src/a", prompt="inner"))
        return await scripted.answer(request, progress)

    async def inner(request: DispatchRequest, progress: ProgressSink) -> DispatchResult:
        writing.append("begins")
        await anyio.sleep(0.01)
        writing.append("ends")
        return await scripted.answer(request, progress)

    script.acts.extend([outer, inner, inner])
    with anyio.fail_after(60):
        async with custodes.Supervision(tmp_path) as supervision, supervision.conversation("c") as parent:
            outcome = await parent.dispatch(implement("src"))
    assert outcome.status == "done"
    assert writing == ["begins", "ends"] * 2


async def test_f20_a_writer_below_a_reader_below_a_writer_borrows_too(
    tmp_path: Path, script: scripted.Script
) -> None:
    inner: list[Outcome] = []
    script.acts.append(nesting(tmp_path, review(), outcomes=inner))
    script.acts.append(nesting(tmp_path, implement("src/a"), implement("docs"), outcomes=inner))
    with anyio.fail_after(60):
        async with custodes.Supervision(tmp_path) as supervision, supervision.conversation("c") as parent:
            outcome = await parent.dispatch(implement("src"))
    assert outcome.status == "done"
    inside, outside, reader = inner
    assert (inside.status, outside.status, reader.status) == ("done", "refused", "done")
    assert outside.refusal is not None
    assert outside.refusal.category == "invalid"


async def test_two_writers_that_want_each_others_scope_below_them_are_refused_and_not_stuck(
    tmp_path: Path, script: scripted.Script
) -> None:
    both = [anyio.Event(), anyio.Event()]
    inner: list[Outcome] = []

    others = {"src": (0, "docs"), "docs": (1, "src")}

    async def crossing(request: DispatchRequest, progress: ProgressSink) -> DispatchResult:
        number, other = others[request.prompt]  # either of the two may begin first
        both[number].set()
        await both[1 - number].wait()
        inner.append(await ask(tmp_path, request.environment, implement(other)))
        return await scripted.answer(request, progress)

    script.acts.extend([crossing] * 2)
    with anyio.fail_after(60):
        async with custodes.Supervision(tmp_path) as supervision, supervision.conversation("c") as parent:
            async with parent.fan_out() as fan:
                fan.start(implement("src", prompt="src"))
                fan.start(implement("docs", prompt="docs"))
    assert [outcome.status for outcome in fan.outcomes] == ["done", "done"]
    assert [outcome.status for outcome in inner] == ["refused", "refused"]


async def test_the_same_id_asked_twice_runs_once_and_has_one_answer(
    tmp_path: Path, script: scripted.Script
) -> None:
    answers: list[Outcome] = []

    async def twice(request: DispatchRequest, progress: ProgressSink) -> DispatchResult:
        run_id = new_id()

        async def once() -> None:
            answers.append(await ask(tmp_path, request.environment, review("inner"), run_id=run_id))

        async with anyio.create_task_group() as group:
            group.start_soon(once)
            group.start_soon(once)
        await once()
        answers.append(await ask(tmp_path, request.environment, review("other"), run_id=run_id))
        return await scripted.answer(request, progress)

    script.acts.append(twice)
    async with custodes.Supervision(tmp_path) as supervision, supervision.conversation("c") as parent:
        await parent.dispatch(review())
    *same, other = answers
    assert len(script.requests) == 2
    assert {outcome.status for outcome in same} == {"done"}
    assert len({outcome.run_id for outcome in same}) == 1
    assert other.refusal is not None
    assert other.refusal.category == "invalid"


async def test_a_wrong_token_starts_nothing(tmp_path: Path, script: scripted.Script) -> None:
    answers: list[Outcome] = []

    async def forge(request: DispatchRequest, progress: ProgressSink) -> DispatchResult:
        forged = {**request.environment, TOKEN: "guessed"}
        answers.append(await ask(tmp_path, forged, review("inner")))
        return await scripted.answer(request, progress)

    script.acts.append(forge)
    async with custodes.Supervision(tmp_path) as supervision, supervision.conversation("c") as parent:
        await parent.dispatch(review())
    assert answers[0].refusal is not None
    assert answers[0].refusal.category == "auth"
    assert len(script.requests) == 1


async def test_what_a_process_asked_for_that_has_died_since_is_not_begun(
    tmp_path: Path, script: scripted.Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody waits for it: the program that it borrows its scope of may be writing there again."""
    alive = this_process()
    dead = msgspec.structs.replace(alive, started=alive.started - 1)
    answers: list[Outcome] = []

    async def act(request: DispatchRequest, progress: ProgressSink) -> DispatchResult:
        monkeypatch.setattr(client, "this_process", lambda: dead)
        answers.append(await ask(tmp_path, request.environment, implement("src")))
        return await scripted.answer(request, progress)

    script.acts.append(act)
    async with custodes.Supervision(tmp_path) as supervision, supervision.conversation("c") as parent:
        await parent.dispatch(implement("src"))
    (answer,) = answers
    assert answer.refusal is not None
    assert "has died" in answer.refusal.reason
    assert len(script.requests) == 1


async def test_what_waits_for_a_slot_is_not_begun_once_the_process_that_asked_for_it_is_killed(
    tmp_path: Path, script: scripted.Script, monkeypatch: pytest.MonkeyPatch, program: subprocess.Popen[bytes]
) -> None:
    """Also not in the second until the owner looks again who lives."""
    scripted.configure(tmp_path, max_parallel=1)
    monkeypatch.setattr(client, "this_process", lambda: _identity(program.pid))
    answers: list[Outcome] = []
    nested_waits = anyio.Event()

    def see(event: Event) -> None:
        if isinstance(event, ChildWaiting) and event.run_id == "nested":
            nested_waits.set()

    async def asks(request: DispatchRequest, progress: ProgressSink) -> DispatchResult:
        answers.append(await ask(tmp_path, request.environment, implement("src"), run_id="nested"))
        return await scripted.answer(request, progress)

    async def holds_the_slot(request: DispatchRequest, progress: ProgressSink) -> DispatchResult:
        await nested_waits.wait()
        program.kill()
        program.wait()
        return await scripted.answer(request, progress)

    script.acts.extend([asks, holds_the_slot])
    with anyio.fail_after(60):
        async with custodes.Supervision(tmp_path, observer=see) as supervision:
            async with supervision.conversation("c") as parent, parent.fan_out() as fan:
                fan.start(review("asks"))
                fan.start(review("holds"))
    (answer,) = answers
    assert answer.refusal is not None
    assert "has died" in answer.refusal.reason
    assert [request.prompt for request in script.requests] == ["asks", "holds"]


async def test_the_end_of_a_parent_ends_what_it_started(tmp_path: Path, script: scripted.Script) -> None:
    begun = anyio.Event()
    ended: list[Outcome] = []

    async def leaves(request: DispatchRequest, progress: ProgressSink) -> DispatchResult:
        async with anyio.create_task_group() as group:
            group.start_soon(ask, tmp_path, request.environment, review("inner"))
            await begun.wait()
            group.cancel_scope.cancel()
        return await scripted.answer(request, progress)

    async def hang(request: DispatchRequest, progress: ProgressSink) -> DispatchResult:
        begun.set()
        await anyio.sleep_forever()
        raise AssertionError

    script.acts.extend([leaves, hang])

    def observe(event: Event) -> None:
        if isinstance(event, ChildEnded):
            ended.append(event.outcome)

    with anyio.fail_after(30):
        async with (
            custodes.Supervision(tmp_path, observer=observe) as supervision,
            supervision.conversation("c") as parent,
        ):
            await parent.dispatch(review())
    assert [outcome.status for outcome in ended] == ["cancelled", "done"]
    assert {row["status"] for row in rows(tmp_path)} == {"cancelled", "done"}


@pytest.mark.parametrize("how", ["child", "host"])
async def test_the_cancel_of_a_parent_ends_every_level(
    tmp_path: Path, script: scripted.Script, how: str
) -> None:
    begun = anyio.Event()

    async def hang(request: DispatchRequest, progress: ProgressSink) -> DispatchResult:
        begun.set()
        await anyio.sleep_forever()
        raise AssertionError

    script.acts.extend([nesting(tmp_path, review(), outcomes=[]) for _ in range(2)])
    script.acts.append(hang)
    with anyio.fail_after(30), anyio.CancelScope() as host:
        async with (
            custodes.Supervision(tmp_path) as supervision,
            supervision.conversation("c") as parent,
            parent.fan_out() as fan,
        ):
            child = fan.start(review())
            await begun.wait()
            if how == "child":
                assert (await child.cancel()).status == "cancelled"
            else:
                host.cancel()
    assert [row["status"] for row in rows(tmp_path)] == ["cancelled"] * 3


async def test_variables_of_a_run_that_has_ended_are_named(tmp_path: Path, script: scripted.Script) -> None:
    async with custodes.Supervision(tmp_path) as supervision, supervision.conversation("c") as parent:
        await parent.dispatch(review())
        outcome = await ask(tmp_path, script.requests[0].environment, review())
    assert outcome.refusal is not None
    assert outcome.refusal.category == "unavailable"
    assert f"unset {RUN}" in outcome.refusal.reason


@pytest.mark.parametrize(
    ("variables", "category", "words"),
    [
        ({RUN: "r"}, "auth", [TOKEN, "unset"]),
        ({RUN: "r", TOKEN: "t", PROJECT: "/elsewhere"}, "invalid", ["/elsewhere", PROJECT]),
        ({RUN: "r", TOKEN: "t", PROJECT: "HERE"}, "unavailable", ["custodes.db", f"unset {RUN}"]),
    ],
)
async def test_a_client_that_cannot_be_one_is_refused_with_words(
    tmp_path: Path,
    script: scripted.Script,
    monkeypatch: pytest.MonkeyPatch,
    variables: dict[str, str],
    category: str,
    words: list[str],
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value.replace("HERE", str(tmp_path)))
    async with custodes.Supervision(tmp_path) as supervision, supervision.conversation("c") as parent:
        outcome = await parent.dispatch(review())
    assert outcome.refusal is not None
    assert outcome.refusal.category == category
    for word in words:
        assert word in outcome.refusal.reason
    assert script.requests == []
    assert not (tmp_path / DATABASE).exists()


async def test_where_supervision_is_off_a_client_is_on_the_disabled_path(
    tmp_path: Path, script: scripted.Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(RUN, "r")
    (tmp_path / ".coding-os" / "hub-settings.json").write_text("{}")

    async def native(work: Work) -> str:
        return work.prompt

    async with (
        custodes.Supervision(tmp_path) as supervision,
        supervision.conversation("c", dispatch=native) as parent,
    ):
        outcome = await parent.dispatch(review("as ever"))
    assert outcome.native == "as ever"


async def test_a_client_whose_row_was_withdrawn_before_it_was_taken_starts_nothing(tmp_path: Path) -> None:
    database = await Database.open(tmp_path / DATABASE, MIGRATIONS)
    owner = this_process()
    request = requests.Request(
        id="id", kind="dispatch", run_id="run", owner=owner, client=owner, body="{}", asked=1.0
    )
    try:
        await database.write(partial(requests.ask, request=request))
        assert await database.write(partial(requests.withdraw, request_id="id")) is None
        assert await database.write(partial(requests.claim, ids=["id"])) == []
        await database.write(partial(requests.ask, request=request))
        assert [each.id for each in await database.write(partial(requests.claim, ids=["id"]))] == ["id"]
        assert await database.write(partial(requests.claim, ids=["id"])) == []
        left = await database.write(partial(requests.withdraw, request_id="id"))
        assert left is not None
        assert (left.status, left.body) == ("withdrawn", "")
        await database.write(partial(requests.answer, request_id="id", reply="first"))
        await database.write(partial(requests.answer, request_id="id", reply="second"))
        found = await database.read(partial(requests.find, request_id="id"))
        assert found is not None
        assert (found.status, found.reply) == ("answered", "first")
    finally:
        await database.aclose()


def test_the_number_of_nested_children_has_an_end() -> None:
    ledger = Ledger(budget=Budget(), opened_at=0)
    for _ in range(NESTED_CHILDREN):
        ledger, short = take_child(ledger, 0, depth=2)
        assert short is None
    _, short = take_child(ledger, 0, depth=2)
    assert short is not None
    assert short.limit == "children"
    assert f"{NESTED_CHILDREN} nested children" in str(short)
    _, own = take_child(ledger, 0)
    assert own is None


async def test_a_budget_given_in_a_childs_own_process_narrows_there(
    tmp_path: Path, script: scripted.Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    fans: list[custodes.FanOut] = []

    async def narrow(request: DispatchRequest, progress: ProgressSink) -> DispatchResult:
        with monkeypatch.context() as variables:
            for name in VARIABLES:
                variables.setenv(name, request.environment[name])
            inner = custodes.Supervision(tmp_path)
        async with inner, inner.conversation("inner") as parent:
            budget = Budget(tokens=100, children=2)
            async with parent.fan_out(budget=budget, max_parallel=1) as fan:
                for _ in range(3):
                    fan.start(review(estimate_tokens=60))
            assert parent.recorded_as == "c"
        fans.append(fan)
        return await scripted.answer(request, progress)

    script.acts.append(narrow)
    script.acts.append(scripted.using(usage=Usage(input_tokens=70, output_tokens=10)))
    async with custodes.Supervision(tmp_path) as supervision, supervision.conversation("c") as parent:
        async with parent.fan_out(budget=Budget(tokens=1_000)) as fan:
            fan.start(review(estimate_tokens=5))
    first, second, third = fans[0].outcomes
    assert [first.status, second.status, third.status] == ["done", "refused", "refused"]
    assert second.refusal is not None
    assert second.refusal.shortfall is not None
    assert (second.refusal.shortfall.limit, second.refusal.shortfall.left) == ("tokens", 40)
    assert third.refusal is not None
    assert third.refusal.shortfall is not None
    assert third.refusal.shortfall.limit == "children"
    assert fans[0].spent.tokens.spent == 80
    assert fan.spent.tokens.spent == 80 + 5
    assert len(rows(tmp_path)) == 2


@pytest.mark.parametrize("ended", [False, True], ids=["at once", "though it has ended"])
async def test_a_withdrawn_ask_is_answered_though_its_parent_has_no_slot_yet(
    tmp_path: Path, script: scripted.Script, ended: bool
) -> None:
    scripted.configure(tmp_path, max_parallel=1)
    begun, other = anyio.Event(), anyio.Event()

    async def takes_back(request: DispatchRequest, progress: ProgressSink) -> DispatchResult:
        async with anyio.create_task_group() as group:
            group.start_soon(ask, tmp_path, request.environment, review("nested"))
            await begun.wait()  # the second, in the slot that this one gave up
            if ended:
                ((nested,),) = fan._nested.values()
                await nested.cancel()
            group.cancel_scope.cancel()
        other.set()
        return await scripted.answer(request, progress)

    async def works(request: DispatchRequest, progress: ProgressSink) -> DispatchResult:
        begun.set()
        await other.wait()  # in the one slot
        return await scripted.answer(request, progress)

    acts = {"first": takes_back, "second": works}

    async def act(request: DispatchRequest, progress: ProgressSink) -> DispatchResult:
        return await acts[request.prompt](request, progress)

    script.acts.extend([act] * 2)
    with anyio.fail_after(60):
        async with custodes.Supervision(tmp_path) as supervision, supervision.conversation("c") as parent:
            async with parent.fan_out() as fan:
                fan.start(review("first"))
                fan.start(review("second"))
    assert [outcome.status for outcome in fan.outcomes] == ["done", "done"]


async def test_a_crash_of_the_owners_watch_loses_no_request(
    tmp_path: Path, script: scripted.Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before it is claimed it is taken by the next incarnation; what was claimed and lost is refused."""
    inner: list[Outcome] = []
    crashes = {"_wanted": 1, "_take": 1}

    def crashing_once(name: str) -> None:
        real = getattr(OwnerActor, name)

        async def method(self: OwnerActor, *arguments: Any) -> Any:
            if crashes[name]:
                crashes[name] -= 1
                raise RuntimeError("a bug")
            return await real(self, *arguments)

        monkeypatch.setattr(OwnerActor, name, method)

    for name in crashes:
        crashing_once(name)
    script.acts.append(nesting(tmp_path, review("lost"), review("taken"), outcomes=inner))
    with anyio.fail_after(60):
        async with custodes.Supervision(tmp_path) as supervision, supervision.conversation("c") as parent:
            outcome = await parent.dispatch(review())
    assert outcome.status == "done"
    assert set(crashes.values()) == {0}
    lost, taken = inner
    assert (lost.status, taken.status) == ("refused", "done")
    assert lost.refusal is not None
    assert "nothing was started" in lost.refusal.reason
    assert len(script.requests) == 2


async def test_a_client_that_outlives_its_run_learns_that_there_is_no_answer(
    tmp_path: Path, script: scripted.Script
) -> None:
    begun = anyio.Event()
    answers: list[Outcome] = []

    async def hang(request: DispatchRequest, progress: ProgressSink) -> DispatchResult:
        begun.set()
        await anyio.sleep_forever()
        raise AssertionError

    with anyio.fail_after(60):
        async with (
            custodes.Supervision(tmp_path) as supervision,
            supervision.conversation("c") as parent,
            anyio.create_task_group() as outside,
        ):

            async def leaves_it(request: DispatchRequest, progress: ProgressSink) -> DispatchResult:
                async def left() -> None:
                    answers.append(await ask(tmp_path, request.environment, review("nested")))

                outside.start_soon(left)
                await begun.wait()
                return await scripted.answer(request, progress)

            script.acts.extend([leaves_it, hang])
            assert (await parent.dispatch(review())).status == "done"
    assert answers[0].status in ("cancelled", "refused")
    assert {row["status"] for row in rows(tmp_path)} == {"done", "cancelled"}
