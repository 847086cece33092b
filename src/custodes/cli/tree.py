"""The live tree of a run: what each child does, and how its pools are. Rich on a terminal, lines otherwise.

Rich is imported only when a run really shows a tree.
"""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import AsyncIterator, Iterator
from typing import TYPE_CHECKING

import anyio

from custodes.cli.output import Format, is_terminal, plain, write
from custodes.cli.progress import AttemptRow, PoolRow, Row, Tree, apply, close
from custodes.supervision.event_words import ended, fails, runs, sentence, waits
from custodes.supervision.events import Event

if TYPE_CHECKING:
    from rich.live import Live
    from rich.tree import Tree as RichTree

_REFRESH_S = 0.1
_MARKS = {
    "queued": ("·", "dim"),
    "waiting": ("◌", "yellow"),
    "running": ("●", "cyan"),
    "done": ("✓", "green"),
    "failed": ("✗", "red"),
    "refused": ("✗", "yellow"),
    "cancelled": ("■", "yellow"),
    "skipped": ("-", "dim"),
    "unknown": ("?", "red"),
}
_POOL_STYLES = {"healthy": "green", "cooling_down": "red", "half_open": "yellow"}


class View:
    """Takes the events of a run and shows them. ``tree`` is the state; ``observe`` never raises."""

    def __init__(self, title: str, form: Format) -> None:
        self.title = title
        self.tree = Tree()
        self._form = form
        self._stream = sys.stderr if form == "json" else sys.stdout
        self._live: Live | None = None
        self._started = time.time()
        self._silent = False

    def observe(self, event: Event) -> None:
        self.tree = apply(self.tree, event)
        row = self.tree.rows.get(event.run_id)
        if self._live is None and row is not None:
            self._print(sentence(row.name, event))

    def tell(self, text: str) -> None:
        """A line that belongs to no child: above the tree, where there is one."""
        if self._live is None:
            self._print(text)
            return
        with contextlib.suppress(OSError):
            self._live.console.print(plain(text), markup=False, highlight=False, soft_wrap=True)

    def close(self) -> None:
        """The conversation is over: whatever had not ended was cancelled."""
        before, self.tree = self.tree, close(self.tree)
        if self._live is None:
            for run_id, row in before.rows.items():
                if row.outcome is None:
                    self._print(f"{row.name}: {self.tree.rows[run_id].state}")

    @contextlib.asynccontextmanager
    async def shown(self) -> AsyncIterator[None]:
        """Show progress while the block runs, and its last state once it has ended."""
        if not is_terminal(self._stream):
            yield
            return
        from rich.console import Console
        from rich.live import Live

        live = Live(
            console=Console(file=self._stream),
            auto_refresh=False,
            redirect_stdout=False,  # stderr is: what is logged meanwhile stands above the tree
        )
        with contextlib.suppress(OSError):
            live.start()
        self._live = live
        try:
            async with anyio.create_task_group() as ticking:
                ticking.start_soon(self._tick, live)
                yield
                ticking.cancel_scope.cancel()
        finally:
            live.vertical_overflow = "visible"
            self._draw(live)
            with contextlib.suppress(OSError):
                live.stop()

    async def _tick(self, live: Live) -> None:
        while True:
            self._draw(live)
            await anyio.sleep(_REFRESH_S)

    def _draw(self, live: Live) -> None:
        with contextlib.suppress(OSError):  # a terminal that hung up stops no work
            live.update(self._render(), refresh=True)

    def _print(self, text: str | None) -> None:
        if text is None or self._silent:
            return
        if self._form == "json" and not is_terminal(self._stream):
            return  # a program reads the document; nobody reads the way there
        try:
            write(plain(text), self._stream)
        except OSError:
            self._silent = True  # nobody reads any more; the work goes on

    def _render(self) -> RichTree:
        from rich.text import Text
        from rich.tree import Tree as RichTree

        now = time.time()
        root = RichTree(Text(f"{self.title}  {now - self._started:.1f} s", style="bold"))
        self._add(root, None, now)
        if self.tree.pools:
            pools = root.add(Text("pools", style="bold"))
            for name, pool in self.tree.pools.items():
                pools.add(Text.assemble((f"{name:<24}", ""), (_pool(pool, now), _POOL_STYLES[pool.state])))
        return root

    def _add(self, above: RichTree, run_id: str | None, now: float) -> None:
        """The children that the run asked for, and below each what it asked for itself."""
        from rich.text import Text

        for row in self.tree.below(run_id):
            branch = above.add(Text.assemble(*_row(row, now), no_wrap=True, overflow="ellipsis"))
            for words, style in (*_attempts(row), *_asks(row, now)):
                branch.add(Text(words, style=style, no_wrap=True, overflow="ellipsis"))
            self._add(branch, row.run_id, now)


def _asks(row: Row, now: float) -> Iterator[tuple[str, str]]:
    for ask in row.asks:
        left = max(0.0, ask.at + ask.seconds - now)
        yield f"asks leave for {plain(ask.tool, 40)}: {plain(ask.detail, 120)}", "yellow"
        yield f"  cos runs answer {ask.ask} allow|deny   denied in {left:.0f} s", "yellow"


def _row(row: Row, now: float) -> Iterator[tuple[str, str]]:
    mark, style = _MARKS[row.state]
    yield f"{mark} ", style
    yield f"{plain(row.name, 24):<16} ", "bold"
    yield f"{row.role:<16} ", "dim"
    if row.state == "waiting":
        left = max(0.0, row.until - now) if row.until is not None else None
        yield waits(row.reason, left), style
    elif row.state == "running":
        attempt = row.attempts[-1]
        seen = f", {attempt.chars} characters" if attempt.chars else ""
        tool = f", {plain(attempt.tool, 40)}" if attempt.tool else ""
        yield f"{_runs(attempt)}{seen}{tool}  {now - row.since:.1f} s", style
    else:
        yield plain(_ended(row), 100), style


def _runs(attempt: AttemptRow) -> str:
    return plain(runs(attempt.pool, attempt.model, probe=attempt.probe, covers=attempt.fallback_reason))


def _ended(row: Row) -> str:
    """With the reason, which a line leaves to the report."""
    if row.outcome is None:
        return row.state
    wrong = row.outcome.refusal or row.outcome.failure
    return ended(row.outcome) if wrong is None else f"{ended(row.outcome)}: {wrong.reason}"


def _attempts(row: Row) -> Iterator[tuple[str, str]]:
    """The attempts of a child that needed more than one, or whose only one failed."""
    if len(row.attempts) < 2 and not any(a.failure for a in row.attempts):
        return
    for attempt in row.attempts:
        if attempt.failure is not None:
            yield f"{attempt.number}. {plain(fails(attempt.pool, attempt.failure))}", "red"
        elif attempt.seconds is not None:
            yield f"{attempt.number}. {_runs(attempt)}  {attempt.seconds:.1f} s", "green"


def _pool(pool: PoolRow, now: float) -> str:
    if pool.state == "healthy":
        return "healthy"
    if pool.state == "half_open":
        return "half-open: one probe runs"
    if pool.until is None:
        return "cooling down"
    left = pool.until - now
    return f"cooling down, {left:.0f} s left" if left > 0 else "due for a probe"
