"""The application: routes, the guard before them, and the errors of a person's project as answers."""

from __future__ import annotations

from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

from custodes.adapters.errors import AdapterError
from custodes.hub import endpoints, openapi, pages
from custodes.hub.answers import refused
from custodes.hub.guard import Guard
from custodes.hub.hub import Hub
from custodes.hub.templates_env import STATIC
from custodes.overseer.by_hand import SwitchRefused
from custodes.overseer.reading import ConfigError
from custodes.policy.settings import SettingsError
from custodes.store import StoreError
from custodes.supervision.asks.operator_ask import OperatorError
from custodes.supervision.record.audit import AuditError

_SCRIPTS = ("htmx.min.js", "hx-sse.min.js", "hub.js")
_FILES = {
    "hub.css": ((STATIC / "hub.css").read_bytes(), "text/css"),
    "mark.svg": ((STATIC / "mark.svg").read_bytes(), "image/svg+xml"),
    # One script: htmx begins as soon as it is there, and an extension that comes later is never asked.
    "hub.js": (b";\n".join((STATIC / name).read_bytes() for name in _SCRIPTS), "text/javascript"),
}
"""The assets, read once: no path of a request ever reaches a file system."""


def make_app(hub: Hub) -> ASGIApp:
    """The Hub as an ASGI application, for any server and on either loop."""
    app = Starlette(
        routes=[*pages.ROUTES, openapi.ROUTE, *endpoints.routes(), Route("/static/{name}", static)],
        exception_handlers={
            HTTPException: _http_error,
            SettingsError: _known_error("settings", 422),
            AdapterError: _known_error("adapters", 404),
            OperatorError: _known_error("operator", 409),
            ConfigError: _known_error("overseer", 422),
            SwitchRefused: _not_switched,
            AuditError: _known_error("audit", 503),
            StoreError: _known_error("store", 503),
            Exception: _fault,
        },
    )
    app.state.hub = hub
    return Guard(app, hub.access)


async def static(request: Request) -> Response:
    found = _FILES.get(request.path_params["name"])
    if found is None:
        return refused(404, "page", "there is no such file", request.scope)
    content, kind = found
    return Response(content, media_type=kind, headers={"cache-control": "no-cache"})


async def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)  # noqa: S101  # registered for it alone
    words = {404: "there is nothing of this name here", 405: "this can only be looked at, or only be sent"}
    return refused(error.status_code, "request", words.get(error.status_code, error.detail), request.scope)


def _known_error(kind: str, status: int) -> Any:
    async def answer(request: Request, error: Exception) -> Response:
        return refused(status, kind, str(error), request.scope)

    return answer


async def _not_switched(request: Request, error: Exception) -> Response:
    assert isinstance(error, SwitchRefused)  # noqa: S101  # registered for it alone
    status = {"unknown": 404, "busy": 503}.get(error.kind, 409)
    return refused(status, "overseer", str(error), request.scope, reason=error.kind)


async def _fault(request: Request, error: Exception) -> Response:
    # Its words may hold a secret: the browser is told no more than where to look. The server logs it.
    return refused(500, "internal", f"{type(error).__name__}; the Hub's own output says more", request.scope)
