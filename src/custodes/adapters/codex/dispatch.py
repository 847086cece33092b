"""One run of Codex without a person: the prompt on standard input, its events on standard output."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec

from custodes.adapters import failures, foreign, native, waits
from custodes.adapters.codex.arguments import arguments, environment
from custodes.adapters.codex.stream import Stream
from custodes.adapters.descriptor import Descriptor
from custodes.adapters.port import DispatchRequest, DispatchResult, Failure, ProgressSink
from custodes.adapters.process import ProcessResult
from custodes.adapters.schemas import strict
from custodes.adapters.traces import exporter

_TOO_OLD = re.compile(r"unexpected argument|unrecognized subcommand|unknown feature", re.IGNORECASE)


class CodexRuntime:
    """``clock`` gives an aware now, in the zone that clock times without one are read in."""

    def __init__(self, descriptor: Descriptor, clock: Callable[[], datetime] = waits.now) -> None:
        self._descriptor = descriptor
        self._clock = clock

    async def dispatch(self, request: DispatchRequest, progress: ProgressSink) -> DispatchResult:
        who = self._descriptor.id
        model = request.model or self._descriptor.default_model or ""
        if wrong := native.refusal(self._descriptor, request, model):
            return DispatchResult(failure=failures.failure("invalid", who, detail=wrong))
        stream = Stream(progress, self._clock)
        schema = strict(request.schema) if request.schema is not None else None
        with _schema_file(schema) as schema_file:
            traces = exporter(request.environment, os.environ)
            failure = await native.attempt(
                who,
                arguments(self._descriptor.binary, request, model, schema_file, traces),
                request=request,
                environment=environment(request, os.environ),
                stdin=_prompt(request, schema).encode(),
                reader=stream,
                verdict=lambda ended: verdict(ended, stream, who, self._clock()),
                progress=progress,
            )
        text = "" if failure else stream.text.strip()
        return DispatchResult(
            text=text,
            structured=foreign.decode(text) if text and request.schema is not None else None,
            failure=failure,
            usage=stream.usage,
            native_thread_id=stream.thread or None,
        )


def verdict(ended: ProcessResult, stream: Stream, who: str, now: datetime) -> Failure | None:
    """None where its turn is completed, with exit code 0 and an answer."""
    if stream.completed and ended.exit_code == 0:
        if not stream.text.strip():
            return failures.failure("other", who, detail="ended well but gave no answer")
        if len(stream.text) > native.MAX_ANSWER:
            return failures.failure("other", who, detail="its answer is longer than the bound")
        return None
    if stream.error:
        return stream.failure(who)
    if stream.thread:
        return failures.failure("cut", who, detail=ended.ending)
    if _TOO_OLD.search(stream.words):
        return failures.failure("missing", who, detail="it does not know an option; is it too old?")
    kind = failures.kind_of(failures.Said(message=stream.words), now)
    return failures.failure(kind, who, detail=ended.ending)


def _prompt(request: DispatchRequest, schema: dict[str, Any] | None) -> str:
    """The prompt; with the schema in words where the provider could not enforce it."""
    if request.schema is None or schema is not None:
        return request.prompt
    words = msgspec.json.encode(request.schema).decode()
    wanted = "Answer with one JSON value that fits this JSON Schema, and nothing else:"
    return f"{request.prompt}\n\n{wanted}\n{words}"


@contextmanager
def _schema_file(schema: dict[str, Any] | None) -> Iterator[str]:
    """A file of ours that holds the schema while it runs; "" where none is wanted."""
    if schema is None:
        yield ""
        return
    with tempfile.TemporaryDirectory(prefix="custodes-") as folder:
        file = Path(folder) / "schema.json"
        file.write_bytes(msgspec.json.encode(schema))
        yield str(file)


def runtime(descriptor: Descriptor) -> CodexRuntime:
    return CodexRuntime(descriptor)
