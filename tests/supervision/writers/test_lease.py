"""Acceptance F11, F12 and F20: who waits for whom in the line of writers, as a rule; and its numbers."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from custodes.supervision.record.clock import Now
from custodes.supervision.record.owner_identity import Owner, this_process
from custodes.supervision.writers.lease import MISSED_S, ScopeLease, in_the_way, orphaned
from custodes.supervision.writers.lease_fold import Beat, Held, InTheWay, LeaseFold, Release, Take
from custodes.supervision.writers.scopes import Place, Scope, conflicts, covers, reaches_outside, resolve

NOW = Now("boot", 1_000.0, 1_790_000_000.0)
US = Owner(1, 1.0, "boot")
THEM = Owner(2, 2.0, "boot")


def scope(*paths: str) -> Scope:
    return Scope(frozenset(Place(("/", *path.split("/")), None) for path in paths))


def lease(
    number: int, path: str, *, held: bool = False, run: str = "", parent: str | None = None
) -> ScopeLease:
    return ScopeLease(
        id=str(number),
        run_id=run or f"run-{number}",
        parent_run=parent,
        number=number,
        held=held,
        scope=scope(path),
        owner=US,
        since=0.0,
        beat=NOW,
    )


def blocked(mine: ScopeLease, *others: ScopeLease, now: Now = NOW) -> list[int]:
    return [other.number for other in in_the_way(mine, [*others, mine], now)]


def fold(owner: Owner = US, *, now: Now = NOW, after: LeaseFold | None = None) -> LeaseFold:
    return LeaseFold(
        now=now, owner=owner, line=dict(after.line) if after else {}, last=after.last if after else 0
    )


def take(path: str, name: str) -> Take:
    return Take(id=name, run_id=f"run-{name}", scope=scope(path))


def test_f11_one_waits_for_what_is_held_and_for_those_before_it_that_conflict() -> None:
    held, waits, elsewhere = lease(1, "src", held=True), lease(2, "src/a"), lease(3, "docs")
    assert blocked(waits, held, elsewhere) == [1]
    assert blocked(lease(4, "src/a/b"), held, waits, elsewhere) == [1, 2]
    assert blocked(elsewhere, held, waits) == []


def test_f12_a_silent_waiter_is_passed_over_and_a_silent_holder_is_not() -> None:
    later = Now("boot", NOW.uptime + MISSED_S, NOW.wall)
    assert blocked(lease(2, "src"), lease(1, "src"), now=later) == []
    assert blocked(lease(2, "src"), lease(1, "src", held=True), now=later) == [1]
    assert blocked(lease(2, "src"), lease(1, "src", held=True), now=Now("next boot", 1.0, 0.0)) == [1]


def test_f12_a_waiter_that_was_passed_over_waits_for_whoever_holds_now() -> None:
    assert blocked(lease(1, "src"), lease(2, "src", held=True)) == [2]


def test_f20_a_child_borrows_inside_its_ancestors_scope_at_any_depth() -> None:
    outer = lease(1, "src", held=True, run="outer")
    inner = lease(2, "src/a", held=True, run="inner", parent="outer")
    assert blocked(lease(3, "src/a", parent="outer"), outer) == []
    assert blocked(lease(3, "src/a/b", parent="inner"), outer, inner) == []


def test_f20_siblings_take_turns() -> None:
    outer = lease(1, "src", held=True, run="outer")
    first = lease(2, "src/a", held=True, parent="outer")
    second = lease(3, "src/a", parent="outer")
    assert blocked(second, outer, first) == [2]
    assert blocked(lease(4, "src/a", parent="outer"), outer, first, second) == [2, 3]


def test_f20_a_borrower_does_not_wait_for_a_stranger_who_waits_for_its_lender() -> None:
    outer, stranger = lease(1, "src", held=True, run="outer"), lease(2, "src/a")
    assert blocked(lease(3, "src/a", parent="outer"), outer, stranger) == []
    assert blocked(stranger, outer) == [1]


def test_f20_a_child_whose_scope_reaches_outside_is_told_that_it_would_wait_for_ever() -> None:
    outer = lease(1, "src", held=True, run="outer")
    line = fold()
    line.line[outer.id], line.last = outer, 1
    (answer,) = line.answers([Take(run_id="child", parent_run="outer", scope=scope("src", "docs"))])
    assert isinstance(answer, InTheWay)
    assert answer.for_ever


def test_f20_at_every_level_the_nearest_lender_must_hold_all_of_it() -> None:
    outer = lease(1, "src", held=True, run="outer")
    inner = lease(2, "src/a", held=True, run="inner", parent="outer")
    assert not reaches_outside(lease(3, "src/a/b", parent="inner"), [outer, inner])
    assert reaches_outside(lease(3, "src/c", parent="inner"), [outer, inner])
    assert reaches_outside(lease(3, "docs", parent="outer"), [outer, inner])
    assert not reaches_outside(lease(3, "docs"), [outer, inner])
    assert not reaches_outside(lease(3, "docs", parent="gone"), [outer, inner])


def test_a_family_of_runs_that_names_itself_ends() -> None:
    one = lease(1, "src", held=True, run="one", parent="two")
    two = lease(2, "src/a", held=True, run="two", parent="one")
    assert blocked(lease(3, "docs", parent="one"), one, two) == []


def test_places_inside_one_another_are_covered_and_nested_repositories_are_not() -> None:
    assert covers(scope("src"), scope("src", "src/a"))
    assert not covers(scope("src/a"), scope("src"))
    nested = Scope(frozenset({Place(("/", "src", "sub"), ("/", "src", "sub"))}))
    outer = Scope(frozenset({Place(("/", "src"), ("/", "src"))}))
    assert not covers(outer, nested)


def test_f12_each_holder_has_a_higher_number_than_any_before_it() -> None:
    line = fold()
    (one,) = line.answers([take("src", "a")])
    assert isinstance(one, Held)
    (wait,) = line.answers([take("src", "b")])
    assert isinstance(wait, InTheWay)
    assert line.answers([Release(id="a"), take("docs", "c")]) == [True, Held(one.number + 3)]
    (two,) = line.answers([take("src", "b")])
    assert isinstance(two, Held)
    assert two.number == one.number + 4


def test_asking_again_for_what_is_held_changes_nothing() -> None:
    line = fold()
    first = line.answers([take("src", "a")])
    again = fold(after=line)
    assert again.answers([take("src", "a")]) == first
    assert not again.dirty


def test_asking_again_while_it_waits_writes_at_most_a_heartbeat() -> None:
    line = fold()
    line.answers([take("src", "a"), take("src", "b")])
    soon = fold(after=line, now=Now("boot", NOW.uptime + 1, NOW.wall))
    soon.answers([take("src", "b")])
    assert not soon.dirty
    late = fold(after=line, now=Now("boot", NOW.uptime + 5, NOW.wall))
    late.answers([take("src", "b")])
    assert late.changed.keys() == {"b"}


def test_f4_a_release_that_left_something_keeps_the_scope_and_names_it() -> None:
    line = fold()
    line.answers([take("src", "a")])
    assert line.answers([Release(id="a", left=("sleep (pid 7)",))]) == [True]
    (answer,) = line.answers([take("src", "b")])
    assert isinstance(answer, InTheWay)
    assert [other.left for other in answer.blocking] == [("sleep (pid 7)",)]


def test_f12_a_release_of_what_was_taken_away_says_so_and_touches_nobody_else() -> None:
    line = fold()
    line.answers([take("src", "a")])
    line.line.pop("a")
    line.answers([take("src", "b")])
    assert line.answers([Release(id="a")]) == [False]
    assert line.line["b"].held


def test_a_heartbeat_is_of_ones_own_leases_alone() -> None:
    line = fold()
    line.answers([take("src", "a"), take("src", "b")])
    theirs = fold(THEM, after=line)
    theirs.answers([take("docs", "c")])
    ours = fold(after=theirs, now=Now("boot", NOW.uptime + 9, NOW.wall))
    assert ours.answers([Beat()]) == [2]
    assert ours.changed.keys() == {"a", "b"}


def test_what_a_living_owner_left_is_an_orphan_only_where_it_can_be_looked_for() -> None:
    mine = replace(lease(1, "src", held=True), owner=this_process())
    assert not orphaned(mine)
    assert orphaned(replace(mine, left=("sleep (pid 7)",)))
    elsewhere = replace(mine.owner, space="pid:[1]")
    assert not orphaned(replace(mine, left=("sleep (pid 7)",), owner=elsewhere))
    assert orphaned(replace(mine, owner=replace(mine.owner, started=mine.owner.started + 1)))


PATHS = st.sampled_from(["src", "src/a", "src/a/b", "docs", "docs/c"])
STEPS = st.lists(st.tuples(st.sampled_from(["ask", "release"]), st.integers(0, 5)), max_size=60)


@given(paths=st.lists(PATHS, min_size=6, max_size=6), steps=STEPS)
def test_f11_no_two_that_conflict_are_ever_held_and_everybody_is_served_in_the_end(
    paths: list[str], steps: list[tuple[str, int]]
) -> None:
    """Whatever the order of asks and releases, out of several processes."""
    line, numbers = fold(), [0]
    asked: set[int] = set()

    def ask(who: int) -> bool:
        line.owner = (US, THEM)[who % 2]
        (answer,) = line.answers([take(paths[who], str(who))])
        held = [other for other in line.line.values() if other.held]
        assert not any(
            conflicts(one.scope, other.scope) for one in held for other in held if one.id != other.id
        )
        if isinstance(answer, Held) and answer.number not in numbers:
            assert answer.number > max(numbers)
            numbers.append(answer.number)
        return isinstance(answer, Held)

    for what, who in steps:
        if what == "ask":
            asked.add(who)
            ask(who)
        elif who in asked:
            line.answers([Release(id=str(who))])
            asked.discard(who)
    for _ in range(len(asked)):
        served = [who for who in sorted(asked) if ask(who)]
        assert served or not asked, "nobody can go on"
        line.answers([Release(id=str(who)) for who in served])
        asked.difference_update(served)
    assert not asked


@pytest.mark.parametrize("name", ["src", "src/a.py"])
def test_a_scope_survives_its_row(name: str, tmp_path: Path) -> None:
    found = resolve(tmp_path, [name])
    assert msgspec.json.decode(msgspec.json.encode(found), type=Scope) == found
