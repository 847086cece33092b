"""From what was asked for to what runs: in the order asked, and no sooner than there is room.

What needs no room (a refusal, a proposal, work past the tree) ends or begins at once. A child that only reads
waits here for its room, as a row of a queue: no actor, no task and no span of it is there yet, however many
were asked for. One that writes begins without, and takes it once the scope is its own
(:class:`~custodes.supervision.dispatching.dispatch.Dispatch`): those that wait for a scope keep nobody else
from work.

A restart of the tree ends what runs, and nobody who waits here: they begin once it is back.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio
import anyio.lowlevel
from anyio.abc import TaskGroup

from custodes.actors import ActorError, ChildEnd, ChildSpec
from custodes.policy.settings import SettingsError
from custodes.store import StoreError
from custodes.supervision.budgets.account import Account
from custodes.supervision.child import Child, ChildActor, Course, Perform, ends_by_itself, stop_actor
from custodes.supervision.dispatching.job import Delegated, Frozen, Job, Plain, Resuming, Unsupervised
from custodes.supervision.dispatching.past_tree import PastTree
from custodes.supervision.dispatching.reserving import reserved
from custodes.supervision.dispatching.resume import looked_up
from custodes.supervision.dispatching.slots import Room, Slots
from custodes.supervision.events import ChildWaiting
from custodes.supervision.outcomes import cancelled, proposed, record_child, refused
from custodes.supervision.record.records import Group
from custodes.supervision.refusal import no_tree
from custodes.supervision.work import Outcome, Refusal
from custodes.telemetry import SpanHandle

if TYPE_CHECKING:  # a conversation makes fan-outs, and each has a launcher
    from custodes.supervision.conversation import Conversation
    from custodes.supervision.tree import Tree

CLEANUP_S = 30.0
"""What a child may take to end at most, in seconds: the keeper's grace and its proof lie well below."""
AT_A_TIME = 2
"""How many steps it takes before the loop comes round."""

Stop = Callable[[str], Coroutine[Any, Any, object]]
"""Ends one child, for a reason, and returns once it is gone."""


