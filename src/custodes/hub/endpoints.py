"""The endpoints of /api: one table, from which routes and the OpenAPI document are made."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from custodes.adapters.check import AdapterCheck
from custodes.hub import api
from custodes.hub.documents import (
    AdaptersAnswer,
    AskAnswer,
    AsksAnswer,
    Cleared,
    IncidentsAnswer,
    PlansAnswer,
    ProfileSwitch,
    RolesAnswer,
    RunsAnswer,
    Session,
    SettingsPatch,
)
from custodes.overseer.by_hand import Switched
from custodes.overseer.report import Status
from custodes.policy.overview import Overview
from custodes.policy.trigger import COMPLEXITIES
from custodes.supervision.asks.operator_ask import Cancelled
from custodes.supervision.asks.requests import Answered
from custodes.supervision.explanation import WorkExplanation
from custodes.supervision.pools.health_report import HealthReport
from custodes.supervision.record.threads import ShownRun
from custodes.supervision.record.trace import Trace


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


_LIMIT = Parameter(name="limit", description=f"The newest so many runs, 1 to {api.MOST}.", kind="integer")

ENDPOINTS = (
    Endpoint(
        method="GET",
        path="/api/session",
        summary="The token that changes need.",
        handler=api.session,
        answer=Session,
    ),
    Endpoint(
        method="GET",
        path="/api/settings",
        summary="The policy with the adapters it is about.",
        handler=api.get_settings,
        answer=Overview,
    ),
    Endpoint(
        method="PATCH",
        path="/api/settings",
        summary="Change the policy; the answer is how it then stands.",
        handler=api.patch_settings,
        answer=Overview,
        body=SettingsPatch,
    ),
    Endpoint(
        method="GET", path="/api/roles", summary="The roles.", handler=api.get_roles, answer=RolesAnswer
    ),
    Endpoint(
        method="GET",
        path="/api/explain",
        summary="Where work would go, why, and whether it would be let in.",
        handler=api.get_explanation,
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
        handler=api.get_adapters,
        answer=AdaptersAnswer,
    ),
    Endpoint(
        method="POST",
        path="/api/config/adapters/{id}/check",
        summary="Look whether its program is here and new enough.",
        handler=api.post_check,
        answer=AdapterCheck,
    ),
    Endpoint(
        method="DELETE",
        path="/api/config/adapters/{id}/health",
        summary="Override the breaker: clear its pools, or one. It is written to the audit log.",
        handler=api.delete_health,
        answer=Cleared,
        parameters=(Parameter(name="pool", description="One pool, as ADAPTER:BUCKET; all where not given."),),
    ),
    Endpoint(
        method="GET",
        path="/api/health",
        summary="How each pool stands.",
        handler=api.get_health,
        answer=HealthReport,
    ),
    Endpoint(
        method="GET",
        path="/api/runs",
        summary="The newest runs, by conversation.",
        handler=api.get_runs,
        answer=RunsAnswer,
        parameters=(
            Parameter(name="q", description="Words that each stand somewhere in a run's record."),
            _LIMIT,
        ),
    ),
    Endpoint(method="GET", path="/api/runs/{id}", summary="One run.", handler=api.get_run, answer=ShownRun),
    Endpoint(
        method="POST",
        path="/api/runs/{id}/cancel",
        summary="End a run, or a conversation by its id, with all that it started, and wait for the proof.",
        handler=api.post_cancel,
        answer=Cancelled,
    ),
    Endpoint(
        method="GET",
        path="/api/asks",
        summary="What children ask leave for and nobody has answered.",
        handler=api.get_asks,
        answer=AsksAnswer,
    ),
    Endpoint(
        method="POST",
        path="/api/asks/{id}",
        summary="Answer one; the first answer counts.",
        handler=api.post_answer,
        answer=Answered,
        body=AskAnswer,
    ),
    Endpoint(
        method="GET",
        path="/api/plans/{session}",
        summary="The plans of a conversation, their steps and budgets.",
        handler=api.get_plans,
        answer=PlansAnswer,
    ),
    Endpoint(
        method="GET",
        path="/api/overseer",
        summary="How providers and profiles stand, and what is open. Asks no provider.",
        handler=api.get_overseer,
        answer=Status,
    ),
    Endpoint(
        method="GET",
        path="/api/overseer/incidents",
        summary="The newest incidents.",
        handler=api.get_incidents,
        answer=IncidentsAnswer,
        parameters=(
            Parameter(
                name="limit", description=f"The newest so many incidents, 1 to {api.MOST}.", kind="integer"
            ),
        ),
    ),
    Endpoint(
        method="POST",
        path="/api/overseer/profiles/{id}/switch",
        summary="Switch a profile by hand, read back and logged as an incident. A running overseer does it.",
        handler=api.post_switch,
        answer=Switched,
        body=ProfileSwitch,
    ),
    Endpoint(
        method="GET",
        path="/api/cognition/trace/{session}/stream",
        summary="The attempts of a conversation as they change, as server-sent events.",
        handler=api.stream_trace,
        answer=None,
        stream=True,
        parameters=(Parameter(name="since", description="The id of the last event that was seen."),),
    ),
    Endpoint(
        method="GET",
        path="/api/cognition/trace/{session}",
        summary="Every attempt of a conversation, oldest first.",
        handler=api.get_trace,
        answer=Trace,
    ),
)


def routes() -> list[Route]:
    return [
        Route(_route(endpoint.path), endpoint.handler, methods=[endpoint.method]) for endpoint in ENDPOINTS
    ]


def _route(path: str) -> str:
    """A conversation's id is its host's own, and may hold a slash."""
    return path.replace("{session}", "{session:path}").replace("{id}/cancel", "{id:path}/cancel")
