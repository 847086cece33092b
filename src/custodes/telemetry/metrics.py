"""What the tree's spans come to as numbers; imported only where a meter is configured.

Each end of a span is one set of records. Attributes are of few values: roles, adapters, pools, models,
categories; never an id, a label or a text.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import version

from opentelemetry.metrics import MeterProvider

from custodes.telemetry import conventions as names
from custodes.telemetry.lineage import Level
from custodes.telemetry.values import Value

POOL_STATES = {"healthy": 0, "half_open": 1, "cooling_down": 2}
"""The values of ``custodes.pool.state``."""
_CALL = (names.OPERATION_NAME, names.PROVIDER_NAME, names.REQUEST_MODEL, names.RESPONSE_MODEL)
_USED = {
    names.INPUT_TOKENS: names.USAGE_INPUT_TOKENS,
    names.OUTPUT_TOKENS: names.USAGE_OUTPUT_TOKENS,
    names.CACHE_READ_TOKENS: names.USAGE_CACHE_READ_TOKENS,
}


class Meters:
    """Our instruments on one meter."""

    def __init__(self, provider: MeterProvider) -> None:
        meter = provider.get_meter(names.SCOPE, version("custodes"), schema_url=names.SCHEMA_URL)
        seconds = {
            name: meter.create_histogram(name, unit="s")
            for name in (
                names.INVOKE_AGENT_DURATION,
                names.INVOKE_WORKFLOW_DURATION,
                names.INFERENCE_DURATION,
                names.CANCEL_DURATION,
            )
        }
        self._seconds = seconds
        self._tokens = {used: meter.create_counter(used, unit="{token}") for used in _USED.values()}
        self._tool_calls = meter.create_histogram(names.TOOL_CALLS, unit="{tool_call}")
        self._attempts = meter.create_counter(names.ATTEMPTS, unit="{attempt}")
        self._refusals = meter.create_counter(names.REFUSALS, unit="{refusal}")
        self._fallbacks = meter.create_counter(names.FALLBACKS, unit="{fallback}")
        self._probes = meter.create_counter(names.PROBES, unit="{probe}")
        self._state = meter.create_gauge(
            names.POOL_STATE,
            description=", ".join(f"{value} {state}" for state, value in POOL_STATES.items()),
        )
        self._cooldown = meter.create_gauge(names.POOL_COOLDOWN, unit="s")
        self._size = meter.create_histogram(names.FAN_OUT_SIZE, unit="{child}")
        self._spent_tokens = meter.create_counter(names.BUDGET_SPENT_TOKENS, unit="{token}")
        self._spent_usd = meter.create_counter(names.BUDGET_SPENT_USD, unit="USD")

    def ended(self, level: Level, seconds: float, attributes: Mapping[str, Value]) -> None:
        """A span of the tree has ended. ``attributes`` are all that it has, ``error.type`` among them."""
        if level == "child":
            self._seconds[names.INVOKE_AGENT_DURATION].record(
                seconds, _some(attributes, names.AGENT_NAME, names.ERROR_TYPE)
            )
        elif level == "fan_out":
            self._fan_out(seconds, attributes)
        elif level == "attempt":
            self._attempt(attributes)
        elif level == "call":
            self._call(seconds, attributes)

    def cancelled(self, seconds: float) -> None:
        """A child was cancelled, and it took so long until all it had started was proven gone."""
        self._seconds[names.CANCEL_DURATION].record(seconds)

    def _fan_out(self, seconds: float, attributes: Mapping[str, Value]) -> None:
        about = _some(attributes, names.WORKFLOW_NAME)
        self._seconds[names.INVOKE_WORKFLOW_DURATION].record(
            seconds, about | _some(attributes, names.ERROR_TYPE)
        )
        if size := _number(attributes, names.FAN_OUT_SIZE):
            self._size.record(size, about)
        if tokens := _number(attributes, names.BUDGET_SPENT_TOKENS):
            self._spent_tokens.add(tokens, about)
        if usd := _number(attributes, names.BUDGET_SPENT_USD):
            self._spent_usd.add(usd, about)

    def _attempt(self, attributes: Mapping[str, Value]) -> None:
        pool = _some(attributes, names.ADAPTER, names.POOL)
        state = attributes.get(names.HEALTH_STATE)
        if isinstance(state, str) and state in POOL_STATES:
            self._state.set(POOL_STATES[state], pool)
        self._cooldown.set(_number(attributes, names.RETRY_AFTER_S) or 0, pool)
        ended = pool | _some(attributes, names.ERROR_TYPE)
        if attributes.get(names.OUTCOME) == names.NOT_STARTED:
            self._refusals.add(1, ended)
            return
        self._attempts.add(1, ended)
        if attributes.get(names.HEALTH_PROBE):
            self._probes.add(1, ended)
        if names.FALLBACK_REASON in attributes:
            self._fallbacks.add(1, pool | _some(attributes, names.FALLBACK_REASON))

    def _call(self, seconds: float, attributes: Mapping[str, Value]) -> None:
        about = _some(attributes, *_CALL)
        self._seconds[names.INFERENCE_DURATION].record(seconds, about | _some(attributes, names.ERROR_TYPE))
        for told, used in _USED.items():
            if tokens := _number(attributes, told):
                self._tokens[used].add(tokens, about | {names.TOKEN_MODALITY: "text"})
        if (tools := _number(attributes, names.TOOL_USES)) is not None:
            self._tool_calls.record(tools, _some(attributes, names.AGENT_NAME))


def _some(attributes: Mapping[str, Value], *wanted: str) -> dict[str, Value]:
    return {name: attributes[name] for name in wanted if name in attributes}


def _number(attributes: Mapping[str, Value], name: str) -> int | float | None:
    value = attributes.get(name)
    return value if isinstance(value, int | float) else None
