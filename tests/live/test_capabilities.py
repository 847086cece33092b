"""What an adapter declares really works with the program it is for; what it does not declare is refused."""

from __future__ import annotations

import importlib
import time
from pathlib import Path

import anyio
import pytest

from custodes.adapters import Registry
from custodes.adapters.descriptor import Capability, Descriptor
from custodes.supervision.evidence import ReviewerEvidence, parse, schema_for
from live.harness import Target, drive, targets
from live.installed import installed
from support.loopback.answers import TEXT

pytestmark = [pytest.mark.live, pytest.mark.anyio]

TARGETS = targets()


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(params=sorted(TARGETS))
def target(request: pytest.FixtureRequest) -> Target:
    return installed(TARGETS[request.param])


def described(target: Target, project: Path) -> Descriptor:
    return Registry.discover(project).descriptors[target.adapter]


def wanted(target: Target, capability: Capability, project: Path) -> None:
    if not described(target, project).can(capability):
        pytest.skip(f"{target.adapter} does not declare {capability}")


async def test_the_evidence_of_a_role_comes_back_as_its_schema_says(target: Target, tmp_path: Path) -> None:
    wanted(target, "structured_output", tmp_path)
    driven = await drive(target, "success", tmp_path, schema=schema_for("reviewer"))
    assert driven.result is not None
    assert driven.result.failure is None
    assert driven.result.structured["role"] == "reviewer"
    assert driven.result.structured["summary"] == TEXT
    assert isinstance(parse("reviewer", driven.result.structured), ReviewerEvidence)


async def test_a_thread_goes_on_where_it_was(target: Target, tmp_path: Path) -> None:
    wanted(target, "resume", tmp_path)
    first = await drive(target, "success", tmp_path, prompt="Remember the word heliotrope.")
    assert first.result is not None
    thread = first.result.native_thread_id
    assert thread
    if target.resumes_next_minute:
        await anyio.sleep(61 - time.time() % 60)
    second = await drive(target, "success", tmp_path, resume=thread)
    assert second.result is not None
    assert second.result.failure is None
    assert second.result.native_thread_id == thread
    assert "heliotrope" in str(second.provider.journal[0].body)


async def test_a_native_id_leads_to_its_transcript(target: Target, tmp_path: Path) -> None:
    entry = described(target, tmp_path).runtime_entrypoints.transcript
    if entry is None:
        pytest.skip(f"{target.adapter} names no transcript entry")
    driven = await drive(target, "success", tmp_path, prompt="Remember the word heliotrope.")
    assert driven.result is not None
    module = importlib.import_module(f"custodes.adapters.{target.adapter}.{Path(entry).stem}")
    found = module.transcript(driven.result.native_thread_id, {"HOME": str(tmp_path / "home")})
    assert "heliotrope" in Path(found.place).read_text()


async def test_the_effort_reaches_the_provider(target: Target, tmp_path: Path) -> None:
    wanted(target, "effort_selection", tmp_path)
    low, high = [
        (await drive(target, "success", tmp_path, effort=effort)).provider.journal[0].body
        for effort in ("low", "high")
    ]
    assert '"low"' in _settings(low)
    assert '"high"' in _settings(high)


async def test_an_effort_that_is_none_of_its_own_is_refused_before_it_runs(
    target: Target, tmp_path: Path
) -> None:
    driven = await drive(target, "success", tmp_path, effort="bogus")
    assert driven.result is not None
    assert driven.result.failure is not None
    assert driven.result.failure.category == "invalid"
    assert driven.requests == 0


async def test_usage_is_told(target: Target, tmp_path: Path) -> None:
    wanted(target, "usage", tmp_path)
    driven = await drive(target, "success", tmp_path)
    assert driven.result is not None
    usage = driven.result.usage
    assert usage is not None
    assert usage.output_tokens is not None
    assert usage.output_tokens > 0


async def test_its_spans_join_the_trace_it_was_started_from(target: Target, tmp_path: Path) -> None:
    wanted(target, "trace_context", tmp_path)
    trace = "0af7651916cd43dd8448eb211c80319c"
    driven = await drive(target, "success", tmp_path, traced=f"00-{trace}-b7ad6b7169203331-01")
    assert driven.result is not None
    assert driven.result.failure is None
    sent = [asked.body for asked in driven.provider.requests if asked.path == "/v1/traces"]
    assert any(trace in str(body) for body in sent)


async def test_work_that_may_write_writes_in_its_folder(target: Target, tmp_path: Path) -> None:
    if target.tools:
        pytest.skip(target.tools)
    driven = await drive(target, "tool", tmp_path, tool="echo hi > wrote.txt", mutable=True)
    assert driven.result is not None
    assert driven.result.failure is None
    assert (driven.work / "wrote.txt").read_text() == "hi\n"
    assert "tool" in driven.kinds()


def _settings(body: dict[str, object]) -> str:
    """The request without its prompt and tools, where the same words may stand."""
    names = ("reasoning", "reasoning_effort", "output_config", "thinking", "generationConfig")
    return str([body.get(name) for name in names]).replace("'", '"')
