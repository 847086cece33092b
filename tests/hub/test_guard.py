"""Hostile requests against the whole application."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest
from starlette.types import Message

from custodes.hub import guard
from custodes.hub.access import MAX_BODY
from custodes.policy.settings import Settings
from support.hub import BASE, Browser, asked, browser

pytestmark = pytest.mark.anyio


async def nothing_more() -> Message:
    return {"type": "http.request", "body": b"", "more_body": False}


CHANGES = [
    ("POST", "/settings"),
    ("POST", "/settings/preview"),
    ("POST", "/adapters/clear"),
    ("POST", "/adapters/check"),
    ("PATCH", "/api/settings"),
    ("DELETE", "/api/config/adapters/alpha/health"),
    ("POST", "/api/config/adapters/alpha/check"),
]


@pytest.mark.parametrize(("method", "path"), CHANGES)
async def test_no_change_goes_without_the_token_of_a_page(
    page: Browser, pair: Path, method: str, path: str
) -> None:
    before = Settings(pair).path.read_bytes()
    for head in ({}, {"x-csrf-token": "wrong"}):
        answer = await page.client.request(method, path, content=b'{"enabled": false}', headers=head)
        assert answer.status_code == 403
        assert "token" in answer.text
    assert Settings(pair).path.read_bytes() == before


@pytest.mark.parametrize(("method", "path"), CHANGES)
async def test_no_change_goes_from_a_foreign_page_that_learned_the_token(
    page: Browser, pair: Path, method: str, path: str
) -> None:
    head = {"x-csrf-token": page.hub.access.csrf, "origin": "http://evil.example"}
    answer = await page.client.request(method, path, content=b"{}", headers=head)
    assert answer.status_code == 403


@pytest.mark.parametrize("path", ["/", "/settings", "/api/settings", "/static/hub.js", "/live/settings"])
async def test_a_rebound_name_gets_nothing(page: Browser, path: str) -> None:
    answer = await page.get(path, host="evil.example:8787")
    assert answer.status_code == 421
    assert page.hub.access.csrf not in answer.text


async def test_a_body_of_ten_megabytes_is_refused_whether_it_says_so_or_not(
    page: Browser, pair: Path
) -> None:
    head = {"x-csrf-token": page.hub.access.csrf}
    said = await page.client.patch("/api/settings", content=b"x" * (10 << 20), headers=head)
    assert said.status_code == 413
    assert str(MAX_BODY) in said.json()["error"]["message"]

    taken = 0

    async def receive() -> Message:
        nonlocal taken
        taken += 1
        return {"type": "http.request", "body": b"x" * (1 << 16), "more_body": taken < 160}

    sent = await asked(page.hub, "PATCH", "/api/settings", receive, head)
    assert sent[0]["status"] == 413
    assert taken == MAX_BODY // (1 << 16) + 1


async def test_a_body_that_does_not_come_is_not_waited_for_without_end(
    page: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guard, "BODY_S", 0.0)

    async def receive() -> Message:
        await anyio.sleep_forever()
        raise AssertionError

    with anyio.fail_after(30):
        sent = await asked(page.hub, "PATCH", "/api/settings", receive)
    assert sent[0]["status"] == 408


@pytest.mark.parametrize(
    "path",
    [
        "/static/../app.py",
        "/static/..\\app.py",
        "/static//etc/passwd",
        "/static/VENDORED.md",
        "/live/../settings/none",
        "//evil.example/",
        "/\0",
        "/runs/../../../../etc/passwd",
    ],
)
async def test_no_path_leads_out_of_the_pages(page: Browser, path: str) -> None:
    sent = await asked(page.hub, "GET", path, nothing_more)
    assert sent[0]["status"] == 404
    said = b"".join(message.get("body", b"") for message in sent)
    assert b"root:" not in said
    assert b"import" not in said


async def test_every_answer_carries_the_headers_that_bind_a_browser(page: Browser) -> None:
    for path in ("/settings", "/api/session", "/static/hub.css", "/nothing", "/api/nothing"):
        headers = (await page.get(path)).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["x-frame-options"] == "DENY"
        assert headers["referrer-policy"] == "same-origin"
        assert headers["cross-origin-resource-policy"] == "same-origin"
        assert "access-control-allow-origin" not in headers


async def test_no_page_needs_what_its_policy_forbids(page: Browser, pair: Path) -> None:
    for path in ("/settings", "/adapters", "/runs"):
        text = (await page.get(path)).text
        assert "style=" not in text
        assert " onclick" not in text
        assert text.count("<script") == text.count('<script src="/static/')
        assert "://" not in text.replace("http://www.w3.org", "")


async def test_pages_are_not_kept_and_a_wrong_method_is_said(page: Browser) -> None:
    assert (await page.get("/settings")).headers["cache-control"] == "no-store"
    assert (await page.call("PUT", "/api/settings", {})).status_code == 405


async def test_a_hub_with_a_token_shows_nothing_before_it(project: Path) -> None:
    async with browser(project, token="the-token") as page:  # noqa: S106  # a stand-in
        assert (await page.get("/settings")).status_code == 401
        assert (await page.get("/api/session")).status_code == 401
        assert (await page.get("/token")).status_code == 200
        assert (await page.get("/token?token=wrong")).status_code == 401
        assert (await page.get("/settings")).status_code == 401
        taken = await page.get("/token?token=the-token")
        assert (taken.status_code, taken.headers["location"]) == (303, "/settings")
        assert "httponly" in taken.headers["set-cookie"].lower()
        assert "samesite=strict" in taken.headers["set-cookie"].lower()
        assert (await page.get("/settings")).status_code == 200
        page.client.cookies.clear()
        form = {"content-type": "application/x-www-form-urlencoded", "origin": BASE}
        assert (await page.client.post("/token", content="token=the-token", headers=form)).status_code == 303
        page.client.cookies.clear()
        told = await page.client.patch(
            "/api/settings", content=b'{"mode": "suggest"}', headers={"authorization": "Bearer the-token"}
        )
        assert told.json()["policy"]["mode"] == "suggest"
