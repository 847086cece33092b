"""Every span and attribute name that is emitted, in one table.

``gen_ai.*`` are the OpenTelemetry GenAI conventions (all at development stability: a rename there is one
line here). What has no convention is ``custodes.*``, never a name of our own under ``gen_ai.*``.
"""

from __future__ import annotations

from typing import Final

SCOPE: Final = "custodes"
"""The instrumentation scope."""
SCHEMA_URL: Final = "https://opentelemetry.io/schemas/gen-ai/1.42.0"

# Operations. A span of one is named "{operation} {agent or workflow}".
INVOKE_AGENT: Final = "invoke_agent"
INVOKE_WORKFLOW: Final = "invoke_workflow"
# An attempt is no GenAI operation: it is named "dispatch {adapter}" and carries no operation name.
DISPATCH: Final = "dispatch"

OPERATION_NAME: Final = "gen_ai.operation.name"
PROVIDER_NAME: Final = "gen_ai.provider.name"
AGENT_ID: Final = "gen_ai.agent.id"
AGENT_NAME: Final = "gen_ai.agent.name"
WORKFLOW_NAME: Final = "gen_ai.workflow.name"
CONVERSATION_ID: Final = "gen_ai.conversation.id"
"""Ours on the root, the runtime's native session on its CLIENT span; never invented."""
REQUEST_MODEL: Final = "gen_ai.request.model"
REASONING_LEVEL: Final = "gen_ai.request.reasoning.level"
RESPONSE_MODEL: Final = "gen_ai.response.model"
INPUT_TOKENS: Final = "gen_ai.usage.input_tokens"
OUTPUT_TOKENS: Final = "gen_ai.usage.output_tokens"
CACHE_READ_TOKENS: Final = "gen_ai.usage.cache_read.input_tokens"
ERROR_TYPE: Final = "error.type"

RUN_ID: Final = "custodes.run.id"
"""Of a child: its run, as ``cos runs list`` has it."""
WORK_NAME: Final = "custodes.work.name"
"""Of a child: the name of its work."""
FAN_OUT_SIZE: Final = "custodes.fan_out.size"
"""How many children a fan-out was asked for."""
BUDGET_CHILDREN: Final = "custodes.budget.children"
"""A fan-out's limit of children, where it has one."""
BUDGET_WALL_SECONDS: Final = "custodes.budget.wall_seconds"
"""A fan-out's limit of seconds by the clock."""
BUDGET_TOKENS: Final = "custodes.budget.tokens"
"""A fan-out's limit of tokens, in and out together."""
BUDGET_USD: Final = "custodes.budget.usd"
"""A fan-out's limit of USD."""
BUDGET_DEPTH: Final = "custodes.budget.depth"
"""A fan-out's limit of levels of children."""
BUDGET_SPENT_TOKENS: Final = "custodes.budget.spent.tokens"
"""Tokens that a fan-out had used at its end."""
BUDGET_SPENT_USD: Final = "custodes.budget.spent.usd"
"""USD that a fan-out had used at its end."""
ATTEMPT_NUMBER: Final = "custodes.attempt.number"
"""From 1, of one child's attempts."""
ADAPTER: Final = "custodes.adapter"
"""Where an attempt went."""
POOL: Final = "custodes.pool"
"""What an attempt is metered in, as ``adapter:bucket``."""
HEALTH_STATE: Final = "custodes.health.state"
"""Its pool's state as it asked to be let in."""
HEALTH_PROBE: Final = "custodes.health.probe"
"""Whether it was the pool's probe."""
FALLBACK_REASON: Final = "custodes.fallback.reason"
"""Why the first choice is not what ran: the category of its failure, of its limit, or of what kept it from
being asked."""
CATEGORY: Final = "custodes.error.category"
"""The normalized failure's category."""
OUTCOME: Final = "custodes.outcome"
"""``known_failed``, ``unknown``, or ``not_started`` where nothing was let in."""
RETRY_AFTER_S: Final = "custodes.retry_after_s"
"""Seconds: the wait that was stated, or until the pool recovers."""
COST_USD: Final = "custodes.cost_usd"
"""Of a call, as the runtime stated it."""
RELAYED_SPANS: Final = "custodes.relay.spans"
"""Of a runtime's own spans, those that were hung under its call."""
RELAY_LEFT_OUT: Final = "custodes.relay.left_out"
"""Of a runtime's own spans, those that were not hung there."""
TOOL_USES: Final = "custodes.tool_calls"
"""How many tools a runtime was seen to use in a call."""
RECOVERED: Final = "custodes.recovered"
"""True on a span that its process never ended: told from what the store knows of it."""

# Metrics. What a span has by the same name is what is counted.
TOKEN_MODALITY: Final = "gen_ai.token.modality"  # noqa: S105 - of language
INVOKE_AGENT_DURATION: Final = "gen_ai.invoke_agent.duration"
INVOKE_WORKFLOW_DURATION: Final = "gen_ai.invoke_workflow.duration"
INFERENCE_DURATION: Final = "gen_ai.client.inference.duration"
TOOL_CALLS: Final = "gen_ai.invoke_agent.tool_calls"
USAGE_INPUT_TOKENS: Final = "gen_ai.client.inference.usage.input_tokens"
USAGE_OUTPUT_TOKENS: Final = "gen_ai.client.inference.usage.output_tokens"
USAGE_CACHE_READ_TOKENS: Final = "gen_ai.client.inference.usage.cache_read.input_tokens"
ATTEMPTS: Final = "custodes.attempts"
"""Attempts that were let in, by pool and error type."""
REFUSALS: Final = "custodes.refusals"
"""Attempts that were not let in, by pool and error type."""
FALLBACKS: Final = "custodes.fallbacks"
"""Attempts that stand in for another, by pool and reason."""
PROBES: Final = "custodes.probes"
"""Attempts that were their pool's probe."""
POOL_STATE: Final = "custodes.pool.state"
"""0 healthy, 1 half open, 2 cooling down, as an attempt last saw it."""
POOL_COOLDOWN: Final = "custodes.pool.cooldown"
"""Seconds of a pool's wait, as an attempt last saw it."""
CANCEL_DURATION: Final = "custodes.cancel.duration"
"""Seconds from a cancel to the proof that nothing is left."""

# The result metadata's own keys (seed: "Dispatch identity and evidence"); the rest are gen_ai.*.
META_CAPACITY_SCOPE: Final = "capacity_scope"
META_HEALTH_STATE: Final = "health_state"
META_HEALTH_PROBE: Final = "health_probe"
META_ERROR_CATEGORY: Final = "error_category"
META_RETRY_AFTER_S: Final = "retry_after_s"

NOT_STARTED: Final = "not_started"
"""The outcome of an attempt that its pool, or its adapter, did not let in."""
PARENT: Final = "parent"
"""The name of the agent at the root: the conversation itself."""
CANCELLED: Final = "cancelled"
"""``error.type`` of a span that a cancellation ended (the SDK would leave such a span unset)."""


def provider_name(provider: str, adapter: str) -> str:
    """``gen_ai.provider.name``: what the descriptor declares, else the adapter's id."""
    return provider or adapter
