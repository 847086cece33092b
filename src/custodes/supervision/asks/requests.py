"""Requests from other processes to the owner of a running attempt, as rows of the project's file.

A child's own processes ask for nested work; anybody of the project's user asks to cancel a run, answers an
ask for permission, or asks the overseer for a switch. Whoever asks writes a row and waits for its reply; the
owner that it names claims it in one commit, so that it is done once, and answers in another. The id is the
client's: the same one asked again is the same request, and has the same answer.

``asked`` -> ``claimed`` -> ``answered``; ``withdrawn`` where the client wants no more of what was claimed.
The body is deleted once it is claimed. A row of nested work goes with the attempt that asked for it, any
other with its reader; what both have left goes at the next start.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Collection, Iterable
from typing import Literal

import msgspec

from custodes.adapters.port import PermissionAnswer
from custodes.store import Connection, Row, Table, json_text
from custodes.supervision.record.owner_identity import Owner, proven_dead

Kind = Literal["dispatch", "cancel", "answer", "switch"]
RequestStatus = Literal["asked", "claimed", "withdrawn", "answered"]


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """``run_id`` is the run it is about: whose process asks for work, which is to be cancelled (or a whole
    conversation), or which asks for permission; of a switch, the profile. ``asked`` is in wall seconds.

    ``proof`` is made by :func:`prove`, for nested work; who may write this file needs none for the rest.
    """

    id: str
    kind: Kind
    run_id: str
    owner: Owner
    client: Owner
    proof: str = ""
    body: str = ""
    status: RequestStatus = "asked"
    reply: str | None = None
    asked: float


class CancelAsk(msgspec.Struct, frozen=True):
    """The body of a request of kind ``cancel``: which surface it comes from."""

    by: str


class AnswerAsk(msgspec.Struct, frozen=True):
    """The body of a request of kind ``answer``."""

    ask: str
    answer: PermissionAnswer
    by: str


class Answered(msgspec.Struct, frozen=True, kw_only=True):
    """The answer that an ask has, and whose it is; ``first``: it is the one that was given just now."""

    ask: str
    answer: PermissionAnswer
    by: str
    first: bool


def prove(token: str, request_id: str, run_id: str, body: str) -> str:
    """What shows that who asks has the token of the attempt, without telling it."""
    words = msgspec.json.encode((request_id, run_id, body))
    return hmac.new(token.encode(), words, hashlib.sha256).hexdigest()


def proven(request: Request, token: str) -> bool:
    return hmac.compare_digest(request.proof, prove(token, request.id, request.run_id, request.body))


REQUESTS = Table("requests", Request)


async def ask(connection: Connection, request: Request) -> Request:
    """Write it, or find the one that was asked under this id before."""
    known = await find(connection, request.id)
    if known is not None:
        return known
    await REQUESTS.insert(connection, [request])
    return request


async def find(connection: Connection, request_id: str) -> Request | None:
    return next(iter(await _select(connection, "WHERE id = ?", request_id)), None)


async def open_for(connection: Connection, owner: Owner) -> list[Request]:
    """What this owner has not answered, in the order asked."""
    return await _select(
        connection, "WHERE status <> 'answered' AND owner = ? ORDER BY asked, id", json_text(owner)
    )


async def claim(connection: Connection, ids: Collection[str]) -> list[Request]:
    """Those of them that were still asked, now claimed by whoever commits this."""
    listed = json_text(sorted(ids))
    found = await _select(
        connection,
        "WHERE status = 'asked' AND id IN (SELECT value FROM json_each(?)) ORDER BY asked, id",
        listed,
    )
    claimed = json_text([request.id for request in found])
    await connection.execute_fetchall(
        "UPDATE requests SET status = 'claimed', body = '' WHERE id IN (SELECT value FROM json_each(?))",
        (claimed,),
    )
    return found


async def answer(connection: Connection, request_id: str, reply: str) -> None:
    """Only the first answer counts."""
    await connection.execute_fetchall(
        "UPDATE requests SET status = 'answered', body = '', reply = ? WHERE id = ? AND status <> 'answered'",
        (reply, request_id),
    )


async def withdraw(connection: Connection, request_id: str) -> Request | None:
    """The client wants no more of it. None: it was not claimed, and now never will be. Else how it stands."""
    await connection.execute_fetchall("DELETE FROM requests WHERE id = ? AND status = 'asked'", (request_id,))
    await connection.execute_fetchall(
        "UPDATE requests SET status = 'withdrawn' WHERE id = ? AND status = 'claimed'", (request_id,)
    )
    return await find(connection, request_id)


async def forget(connection: Connection, ids: Iterable[str]) -> None:
    await REQUESTS.delete(connection, "id", ids)


async def forget_run(connection: Connection, run_id: str) -> None:
    """The run's attempt has ended, and with it whoever asked for nested work."""
    await connection.execute_fetchall(
        "DELETE FROM requests WHERE run_id = ? AND kind = 'dispatch'", (run_id,)
    )


async def prune(connection: Connection) -> None:
    """Delete what nobody waits for any more: owner and client are proven dead, or cannot be read."""
    found = [(row["id"], _readable(row)) for row in await REQUESTS.rows(connection)]
    await forget(
        connection,
        [
            each
            for each, request in found
            if request is None or (proven_dead(request.owner) and proven_dead(request.client))
        ],
    )


async def _select(connection: Connection, where: str, *parameters: object) -> list[Request]:
    rows = await REQUESTS.rows(connection, where, *parameters)
    return [request for row in rows if (request := _readable(row)) is not None]


def _readable(row: Row) -> Request | None:
    """None for a row that no client of ours wrote: it may stop nobody's work."""
    try:
        return REQUESTS.read(row)
    except msgspec.DecodeError:
        return None
