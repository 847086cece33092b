"""Why no pool lets the work in, in the playbook's words and as data."""

from __future__ import annotations

from custodes.policy import wording
from custodes.policy.routing import Route
from custodes.policy.settings import SettingsError
from custodes.store import StoreError
from custodes.supervision.pools.admission import Refused
from custodes.supervision.work import Refusal, Shortfall, Waiting


def capacity_refusal(refused: Refused, route: Route, passed_over: tuple[str, ...]) -> Refusal:
    """The refusal of every candidate at once: each pool that waits, and the soonest recovery over all.

    Where no pool waits, the candidates are marked unavailable (auth, billing), which no time mends.
    """
    if not refused.waiting:
        first = refused.unavailable[0]
        others = tuple(mark.reason for mark in refused.unavailable[1:])
        return Refusal(
            category="unavailable", reason=first.reason, route=route, passed_over=(*passed_over, *others)
        )
    soonest = min(waiting.recovery_s for waiting in refused.waiting)
    return Refusal(
        category="capacity",
        reason=_words(refused.waiting, soonest),
        waiting=refused.waiting,
        retry_after_s=soonest,
        route=route,
        passed_over=(*passed_over, *(mark.reason for mark in refused.unavailable)),
    )


def budget_refusal(shortfall: Shortfall, route: Route | None, passed_over: tuple[str, ...] = ()) -> Refusal:
    """The refusal of a budget that has no more to give, with what was left of it as data."""
    return Refusal(
        category="budget",
        reason=str(shortfall),
        route=route,
        passed_over=passed_over,
        shortfall=shortfall,
    )


def no_tree(error: SettingsError | StoreError) -> Refusal:
    """Nothing takes the child, and there is none to write its row: the settings have changed since it was
    asked for, or the store cannot be opened."""
    if isinstance(error, SettingsError):
        return Refusal(category="settings", reason=str(error))
    return Refusal(category="unavailable", reason=f"the health store cannot be opened: {error}")


def _words(waiting: tuple[Waiting, ...], soonest: int) -> str:
    """The playbook's words first, then what they mean here."""
    if len(waiting) == 1:
        only = waiting[0]
        if only.state == "half_open":
            return f"{wording.PROBE_RUNNING} ({only.pool}); retry in {only.recovery_s} s"
        return f"{wording.cooling_down(only.pool)}; retry in {only.recovery_s} s"
    pools = ", ".join(f"{each.pool} {each.recovery_s} s" for each in waiting)
    return f"{wording.ALL_AT_CAPACITY} ({pools}); the soonest recovers in {soonest} s"
