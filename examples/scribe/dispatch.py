"""One run of scribe: its prompt and our answers on its input, its events on its output, as lines of JSON."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import msgspec

from custodes.adapters import (
    Descriptor,
    DispatchRequest,
    DispatchResult,
    Failure,
    PermissionAnswer,
    Progress,
    ProgressSink,
    Usage,
    failures,
    foreign,
    native,
    waits,
)
from custodes.adapters.asks import Asks, asked
from custodes.adapters.process import ProcessResult, ProgramInput, base_environment


class Stream:
    """What the events said so far, and what is said back."""

    def __init__(self, request: DispatchRequest, asks: Asks, progress: ProgressSink) -> None:
        self.mutable = request.mutable
        self.asks = asks
        self.progress = progress
        self.stdin = ProgramInput()
        self.output_seen = self.tools = False
        self.text = ""
        self.thread: str | None = None
        self.error: failures.Said | None = None
        self.usage: Usage | None = None
        self.says({"prompt": request.prompt})

    def says(self, message: object) -> None:
        self.stdin.write(msgspec.json.encode(message) + b"\n")

    def error_line(self, _line: bytes) -> bool:
        return False

    def output_line(self, line: bytes) -> bool:
        event = foreign.mapping(foreign.decode(line))
        match event.get("event"):
            case "began":
                self.thread = foreign.text(event.get("thread")) or None
            case "said":
                said = foreign.text(event.get("text"))
                self.text = (self.text + said)[: native.MAX_ANSWER]
                self.output_seen = True
                self.progress(Progress(kind="output", chars=len(said)))
            case "asks":
                self.asked(event)
            case "error":
                status, wait = foreign.count(event.get("status")), event.get("retry_after_s")
                body = {"retry_after": wait} if wait is not None else None
                message = foreign.text(event.get("message"))
                self.error = failures.Said(status=status, message=message, body=body)
            case "done":
                self.usage = Usage(output_tokens=foreign.count(event.get("tokens")))
                self.stdin.close()
        return False

    def asked(self, event: Mapping[str, Any]) -> None:
        number, command = event.get("id"), foreign.text(event.get("command"))
        if self.mutable and command:
            ask = asked(foreign.text(event.get("tool")) or "tool", {"command": command})
            self.asks.put(ask, partial(self.answer, number))
        else:
            self.answer(number, "deny")

    def answer(self, number: object, answer: PermissionAnswer) -> None:
        self.tools = self.tools or answer == "allow"
        self.says({"answer": number, "allow": answer == "allow"})


class ScribeRuntime:
    def __init__(self, descriptor: Descriptor) -> None:
        self.descriptor = descriptor

    async def dispatch(self, request: DispatchRequest, progress: ProgressSink) -> DispatchResult:
        who = self.descriptor.id
        model = request.model or self.descriptor.default_model or ""
        if wrong := native.refusal(self.descriptor, request, model):
            return DispatchResult(failure=failures.failure("invalid", who, detail=wrong))
        asks = Asks(request.permit)
        stream = Stream(request, asks, progress)
        failure = await native.attempt(
            who,
            ["scribe", "--model", model, "--events", "write" if request.mutable else "read"],
            request=request,
            environment=base_environment(request.environment, ["SCRIBE_KEY"]),
            stdin=stream.stdin,
            reader=stream,
            verdict=lambda ended: self.verdict(ended, stream),
            progress=progress,
            asks=asks,
        )
        return DispatchResult(
            text="" if failure else stream.text,
            failure=failure,
            usage=stream.usage,
            native_thread_id=stream.thread,
        )

    def verdict(self, ended: ProcessResult, stream: Stream) -> Failure | None:
        """None where it said ``done`` itself, and there is an answer."""
        who = self.descriptor.id
        if stream.error is not None:
            return failures.classify(stream.error, who=who, now=waits.now())
        if stream.usage is None or not stream.text:
            return failures.failure("cut", who, detail=ended.ending)
        return None


def runtime(descriptor: Descriptor) -> ScribeRuntime:
    return ScribeRuntime(descriptor)
