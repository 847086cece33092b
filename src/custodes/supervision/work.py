"""What a parent asks for and what it gets back: Work, Budget, Outcome, Refusal."""

from __future__ import annotations

import math
from functools import cache
from typing import Any, Literal, get_type_hints

import msgspec

from custodes.adapters.port import Failure, Usage
from custodes.policy.policy import Complexity
from custodes.policy.routing import Route
from custodes.supervision.evidence import Evidence

Status = Literal["done", "failed", "refused", "cancelled", "skipped", "unknown"]
RefusalCategory = Literal[
    "capacity", "auth", "unavailable", "invalid", "budget", "disabled", "settings", "need"
]
PoolState = Literal["healthy", "cooling_down", "half_open"]
Limit = Literal["children", "depth", "wall_seconds", "tokens", "usd"]
"""What a budget may limit."""


class Work(msgspec.Struct, frozen=True, kw_only=True):
    """One bounded piece of work for a child.

    ``scope`` names what the child may change, as paths relative to the project (or absolute); empty
    means the whole project where the work is mutable. Outside of the project only work of this project
    takes turns there. ``mutable`` is the role's own default where None. ``timeout`` bounds one attempt, in
    seconds. ``wait`` is how many seconds the child may wait for a refused pool to recover, holding no
    slot, scope or lease. ``estimate_tokens`` and ``estimate_usd`` are what the caller reckons one attempt
    at (tokens in and out together): a budget reserves that instead of what it would reckon itself.
    """

    role: str
    prompt: str
    scope: tuple[str, ...] = ()
    mutable: bool | None = None
    adapter: str = ""
    model: str = ""
    effort: str = ""
    complexity: Complexity | None = None
    timeout: float | None = None
    wait: float = 0
    estimate_tokens: int | None = None
    estimate_usd: float | None = None
    resume: str = ""
    """The id of an earlier run: the child goes on in that run's native thread, on its adapter and model."""
    name: str = ""
    """A label for people (a plan step's id); the role where empty."""

    def __post_init__(self) -> None:
        """:raises TypeError: a field is not what its type says (a scope that is one string, say).
        :raises ValueError: a text is no Unicode, so that it could be neither stored nor sent."""
        for name, kind in _field_types().items():
            value = getattr(self, name)
            try:
                msgspec.json.encode(msgspec.convert(value, kind))
            except msgspec.ValidationError as error:
                raise TypeError(f"Work({name}=…): {error}") from None
            except UnicodeEncodeError:
                raise ValueError(f"Work({name}=…) holds a character that is no Unicode text") from None

    @property
    def label(self) -> str:
        return self.name or self.role


@cache
def _field_types() -> dict[str, Any]:
    # A complexity nobody knows is below every gate, and no error.
    return {**get_type_hints(Work), "complexity": str | None}


