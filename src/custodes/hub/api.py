"""What each endpoint of /api does. Its answer is the document that the command line prints for the same
question."""

from __future__ import annotations

import time
from typing import Any

import anyio.to_thread
import msgspec
from msgspec import UNSET
from starlette.requests import Request
from starlette.responses import Response

from custodes.adapters.foreign import decode, digits
from custodes.hub import changes
from custodes.hub.answers import json_answer, refused
from custodes.hub.board import Delta
from custodes.hub.documents import (
    AdaptersAnswer,
    AskAnswer,
    AsksAnswer,
    Cleared,
    ErrorAnswer,
    ErrorWords,
    IncidentsAnswer,
    PlansAnswer,
    ProfileSwitch,
    RolesAnswer,
    RunsAnswer,
    Session,
    SettingsPatch,
)
from custodes.hub.hub import hub_of
from custodes.hub.live import STREAMS, EventStream, Rendered, View, frame
from custodes.hub.overseer_page import SHOWN
from custodes.overseer import report
from custodes.overseer.reading import default_config
from custodes.policy.arguments import ArgumentsError, read
from custodes.policy.overview import overview_of
from custodes.policy.role_info import role_info
from custodes.policy.roles import ROLES, is_role, unknown_role
from custodes.policy.routing import RouteRequest
from custodes.policy.settings import OldVersionError, PolicyRefusedError
from custodes.policy.trigger import COMPLEXITIES, complexity_of
from custodes.store import StoreError
from custodes.supervision.explanation import explain_work
from custodes.supervision.pools.health_report import report_of
from custodes.supervision.record.clock import now
from custodes.supervision.record.run_view import conversations_of, runs_of
from custodes.supervision.record.threads import with_threads
from custodes.supervision.record.trace import trace_in

MOST = 1_000
"""Runs, or incidents, of one answer."""


async def session(request: Request) -> Response:
    hub = hub_of(request)
    return json_answer(Session(project=str(hub.project.path), csrf_token=hub.access.csrf))


# -- Settings


async def get_settings(request: Request) -> Response:
    return json_answer(await anyio.to_thread.run_sync(overview_of, hub_of(request).project.path))


async def patch_settings(request: Request) -> Response:
    hub = hub_of(request)
    try:
        asked = read(SettingsPatch, _object(await request.body()))
    except ArgumentsError as error:
        return refused(400, "arguments", str(error), request.scope)
    based_on = None if asked.version is UNSET else asked.version
    try:
        await changes.patch_settings(hub, asked.change(), based_on)
    except OldVersionError as error:
        current = await anyio.to_thread.run_sync(overview_of, hub.project.path)
        return refused(409, "version", str(error), request.scope, asked=asked, current=current)
    except PolicyRefusedError as error:
        problems = [
            {"message": message, "keys": keys}
            for message, keys in zip(error.problems, error.keys, strict=True)
        ]
        return refused(422, "settings", str(error), request.scope, problems=problems)
    return await get_settings(request)


async def get_roles(_: Request) -> Response:
    return json_answer(RolesAnswer(roles=role_info()))


async def get_explanation(request: Request) -> Response:
    asked = request.query_params
    role, hard = asked.get("role", ""), asked.get("complexity", "")
    if not is_role(role):
        words = (
            unknown_role(role) if role else f"a role is missing, as ?role={ROLES[0]}; `/api/roles` has them"
        )
        return refused(400, "arguments", words, request.scope)
    complexity = complexity_of(hard)
    if hard and complexity is None:
        words = f"unknown complexity {hard!r}; it is one of {', '.join(COMPLEXITIES)}"
        return refused(400, "arguments", words, request.scope)
    wanted = RouteRequest(
        role=role,
        adapter=asked.get("adapter", ""),
        model=asked.get("model", ""),
        effort=asked.get("effort", ""),
    )
    return json_answer(await explain_work(hub_of(request).project.path, wanted, complexity))


# -- Adapters


async def get_adapters(request: Request) -> Response:
    return json_answer(AdaptersAnswer(adapters=await hub_of(request).adapters()))


async def post_check(request: Request) -> Response:
    return json_answer(await changes.check_adapter(hub_of(request), request.path_params["id"]))


async def get_health(request: Request) -> Response:
    hub = hub_of(request)
    return json_answer(report_of(await hub.project.file.read(), hub.project.registry()))


async def delete_health(request: Request) -> Response:
    adapter, pool = request.path_params["id"], request.query_params.get("pool", "")
    target = pool or adapter
    if pool and pool.partition(":")[0] != adapter:
        return refused(400, "arguments", f"{pool!r} is no pool of {adapter!r}", request.scope)
    cleared = await changes.clear(hub_of(request), target)
    if not cleared:
        words = f"nothing is on record of {target!r}, so nothing was cleared"
        return refused(404, "health", words, request.scope)
    return json_answer(Cleared(cleared=cleared))


# -- Runs


