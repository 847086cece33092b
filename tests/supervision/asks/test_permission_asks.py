"""Asks for permission: put to the root at any depth, answered by whoever is first, denied at the deadline."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import anyio
import pytest

import custodes
from custodes.adapters.port import (
    DispatchRequest,
    DispatchResult,
    PermissionAnswer,
    PermissionAsk,
    ProgressSink,
)
from custodes.supervision.asks.operator_ask import OperatorError, answer_in_file, asks_in_file
from custodes.supervision.asks.permission_asks import Permissions
from custodes.supervision.asks.permission_table import AskRow
from custodes.supervision.events import Event, PermissionAnswered, PermissionAsked
from custodes.supervision.record.schema import DATABASE
from custodes.supervision.work import Outcome
from support import scripted
from support.nesting import nesting
from support.works import review

pytestmark = pytest.mark.anyio

SECRET = "curl -H 'Authorization: secret'"  # noqa: S105 - a secret for the test to look for


class Asker:
    """An act that asks for leave, notes the answer, and goes on."""

    def __init__(self) -> None:
        self.answers: list[PermissionAnswer] = []

    async def __call__(self, request: DispatchRequest, progress: ProgressSink) -> DispatchResult:
        assert request.permit is not None
        self.answers.append(await request.permit(PermissionAsk(tool="shell", detail=SECRET)))
        return await scripted.answer(request, progress)


class Asked:
    """An observer that notes the asks, and their answers."""

    def __init__(self) -> None:
        self.begun = anyio.Event()
        self.asks: list[PermissionAsked] = []
        self.answers: list[tuple[str, str]] = []

    def __call__(self, event: Event) -> None:
        if isinstance(event, PermissionAsked):
            self.asks.append(event)
            self.begun.set()
        elif isinstance(event, PermissionAnswered):
            self.answers.append((event.answer, event.by))


def row(project: Path) -> dict[str, Any]:
    with closing(sqlite3.connect(project / DATABASE)) as database:
        database.row_factory = sqlite3.Row
        (found,) = database.execute("SELECT * FROM asks").fetchall()
        return dict(found)


def deciding(answer: Any, seen: list[AskRow]) -> Permissions:
    async def decide(asked: AskRow) -> Any:
        seen.append(asked)
        return answer

    return decide


@pytest.mark.parametrize("answer", ["allow", "deny"])
async def test_the_hosts_handler_decides_and_the_row_keeps_who_and_what_but_no_detail(
    tmp_path: Path, script: scripted.Script, answer: str
) -> None:
    asker, asked, seen = Asker(), Asked(), list[AskRow]()
    script.acts.append(asker)
    async with (
        custodes.Supervision(tmp_path, observer=asked, permissions=deciding(answer, seen)) as supervision,
        supervision.conversation("c") as parent,
    ):
        outcome = await parent.dispatch(review())
    assert outcome.status == "done"
    assert asker.answers == [answer]
    assert [(each.tool, each.detail, each.depth, each.run_id) for each in seen] == [
        ("shell", SECRET, 1, outcome.run_id)
    ]
    assert asked.answers == [(answer, "the host")]
    stored = row(tmp_path)
    assert (stored["answer"], stored["by"], stored["tool"]) == (answer, "the host", "shell")
    assert stored["detail"] == ""
    assert stored["answered"] >= stored["asked"]


async def test_a_conversations_own_handler_comes_before_the_supervisions(
    tmp_path: Path, script: scripted.Script
) -> None:
    asker = Asker()
    script.acts.append(asker)
    async with (
        custodes.Supervision(tmp_path, permissions=deciding("deny", [])) as supervision,
        supervision.conversation("c", permissions=deciding("allow", [])) as parent,
    ):
        await parent.dispatch(review())
    assert asker.answers == ["allow"]


async def test_f13_an_ask_at_depth_3_is_seen_at_the_root_and_denied_at_the_deadline(
    tmp_path: Path, script: scripted.Script
) -> None:
    scripted.configure(tmp_path, max_parallel=1, ask_seconds=1)
    asker, asked, inner = Asker(), Asked(), list[Outcome]()
    script.acts.extend([nesting(tmp_path, review(), outcomes=inner) for _ in range(2)])
    script.acts.append(asker)
    with anyio.fail_after(60):
        async with (
            custodes.Supervision(tmp_path, observer=asked) as supervision,
            supervision.conversation("c") as parent,
        ):
            outcome = await parent.dispatch(review())
    assert outcome.status == "done"
    assert [(each.depth, each.run_id) for each in asked.asks] == [(3, inner[0].run_id)]
    assert asker.answers == ["deny"]
    assert asked.answers == [("deny", "its deadline")]
    assert row(tmp_path)["by"] == "its deadline"


async def test_f13_zero_seconds_deny_at_once_and_ask_nobody(tmp_path: Path, script: scripted.Script) -> None:
    scripted.configure(tmp_path, ask_seconds=0)
    asker, seen = Asker(), list[AskRow]()
    script.acts.append(asker)
    async with (
        custodes.Supervision(tmp_path, permissions=deciding("allow", seen)) as supervision,
        supervision.conversation("c") as parent,
    ):
        await parent.dispatch(review())
    assert asker.answers == ["deny"]
    assert seen == []


@pytest.mark.parametrize("handler", [None, deciding("perhaps", [])])
async def test_another_process_answers_through_the_file(
    tmp_path: Path, script: scripted.Script, handler: Permissions | None
) -> None:
    asker, asked = Asker(), Asked()
    script.acts.append(asker)
    with anyio.fail_after(30):
        async with (
            custodes.Supervision(tmp_path, observer=asked, permissions=handler) as supervision,
            supervision.conversation("c") as parent,
            parent.fan_out() as fan,
        ):
            fan.start(review())
            await asked.begun.wait()
            while not (waiting := await asks_in_file(tmp_path)):  # noqa: ASYNC110 - its row comes after
                await anyio.sleep(0.01)
            assert [(each.id, each.tool, each.detail) for each in waiting] == [
                (asked.asks[0].ask, "shell", SECRET)
            ]
            first = await answer_in_file(tmp_path, waiting[0].id, "allow", "cli", {})
            second = await answer_in_file(tmp_path, waiting[0].id, "deny", "cli", {})
    assert (first.answer, first.by, first.first) == ("allow", "cli", True)
    assert (second.answer, second.by, second.first) == ("allow", "cli", False)
    assert asker.answers == ["allow"]
    assert await asks_in_file(tmp_path) == ()


async def test_a_handler_that_raises_decides_nothing(
    tmp_path: Path, script: scripted.Script, caplog: pytest.LogCaptureFixture
) -> None:
    scripted.configure(tmp_path, ask_seconds=1)
    asker = Asker()
    script.acts.append(asker)

    async def broken(asked: AskRow) -> PermissionAnswer:
        raise RuntimeError("a bug")

    async with (
        custodes.Supervision(tmp_path, permissions=broken) as supervision,
        supervision.conversation("c") as parent,
    ):
        outcome = await parent.dispatch(review())
    assert outcome.status == "done"
    assert asker.answers == ["deny"]
    assert "the handler of permissions raised" in caplog.text


async def test_a_cancelled_attempt_closes_its_ask(tmp_path: Path, script: scripted.Script) -> None:
    asked = Asked()
    script.acts.append(Asker())
    async with (
        custodes.Supervision(tmp_path, observer=asked) as supervision,
        supervision.conversation("c") as parent,
        parent.fan_out() as fan,
    ):
        child = fan.start(review())
        await asked.begun.wait()
        await child.cancel()
    assert asked.answers == [("deny", "the end of its attempt")]
    stored = row(tmp_path)
    assert (stored["answer"], stored["detail"]) == ("deny", "")


async def test_a_child_does_not_answer_and_an_unknown_ask_is_named(
    tmp_path: Path, script: scripted.Script
) -> None:
    async with custodes.Supervision(tmp_path) as supervision, supervision.conversation("c") as parent:
        await parent.dispatch(review())
    with pytest.raises(OperatorError, match="answered at the root"):
        await answer_in_file(tmp_path, "x", "allow", "cli", {"CUSTODES_RUN": "r"})
    with pytest.raises(OperatorError, match="no ask 'x'"):
        await answer_in_file(tmp_path, "x", "allow", "cli", {})
