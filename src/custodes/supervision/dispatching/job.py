"""What work comes to when it is asked for: frozen for a child, refused, proposed, or left to the host."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from msgspec import Struct
from msgspec.structs import replace

from custodes.actors import ActorRef
from custodes.policy.catalog import Catalog
from custodes.policy.explain import Estimate, estimate
from custodes.policy.history import Record
from custodes.policy.policy import Policy
from custodes.policy.roles import ROLE_DEFAULTS, Role, is_role, unknown_role
from custodes.policy.routing import Resolution, Route, RouteRequest
from custodes.policy.settings import Settings, SettingsError, Snapshot
from custodes.policy.trigger import Decision, applies
from custodes.store import Database
from custodes.supervision.budgets.account import Account
from custodes.supervision.dispatching.slots import Slots
from custodes.supervision.events import Event
from custodes.supervision.outlook import Outlook, View
from custodes.supervision.record.owner_identity import Owner
from custodes.supervision.record.records import Group
from custodes.supervision.work import Outcome, Refusal, Work
from custodes.supervision.writers.leases import Leases
from custodes.telemetry import SpanHandle, Tracer

if TYPE_CHECKING:  # each of them performs jobs
    from custodes.supervision.asks.permission_asks import Asks, Permissions
    from custodes.supervision.child import Child
    from custodes.supervision.nesting.client import Client
    from custodes.supervision.nesting.nest import Nest

HostDispatch = Callable[[Work], Awaitable[Any]]
"""The host's own way to do a piece of work, used untouched where supervision does not apply."""


class Emit(Protocol):
    def __call__(self, event: type[Event], conversation: str, run_id: str, **fields: object) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """What every dispatch of one host shares. Refs survive restarts.

    ``slots`` are for attempts that work, ``alive`` for those that have begun, waiting ones included: it holds
    back new work only. ``nests`` are of the attempts that run, by run id.
    """

    project: Path
    settings: Settings
    outlook: Outlook
    database: Callable[[], Database]
    health: ActorRef
    leases: Leases
    asks: Asks
    slots: Slots
    alive: Slots
    nests: dict[str, Nest]
    tracer: Tracer
    emit: Emit


@dataclass(frozen=True, slots=True, kw_only=True)
class Under:
    """The running attempt that a nested piece of work is done for.

    ``depth`` is its level: 1 is a child of the root's. Nothing may start below level ``deepest`` (None: the
    budget alone says). ``writer`` is the nearest run that holds a scope, from it upwards; ``span`` its
    attempt's. ``client`` is the process of it that asked.
    """

    run_id: str
    depth: int
    deepest: int | None
    writer: str | None
    span: SpanHandle
    client: Owner


class Family(Protocol):
    """The fan-out that a job belongs to, as its attempts see it."""

    @property
    def permissions(self) -> Permissions | None:
        """The host's handler of what a runtime asks leave for."""
        ...

    def nest(self, under: Under, run_id: str, work: Work, session: str) -> Child:
        """Start a piece of nested work beside the fan-out's own children."""
        ...

    def start_soon(
        self, function: Callable[..., Coroutine[Any, Any, object]], *arguments: object
    ) -> None: ...


class Question(Struct, frozen=True, kw_only=True):
    """What routing is asked, frozen with the work: no later policy or adapter changes its answer."""

    request: RouteRequest
    policy: Policy
    view: View
    session: str

    @property
    def catalog(self) -> Catalog:
        return self.view.catalog

    def resolve(self, records: tuple[Record, ...] = ()) -> Resolution:
        return self.view.resolve(self.request, self.policy, self.session, records)


