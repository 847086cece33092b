"""Answers that are no pages: a refusal, in the form that its asker reads."""

from __future__ import annotations

from typing import Any

import msgspec
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.types import Scope

from custodes.hub.templates_env import render


def json_answer(document: Any, status: int = 200) -> Response:
    return Response(msgspec.json.encode(document), status, media_type="application/json")


def refused(status: int, kind: str, message: str, scope: Scope, **more: object) -> Response:
    """A document for a program; a page for a person; for a page's own script, words into its notice."""
    headers = Headers(scope=scope)
    if scope["path"].startswith("/api"):
        return json_answer({"error": {"kind": kind, "message": message, **more}}, status)
    if is_fragment(headers):
        return HTMLResponse(
            render("_notice.html", message=message),
            status,
            headers={"HX-Retarget": "#notice", "HX-Reswap": "innerHTML"},
        )
    return HTMLResponse(render("refused.html", message=message, kind=kind, status=status), status)


def is_fragment(headers: Headers) -> bool:
    """Whether the page's script asks, which wants no more than the part that changed."""
    return headers.get("hx-request") == "true"


def fragment_asked(request: Request) -> bool:
    return is_fragment(request.headers)
