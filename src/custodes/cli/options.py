"""Options that several commands share."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter, Token

from custodes.adapters.errors import instead
from custodes.cli.output import Format, complain, plain, usage_error
from custodes.paths import there
from custodes.policy.policy import Complexity
from custodes.policy.project import nearest_project
from custodes.policy.trigger import COMPLEXITIES, complexity_of

ProjectDir = Annotated[
    Path,
    Parameter(
        name=["--project-dir", "-d"],
        help="The project's folder; where not given, the current one or the nearest project above it.",
    ),
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
Otlp = Annotated[
    str,
    Parameter(
        name="--otlp",
        help="Where an OTLP/HTTP collector takes spans, as http://localhost:4318; else OTEL_* decide.",
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
    """The project's real path: where none was named, the nearest one from the current folder upward.

    :raises CliError: it is no folder, or has a name that no settings file could hold.
    """
    folder = folder_at(project_dir)
    return folder if project_dir != Path() else nearest_project(folder)


def folder_at(project_dir: Path) -> Path:
    """The real path of that very folder.

    :raises CliError: as for :func:`project_at`.
    """
    try:
        if not (there(project_dir) and project_dir.is_dir()):
            raise usage_error(f"{project_dir} is no folder; -d takes the project's")
        folder = project_dir.resolve()
    except OSError as error:  # a name too long, or the current folder was deleted
        which = f"the folder {project_dir}" if project_dir != Path() else "the current folder"
        raise usage_error(f"{which} cannot be used ({error.strerror}); -d takes the project's") from None
    try:
        str(folder).encode()
    except UnicodeEncodeError:
        raise usage_error(f"{folder} cannot be written as UTF-8; give the folder another name") from None
    return folder


def note_outside(project: Path, scopes: Iterable[str]) -> None:
    """Say on stderr which of these scopes do not lie in the project: often a path typed from a subfolder."""
    from custodes.supervision.writers.scopes import outside

    with contextlib.suppress(OSError, ValueError):  # no path: whoever takes the work refuses it
        for name in dict.fromkeys(outside(project, scopes)):
            complain(
                f"cos: note: the scope {plain(name)} lies outside the project {project}: only work of this "
                "project takes turns there"
            )


def timeout_of(value: float | None) -> float | None:
    """The seconds of ``--timeout``.

    :raises CliError: they are none.
    """
    if value is not None and not 0 < value < float("inf"):
        raise usage_error(f"--timeout {value} is no number of seconds above 0")
    return value


def seconds(name: str, value: float | None) -> float | None:
    """A number of seconds from 0 up.

    :raises CliError: it is none.
    """
    if value is not None and not 0 <= value < float("inf"):
        raise usage_error(f"{name} {value} is no number of seconds from 0 up")
    return value
