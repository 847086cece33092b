"""The same as JSON. Each endpoint is one line of a table, from which its route and its part of the OpenAPI
document are made; every answer is the document that the command line prints for the same question."""

from __future__ import annotations

import re
import time
from collections.abc import Awaitable, Callable
from typing import Annotated, Any

import anyio.to_thread
import msgspec
from msgspec import UNSET, Meta, UnsetType
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from custodes.adapters.check import AdapterCheck
from custodes.adapters.port import PermissionAnswer
from custodes.hub import changes
from custodes.hub.adapters_view import AdapterNow
from custodes.hub.answers import json_answer, refused
from custodes.hub.board import Delta
from custodes.hub.hub import hub_of
from custodes.hub.live import STREAMS, EventStream, Rendered, View, frame
from custodes.policy.arguments import ArgumentsError, read
from custodes.policy.overview import Overview, overview_of
from custodes.policy.patch import PolicyPatch
from custodes.policy.role_info import RoleInfo, role_info
from custodes.policy.roles import is_role, unknown_role
from custodes.policy.routing import RouteRequest
from custodes.policy.settings import OldVersionError, PolicyRefusedError
from custodes.policy.trigger import COMPLEXITIES, complexity_of
from custodes.supervision.ask_table import AskRow
from custodes.supervision.explanation import WorkExplanation, explain_work
from custodes.supervision.health_report import HealthReport, report_of
from custodes.supervision.operator_ask import Cancelled
from custodes.supervision.plan_view import PlanAccount, PlanView
from custodes.supervision.requests import Answered
from custodes.supervision.run_view import ConversationView, conversations_of, runs_of
from custodes.supervision.threads import ShownRun, with_threads
from custodes.supervision.trace import Trace

MOST = 1_000
"""Runs of one answer."""


class Session(msgspec.Struct, frozen=True, kw_only=True):
    """``csrf_token`` goes into the header ``X-CSRF-Token`` of every change."""

    project: str
    csrf_token: str


