from __future__ import annotations

from msgspec.structs import replace

from custodes.policy.changes import Change, changes
from custodes.policy.patch import CooldownPatch, PolicyPatch, TargetPatch
from custodes.policy.policy import Cooldown, Policy, Target


def test_what_is_set_is_told_as_it_was_and_as_it_is_though_it_is_the_same() -> None:
    patch = PolicyPatch(
        mode="adaptive",
        max_parallel=3,
        roles={"reviewer": TargetPatch(model="small")},
        orchestrator=TargetPatch(model=""),
    )
    before = Policy(orchestrator=Target(model="large"))
    after = Policy(mode="adaptive", roles={"reviewer": Target(model="small")})
    assert changes(before, after, patch) == (
        Change(key="mode", before="explicit", after="adaptive"),
        Change(key="max_parallel", before="3", after="3"),
        Change(key="roles.reviewer.model", before=None, after="small"),
        Change(key="orchestrator.model", before="large", after=None),
    )


def test_of_what_is_cleared_every_key_below_it_is_told_that_was_not_its_default() -> None:
    reviewer, observer = Target(model="small", effort="low"), Target(model="large")
    before = Policy(cooldown=Cooldown(default_seconds=7), roles={"reviewer": reviewer, "reviewer2": observer})
    after = Policy(roles={"reviewer2": observer})
    patch = PolicyPatch(clear=("cooldown",), clear_roles=("reviewer",))
    assert changes(before, after, patch) == (
        Change(key="cooldown.default_seconds", before="7", after="300"),
        Change(key="roles.reviewer.model", before="small", after=None),
        Change(key="roles.reviewer.effort", before="low", after=None),
    )


def test_what_somebody_else_changed_meanwhile_is_not_told_as_this_change() -> None:
    before = Policy()
    after = replace(before, mode="suggest", cooldown=Cooldown(default_seconds=7), max_live=9)
    patch = PolicyPatch(cooldown=CooldownPatch(default_seconds=7))
    assert [each.key for each in changes(before, after, patch)] == ["cooldown.default_seconds"]
