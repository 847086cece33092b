"""The Hub as a process, spoken to by what is no browser: whatever is said, the next page is served."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import httpx2
import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support import scripted
from support.fuzz import WORDS, cut, spoiled, tried
from support.hub import started
from support.program import running


class Server(NamedTuple):
    pid: int
    address: str

    @property
    def port(self) -> int:
        return int(self.address.rstrip("/").rpartition(":")[2])

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=30)

    def say(self, *pieces: bytes, more: bool = False) -> bytes:
        """What it answers to this, up to its end; ``more``: as if more of it were to come."""
        heard = b""
        with self.connect() as stream, suppress(ConnectionError):
            for piece in pieces:
                stream.sendall(piece)
            if more:
                return b""
            with suppress(OSError):  # where the server has ended it already; that is no ConnectionError
                stream.shutdown(socket.SHUT_WR)
            while piece := stream.recv(1 << 16):
                heard += piece
        return heard

    def serves(self) -> None:
        assert httpx2.get(f"{self.address}api/session", timeout=30).status_code == 200


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("served")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CONFIG_HOME", str(folder / "config"))
        project = folder / "project"
        project.mkdir()
        scripted.install(project, "alpha")
        with started(project) as (process, address):
            server = Server(process.pid, address)
            server.serves()
            yield server
            server.serves()
            process.send_signal(signal.SIGTERM)
            assert process.wait(30) == 128 + signal.SIGTERM
            assert process.stderr is not None
            assert "Traceback" not in process.stderr.read()


def head(method: str, path: str, host: str, *lines: str) -> bytes:
    return "\r\n".join([f"{method} {path} HTTP/1.1", f"host: {host}", *lines, "", ""]).encode("latin-1")


SEEDS = [
    head("GET", "/settings", "127.0.0.1:1"),
    head("GET", "/api/runs?limit=3", "127.0.0.1:1", "accept: */*", "cookie: a=b; c"),
    head("PATCH", "/api/settings", "127.0.0.1:1", "content-type: application/json", "content-length: 2")
    + b"{}",
    head("POST", "/settings", "127.0.0.1:1", "transfer-encoding: chunked") + b"3\r\na=b\r\n0\r\n\r\n",
    head("GET", "/live/runs", "127.0.0.1:1", "last-event-id: 3", "upgrade: websocket", "connection: upgrade"),
]
PIECES = [
    *(b"x: " + b"y" * 70_000 + b"\r\n", b"x: y\r\n" * 2_000, b"\0", b"\r", b"\n", b"\r\n\r\n", b"\xff"),
    *(b"content-length: 5\r\n", b"content-length: -1\r\n", b"content-length: 99999999999999999999\r\n"),
    *(b"content-length: \xb2\r\n", b"transfer-encoding: gzip\r\n", b"expect: 100-continue\r\n", b"HTTP/9.9"),
    *(b"http://evil.example/", b"/../../etc/passwd", b"/%00", b"/%ff%fe", b"//", b"*", b"CONNECT ", b"HEAD "),
    *(b"host: evil.example\r\n", b"origin: null\r\n", b"sec-fetch-site: cross-site\r\n", b"fffffffff\r\n"),
]


@given(data=st.data(), places=st.lists(st.integers(0, 1 << 12), max_size=3), more=st.booleans())
@tried(60)
def test_whatever_is_said_to_it_the_next_page_is_served(
    server: Server, data: st.DataObject, places: list[int], more: bool
) -> None:
    seeds = [seed.replace(b"127.0.0.1:1", b"127.0.0.1:%d" % server.port) for seed in SEEDS]
    said = data.draw(spoiled(seeds, PIECES))
    # What is followed has no end of its own: it goes with its asker.
    heard = server.say(*cut(said, places), more=more or b"/live/" in said or b"stream" in said)
    assert not heard or heard.startswith(b"HTTP/1.1 ")
    assert not heard.startswith(b"HTTP/1.1 5")
    server.serves()


FOREIGN_HOSTS = [
    "evil.example",
    "127.0.0.1.evil.example",
    "localhost.evil.example",
    "[::1",
    "127.0.0.1:1",
    "",
]
FOREIGN_HOSTS += ["127.0.0.1\x00", "0x7f000001", "2130706433", "127.1", "[::ffff:10.0.0.1]", "@", "a:b:c"]


@pytest.mark.parametrize("path", ["/", "/settings", "/api/session", "/live/runs", "/static/hub.js"])
def test_a_host_that_is_none_of_its_names_gets_nothing(server: Server, path: str) -> None:
    for host in FOREIGN_HOSTS:
        port = "" if ":" in host or not host else f":{server.port}"
        heard = server.say(head("GET", path, host + port))
        assert heard.startswith((b"HTTP/1.1 421", b"HTTP/1.1 400")), (host, heard[:200])
        assert b"csrf_token" not in heard


@given(origin=st.sampled_from(WORDS) | st.text(max_size=30))
@tried(40)
def test_an_origin_that_is_not_its_own_changes_nothing(server: Server, origin: str) -> None:
    name = origin.encode("ascii", "ignore").decode().translate(dict.fromkeys(range(32)))[:500]
    token = httpx2.get(f"{server.address}api/session", timeout=30).json()["csrf_token"]
    said = head(
        "PATCH",
        "/api/settings",
        f"127.0.0.1:{server.port}",
        f"origin: {name}",
        f"x-csrf-token: {token}",
        "content-length: 2",
    )
    assert server.say(said + b"{}").startswith(b"HTTP/1.1 403")


def test_a_form_of_more_fields_than_any_is_refused(server: Server) -> None:
    body = b"&".join(b"a=b" for _ in range(2_000))
    kind = "content-type: application/x-www-form-urlencoded"
    host = f"127.0.0.1:{server.port}"
    heard = server.say(head("POST", "/settings", host, kind, f"content-length: {len(body)}") + body)
    assert heard.startswith(b"HTTP/1.1 403")


def _open_files(server: Server) -> int:
    return psutil.Process(server.pid).num_fds()


@pytest.mark.parametrize("waves", [3, pytest.param(50, marks=pytest.mark.full)])
def test_followers_that_vanish_leave_nothing_behind_and_make_room_for_the_next(
    server: Server, waves: int
) -> None:
    host = f"127.0.0.1:{server.port}"
    server.serves()
    before = _open_files(server)
    for wave in range(waves):
        with ExitStack() as stack:
            for number in range(60):
                stream = stack.enter_context(server.connect())
                stream.sendall(head("GET", "/live/runs", host))
                if (wave + number) % 3:
                    assert stream.recv(12) == b"HTTP/1.1 200"
                if number % 2:  # it goes without a word, as one that was killed behind a dead line
                    stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        deadline = 200
        while _open_files(server) > before + 8 and deadline:
            server.serves()
            deadline -= 1
        assert _open_files(server) <= before + 8


def test_those_who_say_nothing_or_half_a_request_keep_nobody_waiting(server: Server) -> None:
    host = f"127.0.0.1:{server.port}"
    halves = [b"", b"GET ", head("GET", "/", host)[:-2], head("POST", "/settings", host, "content-length: 9")]
    with ExitStack() as stack:
        for number in range(100):
            stream = stack.enter_context(server.connect())
            stream.sendall(halves[number % len(halves)])
        server.serves()
        assert httpx2.get(f"{server.address}settings", timeout=30).status_code == 200


IMPATIENT = """
import resource
import sys

