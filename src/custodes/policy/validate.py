"""What in a policy could never be dispatched, against the adapters as they are.

A policy that no dispatch can satisfy is an outage found at the worst moment, so a write is refused with
the reason. Only what a write touches can block it: what was already so before stays as it is, and is shown.
"""

from __future__ import annotations

from collections.abc import Collection

import msgspec

from custodes.policy.catalog import Catalog
from custodes.policy.policy import Policy, Target
from custodes.policy.roles import is_role, unknown_role
from custodes.policy.steps import RouteRequest, choose, resolve_on

Path = tuple[str, ...]


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that could never be dispatched. ``involves`` names the keys of the policy that make it so."""

    where: str
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
                text=f"default_seconds {cooldown.default_seconds} is over maximum_seconds "
                f"{cooldown.maximum_seconds}; a default of at most the maximum would work",
                involves=(("cooldown", "default_seconds"), ("cooldown", "maximum_seconds")),
            )
        )
    if policy.preset and policy.preset not in policy.presets:
        known = ", ".join(policy.presets) or "none yet"
        found.append(
            Problem(
                where="preset",
                text=f"unknown preset '{policy.preset}'; known: {known}",
                involves=(("preset",),),
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
        return [Problem(where=f"role {role}", text=unknown_role(role), involves=(("roles", role),))]
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
    involves = [(*own, f) for f in Target.__struct_fields__ if getattr(_entry(policy, own), f)]
    text = str(objection)
    if own != ("orchestrator",):
        inherited = [
            f
            for f in Target.__struct_fields__
            if getattr(policy.orchestrator, f) and not getattr(_entry(policy, own), f)
        ]
        involves += [("orchestrator", f) for f in inherited]
        if field in inherited:
            value = getattr(policy.orchestrator, field)
            pinned = [
                f"{f} '{v}'" for f in Target.__struct_fields__ if (v := getattr(_entry(policy, own), f))
            ]
            text = f"{text} (the role's {' and '.join(pinned)} with the orchestrator's {field} '{value}')"
    return [Problem(where=where, text=text, involves=tuple(involves))]


def _entry(policy: Policy, own: Path) -> Target:
    return policy.orchestrator if own == ("orchestrator",) else policy.roles[own[1]]


def blocking(
    before: tuple[Problem, ...], after: tuple[Problem, ...], touched: Collection[Path]
) -> tuple[Problem, ...]:
    """The problems that a write must be refused for: those it brings, and those it states again."""
    return tuple(p for p in after if p not in before or any(_meets(p, path) for path in touched))


def _meets(problem: Problem, path: Path) -> bool:
    return any(key[: len(path)] == path or path[: len(key)] == key for key in problem.involves)
