"""An HTTP client for adapters and probes: no surprise on the way, and no more of a body than is wanted."""

from __future__ import annotations

import contextlib
import functools
import ssl
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread

from custodes.adapters.descriptor import is_loopback

if TYPE_CHECKING:
    import httpx2

CONNECT_S = 15.0
"""Seconds to connect. Beyond it nothing was sent, which is a better thing to know than "timeout"."""


class NoClientError(Exception):
    """No client can be made as this machine is set up: a proxy's variable, or the file of certificates. That
    says nothing of whom it was for. The text names no address: a proxy's may hold a password."""


@functools.cache
def _tls() -> ssl.SSLContext:
    import httpx2

    return httpx2.create_ssl_context()


@contextlib.asynccontextmanager
async def web_client(base_url: str) -> AsyncIterator[httpx2.AsyncClient]:
    """A client for one exchange (it belongs to one event loop); the TLS context is shared.

    It follows no redirect, so that a key goes nowhere but where it was meant for, and has no deadline but
    that of connecting: its user's own is over everything.

    :raises NoClientError: there can be none; nothing was sent.
    """
    import httpx2

    local = is_loopback(base_url)
    timeout = httpx2.Timeout(None, connect=CONNECT_S)
    try:
        # Loading the certificates blocks for a third of a second, hence in a thread; plain HTTP needs none.
        verify = await anyio.to_thread.run_sync(_tls) if base_url.lower().startswith("https:") else False
        client = httpx2.AsyncClient(
            verify=verify, timeout=timeout, trust_env=not local, follow_redirects=False
        )
    except OSError as error:
        raise NoClientError(f"the certificates cannot be loaded ({error.strerror or 'SSL'})") from None
    except ImportError:
        raise NoClientError("a SOCKS proxy is set, which needs the package 'socksio'") from None
    except (ValueError, httpx2.InvalidURL):
        raise NoClientError(
            "a variable for a proxy (HTTP_PROXY, HTTPS_PROXY, ALL_PROXY) holds none"
        ) from None
    async with client:
        yield client


async def feed(response: httpx2.Response, take: Callable[[bytes], bool]) -> None:
    """Give the pieces of a body to ``take`` until it says that this is enough, or the body ends.

    Enough is said by cancelling the read: a loop that were merely left would leave the client's own
    generators beneath it to the garbage collector, which trio rightly warns about. What ``take`` raises is
    raised here.
    """
    raised: Exception | None = None
    with anyio.CancelScope() as reading:
        async for piece in response.aiter_bytes():
            if reading.cancel_called:
                continue  # what was read already
            try:
                enough = take(piece)
            except Exception as error:
                raised, enough = error, True
            if enough:
                reading.cancel()
    if raised is not None:
        raise raised


async def body_of(response: httpx2.Response, limit: int) -> bytes:
    """What is up to ``limit`` bytes long is all of it; of a longer one, more than ``limit`` bytes."""
    body = bytearray()

    def take(piece: bytes) -> bool:
        body.extend(piece)
        return len(body) > limit

    await feed(response, take)
    return bytes(body)
