"""What a program asks leave for while it runs: put to whoever decides, and the answer given to the program.

A listener puts each ask as it hears it; `Asks.run` goes on beside the program and waits for the answers.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

import anyio
import msgspec

from custodes.adapters.port import PermissionAnswer, PermissionAsk, Permit

MAX_ASKED = 10_000
"""Asks of one program that are answered. One that asks for more is not at work, and may not even listen."""
MAX_OPEN = 64
"""Asks that may wait at once. One program's worth is a few; what is over that is denied."""
MAX_DETAIL = 2_000
MAX_TOOL = 100
"""Characters."""
_TELLING = ("command", "file_path", "notebook_path", "path", "url")
"""The fields of a tool's input that say most by themselves."""

Answered = Callable[[PermissionAnswer], None]


class Asks:
    """The asks of one program. ``permit`` None: each is denied."""

    def __init__(self, permit: Permit | None) -> None:
        self._permit = permit
        self._new: deque[tuple[PermissionAsk, Answered]] = deque()
        self._open = 0
        self._more = anyio.Event()

    def put(self, ask: PermissionAsk, answered: Answered) -> None:
        """Returns at once. ``answered`` is called with what was decided: now, where nobody is asked, and
        never once `run` has ended."""
        if self._permit is None or self._open >= MAX_OPEN:
            answered("deny")
            return
        self._open += 1
        self._new.append((ask, answered))
        self._more.set()

    async def run(self) -> None:
        """Ask, all at once and each in its own task, until cancelled."""
        async with anyio.create_task_group() as group:
            while True:
                await self._more.wait()
                self._more = anyio.Event()
                while self._new:
                    group.start_soon(self._decide, *self._new.popleft())

    async def _decide(self, ask: PermissionAsk, answered: Answered) -> None:
        assert self._permit is not None  # noqa: S101 - for the type checker; put() keeps none otherwise
        said = await self._permit(ask)
        self._open -= 1
        answered("allow" if said == "allow" else "deny")


def asked(tool: str, given: Mapping[str, Any], otherwise: str = "") -> PermissionAsk:
    """An ask by a tool's name and its input: what tells most first, the rest of it after that as JSON.

    :param otherwise: what is shown where it has no input.
    """
    telling = next((name for name in _TELLING if isinstance(given.get(name), str)), None)
    rest = {name: value for name, value in given.items() if name != telling}
    words = [given[telling]] if telling else []
    words += [msgspec.json.encode(rest).decode()] if rest else []
    return PermissionAsk(tool=tool[:MAX_TOOL], detail=_bounded("\n".join(words) or otherwise))


def _bounded(detail: str) -> str:
    """Cut off where it is too long, and saying so: what is not shown must not look as if it were nothing."""
    if len(detail) <= MAX_DETAIL:
        return detail
    kept = MAX_DETAIL - 40
    return f"{detail[:kept]} … [{len(detail) - kept} more characters]"
