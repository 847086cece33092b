"""Children side by side under one budget: asked for in order, launched in order, returned in order."""

from __future__ import annotations

import time
from collections.abc import Callable, Coroutine
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import anyio

from custodes.supervision.budgets.account import Account
from custodes.supervision.budgets.budget import Ledger, Spending
from custodes.supervision.budgets.fan_out_book import FanOutBook
from custodes.supervision.child import Child
from custodes.supervision.dispatching.job import (
    Delegated,
    Frozen,
    Job,
    Plain,
    Resuming,
    Under,
    freeze,
)
from custodes.supervision.dispatching.reserving import unless_short
from custodes.supervision.dispatching.slots import Slots
from custodes.supervision.events import ChildEnded, ChildQueued
from custodes.supervision.launcher import Launcher
from custodes.supervision.outcomes import cancelled
from custodes.supervision.record.ids import new_id, recordable
from custodes.supervision.record.records import Group
from custodes.supervision.work import NO_LIMITS, Outcome, Work
from custodes.telemetry import SpanHandle

if TYPE_CHECKING:  # a conversation makes fan-outs, and each belongs to one
    from custodes.supervision.asks.permission_asks import Permissions
    from custodes.supervision.conversation import Conversation
    from custodes.supervision.tree import Tree


class FanOut:
    """``outcomes`` has one for each child, in the order asked, once the block is left.

    An exception in the block, or a cancel of it, ends every child first and then goes on as it is.
    """

    def __init__(
        self,
        conversation: Conversation,
        *,
        name: str | None,
        account: Account,
        max_parallel: int | None,
    ) -> None:
        self._conversation = conversation
        self._supervision = conversation.supervision
        self._name = name if name is None else recordable("a fan-out's name", name)
        self._account = account
        self._budget = account.ledger.budget
        if max_parallel is not None and max_parallel < 1:
            raise ValueError(f"max_parallel={max_parallel} runs nothing; 1 or more would work")
        self._slots = Slots(max_parallel) if max_parallel else None
        self._children: list[Child] = []
        self._nested: dict[str, list[Child]] = {}
        """By the run that asked for them."""
        self._open = False
        self._unended = 0
        self._span: SpanHandle | None = None
        self._booked = account.booked or self._budget == NO_LIMITS
        self._book: FanOutBook | None = None

    async def __aenter__(self) -> Self:
        # Not before: they belong to a loop.
        self._all_ended = anyio.Event()
        self._account.open()
        self._group = anyio.create_task_group()
        await self._group.__aenter__()
        self._launcher = Launcher(
            conversation=self._conversation,
            account=self._account,
            slots=self._slots,
            group=self._group,
            end=self._end,
            group_of=self._group_of,
            span=self._parent_span,
            open_book=self._begin_book,
        )
        self._group.start_soon(self._see_all_end)
        self._conversation.fan_outs.add(self)
        self._open = True
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open = False
        self._tell_once_all_ended()
        try:
            if isinstance(error, Exception):
                # The host's own exception passes as it is, not inside a group of ours.
                self._group.cancel_scope.cancel()
                await self._group.__aexit__(None, None, None)
            else:
                await self._group.__aexit__(kind, error, trace)
        finally:
            for child in self._children:
                if child.result is None:  # it was never launched
                    self._end(child, cancelled(child.run_id, child.work))
            self._account.close()
            if self._book is not None:
                await self._book.close()
            self._conversation.fan_outs.discard(self)
            if self._span is not None:
                spent = self.spent
                self._span.set(
                    fan_out_size=len(self._children),
                    spent_tokens=int(spent.tokens.spent),
                    spent_usd=spent.usd.spent,
                )
                self._span.end_for(kind)

    def start(self, work: Work) -> Child:
        """Ask for one more child. Work that is refused has an outcome too, in its place."""
        run_id, frozen = self.freeze(work)
        return self.put(run_id, work, frozen)

    @property
    def outcomes(self) -> tuple[Outcome, ...]:
        """:raises RuntimeError: children still run; leave the block first."""
        results = [child.result for child in self._children]
        if any(result is None for result in results):
            raise RuntimeError("children still run; read the outcomes once the block is left")
        return tuple(result for result in results if result is not None)

    @property
    def ledger(self) -> Ledger:
        """The budget's ledger as it stands now: a value, which later spending does not change."""
        return self._account.ledger

    @property
    def spent(self) -> Spending:
        """The ledger's totals now; final once the block is left."""
        return self._account.spending

    @property
    def permissions(self) -> Permissions | None:
        return self._conversation.permissions or self._supervision.permissions

    @property
    def busy(self) -> bool:
        """Whether a child has not ended yet."""
        return self._unended > 0

    def child(self, run_id: str) -> Child | None:
        """The child of this run, at any depth, while it has not ended."""
        every = (self._children, *self._nested.values())
        return next((c for some in every for c in some if c.run_id == run_id and c.result is None), None)

    async def cancel(self, reason: str = "cancelled") -> None:
        """End every child that still runs, and wait until all are gone. Idempotent."""
        async with anyio.create_task_group() as cancels:
            for child in self._children:
                if child.result is None:
                    cancels.start_soon(child.cancel, reason)

    def freeze(
        self, work: Work, run_id: str = "", under: Under | None = None, session: str = ""
    ) -> tuple[str, Frozen]:
        """What the work comes to as things stand now, and the id of its run: a new one where none is given.

        ``under`` is the attempt that it is nested work of, and ``session`` what that runs on itself.

        :meta private: plans and nested work take the steps of :meth:`start` one by one
        """
        run_id, conversation = run_id or new_id(), self._conversation
        return run_id, freeze(
            run_id,
            work,
            settings=self._supervision.settings,
            module=self._supervision.module,
            outlook=self._supervision.outlook,
            conversation=conversation.id,
            session=session or conversation.adapter,
            host=conversation.host_dispatch if under is None else None,
            account=self._account,
            family=self,
            fan_out=self._group_of(run_id),
            under=under,
            client=self._supervision.client,
        )

    def _group_of(self, run_id: str) -> Group | None:
        """What the rows call this fan-out; ``run_id`` is that of the child that is being asked for."""
        if self._name is None:
            return None
        return Group(self._children[0].run_id if self._children else run_id, self._name)

    def put(self, run_id: str, work: Work, frozen: Frozen) -> Child:
        """Queue what was frozen, in order.

        :meta private: see :meth:`freeze`
        """
        if not self._open:
            raise RuntimeError("this fan-out has ended; ask for children inside its block")
        short = None
        if isinstance(frozen, Delegated | Job | Resuming):
            short = self._account.take_child()
        if isinstance(frozen, Delegated) and short is None:
            short = self._account.reserve_stated(run_id, work)
        child = self._asked_for(run_id, work, None)
        self._children.append(child)
        self._launcher.put(child, unless_short(frozen, short))
        return child

    def nest(self, under: Under, run_id: str, work: Work, session: str) -> Child:
        """Start a piece of nested work: at once, beside the children, on the same account.

        :meta private: asked for by the child's process
        """
        _, frozen = self.freeze(work, run_id, under, session)
        counts = isinstance(frozen, Job | Plain | Resuming)
        short = self._account.take_child(under.depth + 1, under.deepest) if counts else None
        child = self._asked_for(run_id, work, under)
        self._nested.setdefault(under.run_id, []).append(child)
        self._group.start_soon(self._launcher.launch, child, unless_short(frozen, short), under.span)
        return child

    def start_soon(self, function: Callable[..., Coroutine[Any, Any, object]], *arguments: object) -> None:
        """Run it beside the children; it belongs to this fan-out, and must not raise.

        :meta private: for what answers the children
        """
        self._group.start_soon(function, *arguments)

    def _asked_for(self, run_id: str, work: Work, under: Under | None) -> Child:
        child = Child(run_id, work, self._cancel_child, None if under is None else under.run_id)
        self._unended += 1
        self._emit(child, ChildQueued, role=work.role, name=work.label, parent_run=child.parent_run)
        return child

    async def _see_all_end(self) -> None:
        """Be there until the block is left and every child has ended: no child outlives a cancelled group,
        and none is waited for by a task of its own."""
        seconds = self._budget.wall_seconds if self._budget.when_spent == "stop" else None
        try:
            if seconds is None:
                await self._launcher.launch_in_order()
                await self._all_ended.wait()
                return
            self._group.start_soon(self._launcher.launch_in_order)
            with anyio.move_on_after(seconds) as within:
                await self._all_ended.wait()
            if within.cancelled_caught:
                await self.cancel("the fan-out's wall seconds are spent")
        except anyio.get_cancelled_exc_class():
            self._launcher.halt()
            with anyio.CancelScope(shield=True):
                async with anyio.create_task_group() as ends:
                    for stop in tuple(self._launcher.stops.values()):
                        ends.start_soon(stop, "its parent was cancelled")
            raise

    async def _cancel_child(self, child: Child, reason: str) -> None:
        stop = self._launcher.stops.get(child.run_id)
        if stop is None:  # not launched yet: it never will be
            self._end(child, cancelled(child.run_id, child.work))
            return
        begun = time.monotonic()
        async with anyio.create_task_group() as ends:  # with its nested work, at every level at once
            ends.start_soon(stop, reason)
            for nested in self._nested.get(child.run_id, ()):
                ends.start_soon(nested.cancel, reason)
        if self._span is not None:
            self._span.cancelled(time.monotonic() - begun)

    def _parent_span(self, tree: Tree) -> SpanHandle:
        conversation = self._conversation.span(tree)
        if self._name is None:
            return conversation
        if self._span is None:
            self._span = tree.services.tracer.fan_out(conversation, self._name, self._budget)
        return self._span

    def _begin_book(self, tree: Tree) -> None:
        group = None if self._booked else self._group_of(self._children[0].run_id)
        if group is not None and self._book is None:
            self._book = FanOutBook.of(group, self._conversation.id, self._account, tree.database)
            self._group.start_soon(self._book.keep, self._all_ended)

    def _end(self, child: Child, outcome: Outcome) -> None:
        if child.end(outcome):
            self._account.release(child.run_id)
            self._launcher.stops.pop(child.run_id, None)
            if child.parent_run is None:
                self._conversation.gathering.add(outcome)
            self._nested.pop(child.run_id, None)
            self._emit(child, ChildEnded, outcome=outcome)
            self._unended -= 1
            self._tell_once_all_ended()

    def _tell_once_all_ended(self) -> None:
        if not self._open and not self._unended:
            self._all_ended.set()

    def _emit(self, child: Child, event: type, **fields: object) -> None:
        self._supervision.emit(event, self._conversation.id, child.run_id, **fields)
