"""What the API takes and answers, where no service has a Struct for it."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, UnsetType

from custodes.adapters.port import PermissionAnswer
from custodes.hub.adapters_view import AdapterNow
from custodes.overseer.incident import Incident
from custodes.policy.patch import PolicyPatch
from custodes.policy.role_info import RoleInfo
from custodes.supervision.asks.permission_table import AskRow
from custodes.supervision.plans.plan_view import PlanAccount, PlanView
from custodes.supervision.record.run_view import ConversationView


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


class IncidentsAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The newest, oldest of them first."""

    incidents: tuple[Incident, ...]


class ProfileSwitch(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``force`` also takes what is not well, or what no list names."""

    target: Annotated[
        str, Meta(description="provider/model, to be held there; or primary; or auto, where it belongs now.")
    ]
    force: bool = False
    was: Annotated[
        str, Meta(description="The model that this was decided on; on any other it is refused (409).")
    ] = ""


class PlansAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """Each with what it has spent of its budget."""

    plans: tuple[PlanAccount, ...]


class ErrorWords(msgspec.Struct, frozen=True, kw_only=True):
    kind: str
    message: str


class ErrorAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """``current`` is how the settings stand, where a change was refused because they are others by now."""

    error: ErrorWords
