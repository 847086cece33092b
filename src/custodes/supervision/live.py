"""What of this host is at work, for what other processes ask of it."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING

import anyio

from custodes.supervision.asks.permission_asks import Asks

if TYPE_CHECKING:  # they use what is here
    from custodes.supervision.child import Child
    from custodes.supervision.conversation import Conversation
    from custodes.supervision.nesting.nest import Nest


@dataclass(frozen=True, slots=True, kw_only=True)
class Live:
    """``conversations`` are those whose block is open now; ``nests`` are of the attempts that run, by run."""

    conversations: Callable[[], Collection[Conversation]]
    nests: dict[str, Nest]
    asks: Asks

    @property
    def busy(self) -> bool:
        """Whether a child of any conversation has not ended."""
        return any(fan_out.busy for each in self.conversations() for fan_out in each.fan_outs)

    def child(self, run_id: str) -> Child | None:
        """The child of this run, at any depth, while it has not ended."""
        fan_outs = (fan_out for each in self.conversations() for fan_out in each.fan_outs)
        return next((child for fan_out in fan_outs if (child := fan_out.child(run_id)) is not None), None)

    def has(self, target: str) -> bool:
        """Whether the run, or the conversation, is this host's."""
        return self.child(target) is not None or any(each.id == target for each in self.conversations())

    async def cancel(self, target: str, reason: str) -> bool:
        """End the run, or every child of the conversation, and wait until all is gone. False: neither is
        here. Cancelled, the end goes on."""
        if (child := self.child(target)) is not None:
            await child.cancel(reason)
            return True
        named = [each for each in self.conversations() if each.id == target]
        async with anyio.create_task_group() as cancels:
            for conversation in named:
                cancels.start_soon(conversation.cancel, reason)
        return bool(named)
