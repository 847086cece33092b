"""What a conversation tells those who listen: through real settings, adapters and store."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import pytest

import custodes
from custodes.adapters.port import DispatchRequest, DispatchResult, Progress, ProgressSink
from custodes.supervision import fan_out
from custodes.supervision.events import (
    AttemptProgress,
    AttemptRefused,
    AttemptStarted,
    ChildEnded,
    ChildQueued,
    ChildWaiting,
    Event,
    EventsMissed,
)
from custodes.supervision.work import Work
from support import scripted

pytestmark = pytest.mark.anyio


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> scripted.Script:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return scripted.install(tmp_path, "one", "two")


def review(**fields: Any) -> Work:
    return Work(role="reviewer", prompt="look", **fields)


Told = list[Event | EventsMissed]


async def read(conversation: custodes.Conversation, into: Told, *, since: int = 0) -> None:
    async with conversation.events(since=since) as stream:
        async for event in stream:
            into.append(event)


def kinds(told: Told) -> list[str]:
    return [type(event).__name__ for event in told if not isinstance(event, AttemptProgress)]


async def test_readers_and_the_observer_hear_the_same_events_and_end_with_the_conversation(
    tmp_path: Path, script: scripted.Script
) -> None:
    observed: list[Event] = []
    first: Told = []
    second: Told = []
    async with (
        custodes.Supervision(tmp_path, observer=observed.append) as supervision,
        anyio.create_task_group() as group,
    ):
        async with supervision.conversation("c") as parent:
            group.start_soon(read, parent, first)
            group.start_soon(read, parent, second)
            await parent.dispatch(review())
    assert first == second == observed
    assert [event.sequence for event in first] == list(range(1, len(first) + 1))
    assert kinds(first) == ["ChildQueued", "AttemptStarted", "AttemptEnded", "ChildEnded"]


async def test_each_conversation_has_numbers_of_its_own(tmp_path: Path, script: scripted.Script) -> None:
    observed: list[Event] = []
    async with custodes.Supervision(tmp_path, observer=observed.append) as supervision:
        async with supervision.conversation("a") as a, supervision.conversation("b") as b:
            await a.dispatch(review())
            await b.dispatch(review())
    for name in "ab":
        own = [event.sequence for event in observed if event.conversation == name]
        assert own == list(range(1, len(own) + 1))


async def test_two_handles_of_a_conversation_share_its_stream_which_ends_with_the_last(
    tmp_path: Path, script: scripted.Script
) -> None:
    told: Told = []
    async with custodes.Supervision(tmp_path) as supervision, anyio.create_task_group() as group:
        async with supervision.conversation("c") as one:
            group.start_soon(read, one, told)
            await anyio.wait_all_tasks_blocked()
            async with supervision.conversation("c") as other:
                await other.dispatch(review())
            await one.dispatch(review())
    assert kinds(told).count("ChildEnded") == 2


async def test_a_reader_that_stands_still_holds_no_child_up(tmp_path: Path, script: scripted.Script) -> None:
    async def chatter(request: DispatchRequest, progress: ProgressSink) -> DispatchResult:
        for _ in range(100):
            progress(Progress(kind="output", chars=1))
        return await scripted.answer(request, progress)

    script.acts.append(chatter)
    async with custodes.Supervision(tmp_path, events_kept=8) as supervision:
        async with supervision.conversation("c") as parent, parent.events() as still:
            outcome = await parent.dispatch(review())
            missed = await anext(still)
            following = await anext(still)
    assert outcome.status == "done"
    assert isinstance(missed, EventsMissed)
    assert missed.first == 1
    assert following.sequence == missed.last + 1


async def test_what_was_kept_can_be_read_from_a_number_on_after_the_end(
    tmp_path: Path, script: scripted.Script
) -> None:
    async with custodes.Supervision(tmp_path) as supervision, supervision.conversation("c") as parent:
        async with parent.events() as stream:
            await parent.dispatch(review())
            begun = await anext(stream)
        await parent.dispatch(review())
    told: Told = []
    await read(parent, told, since=begun.sequence)
    assert told[0].sequence == begun.sequence + 1
    assert kinds(told).count("ChildEnded") == 2


async def test_a_refusal_is_told_with_its_pools_before_the_wait_and_before_the_end(
    tmp_path: Path, script: scripted.Script
) -> None:
    script.acts.append(scripted.limit(retry_after_s=1))
    told: Told = []
    async with custodes.Supervision(tmp_path) as supervision, anyio.create_task_group() as group:
        async with supervision.conversation("c") as parent:
            await parent.dispatch(review())
            group.start_soon(read, parent, told)
            await anyio.wait_all_tasks_blocked()
            waited = await parent.dispatch(review(wait=30))
            script.acts.append(scripted.limit(retry_after_s=60))
            await parent.dispatch(review())
            ended = await parent.dispatch(review(wait=30))
    assert (waited.status, ended.status) == ("done", "refused")
    refused = [at for at, event in enumerate(told) if isinstance(event, AttemptRefused)]
    for at in refused:
        event = told[at]
        assert isinstance(event, AttemptRefused)
        assert [wait.pool for wait in event.refusal.waiting] == ["one:large"]
    assert {type(told[at + 1]) for at in refused} == {ChildWaiting, ChildEnded}


def counted(made: list[str]) -> Any:
    def make(kind: type[Event]) -> Any:
        def event(**fields: Any) -> Event:
            made.append(kind.__name__)
            return kind(**fields)

        event.__name__ = kind.__name__
        return event

    return make


@pytest.mark.parametrize("reader", [False, True], ids=["nobody listens", "one reader"])
async def test_no_event_is_made_where_nobody_listens(
    tmp_path: Path, script: scripted.Script, monkeypatch: pytest.MonkeyPatch, reader: bool
) -> None:
    made: list[str] = []
    make = counted(made)
    for kind in (ChildQueued, ChildEnded):
        monkeypatch.setattr(fan_out, kind.__name__, make(kind))
    monkeypatch.setattr("custodes.supervision.dispatching.attempt.AttemptStarted", make(AttemptStarted))

    async def host(work: Work) -> str:
        return "native"

    async with custodes.Supervision(tmp_path) as supervision:
        async with supervision.conversation("c", dispatch=host) as parent:
            if reader:
                async with parent.events():
                    pass
            await parent.dispatch(review())
            scripted.configure(tmp_path, enabled=False)
            alone = await parent.dispatch(review())
            async with parent.fan_out() as fan:
                fan.start(review())
    assert alone.native == fan.outcomes[0].native == "native"
    # What the host's own dispatch does alone is no event for anybody; a fan-out's children are.
    heard = ["ChildQueued", "AttemptStarted", "ChildEnded", "ChildQueued", "ChildEnded"]
    assert made == (heard if reader else [])
