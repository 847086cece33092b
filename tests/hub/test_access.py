"""Who may ask for what: the rules alone."""

from __future__ import annotations

import pytest

from custodes.hub.access import MAX_BODY, Access, csrf_ok, denial, is_loopback
from custodes.hub.server import access_for

LOCAL = Access(host="127.0.0.1", port=8787)
EVERYWHERE = "0.0.0.0"  # noqa: S104  # compared, never bound
OPEN = Access(host=EVERYWHERE, port=8787, token="right")  # noqa: S106  # a stand-in
OURS = {"host": "127.0.0.1:8787"}


@pytest.mark.parametrize("host", ["127.0.0.1:8787", "localhost:8787", "[::1]:8787", "LOCALHOST:8787"])
def test_a_loopback_hub_is_reached_by_every_loopback_name(host: str) -> None:
    assert denial(LOCAL, "GET", "/", {"host": host}) is None


@pytest.mark.parametrize(
    "host",
    [
        "",
        "evil.example:8787",
        "127.0.0.1",
        "127.0.0.1:80",
        "127.0.0.1.evil.example:8787",
        "10.0.0.1:8787",
        "[::1",
        "a:b:c",
    ],
)
def test_any_other_host_is_refused_whatever_it_resolves_to(host: str) -> None:
    found = denial(LOCAL, "GET", "/", {"host": host})
    assert found is not None
    assert found.status == 421


def test_bound_to_every_address_it_is_reached_by_addresses_and_never_by_a_foreign_name() -> None:
    head = {"authorization": "Bearer right"}
    assert denial(OPEN, "GET", "/", {"host": "192.0.2.7:8787", **head}) is None
    assert denial(OPEN, "GET", "/", {"host": "evil.example:8787", **head}) is not None


@pytest.mark.parametrize(
    "head",
    [
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": "https://127.0.0.1:8787"},
        {"origin": "http://127.0.0.1:8788"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
    ],
)
def test_another_sites_page_is_refused(head: dict[str, str]) -> None:
    found = denial(LOCAL, "GET", "/api/settings", {**OURS, **head})
    assert found is not None
    assert found.status == 403


def test_a_link_from_another_site_may_be_followed_and_our_own_page_may_ask() -> None:
    followed = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}
    assert denial(LOCAL, "GET", "/settings", {**OURS, **followed}) is None
    framed = {**followed, "sec-fetch-dest": "iframe"}
    assert denial(LOCAL, "GET", "/settings", {**OURS, **framed}) is not None
    ours = {"origin": "http://127.0.0.1:8787", "sec-fetch-site": "same-origin"}
    assert denial(LOCAL, "POST", "/settings", {**OURS, **ours}) is None


@pytest.mark.parametrize(
    "head",
    [
        {},
        {"authorization": "Bearer wrong"},
        {"authorization": "Basic right"},
        {"cookie": "custodes_hub_8788=right"},
        {"cookie": "custodes_hub_8787=wrong"},
    ],
)
def test_with_a_token_nobody_is_served_without_it(head: dict[str, str]) -> None:
    found = denial(OPEN, "GET", "/api/settings", {**OURS, **head})
    assert found is not None
    assert found.status == 401


@pytest.mark.parametrize(
    "head", [{"authorization": "Bearer right"}, {"cookie": "a=b; custodes_hub_8787=right"}]
)
def test_the_token_is_taken_from_a_cookie_or_a_header(head: dict[str, str]) -> None:
    assert denial(OPEN, "GET", "/api/settings", {**OURS, **head}) is None


def test_a_change_needs_the_token_of_the_page_unless_it_came_with_that_of_the_hub() -> None:
    assert csrf_ok(LOCAL, {}, LOCAL.csrf)
    assert csrf_ok(LOCAL, {"x-csrf-token": LOCAL.csrf}, "")
    assert not csrf_ok(LOCAL, {}, "")
    assert not csrf_ok(LOCAL, {"authorization": "Bearer right"}, "")
    assert csrf_ok(OPEN, {"authorization": "Bearer right"}, "")
    assert not csrf_ok(OPEN, {"cookie": "custodes_hub_8787=right"}, "")


def test_a_body_that_says_it_is_too_large_is_refused_before_it_is_read() -> None:
    found = denial(LOCAL, "POST", "/settings", {**OURS, "content-length": str(MAX_BODY + 1)})
    assert found is not None
    assert found.status == 413


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("127.0.0.1", True),
        ("::1", True),
        ("localhost", True),
        ("127.8.8.8", True),
        (EVERYWHERE, False),
        ("", False),
    ],
)
def test_what_loopback_is(host: str, expected: bool) -> None:
    assert is_loopback(host) is expected


def test_only_loopback_goes_without_a_token_and_each_start_has_its_own() -> None:
    assert access_for("127.0.0.1", 1).access.token is None
    first, second = access_for(EVERYWHERE, 1), access_for("192.0.2.7", 1)
    assert first.access.token
    assert first.access.token != second.access.token
    assert first.url == f"http://localhost:1/token?token={first.access.token}"
    assert access_for("::1", 1).url == "http://[::1]:1/"
    assert access_for("127.0.0.1", 1, ask_token=True).access.token
