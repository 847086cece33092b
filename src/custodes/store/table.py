"""A table whose columns are the fields of one frozen Struct."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from operator import attrgetter
from types import NoneType, UnionType
from typing import Any, Generic, Literal, TypeVar, Union, get_args, get_origin

import msgspec

from .connection import Connection, Row

S = TypeVar("S", bound=msgspec.Struct)
_encode = msgspec.json.Encoder().encode
_PAGE = 10_000
"""Rows held in memory at once where all are looked at."""


class Table(Generic[S]):
    """Writes and reads rows of ``kind``, a Struct of two fields or more.

    Text, numbers and None stand in a column as they are, a bool as 0 or 1; a field of any other type as its
    JSON, or NULL for None.
    """

    def __init__(self, name: str, kind: type[S], *, changing: Sequence[str] = ()) -> None:
        """``changing`` are the columns that :meth:`update` writes."""
        self._name = name
        self._kind = kind
        self._columns = kind.__struct_fields__
        types = {field.name: field.type for field in msgspec.structs.fields(kind)}
        self._flags = [column for column, of in types.items() if of is bool]
        self._json = {column: msgspec.json.Decoder(of) for column, of in types.items() if not _plain(of)}
        names = ", ".join(map(_quoted, self._columns))
        self._select = f"SELECT {names} FROM {name} "  # noqa: S608 - our own names, as below
        self._insert = f"INTO {name} ({names}) VALUES ({', '.join('?' * len(self._columns))})"
        self._values = self._reader(self._columns)
        changes = ", ".join(f"{_quoted(column)} = ?" for column in changing)
        self._update = f"UPDATE {name} SET {changes} WHERE id = ?"  # noqa: S608
        self._changes = self._reader((*changing, "id")) if changing else self._values

    async def insert(self, connection: Connection, rows: Iterable[S]) -> None:
        await _executed(connection, f"INSERT {self._insert}", map(self._values, rows))

    async def replace(self, connection: Connection, rows: Iterable[S]) -> None:
        """Insert each in place of what has its key."""
        await _executed(connection, f"INSERT OR REPLACE {self._insert}", map(self._values, rows))

    async def update(self, connection: Connection, rows: Iterable[S]) -> None:
        """Write what may have changed of rows that stand, found by their ``id``; what is not named as
        changing costs no index a write."""
        await _executed(connection, self._update, map(self._changes, rows))

    async def delete(self, connection: Connection, column: str, values: Iterable[object]) -> None:
        """Delete the rows whose ``column`` is one of these."""
        statement = f"DELETE FROM {self._name} WHERE {_quoted(column)} = ?"  # noqa: S608
        await _executed(connection, statement, ((value,) for value in values))

    async def select(self, connection: Connection, rest: str = "", *parameters: object) -> list[S]:
        """What ``rest`` (``WHERE … ORDER BY …``) leaves, in its order.

        :raises msgspec.DecodeError: a row cannot be read.
        """
        return [self.read(row) for row in await self.rows(connection, rest, *parameters)]

    async def among(
        self, connection: Connection, column: str, values: Iterable[str], rest: str = ""
    ) -> list[S]:
        """As :meth:`select`, those whose ``column`` is one of these."""
        where = f"WHERE {_quoted(column)} IN (SELECT value FROM json_each(?)) {rest}"  # noqa: S608
        return await self.select(connection, where, json_text(sorted(values)))

    async def rows(self, connection: Connection, rest: str = "", *parameters: object) -> list[Row]:
        """As :meth:`select`, for :meth:`read` to read them one by one."""
        return await connection.execute_fetchall(self._select + rest, parameters)

    def read(self, row: Row) -> S:
        """:raises msgspec.DecodeError: it cannot be read."""
        fields: dict[str, Any] = dict(zip(self._columns, row, strict=True))
        for column, decoder in self._json.items():
            if fields[column] is not None:
                fields[column] = decoder.decode(fields[column])
        for column in self._flags:
            fields[column] = bool(fields[column])
        return self._kind(**fields)

    async def unreadable(self, connection: Connection) -> list[str]:
        """A sentence for each row that cannot be read, by its first column. Looks at every row."""
        found: list[str] = []
        start = 0
        while page := await self.rows(connection, "LIMIT ? OFFSET ?", _PAGE, start):
            for row in page:
                try:
                    self.read(row)
                except msgspec.DecodeError as error:
                    found.append(f"row {row[0]!r} of {self._name} cannot be read ({error})")
            start += len(page)
        return found

    def _reader(self, columns: Sequence[str]) -> Callable[[S], Sequence[object]]:
        """What takes a Struct's values in these columns, as they are stored."""
        taken = attrgetter(*columns)
        json = [place for place, column in enumerate(columns) if column in self._json]

        def values(row: S) -> Sequence[object]:
            found = list(taken(row))
            for place in json:
                if found[place] is not None:
                    found[place] = json_text(found[place])
            return found

        return values


async def _executed(connection: Connection, statement: str, rows: Iterable[Sequence[object]]) -> None:
    """No statement at all where there are no rows."""
    if given := list(rows):
        await connection.executemany(statement, given)


def json_text(value: object) -> str:
    return _encode(value).decode()


def _plain(of: Any) -> bool:
    """Whether SQLite has this type, or both of what is told apart as 0 and 1."""
    if get_origin(of) in (Union, UnionType):
        return all(map(_plain, get_args(of)))
    return of in (str, int, float, bool, NoneType) or get_origin(of) is Literal


def _quoted(column: str) -> str:
    return f'"{column}"'
