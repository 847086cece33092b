"""What an actor can be: handlers, inheritance, batches, context."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any

import pytest
import sniffio
from anyio import Event, create_task_group, current_time, lowlevel, wait_all_tasks_blocked

from custodes.actors import (
    Actor,
    ActorCrashed,
    ActorRef,
    ActorStopped,
    BatchActor,
    ChildSpec,
    ContextHooks,
    Message,
    Supervisor,
    UnhandledMessage,
    handles,
)
from support.actors import AT_ONCE, Add, Crash, Finish, Hang, Unknown, Worker

pytestmark = pytest.mark.anyio


async def test_these_tests_run_on_the_loop_they_are_named_for(anyio_backend: str) -> None:
    assert sniffio.current_async_library() == anyio_backend


async def test_handlers_are_inherited_and_may_be_overridden_and_added() -> None:
    class Doubling(Worker):
        async def add(self, message: Add) -> int:
            return 2 * await super().add(message)

        @handles(Unknown)
        async def unknown(self, message: Unknown) -> None:
            self.total = 100

    async with Supervisor([ChildSpec(id="a", start=Doubling)]) as root:
        ref = root.ref("a")
        assert await ref.ask(Add(2)) == 4
        await ref.ask(Unknown())
        assert await ref.ask(Add(0)) == 200


async def test_an_actor_knows_its_place() -> None:
    class Curious(Actor):
        async def receive(self, message: Any) -> object:
            context = self.context
            return context.path, context.ref, context.supervisor, context.restarts

    async with Supervisor([ChildSpec(id="a", start=Curious)], id="top") as root:
        assert await root.ref("a").ask(Add(1)) == ("top/a", root.ref("a"), root, 0)  # type: ignore[comparison-overlap]


async def test_an_actor_that_ends_fails_what_still_waits() -> None:
    async with Supervisor() as root:
        ref = await root.start_child(ChildSpec(id="a", start=Worker, restart="temporary"))
        ref.tell(Finish())
        with pytest.raises(ActorStopped, match=r"root/a: stopped \(normal\)"):
            await ref.ask(Add(1))


# -- Batches


class Adding(BatchActor):
    batch_size = 3

    def __init__(self) -> None:
        self.batches: list[int] = []

    async def receive_batch(self, messages: Sequence[Message[Any]]) -> Sequence[Any]:
        self.batches.append(len(messages))
        for message in messages:
            if isinstance(message, Crash):
                raise message.error
            if isinstance(message, Hang):
                assert message.until is not None
                await message.until.wait()
        if any(isinstance(message, Finish) for message in messages):
            return self.batches
        return [message.amount if isinstance(message, Add) else None for message in messages]


async def test_what_waits_is_one_batch_and_every_answer_goes_to_its_own_asker() -> None:
    adding: list[Adding] = []
    answers: dict[int, int] = {}

    async def ask(ref: ActorRef, amount: int) -> None:
        answers[amount] = await ref.ask(Add(amount))

    def start() -> Adding:
        adding.append(Adding())
        return adding[-1]

    async with Supervisor([ChildSpec(id="a", start=start)]) as root:
        await wait_all_tasks_blocked()
        async with create_task_group() as tasks:
            for amount in range(5):
                tasks.start_soon(ask, root.ref("a"), amount)
        assert answers == {amount: amount for amount in range(5)}
        assert sum(adding[0].batches) == 5
        assert max(adding[0].batches) == Adding.batch_size
        assert root.ref("a").statistics().handled == 5


async def test_a_crash_in_a_batch_is_told_to_every_asker_of_it() -> None:
    errors: list[bool] = []

    async def ask(ref: ActorRef, message: Message[Any]) -> None:
        with pytest.raises(ActorCrashed) as crashed:
            await ref.ask(message)
        errors.append(crashed.value.in_hand)

    async with Supervisor([ChildSpec(id="a", start=Adding)], intensity=AT_ONCE) as root:
        ref = root.ref("a")
        async with create_task_group() as tasks:
            tasks.start_soon(ask, ref, Crash(ValueError()))
            tasks.start_soon(ask, ref, Crash(ValueError()))
        assert errors == [True, True] or sorted(errors) == [False, True]


async def test_a_batch_answered_with_the_wrong_number_is_a_crash() -> None:
    class Forgetful(BatchActor):
        async def receive_batch(self, messages: Sequence[Message[Any]]) -> Sequence[Any]:
            return []

    async with Supervisor([ChildSpec(id="a", start=Forgetful)], intensity=AT_ONCE) as root:
        with pytest.raises(ActorCrashed) as crashed:
            await root.ref("a").ask(Add(1))
        assert "root/a: receive_batch gave 0 answers to 1 messages" in str(crashed.value.__cause__)


async def test_a_batch_actor_without_receive_batch_says_what_it_cannot_handle() -> None:
    async with Supervisor([ChildSpec(id="a", start=BatchActor)], intensity=AT_ONCE) as root:
        with pytest.raises(ActorCrashed) as crashed:
            await root.ref("a").ask(Add(1))
        assert isinstance(crashed.value.__cause__, UnhandledMessage)


# -- Context


current: ContextVar[str] = ContextVar("current", default="none")


@contextmanager
def attached(value: object) -> Iterator[None]:
    token = current.set(str(value))
    try:
        yield
    finally:
        current.reset(token)


class Seeing(Actor):
    def __init__(self) -> None:
        self.at_start = ""

    async def on_start(self) -> None:
        self.at_start = current.get()

    async def receive(self, message: Any) -> object:
        return self.at_start, current.get()


async def test_the_senders_context_is_attached_around_the_handling() -> None:
    hooks = ContextHooks(capture=current.get, attach=attached)
    async with Supervisor([ChildSpec(id="a", start=Seeing)], context=hooks) as root:
        with attached("caller"):
            assert await root.ref("a").ask(Unknown()) == ("none", "caller")  # type: ignore[func-returns-value]
        assert await root.ref("a").ask(Unknown()) == ("none", "none")  # type: ignore[func-returns-value]


async def test_the_starters_context_is_attached_around_on_start_also_below() -> None:
    hooks = ContextHooks(capture=current.get, attach=attached)
    async with Supervisor([ChildSpec(id="below", start=Supervisor)], context=hooks) as root:
        with attached("starter"):
            ref = await root.supervisor("below").start_child(ChildSpec(id="a", start=Seeing))
        assert await ref.ask(Unknown()) == ("starter", "none")  # type: ignore[func-returns-value]


async def test_a_cleanup_is_bounded_from_the_stop_on_not_from_an_earlier_cleanup() -> None:
    """A handler's ``finally`` runs for each message of a long life."""

    class Tidy(Worker):
        async def receive(self, message: object) -> float:
            with self.context.cleanup() as scope:
                return scope.deadline

    async with Supervisor([ChildSpec(id="a", start=Tidy)]) as root:
        ref = root.ref("a")
        first = await ref.ask(Add(1))
        begun = current_time()
        while current_time() == begun:
            await lowlevel.checkpoint()
        assert await ref.ask(Add(1)) > first


