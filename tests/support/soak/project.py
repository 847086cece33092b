"""The soak's project: two adapters, providers to watch, a policy; and the environment of what works on it."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from custodes.adapters.registry import Registry
from support.soak import asker, program

MODELS = ("look", "write", "frail")
"""Each a pool of its own; ``frail`` is the one that meets its limit most."""
LEAVES = ("a", "b", "c")
FOREIGN = {"other": {"b": 1, "a": [1, 2]}, "theme": "dark"}
"""What else stands in the settings, and must go on standing there, in its order."""
WATCHED = ("command", "asker")


class Place:
    """Where everything of one soak lies."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.project = folder / "project"
        self.journal = folder / "journal"
        self.logs = folder / "logs"
        self.supervisor = folder / "supervisor.yaml"
        self.settings = self.project / ".coding-os" / "hub-settings.json"
        self.database = self.project / ".coding-os" / "custodes.db"
        self.cos = str(Path(sys.executable).parent / "cos")

    @property
    def environment(self) -> dict[str, str]:
        """Of every surface. Nothing of a run that this one may itself be part of."""
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("CUSTODES_")}
        return {
            **inherited,
            asker.FOLDER: str(self.folder),
            "PYTHONPATH": str(Path(__file__).parents[2]),
            "PYTHONWARNINGS": "default",
            "XDG_CONFIG_HOME": str(self.folder / "config"),
            "NO_COLOR": "1",
        }


def build(folder: Path, urls: dict[str, str]) -> Place:
    """Make the project and trust its adapters. ``urls`` are where the watched providers are asked."""
    place = Place(folder)
    for each in (place.project / "src", place.journal, place.logs):
        each.mkdir(parents=True)
    argv = [sys.executable, "-I", "-S", str(Path(program.__file__)), str(place.journal), place.cos]
    models = [{"id": name, "bucket": name, "argv": argv, "default": name == "look"} for name in MODELS]
    adapters = place.project / ".coding-os" / "adapters"
    for name, text in {
        "command/adapter.yaml": json.dumps({"id": "command", "models": models}),
        "asker/adapter.yaml": asker.ADAPTER_YAML,
        "asker/dispatch.py": "from support.soak.asker import runtime as runtime\n",
    }.items():
        (adapters / name).parent.mkdir(parents=True, exist_ok=True)
        (adapters / name).write_text(text)
    (place.project / ".coding-os.yaml").write_text(f"agents: [{', '.join(WATCHED)}]\n")
    place.settings.write_text(json.dumps({**FOREIGN, "model_routing": POLICY}, indent=2) + "\n")
    place.supervisor.write_text(json.dumps({"supervisor": _supervisor(urls)}))
    os.environ["XDG_CONFIG_HOME"] = place.environment["XDG_CONFIG_HOME"]
    for name in WATCHED:
        Registry.discover(place.project).trust(name)
    return place


POLICY = {
    "enabled": True,
    "fallback_policy": "next_eligible",
    "max_parallel": 4,
    "ask_seconds": 6,
    "cooldown": {"default_seconds": 2, "maximum_seconds": 8},
    "orchestrator": {"adapter": "command"},
    "roles": {"observer": {"adapter": "command", "model": "look"}},
}


def _supervisor(urls: dict[str, str]) -> dict[str, object]:
    return {
        "check_interval": 2,
        "health_timeout": 2,
        "cooldown_minutes": 0,
        "recovery": {"checks": 2, "spacing": 1},
        "notify": {"log": True},
        "providers": {name: {"health_url": url} for name, url in urls.items()},
        "fallback_matrix": {
            "observer": {"primary": "command/look", "fallbacks": ["asker/one"], "actuator": "supervision"}
        },
    }
