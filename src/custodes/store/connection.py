"""What a fold is given, and how it runs: a whole transaction for two thread switches, not two a statement.

A connection of SQLite's blocks, and so it lives in a thread of its own (aiosqlite's). To ask that thread for
each statement alone costs a switch there and one back every time: on a busy machine, most of what a
transaction takes. Here the fold itself runs in that thread, from its first statement to its last.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from functools import partial
from typing import Any, TypeVar

import aiosqlite
import msgspec

T = TypeVar("T")
Parameters = Sequence[Any] | Mapping[str, Any]
Row = sqlite3.Row


class Connection:
    """The methods are coroutines by form alone: each is done when it returns, and none ever suspends."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    async def execute_fetchall(self, sql: str, parameters: Parameters = ()) -> list[Row]:
        """The rows. Text that is no UTF-8 stands in them with U+FFFD for what is none: SQLite keeps whatever
        bytes it is given, and one such text must not hide every other row.

        :raises msgspec.DecodeError: a statement that writes returns such text.
        """
        try:
            return self._connection.execute(sql, parameters).fetchall()
        except sqlite3.OperationalError as error:
            if hasattr(error, "sqlite_errorcode"):  # of SQLite itself, and not of what was read
                raise
            if "RETURNING" in sql:  # it was done; a second time would be another
                raise msgspec.DecodeError(str(error)) from error
        self._connection.text_factory = _lenient
        try:
            return self._connection.execute(sql, parameters).fetchall()
        finally:
            self._connection.text_factory = str

    async def executemany(self, sql: str, parameters: Iterable[Parameters]) -> None:
        self._connection.executemany(sql, parameters)


def _lenient(data: bytes) -> str:
    return data.decode(errors="replace")


Fold = Callable[[Connection], Awaitable[T]]


def asked(connection: aiosqlite.Connection, work: Callable[[sqlite3.Connection], T]) -> Future[T]:
    """``work``, asked of the connection's own thread, from whatever thread, before the connection is closed.
    The answer may be cancelled as long as it has not begun. aiosqlite has no public name for it."""
    answer: Future[T] = Future()
    connection._tx.put_nowait((None, partial(_answer, connection, work, answer)))
    return answer


def _answer(
    connection: aiosqlite.Connection, work: Callable[[sqlite3.Connection], T], answer: Future[T]
) -> None:
    if not answer.set_running_or_notify_cancel():
        return
    try:
        answer.set_result(work(connection._conn))
    except BaseException as error:
        answer.set_exception(error)
        del answer  # the error holds this frame


def folded(connection: sqlite3.Connection, fold: Fold[T]) -> T:
    """What the fold returns, run to its end here and now.

    :raises RuntimeError: it waits for something else than its connection, which could hold the file for ever.
    """
    steps = fold(Connection(connection)).__await__()
    try:
        next(steps)
    except StopIteration as end:
        answer: T = end.value
        return answer
    steps.close()
    raise RuntimeError("a fold waits for its connection alone; do everything else before or after it")


def transacted(connection: sqlite3.Connection, fold: Fold[T]) -> T:
    """``BEGIN IMMEDIATE``, the fold, ``COMMIT``; rolled back on every other path."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        answer = folded(connection, fold)
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:  # a full disk has rolled back already
            connection.execute("ROLLBACK")
        raise
    return answer
