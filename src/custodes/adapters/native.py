"""What the adapters of native programs do alike: refuse, run one and listen to it, judge how it ended.

A listener reads the program's lines while they come; what they mean is each adapter's own knowledge.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import msgspec

from custodes.adapters import failures
from custodes.adapters.asks import Asks
from custodes.adapters.descriptor import Descriptor
from custodes.adapters.port import DispatchRequest, Failure, Progress, ProgressSink, Usage
from custodes.adapters.process import (
    ArgumentsTooLong,
    KeeperError,
    ProcessResult,
    ProgramError,
    ProgramInput,
    WorkingFolderError,
    run_program,
)
from custodes.adapters.refusal import undeclared

MAX_ANSWER = 1 << 20
"""Characters of one answer. Evidence is a slice of what was found, not a log of how."""


class Listener(msgspec.Struct, frozen=True):
    """What reads a program's lines of standard output and of standard error. True ends the program now."""

    output: Callable[[bytes], bool]
    error: Callable[[bytes], bool]


class Reader(Protocol):
    """What an adapter makes of its program's lines: each is taken in as it comes, and True ends the program
    now."""

    @property
    def output_seen(self) -> bool:
        """The model was seen at work."""
        ...

    @property
    def tools(self) -> bool:
        """A tool was used: something may have been changed."""
        ...

    def output_line(self, line: bytes, /) -> bool: ...

    def error_line(self, line: bytes, /) -> bool: ...


async def attempt(
    who: str,
    argv: Sequence[str],
    *,
    request: DispatchRequest,
    environment: Mapping[str, str],
    stdin: bytes | ProgramInput,
    reader: Reader,
    verdict: Callable[[ProcessResult], Failure | None],
    progress: ProgressSink,
    asks: Asks | None = None,
    on_end: Callable[[], None] | None = None,
) -> Failure | None:
    """Run a program and judge how it ended: None where it did what was asked.

    ``verdict`` is asked of every end, since some programs say all they have to say there. One that did not
    end by itself, or left something running, has failed by that all the same. ``asks`` are put while it
    runs; ``on_end`` as `run_program`.

    Under cancellation as `run_program`.
    """
    listener = Listener(reader.output_line, reader.error_line)
    ended = await run(
        who,
        argv,
        request=request,
        environment=environment,
        stdin=stdin,
        listener=listener,
        progress=progress,
        asks=asks,
        on_end=on_end,
    )
    failure: Failure | None
    if isinstance(ended, Failure):
        failure = ended
    else:
        said, unfinished = verdict(ended), not_finished(ended, who, request.timeout_s)
        failure = said if unfinished is None else unfinished
    return None if failure is None else after(failure, output=reader.output_seen, tools=reader.tools)


async def run(
    who: str,
    argv: Sequence[str],
    *,
    request: DispatchRequest,
    environment: Mapping[str, str],
    stdin: bytes | ProgramInput,
    listener: Listener,
    progress: ProgressSink,
    asks: Asks | None = None,
    on_end: Callable[[], None] | None = None,
) -> ProcessResult | Failure:
    """The program's end, or why it did not run at all. Under cancellation as `run_program`."""
    try:
        return await run_program(
            argv,
            cwd=request.cwd,
            environment=environment,
            stdin=stdin,
            timeout_s=request.timeout_s,
            on_line=listener.output,
            on_error_line=listener.error,
            on_start=lambda pid: progress(Progress(kind="started", pid=pid)),
            on_end=on_end,
            beside=None if asks is None else asks.run,
        )
    except ProgramError as error:
        return not_run(error, who)


def not_run(error: ProgramError, who: str) -> Failure:
    """The failure of a program that never began, or whose keeper was lost."""
    if isinstance(error, KeeperError):
        lost = failures.failure("other", who, detail="its keeper was lost, so how it ended is unknown")
        return msgspec.structs.replace(lost, left=tuple(map(str, error.survivors)))
    if isinstance(error, WorkingFolderError):
        return failures.failure("invalid", who, detail="its working folder is not there")
    if isinstance(error, ArgumentsTooLong):
        return failures.failure("invalid", who, detail="its arguments are too long for this system")
    return failures.failure("missing", who, detail="it was not found or is not executable")


def not_finished(ended: ProcessResult, who: str, timeout_s: float) -> Failure | None:
    """The failure of a program that did not end by itself, or left something running; else None."""
    left = tuple(map(str, ended.survivors))
    if ended.timed_out:
        late = failures.failure("timeout", who, detail=f"{timeout_s:g} s")
        return msgspec.structs.replace(late, left=left)
    if left:
        running = failures.failure("other", who, detail=f"left running: {', '.join(left)}")
        return msgspec.structs.replace(running, left=left)
    return None


def after(failure: Failure, *, output: bool, tools: bool) -> Failure:
    """A failure in the light of what came before it: once a tool was used, what was changed is unknown."""
    outcome = "unknown" if tools else failure.outcome
    return msgspec.structs.replace(failure, outcome=outcome, accepted=failure.accepted or output or tools)


def refusal(descriptor: Descriptor, request: DispatchRequest, model: str | None) -> str:
    """Why a program is not asked this, as the failure's detail; "" where it is.

    :param model: what it would be told to use; None where it is told none.
    """
    words = [word for word in (model, request.resume) if word is not None]
    wrong = (not_forwarded(word) for word in words)
    return undeclared(descriptor, request) or next(filter(None, wrong), "")


def not_forwarded(value: str) -> str:
    """Why a model or session id cannot stand as a word of a command line; "" if it can."""
    if not value or value.startswith("-") or any(ord(char) < 32 for char in value):
        return f"{value!r} is no id"
    return ""


def added(first: Usage | None, second: Usage) -> Usage:
    """The sum of two reports; what neither states stays None."""
    if first is None:
        return second

    def total(name: str) -> Any:
        values = [value for report in (first, second) if (value := getattr(report, name)) is not None]
        return sum(values) if values else None

    return Usage(**{name: total(name) for name in Usage.__struct_fields__})
