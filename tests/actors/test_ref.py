"""tell, ask and join: what is answered, and that nothing hangs."""

from __future__ import annotations

import msgspec
import pytest
from anyio import CancelScope, Event, create_task_group, fail_after, wait_all_tasks_blocked

from custodes.actors import (
    ActorCrashed,
    ActorError,
    ActorRef,
    ActorStopped,
    AskTimeout,
    ChildEnd,
    ChildSpec,
    MailboxFull,
    Message,
    Supervisor,
    UnhandledMessage,
)
from support.actors import AT_ONCE, Add, Crash, Finish, Hang, Journal, Unknown, Worker

pytestmark = pytest.mark.anyio

WORKER = ChildSpec(id="worker", start=Worker)


async def test_an_ask_is_answered_with_what_the_handler_returned() -> None:
    async with Supervisor([WORKER]) as root:
        ref = root.ref("worker")
        answer: int = await ref.ask(Add(2))
        assert answer == 2
        assert await ref.ask(Add(3)) == 5


async def test_messages_are_handled_in_the_order_they_were_put() -> None:
    async with Supervisor([WORKER]) as root:
        ref = root.ref("worker")
        ref.tell(Add(1))
        ref.tell(Add(10))
        assert await ref.ask(Add(100)) == 111


async def test_a_struct_may_be_a_message() -> None:
    class AddStruct(msgspec.Struct, Message[int], frozen=True):
        amount: int

    class Structured(Worker):
        async def receive(self, message: object) -> object:
            if isinstance(message, AddStruct):
                return message.amount
            return await super().receive(message)

    async with Supervisor([ChildSpec(id="worker", start=Structured)]) as root:
        assert await root.ref("worker").ask(AddStruct(7)) == 7
        assert await root.ref("worker").ask(Add(1)) == 1


async def test_a_full_mailbox_refuses_at_once_and_says_so() -> None:
    async with Supervisor([WORKER]) as root, create_task_group() as tasks:
        ref = root.ref("worker")
        tasks.start_soon(_stopped, ref, Hang())
        await wait_all_tasks_blocked()
        for _ in range(Worker.mailbox_size):
            ref.tell(Add(1))
        with pytest.raises(MailboxFull, match="root/worker: the mailbox is full") as refused:
            ref.tell(Add(1))
        with pytest.raises(MailboxFull):
            await ref.ask(Add(1))
        assert refused.value.capacity == Worker.mailbox_size
        assert ref.statistics().refused == 2
        await root.stop()


async def _stopped(ref: ActorRef, message: Message[object]) -> None:
    with pytest.raises(ActorStopped):
        await ref.ask(message)


async def test_a_message_type_without_a_handler_is_the_senders_error() -> None:
    async with Supervisor([WORKER]) as root:
        ref = root.ref("worker")
        with pytest.raises(
            UnhandledMessage, match="root/worker: does not handle Unknown; it handles Add, "
        ) as error:
            await ref.ask(Unknown())
        assert error.value.path == "root/worker"
        ref.tell(Unknown())
        assert await ref.ask(Add(1)) == 1
        statistics = ref.statistics()
        assert (statistics.unhandled, statistics.restarts) == (2, 0)


async def test_an_unhandled_message_of_another_actor_is_a_crash_of_the_one_that_asked() -> None:
    class Forwarding(Worker):
        async def receive(self, message: object) -> object:
            return await self.context.supervisor.ref("worker").ask(Unknown())

    specs = [WORKER, ChildSpec(id="forwarding", start=Forwarding)]
    async with Supervisor(specs, intensity=AT_ONCE) as root:
        with pytest.raises(ActorCrashed) as crashed:
            await root.ref("forwarding").ask(Add(1))
        assert isinstance(crashed.value.__cause__, UnhandledMessage)


async def test_a_crash_ends_the_ask_in_hand_and_those_that_wait_at_once() -> None:
    error = ValueError("the cause")
    crashes: list[ActorCrashed] = []

    async def ask(ref: ActorRef, message: Message[object]) -> None:
        with pytest.raises(ActorCrashed) as crashed:
            await ref.ask(message)
        crashes.append(crashed.value)

    async with Supervisor([WORKER], intensity=AT_ONCE) as root:
        ref = root.ref("worker")
        async with create_task_group() as tasks:
            tasks.start_soon(ask, ref, Crash(error))
            await wait_all_tasks_blocked()
        async with create_task_group() as tasks:
            until = Event()
            ref.tell(Hang(until))
            await wait_all_tasks_blocked()
            tasks.start_soon(ask, ref, Crash(error))
            await wait_all_tasks_blocked()
            tasks.start_soon(ask, ref, Add(1))
            await wait_all_tasks_blocked()
            until.set()
        assert sorted(crash.in_hand for crash in crashes) == [False, True, True]
        assert [crash.__cause__ for crash in crashes] == [error] * 3
        assert await ref.ask(Add(1)) == 1, "a new incarnation, whose state is its own"
        assert ref.statistics().undelivered == 1


async def test_an_errors_words_hold_the_type_of_the_cause_and_never_its_text() -> None:
    async with Supervisor([WORKER], intensity=AT_ONCE) as root:
        with pytest.raises(ActorCrashed) as crashed:
            await root.ref("worker").ask(Crash(ValueError("canary")))
        assert "ValueError" in str(crashed.value)
        assert "canary" not in str(crashed.value)


async def test_an_ask_to_a_stopped_actor_is_refused_with_its_path() -> None:
    async with Supervisor([WORKER]) as root:
        ref = root.ref("worker")
        await root.stop_child("worker", "not needed")
        with pytest.raises(ActorStopped, match=r"root/worker: stopped \(not needed\)"):
            ref.tell(Add(1))
        with pytest.raises(ActorStopped):
            await ref.ask(Add(1))


