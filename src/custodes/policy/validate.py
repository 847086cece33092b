"""What in a policy could never be dispatched, against the adapters as they are.

A policy that no dispatch can satisfy is an outage found at the worst moment, so a write is refused with
the reason. Only what a write touches can block it: what was already so before stays as it is, and is shown.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import get_args

import msgspec

from custodes.policy.catalog import Catalog
from custodes.policy.policy import Policy, Target
from custodes.policy.roles import is_role, unknown_role
from custodes.policy.steps import Field, RouteRequest, choose, resolve_on

Path = tuple[str, ...]

_FIELDS: tuple[Field, ...] = get_args(Field)
"""In the order in which they are resolved."""


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that could never be dispatched. ``involves`` names the keys of the policy that make it so;
    ``where`` and ``wording`` say whether it is the same one as before."""

    where: str
    wording: str
    text: str
    involves: tuple[Path, ...]

    def __str__(self) -> str:
        return f"{self.where}: {self.text}"


def problems(policy: Policy, catalog: Catalog) -> tuple[Problem, ...]:
    """Everything in the policy that could never run: the orchestrator alone, and each role with it."""
    found: list[Problem] = []
    cooldown = policy.cooldown
    if cooldown.default_seconds > cooldown.maximum_seconds:
        found.append(
            Problem(
                where="cooldown",
                wording="default_seconds is over maximum_seconds",
                text=f"default_seconds {cooldown.default_seconds} is over maximum_seconds "
                f"{cooldown.maximum_seconds}; a default of at most the maximum would work",
                involves=(("cooldown", "default_seconds"), ("cooldown", "maximum_seconds")),
            )
        )
    if policy.preset and policy.preset not in policy.presets:
        wording = f"unknown preset '{policy.preset}'"
        known = ", ".join(policy.presets) or "none yet"
        found.append(
            Problem(
                where="preset", wording=wording, text=f"{wording}; known: {known}", involves=(("preset",),)
            )
        )
    if policy.orchestrator != Target():
        found += _target_problems(policy, catalog, "orchestrator", "", ("orchestrator",))
    for role in policy.roles:
        found += _role_problems(policy, catalog, role)
    for name, hints in policy.presets.items():
        for role, hint in hints.items():
            alone = Policy(roles={role: hint})
            prefix = ("presets", name)
            found += [
                msgspec.structs.replace(
                    problem,
                    where=f"preset {name}, {problem.where}",
                    involves=tuple((*prefix, *path[1:]) for path in problem.involves),
                )
                for problem in _role_problems(alone, catalog, role)
            ]
    return tuple(found)


def _role_problems(policy: Policy, catalog: Catalog, role: str) -> list[Problem]:
    if not is_role(role):
        text = unknown_role(role)
        return [Problem(where=f"role {role}", wording=text, text=text, involves=(("roles", role),))]
    return _target_problems(policy, catalog, f"role {role}", role, ("roles", role))


def _target_problems(policy: Policy, catalog: Catalog, where: str, role: str, own: Path) -> list[Problem]:
    """At most one problem: of the adapter, else of the model, else of the effort, as they are resolved."""
    contract = msgspec.structs.replace(policy, preset="")
    chosen = choose(RouteRequest(role=role), contract, catalog)
    objection = chosen.objection
    field = chosen.field
    if objection is None and chosen.adapter is not None:
        route = resolve_on(RouteRequest(role=role), contract, chosen.adapter, chosen.step)
        objection, field = route.objection, route.field
    if objection is None:
        return []
    entry, orchestrator = _entry(policy, own), policy.orchestrator
    involves: list[Path] = []
    for name in _FIELDS[: _FIELDS.index(field) + 1]:
        if getattr(entry, name):
            involves.append((*own, name))
        elif getattr(orchestrator, name):
            involves.append(("orchestrator", name))
    text = str(objection)
    pinned = [f"{name} '{value}'" for name in _FIELDS if (value := getattr(entry, name))]
    if own != ("orchestrator",) and ("orchestrator", field) in involves:
        inherited = f"the orchestrator's {field} '{getattr(orchestrator, field)}'"
        text = f"{text} (the role's {' and '.join(pinned)} with {inherited})"
    return [Problem(where=where, wording=objection.wording, text=text, involves=tuple(involves))]


def _entry(policy: Policy, own: Path) -> Target:
    return policy.orchestrator if own == ("orchestrator",) else policy.roles[own[1]]


def blocking(
    before: tuple[Problem, ...], after: tuple[Problem, ...], touched: Collection[Path]
) -> tuple[Problem, ...]:
    """The problems that a write must be refused for: those it brings, and those it states again."""
    known = {(p.where, p.wording) for p in before}
    return tuple(
        p for p in after if (p.where, p.wording) not in known or any(_meets(p, path) for path in touched)
    )


def _meets(problem: Problem, path: Path) -> bool:
    return any(key[: len(path)] == path or path[: len(key)] == key for key in problem.involves)
