"""Questions to a real server on loopback: what is sent, what comes back, and what is never told."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from custodes.overseer.ask import ask
from custodes.overseer.config import Config
from custodes.overseer.endpoint import Endpoint, endpoints
from custodes.overseer.probe import Answer, judge
from support.health_provider import HealthProvider, health_provider
from support.overseer import config, seed_config

pytestmark = pytest.mark.anyio
KEY = "sk-very-secret"


def of(provider: HealthProvider, **changes: Any) -> Endpoint:
    found: Config = config(providers={"a": {"health_url": provider.url, **changes}})
    return next(each for each in endpoints(found) if "a" in each.providers)


async def asked(provider: HealthProvider, timeout: float = 5.0, **changes: Any) -> Answer:  # noqa: ASYNC109 - as asked
    return await ask(of(provider, **changes), timeout)


async def test_a_list_of_models_is_asked_for_by_get_without_a_key() -> None:
    with health_provider("m") as provider:
        answer = await asked(provider)
        assert (answer.status, answer.trouble, answer.keyed) == (200, "", False)
        assert answer.body["data"][0]["id"] == "m"
        ((method, path, headers),) = provider.asked
        assert (method, path) == ("GET", "/v1/models")
        assert "authorization" not in {name.lower() for name in headers}


async def test_a_completion_is_sent_only_where_the_file_says_so() -> None:
    with health_provider() as provider:
        await asked(provider, probe="completion", probe_model="m")
        await asked(provider, probe="health")
        assert provider.methods == ["POST", "GET"]


async def test_a_key_comes_from_a_variable_or_a_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_KEY", KEY)
    with health_provider() as provider:
        await asked(provider, key_env="A_KEY")
        await asked(provider, key_command=[sys.executable, "-c", f"print('{KEY}')"])
        sent = [{name.lower(): value for name, value in headers.items()} for _, _, headers in provider.asked]
        assert [each["authorization"] for each in sent] == [f"Bearer {KEY}"] * 2


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"key_env": "NO_SUCH_KEY_HERE"}, "NO_SUCH_KEY_HERE is not set"),
        ({"key_command": [sys.executable, "-c", f"print('{KEY}'); exit(1)"]}, "ended with 1"),
        ({"key_command": ["/no/such/program"]}, "/no/such/program"),
        ({"key_command": [sys.executable, "-c", f"print('{KEY}\\u00e9')"]}, "no header can carry"),
    ],
)
async def test_without_its_key_nothing_is_asked_and_no_secret_told(
    changes: dict[str, Any], says: str
) -> None:
    with health_provider() as provider:
        answer = await asked(provider, **changes)
        assert (answer.trouble, provider.asked) == ("key", [])
        assert says in answer.detail
        assert KEY not in answer.detail


async def test_silence_refusal_and_nonsense_are_told_apart() -> None:
    with health_provider() as provider:
        provider.status = 0
        assert (await asked(provider, timeout=0.2)).trouble == "timeout"
        provider.status, provider.headers = 302, {"location": "http://127.0.0.1:1/elsewhere"}
        assert (await asked(provider)).status == 302
        provider.refuse()
        assert (await asked(provider)).trouble == "refused"


async def test_an_answer_without_end_is_cut_off() -> None:
    with health_provider() as provider:
        provider.body = "x" * (3 << 20)
        answer = await asked(provider)
        assert (answer.status, answer.body) == (200, None)


async def test_a_usage_api_says_what_is_left() -> None:
    with health_provider() as provider, health_provider() as usage:
        usage.body = {"data": {"limit_remaining": 0.25}}
        where = {"url": usage.url, "remaining": "data.limit_remaining"}
        assert (await asked(provider, usage=where)).left == 0.25
        usage.body = {"data": []}
        assert (await asked(provider, usage=where)).left is None


async def test_a_number_that_is_none_says_nothing_of_what_is_left() -> None:
    with health_provider() as provider, health_provider() as usage:
        usage.body = '{"left": ' + "9" * 400 + "}"
        answer = await asked(provider, usage={"url": usage.url, "remaining": "left"})
        assert (answer.status, answer.left) == (200, None)


@pytest.mark.parametrize("proxy", ["pigeon://nest", "socks5://127.0.0.1:1"])
async def test_a_proxy_that_cannot_be_used_is_no_outage_of_a_provider(
    monkeypatch: pytest.MonkeyPatch, proxy: str
) -> None:
    """The client itself cannot be made: that is this machine's, and every provider would seem dead."""
    monkeypatch.setenv("HTTP_PROXY", proxy)
    found = config(providers={"a": {"health_url": "http://api.example/v1/models"}})
    answer = await ask(endpoints(found)[0], 5.0)
    assert answer.trouble == "client"
    assert "proxy" in answer.detail.lower()
    verdict = judge("a", found.providers["a"], answer, 1.8e9, (), ())
    assert (verdict.kind, verdict.detail) == ("misconfigured", answer.detail)


def test_providers_that_share_an_address_share_the_probe() -> None:
    (only,) = endpoints(seed_config())
    assert only.providers == ("opencode-go", "grok-cli", "gemini", "nvidia")


def test_a_key_or_a_model_of_its_own_makes_a_probe_of_its_own() -> None:
    url = "http://127.0.0.1:9/v1"
    one = {"health_url": url}
    found = config(providers={"a": one, "b": {**one, "key_env": "B"}, "c": {**one, "probe": "completion"}})
    assert [each.providers for each in endpoints(found)] == [("a",), ("b",), ("c",)]


async def test_a_key_command_runs_in_the_current_folder_and_still_where_that_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "here"
    folder.mkdir()
    (folder / "key").write_text(KEY)
    monkeypatch.chdir(folder)
    with health_provider() as provider:
        assert (await asked(provider, key_command=["cat", "key"])).keyed
        (folder / "key").unlink()
        folder.rmdir()
        assert (await asked(provider, key_command=[sys.executable, "-c", f"print('{KEY}')"])).keyed