async def test_a_stop_ends_the_ask_in_hand_and_those_that_wait() -> None:
    async with Supervisor([WORKER]) as root, create_task_group() as tasks:
        ref = root.ref("worker")
        tasks.start_soon(_stopped, ref, Hang())
        tasks.start_soon(_stopped, ref, Hang())
        await wait_all_tasks_blocked()
        await root.stop_child("worker")


async def test_a_cancelled_ask_that_was_not_begun_is_withdrawn() -> None:
    async with Supervisor([WORKER]) as root, create_task_group() as tasks:
        ref = root.ref("worker")
        until = Event()
        ref.tell(Hang(until))
        await wait_all_tasks_blocked()
        with CancelScope() as scope:
            tasks.start_soon(_cancel_when_blocked, scope)
            await ref.ask(Add(100))
        assert scope.cancelled_caught
        assert ref.statistics().mailbox_depth == 0, "and its room is free"
        until.set()
        assert await ref.ask(Add(1)) == 1


async def _cancel_when_blocked(scope: CancelScope) -> None:
    await wait_all_tasks_blocked()
    scope.cancel()


async def test_a_cancelled_ask_in_hand_is_handled_to_its_end() -> None:
    async with Supervisor([WORKER]) as root, create_task_group() as tasks:
        ref = root.ref("worker")
        until = Event()
        with CancelScope() as scope:
            tasks.start_soon(_cancel_when_blocked, scope)
            await ref.ask(Hang(until))
        until.set()
        assert await ref.ask(Add(1)) == 1
        assert ref.statistics().handled == 2


async def test_an_ask_may_be_bounded() -> None:
    async with Supervisor([WORKER]) as root:
        with pytest.raises(AskTimeout, match="root/worker: gave no answer within 0 s") as late:
            await root.ref("worker").ask(Hang(), timeout=0)
        assert isinstance(late.value, TimeoutError)
        assert isinstance(late.value, ActorError)


async def test_an_ask_between_two_incarnations_waits_for_the_next() -> None:
    gate = Event()
    starts: list[int] = []

    class Slow(Worker):
        async def on_start(self) -> None:
            starts.append(self.context.restarts)
            if self.context.restarts:
                await gate.wait()

    answers: list[int] = []

    async def ask(ref: ActorRef) -> None:
        answers.append(await ref.ask(Add(5)))

    async with Supervisor([ChildSpec(id="slow", start=Slow)], intensity=AT_ONCE) as root:
        ref = root.ref("slow")
        ref.tell(Crash(ValueError()))
        await wait_all_tasks_blocked()
        assert starts == [0, 1]
        async with create_task_group() as tasks:
            tasks.start_soon(ask, ref)
            await wait_all_tasks_blocked()
            assert answers == []
            gate.set()
        assert answers == [5]


async def test_an_ask_that_waits_for_a_restart_ends_when_there_is_none() -> None:
    async def never() -> None:
        await Event().wait()

    class Stuck(Worker):
        async def on_start(self) -> None:
            if self.context.restarts:
                await never()

    async with Supervisor([ChildSpec(id="stuck", start=Stuck)], intensity=AT_ONCE) as root:
        ref = root.ref("stuck")
        ref.tell(Crash(ValueError()))
        await wait_all_tasks_blocked()
        async with create_task_group() as tasks:
            tasks.start_soon(_stopped, ref, Add(1))
            await wait_all_tasks_blocked()
            await root.stop_child("stuck")


async def test_join_gives_the_one_terminal_record() -> None:
    journal = Journal()
    async with Supervisor() as root:
        ref = await root.start_child(journal.spec("job", "temporary"))
        await ref.ask(Finish())
        with fail_after(5):
            end = await ref.join()
        assert (end.path, end.outcome, end.reason, end.cause) == ("root/job", "completed", None, None)


async def test_monitors_are_told_the_one_end_of_a_child() -> None:
    ends: list[ChildEnd] = []
    journal = Journal()
    async with Supervisor() as root:
        ref = await root.start_child(journal.spec("job", "temporary"))
        ref.monitor(ends.append)
        ref.monitor(ends.append)
        assert await ref.ask(Add(1)) == 1
        assert ends == []
        await ref.ask(Finish())
        end = await ref.join()
    assert ends == [end, end]


async def test_a_monitor_that_comes_late_is_told_at_once() -> None:
    ends: list[ChildEnd] = []
    async with Supervisor([WORKER]) as root:
        ref = root.ref("worker")
        end = await root.stop_child("worker")
        ref.monitor(ends.append)
        assert ends == [end]


async def test_a_monitor_is_told_once_of_a_child_that_was_restarted() -> None:
    ends: list[ChildEnd] = []
    async with Supervisor([WORKER]) as root:
        ref = root.ref("worker")
        ref.monitor(ends.append)
        with pytest.raises(ActorCrashed):
            await ref.ask(Crash(ValueError()))
        assert await ref.ask(Add(1)) == 1
        assert ends == []
    assert [end.outcome for end in ends] == ["stopped"]


async def test_what_a_monitor_raises_is_logged_and_harms_nobody(caplog: pytest.LogCaptureFixture) -> None:
    def broken(end: ChildEnd) -> None:
        raise ValueError(end.path)

    ends: list[ChildEnd] = []
    async with Supervisor([WORKER]) as root:
        root.ref("worker").monitor(broken)
        root.ref("worker").monitor(ends.append)
    assert len(ends) == 1
    assert "a monitor of root/worker raised" in caplog.text


async def test_a_ref_shows_its_path_and_state() -> None:
    async with Supervisor([WORKER]) as root:
        ref = root.ref("worker")
        assert repr(ref) == "<ActorRef root/worker running>"
    assert repr(ref) == "<ActorRef root/worker ended>"
