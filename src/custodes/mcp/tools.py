"""What each tool does: read its call, ask the one service that owns the matter, and hand back a document.

Nothing here knows of the protocol. Every document is the one the command line prints for the same question;
a refusal is a field of an outcome, an error is raised.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

import anyio
import anyio.to_thread
import msgspec

from custodes.adapters.port import PermissionAnswer
from custodes.adapters.registry import Registry
from custodes.mcp import calls
from custodes.overseer import report as overseer_report
from custodes.overseer.by_hand import SwitchOrder
from custodes.overseer.hand_switch import switch_by_hand
from custodes.overseer.reading import default_config
from custodes.policy.arguments import ArgumentsError, read
from custodes.policy.catalog import Catalog
from custodes.policy.overview import overview_of
from custodes.policy.role_info import role_info
from custodes.policy.trigger import complexity_of
from custodes.supervision.asks.operator_ask import (
    OperatorError,
    answer_in_file,
    asks_in_file,
    cancel_in_file,
)
from custodes.supervision.conversation import Conversation
from custodes.supervision.event_words import sentence
from custodes.supervision.events import ChildEnded, ChildQueued, Event
from custodes.supervision.pools.health_file import clear_in_file
from custodes.supervision.pools.health_report import health_report
from custodes.supervision.record.clock import now
from custodes.supervision.record.trace import trace
from custodes.supervision.supervision import Supervision
from custodes.supervision.work import Budget, Work

BY = "mcp"
"""Who it was, in the audit log."""

BEAT_S = 30.0
"""A call in which nothing happens for so many seconds says that it is still at work: some clients give up on
one that is silent."""

Report = Callable[[float, str], Awaitable[None]]
"""Tells the client how far a call is: a number that rises, and a sentence."""


@dataclass(frozen=True, slots=True)
class Tool:
    """``read_only``: it changes nothing, here or elsewhere. ``open_world``: it reaches a provider."""

    name: str
    title: str
    description: str
    call: type[msgspec.Struct]
    read_only: bool = False
    open_world: bool = False


TOOLS = (
    Tool(
        "cos_supervision_config",
        "Supervision policy",
        "Show or change the supervision policy of this project: which adapter, model and effort each role's "
        "work goes to, when that applies, and what happens where it cannot run. A change is checked as a "
        "whole against the adapters before it is written; what could never run is refused with the reason. "
        "The answer is the policy as it then stands, with the adapters and models there are.",
        calls.ConfigCall,
    ),
    Tool(
        "cos_role_info",
        "Roles",
        "The 11 roles that work can be given to: what each is for, and its default tier, effort, timeout and "
        "whether it may change files.",
        calls.RoleInfoCall,
        read_only=True,
    ),
    Tool(
        "cos_health",
        "Model pools",
        "How each model pool stands: healthy, cooling down after a limit, or half open, with the seconds "
        "until it recovers. An operator's clear ends a cooldown early; it is audited.",
        calls.HealthCall,
    ),
    Tool(
        "cos_dispatch",
        "One child",
        "Give one bounded piece of work to a child agent on the runtime that the policy routes it to, and "
        "wait for its outcome: typed evidence, or a failure or refusal that says what to do. Cancelling "
        "the call ends the child and everything it started.",
        calls.DispatchCall,
        open_world=True,
    ),
    Tool(
        "cos_fan_out",
        "Children side by side",
        "Give several independent pieces of work to children at once and wait for all. Each is routed by its "
        "own role; outcomes come back in the order asked, and one that fails takes no other with it. "
        "Cancelling the call ends every child and everything it started.",
        calls.FanOutCall,
        open_world=True,
    ),
    Tool(
        "cos_asks",
        "Asks for permission",
        "What children ask leave for while they work, at any depth, and the way to answer. An ask that "
        "nobody answers by its deadline is denied.",
        calls.AsksCall,
        open_world=True,
    ),
    Tool(
        "cos_cancel",
        "Cancel",
        "End a run with everything it started, or every run of a conversation, whichever process owns it; "
        "returns once that is proven, with what each run came to. What had ended stays as it was.",
        calls.CancelCall,
        open_world=True,
    ),
    Tool(
        "cos_trace",
        "What ran",
        "The attempts of a conversation on record, oldest first: adapter, model, effort, the pool's health "
        "when it was let in, how it ended, tokens and cost.",
        calls.TraceCall,
        read_only=True,
    ),
    Tool(
        "cos_overseer",
        "Provider watch",
        "The watch that moves worker profiles off a provider that limits or fails, and back: how providers "
        "and profiles stand, the incidents, and a switch by hand, which is proven by reading back and "
        "logged. Needs a supervisor.yaml; nothing is asked of a provider.",
        calls.OverseerCall,
        open_world=True,
    ),
)


@dataclass(eq=False)
class _Watched:
    """One call whose children are watched. What was said and not yet told waits in ``said``."""

    names: dict[str, str] = field(default_factory=dict)
    begun: float = field(default_factory=anyio.current_time)
    ended: int = 0
    said: deque[str] = field(default_factory=deque)
    news: anyio.Event = field(default_factory=anyio.Event)
    closed: bool = False

    def close(self) -> None:
        self.closed = True
        self.news.set()

    def see(self, event: Event) -> None:
        if isinstance(event, ChildEnded):
            self.ended += 1
        if (text := sentence(self.names[event.run_id], event)) is not None:
            self.said.append(text)
            self.news.set()

    async def tell(self, report: Report) -> None:
        """Until it is closed and all is told. The number rises each time, as the protocol wants it."""
        told = 0
        while self.said or not self.closed:
            if not self.said:
                with anyio.move_on_after(BEAT_S) as silence:
                    await self.news.wait()
                self.news = anyio.Event()
                if not silence.cancelled_caught:
                    continue
                self.said.append(f"at work for {anyio.current_time() - self.begun:.0f} s")
            told += 1
            of = f"{self.ended} of {len(self.names)} ended; " if len(self.names) > 1 else ""
            await report(told, of + self.said.popleft())


_watched: ContextVar[_Watched] = ContextVar("watched")


class Watch:
    """The observer of a supervision: tells each call of its own children, and of no other's."""

    def __init__(self) -> None:
        self._by_run: dict[str, _Watched] = {}

    def observe(self, event: Event) -> None:
        if isinstance(event, ChildQueued):
            if event.parent_run is None:  # told in the task that asks for the child
                self._by_run[event.run_id] = _watched.get()
            elif event.parent_run in self._by_run:
                self._by_run[event.run_id] = self._by_run[event.parent_run]
            else:
                return
            self._by_run[event.run_id].names[event.run_id] = event.name
        watched = self._by_run.get(event.run_id)
        if watched is not None:
            watched.see(event)
        if isinstance(event, ChildEnded):
            self._by_run.pop(event.run_id, None)


