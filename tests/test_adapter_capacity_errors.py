"""The normalization contract over every discovered adapter that declares ``dispatch``.

Seed 000, "Normalization is an adapter obligation", and the playbook's section 10, each row of them. An
adapter joins by ``tests/support/adapter_cases/<id>.py``, whose ``provoke`` makes its runtime fail in each
of the contract's ways; one without that file fails here, so that none ships without it.
"""

from __future__ import annotations

import importlib
import importlib.util
import re
from pathlib import Path
from typing import Any

import pytest

from custodes.adapters import DispatchRequest, DispatchResult, Failure, Registry

ROOT = Path(__file__).parent.parent
REGISTRY = Registry.discover(ROOT / "tests" / "fixtures")
ADAPTERS = sorted(name for name, found in REGISTRY.descriptors.items() if found.can("dispatch"))

LIMIT = {"category": "capacity", "retryable": True, "outcome": "known_failed"}
CONTRACT: dict[str, dict[str, Any]] = {
    "limit": LIMIT,
    "limit with a wait": {**LIMIT, "retry_after_s": 52},
    "usage limit with a reset": {**LIMIT, "retry_after_s": 7200},
    "billing": {"category": "unavailable", "retryable": False, "outcome": "known_failed"},
    "overloaded": {"category": "provider", "retryable": True, "outcome": "unknown"},
    "server error": {"category": "provider", "retryable": True, "outcome": "unknown"},
    "auth": {"category": "auth", "retryable": False, "outcome": "known_failed", "retry_after_s": None},
    "invalid": {"category": "invalid", "retryable": False, "outcome": "known_failed"},
    "timeout": {"category": "timeout", "retryable": False, "outcome": "unknown"},
    "unanticipated": {"category": "provider", "retryable": False, "outcome": "unknown"},
    "no proof of success": {"category": "provider", "retryable": False, "outcome": "unknown"},
    "our own refusal": {"category": "provider", "retryable": False},
    "innocent words": {"category": "provider", "retryable": False},
}


def judge(case: str, result: DispatchResult) -> list[str]:
    """What the contract holds against a result; empty where it passes."""
    failure = result.failure
    if failure is None:
        return [f"{case}: reads as a success"]
    wrong = [
        f"{case}: {field} is {getattr(failure, field)!r}, must be {value!r}"
        for field, value in CONTRACT[case].items()
        if getattr(failure, field) != value
    ]
    if result.text or result.structured is not None:
        wrong.append(f"{case}: a failure carries an answer")
    return wrong


@pytest.mark.anyio
@pytest.mark.parametrize("case", CONTRACT)
@pytest.mark.parametrize("adapter", ADAPTERS)
async def test_every_adapter_tells_every_failure_as_it_is(adapter: str, case: str, tmp_path: Path) -> None:
    name = f"support.adapter_cases.{adapter}"
    assert importlib.util.find_spec(name), (
        f"adapter '{adapter}' has no tests/support/adapter_cases/{adapter}.py"
    )
    request = DispatchRequest(
        run_id="r1",
        role="reviewer",
        prompt="look",
        mutable=False,
        cwd=str(tmp_path),
        timeout_s=0.5 if case == "timeout" else 30,
        model="m1",
    )
    descriptor = REGISTRY.descriptors[adapter]
    make = type(REGISTRY.runtime(adapter))
    result = await importlib.import_module(name).provoke(case, descriptor, make, request, tmp_path)
    assert judge(case, result) == []


def test_there_is_something_to_judge() -> None:
    assert {"command", "openai"} <= set(ADAPTERS)


@pytest.mark.parametrize("case", CONTRACT)
def test_an_adapter_that_gives_no_category_or_a_wrong_one_fails(case: str) -> None:
    assert judge(case, DispatchResult())
    assert judge(case, DispatchResult(text="Error: 429 Too Many Requests"))
    lazy = Failure(category="timeout" if case != "timeout" else "capacity", reason="x")
    assert judge(case, DispatchResult(failure=lazy))


# Words that are an adapter's id and also everyone's: the id counts only where it is a string by itself.
OTHER_ROOMS = ("actors", "store", "telemetry", "policy", "supervision", "overseer", "mcp", "hub", "cli")
SDKS = r"openai|anthropic|google|mistralai|cohere|litellm|groq|ollama|acp|claude_agent_sdk|codex"


def sources() -> list[Path]:
    home = ROOT / "src" / "custodes"
    shared = (home / "adapters").glob("*.py")
    return [*home.glob("*.py"), *shared, *(p for room in OTHER_ROOMS for p in (home / room).rglob("*.py"))]


def test_no_adapters_name_stands_outside_its_folder() -> None:
    ids = "|".join(re.escape(adapter) for adapter in REGISTRY.descriptors)
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
