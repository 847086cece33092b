"""The overseer's page, and the same by the API: seen, and switched by hand."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from custodes.overseer import daemon
from custodes.overseer.reading import read_config
from support.hub import Browser
from support.overseer import SEED_FILE, kept_in_a_file

pytestmark = pytest.mark.anyio


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The profile ``w``, kept in the file that this is; its providers are down."""
    home = tmp_path / "hermes"
    home.mkdir()
    monkeypatch.setenv("HERMES_HOME", str(home))
    return kept_in_a_file(home)


async def dead(project: Path, model: Path) -> None:
    """Both providers are known to be."""
    for _ in range(3):
        await daemon.tick(project, read_config(model.with_name("supervisor.yaml")))


async def test_the_overseers_page_says_how_to_begin_where_none_is_configured(
    page: Browser, project: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HERMES_HOME", str(tmp_path))
    shown = (await page.get("/overseer")).text
    assert "No overseer is configured" in shown
    assert "supervisor.yaml" in shown


async def test_the_overseers_page_shows_providers_profiles_and_incidents(
    page: Browser, project: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HERMES_HOME", str(tmp_path))
    (tmp_path / "supervisor.yaml").write_bytes(SEED_FILE.read_bytes())
    shown = (await page.get("/overseer")).text
    for name in ("opencode-go", "grok-cli", "not running", "There were none."):
        assert name in shown


async def test_a_profile_is_switched_from_its_page_and_that_is_told(
    page: Browser, project: Path, model: Path
) -> None:
    shown = (await page.get("/overseer")).text
    assert '<option value="b/two">b/two, unknown</option>' in shown
    answer = await page.post("/overseer/switch", {"profile": "w", "target": "b/two", "was": "a/one"})
    assert (answer.status_code, model.read_text()) == (204, "b/two")
    shown = (await page.get("/overseer")).text
    assert "by hand (hub)" in shown
    assert "a person holds it on b/two" in shown
    plain = await page.post("/overseer/switch", {"profile": "w", "target": "primary"}, script=False)
    assert (plain.status_code, plain.headers["location"], model.read_text()) == (303, "/overseer", "a/one")
    log = (project / ".coding-os" / "supervisor.log").read_text().splitlines()
    assert {json.loads(line)["by"] for line in log} == {"hub"}


async def test_a_switch_on_what_was_seen_before_another_is_refused(page: Browser, model: Path) -> None:
    model.write_text("their/own")
    answer = await page.post("/overseer/switch", {"profile": "w", "target": "b/two", "was": "a/one"})
    assert (answer.status_code, model.read_text()) == (409, "their/own")
    assert "is on their/own by now" in answer.text
    assert answer.headers["hx-retarget"] == "#notice"


async def test_one_that_is_not_well_is_refused_unless_that_is_said(
    page: Browser, project: Path, model: Path
) -> None:
    await dead(project, model)
    fields = {"profile": "w", "target": "b/two"}
    assert (await page.post("/overseer/switch", fields)).status_code == 409
    assert (await page.post("/overseer/switch", {**fields, "force": "on"})).status_code == 204
    assert model.read_text() == "b/two"


async def test_nothing_is_switched_without_the_pages_token(page: Browser, model: Path) -> None:
    for fields in ({"csrf": ""}, {"csrf": "another"}):
        answer = await page.post("/overseer/switch", {"profile": "w", "target": "b/two", **fields})
        assert (answer.status_code, model.read_text()) == (403, "a/one")


async def test_the_api_tells_the_same_as_the_page_and_switches(page: Browser, model: Path) -> None:
    told = (await page.get("/api/overseer")).json()
    assert (told["pid"], [each["provider"] for each in told["providers"]]) == (None, ["a", "b"])
    path = "/api/overseer/profiles/w/switch"
    done = (await page.call("POST", path, {"target": "b/two", "was": "a/one"})).json()
    assert done == {
        "profile": "w",
        "old_model": "a/one",
        "new_model": "b/two",
        "held": True,
        "moved": True,
        "changed": True,
        "by": "hub",
    }
    (incident,) = (await page.get("/api/overseer/incidents")).json()["incidents"]
    assert (incident["cause"], incident["by"], incident["status"]) == ("hand:a:w", "hub", "active")
    assert (await page.get("/api/overseer")).json()["profiles"][0]["by_hand"] is True


@pytest.mark.parametrize(
    ("profile", "body", "status", "kind", "words"),
    [
        ("v", {"target": "b/two"}, 404, "overseer", "there is no profile 'v'"),
        ("w", {"target": "b/too"}, 404, "overseer", "did you mean 'b/two'?"),
        ("w", {"target": "b/two", "was": "c/three"}, 409, "overseer", "no longer on c/three"),
        ("w", {"target": 7}, 400, "arguments", "target"),
        ("w", {"taget": "b/two"}, 400, "arguments", "did you mean 'target'?"),
        ("w", {}, 400, "arguments", "target"),
    ],
)
async def test_a_call_that_cannot_be_is_refused(
    page: Browser,
    model: Path,
    profile: str,
    body: object,
    status: int,
    kind: str,
    words: str,
) -> None:
    answer = await page.call("POST", f"/api/overseer/profiles/{profile}/switch", body)
    error = answer.json()["error"]
    assert (answer.status_code, error["kind"]) == (status, kind)
    assert words in error["message"]
    assert model.read_text() == "a/one"


async def test_without_a_configuration_a_call_says_where_one_belongs(
    page: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HERMES_HOME", str(tmp_path / "nowhere"))
    for answer in (
        await page.get("/api/overseer"),
        await page.call("POST", "/api/overseer/profiles/w/switch", {"target": "auto"}),
    ):
        assert (answer.status_code, answer.json()["error"]["kind"]) == (422, "overseer")
        assert "supervisor.yaml" in answer.json()["error"]["message"]
    assert (await page.get("/api/overseer/incidents")).json() == {"incidents": []}
    assert (await page.get("/api/overseer/incidents?limit=0")).status_code == 400
