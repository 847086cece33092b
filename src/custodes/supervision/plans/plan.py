"""A plan: steps as data, run as far in parallel as their needs allow. Control flow over dispatch, no more.

What is read here is run by :mod:`custodes.supervision.plans.plan_run`.
"""

from __future__ import annotations

import graphlib
import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, get_args

import msgspec
from msgspec.structs import replace

from custodes.adapters.errors import DescriptorError, instead, near_miss
from custodes.adapters.manifest import MAX_BYTES, parse_mapping
from custodes.policy.policy import Complexity
from custodes.policy.roles import ROLE_DEFAULTS, Role, unknown_role
from custodes.supervision.work import Budget, Limit

Pattern = Literal["sequence", "concurrent", "hand_off", "group"]
"""Needs that nobody has to write (seed 000: such patterns are policy, not a provider's feature).

``sequence``: one step after another, each handed the evidence of the one before it. ``hand_off``: likewise,
each handed the evidence of all before it. ``concurrent``: all at once. ``group``: all but the last at once,
and the last is handed the evidence of all of them, to weigh it.
"""
MOST_BACKTRACKS = 10
"""A plan that goes back more often than this is not one."""


class PlanError(ValueError):
    """A plan that cannot be run: what is wrong, where, and what would work. Nothing was started."""


