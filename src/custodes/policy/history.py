"""What recorded attempts say about where a role's work goes well (resolution step 6).

Success rate first, in steps of five points so that noise does not outvote the bill; then mean cost, then
mean seconds. It compares: without :data:`MINIMUM` attempts of the default and of another it has no opinion.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec

from custodes.adapters.descriptor import Descriptor

MINIMUM = 20
"""Attempts of one role on one choice, below which they are an anecdote."""

_STEPS = 20


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """One attempt that ran to an end of its own. A refused, cancelled or limited one says nothing about how
    well a runtime works: leave it out."""

    role: str
    adapter: str
    model: str | None
    succeeded: bool
    seconds: float
    cost_usd: float | None = None
    tokens: int | None = None
    """In and out together."""


class Past(tuple[Record, ...]):
    """Records that are asked about again and again, as each child's routing does: what they say of a role is
    worked out once."""

    def __init__(self, records: Iterable[Record] = ()) -> None:  # noqa: ARG002 - the tuple's own
        self.known: dict[tuple[str, ...], tuple[Rating, ...]] = {}


class Rating(msgspec.Struct, frozen=True, kw_only=True):
    """How a choice did. ``cost_usd`` is the mean over the attempts that state a cost, None without any."""

    choice: str
    attempts: int
    success_rate: float
    seconds: float
    cost_usd: float | None = None

    def order(self) -> tuple[float, float, float]:
        """Best first when sorted. A choice without a known cost ranks behind one that has it."""
        cost = float("inf") if self.cost_usd is None else self.cost_usd
        return (-round(self.success_rate * _STEPS), cost, self.seconds)

    def __str__(self) -> str:
        cost = "" if self.cost_usd is None else f", {self.cost_usd:.4f} USD"
        return (
            f"{self.choice}: {self.success_rate:.0%} of {self.attempts} succeeded{cost}, {self.seconds:.1f} s"
        )


def ratings(
    records: Iterable[Record], role: str, by: Callable[[Record], str | None], minimum: int = MINIMUM
) -> tuple[Rating, ...]:
    """The choices with enough attempts of the role, in the order of their names. ``by`` names the choice of
    a record; None leaves it out."""
    groups: dict[str, list[Record]] = {}
    for record in records:
        if record.role == role and (choice := by(record)) is not None:
            groups.setdefault(choice, []).append(record)
    return tuple(
        Rating(
            choice=choice,
            attempts=len(group),
            success_rate=sum(r.succeeded for r in group) / len(group),
            seconds=sum(r.seconds for r in group) / len(group),
            cost_usd=_mean([r.cost_usd for r in group if r.cost_usd is not None]),
        )
        for choice, group in sorted(groups.items())
        if len(group) >= minimum
    )


def _known(
    records: Iterable[Record], role: str, by: Callable[[Record], str | None], *asked: str
) -> tuple[Rating, ...]:
    """:func:`ratings`, remembered where the records can: ``asked`` stands for what ``by`` does."""
    if not isinstance(records, Past):
        return ratings(records, role, by)
    key = (role, *asked)
    if key not in records.known:
        records.known[key] = ratings(records, role, by)
    return records.known[key]


def _mean(values: list[float]) -> float | None:
    return sum(values) / len(values) if values else None


def better(rated: Iterable[Rating], default: str, among: Iterable[str]) -> str | None:
    """The choice that did better than the default; None without an opinion, or where the default is best."""
    allowed = {default, *among}
    ranked = sorted((r for r in rated if r.choice in allowed), key=lambda r: (r.order(), r.choice != default))
    if not any(r.choice == default for r in ranked) or ranked[0].choice == default:
        return None
    return ranked[0].choice


def better_adapter(records: Iterable[Record], role: str, default: str, among: Iterable[str]) -> str | None:
    return better(_known(records, role, lambda r: r.adapter, "adapters"), default, among)


def better_model(records: Iterable[Record], role: str, descriptor: Descriptor) -> str | None:
    """A declared model of this adapter that did better in the role than its default model."""
    default = descriptor.default_model
    if default is None or not descriptor.can("model_selection"):
        return None
    models = _known(
        records, role, lambda r: r.model if r.adapter == descriptor.id else None, "models", descriptor.id
    )
    return better(models, default, (m.id for m in descriptor.models))
