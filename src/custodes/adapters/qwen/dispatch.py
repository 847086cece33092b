"""One run of Qwen Code without a person: the prompt on standard input, its events on standard output."""

from __future__ import annotations

import os
import re
import uuid

from custodes.adapters import failures, foreign, native, waits
from custodes.adapters.descriptor import Descriptor
from custodes.adapters.port import DispatchRequest, DispatchResult, Failure, ProgressSink
from custodes.adapters.process import ProcessResult
from custodes.adapters.qwen.arguments import arguments, environment, program
from custodes.adapters.qwen.debug_log import on_standard_error
from custodes.adapters.qwen.stream import Stream

_EXITS: dict[int, tuple[failures.Kind, str]] = {
    41: ("auth", "it found no usable login"),
    42: ("invalid", "it did not take the prompt"),
    44: ("missing", "its sandbox could not be started"),
    52: ("invalid", "it did not take its configuration or the schema"),
    53: ("other", "its turn limit was reached"),
}
"""The program's own exit codes, where it printed no result."""
_STATUS = re.compile(r"^([45][0-9]{2}) ")
_REFUSED = re.compile(r"\bECONNREFUSED\b|^Connection error\b")
_NO_LOGIN = re.compile(r"\bauth(?:entication)? type\b|\bmissing api key\b", re.IGNORECASE)
_CUT = re.compile(r"\bUND_ERR_SOCKET\b|^terminated\b|\bECONNRESET\b|\bJSON at position\b")


class QwenRuntime:
    def __init__(self, descriptor: Descriptor) -> None:
        self._descriptor = descriptor

    async def dispatch(self, request: DispatchRequest, progress: ProgressSink) -> DispatchResult:
        who = self._descriptor.id
        if wrong := native.refusal(self._descriptor, request, request.model):
            return DispatchResult(failure=failures.failure("invalid", who, detail=wrong))
        stream = Stream(progress)
        session = request.resume or str(uuid.uuid4())
        environ = environment(request, os.environ)
        argv = arguments(program(self._descriptor.binary, environ.get("PATH")), request, session)
        with on_standard_error(session, environ):
            failure = await native.attempt(
                who,
                argv,
                request=request,
                environment=environ,
                stdin=request.prompt.encode(),
                reader=stream,
                verdict=lambda ended: self._verdict(ended, stream, structured=request.schema is not None),
                progress=progress,
            )
        done = stream.ended if stream.ended is not None and failure is None else {}
        return DispatchResult(
            text=foreign.text(done.get("result")).strip(),
            structured=done.get("structured_result"),
            failure=failure,
            usage=stream.usage,
            native_thread_id=stream.session,
            served_model=stream.model if stream.output_seen else None,
        )

    def _verdict(self, ended: ProcessResult, stream: Stream, *, structured: bool) -> Failure | None:
        """None where its result says success, with an answer (or the wanted JSON), and it ended well."""
        who, done = self._descriptor.id, stream.ended
        if stream.too_long:
            return failures.failure("other", who, detail="its answer is longer than the bound")
        if done is None:
            return self._silent(ended, stream)
        if done.get("subtype") == "success" and done.get("is_error") is False and ended.exit_code == 0:
            if structured and done.get("structured_result") is None:
                return failures.failure("other", who, detail="did not answer in the wanted form")
            empty = failures.failure("other", who, detail="ended well but said nothing")
            return None if foreign.text(done.get("result")).strip() else empty
        return self._told(stream)

    def _told(self, stream: Stream) -> Failure:
        """What its result says: a provider's status before the message, else words."""
        who, now, message = self._descriptor.id, waits.now(), stream.error
        if match := _STATUS.match(message):
            attempt = stream.attempts.said()
            same = attempt.status == int(match[1])
            said = failures.Said(
                status=int(match[1]),
                codes=attempt.codes if same else (),
                message=message,
                body=attempt.body if same else None,
            )
            return failures.classify(said, who=who, now=now)
        if _NO_LOGIN.search(message):
            return failures.failure("auth", who, detail="it found no usable login")
        if kind := "refused" if _REFUSED.search(message) else "cut" if _CUT.search(message) else None:
            return failures.failure(kind, who)  # type: ignore[arg-type]  # both are rows of the table
        return failures.classify(failures.Said(message=message), who=who, now=now)

    def _silent(self, ended: ProcessResult, stream: Stream) -> Failure:
        """It printed no result: ended by us at a retry, or for a reason of its own."""
        who, now, attempt = self._descriptor.id, waits.now(), stream.attempts
        if attempt.status is not None:
            return failures.classify(attempt.said(), who=who, now=now)
        if attempt.transport == "ECONNREFUSED":
            return failures.failure("refused", who)
        if attempt.number:
            return failures.failure("cut", who, detail="its provider could not be spoken to")
        if ended.exit_code and _NO_LOGIN.search(ended.stderr.decode("utf-8", "replace")):
            return failures.failure("auth", who, detail="it found no usable login")
        kind, detail = _EXITS.get(ended.exit_code or 0, ("other", f"{ended.ending}, no result"))
        return failures.failure(kind, who, detail=detail)


def runtime(descriptor: Descriptor) -> QwenRuntime:
    return QwenRuntime(descriptor)
