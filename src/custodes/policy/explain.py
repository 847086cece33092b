"""Why work would go where it would: the data behind ``explain`` and ``suggest``, nothing of it run."""

from __future__ import annotations

import msgspec

from custodes.adapters.descriptor import Descriptor
from custodes.policy import history
from custodes.policy.catalog import Catalog
from custodes.policy.policy import Policy
from custodes.policy.roles import ROLE_DEFAULTS, is_role
from custodes.policy.routing import Resolution, Route, RouteRequest, Step, resolve
from custodes.policy.trigger import Decision, applies

STEP_WORDS: dict[Step, str] = {
    "request": "named by the request",
    "role": "the role's own policy",
    "orchestrator": "the orchestrator's policy",
    "preset": "a hint of the active preset",
    "role_default": "the role's default",
    "history": "what went better so far",
    "adapter_default": "the adapter's default",
    "fallback": "the fallback policy",
}
"""Each step as a person reads it."""


class Estimate(msgspec.Struct, frozen=True, kw_only=True):
    """What one attempt is reckoned at: tokens, and USD where the model has a price. ``source`` says where
    both figures come from."""

    input_tokens: int
    output_tokens: int
    cost_usd: float | None
    source: str


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """``decision`` is the trigger's; ``resolution`` the route and its candidates as ``explicit`` would run
    them. The health of their pools is not looked at here."""

    role: str
    complexity: str | None
    decision: Decision
    resolution: Resolution
    estimate: Estimate | None

    @property
    def proposed(self) -> Route | None:
        """The route that would be tried first."""
        return next(iter(self.resolution.candidates), None)


def estimate(route: Route, descriptor: Descriptor) -> Estimate | None:
    """The role's default tokens at the model's declared price; None for a role that has none."""
    if not is_role(route.role):
        return None
    tokens = ROLE_DEFAULTS[route.role]
    model = descriptor.model(route.model) if route.model else None
    price = model.price if model else None
    cost = None
    source = f"tokens: the {route.role}'s default; the model has no declared price"
    if price is not None:
        cost = (tokens.input_tokens * price.input + tokens.output_tokens * price.output) / 1_000_000
        source = f"tokens: the {route.role}'s default; price: {price.source}, {price.date}"
    return Estimate(
        input_tokens=tokens.input_tokens, output_tokens=tokens.output_tokens, cost_usd=cost, source=source
    )


def explain(
    request: RouteRequest,
    complexity: str | None,
    policy: Policy,
    module_enabled: bool,
    catalog: Catalog,
    session: str = "",
    records: tuple[history.Record, ...] = (),
) -> Explanation:
    """Resolve a request exactly as a dispatch does, and say what came of it."""
    resolution = resolve(request, policy, catalog, session, records)
    first = next(iter(resolution.candidates), None)
    adapter = catalog.find(first.adapter) if first else None
    return Explanation(
        role=request.role,
        complexity=complexity,
        decision=applies(policy, module_enabled, complexity),
        resolution=resolution,
        estimate=estimate(first, adapter.descriptor) if first and adapter else None,
    )
