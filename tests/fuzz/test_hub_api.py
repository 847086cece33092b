"""The Hub's API against the document it gives of itself: an answer of the stated form, or a refusal."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import anyio.from_thread
import httpx2
import msgspec
import pytest
import schemathesis
from hypothesis import given
from hypothesis import strategies as st

from custodes.hub.documents import ErrorAnswer
from custodes.hub.endpoints import ENDPOINTS, Endpoint
from custodes.hub.openapi import document
from support import scripted
from support.fuzz import CANARY, WORDS, tried
from support.hub import Browser, browser

SCHEMA = schemathesis.openapi.from_dict(document())
ASKED = [endpoint for endpoint in ENDPOINTS if not endpoint.stream]


class Api:
    """A Hub in this process, asked from outside its loop."""

    def __init__(self, portal: anyio.from_thread.BlockingPortal, page: Browser) -> None:
        self._portal = portal
        self._page = page

    def ask(self, endpoint: Endpoint, path: str, query: dict[str, Any], body: bytes) -> httpx2.Response:
        async def send() -> httpx2.Response:
            token = {"x-csrf-token": self._page.hub.access.csrf}
            return await self._page.client.request(
                endpoint.method, path, params=query, content=body, headers=token
            )

        return self._portal.call(send)


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    folder = tmp_path_factory.mktemp("api")
    with pytest.MonkeyPatch.context() as patch, anyio.from_thread.start_blocking_portal() as portal:
        patch.setenv("XDG_CONFIG_HOME", str(folder / "config"))
        project = folder / "project"
        project.mkdir()
        scripted.install(project, "alpha", "beta")
        with portal.wrap_async_context_manager(browser(project)) as page:
            yield Api(portal, page)


def holds(endpoint: Endpoint, answer: httpx2.Response) -> None:
    assert answer.status_code < 500, answer.text
    assert CANARY not in answer.headers.get("set-cookie", "")
    if answer.status_code == 200 and endpoint.answer is not None:
        msgspec.json.decode(answer.content, type=endpoint.answer, strict=False)
    elif answer.headers["content-type"].startswith("application/json"):
        assert msgspec.json.decode(answer.content, type=ErrorAnswer).error.message


@pytest.mark.parametrize("endpoint", ASKED, ids=lambda each: f"{each.method} {each.path}")
@given(data=st.data())
@tried(4)
def test_what_the_document_allows_is_answered_in_the_stated_form(
    api: Api, endpoint: Endpoint, data: st.DataObject
) -> None:
    operation = SCHEMA[endpoint.path][endpoint.method]
    case = data.draw(operation.as_strategy())
    body = b"" if endpoint.body is None else msgspec.json.encode(case.body)
    holds(endpoint, api.ask(endpoint, case.formatted_path, dict(case.query), body))


@pytest.mark.parametrize("endpoint", ASKED, ids=lambda each: f"{each.method} {each.path}")
@given(data=st.data())
@tried(4)
def test_what_the_document_does_not_allow_is_refused_in_words(
    api: Api, endpoint: Endpoint, data: st.DataObject
) -> None:
    word = st.sampled_from(WORDS).map(lambda text: text[:500])
    path = endpoint.path
    for name in ("id", "session"):
        path = path.replace("{" + name + "}", quote(data.draw(word), safe="") or "x")
    query = {each.name: data.draw(word) for each in endpoint.parameters}
    deep = st.just("[" * 900 + "]" * 900)
    body = data.draw(word | st.text(max_size=20) | deep).encode() if endpoint.body else b""
    holds(endpoint, api.ask(endpoint, path, query, body))


@pytest.mark.parametrize("limit", ["000000001" + "9" * 30, "\u0663", "\u00b2", "0"])
def test_a_number_of_runs_that_is_none_is_refused(api: Api, limit: str) -> None:
    runs = next(each for each in ASKED if each.path == "/api/runs")
    assert api.ask(runs, "/api/runs", {"limit": limit}, b"").status_code == 400


@pytest.mark.parametrize("body", [b"", b"[" * 900 + b"]" * 900, b"\xff", b"[]"], ids=range(4))
def test_a_change_without_a_document_is_refused_and_never_waits_for_one(api: Api, body: bytes) -> None:
    settings = next(each for each in ASKED if (each.method, each.path) == ("PATCH", "/api/settings"))
    answer = api.ask(settings, settings.path, {}, body)
    assert answer.status_code == 400
    holds(settings, answer)
