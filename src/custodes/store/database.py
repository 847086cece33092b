"""The open file: one writer connection, one reader, and the transactions over them.

Every transaction runs in its connection's thread. It is asked for there at once, which takes two switches of
threads; where others hold the file, by a coroutine in the portal's loop, which asks again until it may or its
time is up. No host can cancel either: a transaction that was cut half way would stay open and hold the file
for everybody. It commits, or it rolls back, whatever way it ends.
"""

from __future__ import annotations

import asyncio
import math
import os
import random
import sqlite3
import threading
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from concurrent.futures import CancelledError as NotBegun
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import aiosqlite
import anyio
import anyio.to_thread
import msgspec

from custodes.paths import absent

from .connection import Fold, asked, folded, transacted
from .errors import (
    StoreClosed,
    StoreForked,
    StoreLocked,
    StoreReplaced,
    StoreUnreadable,
    StoreUnusable,
    translate,
    unusable,
)
from .migrations import Migration, migrate, refuse_newer, version
from .place import identity, irregular, prepare, refuse_damaged, replaced
from .portal import PortalThread, outcome_of

T = TypeVar("T")

OPEN_WAIT_S = 5.0
"""How long opening may wait for other processes that open, migrate or recover the same file, in seconds."""


class Database:
    """Use :meth:`open` or :meth:`open_read_only`, and :meth:`aclose` in every path.

    It may be shared by the tasks, threads and loops of one process; a fork gets :exc:`~.StoreForked`.
    """

    def __init__(self, path: Path, migrations: Sequence[Migration], *, read_only: bool) -> None:
        self.path = path
        self._migrations = migrations
        self._read_only = read_only
        self._pid = os.getpid()
        self._portal = PortalThread("custodes-store")
        self._lifetime = threading.Lock()
        self._closed = False
        self._door = threading.Lock()
        """Held while a connection's thread is asked for something, so that it is not told to end before."""
        self._opened_file: tuple[int, int] | None = None
        self._writer: aiosqlite.Connection | None = None
        self._reader: aiosqlite.Connection | None = None
        self._asked: defaultdict[aiosqlite.Connection, set[Future[Any]]] = defaultdict(set)
        """What each was asked at once and has not answered."""
        # Used in the portal's loop only; each binds itself to it at its first wait.
        self._write_turn = asyncio.Lock()
        self._read_turn = asyncio.Lock()

    @staticmethod
    async def open(path: Path, migrations: Sequence[Migration]) -> Database:
        """Open the file, made where it is missing (mode 0600), and bring its schema up to date.

        Cancelled, everything that was begun is closed.

        :raises StoreOnNetwork: it stands on a network file system.
        :raises StoreTooNew: it has more migrations behind it than are given.
        :raises StoreDamaged: it was damaged, and was set aside; opened again, it begins empty.
        :raises StoreLocked: others held it for ``OPEN_WAIT_S``.
        :raises StoreFull, StoreUnusable: it cannot be made, opened or written.
        """
        return await Database(path, migrations, read_only=False)._opened()

    @staticmethod
    async def open_read_only(path: Path, migrations: Sequence[Migration]) -> Database | None:
        """Open the file to look at it; None where there is none, or one whose schema is older than ours.

        Nothing is made, migrated or set aside.

        :raises StoreTooNew: it has more migrations behind it than are given.
        :raises StoreDamaged: it is damaged. It stands as it did.
        :raises StoreUnusable: it is no file, or cannot be read.
        """
        if await anyio.to_thread.run_sync(absent, path):
            return None
        database = await Database(path, migrations, read_only=True)._opened()
        try:
            current = await database.read(version) == len(migrations)
        except BaseException:
            await database.aclose()
            raise
        if current:
            return database
        await database.aclose()
        return None

    async def write(self, fold: Fold[T], wait_s: float = 1.0) -> T:
        """Run ``fold`` in one ``BEGIN IMMEDIATE … COMMIT``; what it returns is on the disk.

        It runs in the connection's thread, waits for its connection alone, and opens no transaction. If it
        raises, or the commit fails, everything is rolled back. A cancel of the caller cuts neither: the wait
        is shielded, and bounded.

        :param wait_s: seconds from this call until the transaction has begun, its turn in this process
            and other processes' writing together.
        :raises StoreLocked: it could not begin in time.
        :raises StoreError: the store cannot serve, typed by its reason.
        """
        self._check_usable()
        if self._read_only:
            raise StoreUnusable(self.path, "it was opened to look at, not to write")
        deadline = time.monotonic() + wait_s
        if self._writer is not None and not self._write_turn.locked():
            try:
                return await self._at_once(self._writer, transacted, fold, wait_s)
            except NotBegun:
                raise StoreLocked(self.path, wait_s) from None
            except StoreLocked:
                pass  # other processes are at it: it waits in its turn
        return await outcome_of(self._submit(self._write, fold, deadline, wait_s))

    async def read(self, query: Fold[T]) -> T:
        """Run ``query`` on the reader, one at a time. What several statements of it see may differ.

        :raises StoreError: the store cannot serve, typed by its reason.
        """
        self._check_usable()
        if self._reader is not None:
            with suppress(StoreLocked):
                return await self._at_once(self._reader, folded, query)
        return await outcome_of(self._submit(self._read, query))

    async def aclose(self) -> None:
        """Finish what runs, close the connections, end the thread. Idempotent; shielded from cancels."""
        if os.getpid() != self._pid:
            return  # the connections are the parent's; to touch them here could harm its file
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(self._stop)

    # -- The host's side

    async def _opened(self) -> Database:
        try:
            await anyio.to_thread.run_sync(self._start)
        except BaseException:
            # A native cancel leaves the start running: the stop waits for it, and nobody for the stop.
            threading.Thread(target=self._stop, name="custodes-store-stop").start()
            raise
        return self

    def _start(self) -> None:
        with self._lifetime:
            if self._closed:  # cancelled before it began
                return
            if (wrong := irregular(self.path)) is not None:
                raise StoreUnusable(self.path, wrong)
            try:
                if not self._read_only:
                    prepare(self.path)
                    refuse_damaged(self.path)
                self._portal.start()
                self._submit(self._connect).result()
            except BaseException:
                self._shut()
                raise

    def _stop(self) -> None:
        with self._lifetime:
            self._shut()

    def _shut(self) -> None:
        if self._closed:
            return
        with self._door:
            self._closed = True
        if self._portal.running:
            self._portal.submit(self._disconnect).result()
            self._portal.stop()

    def _check_usable(self) -> None:
        if os.getpid() != self._pid:
            raise StoreForked(self.path)
        if self._closed:
            raise StoreClosed(self.path)

    def _submit(self, function: Callable[..., Coroutine[Any, Any, T]], *arguments: object) -> Future[T]:
        try:
            return self._portal.submit(function, *arguments)
        except RuntimeError:  # closed between the check and here
            raise StoreClosed(self.path) from None

    async def _at_once(
        self,
        connection: aiosqlite.Connection,
        run: Callable[[sqlite3.Connection, Fold[T]], T],
        fold: Fold[T],
        within_s: float = math.inf,
    ) -> T:
        """:raises StoreLocked: other processes hold the file right now; nothing was done.
        :raises NotBegun: the thread had no time for it within ``within_s``; nothing was done, or will be.
        """

        def work(raw: sqlite3.Connection) -> T:
            self._refuse_replaced()
            return run(raw, fold)

        with self._door:
            self._check_usable()
            unanswered = self._asked[connection]
            if not unanswered:
                within_s = math.inf  # nothing is before it: it begins at once
            answer = asked(connection, work)
            unanswered.add(answer)
        answer.add_done_callback(unanswered.discard)
        with self._told(0):
            return await outcome_of(answer, within_s)

    @contextmanager
    def _told(self, wait_s: float) -> Iterator[None]:
        """SQLite's errors as ours."""
        try:
            yield
        except sqlite3.Error as error:
            raise translate(self.path, error, wait_s) or error from error
        except msgspec.DecodeError as error:
            raise StoreUnreadable(self.path, str(error)) from error

    # -- In the portal's loop

    async def _connect(self) -> None:
        deadline = time.monotonic() + OPEN_WAIT_S
        try:
            self._opened_file = identity(self.path)
            if not self._read_only:
                self._writer = await self._connection("rw")
                await self._retried(self._set_up_writer, deadline, OPEN_WAIT_S)
                await self._write(
                    lambda writer: migrate(self.path, writer, self._migrations), deadline, OPEN_WAIT_S
                )
            self._reader = await self._connection("ro")
            refuse_newer(self.path, await self._read(version), self._migrations)
        except sqlite3.Error as error:
            await self._disconnect()
            raise translate(self.path, error, OPEN_WAIT_S) or error from error
        except OSError as error:  # it went a moment ago
            await self._disconnect()
            raise unusable(self.path, error) from error
        except BaseException:
            await self._disconnect()
            raise

    async def _connection(self, mode: str) -> aiosqlite.Connection:
        # No busy handler of SQLite's: it would sleep in the connection's thread, past the bound of whoever
        # waits. `_retried` waits instead, in the loop.
        connection = await aiosqlite.connect(
            f"{self.path.resolve().as_uri()}?mode={mode}", uri=True, isolation_level=None, timeout=0
        )
        connection.row_factory = sqlite3.Row
        return connection

    async def _set_up_writer(self) -> None:
        assert self._writer is not None  # noqa: S101  # set by the caller
        for pragma in ("journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON"):
            await self._writer.execute_fetchall(f"PRAGMA {pragma}")

    async def _disconnect(self) -> None:
        """After what runs."""
        async with self._write_turn, self._read_turn:
            for connection in (self._reader, self._writer):
                if connection is not None:
                    # The file may be gone; the connection is closed all the same.
                    with suppress(sqlite3.Error):
                        await connection.close()
            self._reader = self._writer = None

    async def _write(self, fold: Fold[T], deadline: float, wait_s: float) -> T:
        try:
            async with asyncio.timeout(max(0.0, deadline - time.monotonic())):
                await self._write_turn.acquire()
        except TimeoutError:
            raise StoreLocked(self.path, wait_s) from None
        try:
            writer = self._writer
            if writer is None:
                raise StoreClosed(self.path)
            self._refuse_replaced()
            with self._told(wait_s):
                return await self._retried(
                    lambda: self._begun(writer, partial(transacted, fold=fold), deadline, wait_s),
                    deadline,
                    wait_s,
                )
        finally:
            self._write_turn.release()

    async def _read(self, query: Fold[T]) -> T:
        async with self._read_turn:
            reader = self._reader
            if reader is None:
                raise StoreClosed(self.path)
            self._refuse_replaced()
            # A reader waits only while another process recovers the log of one that was killed.
            with self._told(1.0):
                return await self._retried(
                    lambda: asyncio.wrap_future(asked(reader, partial(folded, fold=query))),
                    time.monotonic() + 1.0,
                    1.0,
                )

    async def _begun(
        self,
        connection: aiosqlite.Connection,
        work: Callable[[sqlite3.Connection], T],
        deadline: float,
        wait_s: float,
    ) -> T:
        """:raises StoreLocked: the connection's thread had no time for it until the deadline."""
        answer = asked(connection, work)
        outcome = asyncio.wrap_future(answer)
        done, _ = await asyncio.wait([outcome], timeout=max(0.0, deadline - time.monotonic()))
        if not done and answer.cancel():
            raise StoreLocked(self.path, wait_s)
        return await outcome

    def _refuse_replaced(self) -> None:
        """Others use another file by now: what is written here, and locked by it, nobody would see."""
        if self._opened_file is not None and replaced(self.path, self._opened_file):
            raise StoreReplaced(self.path)

    async def _retried(self, step: Callable[[], Awaitable[T]], deadline: float, wait_s: float) -> T:
        """``step``, again while the file is busy, until ``deadline`` of the monotonic clock."""
        pause = 0.001
        while True:
            try:
                return await step()
            except sqlite3.OperationalError as error:
                if not isinstance(translate(self.path, error, wait_s), StoreLocked):
                    raise
                if (left := deadline - time.monotonic()) <= 0:
                    raise StoreLocked(self.path, wait_s) from None
            # Jitter, so that processes which wait for the same writer do not wake as one.
            await asyncio.sleep(min(left, pause * random.uniform(0.5, 1.5)))  # noqa: S311  # no secret
            pause = min(pause * 1.5, 0.02)
