"""Who builds on this has every type: a second checker reads the installed wheel as an editor would."""

from __future__ import annotations

import importlib
import subprocess
from pathlib import Path

import msgspec
import pytest

from support.pages import ROOT

pytestmark = pytest.mark.full

ROOMS = (
    *("actors", "store", "telemetry", "adapters", "policy", "supervision", "overseer", "mcp", "hub", "cli"),
)
DOORS = ("", *(f".{room}" for room in ROOMS))
HOST = """
from custodes import Budget, Outcome, Supervision, Work, __version__
from custodes.supervision import Child, load_plan


def words(end: Outcome) -> str:
    return f"{end.role} {end.status}: {end.evidence or end.failure or end.refusal}"


async def main() -> list[str]:
    async with Supervision(project=".") as supervision, supervision.conversation("mine") as parent:
        outcome = await parent.dispatch(Work(role="reviewer", prompt="What is fragile in src/?"))
        async with parent.fan_out(budget=Budget(children=4, wall_seconds=600)) as fan:
            child: Child = fan.start(Work(role="analyst", prompt="What would break?"))
        return [__version__, repr(child.result), words(outcome), *map(words, fan.outcomes)]
"""
MISTAKES = """
from custodes import Wrok
from custodes.supervision import Conversatoin, load_plan
import custodes

custodes.Supervison
custodes.Supervision(projcet=".")
custodes.Work(role=3, prompt="What?")
custodes.__version__ + 1
load_plan(0)
"""
KNOWN = {"custodes.actors.errors.ActorCrashed", "custodes.actors.errors.ActorCrashed.__cause__"}
"""``__cause__`` is Python's own, which may be None; an actor's crash always has one."""


class Symbol(msgspec.Struct, rename="camel"):
    name: str
    is_type_ambiguous: bool


class Counts(msgspec.Struct, rename="camel"):
    with_unknown_type: int


class Completeness(msgspec.Struct, rename="camel"):
    exported_symbol_counts: Counts
    symbols: list[Symbol]


class Verdict(msgspec.Struct, rename="camel"):
    type_completeness: Completeness


def public() -> set[str]:
    """The public names, where they are defined."""
    found = set()
    for door in DOORS:
        room = importlib.import_module(f"custodes{door}")
        for name in room.__all__:
            value = getattr(room, name)
            if getattr(value, "__module__", "").startswith("custodes") and hasattr(value, "__qualname__"):
                found.add(f"{value.__module__}.{value.__qualname__}")
    return found


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of an environment that has the wheel with every extra, and checkers of types."""
    place = tmp_path_factory.mktemp("installed")
    uv, python = (str(ROOT / ".venv" / "bin" / name) for name in ("uv", "python"))
    subprocess.run([ROOT / "scripts" / "package", "--out", place], check=True, capture_output=True)
    (wheel,) = place.glob("*.whl")
    programs = place / "venv" / "bin"
    subprocess.run([uv, "venv", "-q", "--python", python, programs.parent], check=True)
    extras = f"custodes[acp,hub,mcp,otel,overseer] @ {wheel.as_uri()}"
    packages = (extras, "basedpyright", "mypy", "pytest")
    subprocess.run([uv, "pip", "install", "-q", "--python", programs / "python", *packages], check=True)
    return programs


def check(programs: Path, checker: str, *argv: str | Path, cwd: Path) -> str:
    """What a checker says, in a folder that has nothing of the checkout near."""
    own = {"VIRTUAL_ENV": str(programs.parent), "PATH": f"{programs}:/usr/bin:/bin", "HOME": str(cwd)}
    argv = (programs / checker, *argv)
    return subprocess.run(argv, cwd=cwd, env=own, capture_output=True, text=True, check=False).stdout


def test_every_public_name_and_all_that_can_be_reached_from_it_has_its_type(
    installed: Path, tmp_path: Path
) -> None:
    argv = ("--verifytypes", "custodes", "--ignoreexternal", "--outputjson")
    said = check(installed, "basedpyright", *argv, cwd=tmp_path)
    completeness = msgspec.json.decode(said, type=Verdict).type_completeness
    assert len(completeness.symbols) > 1000
    assert completeness.exported_symbol_counts.with_unknown_type == 0
    homes = public()
    unclear = {
        symbol.name
        for symbol in completeness.symbols
        if symbol.is_type_ambiguous and any(f"{symbol.name}.".startswith(f"{home}.") for home in homes)
    }
    assert unclear - KNOWN == set()


def test_a_host_in_strict_types_has_nothing_to_say_against_it(installed: Path, tmp_path: Path) -> None:
    (tmp_path / "host.py").write_text(HOST)
    said = check(installed, "mypy", "--strict", "--disallow-any-expr", "host.py", cwd=tmp_path)
    assert said == "Success: no issues found in 1 source file\n"


def test_each_mistake_of_a_host_is_seen(installed: Path, tmp_path: Path) -> None:
    (tmp_path / "host.py").write_text(MISTAKES)
    said = check(installed, "mypy", "--strict", "host.py", cwd=tmp_path)
    seen = [int(line.split(":")[1]) for line in said.splitlines() if ": error: " in line]
    assert seen == [2, 3, 6, 7, 8, 9, 10], said
