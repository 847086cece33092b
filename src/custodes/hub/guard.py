"""The middleware before everything else: refuses what `access` refuses, bounds bodies, sets the headers."""

from __future__ import annotations

from urllib.parse import parse_qs

import anyio
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from custodes.hub.access import (
    BODY_S,
    CSRF_FIELD,
    MAX_BODY,
    NOT_OURS,
    SAFE,
    TOO_SLOW,
    Access,
    Denied,
    csrf_ok,
    denial,
    too_large,
)
from custodes.hub.answers import refused

HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",  # with "no-referrer" a browser calls our own forms' Origin "null"
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}


class Guard:
    """Reads the whole body of a change before the app sees the request, so that nothing of one that is
    too large, or that carries no token, is acted on."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self._app = app
        self._access = access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
                headers.setdefault("cache-control", "no-store")
            await send(message)

        given = dict(Headers(scope=scope))
        denied = denial(self._access, scope["method"], scope["path"], given)
        body: bytes | None = None
        if denied is None and scope["method"] not in SAFE:
            with anyio.move_on_after(BODY_S) as reading:
                body = await _body(receive)
            if reading.cancelled_caught:
                denied = TOO_SLOW
            elif body is None:
                denied = too_large()
            elif scope["path"] != "/token" and not csrf_ok(self._access, given, _field(given, body)):
                denied = NOT_OURS
        if denied is not None:
            await _answer(denied, scope)(scope, receive, with_headers)
            return
        await self._app(scope, receive if body is None else _replayed(body, receive), with_headers)


def _answer(denied: Denied, scope: Scope) -> Response:
    response = refused(denied.status, denied.kind, denied.message, scope)
    response.headers["connection"] = "close"  # a body that was not read must not be taken for a next request
    return response


def _field(headers: dict[str, str], body: bytes) -> str:
    if not headers.get("content-type", "").startswith("application/x-www-form-urlencoded"):
        return ""
    try:
        fields = parse_qs(body.decode(errors="replace"), max_num_fields=1_000)
    except ValueError:  # more of them than any form of ours
        return ""
    return fields.get(CSRF_FIELD, [""])[0]


async def _body(receive: Receive) -> bytes | None:
    """The whole of it; None for one that is too large."""
    parts: list[bytes] = []
    size, more = 0, True
    while more:
        message = await receive()
        if message["type"] != "http.request":  # the client went away
            break
        part = message.get("body", b"")
        size += len(part)
        if size > MAX_BODY:
            return None
        parts.append(part)
        more = message.get("more_body", False)
    return b"".join(parts)


def _replayed(body: bytes, receive: Receive) -> Receive:
    given = False

    async def again() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again