async def get_runs(request: Request) -> Response:
    words = request.query_params.get("q", "")
    try:
        limit = _limit(request, 20)
    except ArgumentsError as error:
        return refused(400, "arguments", str(error), request.scope)
    file = hub_of(request).project.file
    if words.split():
        return json_answer(RunsAnswer(conversations=conversations_of(await file.matching(words, limit))))
    found, plans = await file.latest(limit), await file.latest_plans(limit)
    return json_answer(RunsAnswer(conversations=conversations_of(found), plans=plans))


async def get_run(request: Request) -> Response:
    run_id = request.path_params["id"]
    found = runs_of(await hub_of(request).project.file.run(run_id))
    if not found:
        return refused(404, "record", f"no run {run_id!r} is on record", request.scope)
    project = hub_of(request).project.path
    return json_answer(await anyio.to_thread.run_sync(with_threads, found[0], project))


async def post_cancel(request: Request) -> Response:
    target = request.path_params["id"]
    found = await changes.cancel(hub_of(request), target)
    if found is None:
        return refused(404, "record", f"no run and no conversation {target!r} is on record", request.scope)
    return json_answer(found)


async def get_asks(request: Request) -> Response:
    return json_answer(AsksAnswer(asks=await hub_of(request).project.file.asks()))


async def post_answer(request: Request) -> Response:
    try:
        given = read(AskAnswer, _object(await request.body()))
    except ArgumentsError as error:
        return refused(400, "arguments", str(error), request.scope)
    return json_answer(await changes.answer(hub_of(request), request.path_params["id"], given.answer))


async def get_plans(request: Request) -> Response:
    file = hub_of(request).project.file
    accounts = await file.plan_accounts(request.path_params["session"], time.time())
    return json_answer(PlansAnswer(plans=accounts))


async def get_trace(request: Request) -> Response:
    conversation = request.path_params["session"]
    found = await trace_in(hub_of(request).project.file, conversation)
    if not found.attempts:
        return refused(404, "record", f"nothing is on record of conversation {conversation!r}", request.scope)
    return json_answer(found)


async def stream_trace(request: Request) -> Response:
    """Each attempt as it stands, and again whenever it changes: ``event: attempt``; and so each fan-out that
    has a budget: ``event: fan_out``. ``event: reset`` comes before all of them are told, or told anew, and
    ``event: problem``, in the form of a refusal, while the database cannot be read."""
    hub, conversation = hub_of(request), request.path_params["session"]
    if hub.views.streams >= STREAMS:
        return refused(503, "busy", f"{STREAMS} streams are followed already; close one", request.scope)

    async def traced() -> Rendered:
        try:
            found = await trace_in(hub.project.file, conversation)
        except StoreError as error:
            problem = ErrorAnswer(error=ErrorWords(kind="store", message=str(error)))
            return Rendered(texts={"problem": msgspec.json.encode(problem).decode()})
        told: dict[str, object] = {f"attempt {each.id}": each for each in found.attempts}
        told |= {f"fan_out {each.fan_out}": each for each in found.fan_outs}
        return Rendered(texts={name: msgspec.json.encode(each).decode() for name, each in told.items()})

    view = hub.views.view(("trace", conversation), lambda: View(traced))
    seen = request.headers.get("last-event-id") or request.query_params.get("since", "")

    def encode(delta: Delta, mark: str, reached: str) -> bytes:
        told = dict(view.board.texts) if delta.whole else {**delta.changed, **delta.added}
        parts = [frame("{}", mark, "reset")] if delta.whole else []
        parts += [frame(text, mark, name.partition(" ")[0]) for name, text in told.items()]
        return b"".join(parts) + f"id: {reached}\n\n".encode()

    return EventStream(hub.views, view, seen, encode)


# -- The overseer


async def get_overseer(request: Request) -> Response:
    config = await default_config()
    known = await report.known(hub_of(request).project.path, config)
    return json_answer(report.status(known, config, now()))


async def get_incidents(request: Request) -> Response:
    try:
        limit = _limit(request, SHOWN)
    except ArgumentsError as error:
        return refused(400, "arguments", str(error), request.scope)
    found = await report.incidents(hub_of(request).project.path, limit)
    return json_answer(IncidentsAnswer(incidents=found))


async def post_switch(request: Request) -> Response:
    try:
        asked = read(ProfileSwitch, _object(await request.body()))
    except ArgumentsError as error:
        return refused(400, "arguments", str(error), request.scope)
    hub, profile = hub_of(request), request.path_params["id"]
    return json_answer(await changes.switch(hub, profile, asked.target, force=asked.force, was=asked.was))


def _limit(request: Request, otherwise: int) -> int:
    """How many are asked for. :raises ArgumentsError: no number of them."""
    limit = request.query_params.get("limit", str(otherwise))
    if not (most := digits(limit)) or most > MOST:
        raise ArgumentsError(f"limit {limit!r} is no number from 1 to {MOST}")
    return most


_TORN = object()
"""What stands for a body that is none: null is a value."""


def _object(body: bytes) -> dict[str, Any]:
    found = decode(body, _TORN)
    if found is _TORN:
        raise ArgumentsError("the body is no JSON, or nested too deeply")
    if not isinstance(found, dict):
        raise ArgumentsError("the body is no JSON object")
    return found