class Budget(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a whole fan-out may spend. None is no limit.

    ``children``, ``depth`` (levels of children: 1 is the parent's own) and ``wall_seconds`` are hard: nothing
    starts past them. ``tokens`` (in and out together) and ``usd`` are reserved before a start and settled at
    what was used, so that they are overrun by no more than what the attempts in flight take beyond their
    reservations. What runs by then keeps its own timeout; ``when_spent="stop"`` cancels it instead: every
    child at the end of the wall seconds, and a child whose use no longer fits the tokens or USD.

    :raises TypeError: a field is not what its type says.
    :raises ValueError: a limit is no number of 0 or more.
    """

    children: int | None = None
    wall_seconds: float | None = None
    when_spent: Literal["finish", "stop"] = "finish"
    tokens: int | None = None
    usd: float | None = None
    depth: int | None = None

    def __post_init__(self) -> None:
        for name, kind in _budget_types().items():
            value = getattr(self, name)
            try:
                msgspec.convert(value, kind)
            except msgspec.ValidationError as error:
                raise TypeError(f"budget.{name}: {value!r}: {error}") from None
            if name != "when_spent" and value is not None and not 0 <= value < math.inf:
                raise ValueError(f"budget.{name}: {value} is no number of 0 or more")


@cache
def _budget_types() -> dict[str, Any]:
    return get_type_hints(Budget)


NO_LIMITS = Budget()


class Shortfall(msgspec.Struct, frozen=True, kw_only=True):
    """The limit of a budget that was met. ``needed`` is what one more attempt was reckoned at, from
    ``source``; None where that cannot be told. For a number of children or a depth ``source`` says where the
    limit comes from, if not from the budget."""

    limit: Limit
    allowed: float
    spent: float
    reserved: float = 0
    left: float
    needed: float | None = None
    source: str = ""

    def __str__(self) -> str:
        if self.limit == "wall_seconds":
            return f"the fan-out's budget of {self.allowed:g} s is spent; nothing starts after it"
        if self.limit == "depth" and self.source:
            return f"children nest {self.allowed:.0f} levels deep ({self.source}); this one would be deeper"
        if self.limit == "children" and self.source:
            return f"{self.allowed:.0f} nested children were started ({self.source}); 0 were left"
        if self.limit == "depth":
            return f"the fan-out's budget allows {_level(self.allowed)}; this child would be one deeper"
        budget = f"the fan-out's budget of {self._words(self.allowed)}"
        if self.limit == "children":
            return f"{budget} is spent; 0 were left"
        taken = f"{self._words(self.spent)} spent, {self._words(self.reserved)} reserved"
        if self.needed is None:
            return f"{budget} cannot be kept: {self.source}"
        if not self.needed:
            return f"{budget} is spent ({taken}); {self._words(self.left)} were left"
        source = f" ({self.source})" if self.source else ""
        need = f"one more attempt needs {self._words(self.needed)}{source}"
        return f"{budget} leaves {self._words(self.left)} ({taken}); {need}"

    def _words(self, amount: float) -> str:
        if self.limit == "children" and amount == 1:
            return "1 child"
        return f"{amount:g} USD" if self.limit == "usd" else f"{amount:.0f} {self.limit}"


def _level(depth: float) -> str:
    return f"{depth:.0f} level of children" if depth == 1 else f"{depth:.0f} levels of children"


class Waiting(msgspec.Struct, frozen=True, kw_only=True):
    """A pool that lets nobody in, and the whole seconds until it may."""

    pool: str
    state: PoolState
    recovery_s: int
    reason: str


class Refusal(msgspec.Struct, frozen=True, kw_only=True):
    """Why nothing ran, or why a spent budget stopped it: data, the same on every surface."""

    category: RefusalCategory
    reason: str
    waiting: tuple[Waiting, ...] = ()
    retry_after_s: int | None = None
    """The soonest recovery over every waiting pool, in whole seconds."""
    route: Route | None = None
    """The route that would have run."""
    passed_over: tuple[str, ...] = ()
    """Why each other candidate was not eligible, a sentence each."""
    shortfall: Shortfall | None = None
    """The limit that was met and what was left of it, where the category is ``budget``."""


class Attempt(msgspec.Struct, frozen=True, kw_only=True):
    """One call of one runtime, as it went."""

    number: int
    adapter: str
    model: str | None
    effort: str | None
    pool: str
    health_state: PoolState
    health_probe: bool
    failure: Failure | None = None
    usage: Usage | None = None
    native_thread_id: str | None = None
    served_model: str | None = None
    """The model that answered, where the runtime says so."""
    model_mismatch: bool = False
    """It is not the one that was asked for, nor a dated snapshot of it."""
    fallback_reason: str | None = None
    """The category of what it stands in for, on another route than was asked for: a failure, a limit, or why
    that route cannot run (``invalid``, ``unavailable``, ``auth``, ``budget``)."""
    repair: bool = False
    """It is the one repair turn of an answer that did not fit."""
    seconds: float = 0.0


def failed_status(failure: Failure, mutable: bool) -> Literal["failed", "unknown"]:
    """Mutable work of unknown outcome may have had its effect: it is ``unknown``, and never replayed."""
    return "unknown" if mutable and failure.outcome == "unknown" else "failed"


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """The end of one piece of work: evidence, or an explicit failure or refusal; never a transcript.

    ``unknown`` means that mutable work may have had an effect and is never replayed. ``native`` is what
    the host's own dispatch returned, untouched, where supervision did not apply.
    """

    run_id: str
    role: str
    name: str
    status: Status
    evidence: Evidence | None = None
    failure: Failure | None = None
    refusal: Refusal | None = None
    attempts: tuple[Attempt, ...] = ()
    metadata: dict[str, Any] = {}
    """Seed 000, "Dispatch identity and evidence": gen_ai.*, capacity_scope, health_*, error_category, …"""
    output_json: dict[str, Any] | None = None
    """``{"proposed_route": …, "estimate": …}`` where the mode is ``suggest``."""
    native: Any = None
