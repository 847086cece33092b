"""A request as its client sees it: written, and waited for until it is answered or never will be."""

from __future__ import annotations

import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial

import anyio
import msgspec

from custodes.store import Database, StoreError, StoreLocked, json_text
from custodes.supervision.asks import requests
from custodes.supervision.asks.requests import Kind, Request, RequestStatus
from custodes.supervision.record.owner_identity import Owner, proven_dead, this_process

POLL_S = (0.02, 0.25)
"""The first and the longest pause between two looks at a reply, in seconds."""
CHECK_S = 1.0
"""How often it is checked that the owner lives, in seconds."""
TAKEN_S = 30.0
"""How long a living owner may leave a request where it is, in seconds; then it is taken back."""
WAIT_S = 5.0
"""How long a write may wait for other writers of the file, in seconds."""


class Posted:
    """``status`` is as it was last seen; None: it was not written, or was taken back. ``dead``: its owner was
    found to be. ``gone``: it went from the file, with the run that it is about."""

    def __init__(self, database: Database, request: Request) -> None:
        self.request = request
        self.status: RequestStatus | None = None
        self.dead = False
        self.gone = False
        self._database = database

    async def write(self) -> bool:
        """Whether it stands there now; False: its id is that of another request.

        :raises StoreError: it was not written.
        """
        ask = partial(requests.ask, request=self.request)
        if (await self._database.write(ask, WAIT_S)).proof != self.request.proof:
            return False
        self.status = "asked"
        return True

    async def reply(self, over: Callable[[], Awaitable[bool]], taken_s: float = TAKEN_S) -> str | None:
        """Wait for it. None: there will be none, since the owner is dead, the request is gone, or it was not
        taken and so taken back: after ``taken_s`` seconds, or once what it is about is ``over``.

        :raises StoreError: the file cannot be read or written.
        """
        pause, longest = POLL_S
        begun = checked = anyio.current_time()
        while True:
            if (reply := await self._look()) is not None or self.gone:
                return reply
            if (now := anyio.current_time()) >= checked + CHECK_S:
                checked = now
                if proven_dead(self.request.owner):
                    self.dead = True
                    return await self._look()
                late = now >= begun + taken_s
                if self.status == "asked" and (late or await _is(over)) and await self.taken_back():
                    return None
            await anyio.sleep(pause)
            pause = min(pause * 1.5, longest)

    async def taken_back(self) -> bool:
        """Whether it will never be taken now; else it was taken, and its owner knows that it is withdrawn."""
        try:
            withdraw = partial(requests.withdraw, request_id=self.request.id)
            left = await self._database.write(withdraw, WAIT_S)
        except StoreLocked:
            return False
        self.status = None if left is None else left.status
        return left is None

    async def _look(self) -> str | None:
        try:
            seen = await self._database.read(partial(requests.find, request_id=self.request.id))
        except StoreLocked:
            return None
        if seen is None:
            self.gone = True
            return None
        self.status = seen.status
        return seen.reply


@asynccontextmanager
async def posted(
    database: Database, owner: Owner, kind: Kind, target: str, body: msgspec.Struct
) -> AsyncIterator[Posted]:
    """A person's request to the owner, about ``target``; it stands in the file for as long as the block.

    Where it cannot be taken out of the file again, the block ends as it would have: :func:`.requests.prune`
    deletes it once its client has ended.

    :raises StoreError: it was not written.
    """
    request = Request(
        id=secrets.token_hex(16),
        kind=kind,
        run_id=target,
        owner=owner,
        client=this_process(),
        body=json_text(body),
        asked=time.time(),
    )
    found = Posted(database, request)
    await found.write()
    try:
        yield found
    finally:
        with anyio.CancelScope(shield=True), suppress(StoreError):
            await database.write(partial(requests.forget, ids=[request.id]), WAIT_S)


async def _is(over: Callable[[], Awaitable[bool]]) -> bool:
    try:
        return await over()
    except StoreLocked:
        return False
