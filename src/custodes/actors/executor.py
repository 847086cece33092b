"""The executor of one supervisor: its table of children, its task group, and the plans it carries out.

Three laws, after OTP's:

- *Start in order, stop in reverse.* Children given as specs start one after the other, each once the one
  before it has started; they stop one after the other, last started first. Dynamic children have no order
  among themselves: they are stopped first, all at once.
- *A crash reaches a sibling only by the strategy*, and a strategy is a pure function (:mod:`.strategies`).
  Its plans are carried out by one task, one plan at a time, so that two crashes never mix theirs. A start
  that hangs therefore holds up the restarts of siblings (as in OTP), never a stop.
- *Nothing outlives it.* Each incarnation is a task of its task groups. A child enters the table and a
  task group without a checkpoint between, so that a stop either sees it or has forbidden it.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

import anyio
from anyio.abc import TaskGroup

from .actor import Actor
from .actor_child import ActorChild
from .cancellation import ChildEnd, Outcome
from .cap import Cap
from .child import Child, Owner
from .child_spec import ChildSpec, must_restart
from .envelope import ContextHooks
from .errors import (
    ActorStopped,
    DuplicateChild,
    InvalidSpec,
    StartFailed,
    StrayCancellation,
    SupervisorFailed,
)
from .intensity import Crash, Intensity, judge
from .loop import logger
from .statistics import State
from .strategies import STRATEGIES, Strategy
from .supervisor_child import SupervisorChild

if TYPE_CHECKING:  # its public face
    from .supervisor import Supervisor

ENDS_REMEMBERED = 256
"""Ends of children that are gone, for a stop that comes late. Bounded: a supervisor may live for years."""


class _Fallen(NamedTuple):
    """An incarnation that ended and is to be followed by another."""

    child: Child
    incarnation: int
    cause: Exception


class Executor(Owner):
    def __init__(
        self,
        supervisor: Supervisor,
        specs: Sequence[ChildSpec[Any]],
        strategy: Strategy,
        intensity: Intensity,
        hooks: ContextHooks | None,
        cap: Cap,
    ) -> None:
        self.supervisor = supervisor
        self.path: str = cap.path
        self.specs = specs
        self.strategy: Strategy = strategy
        self.intensity = intensity
        self.hooks = hooks
        self.cap = cap
        self.state: State = "starting"
        self.children: dict[str, Child] = {}  # in start order
        self.ends: OrderedDict[str, ChildEnd] = OrderedDict()
        self.stop_reason: str | None = None
        self.failure: BaseException | None = None
        self.history: tuple[Crash, ...] = ()
        self.crashes: int = 0
        self.started: int = 0
        self.sweeping = False
        self._group: TaskGroup | None = None
        self._dynamic: TaskGroup | None = None  # of dynamic actors: one stroke cancels any number of them
        self._work: anyio.CancelScope | None = None  # starting and answering crashes, until cancelled to stop
        self._fallen: deque[_Fallen] = deque()
        self._fallen_come: anyio.Event | None = None

    def validate(self) -> None:
        """:raises InvalidSpec: what it was given cannot be followed."""
        if self.strategy not in STRATEGIES:
            known = ", ".join(STRATEGIES)
            raise InvalidSpec(self.path, f"strategy must be one of {known}, not {self.strategy!r}")
        problem = self.intensity.problem() or self.cap.problem()
        if problem is not None:
            raise InvalidSpec(self.path, problem)
        ids = set[str]()
        for spec in self.specs:
            self._check(spec)
            if spec.id in ids:
                raise DuplicateChild(f"{self.path}/{spec.id}")
            ids.add(spec.id)

    def _check(self, spec: ChildSpec[Any]) -> None:
        problem = spec.problem()
        if problem is not None:
            raise InvalidSpec(f"{self.path}/{spec.id}", problem)

    # -- Its life

    async def serve(self, started: Callable[[], None]) -> None:
        """Start the specs, answer crashes until told to stop, stop everything.

        :raises StartFailed: a spec's child could not start.
        :raises SupervisorFailed: restart intensity was exceeded.
        :raises StrayCancellation: the host's loop cancelled this task, or a child's before its first step.
        :raises BaseException: what no supervisor may handle, such as ^C, came out of a child.
        """
        try:
            async with anyio.create_task_group() as self._group:
                async with anyio.create_task_group() as self._dynamic:
                    try:
                        with anyio.CancelScope() as self._work:
                            await self._start_specs()
                            if self.stop_reason is None:
                                self.state = "running"
                                started()
                                await self._answer_crashes()
                    # Not our own scope's:
                    except anyio.get_cancelled_exc_class() as error:
                        self.fail(StrayCancellation(self.path, error), "cancelled from outside the tree")
                    # A spec that cannot start; what a start callable let through:
                    except BaseException as error:
                        self.fail(error, f"failed: {type(error).__name__}")
                    dynamic = self._stop_dynamic(self._group, self._dynamic)
                self._bury(child for child in dynamic if isinstance(child, ActorChild))
                await until_over(dynamic)
                await self._stop_static()
        finally:
            self.state = "ended"
            left = tuple(self.children.values())  # none, but where asyncio's own cancel pierced the stop
            for child in left:
                child.request_stop("its supervisor has ended", anyio.current_time())
            self._bury(left)
        if self.failure is not None:
            raise self.failure

    def request_stop(self, reason: str) -> None:
        """The first reason counts. From here on nothing is started."""
        if self.stop_reason is None:
            self.stop_reason = reason
            self.state = "stopping"
            if self._work is not None:
                self._work.cancel()

    def fail(self, error: BaseException, reason: str) -> None:
        if self.failure is None:
            self.failure = error
        self.request_stop(reason)

    async def _start_specs(self) -> None:
        for spec in self.specs:
            if self.stop_reason is not None:
                break
            child = self.launch(spec, dynamic=False)
            if not child.starts_at_once:
                await _started_or_stopped(child)

    async def _answer_crashes(self) -> None:
        while True:
            while self._fallen and self.stop_reason is None:  # a failure is one, whoever else has fallen
                await self._answer(self._fallen.popleft())
            self._fallen_come = anyio.Event()
            await self._fallen_come.wait()

    async def _answer(self, fallen: _Fallen) -> None:
        """Count one crash; then stop, wait and start as the strategy plans."""
        child = fallen.child
        if child.incarnation != fallen.incarnation or child.state != "waiting":
            return  # an earlier plan has restarted it, or it was stopped
        verdict = judge(self.intensity, self.history, Crash(anyio.current_time(), fallen.cause))
        self.history = verdict.history
        if verdict.delay is None:
            failure = SupervisorFailed(
                self.path,
                f"more than {self.intensity.restarts} restarts within {self.intensity.period:g} s",
                [crash.cause for crash in verdict.history],
            )
            self.fail(failure, "restart intensity exceeded")
            return
        self.crashes += 1
        plan = STRATEGIES[self.strategy](self.children.values(), child.id)
        to_stop = [self.children[child_id] for child_id in plan.stop]
        to_start = [self.children[child_id] for child_id in plan.start]
        for sibling in to_stop:
            sibling.interrupt(f"restarted together with {child.id}", anyio.current_time())
            await until_over([sibling])
        if verdict.delay:
            await anyio.sleep(verdict.delay)
        for sibling in to_start:
            if self.stop_reason is not None:
                return  # the stop and what was waited for came in one pass of the loop
            if self.children.get(sibling.id) is not sibling or sibling.ending.reason is not None:
                continue  # it was stopped for good meanwhile
            try:
                self._spawn(sibling, self._make(sibling.spec, sibling.path))
                await _started_or_stopped(sibling)
            except StartFailed as failure:
                # A failed restart is a crash like any other, and the next to be answered.
                sibling.await_restart()
                self._fallen.appendleft(_Fallen(sibling, sibling.incarnation, failure))
                return

    def _stop_dynamic(self, group: TaskGroup, actors: TaskGroup) -> list[Child]:
        """Tell them all to stop; ``actors`` closes once its own have."""
        dynamic = [child for child in self.children.values() if child.dynamic]
        now = anyio.current_time()
        self.sweeping = True
        for child in dynamic:
            child.request_stop(self.stop_reason or "stopped", now)
        actors.cancel_scope.cancel()
        if dynamic:
            group.start_soon(until_over, dynamic)  # names the late ones, while this task waits for the group
        return dynamic

    async def _stop_static(self) -> None:
        for child in tuple(reversed(self.children.values())):
            child.request_stop(self.stop_reason or "stopped", anyio.current_time())
            await until_over([child])

    def _bury(self, children: Iterable[Child]) -> None:
        """Their task group has closed: whoever seems alive has never run."""
        for child in children:
            if child.alive:
                child.bury()

    # -- Its table

    def launch(self, spec: ChildSpec[Any], *, dynamic: bool) -> Child:
        """Make a child and start its first incarnation.

        :raises InvalidSpec, ChildLimit, ActorStopped, StartFailed: as :meth:`.Supervisor.start_child`.
        """
        if self.stop_reason is not None or self._dynamic is None:
            raise ActorStopped(self.path, self.stop_reason or "it has not started yet")
        path = f"{self.path}/{spec.id}"
        if dynamic:
            self._check(spec)
            to_come = self.state == "starting" and any(spec.id == own.id for own in self.specs)
            if spec.id in self.children or to_come:
                raise DuplicateChild(path)
            self.cap.admit(path)
        occupant = self._make(spec, path)
        child: Child
        if isinstance(occupant, Actor):
            child = ActorChild(spec, self, path, occupant, self.hooks, dynamic=dynamic)
        else:
            child = SupervisorChild(spec, self, path, dynamic=dynamic)
        self._spawn(child, occupant)
        self.children[spec.id] = child
        self.ends.pop(spec.id, None)
        self.started += 1
        if dynamic:
            self.cap.count(+1)
        return child

    def _make(self, spec: ChildSpec[Any], path: str) -> object:
        try:
            return spec.start()
        except Exception as error:
            raise StartFailed(path, "its start callable raised", error) from error

    def _spawn(self, child: Child, occupant: object) -> None:
        if self._group is None or self._dynamic is None:
            raise RuntimeError(f"{self.path} has no task groups")
        try:
            child.prepare(occupant)
        except InvalidSpec as error:
            raise StartFailed(
                child.path, "its start callable returned what cannot be started", error
            ) from error
        child.spawn(self._dynamic if child.dynamic and isinstance(child, ActorChild) else self._group)

    def forget(self, child: Child, end: ChildEnd) -> None:
        del self.children[child.id]
        self.ends[child.id] = end
        if len(self.ends) > ENDS_REMEMBERED:
            self.ends.popitem(last=False)
        if child.dynamic:
            self.cap.count(-1)

    # -- What its children report

    def child_idle_stopped(self, child: Child) -> None:
        self._finish(child, "stopped")

    def child_over(self, child: Child) -> None:
        unheard = child.began or child.incarnation > 1  # else whoever starts it hears of it
        if child.crash is not None and (unheard or not child.awaited):
            logger.warning("%s crashed: %s", child.path, type(child.crash).__name__)
        if child.ending.reason is not None or self.stop_reason is not None:
            self._finish(child, "stopped")
        elif not unheard:
            self._finish(child, "stopped")  # whoever started it is left with nothing
        elif child.interrupted is not None and child.restart != "temporary":
            child.await_restart()  # the plan that stopped it goes on
        elif not child.began:
            child.await_restart()  # the plan that started it hears of the failure
        elif must_restart(child.restart, crashed=child.crash is not None):
            child.await_restart()
            self._fallen.append(_Fallen(child, child.incarnation, _cause(child)))
            if self._fallen_come is not None:
                self._fallen_come.set()
        else:
            self._finish(child, "completed" if child.stop_reason is None else "stopped")

    def _finish(self, child: Child, outcome: Outcome) -> None:
        end = child.finish(outcome if child.crash is None else "crashed")
        # A transient one that completed keeps its place: if its group is restarted, so is it.
        if child.dynamic or child.restart != "transient" or end.outcome != "completed":
            self.forget(child, end)


async def _started_or_stopped(child: Child) -> None:
    """Wait for a start. That it was stopped meanwhile, by whomever, is no failure."""
    with suppress(ActorStopped):
        await child.wait_started()


async def until_over(children: Sequence[Child]) -> None:
    """Wait until none of them runs; all were told to stop.

    What outlives its bound is named in the log, and waited for: nothing is left behind.
    """
    bounds = [child.spec.shutdown for child in children if isinstance(child, ActorChild)]
    if bounds:
        with anyio.move_on_after(max(bounds)) as bound:
            for child in children:
                await child.wait_over()
        if bound.cancelled_caught:
            for child in children:
                if isinstance(child, ActorChild) and child.alive:
                    child.outlived_bound()
    for child in children:
        await child.wait_over()


def _cause(child: Child) -> Exception:
    """Why it has to be restarted, for the history. The note names the child wherever a traceback is read."""
    crash = child.crash
    if crash is None:
        return ActorStopped(child.path, "ended by itself, and is permanent")
    if not isinstance(crash, Exception):
        return StrayCancellation(child.path, crash)
    note = f"crashed in {child.path}"
    if note not in getattr(crash, "__notes__", ()):
        crash.add_note(note)
    return crash
