"""From a request to the candidates that may run it: the route, then what the fallback policy allows.

All candidates are resolved at once and frozen with the child. Which of them is let in is decided at each
admission, from health; here only eligibility, readiness and what an adapter can take are looked at.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from custodes.policy import history, wording
from custodes.policy.catalog import Adapter, Catalog, Objection
from custodes.policy.policy import Policy
from custodes.policy.roles import is_role, unknown_role
from custodes.policy.steps import Choice, Resolved, Route, RouteRequest, Step, choose, resolve_on

__all__ = ["Denial", "PassedOver", "Resolution", "Route", "RouteRequest", "Step", "resolve"]

RefusalCategory = Literal["unavailable", "invalid"]


class PassedOver(msgspec.Struct, frozen=True, kw_only=True):
    """A candidate that is none. ``str()`` is a sentence."""

    adapter: str
    reason: str

    def __str__(self) -> str:
        return self.reason if f"'{self.adapter}'" in self.reason else f"{self.adapter}: {self.reason}"


class Denial(msgspec.Struct, frozen=True, kw_only=True):
    """Why nothing can run, whatever the health. ``wording`` is the playbook's; ``detail`` says what is wrong
    and what would work; ``str()`` is both."""

    category: RefusalCategory
    wording: str
    detail: str = ""

    def __str__(self) -> str:
        return f"{self.wording}; {self.detail}" if self.detail else self.wording


class Resolution(msgspec.Struct, frozen=True, kw_only=True):
    """``candidates`` in the order they may be tried, the route that was asked for first where it can run;
    ``asked`` is that route even where it cannot (None where no adapter could be named), and ``denial`` says
    why it cannot. Without candidates that is the ``refusal``."""

    candidates: tuple[Route, ...] = ()
    passed_over: tuple[PassedOver, ...] = ()
    denial: Denial | None = None
    asked: Route | None = None

    @property
    def refusal(self) -> Denial | None:
        return None if self.candidates else self.denial

    @property
    def others(self) -> tuple[PassedOver, ...]:
        """Those passed over, without the one that the refusal itself is about."""
        return tuple(other for other in self.passed_over if other.reason != str(self.refusal))

    @property
    def rerouted(self) -> bool:
        """The first candidate is not the route that was asked for."""
        return bool(self.candidates) and self.candidates[0] != self.asked


def resolve(
    request: RouteRequest,
    policy: Policy,
    catalog: Catalog,
    session: str = "",
    records: tuple[history.Record, ...] = (),
) -> Resolution:
    """Route a request and compute its fallback candidates.

    ``session`` is the runtime the conversation itself runs on (empty: the first ready adapter is the
    default); ``records`` are past attempts for the empirical step. Never raises: a refusal is data.
    """
    if not is_role(request.role):
        return Resolution(denial=Denial(category="invalid", wording=unknown_role(request.role)))
    choice = choose(request, policy, catalog, session, records)
    asked = _asked(choice, request, policy, records)
    candidates: list[Route] = []
    passed_over: list[PassedOver] = []
    denial = _denial(choice, asked)
    if denial is None and asked.route is not None:
        candidates.append(asked.route)
    elif denial is not None and choice.named:
        passed_over.append(PassedOver(adapter=choice.named, reason=str(denial)))
    if policy.fallback_policy == "same_adapter_default":
        route, reason = _default_model(choice, asked, request, policy, records)
        if route is not None:
            candidates.append(route)
        elif reason:
            passed_over.append(PassedOver(adapter=choice.named, reason=reason))
    elif policy.fallback_policy == "next_eligible":
        for adapter in catalog.adapters:
            if adapter.id == choice.named:
                continue
            resolved = resolve_on(request, policy, adapter, "fallback", records)
            if not adapter.ready:
                passed_over.append(PassedOver(adapter=adapter.id, reason=str(_not_ready(adapter))))
            elif resolved.route is not None:
                candidates.append(resolved.route)
            else:
                passed_over.append(PassedOver(adapter=adapter.id, reason=str(resolved.objection)))
    return Resolution(
        candidates=tuple(candidates),
        passed_over=tuple(passed_over),
        denial=denial,
        asked=asked.route,
    )


def _not_ready(adapter: Adapter) -> Objection:
    return Objection(
        wording=wording.no_eligible_adapter(adapter.id), hint=adapter.reason or "it is not ready"
    )


def _asked(
    choice: Choice, request: RouteRequest, policy: Policy, records: tuple[history.Record, ...]
) -> Resolved:
    if choice.adapter is None or choice.objection is not None:
        return Resolved(None, choice.objection, choice.field)
    return resolve_on(request, policy, choice.adapter, choice.step, records)


def _denial(choice: Choice, asked: Resolved) -> Denial | None:
    """Why the route that was asked for cannot run."""
    objection = asked.objection
    category: RefusalCategory = "invalid" if choice.adapter else "unavailable"
    if choice.adapter is not None and not choice.adapter.ready:
        objection, category = _not_ready(choice.adapter), "unavailable"
    if objection is None:
        return None
    return Denial(category=category, wording=objection.wording, detail=objection.hint)


def _default_model(
    choice: Choice,
    asked: Resolved,
    request: RouteRequest,
    policy: Policy,
    records: tuple[history.Record, ...],
) -> tuple[Route | None, str]:
    """The same adapter on its default model, or why that is no candidate (empty: the refusal says it)."""
    if choice.adapter is None or not choice.adapter.ready:
        return None, ""
    resolved = resolve_on(request, policy, choice.adapter, choice.step, records, default_model=True)
    if resolved.route is None:
        return None, "" if asked.route is None else str(resolved.objection)
    if asked.route is not None and resolved.route.model == asked.route.model:
        return None, "its default model is what was asked for, so it has nothing else to cover with"
    return resolved.route, ""