@dataclass(slots=True, kw_only=True)
class Launcher:
    """Of one fan-out. ``stops`` are of those that were launched and have not ended, by run id."""

    conversation: Conversation
    account: Account
    slots: Slots | None
    group: TaskGroup
    """The fan-out's."""
    end: Callable[[Child, Outcome], None]
    group_of: Callable[[str], Group | None]
    span: Callable[[Tree], SpanHandle]
    """What the spans of the fan-out's own children hang under."""
    open_book: Callable[[Tree], None]
    """Called before anything is launched into the tree."""
    stops: dict[str, Stop] = field(default_factory=dict)
    _asked: deque[tuple[Child, Frozen]] = field(default_factory=deque)
    _ready: deque[tuple[Child, Job, Tree]] = field(default_factory=deque)
    _launching: bool = True
    """Until it was first called to `launch_in_order`, somebody is about to."""
    _beginning: bool = False
    _halted: bool = False
    _steps: int = 0

    def put(self, child: Child, frozen: Frozen) -> None:
        self._asked.append((child, frozen))
        if not self._launching:
            self._launching = True
            self.group.start_soon(self.launch_in_order)

    def halt(self) -> None:
        """Nothing more begins: whoever ends what has begun (``stops``) would miss it."""
        self._halted = True

    async def launch(self, child: Child, frozen: Frozen, above: SpanHandle | None = None) -> None:
        """Out of the order of the others. ``above`` is the span it belongs under, where that is not the
        fan-out's own."""
        supervision = self.conversation.supervision
        if isinstance(frozen, Delegated | Unsupervised | Plain):
            self.group.start_soon(self._run_past_tree, child, frozen)
            return
        treeless = supervision.client is not None  # as where there is no policy
        if isinstance(frozen, Refusal) and (treeless or frozen.category in ("settings", "disabled")):
            self.end(child, refused(child.run_id, child.work, frozen))
            return
        try:
            tree = await supervision.tree()
        except (SettingsError, StoreError) as error:
            self.end(child, refused(child.run_id, child.work, no_tree(error)))
            return
        self.open_book(tree)
        if isinstance(frozen, Resuming):
            frozen = await looked_up(frozen, tree.database, supervision.registry().descriptors)
        if isinstance(frozen, Job):
            records = await tree.history()
            if child.result is not None:  # it was cancelled meanwhile: nothing is set aside for it any more
                return
            frozen = reserved(self.account, frozen, records)
        if isinstance(frozen, Job):
            if frozen.under is not None:
                await self._begin(child, frozen, tree, self._room(tree))
            else:
                await self._queue(child, frozen, tree)
            return
        if isinstance(frozen, Refusal):
            outcome = refused(child.run_id, child.work, frozen)
        else:
            route = frozen.route(await tree.history())
            outcome = proposed(child.run_id, child.work, route, frozen.estimate(route))
        if child.result is None:
            await self._end_unrun(child, outcome, tree, above or self.span(tree))

    async def launch_in_order(self) -> None:
        """All that was asked for. What is asked for later has a task of its own."""
        while self._asked:
            child, frozen = self._asked.popleft()
            if child.result is None:
                await self.launch(child, frozen)
            await self._breathe()
        self._launching = False

    async def _queue(self, child: Child, job: Job, tree: Tree) -> None:
        """Begin it now where there is room and nobody waits; else in its turn."""
        if not self._beginning:
            room = self._room(tree)
            if not job.mutable and not room.full:
                await room.take()
            if job.mutable or room.slots.held:
                await self._begin(child, job, tree, room)
                return
            self._beginning = True
            self.group.start_soon(self._begin_in_order)
        tree.services.emit(ChildWaiting, job.conversation, job.run_id, reason="slot")
        self._ready.append((child, job, tree))

    async def _begin_in_order(self) -> None:
        while self._ready:
            child, job, tree = self._ready[0]
            room = self._room(tree)
            if child.result is None and not job.mutable:
                await self._turn(child, room)
            self._ready.popleft()
            if child.result is None:
                await self._begin(child, job, tree, room)
            else:  # it was cancelled while it waited
                room.give_back()
            await self._breathe()
        self._beginning = False

    async def _turn(self, child: Child, room: Room) -> None:
        """Wait for its room, or for its cancel: then nobody waits for room that nobody needs."""
        with anyio.CancelScope() as wait:

            async def stop(reason: str) -> None:
                wait.cancel(reason)
                self.end(child, cancelled(child.run_id, child.work))

            self.stops[child.run_id] = stop
            await room.take()
        self.stops.pop(child.run_id, None)

    async def _breathe(self) -> None:
        self._steps += 1
        if self._steps % AT_A_TIME == 0:
            await anyio.lowlevel.checkpoint()

    def _room(self, tree: Tree) -> Room:
        return Room(tree.services.alive, self.slots, tree.services.slots)

    async def _begin(self, child: Child, job: Job, tree: Tree, room: Room) -> None:
        """Start its actor, which gives its room back. It has it already, or takes it itself."""
        try:
            parent = self.span(tree) if job.under is None else job.under.span
            course = Course(job)
            start = partial(ChildActor, job, tree.services, parent, room, course)
            spec = ChildSpec(id=child.run_id, start=start, restart="temporary", shutdown=CLEANUP_S)
            siblings = await self.conversation.children(tree)
            if child.result is None and not self._halted:  # it was not cancelled meanwhile
                tree.watch()
                ref = siblings.start_child_soon(spec)
                ref.tell(Perform())
                self.stops[child.run_id] = partial(stop_actor, siblings, child.run_id)
                ref.monitor(partial(self._ended, child, course, room))
                return
        except ActorError as error:
            refusal = Refusal(category="unavailable", reason=f"the child cannot be started: {error}")
            self.end(child, refused(child.run_id, child.work, refusal))
        except BaseException:
            room.give_back()
            raise
        room.give_back()

    def _ended(self, child: Child, course: Course, room: Room, end: ChildEnd) -> None:
        room.give_back()  # one that was stopped before its first step has not done so
        self.end(child, course.at(end))

    async def _end_unrun(self, child: Child, outcome: Outcome, tree: Tree, above: SpanHandle) -> None:
        """Record what nothing ran of, and end it so. A cancel that comes meanwhile gets the outcome that the
        record has."""
        self.stops[child.run_id] = ends_by_itself
        services, group = tree.services, self.group_of(child.run_id)
        with services.tracer.child(above, outcome.role, child.run_id, outcome.name) as span:
            await record_child(services.health, self.conversation.id, outcome, child.parent_run, group, span)
        self.end(child, outcome)

    async def _run_past_tree(self, child: Child, frozen: Delegated | Unsupervised | Plain) -> None:
        if child.result is not None:  # it was cancelled before this first step
            return
        scope = anyio.CancelScope()

        async def stop(reason: str) -> None:
            scope.cancel(reason)

        self.stops[child.run_id] = stop
        work = PastTree(child.run_id, child.work, frozen)
        supervision = self.conversation.supervision
        try:
            with scope:
                await work.perform(supervision.registry, supervision.project, self.account, self.slots)
        finally:
            self.end(child, work.outcome)
