"""``cos run``: a plan's steps as children, as far in parallel as their needs allow."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from custodes.cli.options import FormatOption, Otlp, ProjectDir, SessionAdapter, Wait, project_at, seconds

if TYPE_CHECKING:
    from custodes import Conversation, Outcome
    from custodes.supervision.budget import Spending


async def run(
    plan: Annotated[Path, Parameter(help="The plan, a YAML file.")],
    /,
    *,
    wait: Wait = None,
    adapter: SessionAdapter = "",
    otlp: Otlp = "",
    project_dir: ProjectDir = Path(),
    format: FormatOption = "text",  # noqa: A002 - the option's word
) -> int:
    """Run a plan under supervision.

    A plan is a YAML file with `steps`, each with an id, a role and a prompt,
    and where wanted: scope, mutable, needs, adapter, model, effort, complexity,
    timeout and max_wait (seconds), estimate_tokens and estimate_usd. Beside
    them: name, max_parallel and budget (children, depth, wall_seconds, tokens,
    usd, and when_spent: finish or stop).

    Example: cos run review.yaml --wait 60
    """
    project, wait_s = project_at(project_dir), seconds("--wait", wait)

    from custodes.cli.conduct import conduct, session_adapter
    from custodes.supervision.plan import load_plan, run_plan

    loaded = load_plan(plan)
    default = session_adapter(project, adapter)

    async def ask(parent: Conversation) -> tuple[tuple[Outcome, ...], Spending]:
        end = await run_plan(parent, loaded, wait=wait_s)
        return end.outcomes, end.spent

    return await conduct(project, loaded.name, ask, adapter=default, form=format, otlp=otlp)
