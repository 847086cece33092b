"""Exceeded intensity: one failure, upward, with the history of causes (F17)."""

from __future__ import annotations

import anyio
import pytest
from anyio import create_task_group, wait_all_tasks_blocked

from custodes.actors import (
    ActorCrashed,
    ChildSpec,
    Intensity,
    Supervisor,
    SupervisorFailed,
)
from support.actors import AT_ONCE, Add, Crash, Journal, Worker

pytestmark = pytest.mark.anyio


async def test_exceeded_intensity_fails_the_root_once_with_the_history_of_causes() -> None:
    """F17."""
    journal = Journal()
    causes = [ValueError(number) for number in range(3)]
    intensity = Intensity(restarts=2, period=60, backoff=0)
    with pytest.raises(SupervisorFailed, match="root: more than 2 restarts within 60 s") as failed:  # noqa: PT012  # it is raised by the tree, not by a line
        async with Supervisor([journal.spec("a"), journal.spec("b")], intensity=intensity) as root:
            for cause in causes:
                with pytest.raises(ActorCrashed):
                    await root.ref("b").ask(Crash(cause))
            await anyio.sleep_forever()
    assert list(failed.value.exceptions) == causes
    assert failed.value.path == "root"
    assert causes[0].__notes__ == ["crashed in root/b"]
    assert [line.partition(":")[0] for line in journal.take()[-2:]] == ["stop b", "stop a"]


async def test_a_nested_failure_is_one_crash_for_the_parent() -> None:
    """F17, nested."""

    def nested() -> Supervisor:
        return Supervisor([ChildSpec(id="a", start=Worker)], intensity=Intensity(restarts=0))

    async with Supervisor([ChildSpec(id="nested", start=nested)], intensity=AT_ONCE) as root:
        first = root.supervisor("nested")
        first.ref("a").tell(Crash(ValueError()))
        await wait_all_tasks_blocked()
        second = root.supervisor("nested")
        assert second is not first
        assert await second.ref("a").ask(Add(1)) == 1
        statistics = root.statistics()
        assert statistics.crashes == 1
        [cause] = [crash.cause for crash in root._executor.history]
        assert isinstance(cause, SupervisorFailed)
        assert cause.path == "root/nested"


async def test_run_raises_the_failure_plain() -> None:
    supervisor = Supervisor([ChildSpec(id="a", start=Worker)], intensity=Intensity(restarts=0))
    with pytest.raises(ExceptionGroup) as group:  # noqa: PT012  # it is raised by the tree, not by a line
        async with create_task_group() as tasks:
            root = await tasks.start(supervisor.run)
            root.ref("a").tell(Crash(ValueError()))
    [failure] = group.value.exceptions
    assert isinstance(failure, SupervisorFailed)
