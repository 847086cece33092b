"""One run of Claude Code without a person: the prompt on standard input, its events on standard output."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from datetime import datetime

from custodes.adapters import failures, foreign, native, waits
from custodes.adapters.asks import Asks
from custodes.adapters.claude.arguments import arguments, environment
from custodes.adapters.claude.control import Control
from custodes.adapters.claude.stream import Stream, Trouble
from custodes.adapters.descriptor import Descriptor
from custodes.adapters.port import DispatchRequest, DispatchResult, Failure, ProgressSink
from custodes.adapters.process import ProcessResult

_TOO_OLD = re.compile(r"unknown (?:option|argument|command)", re.IGNORECASE)


class ClaudeRuntime:
    """``clock`` gives an aware now: stated moments are turned into seconds by it."""

    def __init__(self, descriptor: Descriptor, clock: Callable[[], datetime] = waits.now) -> None:
        self._descriptor = descriptor
        self._clock = clock

    async def dispatch(self, request: DispatchRequest, progress: ProgressSink) -> DispatchResult:
        who = self._descriptor.id
        model = request.model or self._descriptor.default_model or "sonnet"
        if wrong := native.refusal(self._descriptor, request, model):
            return DispatchResult(failure=failures.failure("invalid", who, detail=wrong))
        asks = Asks(request.permit)
        control = Control(request, asks)
        stream = Stream(progress, control)
        failure = await native.attempt(
            who,
            arguments(self._descriptor.binary, request, model),
            request=request,
            environment=environment(request, os.environ),
            stdin=control.stdin,
            reader=stream,
            verdict=lambda ended: verdict(ended, stream, who, self._clock()),
            progress=progress,
            asks=asks,
        )
        result = stream.result if failure is None else None
        return DispatchResult(
            text=foreign.text(result.get("result")).strip() if result else "",
            structured=result.get("structured_output") if result and request.schema is not None else None,
            failure=failure,
            usage=stream.usage,
            native_thread_id=stream.session or None,
            served_model=stream.model or None,
        )


def verdict(ended: ProcessResult, stream: Stream, who: str, now: datetime) -> Failure | None:
    """None where its result says that it is done: ``is_error`` false and an answer."""
    if stream.result is None:
        if stream.retrying is not None:
            return told(stream.retrying, stream, who, now)
        return _without_result(ended, stream, who, now)
    if (trouble := stream.trouble()) is not None:
        return told(trouble, stream, who, now)
    text, structured = stream.result.get("result"), stream.result.get("structured_output")
    if stream.result.get("subtype") != "success" or not (text or structured is not None):
        return failures.failure("other", who, detail="ended well but gave no answer")
    if len(foreign.text(text)) > native.MAX_ANSWER:
        return failures.failure("other", who, detail="its answer is longer than the bound")
    return None


def told(trouble: Trouble, stream: Stream, who: str, now: datetime) -> Failure:
    """What a failed request comes to. Without a status, hang, refused and cut differ by words alone."""
    if trouble.status is None and "connection_failed" in trouble.codes:
        return failures.failure("refused" if failures.UNREACHED.search(trouble.message) else "cut", who)
    headers = stream.headers if trouble.status else {}
    # Its own delay is the stated wait and a pause on top: second best.
    stated = {"retry_delay_ms": None if headers else stream.delay_ms, "resets_at": stream.resets_at}
    said = failures.Said(
        status=trouble.status,
        codes=trouble.codes,
        # The clock time in its words is the same moment as the field's, to the minute; the field is exact.
        message="" if stream.resets_at and trouble.status else trouble.message,
        headers=headers,
        body={name: value for name, value in stated.items() if value is not None},
    )
    return failures.classify(said, who=who, now=now)


def _without_result(ended: ProcessResult, stream: Stream, who: str, now: datetime) -> Failure:
    if stream.session:
        return failures.failure("cut", who, detail=ended.ending)
    if _TOO_OLD.search(stream.words):
        return failures.failure("missing", who, detail="it does not know an option; is it too old?")
    kind = failures.kind_of(failures.Said(message=stream.words), now)
    return failures.failure(kind, who, detail=ended.ending)


def runtime(descriptor: Descriptor) -> ClaudeRuntime:
    return ClaudeRuntime(descriptor)
