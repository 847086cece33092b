"""What is decided before an agent runs. That it keeps the contract: tests/test_adapter_capacity_errors.py."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from custodes.adapters import Registry
from custodes.adapters.acp import agents
from custodes.adapters.descriptor import Descriptor, Model
from custodes.adapters.port import DispatchRequest, Failure, Progress

pytestmark = pytest.mark.anyio


@pytest.fixture
def descriptor(tmp_path: Path) -> Descriptor:
    return Registry.discover(tmp_path).descriptor("acp")


async def dispatch(
    descriptor: Descriptor, folder: Path, **asked: Any
) -> tuple[Failure | None, list[Progress]]:
    from custodes.adapters.acp.dispatch import runtime

    progress: list[Progress] = []
    plain = DispatchRequest(
        run_id="r", role="reviewer", prompt="x", mutable=False, cwd=str(folder), timeout_s=20
    )
    request = msgspec.structs.replace(plain, **asked)
    return (await runtime(descriptor).dispatch(request, progress.append)).failure, progress


async def test_without_the_extra_it_is_unavailable_and_says_what_to_install(
    descriptor: Descriptor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "acp.schema", None)
    failure, progress = await dispatch(descriptor, tmp_path)
    assert failure is not None
    assert failure.category == "unavailable"
    assert "custodes[acp]" in failure.reason
    assert progress == []


async def test_an_agent_that_is_not_declared_is_named_with_those_that_are(
    descriptor: Descriptor, tmp_path: Path
) -> None:
    failure, _ = await dispatch(descriptor, tmp_path, model="nobody")
    assert failure is not None
    assert failure.category == "invalid"
    assert "'nobody' is not one of its agents; declared: claude-agent" in failure.reason


@pytest.mark.parametrize("script", ["cat", "echo Welcome; exec cat >/dev/null", "exit 0", "exit 3"])
async def test_a_program_that_speaks_no_acp_is_no_success(
    script: str, descriptor: Descriptor, tmp_path: Path
) -> None:
    agent = Model(id="mute", argv=("sh", "-c", script))
    mute = msgspec.structs.replace(descriptor, models=(agent,))
    failure, _ = await dispatch(mute, tmp_path, model="mute", timeout_s=1.0)
    assert failure is not None
    assert failure.category in ("timeout", "provider")
    assert failure.outcome == "unknown"


async def test_a_missing_agent_is_unavailable(descriptor: Descriptor, tmp_path: Path) -> None:
    gone = msgspec.structs.replace(descriptor, models=(Model(id="gone", argv=("no-such-agent-anywhere",)),))
    failure, _ = await dispatch(gone, tmp_path, model="gone")
    assert failure is not None
    assert (failure.category, failure.outcome) == ("unavailable", "known_failed")


def test_an_agent_gets_its_own_login_and_no_others() -> None:
    ours = {"ANTHROPIC_API_KEY": "a", "OPENAI_API_KEY": "b", "AWS_SECRET_ACCESS_KEY": "c"}
    assert "ANTHROPIC_API_KEY" in agents.environment(agents.known(["claude-agent-acp"]), ours)
    assert set(ours) & set(agents.environment(agents.known(["codex-acp"]), ours)) == {"OPENAI_API_KEY"}
    assert not set(ours) & set(agents.environment(agents.known(["tools/mine"]), ours))


def test_no_mode_that_approves_everything_is_ever_chosen() -> None:
    everything = ["yolo", "bypassPermissions", "agent-full-access", "auto", "dont_ask"]
    assert agents.mode(everything, mutable=True) is None
    assert agents.mode(everything, mutable=False) is None
