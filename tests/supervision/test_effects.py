"""Work whose effect may be there is never sent again by itself; an operator looks (acceptance F10, R7)."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

import custodes
from custodes import Outcome, Work
from custodes.adapters.port import Failure
from custodes.adapters.registry import Registry
from custodes.supervision.plans.resolution import resolve_in_file
from support import scripted

pytestmark = pytest.mark.anyio

WRITER = """\
import sys
sys.stdin.read()
with open("effects", "a") as effects:
    effects.write(f"{sys.argv[1]}\\n")
if sys.argv[1] == "first":
    sys.exit("connection reset by peer")
print('{"summary": "well"}')
"""


def two_writers(project: Path) -> None:
    """A project whose two adapters are programs that write; the link of the first drops right after."""
    (project / "writer.py").write_text(WRITER)
    for name in ("first", "second"):
        folder = project / ".coding-os" / "adapters" / name
        folder.mkdir(parents=True)
        model = {"id": name, "default": True, "argv": [sys.executable, "writer.py", name]}
        (folder / "adapter.yaml").write_text(
            json.dumps(
                {
                    "id": name,
                    "runtime_entrypoints": {
                        "dispatch": "dispatch.py",
                        "capabilities": ["dispatch", "model_selection"],
                    },
                    "models": [model],
                }
            )
        )
        (folder / "dispatch.py").write_text(
            "from custodes.adapters.command.dispatch import runtime as runtime\n"
        )
    (project / ".coding-os.yaml").write_text("agents: [first, second]\n")
    scripted.configure(project, fallback_policy="next_eligible")
    for name in ("first", "second"):
        Registry.discover(project).trust(name)


async def dispatch(project: Path, role: str) -> Outcome:
    async with custodes.Supervision(project) as supervision, supervision.conversation("c") as parent:
        return await parent.dispatch(Work(role=role, prompt="do it"))


@pytest.fixture(autouse=True)
def own_configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("CUSTODES_RUN", raising=False)


async def test_f10_a_writer_whose_link_drops_after_its_effect_is_unknown_and_never_sent_again(
    tmp_path: Path,
) -> None:
    two_writers(tmp_path)
    outcome = await dispatch(tmp_path, "implementer")
    assert outcome.status == "unknown"
    assert outcome.failure is not None
    assert (outcome.failure.outcome, outcome.failure.accepted) == ("unknown", True)
    assert [attempt.adapter for attempt in outcome.attempts] == ["first"]
    assert (tmp_path / "effects").read_text() == "first\n"
    resolved = await resolve_in_file(tmp_path, outcome.run_id, "done", "cli")
    assert (resolved.before, resolved.outcome) == ("unknown", "done")
    assert (tmp_path / "effects").read_text() == "first\n"


@pytest.mark.parametrize(
    ("role", "status", "adapters"),
    [("reviewer", "done", ["one", "two"]), ("implementer", "unknown", ["one"])],
)
async def test_r7_a_provider_outage_moves_reading_on_and_not_writing(
    tmp_path: Path, role: str, status: str, adapters: list[str]
) -> None:
    script = scripted.install(tmp_path, "one", "two")
    scripted.configure(tmp_path, fallback_policy="next_eligible")
    outage = Failure(category="provider", retryable=True, outcome="unknown", reason="503")
    script.acts.append(scripted.fail(outage))
    outcome = await dispatch(tmp_path, role)
    assert outcome.status == status
    assert [attempt.adapter for attempt in outcome.attempts] == adapters
    assert len(script.requests) == len(adapters)
