"""What no supervisor may handle (^C and its kind) stops the whole tree, in order, and comes out as it is."""

from __future__ import annotations

import pytest
from anyio import create_task_group, sleep_forever, wait_all_tasks_blocked

from custodes.actors import ActorError, ActorRef, ChildSpec, Supervisor
from support.actors import AT_ONCE, Crash, Hang, Journal

pytestmark = pytest.mark.anyio


class Fatal(BaseException):
    """As ^C is: not an ``Exception``."""


async def expect_error(ref: ActorRef, errors: list[str]) -> None:
    try:
        await ref.ask(Hang())
    except ActorError as error:
        errors.append(error.path)


@pytest.mark.parametrize("victim", ["static", "dynamic", "nested"])
async def test_a_fatal_exception_stops_the_tree_in_order_and_comes_out(victim: str) -> None:
    journal = Journal()
    errors: list[str] = []
    specs = [journal.spec("static"), journal.spec("other"), ChildSpec(id="below", start=Supervisor)]
    fatal = Fatal()

    async def host() -> None:
        async with create_task_group() as tasks, Supervisor(specs, intensity=AT_ONCE) as root:
            refs = {
                "static": root.ref("static"),
                "dynamic": await root.start_child(journal.spec("dynamic")),
                "nested": await root.supervisor("below").start_child(journal.spec("nested")),
            }
            for ref in (root.ref("other"), *(ref for name, ref in refs.items() if name != victim)):
                tasks.start_soon(expect_error, ref, errors)
            await wait_all_tasks_blocked()
            refs[victim].tell(Crash(fatal))
            await sleep_forever()

    with pytest.raises(BaseExceptionGroup) as group:  # of the host's own task group
        await host()
    assert group.value.exceptions == (fatal,)
    lines = [line.partition(":")[0] for line in journal.take()]
    order = ["dynamic", "nested", "other", "static"]  # dynamic ones first, then in reverse
    assert lines[:4] == ["start static", "start other", "start dynamic", "start nested"], "none was restarted"
    assert lines[4:] == [f"stop {name}" for name in (victim, *(name for name in order if name != victim))]
    assert len(errors) == 3


async def test_a_fatal_exception_of_a_start_callable_at_a_restart_stops_the_tree_in_order() -> None:
    journal = Journal()
    fatal = Fatal()
    first = journal.spec("a")
    starts = iter([first.start])

    def start() -> object:
        for one in starts:
            return one()
        raise fatal

    async def host() -> None:
        async with Supervisor([ChildSpec(id="a", start=start), journal.spec("b")], intensity=AT_ONCE) as root:
            await root.start_child(journal.spec("dynamic"))
            root.ref("a").tell(Crash(ValueError()))
            await sleep_forever()

    with pytest.raises(Fatal):
        await host()
    assert journal.take()[3:] == [
        "stop a: crashed: ValueError",
        "stop dynamic: failed: Fatal",
        "stop b: failed: Fatal",
    ]
