"""A program of a test's own, which no failure leaves waiting."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any


@contextmanager
def running(argv: Sequence[str], **options: Any) -> Iterator[subprocess.Popen[Any]]:
    """As ``subprocess.Popen``, which waits for it at the end; killed first where the block fails."""
    with subprocess.Popen(argv, **options) as program:
        try:
            yield program
        except BaseException:
            program.kill()
            raise
