"""What a parent asks for and what it gets back: Work, Budget, Outcome, Refusal."""

from __future__ import annotations

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


class Work(msgspec.Struct, frozen=True, kw_only=True):
    """One bounded piece of work for a child.

    ``scope`` names what the child may change, as paths relative to the project (or absolute); empty
    means the whole project where the work is mutable. ``mutable`` is the role's own default where None.
    ``timeout`` bounds one attempt, in seconds. ``wait`` is how many seconds the child may wait for a
    refused pool to recover, holding no slot, scope or lease.
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
    """What a whole fan-out may spend. None is no limit. Nothing starts once ``wall_seconds`` have passed;
    what runs by then keeps its own timeout (``when_spent="stop"`` cancels it instead)."""

    children: int | None = None
    wall_seconds: float | None = None
    when_spent: Literal["finish", "stop"] = "finish"


class Waiting(msgspec.Struct, frozen=True, kw_only=True):
    """A pool that lets nobody in, and the whole seconds until it may."""

    pool: str
    state: PoolState
    recovery_s: int
    reason: str


class Refusal(msgspec.Struct, frozen=True, kw_only=True):
    """Why nothing ran: data, the same on every surface (design, section 3, point 5)."""

    category: RefusalCategory
    reason: str
    waiting: tuple[Waiting, ...] = ()
    retry_after_s: int | None = None
    """The soonest recovery over every waiting pool, in whole seconds."""
    route: Route | None = None
    """The route that would have run."""
    passed_over: tuple[str, ...] = ()
    """Why each other candidate was not eligible, a sentence each."""


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
    other_model: bool = False
    """It is not the one that was asked for, nor a dated snapshot of it."""
    seconds: float = 0.0


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