class SettingsPatch(PolicyPatch, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is not given stays; ``""`` clears a field of a target; ``clear`` names keys that go back to their
    default."""

    version: Annotated[
        str | UnsetType,
        Meta(description="The settings' version that this was decided on; on any other it is refused (409)."),
    ] = UNSET

    def change(self) -> PolicyPatch:
        return PolicyPatch(**{name: getattr(self, name) for name in PolicyPatch.__struct_fields__})


class Cleared(msgspec.Struct, frozen=True, kw_only=True):
    cleared: tuple[str, ...]


class AdaptersAnswer(msgspec.Struct, frozen=True, kw_only=True):
    adapters: tuple[AdapterNow, ...]


class RolesAnswer(msgspec.Struct, frozen=True, kw_only=True):
    roles: tuple[RoleInfo, ...]


class RunsAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """``plans`` are the newest; none where words are searched for."""

    conversations: tuple[ConversationView, ...]
    plans: tuple[PlanView, ...] = ()


class AsksAnswer(msgspec.Struct, frozen=True, kw_only=True):
    asks: tuple[AskRow, ...]


class AskAnswer(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    answer: PermissionAnswer


class PlansAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """Each with what it has spent of its budget."""

    plans: tuple[PlanAccount, ...]


class ErrorWords(msgspec.Struct, frozen=True, kw_only=True):
    kind: str
    message: str


class ErrorAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """``current`` is how the settings stand, where a change was refused because they are others by now."""

    error: ErrorWords


class Parameter(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    description: str
    kind: str = "string"
    required: bool = False


class Endpoint(msgspec.Struct, frozen=True, kw_only=True):
    method: str
    path: str
    summary: str
    handler: Callable[[Request], Awaitable[Response]]
    answer: type[Any] | None
    body: type[msgspec.Struct] | None = None
    parameters: tuple[Parameter, ...] = ()
    stream: bool = False


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
        return refused(400, "arguments", unknown_role(role), request.scope)
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
    words, limit = request.query_params.get("q", ""), request.query_params.get("limit", "20")
    if not limit.isdecimal() or not 1 <= int(limit[:9]) <= MOST:
        return refused(400, "arguments", f"limit {limit!r} is no number from 1 to {MOST}", request.scope)
    file = hub_of(request).project.file
    if words.split():
        return json_answer(RunsAnswer(conversations=conversations_of(await file.matching(words, int(limit)))))
    found, plans = await file.latest(int(limit)), await file.latest_plans(int(limit))
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
    accounts = await file.accounts(request.path_params["session"], time.time())
    return json_answer(PlansAnswer(plans=accounts))


async def get_trace(request: Request) -> Response:
    conversation = request.path_params["session"]
    attempts = await hub_of(request).project.file.conversation(conversation)
    if not attempts:
        return refused(404, "record", f"nothing is on record of conversation {conversation!r}", request.scope)
    return json_answer(Trace(conversation=conversation, attempts=attempts))


async def stream_trace(request: Request) -> Response:
    """Each attempt as it stands, and again whenever it changes: ``event: attempt``. ``event: reset`` comes
    before all of them are told, or told anew."""
    hub, conversation = hub_of(request), request.path_params["session"]
    if hub.views.streams >= STREAMS:
        return refused(503, "busy", f"{STREAMS} streams are followed already; close one", request.scope)

    async def attempts() -> Rendered:
        found = await hub.project.file.conversation(conversation)
        return Rendered(texts={each.id: msgspec.json.encode(each).decode() for each in found})

    view = hub.views.view(("trace", conversation), lambda: View(attempts))
    seen = request.headers.get("last-event-id") or request.query_params.get("since", "")

    def encode(delta: Delta, mark: str, reached: str) -> bytes:
        told = dict(view.board.texts) if delta.whole else {**delta.changed, **delta.added}
        parts = [frame("{}", mark, "reset")] if delta.whole else []
        parts += [frame(text, mark, "attempt") for text in told.values()]
        return b"".join(parts) + f"id: {reached}\n\n".encode()

    return EventStream(hub.views, view, seen, encode)


def _object(body: bytes) -> dict[str, Any]:
    try:
        found = msgspec.json.decode(body)
    except msgspec.DecodeError as error:
        raise ArgumentsError(f"the body is no JSON: {error}") from None
    if not isinstance(found, dict):
        raise ArgumentsError("the body is no JSON object")
    return found


_LIMIT = Parameter(name="limit", description=f"The newest so many runs, 1 to {MOST}.", kind="integer")

ENDPOINTS = (
    Endpoint(
        method="GET",
        path="/api/session",
        summary="The token that changes need.",
        handler=session,
        answer=Session,
    ),
    Endpoint(
        method="GET",
        path="/api/settings",
        summary="The policy with the adapters it is about.",
        handler=get_settings,
        answer=Overview,
    ),
    Endpoint(
        method="PATCH",
        path="/api/settings",
        summary="Change the policy; the answer is how it then stands.",
        handler=patch_settings,
        answer=Overview,
        body=SettingsPatch,
    ),
    Endpoint(method="GET", path="/api/roles", summary="The roles.", handler=get_roles, answer=RolesAnswer),
    Endpoint(
        method="GET",
        path="/api/explain",
        summary="Where work would go, why, and whether it would be let in.",
        handler=get_explanation,
        answer=WorkExplanation,
        parameters=(
            Parameter(name="role", description="The role whose work it is.", required=True),
            Parameter(name="complexity", description=f"One of {', '.join(COMPLEXITIES)}."),
            *(
                Parameter(name=name, description=f"The {name} the work would name.")
                for name in ("adapter", "model", "effort")
            ),
        ),
    ),
    Endpoint(
        method="GET",
        path="/api/config/adapters",
        summary="Every adapter: readiness, pools and their health, capabilities.",
        handler=get_adapters,
        answer=AdaptersAnswer,
    ),
    Endpoint(
        method="POST",
        path="/api/config/adapters/{id}/check",
        summary="Look whether its program is here and new enough.",
        handler=post_check,
        answer=AdapterCheck,
    ),
    Endpoint(
        method="DELETE",
        path="/api/config/adapters/{id}/health",
        summary="Override the breaker: clear its pools, or one. It is written to the audit log.",
        handler=delete_health,
        answer=Cleared,
        parameters=(Parameter(name="pool", description="One pool, as ADAPTER:BUCKET; all where not given."),),
    ),
    Endpoint(
        method="GET",
        path="/api/health",
        summary="How each pool stands.",
        handler=get_health,
        answer=HealthReport,
    ),
    Endpoint(
        method="GET",
        path="/api/runs",
        summary="The newest runs, by conversation.",
        handler=get_runs,
        answer=RunsAnswer,
        parameters=(
            Parameter(name="q", description="Words that each stand somewhere in a run's record."),
            _LIMIT,
        ),
    ),
    Endpoint(method="GET", path="/api/runs/{id}", summary="One run.", handler=get_run, answer=ShownRun),
    Endpoint(
        method="POST",
        path="/api/runs/{id}/cancel",
        summary="End a run, or a conversation by its id, with all that it started, and wait for the proof.",
        handler=post_cancel,
        answer=Cancelled,
    ),
    Endpoint(
        method="GET",
        path="/api/asks",
        summary="What children ask leave for and nobody has answered.",
        handler=get_asks,
        answer=AsksAnswer,
    ),
    Endpoint(
        method="POST",
        path="/api/asks/{id}",
        summary="Answer one; the first answer counts.",
        handler=post_answer,
        answer=Answered,
        body=AskAnswer,
    ),
    Endpoint(
        method="GET",
        path="/api/plans/{session}",
        summary="The plans of a conversation, their steps and budgets.",
        handler=get_plans,
        answer=PlansAnswer,
    ),
    Endpoint(
        method="GET",
        path="/api/cognition/trace/{session}/stream",
        summary="The attempts of a conversation as they change, as server-sent events.",
        handler=stream_trace,
        answer=None,
        stream=True,
        parameters=(Parameter(name="since", description="The id of the last event that was seen."),),
    ),
    Endpoint(
        method="GET",
        path="/api/cognition/trace/{session}",
        summary="Every attempt of a conversation, oldest first.",
        handler=get_trace,
        answer=Trace,
    ),
)


_TAKEN = re.compile(r"{(session|id)}(?=$|/stream|/cancel)")
"""Names of somebody's own: they may hold a slash."""


def routes() -> list[Route]:
    return [
        Route(
            endpoint.path.replace("{session}", "{session:path}"), endpoint.handler, methods=[endpoint.method]
        )
        for endpoint in ENDPOINTS
    ]
