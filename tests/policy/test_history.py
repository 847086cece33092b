from __future__ import annotations

from msgspec.structs import replace

from custodes.adapters.descriptor import Descriptor, Entrypoints, Model
from custodes.policy.history import MINIMUM, Past, Record, better_adapter, better_model, ratings


def attempts(
    adapter: str,
    good: int,
    bad: int = 0,
    *,
    cost: float | None = None,
    seconds: float = 1.0,
    role: str = "reviewer",
) -> list[Record]:
    return [
        Record(role=role, adapter=adapter, model=None, succeeded=i < good, seconds=seconds, cost_usd=cost)
        for i in range(good + bad)
    ]


def better(*groups: list[Record], among: tuple[str, ...] = ("a", "b")) -> str | None:
    return better_adapter([record for group in groups for record in group], "reviewer", "a", among)


def test_there_is_no_opinion_below_the_minimum_of_either_choice() -> None:
    assert better(attempts("a", 0, MINIMUM - 1), attempts("b", MINIMUM)) is None
    assert better(attempts("a", 0, MINIMUM), attempts("b", MINIMUM - 1)) is None
    assert better(attempts("b", MINIMUM)) is None
    assert better(attempts("a", 0, MINIMUM), attempts("b", MINIMUM)) == "b"


def test_success_comes_before_cost() -> None:
    assert better(attempts("a", 20, 20, cost=0.1), attempts("b", 40, cost=9.0)) == "b"


def test_a_success_rate_within_five_points_leaves_it_to_cost_and_then_to_seconds() -> None:
    assert better(attempts("a", 99, 1, cost=2.0), attempts("b", 98, 2, cost=1.0)) == "b"
    assert better(attempts("a", 40, cost=1.0, seconds=9), attempts("b", 40, cost=1.0, seconds=8)) == "b"


def test_equals_leave_the_default_where_it_is() -> None:
    assert better(attempts("a", 40), attempts("b", 40)) is None


def test_a_choice_that_may_not_be_taken_is_not_taken() -> None:
    assert better(attempts("a", 0, 40), attempts("b", 40), among=()) is None


def test_other_roles_say_nothing() -> None:
    assert better(attempts("a", 0, 40), attempts("b", 40, role="architect")) is None


def test_a_rating_explains_itself() -> None:
    (rating,) = ratings(attempts("a", 30, 10, cost=0.25, seconds=2.0), "reviewer", lambda r: r.adapter)
    assert str(rating) == "a: 75% of 40 succeeded, 0.2500 USD, 2.0 s"


def test_what_is_remembered_of_past_records_is_what_they_say() -> None:
    records = Past(
        [*attempts("a", 0, MINIMUM), *attempts("b", MINIMUM), *attempts("a", MINIMUM, role="analyst")]
    )
    for _ in range(2):
        assert better_adapter(records, "reviewer", "a", ("a", "b")) == "b"
        assert better_adapter(records, "reviewer", "b", ("a", "b")) is None
        assert better_adapter(records, "analyst", "a", ("a", "b")) is None
    assert len(records.known) == 2


def test_models_of_one_name_on_two_adapters_are_not_taken_for_one_another() -> None:
    def on(adapter: str, model: str, good: int, bad: int) -> list[Record]:
        return [replace(r, model=model) for r in attempts(adapter, good, bad)]

    records = Past(
        [
            *on("one", "large", 0, 40),
            *on("one", "small", 40, 0),
            *on("two", "large", 40, 0),
            *on("two", "small", 0, 40),
        ]
    )
    for _ in range(2):
        assert better_model(records, "reviewer", descriptor("one")) == "small"
        assert better_model(records, "reviewer", descriptor("two")) is None


def descriptor(name: str) -> Descriptor:
    return Descriptor(
        id=name,
        runtime_entrypoints=Entrypoints(capabilities=("dispatch", "model_selection")),
        models=(Model(id="large", default=True), Model(id="small")),
    )
