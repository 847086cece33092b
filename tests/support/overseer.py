"""A supervisor file in a few words, moments of a clock that a test moves, and verdicts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from custodes.overseer.config import Choice, Config
from custodes.overseer.probe import Verdict, VerdictKind
from custodes.overseer.reading import parse_config, read_config
from custodes.supervision.record.clock import Now

SEED_FILE = Path(__file__).parent.parent / "fixtures" / "overseer" / "supervisor.yaml"
MIDNIGHT = 1_784_505_600.0  # 2026-07-20T00:00:00Z
KIMI = Choice("opencode-go", "kimi-k2.7-code")
GROK = Choice("grok-cli", "grok-4.5")
GEMINI = Choice("gemini", "gemini-3-flash-preview")
DEEPSEEK = Choice("nvidia", "deepseek-ai/deepseek-v4-pro")


def seed_config() -> Config:
    return read_config(SEED_FILE)


def kept_in_a_file(home: Path, **providers: str) -> Path:
    """Makes ``home`` the place of a ``supervisor.yaml``. Its one profile, ``w``, from a/one to b/two, is kept
    in a file: this one. ``providers`` are the addresses of a and b; else nobody is there."""
    model = home / "w"
    model.write_text("a/one")
    urls = {"a": "http://127.0.0.1:9/a", "b": "http://127.0.0.1:9/b", **providers}
    supervisor = {
        "command": {
            "read": ["cat", str(home / "{profile}")],
            "switch": ["sh", "-c", 'printf %s "$1" > "$2"', "x", "{model}", str(model)],
        },
        "providers": {name: {"health_url": url} for name, url in urls.items()},
        "fallback_matrix": {"w": {"primary": "a/one", "fallbacks": ["b/two"], "actuator": "command"}},
    }
    (home / "supervisor.yaml").write_text(json.dumps({"supervisor": supervisor}))
    return model


def config(**changes: Any) -> Config:
    """Three providers, one profile ``w`` that goes from a/one over b/two to c/three. ``changes`` are keys of
    ``supervisor``; ``providers`` are merged into the three, ``row`` into the profile."""
    providers = {name: {"health_url": f"http://127.0.0.1:9/{name}/models"} for name in ("a", "b", "c")}
    for name, more in changes.pop("providers", {}).items():
        providers[name] = {**providers.get(name, {}), **more}
    row = {"primary": "a/one", "fallbacks": ["b/two", "c/three"], **changes.pop("row", {})}
    matrix = changes.pop("fallback_matrix", {"w": row})
    return parse_config(
        {"supervisor": {"providers": providers, "fallback_matrix": matrix, **changes}}, "supervisor.yaml"
    )


def at(seconds: float = 0.0, boot: str = "boot") -> Now:
    """``seconds`` after the test's midnight."""
    return Now(boot, 1_000.0 + seconds, MIDNIGHT + seconds)


def verdict(kind: VerdictKind, code: str = "", **more: Any) -> Verdict:
    return Verdict(kind=kind, code=code or kind, **more)
