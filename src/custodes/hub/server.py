"""The Hub over HTTP: its socket, its server, its end by a signal."""

from __future__ import annotations

import secrets
import signal
import socket
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import anyio
import msgspec
import uvicorn

from custodes.hub.access import Access, authority, is_loopback
from custodes.hub.app import make_app
from custodes.hub.hub import open_hub

GRACE_S = 2
"""What a request in flight has to end by itself when the Hub ends, in seconds. Streams end at once."""


_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


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
        bound.listen(128)  # from here on a browser that is opened at once waits, and is not turned away
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


class _Server(uvicorn.Server):
    """One that leaves the signals to whoever runs it."""

    def capture_signals(self) -> AbstractContextManager[None]:  # type: ignore[override]  # a context manager, too
        return nullcontext()


async def serve(project: Path, bound: socket.socket, access: Access, trace_url: str = "") -> int | None:
    """Serve a project until a signal comes; its number is the answer. On asyncio, which is uvicorn's loop.

    Streams end at once; any other request in flight has :data:`GRACE_S`.

    :raises TraceLinkError: as :func:`~custodes.hub.hub.open_hub`.
    """
    ended_by: int | None = None
    async with open_hub(project, access, trace_url=trace_url) as hub, anyio.create_task_group() as group:
        config = uvicorn.Config(
            make_app(hub),
            lifespan="off",
            log_level="warning",
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_graceful_shutdown=GRACE_S,
        )
        server = _Server(config)
        with anyio.open_signal_receiver(*_SIGNALS) as signals:

            async def listen_for_the_end() -> None:
                nonlocal ended_by
                async for number in signals:
                    ended_by = ended_by or number
                    hub.views.closing.set()
                    server.should_exit = True

            group.start_soon(listen_for_the_end)
            await server.serve(sockets=[bound])
            group.cancel_scope.cancel()
    return ended_by
