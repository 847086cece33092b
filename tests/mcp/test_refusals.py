"""A refusal is the same data on every surface."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import msgspec

from custodes import Supervision, Work
from custodes.mcp.tools import Tools
from custodes.supervision.work import Refusal
from support import scripted
from support.cos import Cos


async def ignore(progress: float, message: str) -> None:
    pass


async def mcp_trace(project: Path, conversation: str) -> Any:
    async with Supervision(project) as supervision, supervision.conversation("mcp") as parent:
        tools = Tools(supervision, parent)
        document = await tools.call("cos_trace", {"conversation": conversation}, ignore)
    return msgspec.json.decode(msgspec.json.encode(document))["attempts"]


async def python(project: Path) -> Any:
    async with Supervision(project) as supervision, supervision.conversation("python") as parent:
        outcome = await parent.dispatch(Work(role="reviewer", prompt="x"))
    return msgspec.to_builtins(outcome.refusal)


async def mcp(project: Path) -> Any:
    async with Supervision(project) as supervision, supervision.conversation("mcp") as parent:
        tools = Tools(supervision, parent)
        document = await tools.call("cos_dispatch", {"role": "reviewer", "prompt": "x"}, ignore)
    return msgspec.json.decode(msgspec.json.encode(document))["refusal"]


def test_every_pool_cooling_is_told_with_both_pools_and_the_soonest_on_every_surface(
    cos: Cos, project: Path
) -> None:
    script = scripted.install(project, "one", "two")
    scripted.configure(project, fallback_policy="next_eligible")
    script.acts += [scripted.limit(retry_after_s=100), scripted.limit(retry_after_s=1_000)]
    anyio.run(python, project)  # meets both limits
    line = cos("dispatch", "--role", "reviewer", "x", "--format", "json")
    assert line.code == 1
    refusals = [anyio.run(python, project), anyio.run(mcp, project), line.document["outcomes"][0]["refusal"]]
    for refusal in refusals:
        assert set(refusal) == set(Refusal.__struct_fields__)
        assert refusal["category"] == "capacity"
        assert refusal["reason"].startswith("all eligible adapters are at capacity (one:large ")
        assert [wait["pool"] for wait in refusal["waiting"]] == ["one:large", "two:large"]
        assert refusal["retry_after_s"] == min(wait["recovery_s"] for wait in refusal["waiting"])
        assert 50 < refusal["retry_after_s"] <= 100
        assert refusal["route"] == refusals[0]["route"]
    assert len(script.requests) == 2


def test_what_stands_in_is_told_with_its_reason_on_every_surface(cos: Cos, project: Path) -> None:
    script = scripted.install(project, "one", "two")
    scripted.configure(project, fallback_policy="next_eligible")
    script.acts.append(scripted.limit(retry_after_s=100))
    assert anyio.run(python, project) is None
    (limited, stood_in) = anyio.run(mcp_trace, project, "python")
    assert [limited["fallback_reason"], stood_in["fallback_reason"]] == [None, "capacity"]
    run = stood_in["run_id"]
    shown = cos("runs", "show", run, "--format", "json").document["attempts"]
    assert [each["fallback_reason"] for each in shown] == [None, "capacity"]
    for words in (("runs", "show", run), ("cognition", "trace", "python")):
        assert cos(*words).out.count("falling back after capacity") == 1
