"""Run one of the programs a project names: the prompt on stdin, the evidence on stdout."""

from __future__ import annotations

import re

import msgspec

from custodes.adapters import failures, foreign, native, waits
from custodes.adapters.command.statement import Statement, read_statement
from custodes.adapters.descriptor import Descriptor, Model
from custodes.adapters.port import DispatchRequest, DispatchResult, Failure, Progress, ProgressSink
from custodes.adapters.process import (
    ProcessResult,
    ProgramError,
    ProgramMissing,
    ProgramNotExecutable,
    base_environment,
    run_program,
)
from custodes.adapters.refusal import undeclared

MAX_OUTPUT = 1 << 20
"""Bytes of stdout. Evidence is a slice of what was found, not a log of how."""

_WORTH_READING = re.compile(
    rb"limit|quota|requests|overload|capacity|demand|log.?(?:ged )?in|signed|auth|key|billing|balance|credit"
    rb"|payment|busy|expired|40[123]|429|50[0-9]|529|server|gateway|unavailable"
)
"""Of a line in small letters: to ignore case takes fifteen times as long, and each line is looked at."""
_BY_WORDING: tuple[failures.Kind, ...] = ("limit", "billing", "auth", "overloaded", "server")
"""What a program that failed is believed to mean by its words, the strongest first. Its other words
(timeouts, refused connections) are as likely about its own work as about a provider's."""


class CommandRuntime:
    def __init__(self, descriptor: Descriptor) -> None:
        self._descriptor = descriptor

    async def dispatch(self, request: DispatchRequest, progress: ProgressSink) -> DispatchResult:
        model = request.model or self._descriptor.default_model
        program = self._descriptor.model(model) if model else None
        if wrong := self._refusal(request, model, program):
            return DispatchResult(failure=failures.failure("invalid", self._descriptor.id, detail=wrong))
        assert program is not None  # noqa: S101 - _refusal names every other case
        return await self._run(request, program, progress)

    def _refusal(self, request: DispatchRequest, model: str | None, program: Model | None) -> str:
        names = ", ".join(entry.id for entry in self._descriptor.models if entry.argv) or "none"
        if model is None:
            return f"no program was named; declared: {names}"
        if program is None or not program.argv:
            return f"'{model}' is not one of its programs; declared: {names}"
        return undeclared(self._descriptor, request)

    async def _run(self, request: DispatchRequest, program: Model, progress: ProgressSink) -> DispatchResult:
        who = f"{self._descriptor.id} program '{program.id}'"
        listener = _Listener()
        try:
            ended = await run_program(
                program.argv,
                cwd=request.cwd,
                environment=base_environment(
                    {
                        "CUSTODES_ROLE": request.role,
                        "CUSTODES_MUTABLE": "1" if request.mutable else "0",
                        **request.environment,
                    },
                    self._descriptor.readiness.env,
                ),
                stdin=request.prompt.encode(),
                timeout_s=request.timeout_s,
                on_line=listener.output,
                on_error_line=listener.error,
                on_start=lambda pid: progress(Progress(kind="started", pid=pid)),
                keep_bytes=MAX_OUTPUT // 2,
            )
        except (ProgramMissing, ProgramNotExecutable):
            # Not "unavailable": that would take every other program of this adapter out with it.
            detail = "its program was not found or is not executable"
            return DispatchResult(failure=failures.failure("invalid", who, detail=detail))
        except ProgramError as error:
            return DispatchResult(failure=native.not_run(error, who))
        text = ended.stdout.decode("utf-8", "replace").strip()
        failure = _failure(ended, listener, text, request, who)
        if failure is not None:
            return DispatchResult(failure=failure)
        # Whether a line is a banner or an answer only its author knows, so output is told at the end.
        progress(Progress(kind="output", chars=len(text)))
        return DispatchResult(text=text, structured=foreign.decode(text), served_model=program.id)


class _Listener:
    """What the lines say while they pass, wherever they stand in however much output."""

    def __init__(self) -> None:
        self.statement: Statement | None = None
        self.stated_last = False
        self.size = 0
        self.kind: failures.Kind | None = None
        self.worded = ""

    def output(self, line: bytes) -> None:
        self.size += len(line) + 1
        if not line.strip():
            return
        found = read_statement(line)
        self.statement = found or self.statement
        self.stated_last = found is not None
        if found is None:
            self.error(line)

    def error(self, line: bytes) -> None:
        if len(line) > 2_000 or not _WORTH_READING.search(line.lower()):
            return
        text = line.decode("utf-8", "replace")
        kind = failures.kind_of_text(text, waits.now())
        if kind in _BY_WORDING and (
            self.kind is None or _BY_WORDING.index(kind) < _BY_WORDING.index(self.kind)
        ):
            self.kind, self.worded = kind, text


def _failure(
    ended: ProcessResult, listener: _Listener, text: str, request: DispatchRequest, who: str
) -> Failure | None:
    """None where it did what was asked: exit code 0, an answer, nothing left running."""
    if (unfinished := native.not_finished(ended, who, request.timeout_s)) is not None:
        return _ran(unfinished, request)
    statement = listener.statement if listener.stated_last or ended.exit_code else None
    if statement is None and len(text) <= 64_000:
        statement = read_statement(text.encode())  # printed over several lines
    if statement is not None:
        return statement.failure(who, ended.ending, mutable=request.mutable)
    if ended.exit_code != 0:
        if listener.kind is None:
            return _ran(failures.failure("other", who, detail=ended.ending), request)
        said = failures.Said(message=listener.worded)
        wait = failures.stated_wait(said, waits.now())
        return _ran(failures.failure(listener.kind, who, detail=ended.ending, retry_after_s=wait), request)
    if listener.size > MAX_OUTPUT or len(ended.stdout) > MAX_OUTPUT:
        return _ran(failures.failure("other", who, detail=f"printed more than {MAX_OUTPUT} bytes"), request)
    if not text:
        return _ran(failures.failure("other", who, detail="ended well but printed nothing"), request)
    return None


def _ran(failure: Failure, request: DispatchRequest) -> Failure:
    """A program that may write had begun: what it changed before it failed is not known."""
    if not request.mutable:
        return failure
    return msgspec.structs.replace(failure, outcome="unknown", accepted=True)


def runtime(descriptor: Descriptor) -> CommandRuntime:
    return CommandRuntime(descriptor)
