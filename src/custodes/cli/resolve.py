"""``cos runs resolve``: an operator's word on how work of unknown outcome ended."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from cyclopts import Parameter

from custodes.adapters.errors import instead
from custodes.cli.options import FormatOption, ProjectDir, project_at
from custodes.cli.output import DONE, plain, usage_error, write, write_json

if TYPE_CHECKING:
    from custodes.supervision.plans.resolution import Said

_WORDS: tuple[Said, ...] = ("done", "failed")
_MOST_BYTES = 1024 * 1024


async def resolve(
    run: Annotated[str, Parameter(help="The run, or the plan run, as `cos runs list` shows it.")],
    step_or_outcome: Annotated[str, Parameter(help="STEP of a plan run; else `done` or `failed`.")],
    outcome: Annotated[str, Parameter(help="After STEP: `done` or `failed`.")] = "",
    /,
    *,
    summary: Annotated[str, Parameter(help="With `done`: what it came to, for the steps that need it.")] = "",
    evidence: Annotated[
        Path | None, Parameter(help="With `done`: a JSON file with the evidence of its role, instead.")
    ] = None,
    project_dir: ProjectDir = Path(),
    format: FormatOption = "text",  # noqa: A002 - the option's word
) -> int:
    """Say how mutable work ended whose outcome nobody knows. Look at its scope first.

    `done` keeps a plan's step, and what needs it goes on. `failed` says that it
    left nothing behind: a resume runs it again. It starts and sends nothing, and
    is written to .coding-os/extensions-audit.log.

    Example: cos runs resolve RUN fix done --summary "The fix is in src/a.py, its tests pass."
    """
    step, word = (step_or_outcome, outcome) if outcome else (None, step_or_outcome)
    said = next((each for each in _WORDS if each == word), None)
    if said is None:
        raise usage_error(f"{plain(word)!r} is no outcome; {instead(word, _WORDS)}")
    if said == "failed" and (summary or evidence is not None):
        raise usage_error("what failed has no evidence; it goes with `done`")
    if summary and evidence is not None:
        raise usage_error("--summary and --evidence: one of the two would work")
    project = project_at(project_dir)
    document = {"summary": summary} if summary else _read(evidence) if evidence is not None else None

    from custodes.supervision.plans.resolution import resolve_in_file

    resolved = await resolve_in_file(project, run, said, "cli", step=step, evidence=document)
    if format == "json":
        write_json(resolved)
        return DONE
    write(f"run {plain(resolved.run_id)} was {resolved.before} and is now {resolved.outcome}")
    if resolved.plan is not None:
        write(f"`cos run --resume {plain(resolved.plan)}` goes on with its plan")
    return DONE


def _read(place: Path) -> dict[str, Any]:
    try:
        with place.open("rb") as file:
            data = file.read(_MOST_BYTES + 1)
    except OSError as error:
        raise usage_error(f"{place}: cannot be read: {error.strerror or error}") from None
    if len(data) > _MOST_BYTES:
        raise usage_error(f"{place}: is larger than {_MOST_BYTES} bytes")
    try:
        return msgspec.json.decode(data, type=dict[str, Any])
    except (msgspec.DecodeError, RecursionError) as error:
        raise usage_error(f"{place}: is no JSON object: {error}") from None
