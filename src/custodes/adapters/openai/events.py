"""Server-sent events out of the pieces of a body (WHATWG HTML, 9.2), bounded. No I/O."""

from __future__ import annotations

from custodes.adapters.openai.answer import TooLongError
from custodes.adapters.process_output import Lines

MAX_EVENT_BYTES = 1 << 20


class Events:
    """Feed it pieces; it gives back the events that are complete, as (name, data)."""

    def __init__(self) -> None:
        self._lines = Lines(MAX_EVENT_BYTES + 1)
        self._name = ""
        self._data: list[str] = []
        self._size = 0

    def feed(self, piece: bytes) -> list[tuple[str, str]]:
        """:raises TooLongError: one event, or a line that does not end, is over `MAX_EVENT_BYTES`."""
        found = [event for line in self._lines.add(piece) if (event := self._line(line))]
        if self._size + self._lines.unended > MAX_EVENT_BYTES:
            raise TooLongError
        return found

    def _line(self, line: bytes) -> tuple[str, str] | None:
        if not line:
            name, data = self._name, "\n".join(self._data)
            complete = bool(self._data)
            self._name, self._data, self._size = "", [], 0
            return (name, data) if complete else None
        self._size += len(line)
        if self._size > MAX_EVENT_BYTES:
            raise TooLongError
        field, _, value = line.decode("utf-8", "replace").partition(":")
        if field == "data":
            self._data.append(value.removeprefix(" "))
        elif field == "event":
            self._name = value.strip()
        return None
