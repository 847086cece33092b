"""What each span of the tree is called and says: one function a level, for spans that begin now and for those
that the store tells of. Values that are not known are None.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

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


def known(
    *,
    input_tokens: int | None = None,
    output_tokens: int | None = None,
    cached_input_tokens: int | None = None,
    cost_usd: float | None = None,
    native_conversation: str | None = None,
    served_model: str | None = None,
    category: str | None = None,
    outcome: str | None = None,
    retry_after_s: int | None = None,
    fan_out_size: int | None = None,
    spent_tokens: int | None = None,
    spent_usd: float | None = None,
    tool_calls: int | None = None,
    relayed_spans: int | None = None,
    left_out_spans: int | None = None,
) -> dict[str, Value | None]:
    """What becomes known of a span after it has begun.

    :param native_conversation: the runtime's own session id, as it stated it; for its call's span.
    :param served_model: the model that answered, where the runtime names it.
    :param category: the normalized failure's category; the span is no error by that alone.
    :param outcome: ``known_failed`` or ``unknown``, or how a child ended.
    :param spent_tokens: of the whole fan-out's budget, in and out together; ``spent_usd`` likewise.
    :param left_out_spans: of a runtime's own, those that were not hung under its call.
    """
    return {
        names.INPUT_TOKENS: input_tokens,
        names.OUTPUT_TOKENS: output_tokens,
        names.CACHE_READ_TOKENS: cached_input_tokens,
        names.COST_USD: cost_usd,
        names.CONVERSATION_ID: native_conversation,
        names.RESPONSE_MODEL: served_model,
        names.CATEGORY: category,
        names.OUTCOME: outcome,
        names.RETRY_AFTER_S: retry_after_s,
        names.FAN_OUT_SIZE: fan_out_size,
        names.BUDGET_SPENT_TOKENS: spent_tokens,
        names.BUDGET_SPENT_USD: spent_usd,
        names.TOOL_USES: tool_calls,
        names.RELAYED_SPANS: relayed_spans,
        names.RELAY_LEFT_OUT: left_out_spans,
    }


def _agent(level: Level, agent: str, attributes: dict[str, Value | None]) -> Shape:
    named = {names.OPERATION_NAME: names.INVOKE_AGENT, names.AGENT_NAME: agent, **attributes}
    return Shape(level, f"{names.INVOKE_AGENT} {text(agent)}", named)
