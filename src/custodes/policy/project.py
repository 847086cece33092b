"""Which project is meant where none is named."""

from __future__ import annotations

import os
from pathlib import Path

from custodes.paths import absent

PROJECT_MARKS = (".coding-os.yaml", ".coding-os")
"""What makes a folder a project."""
RUN_PROJECT = "CUSTODES_PROJECT"
"""The variable that tells a child's processes which project its run belongs to."""


def nearest_project(folder: Path) -> Path:
    """The nearest folder from this one upward with a project's files; this one where there is none.

    Not beyond the root of the repository that the folder is in, as git looks, nor beyond a folder that may
    not be looked into; and never up into the person's home. Above this folder only the person's own count: in
    a shared folder anybody could put a project above theirs. A child's process finds its run's project though
    another repository lies between.

    :param folder: a real path.
    """
    home, of_run = _home(), Path(os.environ.get(RUN_PROJECT) or folder)
    for candidate in (folder, *folder.parents):
        if candidate != folder and candidate == home:
            break
        if _marked(candidate, anybody=candidate == folder):
            return candidate
        if not absent(candidate / ".git") and of_run not in candidate.parents:
            break
    return folder


def _marked(folder: Path, *, anybody: bool) -> bool:
    for name in PROJECT_MARKS:
        try:
            mark = (folder / name).stat()
        except OSError:
            continue
        if anybody or mark.st_uid == os.getuid():
            return True
    return False


def _home() -> Path | None:
    try:
        return Path.home().resolve()
    except (OSError, RuntimeError):  # nobody's: a user without an entry, in a container
        return None
