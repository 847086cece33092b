"""One run of scribe: the prompt on standard input, its events on standard output, a line of JSON each."""

from __future__ import annotations

from custodes.adapters import (
    Descriptor,
    DispatchRequest,
    DispatchResult,
    Failure,
    Progress,
    ProgressSink,
    Usage,
    failures,
    foreign,
    native,
    waits,
)
from custodes.adapters.process import ProcessResult, base_environment


class Stream:
    """What the events said so far."""

    def __init__(self, progress: ProgressSink) -> None:
        self.progress = progress
        self.text = ""
        self.error: failures.Said | None = None
        self.usage: Usage | None = None

    def output_line(self, line: bytes) -> bool:
        event = foreign.mapping(foreign.decode(line))
        if event.get("event") == "said":
            said = foreign.text(event.get("text"))
            self.text = (self.text + said)[: native.MAX_ANSWER]
            self.progress(Progress(kind="output", chars=len(said)))
        elif event.get("event") == "error":
            status, wait = foreign.count(event.get("status")), event.get("retry_after_s")
            body = {"retry_after": wait} if wait is not None else None
            message = foreign.text(event.get("message"))
            self.error = failures.Said(status=status, message=message, body=body)
        elif event.get("event") == "done":
            self.usage = Usage(output_tokens=foreign.count(event.get("tokens")))
        return False


class ScribeRuntime:
    def __init__(self, descriptor: Descriptor) -> None:
        self.descriptor = descriptor

    async def dispatch(self, request: DispatchRequest, progress: ProgressSink) -> DispatchResult:
        who = self.descriptor.id
        if request.effort or request.schema is not None or request.resume:
            wrong = failures.failure("invalid", who, detail="it has no efforts, schemas or threads")
            return DispatchResult(failure=wrong)
        model = request.model or self.descriptor.default_model or ""
        stream = Stream(progress)
        ended = await native.run(
            who,
            ["scribe", "--model", model, "--events", "write" if request.mutable else "read"],
            request=request,
            environment=base_environment(request.environment, ["SCRIBE_KEY"]),
            stdin=request.prompt.encode(),
            listener=native.Listener(stream.output_line, lambda _: False),
            progress=progress,
        )
        failure = ended if isinstance(ended, Failure) else self.failure(ended, stream, request)
        return DispatchResult(text="" if failure else stream.text, failure=failure, usage=stream.usage)

    def failure(self, ended: ProcessResult, stream: Stream, request: DispatchRequest) -> Failure | None:
        """None where it said ``done`` itself, and there is an answer."""
        who = self.descriptor.id
        if unfinished := native.not_finished(ended, who, request.timeout_s):
            return unfinished
        if stream.error is not None:
            return failures.classify(stream.error, who=who, now=waits.now())
        if stream.usage is None or not stream.text:
            return failures.failure("cut", who, detail=ended.ending)
        return None


def runtime(descriptor: Descriptor) -> ScribeRuntime:
    return ScribeRuntime(descriptor)
