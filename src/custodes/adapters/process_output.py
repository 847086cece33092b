"""What a program prints, in bounded memory: its head and tail, and its lines one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterator


class HeadAndTail:
    """The first and the last ``bound`` bytes of a stream of any length."""

    def __init__(self, bound: int) -> None:
        self.bound = bound
        self.total = 0
        self._head = bytearray()
        self._tail = bytearray()

    def add(self, data: bytes) -> None:
        self.total += len(data)
        room = self.bound - len(self._head)
        if room > 0:
            self._head += data[:room]
            data = data[room:]
        self._tail += data
        if len(self._tail) > 2 * self.bound:  # trimmed by halves: one copy for each `bound` bytes that come
            del self._tail[: len(self._tail) - self.bound]

    @property
    def truncated(self) -> bool:
        return self.total > 2 * self.bound

    def value(self) -> bytes:
        """All of it, or head and tail with the number of bytes left out between them."""
        if not self.truncated:
            return bytes(self._head + self._tail)
        left_out = self.total - 2 * self.bound
        tail = self._tail[len(self._tail) - self.bound :]
        return bytes(self._head) + b"\n[... %d bytes left out ...]\n" % left_out + bytes(tail)


class Lines:
    """Cuts a stream into lines, without their ends (``\\n`` or ``\\r\\n``).

    Of a line over ``bound`` bytes only the first ``bound`` come; the rest of it is dropped. What it costs
    grows with the bytes alone, into however many pieces they are cut.
    """

    def __init__(self, bound: int) -> None:
        self.bound = bound
        self._open = bytearray()

    @property
    def unended(self) -> int:
        """Bytes of the line that has not ended yet, ``bound`` at most."""
        return len(self._open)

    def _take(self, part: bytes) -> None:
        self._open += part[: max(0, self.bound - len(self._open))]

    def add(self, data: bytes) -> Iterator[bytes]:
        *whole, rest = data.split(b"\n")
        for part in whole:
            self._take(part)
            yield self._close()
        self._take(rest)

    def end(self) -> Iterator[bytes]:
        """The last line, where the stream ended inside one."""
        if self._open:
            yield self._close()

    def _close(self) -> bytes:
        line = bytes(self._open.removesuffix(b"\r"))
        self._open.clear()
        return line


class Output:
    """One stream of a program: kept in part, and given on line by line.

    ``on_line`` answers True to end the program; ``ended`` then is True. Its exception is kept in ``error``
    and it is not called again.
    """

    def __init__(self, keep_bytes: int, max_line_bytes: int, on_line: Callable[[bytes], bool | None] | None):
        self.kept = HeadAndTail(keep_bytes)
        self.lines = Lines(max_line_bytes)
        self.on_line = on_line
        self.ended = False
        self.error: Exception | None = None

    def add(self, data: bytes) -> None:
        self.kept.add(data)
        if self.on_line is not None:
            self._give(self.lines.add(data))

    def end(self) -> None:
        if self.on_line is not None:
            self._give(self.lines.end())

    def _give(self, lines: Iterator[bytes]) -> None:
        assert self.on_line is not None  # noqa: S101 - for the type checker; both callers asked
        for line in lines:
            if self.error is not None:
                return
            try:
                self.ended = bool(self.on_line(line)) or self.ended
            except Exception as problem:  # the caller's: raised by run_program
                self.error = problem
