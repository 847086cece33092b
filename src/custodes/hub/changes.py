"""Changes that a page or a call asks for, through the services that every surface uses."""

from __future__ import annotations

import anyio.to_thread

from custodes.adapters.check import AdapterCheck, check
from custodes.adapters.port import PermissionAnswer
from custodes.hub.forms import NEW_HINT, Edit, conflicts, field_of, patch_of
from custodes.hub.hub import BY, Hub
from custodes.hub.settings_fields import Draft
from custodes.overseer.by_hand import Switched, SwitchOrder
from custodes.overseer.hand_switch import switch_by_hand
from custodes.overseer.reading import default_config
from custodes.policy.patch import PolicyPatch
from custodes.policy.settings import OldVersionError, PolicyRefusedError, Snapshot
from custodes.supervision.asks.operator_ask import Cancelled, answer_in_file, cancel_in_file
from custodes.supervision.asks.requests import Answered
from custodes.supervision.pools.health_file import clear_in_file


async def patch_settings(hub: Hub, change: PolicyPatch, based_on: str | None) -> Snapshot:
    """:raises SettingsError: as :meth:`~custodes.policy.settings.Settings.patch`."""
    project = hub.project

    def write() -> Snapshot:
        return project.settings.patch(change, project.catalog(), based_on)

    return await anyio.to_thread.run_sync(write)


async def save(hub: Hub, section: str, edit: Edit) -> Draft:
    """Make the change of a form, unless one of its fields is not any more as the form showed it. What then
    stands wrong is said field by field, and nothing is written.

    :raises SettingsError: the settings cannot be read or written at all.
    """
    if not edit.name and any(key.startswith(NEW_HINT) for key in edit.changes):
        return Draft(section=section, edit=edit, errors={"name": "a preset needs a name"})
    while True:
        seen = await anyio.to_thread.run_sync(hub.project.settings.read)
        if met := conflicts(edit, seen.policy):
            return Draft(section=section, edit=edit, conflicts=met)
        try:
            await patch_settings(hub, patch_of(edit), seen.digest)
        except OldVersionError:
            continue  # written by somebody else between the two: compared anew
        except PolicyRefusedError as error:
            return _refused(section, edit, error)
        return Draft(section=section, saved=True)


def _refused(section: str, edit: Edit, error: PolicyRefusedError) -> Draft:
    """Each problem beside the field in question, if this form has it; else above the form."""
    errors: dict[str, str] = {}
    others: list[str] = []
    for problem, keys in zip(error.problems, error.keys, strict=True):
        fields = [field_of(edit, key) for key in keys]
        own = [field for field in fields if field in edit.changes] or [f for f in fields if f in edit.typed]
        if own:
            errors.setdefault(own[-1], problem)
        else:
            others.append(problem)
    return Draft(section=section, edit=edit, errors=errors, error="; ".join(others))


async def clear(hub: Hub, target: str) -> tuple[str, ...]:
    """Clear a pool, or all of an adapter; what was cleared. It is written to the audit log.

    :raises StoreError: the file cannot be written; nothing was cleared.
    """
    cleared = await clear_in_file(hub.project.path, target, BY)
    hub.watch.tell()
    return cleared


async def cancel(hub: Hub, target: str) -> Cancelled | None:
    """End a run or a conversation with all that it started, and wait for the proof; None where none is.

    :raises OperatorError, StoreError: as :func:`~custodes.supervision.asks.operator_ask.cancel_in_file`.
    """
    return await cancel_in_file(hub.project.path, target, BY)


async def answer(hub: Hub, ask: str, given: PermissionAnswer) -> Answered:
    """Answer what a child asks leave for. The first answer counts.

    :raises OperatorError, StoreError: as :func:`~custodes.supervision.asks.operator_ask.answer_in_file`.
    """
    return await answer_in_file(hub.project.path, ask, given, BY)


async def switch(hub: Hub, profile: str, target: str, *, force: bool, was: str) -> Switched:
    """Switch a profile of the overseer by hand, from the model ``was`` that was seen.

    :raises ConfigError: no overseer is configured.
    :raises SwitchRefused, StoreError: as :func:`~custodes.overseer.hand_switch.switch_by_hand`.
    """
    order = SwitchOrder(profile=profile, target=target, by=BY, force=force, was=was)
    return await switch_by_hand(hub.project.path, await default_config(), order)


async def check_adapter(hub: Hub, adapter: str) -> AdapterCheck:
    """Look at one adapter, and keep what was found for the page.

    :raises AdapterError: there is none of this id, or its file is broken.
    """
    found = await check(hub.project.registry(), adapter)
    hub.project.checks[adapter] = found
    hub.watch.tell()
    return found
