"""Standard input and output as the protocol's two ways, for as long as a server has them.

The SDK's own reads in a thread that no cancel reaches: told to end while its client is silent, it would wait
for a next line for ever, with children to be ended. Here the reading is cancellable. Meanwhile the
descriptors 0 and 1 lead elsewhere, so that nothing a library prints, and no program it starts, can tear a
message.
"""

from __future__ import annotations

import fcntl
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import anyio.to_thread

from custodes.adapters import process_output

MAX_LINE = 32 * 1024 * 1024
"""Bytes of one message. A client that sends more without an end is cut off."""
_CHUNK = 64 * 1024
MAX_AHEAD = 1024
"""Messages more than there were answers that are taken from a client which lets the next answer wait."""


class Lines:
    """The lines of a descriptor, as text. Ends with it.

    Each message costs memory until its answer is written: of a client that sends on and on and reads no
    answers, no more are taken than ``writer`` has written and :data:`MAX_AHEAD`.
    """

    def __init__(self, descriptor: int, writer: Writer | None = None) -> None:
        self._descriptor = descriptor
        self._writer = writer
        self._given = 0
        self._polled = True

    async def __aiter__(self) -> AsyncIterator[str]:
        lines = process_output.Lines(MAX_LINE + _CHUNK)  # so that no line that is given is cut
        while chunk := await self._read():
            for line in lines.add(chunk):
                if self._writer is not None:
                    await self._writer.within(self._given - MAX_AHEAD)
                self._given += 1
                yield line.decode(errors="replace")
            if lines.unended > MAX_LINE:
                print(f"cos mcp: a message is over {MAX_LINE} bytes; the connection ends", file=sys.stderr)  # noqa: T201
                return

    async def _read(self) -> bytes:
        if self._polled:
            try:
                await anyio.wait_readable(self._descriptor)
            except OSError:  # a plain file: always readable, and refused by epoll
                self._polled = False
        if self._polled:
            return os.read(self._descriptor, _CHUNK)
        return await anyio.to_thread.run_sync(os.read, self._descriptor, _CHUNK)


class Writer:
    """Writes text to a descriptor. Once nobody reads any more, what is written is dropped."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._open = True
        self._written = 0
        self._writing: anyio.Event | None = None

    async def write(self, text: str) -> None:
        self._writing = anyio.Event()
        try:
            if self._open:
                # Left behind by a cancel: who reads nothing must not hold up the end of its children.
                await anyio.to_thread.run_sync(self._write, text.encode(), abandon_on_cancel=True)
        finally:
            self._written += 1
            self._writing.set()
            self._writing = None

    async def within(self, count: int) -> None:
        """Wait until so many were written, or none waits to be."""
        while self._written < count and self._writing is not None:
            await self._writing.wait()

    async def flush(self) -> None:
        """Nothing is held back."""

    def _write(self, data: bytes) -> None:
        view = memoryview(data)
        try:
            while view:
                view = view[os.write(self._descriptor, view) :]
        except OSError:
            self._open = False


@asynccontextmanager
async def standard_streams() -> AsyncIterator[tuple[Lines, Writer]]:
    """Take descriptors 0 and 1 for the protocol; within the block they are the null device and stderr."""
    private_in, private_out = (fcntl.fcntl(number, fcntl.F_DUPFD_CLOEXEC, 3) for number in (0, 1))
    sys.stdout.flush()
    null = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    os.dup2(null, 0)
    os.close(null)
    os.dup2(2, 1)
    try:
        writer = Writer(private_out)
        yield Lines(private_in, writer), writer
    finally:
        os.dup2(private_in, 0)
        os.dup2(private_out, 1)
