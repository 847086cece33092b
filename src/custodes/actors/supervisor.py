"""A supervisor, as its host and its actors see it: start and stop children, look them up, be a root.

The root's task group is shielded, so that a cancel from the host becomes an orderly stop instead of a
stampede; everything below is stopped by its supervisor, never by a cancel from outside. asyncio's own
``Task.cancel()`` knows no shields. A host aims it at the task it holds, the one in ``async with``, where the
task group goes on waiting through any number of them. Aimed at a task of the tree (``asyncio.all_tasks()``
shows them) it is a crash of whatever runs there, :exc:`.StrayCancellation`; before a task's first step it
takes the supervisor with it, since anyio's task group then cancels itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Any, Self, cast, overload

import anyio
import anyio.lowlevel
from anyio import TaskHandle
from anyio.abc import TaskGroup, TaskStatus

from .actor import Actor
from .actor_child import ActorChild
from .cancellation import ChildEnd, Ending, Outcome
from .cap import Cap
from .child import Child
from .child_spec import ChildSpec
from .envelope import ContextHooks
from .errors import InvalidSpec, StrayCancellation, UnknownChild
from .executor import Executor, until_over
from .intensity import Intensity
from .ref import ActorRef
from .statistics import SupervisorStatistics
from .strategies import Strategy
from .supervisor_child import Nestable, SupervisorChild

MAX_CHILDREN = 100_000
MAX_DEPTH = 32


class Supervisor(Nestable):
    """Runs once: as a root (``async with``, or :meth:`run`), or as a child that a spec's ``start`` returns.

    :param children: specs, in start order.
    :param strategy: ``one_for_one``, ``one_for_all`` or ``rest_for_one``.
    :param intensity: how many restarts are healing; over it the supervisor fails, upward, once.
    :param max_children: dynamic children alive at a time, here and in all supervisors below.
    :param max_depth: how many dynamic children may stand one below the other, from here down.
    :param context: how an opaque context travels with messages; by default as in the supervisor above.
    :param id: the path of a root. A child's id is its spec's.
    """

    def __init__(
        self,
        children: Iterable[ChildSpec[Any]] = (),
        *,
        strategy: Strategy = "one_for_one",
        intensity: Intensity | None = None,
        max_children: int = MAX_CHILDREN,
        max_depth: int = MAX_DEPTH,
        context: ContextHooks | None = None,
        id: str = "root",  # noqa: A002  # as in ChildSpec
    ) -> None:
        self._executor = Executor(
            self,
            specs=tuple(children),
            strategy=strategy,
            intensity=intensity or Intensity(),
            hooks=context,
            cap=Cap(id, max_children, max_depth),
        )
        self._place: SupervisorChild | None = None
        self._host: TaskGroup | None = None
        self._task: TaskHandle[None] | None = None  # a root's
        self._ending = Ending()  # a root's; a child's is in its place

    def __repr__(self) -> str:
        return f"<Supervisor {self.path} {self._executor.state}>"

    @property
    def path(self) -> str:
        return self._executor.path

    # -- Children

    @overload
    async def start_child(self, spec: ChildSpec[Actor]) -> ActorRef: ...
    @overload
    async def start_child(self, spec: ChildSpec[Supervisor]) -> Supervisor: ...
    async def start_child(self, spec: ChildSpec[Any]) -> ActorRef | Supervisor:
        """Start a dynamic child and wait until it has started.

        If the caller is cancelled meanwhile, the child is stopped before the cancellation goes on. A child
        that cannot start is not restarted, and leaves nothing behind.

        :raises InvalidSpec: the spec cannot be followed (:exc:`.DuplicateChild`: its id is taken).
        :raises ChildLimit: a cap of this supervisor or of one above is reached.
        :raises ActorStopped: this supervisor has ended or is stopping, or the child was stopped first.
        :raises StartFailed: the start callable or ``on_start`` raised.
        """
        await anyio.lowlevel.checkpoint()
        child = self._executor.launch(spec, dynamic=True)
        if not child.starts_at_once:
            try:
                await child.wait_started()
            except anyio.get_cancelled_exc_class():
                child.request_stop("its start was cancelled", anyio.current_time())
                with anyio.CancelScope(shield=True):
                    await until_over([child])
                raise
        return _shown(child)

    @overload
    def start_child_soon(self, spec: ChildSpec[Actor]) -> ActorRef: ...
    @overload
    def start_child_soon(self, spec: ChildSpec[Supervisor]) -> Supervisor: ...
    def start_child_soon(self, spec: ChildSpec[Any]) -> ActorRef | Supervisor:
        """Start a dynamic child and go on: its first step is yet to come (a task group's ``start_soon``).

        A first start that fails is the child's end, whatever ``restart`` says: it is logged, and told to
        those who join or monitor it.

        :raises InvalidSpec, ChildLimit, ActorStopped, StartFailed: as :meth:`start_child`, where nothing need
            be waited for to know it.
        """
        child = self._executor.launch(spec, dynamic=True)
        child.awaited = False
        return _shown(child)

    async def stop_child(self, child_id: str, reason: str = "stopped") -> ChildEnd:
        """Stop a child for good and wait for its end.

        Idempotent: the first reason wins, and every call gets the same answer, also after the end (the
        last 256 ends are remembered). If the caller is cancelled, the stop goes on without it.

        :raises UnknownChild: there is none of this id, and none that ended lately.
        """
        child = self._executor.children.get(child_id)
        if child is None:
            await anyio.lowlevel.checkpoint()
            if child_id in self._executor.ends:
                return self._executor.ends[child_id]
            raise UnknownChild(f"{self.path}/{child_id}")
        child.request_stop(reason, anyio.current_time())
        await until_over([child])
        end = await child.ending.wait()
        # A transient one that had completed was kept for its group.
        if self._executor.children.get(child_id) is child:
            self._executor.forget(child, end)
        return end

    def ref(self, child_id: str) -> ActorRef:
        """The ref of a child that is an actor. It stays good while the child is restarted.

        :raises UnknownChild: there is no actor of this id.
        """
        child = self._executor.children.get(child_id)
        if not isinstance(child, ActorChild):
            raise UnknownChild(f"{self.path}/{child_id}")
        return child.ref

    def supervisor(self, child_id: str) -> Supervisor:
        """The child that is a supervisor, in its present incarnation: a restart makes another one.

        :raises UnknownChild: there is no supervisor of this id.
        """
        child = self._executor.children.get(child_id)
        if not isinstance(child, SupervisorChild):
            raise UnknownChild(f"{self.path}/{child_id}")
        return cast("Supervisor", child.occupant)  # there is one kind

    async def running_supervisor(self, child_id: str) -> Supervisor:
        """As :meth:`supervisor`, once it takes children: while it is restarted, its next incarnation.

        :raises UnknownChild: there is no supervisor of this id.
        :raises ActorStopped: it was stopped for good.
        """
        child = self._executor.children.get(child_id)
        if isinstance(child, SupervisorChild):
            await child.wait_running()
        return self.supervisor(child_id)

    @property
    def running(self) -> bool:
        """Whether it takes children: it has started, and nobody has told it to stop."""
        return self._executor.state == "running"

    def statistics(self) -> SupervisorStatistics:
        executor = self._executor
        now = anyio.current_time()
        return SupervisorStatistics(
            path=self.path,
            state=executor.state,
            strategy=executor.strategy,
            restarts=0 if self._place is None else self._place.restarts,
            crashes=executor.crashes,
            crashes_in_period=sum(now - crash.at < executor.intensity.period for crash in executor.history),
            started=executor.started,
            dynamic_below=executor.cap.alive,
            children=tuple(child.statistics() for child in executor.children.values()),
        )

    async def stop(self, reason: str = "stopped") -> ChildEnd:
        """Stop it with all its children, for good, and wait. As idempotent as :meth:`stop_child`.

        A root that does not run yet starts nothing once it does; this waits for that end.
        """
        if self._place is not None:
            self._place.request_stop(reason, anyio.current_time())
            return await self._place.ending.wait()
        self.request_stop(reason)
        return await self._ending.wait()

    # -- As a root

    async def run(self, *, task_status: TaskStatus[Self] = anyio.TASK_STATUS_IGNORED) -> None:
        """Be a root until stopped or cancelled: ``await task_group.start(supervisor.run)``."""
        async with self:
            task_status.started(self)
            await self._ending.wait()

    async def __aenter__(self) -> Self:
        """:raises StartFailed: a child could not start; those before it were stopped.
        :raises InvalidSpec: a spec, the intensity or a cap cannot be followed.
        """
        if self._host is not None or self._place is not None:
            raise InvalidSpec(self.path, "a supervisor runs once; make a new one")
        self._executor.validate()
        self._host = anyio.create_task_group()
        await self._host.__aenter__()
        settled = anyio.Event()
        self._task = self._host.start_soon(self._be_root, self._host, settled, name=self.path)
        try:
            await settled.wait()
        except BaseException as error:
            await self.__aexit__(type(error), error, error.__traceback__)
            raise
        if self._executor.failure is not None:
            await self.__aexit__(None, None, None)
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Stop everything, in order, however often the host is cancelled meanwhile.

        :raises SupervisorFailed: it has failed; the body was cancelled for that.
        :raises StrayCancellation: the host's loop cancelled the tree's own task; the body was cancelled too.
        :raises BaseException: what no supervisor may handle, such as ^C, came out of a child.
        """
        self.request_stop("the host left" if exc is None else f"the host left: {type(exc).__name__}")
        host = cast("TaskGroup", self._host)
        try:
            if exc is None or isinstance(exc, Exception):
                # The task group would wrap the body's error in a group, and has none of its own to add.
                await host.__aexit__(None, None, None)
            else:
                await host.__aexit__(exc_type, exc, traceback)
        finally:
            if self._ending.end is None:  # as in Child.bury
                cast("TaskHandle[None]", self._task).coro.close()
                self._executor.fail(StrayCancellation(self.path), "cancelled from outside the tree")
                self._reach_end()
        if self._executor.failure is not None:
            raise self._executor.failure

    async def _be_root(self, host: TaskGroup, settled: anyio.Event) -> None:
        try:
            with anyio.CancelScope(shield=True):
                await self._executor.serve(settled.set)
        except BaseException as error:
            if error is not self._executor.failure:
                raise
            host.cancel_scope.cancel()  # __aexit__ raises it, plain
        finally:
            self._reach_end()
            settled.set()

    def _reach_end(self) -> None:
        executor = self._executor
        outcome: Outcome = "stopped" if executor.failure is None else "crashed"
        self._ending.reach(ChildEnd(self.path, outcome, executor.stop_reason, executor.failure))

    # -- As a child (Nestable)

    def adopt(self, place: SupervisorChild) -> None:
        if self._host is not None or self._place is not None:
            raise InvalidSpec(
                place.path, "start must make a new supervisor each time; this one has a place already"
            )
        executor = self._executor
        above = place.owner.supervisor._executor
        executor.path = executor.cap.path = place.path
        executor.cap.above = above.cap
        executor.cap.dynamic = place.dynamic
        executor.hooks = executor.hooks or above.hooks
        executor.validate()
        self._place = place

    async def serve(self, started: Callable[[], None]) -> None:
        await self._executor.serve(started)

    def request_stop(self, reason: str) -> None:
        self._executor.request_stop(reason)


def _shown(child: Child) -> ActorRef | Supervisor:
    """What others hold of it."""
    if isinstance(child, ActorChild):
        return child.ref
    return cast("Supervisor", cast("SupervisorChild", child).occupant)
