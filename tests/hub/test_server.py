"""`cos hub` as it is started and ended: its address, its token, its errors."""

from __future__ import annotations

import importlib.util
import os
import signal
import socket
from pathlib import Path
from typing import Any

import httpx2
import pytest

from support.cos import Cos
from support.hub import started


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_it_serves_until_a_signal_and_ends_at_once_though_a_page_is_followed(
    project: Path, number: signal.Signals, code: int
) -> None:
    with started(project) as (process, address):
        with httpx2.Client(timeout=30) as client, client.stream("GET", f"{address}live/runs") as stream:
            assert stream.status_code == 200
            lines = stream.iter_lines()
            next(lines)
            process.send_signal(number)
            for _ in lines:  # the stream is ended, not cut off
                pass
        assert process.wait(30) == code
        assert process.stderr is not None
        assert process.stderr.read() == ""


def test_a_token_is_asked_for_on_loopback_where_one_wants_it(project: Path) -> None:
    with started(project, "--token") as (_, address), httpx2.Client(timeout=30) as client:
        place, _, token = address.partition("token?token=")
        assert token
        assert client.get(f"{place}api/session").status_code == 401
        assert client.get(address).status_code == 303
        assert client.get(f"{place}api/session").status_code == 200
        assert client.get(f"{place}settings").status_code == 200


@pytest.mark.skipif(not os.path.exists("/proc/net/if_inet6"), reason="no IPv6 here")  # noqa: PTH110
def test_it_is_reached_over_ipv6(project: Path) -> None:
    with started(project, "--host", "::1") as (_, address):
        assert address.startswith("http://[::1]:")
        assert httpx2.get(f"{address}api/session", timeout=30).status_code == 200


def test_a_port_that_is_taken_is_said_with_what_would_work(cos: Cos) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        answer = cos("hub", "--port", str(taken.getsockname()[1]))
    assert answer.code == 1
    assert "--port 0 takes a free one" in answer.err


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--port", "70000"), "0 to 65535 would work"),
        (("--host", "no such host"), "127.0.0.1 would work"),
        (("--host", "192.0.2.1"), "cannot listen on 192.0.2.1"),
    ],
)
def test_an_address_that_is_none_is_said_in_one_line(cos: Cos, words: tuple[str, ...], says: str) -> None:
    answer = cos("hub", *words)
    assert answer.code in (1, 2)
    assert says in answer.err
    assert answer.err.count("\n") == 1


def test_without_its_extra_it_says_what_to_install(cos: Cos, monkeypatch: pytest.MonkeyPatch) -> None:
    real = importlib.util.find_spec

    def without_starlette(name: str, *rest: Any) -> Any:
        return None if name == "starlette" else real(name, *rest)

    monkeypatch.setattr(importlib.util, "find_spec", without_starlette)
    answer = cos("hub")
    assert answer.code == 1
    assert "custodes[hub]" in answer.err


def test_what_is_vendored_is_what_was_published() -> None:
    import hashlib

    from custodes.hub.templates_env import STATIC

    said = (STATIC / "VENDORED.md").read_text()
    for name in ("htmx.min.js", "hx-sse.min.js"):
        assert f"{hashlib.sha256((STATIC / name).read_bytes()).hexdigest()}  {name}" in said
