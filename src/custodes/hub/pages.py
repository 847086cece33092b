"""The pages for people. Each works without a script; with one, its parts are replaced as things change."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from functools import partial
from urllib.parse import parse_qsl, urlencode

import anyio.to_thread
import msgspec
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from custodes.adapters.port import PermissionAnswer
from custodes.hub import changes, overseer_page, renders
from custodes.hub.access import same_token
from custodes.hub.answers import fragment_asked, refused
from custodes.hub.board import Delta
from custodes.hub.forms import edit_of
from custodes.hub.hub import Hub, hub_of
from custodes.hub.live import STREAMS, EventStream, Rendered, View, frame
from custodes.hub.renders import Renderer
from custodes.hub.settings_fields import Draft, Section
from custodes.hub.settings_view import settings_page
from custodes.hub.templates_env import render

LIVE = "live"
"""The element whose parts a stream replaces."""


class Page(msgspec.Struct, frozen=True, kw_only=True):
    """``renderer`` makes what renders one view of it; ``nav`` is the entry of the menu that it belongs to."""

    title: str
    nav: str
    renderer: Callable[[], Renderer]


PAGES = {
    "settings": Page(title="Agent Supervision", nav="settings", renderer=lambda: renders.render_settings),
    "adapters": Page(title="Adapters", nav="adapters", renderer=lambda: renders.render_adapters),
    "runs": Page(title="Runs", nav="runs", renderer=lambda: renders.render_runs),
    "conversation": Page(title="Conversation", nav="runs", renderer=renders.conversation_renderer),
    "overseer": Page(title="Overseer", nav="overseer", renderer=lambda: overseer_page.render_overseer),
    "run": Page(title="Run", nav="runs", renderer=lambda: renders.render_run),
}


async def home(_: Request) -> Response:
    return RedirectResponse("/settings", 303)


def page(name: str) -> Callable[[Request], Awaitable[Response]]:
    async def shown(request: Request) -> Response:
        """The page as the project stands now, with the stream that keeps it so."""
        hub, argument = hub_of(request), _argument(request)
        board = await hub.views.now(_view(hub, name, argument))
        return _document(hub, name, argument, "".join(board.texts.values()), board.mark)

    return shown


async def stream(request: Request) -> Response:
    hub, name, argument = hub_of(request), request.path_params["page"], request.query_params.get("id", "")
    if name not in PAGES:
        return refused(404, "page", "there is no such page", request.scope)
    if hub.views.streams >= STREAMS:
        return refused(503, "busy", f"{STREAMS} pages are followed already; close one", request.scope)
    view = _view(hub, name, argument)
    mark = request.headers.get("last-event-id") or request.query_params.get("since", "")

    def encode(delta: Delta, _: str, reached: str) -> bytes:
        """One message for the page's script: each changed part in its place, or all of it."""
        if delta.whole:
            parts = [_partial(LIVE, "innerMorph", "".join(view.board.texts.values()))]
        else:
            parts = [_partial(each, "outerMorph", text) for each, text in delta.changed.items()]
            if delta.added:
                parts.append(_partial(LIVE, "beforeend", "".join(delta.added.values())))
        return frame("".join(parts), reached)

    return EventStream(hub.views, view, mark, encode)


def _partial(element: str, swap: str, text: str) -> str:
    return f'<hx-partial hx-target="#{element}" hx-swap="{swap}">{text}</hx-partial>'


def _argument(request: Request) -> str:
    given: str = request.path_params.get("id") or request.query_params.get("q", "")
    return given[:400]


def _view(hub: Hub, name: str, argument: str) -> View:
    def make() -> View:
        return View(partial(PAGES[name].renderer(), hub, argument))

    return hub.views.view((name, argument), make)


def _document(hub: Hub, name: str, argument: str, body: str, mark: str, status: int = 200) -> Response:
    shown = PAGES[name]
    query = urlencode({"id": argument, "since": mark})
    document = render(
        "page.html",
        name=name,
        title=shown.title,
        nav=shown.nav,
        argument=argument,
        body=body,
        stream=f"/live/{name}?{query}",
        project=hub.project.path.name,
        place=str(hub.project.path),
    )
    return HTMLResponse(document, status)


# -- Settings


async def save_settings(request: Request) -> Response:
    """One section's form. Refused, it is shown again as it was typed, with what is wrong and both values of
    what somebody else changed meanwhile."""
    hub, fields = hub_of(request), await _fields(request)
    draft = await changes.save(hub, dict(fields).get("section", ""), edit_of(fields))
    if draft.saved and not fragment_asked(request):
        return RedirectResponse(f"/settings#s-{draft.section}", 303)
    status = 200 if draft.saved else 409 if draft.conflicts else 422
    return await _section_answer(request, hub, draft, status)


async def preview_settings(request: Request) -> Response:
    """The section as it would look with what is chosen so far: the models of the adapter that was picked."""
    hub, fields = hub_of(request), await _fields(request)
    draft = Draft(section=dict(fields).get("section", ""), edit=edit_of(fields))
    return await _section_answer(request, hub, draft, 200)


