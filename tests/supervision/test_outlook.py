"""One look at the adapters serves all that ask in one pass of the loop, and no later one."""

from __future__ import annotations

from pathlib import Path

import anyio.lowlevel
import pytest

from custodes.supervision.outlook import Outlook
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
