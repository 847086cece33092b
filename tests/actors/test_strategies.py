"""The strategies as pure functions, against their definitions."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from custodes.actors import Restart
from custodes.actors.strategies import Plan, one_for_all, one_for_one, rest_for_one


@dataclass(frozen=True)
class Sibling:
    id: str
    restart: Restart = "permanent"
    alive: bool = True


def siblings(failed: str, *, temporary: str = "", ended: str = "") -> list[Sibling]:
    return [
        Sibling(
            name,
            "temporary" if name in temporary else "transient" if name in ended else "permanent",
            name != failed and name not in ended,
        )
        for name in "abcd"
    ]


def test_one_for_one_starts_the_failed_one() -> None:
    assert one_for_one(siblings("b"), "b") == Plan(start=("b",))


def test_one_for_all_stops_the_living_in_reverse_and_starts_all_in_order() -> None:
    assert one_for_all(siblings("b"), "b") == Plan(("d", "c", "a"), ("a", "b", "c", "d"))


def test_rest_for_one_leaves_those_started_earlier_alone() -> None:
    assert rest_for_one(siblings("b"), "b") == Plan(("d", "c"), ("b", "c", "d"))
    assert rest_for_one(siblings("a"), "a") == Plan(("d", "c", "b"), ("a", "b", "c", "d"))
    assert rest_for_one(siblings("d"), "d") == Plan((), ("d",))


def test_a_temporary_sibling_is_stopped_and_not_started() -> None:
    assert rest_for_one(siblings("b", temporary="c"), "b") == Plan(("d", "c"), ("b", "d"))


def test_a_transient_sibling_that_has_ended_is_started_again() -> None:
    assert one_for_all(siblings("a", ended="c"), "a") == Plan(("d", "b"), ("a", "b", "c", "d"))


GROUPS = st.lists(
    st.tuples(st.sampled_from(["permanent", "transient", "temporary"]), st.booleans()), min_size=1, max_size=8
)


@given(GROUPS, st.data())
def test_every_plan_stops_before_it_starts_what_it_must(
    group: list[tuple[Restart, bool]], data: st.DataObject
) -> None:
    failing = data.draw(st.integers(0, len(group) - 1))
    children = [
        Sibling(str(index), restart, alive and index != failing)
        for index, (restart, alive) in enumerate(group)
    ]
    failed = children[failing].id
    for strategy in (one_for_one, one_for_all, rest_for_one):
        plan = strategy(children, failed)
        assert failed in plan.start
        assert failed not in plan.stop
        assert list(plan.start) == sorted(plan.start, key=int)
        assert list(plan.stop) == sorted(plan.stop, key=int, reverse=True)
        alive = {child.id for child in children if child.alive}
        assert set(plan.stop) <= alive
        assert {child_id for child_id in plan.start if child_id in alive} <= set(plan.stop), "stopped first"
