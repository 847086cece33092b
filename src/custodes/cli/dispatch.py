"""``cos dispatch``: one piece of work."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from custodes.cli.options import (
    FormatOption,
    Otlp,
    ProjectDir,
    SessionAdapter,
    Wait,
    note_outside,
    project_at,
    seconds,
    timeout_of,
)
from custodes.cli.options import complexity as complexity_option
from custodes.cli.output import usage_error
from custodes.policy.policy import Complexity
from custodes.policy.roles import ROLE_DEFAULTS, Role


async def dispatch(
    prompt: Annotated[str, Parameter(help="What is asked; `-` reads it from stdin.")],
    /,
    *,
    role: Annotated[Role, Parameter(help="The role that does it.")],
    scope: Annotated[
        list[str] | None,
        Parameter(negative=(), help="What it may change, as paths from the project on; repeat it for more."),
    ] = None,
    mutable: Annotated[
        bool | None, Parameter(help="Whether it may change files; the role's own default where not given.")
    ] = None,
    model: Annotated[str, Parameter(help="The model, instead of the policy's.")] = "",
    effort: Annotated[str, Parameter(help="The effort, instead of the policy's.")] = "",
    on: Annotated[str, Parameter(help="The adapter this work goes to, instead of the policy's.")] = "",
    complexity: Annotated[
        Complexity | None, complexity_option("--complexity", "How hard it is, for the adaptive mode.")
    ] = None,
    timeout: Annotated[  # noqa: ASYNC109 - it bounds an attempt, not this function
        float | None, Parameter(help="Seconds that one attempt may take.")
    ] = None,
    resume: Annotated[
        str,
        Parameter(help="An earlier run whose own thread this goes on in, on its adapter and model."),
    ] = "",
    wait: Wait = None,
    adapter: SessionAdapter = "",
    otlp: Otlp = "",
    project_dir: ProjectDir = Path(),
    format: FormatOption = "text",  # noqa: A002 - the option's word
) -> int:
    """Give one piece of work to a child and show its evidence.

    Example: cos dispatch --role reviewer "What in src/ would break on Windows?"
    """
    project = project_at(project_dir)
    timeout = timeout_of(timeout)
    text = sys.stdin.buffer.read().decode(errors="surrogateescape") if prompt == "-" else prompt
    if not text.strip():
        raise usage_error("the prompt is empty; say what is asked")

    from custodes import Conversation, Outcome, Work
    from custodes.cli.conduct import conduct, session_adapter
    from custodes.supervision.plans.plan_run import Begun

    try:
        work = Work(
            role=role,
            prompt=text,
            scope=tuple(scope or ()),
            mutable=mutable,
            adapter=on,
            model=model,
            effort=effort,
            complexity=complexity,
            timeout=timeout,
            wait=seconds("--wait", wait) or 0,
            resume=resume,
        )
    except ValueError as error:  # what was typed, or read, is no text
        raise usage_error(str(error)) from None

    if ROLE_DEFAULTS[role].mutable if mutable is None else mutable:
        note_outside(project, work.scope)

    async def ask(parent: Conversation, _: Begun) -> tuple[Outcome, ...]:
        return (await parent.dispatch(work),)

    return await conduct(
        project, role, ask, adapter=session_adapter(project, adapter), form=format, otlp=otlp
    )
