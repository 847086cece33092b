"""The normalization contract over every discovered adapter that declares ``dispatch``.

Seed 000, "Normalization is an adapter obligation", and the playbook's section 10, each row of them: the same
checks that ``pytest --custodes-adapter ID`` runs. An adapter without a ``parity.py`` fails here, so that none
ships without it.
"""

from __future__ import annotations

import re
from pathlib import Path

import anyio
import pytest

from custodes.adapters import Registry
from custodes.adapters.parity import CHECKS, Subject, find_subject

ROOT = Path(__file__).parent.parent
REGISTRY = Registry.discover(ROOT / "tests" / "fixtures")
ADAPTERS = sorted(name for name, found in REGISTRY.descriptors.items() if found.can("dispatch"))


@pytest.fixture(scope="module", params=ADAPTERS)
def subject(request: pytest.FixtureRequest) -> Subject:
    return find_subject(request.param, REGISTRY.project)


@pytest.mark.parametrize("loop", ["asyncio", "trio"])
@pytest.mark.parametrize("check", CHECKS)
def test_every_adapter_keeps_the_contract(subject: Subject, check: str, loop: str, tmp_path: Path) -> None:
    anyio.run(CHECKS[check], subject, tmp_path, backend=loop)


def test_there_is_something_to_judge() -> None:
    assert {"command", "openai"} <= set(ADAPTERS)


# Words that are an adapter's id and also everyone's: the id counts only where it is a string by itself.
OTHER_ROOMS = ("actors", "store", "telemetry", "policy", "supervision", "overseer", "mcp", "hub", "cli")
EVERYDAY = {"command"}
"""Also a key of settings and of a runtime's events, in quotes as well."""
SDKS = (
    r"openai|anthropic|google(?!\.protobuf)|mistralai|cohere|litellm|groq|ollama|acp|claude_agent_sdk|codex"
)


def sources() -> list[Path]:
    home = ROOT / "src" / "custodes"
    shared = (home / "adapters").glob("*.py")
    return [*home.glob("*.py"), *shared, *(p for room in OTHER_ROOMS for p in (home / room).rglob("*.py"))]


def test_no_adapters_name_stands_outside_its_folder() -> None:
    ids = "|".join(re.escape(adapter) for adapter in REGISTRY.descriptors if adapter not in EVERYDAY)
    quoted = re.compile(rf"""(?<![\w.])["']({ids})["']""")
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in sources()
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if quoted.search(line)
    ]
    assert found == []


def test_no_providers_sdk_is_imported_outside_an_adapters_folder() -> None:
    imported = re.compile(rf"^\s*(?:import|from)\s+(?:{SDKS})(?:[\s.]|$)", re.MULTILINE)
    assert [str(path) for path in sources() if imported.search(path.read_text())] == []
    assert imported.search("from openai import OpenAI"), "the pattern finds what it is for"
