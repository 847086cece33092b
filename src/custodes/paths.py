"""Whether something is there, where not to know it is an answer of its own."""

from __future__ import annotations

import errno
import os
from pathlib import Path

_MISSING = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP})


def there(path: Path) -> bool:
    """Whether there is something of this name, be it a link that leads nowhere. A name that no file can have
    is not there.

    ``Path.exists`` and its like do not do: from Python 3.14 on they say False of what nobody can tell.

    :raises OSError: nobody can tell: the name is too long, or a folder above it may not be looked into.
    """
    try:
        os.lstat(path)
    except ValueError:  # a NUL in it
        return False
    except OSError as error:
        if error.errno in _MISSING:
            return False
        raise
    return True


def absent(path: Path) -> bool:
    """Whether there is certainly nothing of this name. Where nobody can tell it is False: whoever then opens
    it hears why."""
    try:
        return not there(path)
    except OSError:
        return False
