"""Live views: one rendering for all who look at the same thing, sent to each browser as it can take it."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing

import anyio
import msgspec
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from custodes.hub.board import Board, Delta
from custodes.hub.watch import Watch

HEARTBEAT_S = 15.0
"""A stream in which nothing happens says so: proxies and browsers give up on one that is silent."""
SEND_S = 30.0
"""How long a browser may take nothing, in seconds. Then its stream ends; it comes back with what it saw."""
PACE_S = 0.1
SHARE = 2
"""Between two renderings of a view passes at least so many times what one takes: however much happens, the
Hub works a third of the time, and the rest belongs to the work that it shows."""
KEPT = 32
"""Views that nobody looks at and that are kept for who comes back."""
SIGN_OF_LIFE = b":\n\n"
STREAMS = 64
"""At once; every further one is refused."""


class Rendered(msgspec.Struct, frozen=True, kw_only=True):
    """``due_s``: seconds after which it reads otherwise though nothing was written; None for never."""

    texts: Mapping[str, str]
    due_s: float | None = None


Render = Callable[[], Awaitable[Rendered]]


class View:
    def __init__(self, render: Render) -> None:
        self.board: Board = Board()
        self.lookers = 0
        self._render = render
        self._version: int | None = None
        self._due = float("inf")
        self._free = float("-inf")
        self._lock = anyio.Lock()

    async def refresh(self, version: int) -> None:
        """Bring the board up to this version of the project."""
        async with self._lock:
            begun = anyio.current_time()
            if self._version == version and begun < self._due:
                return
            rendered = await self._render()
            ended = anyio.current_time()
            self._version = version
            self._due = float("inf") if rendered.due_s is None else ended + rendered.due_s
            self._free = ended + max(PACE_S, SHARE * (ended - begun))
            self.board.update(rendered.texts)

    @property
    def due_in(self) -> float:
        return max(0.0, self._due - anyio.current_time())

    @property
    def pause(self) -> float:
        """Seconds until it may be rendered again."""
        return max(0.0, self._free - anyio.current_time())


class Views:
    """The views that are looked at, and the last ones that were."""

    def __init__(self, watch: Watch) -> None:
        self.watch = watch
        self._views: OrderedDict[tuple[str, ...], View] = OrderedDict()
        self.closing: anyio.Event = anyio.Event()
        self.streams: int = 0

    def view(self, key: tuple[str, ...], make: Callable[[], View]) -> View:
        """The view of this key: the one there is, or a new one."""
        view = self._views.get(key)
        if view is None:
            view = self._views[key] = make()
            idle = [each for each, kept in self._views.items() if not kept.lookers and each != key]
            for old in idle[: max(0, len(self._views) - KEPT)]:
                del self._views[old]
        self._views.move_to_end(key)
        return view

    async def now(self, view: View) -> Board:
        """The board as the project stands at this moment."""
        await self.watch.look()
        await view.refresh(self.watch.version)
        return view.board

    async def deltas(self, view: View, mark: str) -> AsyncGenerator[tuple[Delta, str] | None]:
        """What is newer than ``mark``, each with the mark that it comes to; None is a sign of life."""
        view.lookers += 1
        try:
            yield None
            while not self.closing.is_set():
                version = self.watch.version
                await view.refresh(version)
                delta = view.board.since(mark)
                if delta:
                    mark = view.board.mark
                    yield delta, mark
                changed = await self.watch.changed(version, min(HEARTBEAT_S, view.due_in))
                if not changed and view.due_in > 0:
                    yield None
                await anyio.sleep(view.pause)
        finally:
            view.lookers -= 1


Encode = Callable[[Delta, str, str], bytes]
"""A delta as events, with the marks that it comes from and to: an event whose mark was seen is never told
again, so the second goes with the last event alone."""


class EventStream(Response):
    """What is newer in a view than ``mark``, as server-sent events. It ends with its asker, with the Hub, and
    where nothing is taken."""

    def __init__(self, views: Views, view: View, mark: str, encode: Encode) -> None:
        super().__init__(media_type="text/event-stream", headers={"x-accel-buffering": "no"})
        del self.headers["content-length"]
        self._views = views
        self._view = view
        self._mark = mark
        self._encode = encode

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002 - ASGI's
        self._views.streams += 1
        try:
            async with anyio.create_task_group() as group:
                group.start_soon(self._until_gone, receive, group.cancel_scope)
                group.start_soon(self._until_closing, group.cancel_scope)
                await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
                await self._told(send)
                group.cancel_scope.cancel()
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            self._views.streams -= 1

    async def _told(self, send: Send) -> None:
        mark = self._mark
        async with aclosing(self._views.deltas(self._view, mark)) as deltas:
            async for found in deltas:
                frame = SIGN_OF_LIFE
                if found is not None:
                    delta, reached = found
                    frame, mark = self._encode(delta, mark, reached), reached
                with anyio.move_on_after(SEND_S) as slow:
                    await send({"type": "http.response.body", "body": frame, "more_body": True})
                if slow.cancelled_caught:
                    return

    async def _until_gone(self, receive: Receive, scope: anyio.CancelScope) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        scope.cancel()

    async def _until_closing(self, scope: anyio.CancelScope) -> None:
        await self._views.closing.wait()
        scope.cancel()


def frame(data: str, mark: str, event: str = "") -> bytes:
    head = f"event: {event}\n" if event else ""
    lines = "".join(f"data: {line}\n" for line in data.splitlines())
    return f"{head}id: {mark}\n{lines}\n".encode()