async def test_a_context_that_swallows_what_a_handler_raises_answers_none() -> None:
    hooks = ContextHooks(capture=lambda: None, attach=lambda _captured: suppress(ValueError))
    async with Supervisor([ChildSpec(id="a", start=Worker)], context=hooks) as root:
        ref = root.ref("a")
        assert await ref.ask(Add(1)) == 1
        answers: list[object] = [await ref.ask(message) for message in (Add(1), Crash(ValueError()), Add(1))]
        assert answers == [2, None, 3]


async def test_two_handlers_of_one_class_for_one_message_are_refused() -> None:
    with pytest.raises(TypeError, match=r"two handlers for Add: one and two"):

        class Torn(Actor):
            @handles(Add)
            async def one(self, message: Add) -> int:
                return 1

            @handles(Add)
            async def two(self, message: Add) -> int:
                return 2


async def test_what_is_said_in_one_breath_is_one_batch_in_whatever_order_it_is_said() -> None:
    """Who is answered says one thing more, and lets another speak in the next pass of the loop."""
    adding = Adding()

    async def speak(ref: ActorRef, other: Event) -> None:
        await ref.ask(Add(1))
        ref.tell(Add(1))
        other.set()

    async def wait_and_speak(ref: ActorRef, turn: Event) -> None:
        await turn.wait()
        ref.tell(Add(1))

    async with Supervisor([ChildSpec("a", lambda: adding)]) as root, create_task_group() as tasks:
        for _ in range(40):
            turn = Event()
            tasks.start_soon(wait_and_speak, root.ref("a"), turn)
            tasks.start_soon(speak, root.ref("a"), turn)
            await wait_all_tasks_blocked()
    assert adding.batches == [1, 2] * 40
