"""A fan-out of real runtimes, as a real collector shows it: one tree, down to the runtimes' own spans."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx2
import pytest

from custodes.telemetry import conventions as names
from live.harness import INSTALLED, targets
from support.genai import ATTRIBUTES, DEPRECATED
from support.loopback.provider import Provider, loopback

pytestmark = pytest.mark.live

COS = [sys.executable, "-m", "custodes.cli"]
PLAN = """\
name: release-review
max_parallel: 2
steps:
  - {id: review, role: reviewer, prompt: Say something., adapter: claude}
  - {id: design, role: architect, prompt: Say something., adapter: claude, model: claude-haiku-4-5}
  - {id: watch, role: observer, prompt: Say something., adapter: gemini, model: gemini-2.5-flash}
"""
SETTLED_S = 60
"""How long the collector may take to show what it was sent, in seconds."""
RUNTIMES = ("claude", "codex", "gemini")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for name in RUNTIMES:
        if targets()[name].program is None:
            pytest.skip(f"{name} is not installed: scripts/runtimes install {' '.join(RUNTIMES)}")
    folder = tmp_path / "project"
    (folder / ".coding-os").mkdir(parents=True)
    (folder / ".coding-os.yaml").write_text(f"agents: [{', '.join(RUNTIMES)}]\n")
    policy = {"enabled": True, "fallback_policy": "fail_closed"}
    (folder / ".coding-os" / "hub-settings.json").write_text(json.dumps({"model_routing": policy}))
    (folder / "plan.yaml").write_text(PLAN)
    return folder


def cos(project: Path, provider: Provider, *words: str) -> subprocess.CompletedProcess[str]:
    """The program, in a home of its own in which each runtime is aimed at the provider."""
    home = project.parent / "home"
    home.mkdir(exist_ok=True)
    aims: dict[str, str] = {}
    for name in RUNTIMES:
        aims |= targets()[name].aim(provider, home)
    environment = {
        **{key: value for key, value in os.environ.items() if not key.startswith(("OTEL_", "TRACE"))},
        "PATH": f"{INSTALLED}{os.pathsep}{os.environ['PATH']}",
        "HOME": str(home),
        **aims,
    }
    return subprocess.run(
        [*COS, *words, "-d", str(project)], env=environment, capture_output=True, text=True, check=False
    )


def shown(phoenix: str) -> list[dict[str, Any]]:
    """Every span the collector has, once no more arrive."""
    until, before = time.monotonic() + SETTLED_S, -1
    while time.monotonic() < until:
        answer = httpx2.get(f"{phoenix}/v1/projects/default/spans", params={"limit": 1000}, timeout=30)
        spans: list[dict[str, Any]] = answer.json()["data"]
        if len(spans) == before and before > 0:
            return spans
        before = len(spans)
        time.sleep(2)  # it takes in what it was sent when it likes
    raise AssertionError(f"{before} spans, and still more")


def path(span: Mapping[str, Any], by_id: Mapping[str, Mapping[str, Any]]) -> str:
    parent = span["parent_id"]
    return f"{path(by_id[parent], by_id)} > {span['name']}" if parent else str(span["name"])


def test_a_fan_out_of_real_runtimes_is_one_tree_in_a_real_collector(
    phoenix: str, project: Path, tmp_path: Path
) -> None:
    answer = json.dumps({"summary": "All is well."})
    with loopback("usage_limit") as limited:
        words = ("--role", "reviewer", "--on", "claude", "Say something.")
        assert cos(project, limited, "dispatch", *words).returncode == 1  # the pool cools from now on
    with loopback("success", text=answer) as provider:
        cos(project, provider, "supervision", "set", "--fallback-policy", "next_eligible")
        plan = ("run", str(project / "plan.yaml"))
        done = cos(project, provider, *plan, "--otlp", phoenix, "--format", "json")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""

    spans = shown(phoenix)
    by_id = {span["context"]["span_id"]: span for span in spans}
    assert len({span["context"]["trace_id"] for span in spans}) == 1
    assert [span["name"] for span in spans if not span["parent_id"]] == ["invoke_agent parent"]
    paths = sorted(path(span, by_id) for span in spans)  # a missing parent would be a KeyError: no orphan
    root = "invoke_agent parent > invoke_workflow release-review"
    review, design = f"{root} > invoke_agent reviewer", f"{root} > invoke_agent architect"
    watch = f"{root} > invoke_agent observer"
    calls = {
        "codex": f"{review} > dispatch codex > invoke_agent reviewer",
        "claude": f"{design} > dispatch claude > invoke_agent architect",
        "gemini": f"{watch} > dispatch gemini > invoke_agent observer",
    }
    assert f"{review} > dispatch claude" in paths  # blocked, and covered by Codex
    assert set(calls.values()) <= set(paths)
    for call in calls.values():  # and below it each runtime's own spans
        assert any(each.startswith(f"{call} > ") for each in paths), paths

    (blocked,) = [span for span in spans if path(span, by_id) == f"{review} > dispatch claude"]
    assert blocked["status_code"] == "ERROR"
    assert flat(blocked)[names.OUTCOME] == names.NOT_STARTED
    assert flat(blocked)[names.HEALTH_STATE] == "cooling_down"
    assert flat(blocked)[names.RETRY_AFTER_S] > 3600
    (covering,) = [span for span in spans if span["name"] == "dispatch codex"]
    assert flat(covering)[names.FALLBACK_REASON] == "capacity"
    for runtime, call in calls.items():
        (calling,) = [span for span in spans if path(span, by_id) == call]
        said = flat(calling)
        envelope = {
            names.OPERATION_NAME: "invoke_agent",
            names.PROVIDER_NAME: {"codex": "openai", "claude": "anthropic", "gemini": "gcp.gemini"}[runtime],
            names.ADAPTER: runtime,
        }
        assert {name: said.get(name) for name in envelope} == envelope
        for name in (names.AGENT_NAME, names.AGENT_ID, names.REQUEST_MODEL, names.CONVERSATION_ID):
            assert said.get(name), (runtime, name)
        (attempt,) = [span for span in spans if span["context"]["span_id"] == calling["parent_id"]]
        for name in (names.POOL, names.HEALTH_STATE, names.HEALTH_PROBE, names.ATTEMPT_NUMBER):
            assert name in flat(attempt), (runtime, name)
    assert "Say something" not in json.dumps(spans)
    for span in spans:
        for name in flat(span):
            ours = name.startswith("gen_ai.") and "claude_code" not in span["name"]
            assert not ours or (name in ATTRIBUTES and name not in DEPRECATED), (span["name"], name)

    screenshot(phoenix, spans[0]["context"]["trace_id"])


def flat(span: Mapping[str, Any]) -> dict[str, Any]:
    """Its attributes with dotted names; the collector nests them."""
    found: dict[str, Any] = {}

    def walk(value: Any, name: str) -> None:
        if isinstance(value, Mapping):
            for key, inner in value.items():
                walk(inner, f"{name}.{key}" if name else str(key))
        else:
            found[name] = value

    walk(span["attributes"], "")
    return found


def screenshot(phoenix: str, trace: str) -> None:
    """What a person sees, into ``CUSTODES_SCREENSHOTS`` where that names a folder and a browser is there."""
    place, browser = os.environ.get("CUSTODES_SCREENSHOTS"), shutil.which("chromium")
    if not place or browser is None:
        return
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        page = running.new_page(viewport={"width": 1440, "height": 1320})
        page.goto(f"{phoenix}/projects/UHJvamVjdDox/traces/{trace}")
        page.get_by_text("dispatch codex").first.click(timeout=60_000)
        page.get_by_text("custodes.fallback.reason").first.wait_for(timeout=60_000)
        page.screenshot(path=str(Path(place) / "phoenix.png"))
        running.close()
