"""One run of OpenCode without a person: the prompt on standard input, its events on standard output."""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from custodes.adapters import failures, foreign, native, waits
from custodes.adapters.descriptor import Descriptor
from custodes.adapters.opencode.arguments import arguments, environment
from custodes.adapters.opencode.stream import Stream
from custodes.adapters.port import DispatchRequest, DispatchResult, Failure, ProgressSink
from custodes.adapters.process import ProcessResult

_NAMES: dict[str, failures.Kind] = {
    "ProviderAuthError": "auth",
    "ContextOverflowError": "invalid",
    "MessageOutputLengthError": "invalid",
    "ProviderModelNotFoundError": "invalid",
}
"""Its own errors that carry no status."""
_WORDS: tuple[tuple[str, failures.Kind], ...] = (
    ("unable to connect", "refused"),
    ("operation timed out", "timeout"),
    ("cannot connect to api", "cut"),
    ("model not found", "invalid"),
)


class OpenCodeRuntime:
    def __init__(self, descriptor: Descriptor) -> None:
        self._descriptor = descriptor

    async def dispatch(self, request: DispatchRequest, progress: ProgressSink) -> DispatchResult:
        who = self._descriptor.id
        if wrong := self._refusal(request):
            return DispatchResult(failure=failures.failure("invalid", who, detail=wrong))
        stream = Stream(progress)
        failure = await native.attempt(
            who,
            arguments(self._descriptor.binary, request),
            request=request,
            environment=environment(request, os.environ),
            stdin=request.prompt.encode(),
            reader=stream,
            verdict=lambda ended: self._verdict(ended, stream),
            progress=progress,
        )
        return DispatchResult(
            text="" if failure else str(stream.answer),
            failure=failure,
            usage=stream.usage,
            native_thread_id=stream.session or stream.log.session,
            served_model=stream.log.model if stream.output_seen else None,
        )

    def _refusal(self, request: DispatchRequest) -> str:
        if wrong := native.refusal(self._descriptor, request, request.model):
            return wrong
        if request.model and "/" not in request.model:
            return f"'{request.model}' must be named provider/model"
        return ""

    def _verdict(self, ended: ProcessResult, stream: Stream) -> Failure | None:
        """None where its last step finished by itself with an answer, it told no error, and it ended well."""
        who, now = self._descriptor.id, waits.now()
        if stream.answer.too_long:
            return failures.failure("other", who, detail="its answer is longer than the bound")
        if stream.error is not None:
            return told(stream.error, who, now)
        if ended.stopped or (stream.log.failed and stream.reason is None):
            return attempted(stream, who, now)
        if stream.reason == "length":
            return failures.failure("invalid", who, detail="its answer was cut off at the output limit")
        if stream.reason == "stop" and ended.exit_code == 0:
            empty = failures.failure("other", who, detail="ended well but said nothing")
            return None if str(stream.answer) else empty
        return failures.failure("cut", who, detail=ended.ending)


def told(error: Mapping[str, Any], who: str, now: datetime) -> Failure:
    """Its error event: the provider's status, headers and body before its own name, and that before words."""
    name, data = foreign.text(error.get("name")), foreign.mapping(error.get("data"))
    message = foreign.text(data.get("message"))
    body = foreign.decode(foreign.text(data.get("responseBody")))
    inner = foreign.mapping(foreign.mapping(body).get("error"))
    status = foreign.status(data.get("statusCode"))
    headers = {str(key): str(value) for key, value in foreign.mapping(data.get("responseHeaders")).items()}
    codes = tuple(
        code for code in (inner.get("code"), inner.get("type"), inner.get("status")) if isinstance(code, str)
    )
    if status is None:
        lower = message.lower()
        kind = _NAMES.get(name) or next((kind for words, kind in _WORDS if words in lower), None)
        if kind is not None:
            return failures.failure(kind, who)
    said = failures.Said(status=status, codes=codes, message=message, headers=headers, body=body)
    return failures.classify(said, who=who, now=now)


def attempted(stream: Stream, who: str, now: datetime) -> Failure:
    """What its log told of attempts that failed. What has no name and was tried again is the server's."""
    log = stream.log
    if log.kind in ("limit", "overloaded"):
        wait = failures.stated_wait(failures.Said(message=log.message), now)
        return failures.failure(log.kind, who, retry_after_s=wait)
    if log.kind is not None:
        return failures.failure(log.kind, who)
    return failures.failure("cut" if stream.output_seen else "server", who)


def runtime(descriptor: Descriptor) -> OpenCodeRuntime:
    return OpenCodeRuntime(descriptor)
