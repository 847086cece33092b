"""The overseer's rows in the project's database. No rule stands here.

A row that cannot be read (torn, or of another version) is as good as none: it is logged, and the others
serve.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any, TypeVar

import msgspec

from custodes.adapters.port import ProfileSetting
from custodes.overseer.config import Choice
from custodes.overseer.decide import ProfileRecord
from custodes.overseer.incident import Incident
from custodes.overseer.watch import Watch
from custodes.store import Connection, json_text
from custodes.supervision.record.clock import Deadline

logger = logging.getLogger("custodes.overseer")
S = TypeVar("S", bound=msgspec.Struct)
KEPT = 10_000
"""Resolved incidents that are kept."""


class Intent(msgspec.Struct, frozen=True, kw_only=True):
    """A switch that was begun: what it makes of the profile, so that whoever finds it can end it. ``held``:
    it is a person's, who wants the profile left there."""

    profile: str
    old: ProfileSetting
    new: ProfileSetting
    to: Choice
    incident: Incident | None
    held: bool = False


class Notice(msgspec.Struct, frozen=True, kw_only=True):
    """A message of one channel that is still to be delivered. ``key`` is what it is told once for; ``since``
    in wall seconds."""

    channel: str
    key: str
    text: str
    since: float
    tries: int = 0
    due: Deadline | None = None


async def load_watches(connection: Connection) -> dict[str, Watch]:
    return await _load(connection, "overseer_watches", Watch)


async def save_watches(connection: Connection, watches: Iterable[Watch]) -> None:
    await _save(connection, "overseer_watches", ((watch.provider, watch) for watch in watches))


async def load_records(connection: Connection) -> dict[str, ProfileRecord]:
    return await _load(connection, "overseer_profiles", ProfileRecord)


async def save_records(connection: Connection, records: Iterable[ProfileRecord]) -> None:
    await _save(connection, "overseer_profiles", ((record.profile, record) for record in records))


async def load_intents(connection: Connection) -> dict[str, Intent]:
    return await _load(connection, "overseer_intents", Intent)


async def save_intent(connection: Connection, intent: Intent) -> None:
    await _save(connection, "overseer_intents", [(intent.profile, intent)])


async def delete_intent(connection: Connection, profile: str) -> None:
    await connection.execute_fetchall("DELETE FROM overseer_intents WHERE name = ?", (profile,))


async def save_incidents(connection: Connection, incidents: Iterable[Incident]) -> list[Incident]:
    """Those that were written. A new one whose cause has an active one already is not: one of two
    overseers that saw the same comes second."""
    written = []
    for incident in incidents:
        rows = await connection.execute_fetchall(
            "INSERT INTO overseer_incidents (id, cause, status, opened, body) VALUES (?, ?, ?, ?, ?) "
            "ON CONFLICT (id) DO UPDATE SET status = excluded.status, body = excluded.body "
            "ON CONFLICT (cause) WHERE status = 'active' DO NOTHING RETURNING id",
            (incident.id, incident.cause, incident.status, incident.opened, json_text(incident)),
        )
        if rows:
            written.append(incident)
    await connection.execute_fetchall(
        "DELETE FROM overseer_incidents WHERE status = 'resolved' AND opened < (SELECT opened FROM "
        "overseer_incidents WHERE status = 'resolved' ORDER BY opened DESC LIMIT 1 OFFSET ?)",
        (KEPT,),
    )
    return written


async def active_incidents(connection: Connection) -> list[Incident]:
    """Oldest first."""
    rows = await connection.execute_fetchall(
        "SELECT id, body FROM overseer_incidents WHERE status = 'active' ORDER BY opened, id"
    )
    return list(_decoded("overseer_incidents", rows, Incident).values())


async def latest_incidents(connection: Connection, count: int) -> list[Incident]:
    """The newest, oldest of them first."""
    rows = await connection.execute_fetchall(
        "SELECT id, body FROM overseer_incidents ORDER BY opened DESC, id DESC LIMIT ?", (count,)
    )
    return list(_decoded("overseer_incidents", rows, Incident).values())[::-1]


async def add_notices(connection: Connection, notices: Iterable[Notice]) -> None:
    """Each once: what was told, or waits to be, is not told again."""
    await connection.executemany(
        "INSERT OR IGNORE INTO overseer_notices (channel, key, since, delivered, body) "
        "VALUES (?, ?, ?, 0, ?)",
        [(notice.channel, notice.key, notice.since, json_text(notice)) for notice in notices],
    )


async def waiting_notices(connection: Connection) -> list[Notice]:
    """Oldest first."""
    rows = await connection.execute_fetchall(
        "SELECT channel || char(10) || key, body FROM overseer_notices WHERE delivered = 0 "
        "ORDER BY since, key"
    )
    return list(_decoded("overseer_notices", rows, Notice).values())


async def save_notice(connection: Connection, notice: Notice) -> None:
    await connection.execute_fetchall(
        "UPDATE overseer_notices SET body = ? WHERE channel = ? AND key = ?",
        (json_text(notice), notice.channel, notice.key),
    )


async def close_notices(connection: Connection, notices: Iterable[Notice], forget_before: float) -> None:
    """Delivered, or given up. What was before ``forget_before`` (wall seconds) is not remembered for ever."""
    await connection.executemany(
        "UPDATE overseer_notices SET delivered = 1 WHERE channel = ? AND key = ?",
        [(notice.channel, notice.key) for notice in notices],
    )
    await connection.execute_fetchall(
        "DELETE FROM overseer_notices WHERE delivered = 1 AND since < ?", (forget_before,)
    )


async def _load(connection: Connection, table: str, kind: type[S]) -> dict[str, S]:
    rows = await connection.execute_fetchall(f"SELECT name, body FROM {table}")  # noqa: S608 - ours
    return _decoded(table, rows, kind)


async def _save(connection: Connection, table: str, rows: Iterable[tuple[str, msgspec.Struct]]) -> None:
    await connection.executemany(
        f"INSERT OR REPLACE INTO {table} VALUES (?, ?)",  # noqa: S608 - ours
        [(name, json_text(value)) for name, value in rows],
    )


def _decoded(table: str, rows: Iterable[Any], kind: type[S]) -> dict[str, S]:
    found = {}
    for name, body in rows:
        try:
            found[name] = msgspec.json.decode(body, type=kind)
        except (msgspec.DecodeError, UnicodeError) as error:
            logger.warning("%s: the row '%s' cannot be read and counts as none: %s", table, name, error)
    return found
