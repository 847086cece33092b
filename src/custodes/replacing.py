"""A file that is replaced as a whole: no reader and no power cut ever sees half of one."""

from __future__ import annotations

import os
from pathlib import Path


def replace_file(file: Path, content: bytes, temporary: Path, mode: int = 0o600) -> None:
    """Put a whole new file in place of this one (or of none), durably.

    ``temporary`` is a name beside it that is the caller's alone, by a lock say: what a killed writer left
    under it goes.

    :raises OSError: the file stands as it did; or it is the new one, and only its folder was not synced.
    """
    temporary.unlink(missing_ok=True)
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as opened:
            os.fchmod(opened.fileno(), mode)
            opened.write(content)
            opened.flush()
            os.fsync(opened.fileno())
        temporary.replace(file)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    folder = os.open(file.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
