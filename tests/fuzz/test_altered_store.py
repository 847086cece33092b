"""A database that a hand, or another version, has changed: every surface says so in words that help."""

from __future__ import annotations

import io
import sqlite3
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest

from custodes import Supervision
from custodes.cli.app import call
from custodes.hub.documents import ErrorAnswer
from custodes.hub.endpoints import ENDPOINTS
from custodes.hub.pages import ROUTES
from custodes.mcp.tools import TOOLS, Tools
from custodes.store import StoreAltered, StoreError
from custodes.supervision.asks.operator_ask import OperatorError
from custodes.supervision.record.schema import DATABASE, MIGRATIONS
from custodes.supervision.work import Work
from support import scripted
from support.hub import browser


def _tables() -> list[str]:
    with closing(sqlite3.connect(":memory:")) as connection:
        for statement in (each for step in MIGRATIONS for each in step):
            connection.execute(statement)
        return [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]


TABLES = _tables()
CHANGES = (
    *(f"DROP TABLE {name}" for name in TABLES),
    "ALTER TABLE attempts RENAME COLUMN reason TO words",
    "ALTER TABLE overseer_holder RENAME TO was",
    f"PRAGMA user_version = {len(MIGRATIONS) + 1}",
    "PRAGMA user_version = 0",
)
OFTEN = ("DROP TABLE attempts", "DROP TABLE overseer_holder", CHANGES[-2])
EACH = [change if change in OFTEN else pytest.param(change, marks=pytest.mark.full) for change in CHANGES]
COMMANDS = (
    *(("doctor",), ("runs", "list"), ("runs", "show", "r"), ("runs", "asks"), ("runs", "cancel", "r")),
    *(("cognition", "trace", "c"), ("health", "show"), ("health", "clear", "alpha"), ("scopes", "list")),
    *(("scopes", "release", "1"), ("runs", "resolve", "r", "done"), ("supervision", "show", "--health")),
    *(("supervision", "explain", "--role", "analyst"), ("runs", "answer", "a", "deny")),
    *(("dispatch", "--role", "analyst", "p"), ("overseer", "incidents")),
)
CALLS: dict[str, dict[str, Any]] = {
    "cos_health": {},
    "cos_trace": {"conversation": "c"},
    "cos_asks": {},
    "cos_cancel": {"target": "r"},
    "cos_overseer": {"action": "incidents"},
    "cos_supervision_config": {"action": "show", "health": True},
    "cos_dispatch": {"role": "implementer", "prompt": "p", "scope": ["src"]},
    "cos_fan_out": {
        "children": [{"role": "implementer", "prompt": "p", "scope": ["src"]}],
        "budget": {"tokens": 900_000},
    },
}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """One piece of work is on record. Whatever is done with it, no connection is left open."""

    async def work() -> None:
        async with Supervision(folder) as supervision, supervision.conversation("c") as parent:
            await parent.dispatch(Work(role="analyst", prompt="p"))

    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    folder = tmp_path / "project"
    folder.mkdir()
    scripted.install(folder, "alpha", "beta")
    anyio.run(work)
    yield folder
    assert not any(thread.name == "custodes-store" for thread in threading.enumerate())


def altered(project: Path, change: str) -> None:
    with closing(sqlite3.connect(project / DATABASE, isolation_level=None)) as connection:
        connection.execute(change)


@pytest.mark.anyio
@pytest.mark.parametrize("change", EACH)
async def test_the_hub_answers_each_question_or_says_what_is_wrong(project: Path, change: str) -> None:
    async with browser(project) as page:
        await page.get("/api/runs")  # it has the file open while it is changed
        altered(project, change)
        paths = [each.path for each in ENDPOINTS if each.method == "GET" and not each.stream]
        for path in (*paths, *(route.path for route in ROUTES if "GET" in (route.methods or ()))):
            asked = path.replace("{id}", "r").replace("{session}", "c")
            answer = await page.get(asked)
            assert answer.status_code in (200, 303, 400, 404, 422, 503), (path, answer.text)
            if answer.status_code == 503 and path.startswith("/api"):
                error = msgspec.json.decode(answer.content, type=ErrorAnswer).error
                assert error.kind == "store"
                assert helps(error.message)


def helps(words: str) -> bool:
    return any(each in words for each in ("moved away", "move the file away", "`cos doctor`"))


@pytest.mark.anyio
@pytest.mark.parametrize("change", EACH)
async def test_a_tool_answers_or_says_what_is_wrong(project: Path, change: str) -> None:
    async def report(progress: float, message: str) -> None:
        pass

    with suppress(StoreAltered):  # at the end the tree's own last words find it, too
        async with Supervision(project) as supervision, supervision.conversation("m") as parent:
            tools = Tools(supervision, parent)
            await tools.call("cos_health", {}, report)
            altered(project, change)
            for tool in TOOLS:
                try:
                    await tools.call(tool.name, CALLS.get(tool.name, {}), report)
                except (OperatorError, StoreError) as error:
                    assert isinstance(error, OperatorError) or helps(str(error))  # noqa: PT017 - some answer


@pytest.mark.parametrize("change", EACH)
def test_a_command_ends_in_a_documented_way(
    project: Path, change: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(project)
    altered(project, change)
    for command in COMMANDS:
        out, err = io.TextIOWrapper(io.BytesIO(), "utf-8"), io.TextIOWrapper(io.BytesIO(), "utf-8")
        with monkeypatch.context() as patch:
            patch.setattr(sys, "stdin", io.StringIO(""))
            patch.setattr(sys, "stdout", out)
            patch.setattr(sys, "stderr", err)
            code = call(command)
        said = (out.buffer.getvalue() + err.buffer.getvalue()).decode()
        assert code in (0, 1, 2), (command, said)
        assert "Traceback" not in said, (command, said)
        assert "internal" not in said, (command, said)
        if command == ("doctor",) and change != "PRAGMA user_version = 0":
            assert code == 1, said
