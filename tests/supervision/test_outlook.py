"""One look at the adapters serves all that ask in one pass of the loop, and no later one."""

from __future__ import annotations

from pathlib import Path

import anyio.lowlevel
import pytest

from custodes.policy.history import Past
from custodes.policy.policy import Policy, Target
from custodes.policy.routing import RouteRequest, resolve
from custodes.supervision.outlook import ROUTES_KEPT, Outlook
from support import scripted

pytestmark = pytest.mark.anyio


def eligible(outlook: Outlook) -> list[str]:
    return [each.id for each in outlook.now().catalog.adapters]


async def test_what_is_asked_in_one_pass_of_the_loop_is_looked_at_once(tmp_path: Path) -> None:
    scripted.install(tmp_path, "one")
    scripted.configure(tmp_path)
    outlook = Outlook(tmp_path)
    assert outlook.now() is outlook.now()


async def test_a_change_is_seen_in_the_next_pass(tmp_path: Path) -> None:
    scripted.install(tmp_path, "one")
    scripted.configure(tmp_path)
    outlook = Outlook(tmp_path)
    assert eligible(outlook) == ["one"]
    (tmp_path / ".coding-os.yaml").write_text("agents: []\n")
    for _ in range(2):  # whoever stood before it in the pass that had begun
        await anyio.lowlevel.checkpoint()
    await anyio.wait_all_tasks_blocked()
    assert eligible(outlook) == []
    (tmp_path / ".coding-os.yaml").write_text("agents: [one]\n")
    await anyio.wait_all_tasks_blocked()
    assert eligible(outlook) == ["one"]


async def test_while_nothing_changes_the_same_view_stands(tmp_path: Path) -> None:
    scripted.install(tmp_path, "one")
    scripted.configure(tmp_path)
    outlook = Outlook(tmp_path)
    view = outlook.now()
    await anyio.wait_all_tasks_blocked()
    assert outlook.now() is view


async def test_a_view_routes_the_same_question_once(tmp_path: Path) -> None:
    scripted.install(tmp_path, "one")
    scripted.configure(tmp_path)
    view = Outlook(tmp_path).now()
    policy = Policy()
    first = view.resolve(RouteRequest(role="reviewer"), policy, "")
    assert view.resolve(RouteRequest(role="reviewer"), policy, "") is first
    assert first == resolve(RouteRequest(role="reviewer"), policy, view.catalog)


async def test_another_policy_role_or_past_is_another_question(tmp_path: Path) -> None:
    scripted.install(tmp_path, "one")
    scripted.configure(tmp_path)
    view = Outlook(tmp_path).now()
    request, policy = RouteRequest(role="reviewer"), Policy()
    first = view.resolve(request, policy, "")
    chosen = Policy(roles={"reviewer": Target(adapter="nobody")})
    assert view.resolve(request, chosen, "").refusal is not None
    assert view.resolve(RouteRequest(role="analyst"), policy, "") is not first
    assert view.resolve(request, policy, "", Past()) is not first
    assert view.resolve(request, policy, "") is first


async def test_a_view_forgets_rather_than_grow(tmp_path: Path) -> None:
    scripted.install(tmp_path, "one")
    scripted.configure(tmp_path)
    view, policy = Outlook(tmp_path).now(), Policy()
    first = view.resolve(RouteRequest(role="reviewer"), policy, "")
    for seconds in range(1, ROUTES_KEPT + 1):
        view.resolve(RouteRequest(role="reviewer", timeout=seconds), policy, "")
    again = view.resolve(RouteRequest(role="reviewer"), policy, "")
    assert again == first
    assert again is not first
