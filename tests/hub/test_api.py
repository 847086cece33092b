"""The API: the same documents as the command line's, and a document of itself."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import anyio.to_thread
import pytest

from custodes.hub.endpoints import ENDPOINTS
from custodes.policy.normalize import policy_keys
from custodes.policy.patch import PolicyPatch
from custodes.policy.settings import Settings
from support import scripted
from support.cos import Cos
from support.hub import Browser

from .test_adapters_page import limited

pytestmark = pytest.mark.anyio


async def told(cos: Cos, *words: str) -> Any:
    """What the command line says; in a thread, since it runs a loop of its own."""
    answer = await anyio.to_thread.run_sync(partial(cos, *words, "--format", "json"))
    return answer.document


async def test_settings_are_the_document_of_the_command_line(page: Browser, pair: Path, cos: Cos) -> None:
    assert (await page.get("/api/settings")).json() == (await told(cos, "supervision", "show"))


async def test_a_change_is_made_field_by_field_and_answered_with_how_it_then_stands(
    page: Browser, pair: Path
) -> None:
    answer = await page.call(
        "PATCH", "/api/settings", {"roles": {"reviewer": {"effort": "low"}}, "max_parallel": 5}
    )
    assert answer.json()["policy"]["roles"]["reviewer"]["effort"] == "low"
    answer = await page.call("PATCH", "/api/settings", {"clear": ["roles.reviewer.effort"]})
    assert answer.json()["policy"]["roles"] == {}
    assert answer.json()["policy"]["max_parallel"] == 5


@pytest.mark.parametrize("key", policy_keys())
async def test_every_key_can_be_cleared(page: Browser, pair: Path, key: str) -> None:
    name = (
        key.replace("<preset>.<role>", "night.architect")
        .replace("<preset>", "night")
        .replace("<role>", "reviewer")
    )
    scripted.configure(
        pair, roles={"reviewer": {"effort": "low"}}, presets={"night": {"architect": {"effort": "low"}}}
    )
    assert (await page.call("PATCH", "/api/settings", {"clear": [name]})).status_code == 200


async def test_a_change_on_an_old_version_is_refused_with_both(page: Browser, pair: Path) -> None:
    version = (await page.get("/api/settings")).json()["version"]
    Settings(pair).patch(PolicyPatch(max_parallel=9), page.hub.project.catalog())
    answer = await page.call("PATCH", "/api/settings", {"version": version, "max_parallel": 5})
    error = answer.json()["error"]
    assert (answer.status_code, error["kind"]) == (409, "version")
    assert error["asked"]["max_parallel"] == 5
    assert error["current"]["policy"]["max_parallel"] == 9
    again = {"version": error["current"]["version"], "max_parallel": 5}
    assert (await page.call("PATCH", "/api/settings", again)).status_code == 200


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        ({"mod": "explicit"}, 400, "mode"),
        ({"max_parallel": "5"}, 400, "int"),
        ([], 400, "no JSON object"),
        ({"mode": "adaptve"}, 422, "adaptive"),
        ({"roles": {"reviewr": {"effort": "low"}}}, 422, "reviewer"),
        ({"roles": {"reviewer": {"adapter": "alpha", "model": "no"}}}, 422, "is not declared by adapter"),
        ({"clear": ["no.such"]}, 422, "no key of the policy"),
    ],
)
async def test_what_cannot_be_is_refused_with_what_would_work(
    page: Browser, pair: Path, body: object, status: int, words: str
) -> None:
    answer = await page.call("PATCH", "/api/settings", body)
    assert answer.status_code == status
    assert words in answer.json()["error"]["message"]


async def test_a_body_that_is_no_json_is_refused(page: Browser, pair: Path) -> None:
    head = {"x-csrf-token": page.hub.access.csrf}
    answer = await page.client.patch("/api/settings", content=b"{", headers=head)
    assert answer.status_code == 400


async def test_health_and_its_clearing(page: Browser, pair: Path, cos: Cos) -> None:
    await limited(pair)
    mine, theirs = (await page.get("/api/health")).json(), (await told(cos, "health", "show"))
    assert [each["pool"] for each in mine["pools"]] == [each["pool"] for each in theirs["pools"]]
    answer = await page.call("DELETE", "/api/config/adapters/alpha/health?pool=alpha:large")
    assert answer.json() == {"cleared": ["alpha:large"]}
    assert (await page.call("DELETE", "/api/config/adapters/alpha/health?pool=beta:large")).status_code == 400
    assert (await page.call("DELETE", "/api/config/adapters/alpha/health")).status_code == 200
    assert (await page.call("DELETE", "/api/config/adapters/none/health")).status_code == 404


async def test_every_pool_that_cools_and_the_soonest_recovery_are_data(page: Browser, pair: Path) -> None:
    await limited(pair, 5)
    adapters = {each["id"]: each for each in (await page.get("/api/config/adapters")).json()["adapters"]}
    assert adapters["alpha"]["health"]["limited"] == ["alpha:large", "alpha:small"]
    assert adapters["alpha"]["health"]["recovery_s"] <= 5
    told = (await page.get("/api/explain?role=reviewer&adapter=alpha")).json()
    assert told["candidates"][0]["health"]["state"] == "cooling_down"
    assert 0 < told["candidates"][0]["health"]["recovery_s"] <= 5


async def test_an_explanation_that_makes_no_sense_is_refused(page: Browser, pair: Path) -> None:
    assert "reviewer" in (await page.get("/api/explain?role=reviewr")).json()["error"]["message"]
    assert "a role is missing, as ?role=" in (await page.get("/api/explain")).json()["error"]["message"]
    assert (
        "COMPLEX" in (await page.get("/api/explain?role=reviewer&complexity=hard")).json()["error"]["message"]
    )


async def test_runs_and_traces_are_the_documents_of_the_command_line(
    page: Browser, pair: Path, cos: Cos
) -> None:
    await limited(pair)
    listed = (await page.get("/api/runs")).json()
    assert listed == (await told(cos, "runs", "list"))
    run = listed["conversations"][0]["runs"][0]
    shown = (await page.get(f"/api/runs/{run['run_id']}")).json()
    assert shown == await told(cos, "runs", "show", run["run_id"])
    trace = (await page.get("/api/cognition/trace/c")).json()
    assert trace == (await told(cos, "cognition", "trace", "c"))
    assert (await page.get("/api/runs/none")).status_code == 404
    assert (await page.get("/api/cognition/trace/none")).status_code == 404
    for limit in ("0", "x", "-1", "1001", "9" * 30):
        assert (await page.get(f"/api/runs?limit={limit}")).status_code == 400


async def test_roles_and_the_token_for_changes(page: Browser) -> None:
    assert len((await page.get("/api/roles")).json()["roles"]) == 11
    assert (await page.get("/api/session")).json()["csrf_token"] == page.hub.access.csrf


async def test_the_document_names_every_endpoint_and_every_reference_in_it_leads_somewhere(
    page: Browser,
) -> None:
    document = (await page.get("/api/openapi.json")).json()
    assert document["openapi"].startswith("3.1")
    served = {(endpoint.method.lower(), endpoint.path) for endpoint in ENDPOINTS}
    assert {(method, path) for path, item in document["paths"].items() for method in item} == served
    assert {"/api/settings", "/api/config/adapters", "/api/cognition/trace/{session}"} <= set(
        document["paths"]
    )
    schemas = document["components"]["schemas"]
    text = json.dumps(document)
    named = {part.partition('"')[0] for part in text.split("#/components/schemas/")[1:]}
    assert named <= set(schemas)
    assert "mode" in schemas["SettingsPatch"]["properties"]


async def test_no_secret_of_the_environment_is_in_any_answer(
    page: Browser, pair: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret")
    (pair / ".coding-os.yaml").write_text("agents: [alpha, openai]\n")
    for path in ("/settings", "/adapters", "/api/settings", "/api/config/adapters", "/api/health"):
        assert "sk-very-secret" not in (await page.get(path)).text
