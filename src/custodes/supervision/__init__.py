"""Supervised work: conversations, fan-outs and children over one breaker, one budget and one writer a scope.

`Supervision` is the door for hosts; `Plan` and its two verbs are for what must outlive a host. Names load at
first use: a folder in here is imported by who needs that folder alone.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from custodes.supervision.asks.permission_asks import Permissions
    from custodes.supervision.bundle import EvidenceBundle
    from custodes.supervision.child import Child
    from custodes.supervision.conversation import Conversation
    from custodes.supervision.events import Event
    from custodes.supervision.evidence import Evidence
    from custodes.supervision.fan_out import FanOut
    from custodes.supervision.plans.plan import Plan, PlanError, Step, load_plan
    from custodes.supervision.plans.plan_resume import resume_plan
    from custodes.supervision.plans.plan_run import PlanEnd, run_plan
    from custodes.supervision.plans.plan_standing import PlanRunError
    from custodes.supervision.supervision import Supervision
    from custodes.supervision.work import Budget, Outcome, Refusal, Work

__all__ = [
    "Budget",
    "Child",
    "Conversation",
    "Event",
    "Evidence",
    "EvidenceBundle",
    "FanOut",
    "Outcome",
    "Permissions",
    "Plan",
    "PlanEnd",
    "PlanError",
    "PlanRunError",
    "Refusal",
    "Step",
    "Supervision",
    "Work",
    "load_plan",
    "resume_plan",
    "run_plan",
]

_HOMES = {
    "Budget": "work",
    "Child": "child",
    "Conversation": "conversation",
    "Event": "events",
    "Evidence": "evidence",
    "EvidenceBundle": "bundle",
    "FanOut": "fan_out",
    "Outcome": "work",
    "Permissions": "asks.permission_asks",
    "Plan": "plans.plan",
    "PlanEnd": "plans.plan_run",
    "PlanError": "plans.plan",
    "PlanRunError": "plans.plan_standing",
    "Refusal": "work",
    "Step": "plans.plan",
    "Supervision": "supervision",
    "Work": "work",
    "load_plan": "plans.plan",
    "resume_plan": "plans.plan_resume",
    "run_plan": "plans.plan_run",
}


if not TYPE_CHECKING:  # as in `custodes`

    def __getattr__(name: str) -> object:
        if name in _HOMES:
            return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
