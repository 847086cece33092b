"""One run of Hermes without a person. It says nothing until its end, and then only its answer."""

from __future__ import annotations

import os
import re
import tempfile
from pathlib import Path

from custodes.adapters import failures, native, waits
from custodes.adapters.answer_text import AnswerText
from custodes.adapters.descriptor import Descriptor
from custodes.adapters.hermes.arguments import arguments, environment
from custodes.adapters.hermes.report import Report, head_and_tail, read_report
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
        if wrong := native.refusal(self._descriptor, request, request.model):
            return DispatchResult(failure=failures.failure("invalid", who, detail=wrong))
        seen = _Seen()
        with tempfile.TemporaryDirectory(prefix="custodes-hermes-") as folder:
            empty, file = Path(folder) / "empty", Path(folder) / "usage.json"
            empty.mkdir()

            def verdict(ended: ProcessResult) -> Failure | None:
                seen.report = read_report(file)
                return self._verdict(ended, seen)

            failure = await native.attempt(
                who,
                arguments(self._descriptor.binary, request, file),
                request=request,
                environment=environment(request, os.environ, empty),
                stdin=b"",
                reader=seen,
                verdict=verdict,
                progress=progress,
            )
        report = seen.report
        text = "" if failure else str(seen.printed)
        if failure is None:
            # Only now is it known that these are the model's words and no error's.
            progress(Progress(kind="output", chars=len(text)))
            if report.usage is not None:
                progress(Progress(kind="usage", usage=report.usage))
        return DispatchResult(
            text=text,
            failure=failure,
            usage=report.usage,
            native_thread_id=report.session,
            served_model=report.model,
        )

    def _verdict(self, ended: ProcessResult, seen: _Seen) -> Failure | None:
        """None where its report says completed and not failed, it ended well, and there is an answer."""
        who, report = self._descriptor.id, seen.report
        if seen.printed.too_long:
            return failures.failure("other", who, detail="its answer is longer than the bound")
        if report.completed and report.failed is False and ended.exit_code == 0:
            empty = failures.failure("other", who, detail="ended well but said nothing")
            return None if str(seen.printed) else empty
        if report.failed or report.completed is None:
            return self._told(ended, seen)
        return failures.failure("cut", who, detail="it did not complete")

    def _told(self, ended: ProcessResult, seen: _Seen) -> Failure:
        """The error is its answer, or in its report, or on standard error: always words."""
        who, now, report = self._descriptor.id, waits.now(), seen.report
        stderr = ended.stderr.decode("utf-8", "replace").strip()
        printed = head_and_tail(str(seen.printed)) if report.failed else ""
        words = printed or report.failure or head_and_tail(stderr)
        if not words:
            return failures.failure("other", who, detail=f"{ended.ending}, no report")
        if _REFUSED.search(words):
            return failures.failure("refused", who)
        if _NO_LOGIN.search(words):
            return failures.failure("auth", who, detail="it found no usable login")
        return failures.classify(failures.Said(message=words), who=who, now=now)


class _Seen:
    """What it prints, to the bound, and the report beside it, once it has ended."""

    output_seen = False
    """What it prints may be an error's words, which only its end tells."""

    def __init__(self) -> None:
        self.report = Report()
        self.printed = AnswerText()

    @property
    def tools(self) -> bool:
        """It does not tell of its tools; but they are used between two requests."""
        return self.report.calls > 1

    def error_line(self, _line: bytes) -> bool:
        return False

    def output_line(self, line: bytes) -> bool:
        self.printed.add(line.decode("utf-8", "replace") + "\n")
        return self.printed.too_long


def runtime(descriptor: Descriptor) -> HermesRuntime:
    return HermesRuntime(descriptor)
