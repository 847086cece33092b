from __future__ import annotations

import io
import re
import sys
import time

import pytest

from custodes.cli.tree import View
from custodes.supervision.events import ChildQueued, PermissionAsked
from support.cos import Terminal, limited_and_covered


@pytest.mark.anyio
async def test_a_terminal_shows_children_attempts_pools_and_how_it_ended(
    monkeypatch: pytest.MonkeyPatch, anyio_backend: str
) -> None:
    terminal = Terminal()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setattr(sys, "stdout", terminal)
    view = View("a run", "text")
    async with view.shown():
        view.tell("plan run 1[2]: it stands above the tree")
        for event in limited_and_covered(time.time()):
            view.observe(event)
        view.close()
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", terminal.getvalue())
    assert "plan run 1[2]: it stands above the tree" in text
    last = text[text.rindex("a run") :]
    assert "✓ first" in last
    assert "1. p:x failed: capacity, retry after 60 s: limited" in last
    assert "2. runs on q:y (m), falling back after capacity" in last
    assert "■ second" in last
    assert "cancelled" in last
    assert "p:x" in last
    assert "cooling down, 60 s left" in last
    assert "healthy" in last
    assert "queued as" not in text


@pytest.mark.anyio
async def test_nested_children_stand_below_the_one_that_asked_and_asks_below_their_child(
    monkeypatch: pytest.MonkeyPatch, anyio_backend: str
) -> None:
    terminal = Terminal()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setattr(sys, "stdout", terminal)
    view, at = View("a run", "text"), time.time()
    async with view.shown():
        for run, parent in (("outer", None), ("other", None), ("inner", "outer")):
            view.observe(
                ChildQueued(at=at, conversation="c", run_id=run, role="analyst", name=run, parent_run=parent)
            )
        view.observe(
            PermissionAsked(
                at=at,
                conversation="c",
                run_id="inner",
                ask="id1",
                tool="shell",
                detail="rm -r build\nmake",
                seconds=60,
                depth=2,
            )
        )
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", terminal.getvalue())
    lines = [line.rstrip() for line in text[text.rindex("a run") :].splitlines()]
    outer, inner, asked, command, other = lines[1:6]
    assert outer.startswith("├── · outer")
    assert inner.startswith("│   └── · inner")
    assert asked.startswith("│       ├── asks leave for shell: rm -r build make")
    assert re.search(r"cos runs answer id1 allow\|deny   denied in (60|59) s", command)
    assert other.startswith("└── · other")


@pytest.mark.anyio
async def test_without_a_terminal_each_thing_is_a_plain_line(
    capsys: pytest.CaptureFixture[str], anyio_backend: str
) -> None:
    view = View("a run", "text")
    async with view.shown():
        for event in limited_and_covered(0):
            view.observe(event)
        view.close()
    assert capsys.readouterr().out.splitlines() == [
        "first: queued as analyst",
        "second: queued as analyst",
        "first: runs on p:x (m)",
        "first: p:x failed: capacity, retry after 60 s: limited",
        "first: runs on q:y (m), falling back after capacity",
        "first: done: well",
        "second: cancelled",
    ]


@pytest.mark.anyio
async def test_with_json_and_no_terminal_nothing_stands_beside_the_document(
    capsys: pytest.CaptureFixture[str], anyio_backend: str
) -> None:
    view = View("a run", "json")
    async with view.shown():
        for event in limited_and_covered(0):
            view.observe(event)
        view.close()
    assert tuple(capsys.readouterr()) == ("", "")


class Gone(io.StringIO):
    def write(self, text: str) -> int:
        raise BrokenPipeError


@pytest.mark.anyio
async def test_a_reader_that_goes_away_stops_no_work(
    monkeypatch: pytest.MonkeyPatch, anyio_backend: str
) -> None:
    monkeypatch.setattr(sys, "stdout", Gone())
    view = View("a run", "text")
    async with view.shown():
        for event in limited_and_covered(0):
            view.observe(event)
    assert view.tree.rows["first"].state == "done"


@pytest.mark.anyio
async def test_what_the_work_raises_goes_on(capsys: pytest.CaptureFixture[str], anyio_backend: str) -> None:
    with pytest.raises(FileNotFoundError):
        async with View("a run", "text").shown():
            raise FileNotFoundError
