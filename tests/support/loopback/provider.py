"""A model provider on loopback that does as its script says, in four vendors' protocols at once.

    with loopback("limit", "success") as provider:
        ...  # aim a runtime at provider.url (Anthropic, Gemini) or provider.openai_url (Responses, Chat)
        assert [asked.protocol for asked in provider.journal] == ["anthropic", "anthropic"]

Each request for a completion takes the next case of the script; the last one repeats. The cases:

success        an answer (`answers.TEXT`), or JSON that fits the schema the request states
limit          429 with ``retry-after: 7``; ``limit_long`` 3600, ``limit_date`` as a date, ``limit_bare`` none
usage_limit    a subscription's window is spent for two hours, with the vendor's own headers and fields
quota, billing, auth, forbidden, server_error, unavailable, overload, context, bad_request, unknown_model
               the vendor's refusal of that name (`faults`)
hang           takes the request and says nothing
stall          half an answer, then nothing
cut            half an answer, then the connection is closed in the middle of the body
cut_clean      half an answer, then a well-formed end of the body
reset          the connection is reset before any answer
malformed      200 with broken JSON;  ``html``  200 with a page
stream_error   half an answer, then the vendor's overload event inside the stream
tool           first a call of the declared shell tool with ``command``, then, given its result, an answer
ask            the same, with the tool told that it must leave its sandbox, where it knows one

`refused()` is an address nobody listens at. Everything ends with the block, silent connections included.
Standard library only; runs in threads of its own, so any event loop may be the client.
"""

from __future__ import annotations

import socket
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import ThreadingHTTPServer
from typing import Any

from support.loopback.answers import TEXT
from support.loopback.faults import is_refusal

CASES = frozenset(
    {
        *("success", "tool", "ask", "hang", "stall", "cut", "cut_clean", "reset", "malformed", "html"),
        "stream_error",
    }
)


@dataclass(frozen=True)
class Asked:
    """One request. ``at`` is in seconds since the provider began; ``protocol`` is "" for anything else than
    a completion (a list of models, telemetry); ``called`` the tool that was called in the answer."""

    at: float
    method: str
    path: str
    protocol: str
    model: str
    case: str
    headers: Mapping[str, str]
    body: dict[str, Any]
    called: str = ""


@dataclass
class Provider:
    """A running provider. ``script`` may be changed while it runs."""

    script: list[str]
    command: str
    text: str = TEXT
    url: str = ""
    requests: list[Asked] = field(default_factory=list)
    """Everything that was asked, in order."""
    arrived: threading.Event = field(default_factory=threading.Event)
    """A completion was asked for."""
    over: threading.Event = field(default_factory=threading.Event)
    """The block has ended: whoever keeps silent may go."""
    begun: float = field(default_factory=time.monotonic)
    lock: threading.Lock = field(default_factory=threading.Lock)
    taken: int = 0

    @property
    def openai_url(self) -> str:
        return f"{self.url}/v1"

    @property
    def journal(self) -> list[Asked]:
        """The requests for completions."""
        return [asked for asked in self.requests if asked.protocol]

    def next_case(self) -> str:
        with self.lock:
            self.taken += 1
            return self.script[min(self.taken, len(self.script)) - 1]

    def note(self, asked: Asked) -> None:
        self.requests.append(asked)
        if asked.protocol:
            self.arrived.set()


@contextmanager
def loopback(*script: str, command: str = "sleep 97", text: str = TEXT) -> Iterator[Provider]:
    """A provider on a free port. ``command`` is what the ``tool`` case runs, ``text`` the plain answer."""
    from support.loopback.http import Handler

    for case in script:
        if case not in CASES and not is_refusal(case):
            raise ValueError(f"the loopback provider has no case '{case}'")
    running = Provider(script=list(script), command=command, text=text)
    server = _Server(("127.0.0.1", 0), type("_Handler", (Handler,), {"provider": running}))
    running.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield running
    finally:
        running.over.set()
        server.shutdown()
        server.server_close()
        thread.join()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that hangs up in the middle is what these tests are about; anything else is told."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)  # type: ignore[arg-type]  # socketserver's own words


@contextmanager
def refused() -> Iterator[Provider]:
    """A provider that is not there: its port is taken, and nobody listens."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield Provider(script=[], command="", url=f"http://127.0.0.1:{held.getsockname()[1]}")
