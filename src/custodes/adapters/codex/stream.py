"""Codex's stream of events (``exec --json``), and the one line of its log that states a wait.

It tries a failed request again five times, each time with up to five tries of its own, and a refused
connection for ever. Where nothing was done yet, the first retry it announces therefore ends it: its message
is the failure. In the middle of work it may go on, except on a connection that stays refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from custodes.adapters import failures, foreign, native, waits
from custodes.adapters.codex.reading import read
from custodes.adapters.port import Failure, Progress, ProgressSink, Usage

_RETRY = re.compile(r"Reconnecting\.\.\. (?:([0-9]{1,9})/[0-9]+|waiting for network)\s*\((.*)\)$", re.DOTALL)
_LOGGED = re.compile(rb"retrying sampling request \((\d{1,9})/\d+ in ([0-9]{1,9}(?:\.[0-9]{1,9})?)(ms|s|m)\)")
_SECONDS = {b"ms": 0.001, b"s": 1.0, b"m": 60.0}
_TRIES = {
    "limit": 1,
    "billing": 1,
    "auth": 1,
    "overloaded": 1,
    "server": 1,
    "refused": 1,
    "cut": 2,
    "timeout": 2,
}
"""At which announced retry, with nothing done yet, it is ended. A dropped stream is worth one of its own."""
_REFUSED_AT_WORK = 3
_MOST_RUNNING = 1_000
"""Items that may be under way at once; of one beyond them its end is told as well as its start."""
_NO_ACTIVITY = frozenset({"agent_message", "reasoning", "todo_list", "error"})
"""Items that are no tool: the model's words, its plan, the runtime's own warnings."""


class Stream:
    """What the events said so far. Memory does not grow with their number."""

    def __init__(self, progress: ProgressSink, clock: Callable[[], datetime]) -> None:
        self._progress = progress
        self._clock = clock
        self.thread = ""
        self.output_seen = False
        self.tools = False
        self.completed = False
        self.text = ""
        self.error = ""
        """The last failure it told, its own or the one it is about to retry after."""
        self.wait_s: int | None = None
        """The wait before its next try, where the provider stated it, in seconds."""
        self.usage: Usage | None = None
        self.words = ""
        """The last lines of standard error, for a program that ended without an event."""
        self._running: set[str] = set()
        self._unreached = 0
        self._logged = False
        """Its log has spoken of the retry it is at."""
        self._ending = False
        """It is to be ended as soon as its log says how long it means to wait."""

    def output_line(self, line: bytes) -> bool:
        event = foreign.mapping(foreign.decode(line))
        match event.get("type"):
            case "thread.started":
                self.thread = foreign.name(event.get("thread_id"))
            case "item.started" | "item.updated" | "item.completed" as kind:
                self._item(kind, foreign.mapping(event.get("item")))
            case "turn.completed":
                self.completed = True
                self._account(foreign.mapping(event.get("usage")))
            case "turn.failed":
                self.completed = False
                self.error = foreign.text(foreign.mapping(event.get("error")).get("message")) or self.error
            case "error":
                return self._failed(foreign.text(event.get("message")))
        return False

    def error_line(self, line: bytes) -> bool:
        """True where the log line that was waited for came."""
        if (found := _LOGGED.search(line)) is not None:
            attempt, seconds = int(found[1]), float(found[2]) * _SECONDS[found[3]]
            # Its own pause before try n is about 0.2 s x 2^(n-1); a longer one was asked for.
            self.wait_s = waits.whole(seconds) if seconds > 0.25 * 2 ** min(attempt - 1, 10) else None
            self._logged = True
            return self._ending
        self.words = foreign.last_words(self.words, line)
        return False

    def _failed(self, message: str) -> bool:
        retry = _RETRY.match(message)
        if retry is None:
            self.error = message or self.error
            return False
        self.error = retry[2]
        self._progress(Progress(kind="retrying"))
        kind, stated = read(self.error, self._clock())
        attempt = int(retry[1] or 1)
        if kind == "refused":
            self._unreached += 1
            return self._unreached >= (_REFUSED_AT_WORK if self.tools else 1)
        if self.tools or attempt < _TRIES.get(kind, 1_000):
            return False
        # Its log states the wait of a limit, and may come a moment before the event or after it.
        self._ending = kind == "limit" and attempt == 1 and stated is None and not self._logged
        return not self._ending

    def _item(self, event: str, item: Mapping[str, Any]) -> None:
        kind = foreign.name(item.get("type"))
        if not kind or kind == "error":
            return
        self._unreached, self._logged, self.wait_s = 0, False, None
        text = foreign.text(item.get("text"))
        if event == "item.completed" and kind == "agent_message":
            self.text = text
        if kind not in _NO_ACTIVITY:
            self.tools = True
            self._tool(event, foreign.name(item.get("id")), kind)
        if not self.output_seen or text:
            self.output_seen = True
            self._progress(Progress(kind="output", chars=len(text)))

    def _tool(self, event: str, item: str, kind: str) -> None:
        """Tell a tool once, at its start; some are told of only when they are done."""
        begun = item in self._running
        if event == "item.completed":
            self._running.discard(item)
        elif event == "item.started" and len(self._running) < _MOST_RUNNING:
            self._running.add(item)
        if not begun and event != "item.updated":
            self._progress(Progress(kind="tool", tool=kind))

    def _account(self, said: Mapping[str, Any]) -> None:
        report = Usage(
            input_tokens=foreign.count(said.get("input_tokens")),
            output_tokens=foreign.count(said.get("output_tokens")),
            cached_input_tokens=foreign.count(said.get("cached_input_tokens")),
        )
        self.usage = native.added(self.usage, report)
        self._progress(Progress(kind="usage", usage=self.usage))

    def failure(self, who: str) -> Failure:
        """The failure its last error tells."""
        kind, stated = read(self.error, self._clock())
        return failures.failure(kind, who, retry_after_s=waits.longest((stated, self.wait_s)))
