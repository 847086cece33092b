"""Claude Code's stream of events (``--output-format stream-json``), read line by line.

What counts is in its fields: ``result.is_error`` and ``api_error_status`` (``subtype`` says success on
failures too), ``rate_limit_event`` for a subscription's window, ``system/api_retry`` for what it is about to
try again. A stated wait in full shows only in the log of its HTTP client, between the events.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from custodes.adapters import foreign, native
from custodes.adapters.claude.control import Control
from custodes.adapters.port import Progress, ProgressSink, Usage

_ANSWER_TOOL = "StructuredOutput"
"""The tool by which it gives an answer that fits a schema: no activity of its own."""
_HEADER = re.compile(rb'\s+"(retry-after(?:-ms)?)": "([^"]{1,100})",?\s*')
"""A line of that log (``ANTHROPIC_LOG=debug``). It names no content, and hides the keys."""
_NOT_STATED_MS = 1_000
"""The runtime's own pause before try n is at most 1.25 x 500 ms x 2^(n-1); a longer one was asked for."""


class Trouble(msgspec.Struct, frozen=True, kw_only=True):
    """A failed request as the runtime tells it, about to be tried again or for good."""

    status: int | None = None
    codes: tuple[str, ...] = ()
    message: str = ""


class Stream:
    """What the events said so far. Memory does not grow with their number."""

    def __init__(self, progress: ProgressSink, control: Control) -> None:
        self._progress = progress
        self._control = control
        self.session = ""
        self.model = ""
        """Which one answered; what was only asked for is not told."""
        self.output_seen = False
        self.tools = False
        self.retrying: Trouble | None = None
        self.delay_ms: int | None = None
        """The wait that came with the last announced retry, where it was stated by the provider."""
        self.headers: dict[str, str] = {}
        """The waits that the last response stated, as it stated them."""
        self.resets_at: object = None
        """The epoch at which a spent window of a subscription resets."""
        self.error_word = ""
        self.result: Mapping[str, Any] | None = None
        self.words = ""
        """The last lines of standard error, for a program that ended without a result."""
        self._spent: Usage | None = None
        self._message: tuple[str, Usage] | None = None

    @property
    def usage(self) -> Usage | None:
        """The result's own account where there is one, else the sum of the messages that came."""
        if self.result is not None and (total := _usage(self.result.get("usage"))) is not None:
            return msgspec.structs.replace(total, cost_usd=foreign.cost(self.result.get("total_cost_usd")))
        if self._message is None:
            return self._spent
        return native.added(self._spent, self._message[1])

    def output_line(self, line: bytes) -> bool:
        """Take one line in. True where going on is of no use: a limit, with nothing done yet."""
        if not line.startswith(b"{"):
            self._logged(line)
            return False
        event = foreign.mapping(foreign.decode(line))
        self.session = foreign.name(event.get("session_id")) or self.session
        match event.get("type"):
            case "system":
                return self._system(event)
            case "assistant":
                self._assistant(event)
            case "rate_limit_event":
                info = foreign.mapping(event.get("rate_limit_info"))
                if info.get("status") == "rejected":
                    self.resets_at = info.get("resetsAt") or self.resets_at
            case "control_request":
                self._control.asked(event)
            case "result":
                self.result = event
                self._control.over()
        return False

    def error_line(self, line: bytes) -> bool:
        self.words = foreign.last_words(self.words, line)
        return False

    def trouble(self) -> Trouble | None:
        """The failure the result tells; None where it tells none, or there is no result."""
        result = self.result
        if result is None or result.get("is_error") is False:
            return None
        codes = (result.get("api_error_type"), result.get("api_error"), _code(self.error_word))
        return Trouble(
            status=foreign.status(result.get("api_error_status")),
            codes=tuple(code for code in codes if isinstance(code, str)),
            message=foreign.text(result.get("result"))[:8_000],
        )

    def _logged(self, line: bytes) -> None:
        if b"] sending request {" in line[:100]:
            self.headers = {}
        elif (found := _HEADER.fullmatch(line)) is not None:
            self.headers[found[1].decode()] = found[2].decode("ascii", "replace")

    def _system(self, event: Mapping[str, Any]) -> bool:
        if event.get("subtype") != "api_retry":
            return False
        status, attempt = foreign.status(event.get("error_status")), foreign.count(event.get("attempt")) or 1
        word = _code(foreign.text(event.get("error")))
        self.retrying = Trouble(status=status, codes=(word,))
        delay = event.get("retry_delay_ms")
        own = _NOT_STATED_MS * 2 ** min(attempt - 1, 10)
        self.delay_ms = int(delay) if isinstance(delay, int | float) and delay >= own else None
        self._progress(Progress(kind="retrying"))
        # In the middle of work a short wait of its own is better than what it did being thrown away.
        return status == 429 and not self.tools

    def _assistant(self, event: Mapping[str, Any]) -> None:
        message = foreign.mapping(event.get("message"))
        word = foreign.text(event.get("error"))
        if word or message.get("model") == "<synthetic>":
            self.error_word = word or self.error_word  # the runtime's own words, not the model's
            return
        self.retrying = self.delay_ms = None
        self.model = foreign.name(message.get("model")) or self.model
        content = message.get("content")
        for block in content if isinstance(content, list) else ():
            self._block(foreign.mapping(block))
        if (usage := _usage(message.get("usage"))) is not None:
            self._account(foreign.text(message.get("id")), usage)

    def _block(self, block: Mapping[str, Any]) -> None:
        kind = block.get("type")
        if kind in ("text", "thinking"):
            chars = len(foreign.text(block.get("text") or block.get("thinking")))
            self._speaks(chars)
        elif kind == "tool_use":
            name = foreign.name(block.get("name"))
            self._speaks(0)
            if name != _ANSWER_TOOL:
                self.tools = True
                self._progress(Progress(kind="tool", tool=name or None))

    def _speaks(self, chars: int) -> None:
        self.output_seen = True
        self._progress(Progress(kind="output", chars=chars))

    def _account(self, message: str, usage: Usage) -> None:
        """One message comes as several events, each with the same account of it."""
        if self._message is not None and self._message[0] != message:
            self._spent = native.added(self._spent, self._message[1])
        self._message = (message, usage)
        self._progress(Progress(kind="usage", usage=self.usage))


def _code(word: str) -> str:
    """The runtime's own word for an error as one the shared table knows; the vague ones say nothing."""
    return {"unknown": "", "server_error": "", "authentication_failed": "authentication_error"}.get(
        word, word
    )


def _usage(said: object) -> Usage | None:
    """Input tokens as one number, read from the cache or not; of these the cached ones apart."""
    account = foreign.mapping(said)
    plain, output = foreign.count(account.get("input_tokens")), foreign.count(account.get("output_tokens"))
    if plain is None and output is None:
        return None
    written = foreign.count(account.get("cache_creation_input_tokens")) or 0
    read = foreign.count(account.get("cache_read_input_tokens"))
    total = None if plain is None else plain + written + (read or 0)
    return Usage(input_tokens=total, output_tokens=output, cached_input_tokens=read)
