"""The conversation that is running: the parent. It spawns children and never does their work itself."""

from __future__ import annotations

from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Self

import anyio

from custodes.actors import ActorStopped, ChildSpec, Supervisor
from custodes.policy.catalog import Catalog
from custodes.policy.policy import Complexity
from custodes.policy.roles import Role
from custodes.policy.routing import Route, RouteRequest, resolve
from custodes.policy.settings import SettingsError
from custodes.supervision.budgets.account import Account
from custodes.supervision.budgets.budget import Ledger
from custodes.supervision.bundle import EvidenceBundle, Gathering
from custodes.supervision.dispatching.job import HostDispatch, Unsupervised, left_to_host
from custodes.supervision.event_log import EventLog, EventStream
from custodes.supervision.fan_out import FanOut
from custodes.supervision.record.ids import new_id, recordable
from custodes.supervision.work import NO_LIMITS, Budget, Outcome, Work
from custodes.telemetry import SpanHandle

if TYPE_CHECKING:  # a supervision makes conversations, and each needs its tree
    from custodes.supervision.asks.permission_asks import Permissions
    from custodes.supervision.supervision import Supervision
    from custodes.supervision.tree import Tree


class Conversation:
    """One conversation with its children. Made by :meth:`Supervision.conversation`.

    Leaving the block ends every child that still runs, with everything it started, before it returns.
    """

    def __init__(
        self,
        supervision: Supervision,
        conversation_id: str,
        adapter: str,
        dispatch: HostDispatch | None,
        permissions: Permissions | None = None,
    ) -> None:
        self.id: str = recordable("a conversation id", conversation_id)
        if not conversation_id:
            raise ValueError("a conversation id is not empty; any other text would work")
        self.adapter = adapter
        """The runtime the conversation itself runs on: where work below the gate goes; "" for none."""
        self.host_dispatch = dispatch
        self.supervision = supervision
        self.permissions = permissions
        """Its own handler of what runtimes ask leave for; None: the supervision's."""
        self.fan_outs: set[FanOut] = set()
        self.gathering: Gathering = Gathering(conversation_id)
        self._children: Supervisor | None = None
        self._ended = False
        self._span: SpanHandle | None = None
        self._events: EventLog | None = None
        self._starting = anyio.Lock()

    async def __aenter__(self) -> Self:
        self._events = self.supervision.events_of(self.id)
        self._events.holders += 1
        self.supervision.conversations.add(self)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            with anyio.CancelScope(shield=True):
                await self.cancel("its conversation ended")
                self._ended = True
                if self._children is not None:
                    await self._children.stop("its conversation ended")
        finally:
            self.supervision.conversations.discard(self)
            if self._span is not None:
                self._span.end_for(kind)
            if self._events is not None:
                self._events.holders -= 1
                if not self._events.holders:
                    self.supervision.close_events(self._events)

    async def dispatch(self, work: Work) -> Outcome:
        """Do one piece of work and return its outcome.

        Cancelled, the child is ended first, with proof. Where supervision does not apply and the host gave
        its own ``dispatch``, that is called and nothing else happens; its exceptions pass as they are.
        """
        host, supervision = self.host_dispatch, self.supervision
        try:
            left = host and left_to_host(supervision.settings.read(), supervision.module, work.complexity)
        except SettingsError:  # supervision may be on: its refusal says what is wrong
            left = False
        if host is not None and left:
            return await Unsupervised(run_id=new_id(), work=work, dispatch=host).perform()
        async with FanOut(self, name=None, account=Account.of(NO_LIMITS), max_parallel=None) as fan_out:
            fan_out.start(work)
        return fan_out.outcomes[0]

    def fan_out(
        self,
        *,
        name: str = "fan-out",
        budget: Budget | None = None,
        max_parallel: int | None = None,
        carried: Ledger | None = None,
    ) -> FanOut:
        """Children side by side under one budget: ``async with parent.fan_out() as fan: fan.start(work)``.

        ``max_parallel`` narrows what the policy allows; it never widens it. ``carried`` is the ledger of
        an earlier fan-out that this one goes on with: what was spent there counts here.

        :raises TypeError: the name is no text.
        :raises ValueError: the name is no Unicode, or ``max_parallel`` is below 1.
        """
        account = Account.of(budget or NO_LIMITS, carried)
        return FanOut(self, name=name, account=account, max_parallel=max_parallel)

    @property
    def bundle(self) -> EvidenceBundle:
        """What its children have brought so far: a value, which later outcomes do not change."""
        return self.gathering.bundle

    def role_route(self, role: Role, *, complexity: Complexity | None = None) -> Route | None:
        """Where a role's work would go now, for a host that tells its model of it; None: tell it nothing.

        The same predicate and the same routing as a dispatch. None: the policy does not apply (disabled, or
        below the adaptive gate), or nothing could run it. Where supervision is off it is one stat.

        :raises SettingsError: the settings file cannot be read.
        """
        supervision = self.supervision
        snapshot = supervision.settings.read()
        if left_to_host(snapshot, supervision.module, complexity):
            return None
        catalog = Catalog.of(supervision.registry())
        candidates = resolve(RouteRequest(role=role), snapshot.policy, catalog, self.adapter).candidates
        return candidates[0] if candidates else None

    @property
    def recorded_as(self) -> str:
        """The id that its work is on record under: in a process that a child has started, once something was
        asked for, that of its owner's conversation; else its own."""
        client = self.supervision.client
        return self.id if client is None else client.conversation or self.id

    async def cancel(self, reason: str = "cancelled") -> None:
        """End every child of this conversation. Idempotent; returns once all are gone."""
        async with anyio.create_task_group() as cancels:
            for fan_out in self.fan_outs:
                cancels.start_soon(fan_out.cancel, reason)

    def events(self, *, since: int = 0) -> EventStream:
        """What happens in this conversation, typed and numbered; it ends once the conversation has ended.

        ``async with conversation.events() as stream: async for event in stream``. Any number of readers, each
        at its own pace: none ever holds a child up. A reader that falls behind what is kept gets one
        :class:`~custodes.supervision.events.EventsMissed` in place of what it lost.

        Events are made and numbered from when the first reader came, or from the beginning where the
        supervision has an observer.

        :param since: the number of the last event that was read: what came after it is told first. 0 tells
            all that is kept.
        """
        return EventStream(self._events or self.supervision.events_of(self.id), since)

    async def children(self, tree: Tree) -> Supervisor:
        """The supervisor of this conversation's children: started with the first of them, and again after a
        restart of the tree above it, which is waited for. It takes children as this returns.

        :raises ActorError: the tree has stopped for good, or the conversation has ended.

        :meta private: for what starts them
        """
        if self._children is not None and self._children.running:
            return self._children
        async with self._starting:
            while self._children is None or not self._children.running:
                if self._ended:
                    raise ActorStopped(self.id, "its conversation ended")
                above = await tree.conversations()
                spec = ChildSpec(id=new_id(), start=Supervisor, restart="temporary")
                with suppress(ActorStopped):  # it is restarted in the same moment
                    self._children = await above.start_child(spec)
            return self._children

    def span(self, tree: Tree) -> SpanHandle:
        """Begun by the first supervised work: a conversation without any has no span.

        :meta private: for what happens in it
        """
        if self._span is None:
            self._span = tree.services.tracer.conversation(self.id)
        return self._span
