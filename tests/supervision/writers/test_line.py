"""Acceptance F11: in what order this host's writers take turns, and what that costs."""

from __future__ import annotations

import os
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest
from hypothesis import given
from hypothesis import strategies as st

from custodes.supervision.writers import line as line_module
from custodes.supervision.writers.line import Line, Turn
from custodes.supervision.writers.scopes import Place, Scope, ScopeOutsideError, blocks, resolve


@pytest.mark.anyio
async def test_conflicting_writers_take_turns_in_the_order_they_came(tmp_path: Path) -> None:
    line, order, running = Line(), list[int](), 0

    async def write(number: int) -> None:
        nonlocal running
        async with line.hold(resolve(tmp_path, ["src"])):
            running += 1
            assert running == 1
            await anyio.lowlevel.checkpoint()
            order.append(number)
            running -= 1

    async with anyio.create_task_group() as group:
        for number in range(5):
            group.start_soon(write, number)
            await anyio.wait_all_tasks_blocked()
    assert order == [0, 1, 2, 3, 4]


@pytest.mark.anyio
async def test_writers_of_different_scopes_run_together(tmp_path: Path) -> None:
    line = Line()
    async with line.hold(resolve(tmp_path, ["src"])):
        with anyio.fail_after(5):
            async with line.hold(resolve(tmp_path, ["docs"])):
                pass


@pytest.mark.anyio
async def test_one_that_waits_is_not_overtaken_by_a_later_one_that_conflicts_with_it(tmp_path: Path) -> None:
    line, order = Line(), list[str]()

    async def write(name: str, *paths: str) -> None:
        async with line.hold(resolve(tmp_path, paths)):
            order.append(name)

    async with anyio.create_task_group() as group, line.hold(resolve(tmp_path, ["src"])):
        group.start_soon(write, "both", "src", "docs")
        await anyio.wait_all_tasks_blocked()
        group.start_soon(write, "docs", "docs")
        await anyio.wait_all_tasks_blocked()
        assert order == []
    assert order == ["both", "docs"]


@pytest.mark.anyio
async def test_a_cancelled_waiter_leaves_the_line(tmp_path: Path) -> None:
    line = Line()

    async def write() -> None:
        async with line.hold(resolve(tmp_path, ["src"])):
            pytest.fail("it was cancelled while it waited")

    async with line.hold(resolve(tmp_path, ["src"])), anyio.create_task_group() as group:
        group.start_soon(write)
        await anyio.wait_all_tasks_blocked()
        group.cancel_scope.cancel()
    assert not line.would_wait(resolve(tmp_path, [os.curdir]))


REPOSITORIES = (None, ("r",), ("r", "a"))
PLACES = tuple(
    Place(parts, repository)
    for parts in [("r",), ("r", "a"), ("r", "b"), ("r", "a", "c"), ("r", "a", "d")]
    for repository in REPOSITORIES
)
SCOPES = st.frozensets(st.sampled_from(PLACES), min_size=1, max_size=2).map(Scope)


@given(st.data())
def test_who_holds_is_who_has_nobody_in_the_way_whatever_comes_and_goes(data: st.DataObject) -> None:
    """Against everybody looking at everybody at each step. Borrowers end before their lender, as they do."""
    line, there = Line(), list[Turn]()

    def looked_at() -> set[Turn]:
        held = {turn for turn in there if turn in was_held}
        for turn in there:
            others = [other for other in there if other is not turn]
            for other in there:
                other.held = other in held
            if turn not in held and not any(
                blocks(other, turn, ahead=other.number < turn.number, line=there) for other in others
            ):
                held.add(turn)
        return held

    for number in range(data.draw(st.integers(1, 25))):
        was_held = {turn for turn in there if turn.held}
        lenders = {turn.parent_run for turn in there}
        may_leave = [turn for turn in there if turn.run_id not in lenders]
        leaves = data.draw(st.booleans())
        if may_leave and leaves:
            gone = data.draw(st.sampled_from(may_leave))
            line.leave(gone)
            there.remove(gone)
        else:
            parent = data.draw(st.sampled_from([None, *(turn.run_id for turn in there if turn.held)]))
            try:
                there.append(line.join(data.draw(SCOPES), f"run {number}", parent))
            except ScopeOutsideError:
                continue
        holds = {turn for turn in there if turn.held}
        assert holds == looked_at()
        for turn in there:
            turn.held = turn in holds
            assert turn.ready.is_set() == turn.held


@pytest.mark.parametrize("names", [("src",), ("src/{}", "CHANGELOG.md"), ("src/{}",)])
@pytest.mark.parametrize("last_first", [False, True])
def test_thousands_for_one_scope_cost_some_looks_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, names: tuple[str, ...], last_first: bool
) -> None:
    looks = 0

    def counted(*given: object, **named: object) -> bool:
        nonlocal looks
        looks += 1
        return blocks(*given, **named)  # type: ignore[arg-type]  # as they came

    monkeypatch.setattr(line_module, "blocks", counted)
    line = Line()
    places = [resolve(tmp_path, [name.format(number) for name in names]) for number in range(2_000)]
    turns = [line.join(scope) for scope in places]
    for turn in reversed(turns) if last_first else turns:
        line.leave(turn)
    assert looks <= 4 * len(turns)
    assert not line._at
    assert not line._below