class Step(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One piece of work. ``needs`` are the steps whose evidence it is handed. ``timeout`` and ``max_wait``
    are seconds; ``max_wait`` is how long it may wait for a refused pool to recover. ``estimate_tokens`` and
    ``estimate_usd`` are what the budget reserves for one attempt of it, instead of what it would reckon."""

    id: str
    role: Role
    prompt: str
    scope: tuple[str, ...] = ()
    mutable: bool | None = None
    needs: tuple[str, ...] = ()
    adapter: str = ""
    model: str = ""
    effort: str = ""
    complexity: Complexity | None = None
    timeout: float | None = None
    max_wait: float | None = None
    estimate_tokens: int | None = None
    estimate_usd: float | None = None

    @property
    def may_change(self) -> bool:
        """Whether it is mutable: its role's own default where it does not say."""
        return ROLE_DEFAULTS[self.role].mutable if self.mutable is None else self.mutable


class Plan(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``max_parallel`` and ``budget`` narrow what the policy allows; they never widen it.

    A ``pattern`` gives the steps their needs, which then state none themselves. ``max_backtracks`` is how
    often a step may send the plan back to an earlier one whose result it found wrong; 0 only records it.
    """

    name: str = "plan"
    steps: tuple[Step, ...]
    pattern: Pattern | None = None
    max_parallel: int | None = None
    max_backtracks: int = 0
    budget: Budget = Budget()

    @property
    def digest(self) -> str:
        """SHA-256 of what the plan says; how its file words and orders its keys makes no difference."""
        return hashlib.sha256(msgspec.json.encode(self)).hexdigest()

    def unfolded(self) -> Plan:
        """The plan with the needs that its pattern stands for."""
        if self.pattern is None:
            return self
        needs = _needs(self.pattern, [step.id for step in self.steps])
        steps = tuple(replace(step, needs=tuple(each)) for step, each in zip(self.steps, needs, strict=True))
        return replace(self, steps=steps, pattern=None)

    def upstream(self, step_id: str) -> frozenset[str]:
        """The steps that it builds upon, directly or not. Of an unfolded plan."""
        needs = {step.id: step.needs for step in self.steps}
        found: set[str] = set()
        left = [*needs[step_id]]
        while left:
            if (each := left.pop()) not in found:
                found.add(each)
                left += needs[each]
        return frozenset(found)

    def downstream(self, step_id: str) -> frozenset[str]:
        """The steps that build upon it, directly or not. Of an unfolded plan."""
        return frozenset(step.id for step in self.steps if step_id in self.upstream(step.id))


def _needs(pattern: Pattern, ids: list[str]) -> Iterator[list[str]]:
    for number in range(len(ids)):
        match pattern:
            case "sequence":
                yield ids[max(0, number - 1) : number]
            case "hand_off":
                yield ids[:number]
            case "concurrent":
                yield []
            case "group":
                yield ids[:number] if number == len(ids) - 1 else []


def load_plan(path: Path) -> Plan:
    """Read and check a plan file.

    :raises PlanError: it is missing, no YAML, does not fit, or its needs cannot be met.
    """
    try:
        with path.open("rb") as file:  # a pipe will do
            data = file.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        raise PlanError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}") from None
    if len(data) > MAX_BYTES:
        raise PlanError(f"{path}: is larger than {MAX_BYTES} bytes")
    try:
        document = parse_mapping(path, data)
    except DescriptorError as error:
        raise PlanError(str(error)) from None
    try:
        plan = msgspec.convert(document, Plan)
    except msgspec.ValidationError as error:
        raise PlanError(f"{path}: {_explain(str(error))}") from None
    problem = check(plan)
    if problem:
        raise PlanError(f"{path}: {problem}")
    return plan


def check(plan: Plan) -> str | None:
    """What makes the plan impossible to run, or None."""
    ids = [step.id for step in plan.steps]
    if not ids:
        return "steps: a plan needs at least one step"
    if plan.pattern is not None and (own := next((step for step in plan.steps if step.needs), None)):
        return (
            f"pattern: {plan.pattern} says what each step needs, and step {own.id!r} has `needs` of its own; "
            "one of the two would work"
        )
    if plan.pattern == "group" and len(ids) < 3:
        return f"pattern: a group is at least two steps and one that weighs them, and there are {len(ids)}"
    if not 0 <= plan.max_backtracks <= MOST_BACKTRACKS:
        return f"max_backtracks: {plan.max_backtracks} is no number from 0 to {MOST_BACKTRACKS}"
    if plan.max_parallel is not None and plan.max_parallel < 1:
        return f"max_parallel: {plan.max_parallel} runs nothing; 1 or more would work"
    for limit in get_args(Limit):
        if getattr(plan.budget, limit) == 0:
            least = "1 or more" if limit in ("children", "depth", "tokens") else "a number above 0"
            return f"budget.{limit}: 0 runs nothing; {least} would work"
    for number, step in enumerate(plan.steps):
        if ids.index(step.id) != number:
            return f"steps[{number}].id: {step.id!r} is used twice; each step needs an id of its own"
        for name in ("id", "prompt"):
            if not getattr(step, name).strip():
                return f"steps[{number}].{name}: is empty; each step needs one"
        for name in ("timeout", "max_wait"):
            seconds = getattr(step, name)
            if seconds is not None and not 0 < seconds < float("inf"):
                return f"steps[{number}].{name}: {seconds} is no number of seconds above 0"
        for name in ("estimate_tokens", "estimate_usd"):
            amount = getattr(step, name)
            if amount is not None and not 0 <= amount < float("inf"):
                return f"steps[{number}].{name}: {amount} is no number of 0 or more"
        for need in step.needs:
            if need not in ids:
                return f"steps[{number}].needs: there is no step {need!r}{near_miss(need, ids)}"
    try:
        graphlib.TopologicalSorter({step.id: step.needs for step in plan.steps}).prepare()
    except graphlib.CycleError as error:
        cycle: list[str] = error.args[1]
        return f"steps: the needs form a cycle: {' -> '.join(reversed(cycle))}"
    return None


def _explain(problem: str) -> str:
    """A validation problem with its place first, and the near miss where a name is wrong."""
    message, _, place = problem.partition(" - at `$")
    place = place.rstrip("`").lstrip(".")
    if message.startswith("Invalid enum value ") and place.endswith(".role"):
        message = unknown_role(message.removeprefix("Invalid enum value ").strip("'"))
    elif message.startswith("Object contains unknown field "):
        wrong = message.removeprefix("Object contains unknown field ").strip("`")
        shape = {"": Plan, "budget": Budget}.get(place, Step)
        message = f"unknown key {wrong!r}; {instead(wrong, shape.__struct_fields__)}"
    elif message.startswith("Object missing required field "):
        lacking = message.removeprefix("Object missing required field ")
        message = (
            f"{lacking} is missing; {'each step needs one' if place else 'a plan needs at least one step'}"
        )
    if place and message.startswith(f"{place}."):  # a Struct's own check, which names its field
        return message
    return f"{place}: {message}" if place else message
