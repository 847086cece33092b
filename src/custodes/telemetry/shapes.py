"""What each span of the tree is called and says: one function a level, for spans that begin now and for those
that the store tells of. Values that are not known are None.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol, TypedDict, Unpack, cast

from custodes.telemetry import conventions as names
from custodes.telemetry.lineage import Level
from custodes.telemetry.values import Value, text


class Shape(NamedTuple):
    level: Level
    name: str
    attributes: dict[str, Value | None]


class Limits(Protocol):
    """What a fan-out may spend: any budget with these. None is no limit."""

    @property
    def children(self) -> int | None: ...

    @property
    def wall_seconds(self) -> float | None: ...

    @property
    def tokens(self) -> int | None: ...

    @property
    def usd(self) -> float | None: ...

    @property
    def depth(self) -> int | None: ...


class Known(TypedDict, total=False):
    """What becomes known of a span after it has begun; None is not known."""

    input_tokens: int | None
    output_tokens: int | None
    cached_input_tokens: int | None
    cost_usd: float | None
    native_conversation: str | None
    """The runtime's own session id, as it stated it; for its call's span."""
    served_model: str | None
    """The model that answered, where the runtime names it."""
    category: str | None
    """The normalized failure's; the span is no error by that alone."""
    outcome: str | None
    """``known_failed`` or ``unknown``, or how a child ended."""
    retry_after_s: int | None
    fan_out_size: int | None
    spent_tokens: int | None
    """Of the whole fan-out's budget, in and out together; ``spent_usd`` likewise."""
    spent_usd: float | None
    tool_calls: int | None
    relayed_spans: int | None
    left_out_spans: int | None
    """Of a runtime's own, those that were not hung under its call."""


_NAMES = {
    "input_tokens": names.INPUT_TOKENS,
    "output_tokens": names.OUTPUT_TOKENS,
    "cached_input_tokens": names.CACHE_READ_TOKENS,
    "cost_usd": names.COST_USD,
    "native_conversation": names.CONVERSATION_ID,
    "served_model": names.RESPONSE_MODEL,
    "category": names.CATEGORY,
    "outcome": names.OUTCOME,
    "retry_after_s": names.RETRY_AFTER_S,
    "fan_out_size": names.FAN_OUT_SIZE,
    "spent_tokens": names.BUDGET_SPENT_TOKENS,
    "spent_usd": names.BUDGET_SPENT_USD,
    "tool_calls": names.TOOL_USES,
    "relayed_spans": names.RELAYED_SPANS,
    "left_out_spans": names.RELAY_LEFT_OUT,
}


def conversation(conversation_id: str) -> Shape:
    """The root. An empty id is left out, since none is ever invented."""
    return _agent("conversation", names.PARENT, {names.CONVERSATION_ID: conversation_id or None})


def fan_out(name: str, budget: Limits | None = None) -> Shape:
    """Children that were asked for together. ``name`` is one of few."""
    attributes: dict[str, Value | None] = {
        names.OPERATION_NAME: names.INVOKE_WORKFLOW,
        names.WORKFLOW_NAME: name,
        names.BUDGET_CHILDREN: None if budget is None else budget.children,
        names.BUDGET_WALL_SECONDS: None if budget is None else budget.wall_seconds,
        names.BUDGET_TOKENS: None if budget is None else budget.tokens,
        names.BUDGET_USD: None if budget is None else budget.usd,
        names.BUDGET_DEPTH: None if budget is None else budget.depth,
    }
    return Shape("fan_out", f"{names.INVOKE_WORKFLOW} {text(name)}", attributes)


def child(role: str, run_id: str, name: str) -> Shape:
    return _agent("child", role, {names.RUN_ID: run_id, names.WORK_NAME: name or None})


def attempt(
    *,
    number: int,
    adapter: str,
    pool: str | None,
    health_state: str | None,
    probe: bool,
    fallback_reason: str | None = None,
) -> Shape:
    attributes: dict[str, Value | None] = {
        names.ATTEMPT_NUMBER: number,
        names.ADAPTER: adapter,
        names.POOL: pool,
        names.HEALTH_STATE: health_state,
        names.HEALTH_PROBE: probe,
        names.FALLBACK_REASON: fallback_reason,
    }
    return Shape("attempt", f"{names.DISPATCH} {text(adapter)}", attributes)


def blocked(
    *, adapter: str, pool: str | None, category: str, health_state: str | None, retry_after_s: int | None
) -> Shape:
    attributes: dict[str, Value | None] = {
        names.ADAPTER: adapter,
        names.POOL: pool,
        names.HEALTH_STATE: health_state,
        names.CATEGORY: category,
        names.OUTCOME: names.NOT_STARTED,
        names.RETRY_AFTER_S: retry_after_s,
    }
    return Shape("attempt", f"{names.DISPATCH} {text(adapter)}", attributes)


def call(*, role: str, provider: str, adapter: str, model: str | None, effort: str | None) -> Shape:
    """``provider`` is the descriptor's, which may be empty: the adapter's id stands in for it."""
    attributes: dict[str, Value | None] = {
        names.PROVIDER_NAME: names.provider_name(provider, adapter),
        names.AGENT_ID: role,
        names.ADAPTER: adapter,
        names.REQUEST_MODEL: model,
        names.REASONING_LEVEL: effort,
    }
    return _agent("call", role, attributes)


def known(**said: Unpack[Known]) -> dict[str, Value | None]:
    """The attributes of what has become known."""
    values = cast("dict[str, Value | None]", said)
    return {_NAMES[name]: value for name, value in values.items()}


def _agent(level: Level, agent: str, attributes: dict[str, Value | None]) -> Shape:
    named = {names.OPERATION_NAME: names.INVOKE_AGENT, names.AGENT_NAME: agent, **attributes}
    return Shape(level, f"{names.INVOKE_AGENT} {text(agent)}", named)
