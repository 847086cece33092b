"""Running a plan: the one executor of its rules. Each step is a child of one fan-out.

A step is written down before it starts and with its end (:mod:`~custodes.supervision.plans.plan_book`), so
that a plan that is killed at any instant can be gone on with:
see :mod:`~custodes.supervision.plans.plan_resume`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import anyio
import msgspec
from anyio.abc import TaskGroup

from custodes.policy.settings import SettingsError
from custodes.store import Connection, StoreError
from custodes.supervision.budgets.account import Account
from custodes.supervision.budgets.budget import Ledger, Spending
from custodes.supervision.bundle import BacktrackTold, EvidenceBundle, Gathering, backtrack_of
from custodes.supervision.child import Child
from custodes.supervision.conversation import Conversation
from custodes.supervision.dispatching.job import Delegated, Frozen, Plain, Unsupervised, left_to_host
from custodes.supervision.fan_out import FanOut
from custodes.supervision.outcomes import cancelled
from custodes.supervision.plans.checkpoints import PlanRow, StepRow, save_plan
from custodes.supervision.plans.plan import Plan, PlanError, Step, check
from custodes.supervision.plans.plan_book import WAIT_S, PlanBook
from custodes.supervision.plans.plan_rules import ready, redone, status_of, unmet, weigh, work_of
from custodes.supervision.record.clock import Now, now, wall_after
from custodes.supervision.record.ids import new_id
from custodes.supervision.record.owner_identity import this_process
from custodes.supervision.work import Outcome, Refusal, Work


class PlanEnd(msgspec.Struct, frozen=True, kw_only=True):
    """What a plan came to: ``outcomes`` in its steps' order, and what it ``spent`` of its budget, earlier
    runs of it included. ``run`` is the id to go on with; "" where it is not on record. ``uncertain`` are the
    steps that an operator has to resolve before they, or what needs them, can be gone on with."""

    outcomes: tuple[Outcome, ...]
    spent: Spending
    bundle: EvidenceBundle
    run: str = ""
    uncertain: tuple[str, ...] = ()


Begun = Callable[[PlanRow], None]
"""Told once the plan is on record."""


async def run_plan(
    parent: Conversation,
    plan: Plan,
    *,
    wait: float | None = None,
    place: Path | None = None,
    begun: Begun | None = None,
) -> PlanEnd:
    """Run every step once those it needs are done; outcomes come in the plan's order.

    A step whose need did not end well is refused and says so. It is on record, and can be gone on with,
    wherever supervision applies to a step of it. Cancelled, every child is ended first and its end recorded.

    :param wait: the ``max_wait`` of steps that state none, in seconds.
    :param place: the file it was read from: going on with it looks whether that has changed.
    :raises PlanError: it cannot be run; nothing was started.
    :raises StoreError: it cannot be put on record; nothing was started.
    """
    if (problem := check(plan)) is not None:
        raise PlanError(problem)
    book = None
    if _is_supervised(parent, plan):
        tree = await parent.supervision.tree()
        at = now().wall
        row = PlanRow(
            id=new_id(),
            conversation=parent.id,
            name=plan.name,
            place=str(place) if place else None,
            digest=plan.digest,
            plan=plan,
            ledger=Ledger(budget=plan.budget, opened_at=0),
            owner=this_process(),
            started=at,
            changed=at,
        )

        async def insert(connection: Connection) -> None:
            await save_plan(connection, row)

        await tree.database().write(insert, wait_s=WAIT_S)
        book = PlanBook(row, tree.database)
        if begun is not None:
            begun(row)
    return await PlanRun(parent, plan, wait=wait, book=book).perform()


def _is_supervised(parent: Conversation, plan: Plan) -> bool:
    supervision = parent.supervision
    try:
        snapshot = supervision.settings.read()
    except SettingsError:  # each step is refused with it
        return False
    return any(not left_to_host(snapshot, supervision.module, step.complexity) for step in plan.steps)


@dataclass(slots=True, eq=False)
class PlanRun:
    """``rows`` are the steps as far as they got, those of an earlier process among them."""

    parent: Conversation
    asked: Plan
    wait: float | None
    book: PlanBook | None
    rows: dict[str, StepRow] = field(default_factory=dict)
    backtracks: list[BacktrackTold] = field(default_factory=list)
    carried: Ledger | None = None
    _since: Now = field(default_factory=now)
    _plan: Plan = field(init=False)
    _children: dict[str, Child] = field(default_factory=dict)
    _pending: list[BacktrackTold] = field(default_factory=list)
    """Backtracks to follow once nothing of what they run again is running."""

    async def perform(self) -> PlanEnd:
        self._plan = plan = self.asked.unfolded()
        keep = None if self.book is None else self.book.spending
        account = Account.of(plan.budget, self.carried, keep)
        fan = FanOut(self.parent, name=plan.name, account=account, max_parallel=plan.max_parallel)
        if self.book is not None:
            self.book.ledger = lambda: account.ledger
        try:
            async with fan:
                keeping = anyio.CancelScope()
                fan.start_soon(self._keep, account, keeping)
                async with anyio.create_task_group() as watching:
                    for row in tuple(self.rows.values()):
                        if self._says_something_new(row):  # its host died before it could be followed
                            await self._told_by(row)
                    await self._start_ready(fan, watching)
                keeping.cancel()
        finally:
            with anyio.CancelScope(shield=True):
                await self._close()
        outcomes = tuple(each for row in self._in_order() if (each := row.outcome) is not None)
        return PlanEnd(
            outcomes=outcomes,
            spent=fan.spent,
            bundle=Gathering.of(self.parent.id, outcomes, self.backtracks).bundle,
            run=self.book.row.id if self.book else "",
            uncertain=tuple(row.step for row in self._in_order() if row.uncertain),
        )

    async def _keep(self, account: Account, scope: anyio.CancelScope) -> None:
        """While its steps run, too, the record has what is spent and set aside."""
        with scope:
            if self.book is not None:
                await account.follow(self.book.spending)

    async def _start_ready(self, fan: FanOut, watching: TaskGroup) -> None:
        """Start what may start, in the plan's order, once it is on record that it does."""
        while steps := ready(self._plan, self.rows, self._held()):
            frozen = [(step, *self._frozen(step, fan)) for step in steps]
            rows = [self._begun(step, run_id, what) for step, run_id, _, what in frozen]
            self.rows |= {row.step: row for row in rows}  # before the first wait: nobody else starts them
            lost = await self._on_record(rows)
            for step, run_id, work, what in frozen:
                child = self._children[step.id] = fan.put(run_id, work, lost or what)
                watching.start_soon(self._watch, step, child, fan, watching)

    def _frozen(self, step: Step, fan: FanOut) -> tuple[str, Work, Frozen]:
        work = work_of(step, self.rows, self.backtracks, self.wait)
        if (refusal := unmet(step, self.rows)) is not None:
            return new_id(), work, refusal
        run_id, frozen = fan.freeze(work)
        return run_id, work, frozen

    def _begun(self, step: Step, run_id: str, frozen: Frozen) -> StepRow:
        return StepRow(
            plan=self.book.row.id if self.book else "",
            step=step.id,
            run_id=run_id,
            mutable=step.may_change,
            supervised=not isinstance(frozen, Delegated | Plain | Unsupervised),
            started=self._at(),
        )

    def _at(self) -> float:
        """Wall seconds, by a clock that nobody steps while it runs."""
        return wall_after(self._since, now())

    async def _on_record(self, rows: list[StepRow]) -> Refusal | None:
        """Why these must not start."""
        if self.book is None:
            return None
        try:
            await self.book.starting(rows)
        except StoreError as error:
            reason = f"that it starts cannot be put on record: {error}"
            return Refusal(category="unavailable", reason=reason)
        return None

    async def _watch(self, step: Step, child: Child, fan: FanOut, watching: TaskGroup) -> None:
        outcome = await child.outcome()
        row = self.rows[step.id] = self.rows[step.id].ended_as(outcome, self._at())
        await self._told_by(row)
        await self._start_ready(fan, watching)

    async def _told_by(self, row: StepRow) -> None:
        """Record an end, and what it says of earlier steps."""
        if (told := self._says_something_new(row)) is not None:
            told = weigh(self._plan, told, self.rows, self._taken())
            (self._pending if told.followed else self.backtracks).append(told)
        again = self._go_back()
        for step in again:
            del self.rows[step]
        if self.book is not None:
            await self.book.ended(
                [] if row.step in again else [row], backtracks=tuple(self.backtracks), again=again
            )

    def _says_something_new(self, row: StepRow) -> BacktrackTold | None:
        told = backtrack_of(row.outcome) if row.outcome is not None else None
        heard = {each.run_id for each in (*self.backtracks, *self._pending)}
        return told if told is not None and told.run_id not in heard else None

    def _go_back(self) -> frozenset[str]:
        """The steps to run again: those of every pending backtrack, once none of them is running."""
        held = self._held()
        if not held or any(row.status == "running" for step, row in self.rows.items() if step in held):
            return frozenset()
        taken = self._taken() - len(self._pending)
        pending = [weigh(self._plan, told, self.rows, taken + n) for n, told in enumerate(self._pending)]
        self._pending.clear()
        self.backtracks += pending
        again = [redone(self._plan, told) for told in pending if told.followed]
        return frozenset().union(*again) & self.rows.keys()

    def _held(self) -> frozenset[str]:
        return frozenset().union(*(redone(self._plan, told) for told in self._pending))

    def _taken(self) -> int:
        return len(self._pending) + sum(told.followed for told in self.backtracks)

    async def _close(self) -> None:
        """Whatever way it ended: the end of each child that nobody watched any more, and of the plan."""
        at, plan = self._at(), self._plan
        ends: list[StepRow] = []
        for step, row in self.rows.items():
            if row.status == "running":
                child = self._children.get(step)
                if child is not None and child.run_id == row.run_id and child.result is not None:
                    ends.append(row.ended_as(child.result, at))
                else:  # it was cancelled before it was asked for
                    asked = next(each for each in plan.steps if each.id == step)
                    work = Work(role=asked.role, prompt=asked.prompt, name=step)
                    ends.append(row.ended_as(cancelled(row.run_id, work), at))
        self.rows |= {row.step: row for row in ends}
        if self.book is not None:
            await self.book.close(status_of(plan, self.rows), ends)

    def _in_order(self) -> list[StepRow]:
        return [self.rows[step.id] for step in self._plan.steps if step.id in self.rows]