from custodes.cli.app import call
from custodes.hub import server

server.HEAD_S = float(sys.argv[1])
limit = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (256, limit[1]))
sys.exit(call(["hub", "--port", "0"]))
"""


@contextmanager
def impatient(project: Path, head_s: float) -> Iterator[Server]:
    """One that waits ``head_s`` for a request, with as few descriptors as any system gives it."""
    words = [sys.executable, "-c", IMPATIENT, str(head_s)]
    with running(words, cwd=project, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        server = Server(process.pid, process.stdout.readline().split()[-1])
        yield server
        process.send_signal(signal.SIGTERM)
        assert process.stderr is not None
        assert process.stderr.read() == ""


@pytest.mark.parametrize("said", [b"", b"GET / HT", b"GET /api/session HTTP/1.1\r\nhost: %s\r\n\r\nGET "])
def test_a_head_that_does_not_come_is_not_waited_for(tmp_path: Path, said: bytes) -> None:
    with impatient(tmp_path, 0.5) as server, server.connect() as stream:
        stream.sendall(said.replace(b"%s", b"127.0.0.1:%d" % server.port))
        with suppress(ConnectionError):
            while stream.recv(1 << 16):
                pass
        server.serves()


def test_of_many_connections_the_last_ones_are_closed_and_the_first_are_served(tmp_path: Path) -> None:
    with impatient(tmp_path, 600) as server, ExitStack() as stack:
        with httpx2.Client(base_url=server.address, timeout=30) as client:
            assert client.get("api/session").status_code == 200  # and its connection stays open
            others = [stack.enter_context(server.connect()) for _ in range(300)]
            for other in others[-100:]:
                with suppress(ConnectionError):
                    assert other.recv(1) == b""
            assert client.get("api/session").status_code == 200
        for other in others:
            other.close()
        server.serves()
