"""A virtual environment of its own for what is measured beside us, so that it changes nothing of ours."""

from __future__ import annotations

import json
import subprocess
import venv
from pathlib import Path


class CannotInstallError(Exception):
    """What could not be installed, in the installer's own last words."""


def environment(folder: Path, *requirements: str) -> Path:
    """The interpreter of the environment in ``folder``, made where it is missing, with these installed.

    :param requirements: what pip installs, as it is written on pip's command line.
    :raises CannotInstallError: the environment cannot be made, or pip failed.
    """
    python, note = folder / "bin" / "python", folder / "installed.json"
    wanted = json.dumps([_content(each) for each in requirements])
    if python.exists() and note.exists() and note.read_text() == wanted:
        return python  # pip takes seconds to find that out
    if not python.exists():
        try:
            venv.create(folder, with_pip=True)
        except (OSError, subprocess.CalledProcessError) as error:
            raise CannotInstallError(f"no virtual environment can be made in {folder}: {error}") from error
    if not requirements:
        return python
    install = [str(python), "-m", "pip", "install", "-q", "--disable-pip-version-check", *requirements]
    ran = subprocess.run(install, capture_output=True, text=True, check=False)
    if ran.returncode:
        said = ran.stderr.strip().splitlines() or ["pip failed and said nothing"]
        raise CannotInstallError(said[-1])
    note.write_text(wanted)
    return python


def _content(requirement: str) -> str:
    """What is asked for, where that stands in a file."""
    file = Path(requirement)
    return file.read_text() if file.is_file() else requirement
