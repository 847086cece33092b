"""What no supervisor may handle (^C and its kind) takes the whole tree down, and hangs nobody."""

from __future__ import annotations

import pytest
from anyio import create_task_group, fail_after, sleep_forever, wait_all_tasks_blocked

from custodes.actors import ActorError, ActorRef, ChildSpec, Supervisor
from support.actors import AT_ONCE, Crash, Hang, Journal, Worker

pytestmark = pytest.mark.anyio


class Fatal(BaseException):
    """As ^C is: not an ``Exception``."""


async def expect_error(ref: ActorRef, errors: list[str]) -> None:
    try:
        await ref.ask(Hang())
    except ActorError as error:
        errors.append(error.path)


@pytest.mark.parametrize("victim", ["static", "dynamic", "nested"])
async def test_a_fatal_exception_takes_the_tree_down_and_comes_out(victim: str) -> None:
    journal = Journal()
    errors: list[str] = []
    specs = [journal.spec("static"), journal.spec("other"), ChildSpec(id="below", start=Supervisor)]

    async def host() -> None:
        async with create_task_group() as tasks, Supervisor(specs, intensity=AT_ONCE) as root:
            refs = {
                "static": root.ref("static"),
                "dynamic": await root.start_child(journal.spec("dynamic")),
                "nested": await root.supervisor("below").start_child(ChildSpec(id="nested", start=Worker)),
            }
            for ref in (root.ref("other"), *(ref for name, ref in refs.items() if name != victim)):
                tasks.start_soon(expect_error, ref, errors)
            await wait_all_tasks_blocked()
            refs[victim].tell(Crash(Fatal()))
            await sleep_forever()

    with fail_after(5), pytest.raises(BaseExceptionGroup) as group:
        await host()
    assert group.value.subgroup(Fatal) is not None
    starts = [line for line in journal.take() if line.startswith("start")]
    assert len(starts) == 3, "nobody was restarted"
    assert len(errors) in {0, 3}, "the host's own tasks are cancelled first, or hear of it"
