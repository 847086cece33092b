"""A supervisor: starts its children in order, stops them in reverse, and answers their crashes.

Three laws, after OTP's:

- *Start in order, stop in reverse.* Children given as specs start one after the other, each once the one
  before it has started; they stop one after the other, last started first. Dynamic children have no order
  among themselves: they are stopped first, all at once.
- *A crash reaches a sibling only by the strategy*, and the strategy is a pure function
  (:mod:`.strategies`). One executor, the supervisor's own task, carries out its plans one at a time.
- *Nothing outlives it.* All incarnations are tasks of one task group. The root's is shielded, so that a
  cancel from the host becomes an orderly stop instead of a stampede; everything below is stopped by its
  supervisor, never by a cancel from outside.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Any, NamedTuple, Self, overload

import anyio
import anyio.lowlevel
from anyio.abc import TaskGroup, TaskStatus

from .actor import Actor
from .cancellation import ChildEnd, Ending, Outcome
from .child import Child, Owner, Subtree
from .child_spec import ChildSpec, must_restart
from .envelope import ContextHooks
from .errors import (
    ActorStopped,
    ChildLimit,
    DuplicateChild,
    InvalidSpec,
    StartFailed,
    StrayCancellation,
    SupervisorFailed,
    UnknownChild,
)
from .intensity import Crash, Intensity, judge
from .loop import logger
from .ref import ActorRef
from .statistics import State, SupervisorStatistics
from .strategies import STRATEGIES, Strategy

ENDS_REMEMBERED = 256
"""Ends of children that are gone, for stops that come late. Bounded: a supervisor may live for years."""

MAX_CHILDREN = 100_000
MAX_DEPTH = 32


class _Fallen(NamedTuple):
    """An incarnation that ended and is to be restarted."""

    child: Child
    incarnation: int
    cause: Exception


class Supervisor(Owner, Subtree):
    """Runs once: as a root (``async with``, or ``run``), or as a child that a spec's ``start`` returns.

    :param children: specs, in start order.
    :param strategy: ``one_for_one``, ``one_for_all`` or ``rest_for_one``.
    :param intensity: how many restarts are healing; over it the supervisor fails, upward, once.
    :param max_children: dynamic children alive at a time, here and in all supervisors below.
    :param max_depth: how many dynamic children may stand one below the other, from here down.
    :param context: how an opaque context travels with messages; by default the parent's.
    :param id: the path of a root. As a child it has its spec's id.
    """

    def __init__(
        self,
        children: Iterable[ChildSpec[Any]] = (),
        *,
        strategy: Strategy = "one_for_one",
        intensity: Intensity = Intensity(),  # noqa: B008  # frozen
        max_children: int = MAX_CHILDREN,
        max_depth: int = MAX_DEPTH,
        context: ContextHooks | None = None,
        id: str = "root",  # noqa: A002  # as in ChildSpec
    ) -> None:
        self.path = id
        self._specs = tuple(children)
        self._strategy: Strategy = strategy
        self._intensity = intensity
        self._max_children = max_children
        self._max_depth = max_depth
        self._hooks = context
        self._place: Child | None = None
        self._parent: Supervisor | None = None
        self._state: State = "starting"
        self._children: dict[str, Child] = {}  # in start order
        self._ends: OrderedDict[str, ChildEnd] = OrderedDict()
        self._dynamic_below = 0
        self._group: TaskGroup | None = None
        self._host: TaskGroup | None = None
        self._work: anyio.CancelScope | None = None  # the executor's, cancelled to end it
        self._stop_reason: str | None = None
        self._failure: SupervisorFailed | StartFailed | None = None
        self._fallen: deque[_Fallen] = deque()
        self._fallen_come: anyio.Event | None = None
        self._history: tuple[Crash, ...] = ()
        self._crashes = 0
        self._started = 0
        self._ending = Ending()

    def __repr__(self) -> str:
        return f"<Supervisor {self.path} {self._state}>"

    # -- Children

    @overload
    async def start_child(self, spec: ChildSpec[Actor]) -> ActorRef: ...
    @overload
    async def start_child(self, spec: ChildSpec[Supervisor]) -> Supervisor: ...
    async def start_child(self, spec: ChildSpec[Any]) -> ActorRef | Supervisor:
        """Start a dynamic child and wait until it has started.

        If the caller is cancelled meanwhile, the child is stopped before the cancellation goes on. A child
        that cannot start is not restarted, and leaves nothing behind.

        :raises InvalidSpec: the spec cannot be followed (:exc:`DuplicateChild`: its id is taken).
        :raises ChildLimit: a cap of this supervisor or of one above is reached.
        :raises ActorStopped: this supervisor has ended or is stopping, or the child was stopped first.
        :raises StartFailed: the start callable or ``on_start`` raised.
        """
        await anyio.lowlevel.checkpoint()
        child = self._launch(spec, dynamic=True)
        if not child.starts_at_once:
            try:
                await child.wait_started()
            except anyio.get_cancelled_exc_class():
                child.request_stop("the start was cancelled")
                with anyio.CancelScope(shield=True):
                    await self._end_of([child])
                raise
        return self._face(child)

    async def stop_child(self, id: str, reason: str = "stopped") -> ChildEnd:  # noqa: A002
        """Stop a child for good and wait for its end.

        Idempotent: the first reason wins, and every call gets the same answer, also after the end (the
        last 256 ends are remembered). If the caller is cancelled, the stop goes on without it.

        :raises UnknownChild: there is none of this id, and none that ended lately.
        """
        child = self._children.get(id)
        if child is None:
            await anyio.lowlevel.checkpoint()
            if id in self._ends:
                return self._ends[id]
            raise UnknownChild(f"{self.path}/{id}")
        child.request_stop(reason)
        await self._end_of([child])
        end = await child.ending.wait()
        if self._children.get(id) is child:  # a transient one that had completed, kept for its group
            self._forget(child, end)
        return end

    def ref(self, id: str) -> ActorRef:  # noqa: A002
        """The ref of a child that is an actor. It stays good while the child is restarted.

        :raises UnknownChild: there is no actor of this id.
        """
        child = self._children.get(id)
        if child is None or child.ref is None:
            raise UnknownChild(f"{self.path}/{id}")
        return child.ref

    def supervisor(self, id: str) -> Supervisor:  # noqa: A002
        """The child that is a supervisor, in its present incarnation: a restart makes another one.

        :raises UnknownChild: there is no supervisor of this id, or it is between two incarnations.
        """
        child = self._children.get(id)
        if child is None or not isinstance(child.occupant, Supervisor):
            raise UnknownChild(f"{self.path}/{id}")
        return child.occupant

    def statistics(self) -> SupervisorStatistics:
        now = anyio.current_time()
        return SupervisorStatistics(
            path=self.path,
            state=self._state,
            strategy=self._strategy,
            restarts=0 if self._place is None else self._place.restarts,
            crashes=self._crashes,
            crashes_in_period=sum(now - crash.at < self._intensity.period for crash in self._history),
            started=self._started,
            dynamic_below=self._dynamic_below,
            children=tuple(child.statistics() for child in self._children.values()),
        )

    # -- Its own life

    async def stop(self, reason: str = "stopped") -> ChildEnd:
        """Stop it with all its children and wait for the end. As idempotent as :meth:`stop_child`."""
        if self._place is not None:
            self._place.request_stop(reason)
            return await self._place.ending.wait()
        self.request_stop(reason)
        return await self._ending.wait()

    async def run(self, *, task_status: TaskStatus[Self] = anyio.TASK_STATUS_IGNORED) -> None:
        """Be the root of a tree until it is stopped or cancelled: ``await task_group.start(supervisor.run)``."""
        async with self:
            task_status.started(self)
            await self._ending.wait()

    async def __aenter__(self) -> Self:
        """:raises StartFailed: a child could not start; those before it were stopped.
        :raises InvalidSpec: a spec, the intensity or a cap cannot be followed.
        """
        self._validate()
        self._host = anyio.create_task_group()
        await self._host.__aenter__()
        settled = anyio.Event()
        self._host.start_soon(self._be_root, settled, name=self.path)
        try:
            await settled.wait()
        except BaseException as error:
            await self.__aexit__(type(error), error, error.__traceback__)
            raise
        if self._failure is not None:
            await self.__aexit__(None, None, None)
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> bool:
        """Stop everything, in order, however often the host is cancelled meanwhile.

        :raises SupervisorFailed: it had failed; the body was cancelled for that.
        """
        assert self._host is not None
        self.request_stop("the host left" if exc is None else f"the host left ({type(exc).__name__})")
        if isinstance(exc, Exception):
            # The task group would wrap an error of the body into a group; it has none of its own to add.
            exc_type = exc = traceback = None
        swallowed = await self._host.__aexit__(exc_type, exc, traceback)
        if self._failure is not None:
            raise self._failure
        return bool(swallowed)

    async def _be_root(self, settled: anyio.Event) -> None:
        assert self._host is not None
        try:
            with anyio.CancelScope(shield=True):
                await self.serve(settled.set)
        except (SupervisorFailed, StartFailed):
            self._host.cancel_scope.cancel()  # __aexit__ raises it, plain
        finally:
            outcome: Outcome = "stopped" if self._failure is None else "crashed"
            self._ending.reach(ChildEnd(self.path, outcome, self._stop_reason, self._failure))
            settled.set()

    # -- As a child of another (Subtree)

    def adopt(self, child: Child) -> None:
        if self._place is not None or self._group is not None:
            raise InvalidSpec(
                child.path, "start must make a new supervisor each time; this one has a place already"
            )
        assert isinstance(child.owner, Supervisor)
        self.path = child.path
        self._place = child
        self._parent = child.owner
        if self._hooks is None:
            self._hooks = child.owner._hooks
        self._validate()

    def request_stop(self, reason: str) -> None:
        if self._stop_reason is None:
            self._stop_reason = reason
            self._state = "stopping"
            if self._work is not None:
                self._work.cancel()

    async def serve(self, started: Callable[[], None]) -> None:
        try:
            async with anyio.create_task_group() as self._group:
                try:
                    with anyio.CancelScope() as self._work:
                        await self._execute(started)
                except StartFailed as failure:
                    self._failure = failure
                    self.request_stop("a child could not start")
                except anyio.get_cancelled_exc_class():
                    # Not our own scope's: the host's loop cancelled this very task. An orderly stop follows.
                    self.request_stop("cancelled by the host's loop")
                await self._stop_all(self._stop_reason or "stopped")
        finally:
            self._state = "ended"
        if self._failure is not None:
            raise self._failure

    async def _execute(self, started: Callable[[], None]) -> None:
        """Start the specs, then answer crashes one at a time, until cancelled."""
        for spec in self._specs:
            if self._stop_reason is not None:
                return
            child = self._launch(spec, dynamic=False)
            if not child.starts_at_once:
                await self._start_of(child)
        if self._stop_reason is not None:
            return
        self._state = "running"
        started()
        while True:
            while self._fallen:
                await self._answer(self._fallen.popleft())
            self._fallen_come = anyio.Event()
            await self._fallen_come.wait()

    async def _start_of(self, child: Child) -> None:
        """Wait for a start; one that was stopped meanwhile, by whomever, is no failure of ours."""
        try:
            await child.wait_started()
        except ActorStopped:
            pass

    async def _answer(self, fallen: _Fallen) -> None:
        """Answer one crash: count it, then stop, wait and start as the strategy plans."""
        child = fallen.child
        if child.incarnation != fallen.incarnation or child.state != "waiting":
            return  # a plan has restarted it in the meantime, or it was stopped
        verdict = judge(self._intensity, self._history, Crash(anyio.current_time(), fallen.cause))
        self._history = verdict.history
        if verdict.delay is None:
            self._failure = SupervisorFailed(
                self.path,
                f"more than {self._intensity.restarts} restarts within {self._intensity.period:g} s",
                [crash.cause for crash in verdict.history],
            )
            self.request_stop("restart intensity exceeded")
            return
        self._crashes += 1
        plan = STRATEGIES[self._strategy](self._children.values(), child.id)
        for id in plan.stop:  # noqa: A001
            sibling = self._children.get(id)
            if sibling is not None:
                sibling.interrupt(f"restarted together with {child.id}")
                await sibling.wait_over()
        if verdict.delay:
            await anyio.sleep(verdict.delay)
        for id in plan.start:  # noqa: A001
            sibling = self._children.get(id)
            if sibling is None or sibling.alive or sibling.ending.reason is not None:
                continue  # it was stopped for good meanwhile, and maybe another took its id
            try:
                self._spawn(sibling)
                await self._start_of(sibling)
            except StartFailed as failure:
                # A failed restart is a crash like any other, and the next to be answered.
                if sibling.state != "waiting":
                    sibling.wait_for_restart()
                self._fallen.appendleft(_Fallen(sibling, sibling.incarnation, failure))
                return

    async def _stop_all(self, reason: str) -> None:
        dynamic = [child for child in reversed(self._children.values()) if child.dynamic]
        for child in dynamic:
            child.request_stop(reason)
        await self._end_of(dynamic)
        for child in [child for child in reversed(self._children.values()) if not child.dynamic]:
            child.request_stop(reason)
            await self._end_of([child])

    # -- What its children report (Owner)

    @property
    def collapsing(self) -> bool:
        return self._group is not None and self._group.cancel_scope.cancel_called

    def child_idle_stopped(self, child: Child) -> None:
        self._finish(child, "stopped")

    def child_over(self, child: Child) -> None:
        crash = child.crash
        if crash is not None:
            logger.warning("%s crashed: %s", child.path, type(crash).__name__)
        told = child.ending.reason is not None or self._stop_reason is not None
        if not told and child.restart != "temporary" and child.interrupted is not None:
            child.wait_for_restart()  # the executor is waiting for it
        elif not told and not child.began and child.incarnation > 1:
            child.wait_for_restart()  # so is it here, for the start
        elif not told and child.began and must_restart(child.restart, crashed=crash is not None):
            child.wait_for_restart()
            self._fallen.append(_Fallen(child, child.incarnation, _cause(child)))
            if self._fallen_come is not None:
                self._fallen_come.set()
        elif crash is not None:
            self._finish(child, "crashed")
        else:
            self._finish(child, "completed" if child.stop_reason is None else "stopped")

    def _finish(self, child: Child, outcome: Outcome) -> None:
        end = child.finish(outcome)
        if child.dynamic or child.restart != "transient" or outcome != "completed":
            self._forget(child, end)

    def _forget(self, child: Child, end: ChildEnd) -> None:
        del self._children[child.id]
        self._ends[child.id] = end
        if len(self._ends) > ENDS_REMEMBERED:
            self._ends.popitem(last=False)
        if child.dynamic:
            self._count_dynamic(-1)

    # -- Its own housekeeping

    def _validate(self) -> None:
        if self._ending.end is not None or self._host is not None:
            raise InvalidSpec(self.path, "a supervisor runs once; make a new one")
        if self._strategy not in STRATEGIES:
            known = ", ".join(STRATEGIES)
            raise InvalidSpec(self.path, f"strategy must be one of {known}, not {self._strategy!r}")
        problem = self._intensity.problem()
        if problem is not None:
            raise InvalidSpec(self.path, problem)
        if self._max_children < 0 or self._max_depth < 0:
            raise InvalidSpec(self.path, "max_children and max_depth must be 0 or more")
        ids = set[str]()
        for spec in self._specs:
            self._check(spec)
            if spec.id in ids:
                raise DuplicateChild(f"{self.path}/{spec.id}")
            ids.add(spec.id)

    def _check(self, spec: ChildSpec[Any]) -> None:
        problem = spec.problem()
        if problem is not None:
            raise InvalidSpec(f"{self.path}/{spec.id}", problem)

    def _launch(self, spec: ChildSpec[Any], *, dynamic: bool) -> Child:
        """Put a child into the table and start its task. No checkpoint between: a stop sees it or forbids it."""
        if self._stop_reason is not None or self._group is None:
            raise ActorStopped(self.path, self._stop_reason or "not started yet")
        path = f"{self.path}/{spec.id}"
        if dynamic:
            self._check(spec)
            if spec.id in self._children:
                raise DuplicateChild(path)
            self._admit(path)
        child = Child(spec, self, path, self._hooks, dynamic=dynamic)
        self._children[spec.id] = child
        self._ends.pop(spec.id, None)
        if dynamic:
            self._count_dynamic(+1)
        try:
            self._spawn(child)
        except StartFailed:
            self._finish(child, "crashed")
            raise
        self._started += 1
        return child

    def _spawn(self, child: Child) -> None:
        assert self._group is not None
        child.prepare()
        if self._stop_reason is not None:  # its start callable stopped us
            child.request_stop(self._stop_reason)
        self._group.start_soon(child.live, name=child.path)

    def _admit(self, path: str) -> None:
        """Hold the caps, its own and those above."""
        supervisor: Supervisor | None = self
        levels = 1
        while supervisor is not None:
            if supervisor._dynamic_below >= supervisor._max_children:
                raise ChildLimit(supervisor.path, "children", supervisor._max_children, path)
            if levels > supervisor._max_depth:
                raise ChildLimit(supervisor.path, "depth", supervisor._max_depth, path)
            if supervisor._place is not None and supervisor._place.dynamic:
                levels += 1
            supervisor = supervisor._parent

    def _count_dynamic(self, change: int) -> None:
        supervisor: Supervisor | None = self
        while supervisor is not None:
            supervisor._dynamic_below += change
            supervisor = supervisor._parent

    def _face(self, child: Child) -> ActorRef | Supervisor:
        if child.ref is not None:
            return child.ref
        assert isinstance(child.occupant, Supervisor)
        return child.occupant

    async def _end_of(self, children: list[Child]) -> None:
        """Wait for ends. What outlives its bound is named in the log, and waited for: nothing is left behind."""
        bounds = [child.spec.shutdown for child in children if child.ref is not None]
        if bounds:
            with anyio.move_on_after(max(bounds)) as bound:
                for child in children:
                    await child.ending.wait()
            if bound.cancelled_caught:
                for child in children:
                    if child.ref is not None and child.ending.end is None:
                        child.warn_overrun()
        for child in children:
            await child.ending.wait()


def _cause(child: Child) -> Exception:
    """Why it has to be restarted, for the history. The note names the child where a traceback is read."""
    crash = child.crash
    if crash is None:
        return ActorStopped(child.path, "ended by itself, and is permanent")
    if not isinstance(crash, Exception):
        return StrayCancellation(child.path, crash)
    note = f"crashed in {child.path}"
    if note not in getattr(crash, "__notes__", ()):
        crash.add_note(note)
    return crash
