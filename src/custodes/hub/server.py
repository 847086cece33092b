"""The Hub over HTTP: its socket, its server, its end by a signal."""

from __future__ import annotations

import asyncio
import secrets
import socket
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import h11
import msgspec
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from custodes.hub.access import Access, authority, is_loopback
from custodes.hub.app import make_app
from custodes.hub.hub import open_hub
from custodes.signals import heeding_signals

GRACE_S = 2
"""What a request in flight has to end by itself when the Hub ends, in seconds. Streams end at once."""
CONNECTIONS = 128
"""At once, streams among them; any further one is closed. A process has 256 descriptors on some systems."""
BACKLOG = 64
"""How many wait to be taken in, and are taken in at once before any is closed."""
HEAD_S = 10.0
"""How long the head of a request may take to come, in seconds: from a connection's beginning, or from the
head's first byte where it follows another request."""


class AddressError(OSError):
    """The Hub cannot listen there; the words say what would work."""


class Listening(msgspec.Struct, frozen=True, kw_only=True):
    """``url`` is what a person opens: with the token, where one is asked for."""

    access: Access
    url: str


def listen(host: str, port: int) -> socket.socket:
    """A listening socket; port 0 takes a free one.

    :raises AddressError: the address is none of this machine's, or taken.
    """
    try:
        ((family, kind, protocol, _, address), *_) = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
    except socket.gaierror as error:
        raise AddressError(f"{host!r} is no address: {error.strerror}; 127.0.0.1 would work") from error
    bound = socket.socket(family, kind, protocol)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(address)
        bound.listen(BACKLOG)  # from here on a browser that is opened at once waits, and is not turned away
    except OSError as error:
        bound.close()
        raise AddressError(
            f"cannot listen on {authority(host, port)}: {error.strerror or error}; --port 0 takes a free one"
        ) from error
    return bound


def access_for(host: str, port: int, *, ask_token: bool = False) -> Listening:
    """Whoever reaches another address than loopback needs a token; on loopback only where it is asked for."""
    token = secrets.token_urlsafe(24) if ask_token or not is_loopback(host) else None
    shown = "localhost" if host in ("0.0.0.0", "::", "") else host  # noqa: S104  # compared, not bound
    place = f"http://{authority(shown, port)}/"
    url = place if token is None else f"{place}token?token={token}"
    return Listening(access=Access(host=host, port=port, token=token), url=url)


class _Connection(H11Protocol):
    """One that cannot be held open by saying nothing: with no descriptor left, nobody would be served, and
    each look at who waits would be an error in the log, thousands a second."""

    _waiting: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn's
        super().connection_made(transport)
        self._wait_for_head()
        if len(self.connections) > CONNECTIONS:
            transport.abort()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._wait_for_head()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._wait_no_more()

    def _wait_for_head(self) -> None:
        if self.conn.their_state is not h11.IDLE:
            self._wait_no_more()
        elif self._waiting is None:
            self._waiting = self.loop.call_later(HEAD_S, self.transport.abort)

    def _wait_no_more(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None


class _Server(uvicorn.Server):
    """One that leaves the signals to whoever runs it."""

    def capture_signals(self) -> AbstractContextManager[None]:  # type: ignore[override]  # a context manager, too
        return nullcontext()


async def serve(project: Path, bound: socket.socket, access: Access, trace_url: str = "") -> int | None:
    """Serve a project until a signal comes; its number is the answer. On asyncio, which is uvicorn's loop.

    Streams end at once; any other request in flight has :data:`GRACE_S`.

    :raises TraceLinkError: as :func:`~custodes.hub.hub.open_hub`.
    """
    async with open_hub(project, access, trace_url=trace_url) as hub:
        config = uvicorn.Config(
            make_app(hub),
            http=_Connection,
            backlog=BACKLOG,
            lifespan="off",
            log_level="warning",
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_graceful_shutdown=GRACE_S,
        )
        server = _Server(config)

        def end() -> None:
            hub.views.closing.set()
            server.should_exit = True

        async with heeding_signals(end) as ended_by:
            await server.serve(sockets=[bound])
    return ended_by[0] if ended_by else None