class Tools:
    """The tools of one server: one project, and one conversation for as long as it is served."""

    def __init__(self, supervision: Supervision, conversation: Conversation) -> None:
        self._project = supervision.project
        self._supervision = supervision
        self._conversation = conversation
        self._does: dict[str, Callable[[Any, Report], Awaitable[object]]] = {
            "cos_supervision_config": self._config,
            "cos_role_info": self._role_info,
            "cos_health": self._health,
            "cos_dispatch": self._dispatch,
            "cos_fan_out": self._fan_out,
            "cos_asks": self._asks,
            "cos_cancel": self._cancel,
            "cos_trace": self._trace,
            "cos_overseer": self._overseer,
        }

    async def call(self, name: str, arguments: Mapping[str, Any] | None, report: Report) -> object:
        """The tool's document, to be encoded.

        :raises ArgumentsError: there is no such tool, or it cannot take these arguments.
        :raises SettingsError, StoreError, AdapterError: as the service that was asked.
        """
        tool = next((tool for tool in TOOLS if tool.name == name), None)
        if tool is None:
            raise ArgumentsError(f"there is no tool '{name}'; there are {', '.join(self._does)}")
        return await self._does[name](read(tool.call, arguments), report)

    async def _config(self, call: calls.ConfigCall, _: Report) -> object:
        if call.action != "set" and call.changes:
            raise ArgumentsError(f"action '{call.action}' takes no change; action 'set' does")
        if call.action == "set" and not call.changes:
            raise ArgumentsError("action 'set' needs a field to set, or `clear`")
        if call.action != "show":
            catalog = Catalog.of(Registry.discover(self._project), readiness=False)
            await anyio.to_thread.run_sync(self._supervision.settings.patch, call.patch(), catalog)
        overview = overview_of(self._project)
        if not call.health:
            return overview
        return {**msgspec.structs.asdict(overview), "health": await health_report(self._project)}

    async def _role_info(self, call: calls.RoleInfoCall, _: Report) -> object:
        return {"roles": role_info(call.role)}

    async def _health(self, call: calls.HealthCall, _: Report) -> object:
        if call.action == "show":
            if call.target:
                raise ArgumentsError("action 'show' takes no target; it shows every pool")
            return await health_report(self._project)
        if not call.target:
            raise ArgumentsError("action 'clear' needs a target: ADAPTER, or ADAPTER:BUCKET for one pool")
        return {"target": call.target, "cleared": await clear_in_file(self._project, call.target, BY)}

    async def _dispatch(self, call: calls.DispatchCall, report: Report) -> object:
        async with _told(report):
            outcome = await self._conversation.dispatch(_work(call))
        return {"conversation": self._conversation.recorded_as, **msgspec.structs.asdict(outcome)}

    async def _fan_out(self, call: calls.FanOutCall, report: Report) -> object:
        begun = time.monotonic()
        async with _told(report):
            budget = Budget(**msgspec.structs.asdict(call.budget))
            async with self._conversation.fan_out(
                name=call.name, budget=budget, max_parallel=call.max_parallel
            ) as fan:
                for work in call.children:
                    fan.start(_work(work))
        return {
            "conversation": self._conversation.recorded_as,
            "name": call.name,
            "seconds": round(time.monotonic() - begun, 3),
            "outcomes": fan.outcomes,
            "spent": fan.spent,
        }

    async def _asks(self, call: calls.AsksCall, _: Report) -> object:
        if call.action == "list":
            if call.ask or call.answer:
                raise ArgumentsError("action 'list' takes no ask and no answer; action 'answer' does")
            return {"asks": await asks_in_file(self._project)}
        decisions: dict[str, PermissionAnswer] = {"allow": "allow", "deny": "deny"}
        if not call.ask or call.answer not in decisions:
            raise ArgumentsError("action 'answer' needs an ask, and an answer: allow or deny")
        return await answer_in_file(self._project, call.ask, decisions[call.answer], BY)

    async def _cancel(self, call: calls.CancelCall, _: Report) -> object:
        report = await cancel_in_file(self._project, call.target, BY)
        if report is None:
            raise OperatorError(
                f"no run and no conversation '{call.target}' is on record; cos_trace names runs"
            )
        return report

    async def _trace(self, call: calls.TraceCall, _: Report) -> object:
        return await trace(self._project, call.conversation or self._conversation.recorded_as)

    async def _overseer(self, call: calls.OverseerCall, _: Report) -> object:
        if call.action != "switch" and (call.profile or call.target or call.force or call.was):
            raise ArgumentsError(f"action '{call.action}' switches nothing; action 'switch' does")
        if call.action == "incidents":
            return {"incidents": await overseer_report.incidents(self._project, call.count)}
        config = await default_config()
        if call.action == "status":
            known = await overseer_report.known(self._project, config)
            return overseer_report.status(known, config, now())
        if not call.profile or not call.target:
            raise ArgumentsError(
                "action 'switch' needs a profile, and a target: provider/model, primary or auto"
            )
        order = SwitchOrder(profile=call.profile, target=call.target, by=BY, force=call.force, was=call.was)
        return await switch_by_hand(self._project, config, order)


@asynccontextmanager
async def _told(report: Report) -> AsyncIterator[None]:
    """While the block runs, the client hears of the children that it asks for."""
    watched = _Watched()
    _watched.set(watched)
    async with anyio.create_task_group() as telling:
        telling.start_soon(watched.tell, report)
        yield
        watched.close()


def _work(call: calls.Work) -> Work:
    fields = msgspec.structs.asdict(call)
    return Work(**{**fields, "complexity": complexity_of(call.complexity)})
