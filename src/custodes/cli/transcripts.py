"""A native thread as lines: its session, its transcript, and the command that goes on with it."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from custodes.cli.output import paint, plain
from custodes.supervision.record.threads import Thread


def thread_lines(thread: Thread) -> Iterator[str]:
    session = paint(plain(thread.native_thread_id), "bold")
    yield f"attempt {thread.attempt} is session {session} of {plain(thread.adapter)}"
    if thread.place is not None:
        yield f"  its transcript: {plain(thread.place)}"
    if thread.command:
        yield f"  to go on with it, in its folder: {plain(shlex.join(thread.command))}"
