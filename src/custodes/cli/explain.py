"""``cos supervision explain``: where work would go, why there, and whether it would be let in."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from custodes.cli.options import FormatOption, ProjectDir, SessionAdapter, project_at, timeout_of
from custodes.cli.options import complexity as complexity_option
from custodes.cli.output import DONE, FAILED, counted, paint, plain, usage_error, write, write_json
from custodes.policy.policy import Complexity
from custodes.policy.roles import is_role, unknown_role

if TYPE_CHECKING:
    from custodes.policy.explain import Estimate
    from custodes.supervision.explanation import Candidate, PoolHealth, WorkExplanation

_FIELDS = ("adapter", "model", "effort", "timeout")


async def explain(
    *,
    role: Annotated[str, Parameter(help="The role whose work it is.")],
    complexity: Annotated[
        Complexity | None, complexity_option("--complexity", "How hard it is, for the adaptive mode.")
    ] = None,
    on: Annotated[str, Parameter(help="The adapter the work would name, as in `cos dispatch`.")] = "",
    model: Annotated[str, Parameter(help="The model the work would name.")] = "",
    effort: Annotated[str, Parameter(help="The effort the work would name.")] = "",
    timeout: Annotated[  # noqa: ASYNC109 - it is shown, nothing waits
        float | None, Parameter(help="Seconds for one attempt that the work would name.")
    ] = None,
    adapter: SessionAdapter = "",
    project_dir: ProjectDir = Path(),
    format: FormatOption = "text",  # noqa: A002 - the option's word
) -> int:
    """Show the route of a role's work and where each field came from.

    Every candidate passed over is named with its reason, and every pool with its
    health and what an attempt is reckoned at. Nothing is run, no token is spent.
    Exit code 1 where nothing could run.

    Example: cos supervision explain --role reviewer --complexity COMPLEX
    """
    project = project_at(project_dir)
    if not is_role(role):
        raise usage_error(unknown_role(role))
    timeout = timeout_of(timeout)

    from custodes.policy.routing import RouteRequest
    from custodes.supervision.explanation import explain_work

    request = RouteRequest(role=role, adapter=on, model=model, effort=effort, timeout=timeout)
    found = await explain_work(project, request, complexity, adapter)
    if format == "json":
        write_json(found)
    else:
        for line in _lines(found):
            write(line)
    return DONE if found.candidates else FAILED


def _lines(found: WorkExplanation) -> Iterator[str]:
    hard = f", {found.complexity}" if found.complexity else ""
    yield f"{paint(found.role, 'bold')}{hard}: {found.meaning}"
    for number, candidate in enumerate(found.candidates):
        if number:
            yield "then"
        elif found.rerouted:
            yield f"{paint('rerouted', 'yellow')}: what was asked for cannot run"
        yield from _candidate(candidate)
    if found.refusal is not None:
        yield f"{paint('refused', 'red')}: {found.refusal.category}: {plain(str(found.refusal))}"
    for other in found.passed_over:
        yield f"passed over: {plain(str(other))}"
    if found.history:
        yield f"history: {counted(found.history, 'attempt')} of this role on record"


def _candidate(candidate: Candidate) -> Iterator[str]:
    route = candidate.route
    values = {
        "adapter": route.adapter,
        "model": route.model or "the runtime's own",
        "effort": route.effort or "the runtime's own",
        "timeout": f"{route.timeout_s:g} s",
    }
    for field in _FIELDS:
        yield f"  {field:<9} {plain(values[field]):<28} {paint(candidate.because.get(field, ''), 'dim')}"
    if candidate.health is not None:
        yield f"  {'pool':<9} {plain(route.pool):<28} {_health(candidate.health)}"
    else:
        yield f"  {'pool':<9} {plain(route.pool)}"
    if candidate.estimate is not None:
        yield f"  {'estimate':<9} {estimate_words(candidate.estimate)}"


def _health(health: PoolHealth) -> str:
    if health.unavailable:
        return f"{paint('unavailable', 'red')}: {plain(health.unavailable)}"
    if health.state == "healthy":
        return paint("healthy", "green")
    wait = f", {health.recovery_s} s left" if health.recovery_s else ""
    reason = f" ({plain(health.reason)})" if health.reason else ""
    return f"{paint(health.state.replace('_', ' '), 'yellow')}{wait}{reason}"


def estimate_words(estimate: Estimate) -> str:
    """What an attempt is reckoned at, with where the figures come from."""
    cost = "" if estimate.cost_usd is None else f", {estimate.cost_usd:.4f} USD"
    tokens = f"{estimate.input_tokens} tokens in, {estimate.output_tokens} out"
    return f"{tokens}{cost} ({plain(estimate.source)})"
