"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter, Token

from custodes.adapters.errors import instead
from custodes.cli.output import Format, usage_error
from custodes.policy.policy import Complexity
from custodes.policy.trigger import COMPLEXITIES, complexity_of

ProjectDir = Annotated[
    Path,
    Parameter(name=["--project-dir", "-d"], help="The project's folder; the current one where not given."),
]
FormatOption = Annotated[
    Format,
    Parameter(name="--format", help="Text for people, or one JSON document on stdout, also on failure."),
]
Wait = Annotated[
    float | None,
    Parameter(
        name="--wait",
        help="Seconds it may wait for the soonest recovery of a refused pool, instead of ending refused.",
    ),
]
SessionAdapter = Annotated[
    str,
    Parameter(
        name="--adapter",
        help="The runtime this session itself runs on, for what no policy routes; else the first ready one.",
    ),
]


def _complexity(_: object, tokens: tuple[Token, ...]) -> Complexity:
    """In any case, as the policy reads it."""
    word = tokens[0].value
    found = complexity_of(word)
    if found is None:
        raise ValueError(f"unknown complexity {word!r}; {instead(word, COMPLEXITIES)}")
    return found


def complexity(name: str, help: str) -> Parameter:  # noqa: A002 - the parameter's word
    """The option for a complexity."""
    return Parameter(name=name, help=help, converter=_complexity)


def project_at(project_dir: Path) -> Path:
    """The project's real path.

    :raises CliError: it is no folder, or has a name that no settings file could hold.
    """
    if not project_dir.is_dir():
        raise usage_error(f"{project_dir} is no folder; -d takes the project's")
    project = project_dir.resolve()
    try:
        str(project).encode()
    except UnicodeEncodeError:
        raise usage_error(f"{project} cannot be written as UTF-8; give the folder another name") from None
    return project


def seconds(name: str, value: float | None) -> float | None:
    """A number of seconds from 0 up.

    :raises CliError: it is none.
    """
    if value is not None and not 0 <= value < float("inf"):
        raise usage_error(f"{name} {value} is no number of seconds from 0 up")
    return value
