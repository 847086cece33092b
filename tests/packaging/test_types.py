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


def test_every_public_name_and_all_that_can_be_reached_from_it_has_its_type(tmp_path: Path) -> None:
    uv, python = (str(ROOT / ".venv" / "bin" / name) for name in ("uv", "python"))
    subprocess.run([ROOT / "scripts" / "package", "--out", tmp_path], check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    venv = tmp_path / "venv"
    own = {"VIRTUAL_ENV": str(venv), "PATH": f"{venv}/bin:/usr/bin:/bin", "HOME": str(tmp_path)}
    subprocess.run([uv, "venv", "-q", "--python", python, venv], check=True)
    extras = f"custodes[acp,hub,mcp,otel,overseer] @ {wheel.as_uri()}"
    packages = (extras, "basedpyright", "pytest")
    subprocess.run([uv, "pip", "install", "-q", "--python", f"{venv}/bin/python", *packages], check=True)
    argv = ("basedpyright", "--verifytypes", "custodes", "--ignoreexternal", "--outputjson")
    said = subprocess.run(
        [f"{venv}/bin/{argv[0]}", *argv[1:]], cwd=tmp_path, env=own, capture_output=True, check=False
    )
    completeness = msgspec.json.decode(said.stdout, type=Verdict).type_completeness
    assert len(completeness.symbols) > 1000
    assert completeness.exported_symbol_counts.with_unknown_type == 0
    homes = public()
    unclear = {
        symbol.name
        for symbol in completeness.symbols
        if symbol.is_type_ambiguous and any(f"{symbol.name}.".startswith(f"{home}.") for home in homes)
    }
    assert unclear - KNOWN == set()
