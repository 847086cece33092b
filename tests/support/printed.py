"""A runtime's adapter over bytes that a program might have printed, without a process for each of them.

All of an adapter runs but the process runner, which has tests of its own: the bytes come in pieces, through
the runner's own cutter of lines, to whatever the adapter hands the runner.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, get_args
from unittest.mock import patch

import anyio
import msgspec

from custodes.adapters import native
from custodes.adapters.command import dispatch as command
from custodes.adapters.port import Category, DispatchRequest, DispatchResult, Progress, Runtime, Usage
from custodes.adapters.process import ProcessResult
from custodes.adapters.process_output import Output
from custodes.adapters.waits import LONGEST
from support.fuzz import CANARY, cut

MAX_LINE = 1 << 16
LONGEST_NAME = 256


class Printed(msgspec.Struct, frozen=True, kw_only=True):
    """What a program printed, where the pipe cut it, and how it ended."""

    out: bytes
    err: bytes = b""
    cuts: Sequence[int] = ()
    code: int = 0
    report: bytes = b""
    """What it wrote to the file that ``--usage-file`` names."""

    async def run(self, argv: Sequence[str], **given: Any) -> ProcessResult:
        """In `run_program`'s place."""
        out = Output(given.get("keep_bytes", 1 << 16), MAX_LINE, given.get("on_line"))
        err = Output(given.get("keep_bytes", 1 << 16), MAX_LINE, given.get("on_error_line"))
        if self.report and "--usage-file" in argv:
            await anyio.Path(argv[argv.index("--usage-file") + 1]).write_bytes(self.report)
        for stream, data in ((err, self.err), (out, self.out)):
            for piece in cut(data, self.cuts):
                stream.add(piece)
            stream.end()
            if stream.error is not None:
                raise stream.error
        return ProcessResult(
            exit_code=self.code,
            stopped=out.ended or err.ended,
            stdout=out.kept.value(),
            stderr=err.kept.value(),
        )


def answered(
    runtime: Runtime, printed: Printed, folder: Path, **asked: object
) -> tuple[DispatchResult, list[Progress]]:
    """What a runtime makes of it, and what it told meanwhile."""
    request = msgspec.structs.replace(
        DispatchRequest(
            run_id="printed",
            role="reviewer",
            prompt="Say OK.",
            mutable=False,
            cwd=str(folder),
            timeout_s=30.0,
            environment={"HOME": str(folder), "OPENAI_API_KEY": CANARY},
        ),
        **asked,
    )
    seen: list[Progress] = []

    async def dispatch() -> DispatchResult:
        return await runtime.dispatch(request, seen.append)

    with ExitStack() as stack:
        for place in (native, command):
            stack.enter_context(patch.object(place, "run_program", printed.run))
        return anyio.run(dispatch), seen


def check(result: DispatchResult, seen: Sequence[Progress]) -> None:
    """What holds of any result, whatever was printed: the port's promise, and that the store can take it."""
    assert msgspec.json.decode(msgspec.json.encode(result))
    failure = result.failure
    if failure is not None:
        assert failure.category in get_args(Category)
        assert (result.text, result.structured) == ("", None)
        assert failure.reason.isprintable()
        assert len(failure.reason) <= 1_000
        wait = failure.retry_after_s
        assert wait is None or 1 <= wait <= LONGEST
        assert CANARY not in failure.reason
    else:
        assert result.text
    for name in (result.native_thread_id, result.served_model, *(each.tool for each in seen)):
        assert name is None or (0 < len(name) <= LONGEST_NAME and name.isprintable())
    for usage in _usages(result, seen):
        for tokens in (usage.input_tokens, usage.output_tokens, usage.cached_input_tokens):
            assert tokens is None or 0 <= tokens < 2**63
        assert usage.cost_usd is None or 0 <= usage.cost_usd < math.inf
    for each in seen:
        assert each.chars is None or each.chars >= 0


def _usages(result: DispatchResult, seen: Sequence[Progress]) -> Iterator[Usage]:
    yield from (each.usage for each in seen if each.usage is not None)
    if result.usage is not None:
        yield result.usage
