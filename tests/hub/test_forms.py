"""From a form's fields to a change."""

from __future__ import annotations

import msgspec
import pytest

from custodes.hub.forms import NEW_HINT, conflicts, edit_of, field_of, patch_of, values_of
from custodes.policy.normalize import normalize
from custodes.policy.patch import CooldownPatch, PolicyPatch, TargetPatch
from custodes.policy.policy import Policy, Target
from custodes.policy.roles import ROLES


def sent(**fields: str) -> list[tuple[str, str]]:
    return [(key.replace("__", "."), value) for key, value in fields.items()]


def test_a_field_that_was_not_touched_changes_nothing() -> None:
    edit = edit_of([("mode", "explicit"), ("was.mode", "explicit"), ("csrf", "x"), ("section", "trigger")])
    assert patch_of(edit) == PolicyPatch()


def test_what_was_touched_becomes_the_change_and_what_was_emptied_goes_back_to_its_default() -> None:
    fields = {
        "mode": ("adaptive", "explicit"),
        "max_parallel": (" 5 ", "3"),
        "cooldown.default_seconds": ("", "60"),
        "cooldown.maximum_seconds": ("90", "3600"),
        "orchestrator.model": ("", "opus"),
        "roles.reviewer.effort": ("low", ""),
        "preset": ("", "night"),
        "presets.a.b.architect.model": ("m", ""),
        "enabled": ("false", "true"),
    }
    edit = edit_of(
        [*((k, v) for k, (v, _) in fields.items()), *((f"was.{k}", w) for k, (_, w) in fields.items())]
    )
    assert patch_of(edit) == PolicyPatch(
        enabled=False,
        mode="adaptive",
        max_parallel=5,
        cooldown=CooldownPatch(maximum_seconds=90),
        orchestrator=TargetPatch(model=""),
        roles={"reviewer": TargetPatch(effort="low")},
        preset="",
        presets={"a.b": {"architect": TargetPatch(model="m")}},
        clear=("cooldown.default_seconds",),
    )


@pytest.mark.parametrize("typed", ["many", "3.5", "1e3", "٣x", "9" * 30])
def test_what_is_no_number_is_left_to_the_policys_own_words(typed: str) -> None:
    patch = patch_of(edit_of([("max_parallel", typed), ("was.max_parallel", "3")]))
    assert msgspec.structs.asdict(patch)["max_parallel"] == typed


def test_a_new_hint_is_written_where_its_name_and_role_say() -> None:
    edit = edit_of(
        [("name", "night"), ("role", "reviewer"), (f"{NEW_HINT}.model", "m"), (f"was.{NEW_HINT}.model", "")]
    )
    assert patch_of(edit) == PolicyPatch(presets={"night": {"reviewer": TargetPatch(model="m")}})
    assert field_of(edit, "presets.night.reviewer.model") == f"{NEW_HINT}.model"
    assert field_of(edit, "roles.reviewer.model") == "roles.reviewer.model"


def test_a_conflict_is_a_field_that_somebody_else_changed_to_something_else() -> None:
    edit = edit_of(sent(mode="adaptive", was__mode="explicit", max_parallel="3", was__max_parallel="3"))
    assert conflicts(edit, Policy()) == {}
    assert conflicts(edit, Policy(mode="adaptive", max_parallel=9)) == {}
    met = conflicts(edit, Policy(mode="suggest"))
    assert [(key, each.seen, each.now, each.typed) for key, each in met.items()] == [
        ("mode", "explicit", "suggest", "adaptive")
    ]


def test_clearing_an_entry_that_somebody_else_changed_is_a_conflict_too() -> None:
    edit = edit_of([("clear", "roles.reviewer"), ("was.roles.reviewer.effort", "low")])
    assert patch_of(edit) == PolicyPatch(clear=("roles.reviewer",))
    assert conflicts(edit, Policy(roles={"reviewer": Target(effort="low")})) == {}
    assert "roles.reviewer.effort" in conflicts(edit, Policy(roles={"reviewer": Target(effort="high")}))


def test_a_preset_is_removed_by_its_name_whatever_is_in_it() -> None:
    assert patch_of(edit_of([("clear_preset", "a.b")])) == PolicyPatch(clear_presets=("a.b",))


def test_what_is_no_key_of_the_policy_is_left_out() -> None:
    hostile = (
        "cooldown.nothing",
        "enabled.__class__",
        "orchestrator.a.b",
        "roles.reviewer",
        "presets.x.model",
        "",
    )
    assert patch_of(edit_of([(key, "x") for key in hostile])) == PolicyPatch()


def test_every_key_of_the_policy_has_a_field() -> None:
    hint = Target(adapter="a", model="m", effort="e")
    policy = Policy(
        presets={"night": {"analyst": hint}}, roles={"reviewer": hint}, orchestrator=hint, preset="night"
    )
    values = values_of(policy)
    heads = {key.split(".")[0] for key in values}
    assert heads == set(Policy.__struct_fields__)
    for name in Policy.__struct_fields__:
        if isinstance(group := getattr(policy, name), msgspec.Struct):
            inner = {f"{name}.{field}" for field in group.__struct_fields__}
            assert {key for key in values if key.startswith(f"{name}.")} == inner
    assert {key.split(".")[1] for key in values if key.startswith("roles.")} == set(ROLES)
    changed = edit_of([*values.items(), *((f"was.{key}", "other") for key in values)])
    written = msgspec.to_builtins(patch_of(changed))
    assert normalize({k: v for k, v in written.items() if k in Policy.__struct_fields__}).policy == policy