async def _section_answer(request: Request, hub: Hub, draft: Draft, status: int) -> Response:
    if not fragment_asked(request):
        rendered: Rendered = await renders.render_settings(hub, draft=draft)
        return _document(hub, "settings", "", "".join(rendered.texts.values()), "", status)
    now = await anyio.to_thread.run_sync(hub.project.settings_now)
    shown = settings_page(now, draft)
    sections: list[Section] = [each for group in shown.groups.values() for each in group]
    found = next((each for each in sections if each.id == draft.section), None)
    if found is None:
        # The switch itself, or an entry that is gone with the change: the stream brings the rest.
        return Response(status_code=204)
    return HTMLResponse(render("_section.html", section=found, csrf=hub.access.csrf), status)


# -- Runs


async def cancel(request: Request) -> Response:
    """What was asked for is told by the stream; this answers once the end is proven."""
    fields = dict(await _fields(request))
    target, back = fields.get("target", ""), fields.get("back", "")
    found = await changes.cancel(hub_of(request), target)
    if found is None:
        return refused(404, "record", f"no run and no conversation {target!r} is on record", request.scope)
    if found.unanswered:
        pids = ", ".join(map(str, found.unanswered))
        return refused(
            409, "operator", f"the owner (pid {pids}) did not prove the end in time", request.scope
        )
    return _back(request, _place(back))


async def answer_ask(request: Request) -> Response:
    fields = dict(await _fields(request))
    given: PermissionAnswer = "allow" if fields.get("answer") == "allow" else "deny"
    answered = await changes.answer(hub_of(request), fields.get("ask", ""), given)
    if not answered.first and answered.answer != given:
        words = f"it was answered before: {answered.answer}, by {answered.by}"
        return refused(409, "operator", words, request.scope)
    return _back(request, _place(fields.get("back", "")))


def _place(back: str) -> str:
    """A page of ours to go back to, whatever a form says."""
    return back if re.fullmatch(r"/(?!/)[^\\\s]*", back) else "/runs"


# -- Adapters


async def clear_health(request: Request) -> Response:
    hub = hub_of(request)
    target = dict(await _fields(request)).get("target", "")
    await changes.clear(hub, target)
    return _back(request, "/adapters")


async def check_adapter(request: Request) -> Response:
    hub = hub_of(request)
    await changes.check_adapter(hub, dict(await _fields(request)).get("adapter", ""))
    return _back(request, "/adapters")


# -- The overseer


async def switch_profile(request: Request) -> Response:
    fields = dict(await _fields(request))
    await changes.switch(
        hub_of(request),
        fields.get("profile", ""),
        fields.get("target", ""),
        force=fields.get("force") == "on",
        was=fields.get("was", ""),
    )
    return _back(request, "/overseer")


def _back(request: Request, place: str) -> Response:
    """The stream shows what became of it; without a script the page is loaded anew."""
    return Response(status_code=204) if fragment_asked(request) else RedirectResponse(place, 303)


# -- The token of a Hub that is bound to more than loopback


async def ask_token(request: Request) -> Response:
    return await _with_token(request, request.query_params.get("token"))


async def take_token(request: Request) -> Response:
    return await _with_token(request, dict(await _fields(request)).get("token", ""))


async def _with_token(request: Request, given: str | None) -> Response:
    access = hub_of(request).access
    if access.token is None:
        return RedirectResponse("/settings", 303)
    if given is None or not same_token(access, given.strip()):
        message = "" if given is None else "that is not the token of this Hub"
        return HTMLResponse(render("token.html", message=message), 401 if given is not None else 200)
    answer = RedirectResponse("/settings", 303)
    answer.set_cookie(access.cookie, access.token, httponly=True, samesite="strict", path="/")
    return answer


async def _fields(request: Request) -> list[tuple[str, str]]:
    body = (await request.body()).decode(errors="replace")
    return parse_qsl(body, keep_blank_values=True, max_num_fields=1_000)


ROUTES = [
    Route("/", home),
    Route("/settings", page("settings"), methods=["GET"]),
    Route("/settings", save_settings, methods=["POST"]),
    Route("/settings/preview", preview_settings, methods=["POST"]),
    Route("/adapters", page("adapters")),
    Route("/adapters/clear", clear_health, methods=["POST"]),
    Route("/adapters/check", check_adapter, methods=["POST"]),
    Route("/runs", page("runs")),
    Route("/runs/cancel", cancel, methods=["POST"]),
    Route("/runs/answer", answer_ask, methods=["POST"]),
    Route("/runs/{id}", page("run")),
    Route("/conversations/{id:path}", page("conversation")),
    Route("/overseer", page("overseer")),
    Route("/overseer/switch", switch_profile, methods=["POST"]),
    Route("/live/{page}", stream),
    Route("/token", ask_token, methods=["GET"]),
    Route("/token", take_token, methods=["POST"]),
]
