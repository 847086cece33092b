"""`cos supervision explain`, `cos roles`, `cos supervision turn-defaults`, `show --health`."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import anyio
import pytest

import custodes
from custodes.policy.history import MINIMUM
from custodes.policy.overview import Overview
from custodes.policy.roles import ROLES
from custodes.supervision.work import Work
from support import scripted
from support.cos import Cos, Tiered


@pytest.fixture
def limited(project: Path) -> Path:
    """Two adapters; the large pool of the first reported a limit of 600 s."""
    script = scripted.install(project, "one", "two")
    script.acts.append(scripted.limit(retry_after_s=600))

    async def work() -> None:
        async with custodes.Supervision(project) as supervision, supervision.conversation("c") as parent:
            await parent.dispatch(Work(role="reviewer", prompt="x"))

    anyio.run(work)
    return project


def test_each_field_says_where_it_came_from(cos: Cos, limited: Path) -> None:
    cos("supervision", "set", "--orchestrator-adapter", "one", "--role", "reviewer", "--role-model", "small")
    words = ("supervision", "explain", "--role", "reviewer", "--effort", "high")
    document = cos(*words, "--format", "json").document
    (candidate,) = document["candidates"]
    assert candidate["route"]["model"] == "small"
    assert candidate["because"] == {
        "adapter": "the orchestrator's policy",
        "model": "the role's own policy",
        "effort": "named by the request",
        "timeout": "the role's default",
    }
    assert candidate["health"]["state"] == "healthy"
    text = cos(*words).out
    assert "the role's own policy" in text
    assert "one:small" in text


def test_the_pool_of_each_candidate_is_shown_with_its_wait(cos: Cos, limited: Path) -> None:
    cos("supervision", "set", "--fallback-policy", "next_eligible")
    answer = cos("supervision", "explain", "--role", "reviewer", "--format", "json")
    assert answer.code == 0
    first, second = answer.document["candidates"]
    assert (first["route"]["pool"], first["health"]["state"]) == ("one:large", "cooling_down")
    assert 0 < first["health"]["recovery_s"] <= 600
    assert (second["route"]["pool"], second["health"]["state"]) == ("two:large", "healthy")
    assert second["because"]["adapter"] == "the fallback policy"
    assert "cooling down" in cos("supervision", "explain", "--role", "reviewer").out


def test_every_candidate_that_is_passed_over_has_its_reason(cos: Cos, limited: Path) -> None:
    cos(
        "supervision",
        "set",
        "--fallback-policy",
        "next_eligible",
        "--role",
        "reviewer",
        "--role-adapter",
        "one",
    )
    (limited / ".coding-os" / "adapters" / "two" / "adapter.yaml").write_text(
        "version: 1\nruntime_entrypoints: {dispatch: dispatch.py, capabilities: [dispatch]}\n"
    )
    cos("adapters", "trust", "two")
    answer = cos("supervision", "explain", "--role", "reviewer", "--effort", "high", "--format", "json")
    (passed,) = answer.document["passed_over"]
    assert passed == {
        "adapter": "two",
        "reason": "adapter 'two' does not support effort selection; clear the effort 'high'",
    }
    assert (
        "does not support effort selection"
        in cos("supervision", "explain", "--role", "reviewer", "--effort", "high").out
    )


def test_the_estimate_names_its_source(cos: Cos, limited: Path) -> None:
    candidate = cos("supervision", "explain", "--role", "observer", "--format", "json").document[
        "candidates"
    ][0]
    assert candidate["estimate"] == {
        "input_tokens": 15_000,
        "output_tokens": 1_500,
        "cost_usd": None,
        "source": "tokens: the observer's default; the model has no declared price",
    }


def test_what_cannot_run_ends_with_1_and_the_playbooks_words(cos: Cos, limited: Path) -> None:
    answer = cos("supervision", "explain", "--role", "reviewer", "--on", "codex")
    assert answer.code == 1
    assert "no eligible dispatch adapter for 'codex'" in answer.out


def test_below_the_gate_it_says_that_the_session_runs_it(cos: Cos, limited: Path) -> None:
    cos("supervision", "set", "--mode", "adaptive", "--complexity-threshold", "COMPLEX")
    words = ("supervision", "explain", "--role", "reviewer", "--format", "json")
    assert cos(*words, "--complexity", "clear").document["decision"] == "below_gate"
    assert cos(*words, "--complexity", "chaotic").document["decision"] == "supervised"
    assert cos(*words).document["decision"] == "below_gate"


def test_an_unknown_role_names_the_near_miss(cos: Cos, project: Path) -> None:
    answer = cos("supervision", "explain", "--role", "reviwer")
    assert answer.code == 2
    assert "did you mean 'reviewer'" in answer.err


LOADED = """
import sys
from custodes.cli.app import call
call(sys.argv[1:])
rooms = ("custodes.store", "custodes.telemetry", "custodes.actors", "custodes.mcp")
others = ("sqlite3", "aiosqlite", "opentelemetry", "asyncio", "trio", "mcp")
print(*(name for name in (*rooms, *others) if name in sys.modules), file=sys.stderr)
"""


def loaded(project: Path, *words: str) -> list[str]:
    command = [sys.executable, "-c", LOADED, *words]
    return subprocess.run(command, cwd=project, capture_output=True, text=True, check=True).stderr.split()


def test_show_loads_neither_the_store_nor_telemetry_unless_health_is_asked_for(limited: Path) -> None:
    assert loaded(limited, "supervision", "show") == []
    assert "custodes.store" in loaded(limited, "supervision", "show", "--health")


def test_while_it_is_off_explain_opens_no_store(cos: Cos, limited: Path) -> None:
    cos("supervision", "disable")
    database = limited / ".coding-os" / "custodes.db"
    database.write_bytes(b"no database at all")
    answer = cos("supervision", "explain", "--role", "reviewer", "--format", "json")
    assert answer.code == 0
    assert answer.document["decision"] == "off"
    assert answer.document["candidates"][0]["health"] is None


def test_show_with_health_adds_the_pools(cos: Cos, limited: Path) -> None:
    answer = cos("supervision", "show", "--health", "--format", "json")
    document = answer.document
    assert [pool["pool"] for pool in document["health"]["pools"]] == ["one:large"]
    assert document["health"]["adapters"][0]["state"] == "cooling_down"
    assert set(document) - {"health"} == set(Overview.__struct_fields__)
    assert "recovers in" in cos("supervision", "show", "--health").out


def attempts(project: Path, model: str, count: int, *, good: int) -> None:
    """Put attempts of the reviewer on one model of ``one`` on record, as a long use would have."""
    with sqlite3.connect(project / ".coding-os" / "custodes.db") as database:
        database.row_factory = sqlite3.Row
        row = dict(database.execute("SELECT * FROM attempts LIMIT 1").fetchone())
        for number in range(count):
            ended = time.time() - number
            row |= {
                "id": f"{model}{number}",
                "model": model,
                "status": "done" if number < good else "failed",
                "category": None if number < good else "timeout",
                "started": ended - 3,
                "ended": ended,
            }
            names = ", ".join(row)
            marks = ", ".join(f":{name}" for name in row)
            database.execute(f"INSERT INTO attempts ({names}) VALUES ({marks})", row)  # noqa: S608
    database.close()


def test_what_went_better_so_far_decides_where_nothing_else_does_for_explain_and_dispatch_alike(
    cos: Cos, limited: Path
) -> None:
    cos("health", "clear", "one")
    attempts(limited, "large", MINIMUM, good=2)
    attempts(limited, "small", MINIMUM - 1, good=MINIMUM - 1)
    words = ("supervision", "explain", "--role", "reviewer", "--format", "json")
    assert cos(*words).document["candidates"][0]["route"]["model"] == "large"
    with sqlite3.connect(limited / ".coding-os" / "custodes.db") as database:
        database.execute(
            "UPDATE attempts SET id = 'last', model = 'small', status = 'done', category = NULL "
            "WHERE id = (SELECT id FROM attempts WHERE category = 'capacity')"
        )
    database.close()
    document = cos(*words).document
    assert document["candidates"][0]["route"]["model"] == "small"
    assert document["candidates"][0]["because"]["model"] == "what went better so far"
    assert document["history"] == 2 * MINIMUM

    async def work() -> str | None:
        async with custodes.Supervision(limited) as supervision, supervision.conversation("d") as parent:
            outcome = await parent.dispatch(Work(role="reviewer", prompt="x"))
        return outcome.attempts[0].model

    assert anyio.run(work) == "small"


def test_roles_tells_all_eleven_with_their_reason(cos: Cos, project: Path) -> None:
    told = cos("roles", "--format", "json").document["roles"]
    assert [info["role"] for info in told] == list(ROLES)
    assert all(info["purpose"] and info["reason"] and info["tier"] and info["effort"] for info in told)
    assert "read-only" in cos("roles", "reviewer").out
    assert "did you mean 'reviewer'" in cos("roles", "reviwer").err


def test_turn_defaults_are_the_orchestrators_while_it_is_on(cos: Cos, tiered: Tiered) -> None:
    cos("supervision", "set", "--orchestrator-model", "large-1", "--orchestrator-effort", "high")
    words = ("supervision", "turn-defaults", "--format", "json")
    assert cos(*words).document == {"adapter": "", "model": "", "effort": ""}
    cos("supervision", "enable")
    wanted = {"adapter": "", "model": "large-1", "effort": "high"}
    assert cos(*words).document == wanted
    assert cos("supervision", "show", "--format", "json").document["turn_defaults"] == wanted
    assert "model large-1" in cos("supervision", "turn-defaults").out


def test_a_dry_run_says_what_it_is_reckoned_at(cos: Cos, limited: Path) -> None:
    cos("supervision", "set", "--mode", "suggest")
    answer = cos("dispatch", "--role", "reviewer", "Look.", "--format", "json")
    estimate = answer.document["outcomes"][0]["output_json"]["estimate"]
    assert estimate["input_tokens"] == 50_000
    assert "estimate: 50000 tokens in, 3000 out" in cos("dispatch", "--role", "reviewer", "Look.").out


def test_without_the_extra_cos_mcp_says_what_installs_it(project: Path) -> None:
    hide = (
        "import sys; from importlib.machinery import PathFinder\n"
        "find = PathFinder.find_spec\n"
        "PathFinder.find_spec = lambda name, *rest: None if name == 'mcp' else find(name, *rest)\n"
        "from custodes.cli.app import call\n"
        "sys.exit(call(['mcp']))"
    )
    ended = subprocess.run(
        [sys.executable, "-c", hide], cwd=project, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 1
    assert "pip install 'custodes[mcp]'" in ended.stderr
    assert ended.stderr.count("\n") == 1
