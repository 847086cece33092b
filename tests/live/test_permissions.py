"""A runtime that asks for leave really asks, and does what it is told; its user here is one who is asked."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from custodes.adapters.port import PermissionAnswer, PermissionAsk
from live.harness import Drive, Driven, Target, drive, targets
from live.installed import installed
from support.processes import marked

pytestmark = [pytest.mark.live, pytest.mark.anyio]

TARGETS = {key: target for key, target in targets().items() if target.cautious is not None}
COMMAND = "python3 -c \"open('wrote.txt', 'w')\""
"""What no setting of its user's allows, and no mode that writes in its folder."""


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(params=sorted(TARGETS))
def target(request: pytest.FixtureRequest) -> Target:
    return installed(TARGETS[request.param])


class Person:
    """``answer`` None: never a word."""

    def __init__(self, answer: PermissionAnswer | None) -> None:
        self.answer = answer
        self.asks: list[PermissionAsk] = []
        self.heard = anyio.Event()

    async def permit(self, ask: PermissionAsk) -> PermissionAnswer:
        self.asks.append(ask)
        self.heard.set()
        if self.answer is None:
            await anyio.sleep_forever()
        return self.answer or "deny"


async def asked(target: Target, folder: Path, person: Person | None, *, mutable: bool = True) -> Driven:
    permit = person.permit if person else None
    driven = await drive(target, "ask", folder, tool=COMMAND, cautious=True, mutable=mutable, permit=permit)
    assert driven.result is not None
    assert driven.left == []
    return driven


async def test_what_is_allowed_is_done(target: Target, tmp_path: Path) -> None:
    person = Person("allow")
    driven = await asked(target, tmp_path, person)
    assert driven.result is not None
    assert driven.result.failure is None
    assert (driven.work / "wrote.txt").exists()
    assert [ask.detail.splitlines()[0] for ask in person.asks] == [COMMAND]


@pytest.mark.parametrize("person", [Person("deny"), None], ids=["denied", "nobody"])
async def test_what_is_denied_is_not_done(target: Target, person: Person | None, tmp_path: Path) -> None:
    driven = await asked(target, tmp_path, person)
    assert not (driven.work / "wrote.txt").exists()


async def test_work_that_may_not_write_asks_nobody_and_writes_nothing(target: Target, tmp_path: Path) -> None:
    person = Person("allow")
    driven = await asked(target, tmp_path, person, mutable=False)
    assert person.asks == []
    assert not (driven.work / "wrote.txt").exists()


async def test_cancelled_while_it_waits_for_an_answer_leaves_nothing(target: Target, tmp_path: Path) -> None:
    person = Person(None)
    making = Drive(target, "ask", tmp_path, cautious=True, mutable=True, permit=person.permit)
    with making.provider(COMMAND) as provider:
        async with anyio.create_task_group() as group:
            group.start_soon(making.dispatch, provider)
            await person.heard.wait()
            group.cancel_scope.cancel()
    assert marked(making.mark) == []
    assert not (making.work / "wrote.txt").exists()
