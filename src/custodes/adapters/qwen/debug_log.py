"""Its debug log, led to its standard error: the only place where it tells of a failed attempt at once.

It makes seven attempts before it prints a word of a limit, and no setting lowers that. Each one stands in the
debug log as it fails, with its status, the provider's own code and message, and the wait. The log's name is
the session's id, which we choose; a link of that name sends it where we listen, so nothing of it is stored.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path


@contextlib.contextmanager
def on_standard_error(session: str, environ: Mapping[str, str]) -> Iterator[None]:
    """While the block lasts. Where the link cannot be made, the program is only heard later."""
    folder = _home(environ) / "debug"
    link, latest = folder / f"{session}.txt", folder / "latest"
    with contextlib.suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
        link.symlink_to("/dev/fd/2")
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            if latest.is_symlink() and latest.readlink().name == link.name:
                latest.unlink()
        with contextlib.suppress(OSError):
            link.unlink()


def _home(environ: Mapping[str, str]) -> Path:
    for name in ("QWEN_RUNTIME_DIR", "QWEN_HOME"):
        if environ.get(name):
            return Path(environ[name]).expanduser()
    home = environ.get("HOME")
    return (Path(home) if home else Path.home()) / ".qwen"