class Job(Struct, frozen=True, kw_only=True):
    """Work for a child. No later change of policy or adapters retargets it."""

    run_id: str
    conversation: str
    work: Work
    role: Role
    mutable: bool
    question: Question
    account: Account
    family: Family
    candidates: tuple[Route, ...] = ()
    """The route first, then what the fallback policy lets stand in for it."""
    passed_over: tuple[str, ...] = ()
    covers: str | None = None
    """The category of why the first candidate is not the route that was asked for; None where it is."""
    fan_out: Group | None = None
    under: Under | None = None
    """None for a child of the root's own."""
    thread: str | None = None
    """The native id of the thread that it goes on in."""

    @property
    def depth(self) -> int:
        return 1 if self.under is None else self.under.depth + 1

    @property
    def deepest(self) -> int | None:
        """The level below which nothing of it may start; None: the budget alone says."""
        return None if self.under is None else self.under.deepest

    @property
    def parent_run(self) -> str | None:
        return None if self.under is None else self.under.run_id

    @property
    def writer(self) -> str | None:
        """The nearest run above it that holds a scope."""
        return None if self.under is None else self.under.writer

    def informed(self, records: tuple[Record, ...]) -> Job:
        """The job once past attempts were looked at (resolution step 6). They may choose among what can
        run; they never take the last candidate away."""
        resolution = self.question.resolve(records) if records else None
        if resolution is None or not resolution.candidates:
            return self
        return self.routed(resolution)

    def routed(self, resolution: Resolution) -> Job:
        return replace(
            self,
            candidates=resolution.candidates,
            passed_over=tuple(str(other) for other in resolution.passed_over),
            covers=None if resolution.denial is None else resolution.denial.category,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Resuming:
    """Work that goes on in the thread of an earlier run: routed once that run's record was read, which takes
    the store. ``dry``: nothing is to be run."""

    job: Job
    dry: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """A dry run: the route that a child would take, and nothing of it run."""

    question: Question

    def route(self, records: tuple[Record, ...]) -> Route:
        informed = self.question.resolve(records).candidates
        return (informed or self.question.resolve().candidates)[0]

    def estimate(self, route: Route) -> Estimate | None:
        adapter = self.question.catalog.find(route.adapter)
        return estimate(route, adapter.descriptor) if adapter else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Unsupervised:
    """Supervision does not apply: the host's own dispatch does the work, and nothing else happens."""

    run_id: str
    work: Work
    dispatch: HostDispatch

    async def perform(self) -> Outcome:
        """The host's answer, untouched; its exceptions pass as they are."""
        native = await self.dispatch(self.work)
        return Outcome(
            run_id=self.run_id, role=self.work.role, name=self.work.label, status="done", native=native
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Plain:
    """Below the adaptive gate: run as it is on the session's own runtime, past policy, breaker and store."""

    run_id: str
    conversation: str
    work: Work
    role: Role
    mutable: bool
    route: Route


@dataclass(frozen=True, slots=True, kw_only=True)
class Delegated:
    """This process works for a running attempt: the owner of that does the work."""

    client: Client
    session: str


Frozen = Delegated | Job | Plain | Proposal | Refusal | Resuming | Unsupervised
"""What work comes to."""


def decided(snapshot: Snapshot, module: bool, complexity: str | None) -> Decision:
    """Whether the settings have the work supervised. ``module`` is the host's own gate."""
    return applies(snapshot.policy, module and snapshot.module_enabled, complexity)


def left_to_host(snapshot: Snapshot, module: bool, complexity: str | None) -> bool:
    """Whether a host's own dispatch, where it has one, does the work."""
    return decided(snapshot, module, complexity) in _HOSTS


_HOSTS = ("off", "below_gate")


def freeze(
    run_id: str,
    work: Work,
    *,
    settings: Settings,
    module: bool,
    outlook: Outlook,
    conversation: str,
    session: str,
    host: HostDispatch | None,
    account: Account,
    family: Family,
    fan_out: Group | None = None,
    under: Under | None = None,
    client: Client | None = None,
) -> Frozen:
    """Decide once, as the work is asked for. Where supervision is off this is one stat of the settings file.

    ``module`` is the host's own gate; ``session`` the adapter that the conversation runs on ("" for none).
    ``client``: this process was started by a child, whose owner decides everything else.
    """
    try:
        snapshot = settings.read()
    except SettingsError as error:
        return Refusal(category="settings", reason=str(error))
    policy = snapshot.policy
    decision = decided(snapshot, module, work.complexity)
    if decision in _HOSTS and host is not None:
        return Unsupervised(run_id=run_id, work=work, dispatch=host)
    if decision == "off":
        return Refusal(category="disabled", reason=why_disabled(module, snapshot.module_enabled))
    if client is not None:
        return client.problem or Delegated(client=client, session=session)
    if (problem := _problem(work)) is not None:
        return Refusal(category="invalid", reason=problem)
    assert is_role(work.role)  # noqa: S101 - _problem has seen to it
    mutable = ROLE_DEFAULTS[work.role].mutable if work.mutable is None else work.mutable
    request = RouteRequest(
        role=work.role, adapter=work.adapter, model=work.model, effort=work.effort, timeout=work.timeout
    )
    gated = decision == "below_gate"
    question = Question(
        request=request,
        policy=Policy() if gated else policy,
        view=outlook.now(),
        session=session,
    )
    job = Job(
        run_id=run_id,
        conversation=conversation,
        work=work,
        role=work.role,
        mutable=mutable,
        question=question,
        account=account,
        family=family,
        fan_out=fan_out,
        under=under,
    )
    if work.resume:
        return _unrecorded(work) if gated else Resuming(job=job, dry=decision == "suggest")
    resolution = question.resolve()
    if (refusal := refusal_of(resolution)) is not None:
        return refusal
    if decision == "suggest":
        return Proposal(question=question)
    if gated:
        return Plain(
            run_id=run_id,
            conversation=conversation,
            work=work,
            role=work.role,
            mutable=mutable,
            route=resolution.candidates[0],
        )
    return job.routed(resolution)


def _unrecorded(work: Work) -> Refusal:
    reason = (
        f"run {work.resume} cannot be gone on with: work below the adaptive gate is not supervised, and "
        "looks at no record; a higher complexity would work"
    )
    return Refusal(category="invalid", reason=reason)


def _problem(work: Work) -> str | None:
    """What makes the work impossible to route, whatever the policy says."""
    if not is_role(work.role):
        return unknown_role(work.role)
    if not work.prompt.strip():
        return "the prompt is empty; say what is to be done"
    if work.timeout is not None and not 0 < work.timeout < math.inf:
        return f"a timeout of {work.timeout:g} s is none; a number of seconds above 0 would work"
    if not 0 <= work.wait < math.inf:
        return f"a wait of {work.wait:g} s is none; 0 or more seconds would work"
    if work.estimate_tokens is not None and work.estimate_tokens < 0:
        return f"an estimate of {work.estimate_tokens} tokens is none; a number of 0 or more would work"
    if work.estimate_usd is not None and not 0 <= work.estimate_usd < math.inf:
        return f"an estimate of {work.estimate_usd:g} USD is none; a number of 0 or more would work"
    return None


def why_disabled(module: bool, module_enabled: bool) -> str:
    """``module`` is the host's own gate, ``module_enabled`` that of the settings."""
    if not module:
        return "supervision is off: the host started it with module=False"
    if not module_enabled:
        return "supervision is off: `cognition.enabled` is false in .coding-os/hub-settings.json"
    return "supervision is disabled; `cos supervision enable` enables it"


def refusal_of(resolution: Resolution) -> Refusal | None:
    """Why nothing can run it, or None where something can."""
    if resolution.candidates:
        return None
    denial = resolution.refusal
    assert denial is not None  # noqa: S101 - a resolution without candidates says why
    return Refusal(
        category=denial.category,
        reason=str(denial),
        route=resolution.asked,
        passed_over=tuple(str(other) for other in resolution.others),
    )
