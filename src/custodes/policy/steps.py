"""The seven steps from a request to a route, pure; every field carries the step it came from.

Adapter before model before effort (seed 000, "Routing policy"). A step *binds* the adapter where it ranks
at or above the step that named it: it was written for that adapter, and what the adapter cannot take is
refused, never swapped. Below it a model is *inherited*, and crosses only to an adapter that declares it;
else the next step decides. An orchestrator's effort binds every adapter but the one that a request itself
names. Presets, role defaults and history are hints: they give way. Where nobody names an adapter, the
model and effort that were named choose it.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import msgspec

from custodes.adapters.descriptor import Descriptor
from custodes.adapters.errors import closest, instead
from custodes.policy import history, wording
from custodes.policy.catalog import (
    Adapter,
    Catalog,
    Objection,
    declares_model,
    effort_objection,
    forwards_models,
    lists_effort,
    model_objection,
)
from custodes.policy.policy import Policy, Target
from custodes.policy.roles import ROLE_DEFAULTS, RoleDefaults, is_role

Step = Literal[
    "request", "role", "orchestrator", "preset", "role_default", "history", "adapter_default", "fallback"
]
"""``fallback`` is not one of the seven: the fallback policy chose the field in place of what they came to."""

_RANK: dict[Step, int] = {
    "fallback": -1,
    "request": 0,
    "role": 1,
    "orchestrator": 2,
    "preset": 3,
    "role_default": 4,
    "history": 5,
    "adapter_default": 6,
}
_CONTRACT: tuple[Step, ...] = ("request", "role", "orchestrator")
"""The steps where somebody decided; the others are hints and defaults."""

Field = Literal["adapter", "model", "effort"]


class Route(msgspec.Struct, frozen=True, kw_only=True):
    """Where one attempt goes. ``provenance`` maps adapter, model, effort and timeout to the step that each
    came from."""

    role: str
    adapter: str
    model: str | None
    effort: str | None
    timeout_s: float
    pool: str
    provenance: dict[str, Step] = {}


class RouteRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What a parent asks for; an empty field is left to the policy. ``timeout`` is in seconds."""

    role: str
    adapter: str = ""
    model: str = ""
    effort: str = ""
    timeout: float | None = None


class Entry(NamedTuple):
    step: Step
    target: Target


def entries(request: RouteRequest, policy: Policy) -> tuple[Entry, ...]:
    """The steps that name fields, highest first."""
    hints = policy.presets.get(policy.preset, {}) if policy.preset else {}
    return (
        Entry("request", Target(adapter=request.adapter, model=request.model, effort=request.effort)),
        Entry("role", policy.roles.get(request.role, Target())),
        Entry("orchestrator", policy.orchestrator),
        Entry("preset", hints.get(request.role, Target())),
    )


def wanted(steps: tuple[Entry, ...], field: Field) -> str:
    """What the contract names for a field; empty where it names nothing."""
    values = (getattr(e.target, field) for e in steps if e.step in _CONTRACT)
    return next((value for value in values if value), "")


class Choice(NamedTuple):
    """The adapter and the step it came from; ``objection`` and its field where no adapter fits. ``named`` is
    the id that was asked for, eligible or not."""

    named: str
    adapter: Adapter | None
    step: Step
    objection: Objection | None = None
    field: Field = "adapter"


class Resolved(NamedTuple):
    """A route on one adapter, or why there is none and the field that makes it so."""

    route: Route | None
    objection: Objection | None = None
    field: Field = "adapter"


def choose(
    request: RouteRequest,
    policy: Policy,
    catalog: Catalog,
    session: str = "",
    records: tuple[history.Record, ...] = (),
) -> Choice:
    """The adapter, before anything else is looked at.

    ``session`` is the runtime that the conversation itself runs on: the default where no step names one;
    without it the first ready adapter is.
    """
    steps = entries(request, policy)
    for step, target in steps:
        if target.adapter and step in _CONTRACT:
            return _named(target.adapter, step, catalog)
    model, effort = wanted(steps, "model"), wanted(steps, "effort")
    hint = catalog.find(steps[-1].target.adapter)
    if hint is not None and hint.ready and _takes(hint.descriptor, model, effort):
        return Choice(hint.id, hint, "preset")
    if session and catalog.find(session) is None:
        return _named(session, "adapter_default", catalog)
    order = sorted(catalog.adapters, key=lambda a: (a.id != session, not a.ready))
    if not order:
        return Choice("", None, "adapter_default", catalog.none_eligible())
    fitting = [a for a in order if _takes(a.descriptor, model, effort)]
    if not fitting and _forwards(order[0], order, model, effort):
        fitting = [order[0]]
    if not fitting:
        objection, field = _no_adapter_fits(order, model, effort)
        return Choice(order[0].id, order[0], "adapter_default", objection, field)
    default = fitting[0]
    better = history.better_adapter(records, request.role, default.id, [a.id for a in fitting if a.ready])
    if better is not None and (found := catalog.find(better)) is not None:
        return Choice(better, found, "history")
    return Choice(default.id, default, "adapter_default")


def _named(adapter: str, step: Step, catalog: Catalog) -> Choice:
    found = catalog.find(adapter)
    return Choice(adapter, found, step, None if found else catalog.not_eligible(adapter))


def _takes(descriptor: Descriptor, model: str, effort: str) -> bool:
    """Whether an adapter that nobody named may be chosen for what was: it declares the model itself."""
    if model and not declares_model(descriptor, model):
        return False
    return not effort or effort_objection(descriptor, effort) is None


