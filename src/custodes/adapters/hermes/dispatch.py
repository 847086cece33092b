"""One run of Hermes without a person. It says nothing until its end, and then only its answer."""

from __future__ import annotations

import os
import re
import tempfile
from pathlib import Path

from custodes.adapters import failures, native, waits
from custodes.adapters.descriptor import Descriptor
from custodes.adapters.hermes.arguments import arguments, environment
from custodes.adapters.hermes.report import Report, read_report
from custodes.adapters.port import DispatchRequest, DispatchResult, Failure, Progress, ProgressSink
from custodes.adapters.process import ProcessResult

_REFUSED = re.compile(r"(?:^|: )Connection error\.", re.MULTILINE)
_NO_LOGIN = re.compile(
    r"no (?:inference |llm )?provider|no api key|not (?:logged in|authenticated)", re.IGNORECASE
)


class HermesRuntime:
    def __init__(self, descriptor: Descriptor) -> None:
        self._descriptor = descriptor

    async def dispatch(self, request: DispatchRequest, progress: ProgressSink) -> DispatchResult:
        who = self._descriptor.id
        if wrong := self._refusal(request):
            return DispatchResult(failure=failures.failure("invalid", who, detail=wrong))
        answer = _Answer()
        binary = self._descriptor.cli.binary if self._descriptor.cli else "hermes"
        with tempfile.TemporaryDirectory(prefix="custodes-hermes-") as folder:
            empty, file = Path(folder) / "empty", Path(folder) / "usage.json"
            empty.mkdir()
            ended = await native.run(
                who,
                arguments(binary, request, file),
                request=request,
                environment=environment(request, os.environ, empty),
                stdin=b"",
                listener=native.Listener(answer.output_line, lambda _: False),
                progress=progress,
            )
            report = read_report(file)
        if isinstance(ended, Failure):
            return DispatchResult(failure=ended)
        failure = self._failure(ended, report, answer, request.timeout_s)
        if failure is None:
            # Only now is it known that these are the model's words and no error's.
            progress(Progress(kind="output", chars=len(answer.text)))
            if report.usage is not None:
                progress(Progress(kind="usage", usage=report.usage))
        else:
            # It does not tell of its tools; but they are used between two requests.
            failure = native.after(failure, output=False, tools=report.calls > 1)
        return DispatchResult(
            text="" if failure else answer.text,
            failure=failure,
            usage=report.usage,
            native_thread_id=report.session,
            served_model=report.model,
        )

    def _refusal(self, request: DispatchRequest) -> str:
        if request.effort:
            return "it has no effort to choose"
        if request.resume:
            return "it cannot go on with an earlier thread"
        if request.schema is not None:
            return "it cannot hold its answer to a schema"
        return native.not_forwarded(request.model) if request.model else ""

    def _failure(
        self, ended: ProcessResult, report: Report, answer: _Answer, timeout_s: float
    ) -> Failure | None:
        """None where its report says completed and not failed, it ended well, and there is an answer."""
        who = self._descriptor.id
        if (unfinished := native.not_finished(ended, who, timeout_s)) is not None:
            return unfinished
        if answer.too_long:
            return failures.failure("other", who, detail="its answer is longer than the bound")
        if report.completed and report.failed is False and ended.exit_code == 0:
            return (
                None if answer.text else failures.failure("other", who, detail="ended well but said nothing")
            )
        if report.failed or report.completed is None:
            return self._told(ended, report, answer)
        return failures.failure("cut", who, detail="it did not complete")

    def _told(self, ended: ProcessResult, report: Report, answer: _Answer) -> Failure:
        """The error is its answer, or in its report, or on standard error: always words."""
        who, now = self._descriptor.id, waits.now()
        stderr = ended.stderr.decode("utf-8", "replace").strip()
        words = (answer.text if report.failed else "") or report.failure or stderr[-2_000:]
        if not words:
            return failures.failure("other", who, detail=f"exit status {ended.exit_code}, no report")
        if _REFUSED.search(words):
            return failures.failure("refused", who)
        if _NO_LOGIN.search(words):
            return failures.failure("auth", who, detail="it found no usable login")
        return failures.classify(failures.Said(message=words), who=who, now=now)


class _Answer:
    """What it prints, to the bound."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._size = 0

    @property
    def text(self) -> str:
        return "\n".join(self._lines).strip()

    @property
    def too_long(self) -> bool:
        return self._size > native.MAX_ANSWER

    def output_line(self, line: bytes) -> bool:
        said = line.decode("utf-8", "replace")
        self._size += len(said) + 1
        if not self.too_long:
            self._lines.append(said)
        return self.too_long


def runtime(descriptor: Descriptor) -> HermesRuntime:
    return HermesRuntime(descriptor)
