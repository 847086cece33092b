"""What a program asks leave for: put, waited for, answered."""

from __future__ import annotations

from functools import partial

import anyio
import pytest

from custodes.adapters.asks import MAX_DETAIL, MAX_OPEN, Asks, asked
from custodes.adapters.port import PermissionAnswer, PermissionAsk

ASK = PermissionAsk(tool="Bash", detail="rm -r build")


class Person:
    """Answers when told to, in any order."""

    def __init__(self) -> None:
        self.waiting: dict[str, anyio.Event] = {}
        self.answers: dict[str, PermissionAnswer] = {}

    async def permit(self, ask: PermissionAsk) -> PermissionAnswer:
        self.waiting[ask.detail] = anyio.Event()
        await self.waiting[ask.detail].wait()
        return self.answers[ask.detail]

    def says(self, detail: str, answer: PermissionAnswer) -> None:
        self.answers[detail] = answer
        self.waiting[detail].set()


def test_with_nobody_to_ask_it_is_denied_at_once() -> None:
    heard: list[PermissionAnswer] = []
    Asks(None).put(ASK, heard.append)
    assert heard == ["deny"]


@pytest.mark.anyio
async def test_each_ask_gets_its_own_answer_in_whatever_order_they_come() -> None:
    person = Person()
    heard: list[tuple[str, PermissionAnswer]] = []
    asks = Asks(person.permit)

    def keep(detail: str, said: PermissionAnswer) -> None:
        heard.append((detail, said))

    async with anyio.create_task_group() as group:
        group.start_soon(asks.run)
        for detail in ("first", "second"):
            asks.put(PermissionAsk(tool="Bash", detail=detail), partial(keep, detail))
        await anyio.wait_all_tasks_blocked()
        assert set(person.waiting) == {"first", "second"}
        person.says("second", "allow")
        await anyio.wait_all_tasks_blocked()
        person.says("first", "deny")
        await anyio.wait_all_tasks_blocked()
        group.cancel_scope.cancel()
    assert heard == [("second", "allow"), ("first", "deny")]


@pytest.mark.anyio
async def test_an_answer_that_is_neither_denies() -> None:
    async def perhaps(ask: PermissionAsk) -> PermissionAnswer:
        return "Allow"  # type: ignore[return-value]  # what a careless handler might give

    heard: list[PermissionAnswer] = []
    asks = Asks(perhaps)
    async with anyio.create_task_group() as group:
        group.start_soon(asks.run)
        asks.put(ASK, heard.append)
        await anyio.wait_all_tasks_blocked()
        group.cancel_scope.cancel()
    assert heard == ["deny"]


@pytest.mark.anyio
async def test_what_still_waits_at_the_end_is_never_answered() -> None:
    person = Person()
    heard: list[PermissionAnswer] = []
    asks = Asks(person.permit)
    async with anyio.create_task_group() as group:
        group.start_soon(asks.run)
        asks.put(ASK, heard.append)
        await anyio.wait_all_tasks_blocked()
        assert person.waiting
        group.cancel_scope.cancel()
    assert heard == []


def test_a_program_that_asks_without_end_is_denied_what_is_over_the_bound() -> None:
    heard: list[PermissionAnswer] = []
    asks = Asks(Person().permit)
    for _ in range(MAX_OPEN + 3):
        asks.put(ASK, heard.append)
    assert heard == ["deny"] * 3


def test_the_command_stands_first_and_the_rest_of_the_input_after_it() -> None:
    ask = asked("Bash", {"timeout": 5, "command": "make", "unsafe": True})
    assert (ask.tool, ask.detail) == ("Bash", 'make\n{"timeout":5,"unsafe":true}')
    assert asked("Write", {"file_path": "a.py", "content": "x"}).detail == 'a.py\n{"content":"x"}'
    assert asked("mcp__x__y", {"n": 1}).detail == '{"n":1}'
    assert asked("execute", {}, "`make`").detail == "`make`"


def test_what_is_too_long_says_that_it_goes_on() -> None:
    detail = asked("Bash", {"command": "echo " + "x" * 5_000 + "; rm -rf ~"}).detail
    assert len(detail) <= MAX_DETAIL
    assert detail.startswith("echo xxx")
    assert detail.endswith("more characters]")