def _forwards(default: Adapter, order: list[Adapter], model: str, effort: str) -> bool:
    """Whether the default adapter passes on a model that none declares. Not where the id is so close to
    one that another declares that it was surely meant: a typing error must not change the runtime."""
    declared = [m.id for a in order for m in a.descriptor.models]
    return (
        forwards_models(default.descriptor)
        and closest(model, declared, cutoff=0.85) is None
        and (not effort or effort_objection(default.descriptor, effort) is None)
    )


def _no_adapter_fits(order: list[Adapter], model: str, effort: str) -> tuple[Objection, Field]:
    with_model = [a for a in order if model and declares_model(a.descriptor, model)]
    if with_model and effort:
        first = with_model[0]
        if not any(effort_objection(a.descriptor, effort) is None for a in order):
            return _effort_misfit(first.descriptor, effort), "effort"
        hint = f"{first.id} has the model; efforts it lists: {', '.join(first.descriptor.efforts) or 'none'}"
        return Objection(wording=wording.no_single_adapter(model, effort), hint=hint), "effort"
    default = order[0]
    if not model:
        return _effort_misfit(default.descriptor, effort), "effort"
    objection = model_objection(default.descriptor, model)
    if objection is None and effort and effort_objection(default.descriptor, effort) is not None:
        return _effort_misfit(default.descriptor, effort), "effort"
    declared = [m.id for a in order for m in a.descriptor.models]
    hint = instead(model, declared)
    if forwarding := [a.id for a in order if forwards_models(a.descriptor)]:
        hint = "; ".join(
            filter(None, (hint, f"name the adapter {wording.choices(forwarding)} to pass it on as it is"))
        )
    words = objection.wording if objection else wording.model_not_declared(model, order[0].id)
    return Objection(wording=words, hint=hint), "model"


def _effort_misfit(descriptor: Descriptor, effort: str) -> Objection:
    return effort_objection(descriptor, effort) or Objection(
        wording=wording.effort_not_listed(effort, descriptor.id)
    )


def resolve_on(
    request: RouteRequest,
    policy: Policy,
    adapter: Adapter,
    step: Step,
    records: tuple[history.Record, ...] = (),
    *,
    default_model: bool = False,
) -> Resolved:
    """The route on one adapter that came from ``step``, or why it cannot take what was decided.

    ``default_model`` puts the adapter's own default model in place of what the steps say (the fallback
    policy ``same_adapter_default``).
    """
    descriptor = adapter.descriptor
    steps = entries(request, policy)
    defaults = ROLE_DEFAULTS[request.role] if is_role(request.role) else None
    best = history.better_model(records, request.role, descriptor)
    if default_model:
        model: str | None = descriptor.default_model
        model_step: Step = "fallback"
    else:
        found = _model(descriptor, steps, step, defaults, best)
        if isinstance(found, Objection):
            return Resolved(None, found, "model")
        model, model_step = found
    effort = _effort(descriptor, steps, step, defaults)
    if isinstance(effort, Objection):
        return Resolved(None, effort, "effort")
    timeout_s, timeout_step = _timeout(request, descriptor, defaults)
    return Resolved(
        Route(
            role=request.role,
            adapter=descriptor.id,
            model=model,
            effort=effort[0],
            timeout_s=timeout_s,
            pool=descriptor.pool(model),
            provenance={"adapter": step, "model": model_step, "effort": effort[1], "timeout": timeout_step},
        )
    )


def _model(
    descriptor: Descriptor,
    steps: tuple[Entry, ...],
    adapter_step: Step,
    defaults: RoleDefaults | None,
    best: str | None,
) -> tuple[str | None, Step] | Objection:
    for step, target in steps:
        if not target.model:
            continue
        if declares_model(descriptor, target.model):
            return target.model, step
        if step not in _CONTRACT:
            continue
        if adapter_step == "fallback" and step in ("request", "role"):
            # A model that was pinned is wanted wherever the work goes; it is never passed on blindly.
            return model_objection(descriptor, target.model) or Objection(
                wording=wording.model_not_declared(target.model, descriptor.id)
            )
        if _RANK[step] <= _RANK[adapter_step] and target.adapter in ("", descriptor.id):
            objection = model_objection(descriptor, target.model)
            return objection if objection is not None else (target.model, step)
    if defaults is not None and descriptor.can("model_selection"):
        tiered = next((m.id for m in descriptor.models if m.tier == defaults.tier), None)
        if tiered is not None:
            return tiered, "role_default"
    if best is not None:
        return best, "history"
    return descriptor.default_model, "adapter_default"


def _effort(
    descriptor: Descriptor, steps: tuple[Entry, ...], adapter_step: Step, defaults: RoleDefaults | None
) -> tuple[str | None, Step] | Objection:
    for step, target in steps:
        if not target.effort:
            continue
        objection = effort_objection(descriptor, target.effort)
        if objection is None:
            if step in _CONTRACT or lists_effort(descriptor, target.effort):
                return target.effort, step
        elif step in ("request", "role") or (step == "orchestrator" and adapter_step != "request"):
            return objection
    if defaults is not None and lists_effort(descriptor, defaults.effort):
        return defaults.effort, "role_default"
    chosen = descriptor.default_effort if descriptor.can("effort_selection") else ""
    return chosen or None, "adapter_default"


def _timeout(
    request: RouteRequest, descriptor: Descriptor, defaults: RoleDefaults | None
) -> tuple[float, Step]:
    if request.timeout is not None:
        return request.timeout, "request"
    if defaults is not None:
        return defaults.timeout_s, "role_default"
    return descriptor.dispatch_timeout_s, "adapter_default"
