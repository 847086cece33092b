"""One run of Gemini CLI without a person: the prompt on standard input, its events on standard output."""

from __future__ import annotations

import os
from datetime import datetime

from custodes.adapters import failures, native, waits
from custodes.adapters.descriptor import Descriptor
from custodes.adapters.gemini.arguments import arguments, environment
from custodes.adapters.gemini.stream import Stream
from custodes.adapters.port import DispatchRequest, DispatchResult, Failure, ProgressSink
from custodes.adapters.process import ProcessResult

_EXITS: dict[int, tuple[failures.Kind, str]] = {
    41: ("auth", "it found no usable login"),
    42: ("invalid", "it did not take the prompt"),
    44: ("missing", "its sandbox could not be started"),
    52: ("invalid", "its own configuration is wrong"),
    53: ("other", "its turn limit was reached"),
    55: ("auth", "the working folder is not trusted"),
}
"""The program's own exit codes (its ``ExitCodes``). Any other is a provider's status modulo 256."""


class GeminiRuntime:
    def __init__(self, descriptor: Descriptor) -> None:
        self._descriptor = descriptor

    async def dispatch(self, request: DispatchRequest, progress: ProgressSink) -> DispatchResult:
        who = self._descriptor.id
        model = request.model or self._descriptor.default_model or "gemini-2.5-pro"
        if wrong := native.refusal(self._descriptor, request, model):
            return DispatchResult(failure=failures.failure("invalid", who, detail=wrong))
        stream = Stream(progress)
        failure = await native.attempt(
            who,
            arguments(self._descriptor.binary, request, model),
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
            native_thread_id=stream.session or stream.complaint.session or None,
            served_model=stream.served_model(model),
        )

    def _verdict(self, ended: ProcessResult, stream: Stream) -> Failure | None:
        """None where it said "success" itself, ended well, and there is an answer."""
        who = self._descriptor.id
        stream.document(ended.stdout)
        if stream.answer.too_long:
            return failures.failure("other", who, detail="its answer is longer than the bound")
        if stream.ended == "success" and ended.exit_code == 0 and not stream.error:
            empty = failures.failure("other", who, detail="ended well but said nothing")
            return None if str(stream.answer) else empty
        return self._told(ended, stream)

    def _told(self, ended: ProcessResult, stream: Stream) -> Failure:
        """The status it printed, else its exit code's, else its words."""
        who, complaint, code = self._descriptor.id, stream.complaint, ended.exit_code
        now = waits.now()
        if complaint.status is None and code in _EXITS and not stream.ended:
            kind, detail = _EXITS[code]
            return failures.failure(kind, who, detail=detail)
        message = complaint.message or stream.error
        said = failures.Said(
            status=complaint.status or _STATUS_BY_EXIT.get(code if code is not None else -1),
            codes=(complaint.reason, "quota_exhausted" if complaint.name == "TerminalQuotaError" else ""),
            message=message,
            body={"message": complaint.cause, "retry_delay_ms": complaint.delay_ms},
        )
        if said.status is None:
            return self._worded(stream, message, now)
        wait = failures.stated_wait(said, now)
        hidden = failures.stated_wait(failures.Said(message=complaint.cause), now)
        kind = failures.kind_of(said, now)
        longest = max((seconds for seconds in (wait, hidden) if seconds), default=None)
        return failures.failure(kind, who, detail=f"status {said.status}", retry_after_s=longest)

    def _worded(self, stream: Stream, message: str, now: datetime) -> Failure:
        who, words = self._descriptor.id, f"{message}\n{stream.error}".lower()
        if stream.complaint.refused or "fetch failed" in words:
            return failures.failure("refused", who)
        if "terminated" in words or "incomplete json" in words or "socket" in words:
            return failures.failure("cut", who)
        if not words.strip():
            return failures.failure("other", who, detail="ended without saying that it was done")
        return failures.classify(failures.Said(message=message or stream.error), who=who, now=now)


_STATUS_BY_EXIT = {
    status % 256: status for status in (400, 401, 402, 403, 404, 413, 429, 500, 502, 503, 504, 529)
}


def runtime(descriptor: Descriptor) -> GeminiRuntime:
    return GeminiRuntime(descriptor)
