"""The loopback provider itself: each vendor's protocol, each fault, as a client meets it on the wire."""

from __future__ import annotations

import json
import socket
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import httpx2
import pytest

from support.loopback.answers import TEXT, fitting
from support.loopback.http import WIRES
from support.loopback.provider import Provider, loopback, refused

PATHS = {
    "anthropic": "/v1/messages",
    "responses": "/v1/responses",
    "chat": "/v1/chat/completions",
    "gemini": "/v1beta/models/m1:streamGenerateContent",
}
SHELL: dict[str, Any] = {
    "type": "object",
    "properties": {"command": {"type": "string"}},
    "required": ["command"],
}
TOOLS: dict[str, Any] = {
    "anthropic": [{"name": "Bash", "input_schema": SHELL}],
    "responses": [{"type": "function", "name": "shell", "parameters": SHELL}],
    "chat": [{"type": "function", "function": {"name": "bash", "parameters": SHELL}}],
    "gemini": [{"functionDeclarations": [{"name": "run_shell_command", "parametersJsonSchema": SHELL}]}],
}
# What is there at the end of a complete answer, and so must not be there in half of one.
ENDS = {
    "anthropic": "message_stop",
    "responses": "response.completed",
    "chat": "[DONE]",
    "gemini": "finishReason",
}


@dataclass(frozen=True)
class Met:
    """What came of a request. ``whole`` is False where the body ended before its end."""

    status: int
    retry_after: str | None
    body: str
    whole: bool


def ask(provider: Provider, wire: str, **body: Any) -> Met:
    came = b""
    whole = True
    asked = {"model": "m1", "stream": True, **body}
    with httpx2.Client(timeout=20, trust_env=False) as client:
        with client.stream("POST", provider.url + PATHS[wire], json=asked) as response:
            try:
                for piece in response.iter_bytes():
                    came += piece
            except httpx2.RemoteProtocolError:
                whole = False
    return Met(response.status_code, response.headers.get("retry-after"), came.decode(), whole)


@pytest.fixture(params=sorted(PATHS))
def wire(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


def test_an_answer_is_streamed_whole_and_journalled(wire: str) -> None:
    with loopback("success") as provider:
        met = ask(provider, wire)
    assert (met.status, met.whole) == (200, True)
    assert ENDS[wire] in met.body
    assert [(asked.protocol, asked.model, asked.case) for asked in provider.journal] == [
        (wire, "m1", "success")
    ]
    assert TEXT[:5] in met.body


def test_a_tool_is_called_once_and_answered_after(wire: str) -> None:
    with loopback("tool", command="true") as provider:
        first = ask(provider, wire, tools=TOOLS[wire]).body
        second = ask(provider, wire, tools=TOOLS[wire], input=first, functionResponse={}).body
    assert "true" in first
    assert TEXT[:5] not in first
    assert TEXT[:5] in second
    assert [bool(asked.called) for asked in provider.journal] == [True, False]


@pytest.mark.parametrize(
    ("case", "status"),
    [("limit", 429), ("auth", (400, 401)), ("server_error", 500), ("billing", 402), ("unknown_model", 404)],
)
def test_a_refusal_has_its_vendors_status_and_error(wire: str, case: str, status: Any) -> None:
    with loopback(case) as provider:
        met = ask(provider, wire)
    assert met.status in (status if isinstance(status, tuple) else (status,))
    assert json.loads(met.body)["error"]["message"]
    assert met.retry_after == ("7" if case == "limit" else None)


def test_half_an_answer_is_cut_off_in_the_middle_of_the_body(wire: str) -> None:
    with loopback("cut") as provider:
        met = ask(provider, wire)
    assert not met.whole
    assert met.body
    assert ENDS[wire] not in met.body


def test_half_an_answer_may_also_end_in_good_form(wire: str) -> None:
    with loopback("cut_clean") as provider:
        met = ask(provider, wire)
    assert met.whole
    assert met.body
    assert ENDS[wire] not in met.body


def test_an_overload_may_come_inside_a_stream(wire: str) -> None:
    with loopback("stream_error") as provider:
        said = ask(provider, wire).body.lower()
    assert "overload" in said
    assert ENDS[wire].lower() not in said


def test_a_schema_in_the_request_is_answered_with_json_that_fits() -> None:
    schema = {"type": "object", "properties": {"verdict": {"enum": ["yes", "no"]}, "n": {"type": "integer"}}}
    with loopback("success") as provider:
        said = ask(provider, "chat", stream=False, response_format={"json_schema": {"schema": schema}}).body
    assert json.loads(json.loads(said)["choices"][0]["message"]["content"]) == {"verdict": "yes", "n": 1}
    assert fitting({"type": ["string", "null"]}) == TEXT
    assert fitting({"anyOf": [{"type": "object"}, {"type": "null"}]}) is None
    assert fitting({"anyOf": [{"type": "integer"}, {"type": "string"}]}) == 1


def test_a_script_goes_on_with_its_last_case() -> None:
    with loopback("limit", "success") as provider:
        statuses = [ask(provider, "chat").status for _ in range(3)]
    assert statuses == [429, 200, 200]


def test_silence_ends_with_the_block() -> None:
    with loopback("hang") as provider:
        place = urlsplit(provider.url)
        client = socket.create_connection((place.hostname, place.port), timeout=20)
        client.sendall(b"POST /v1/messages HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\n{}")
        assert provider.arrived.wait(20)
    with client:
        assert client.recv(1) == b""


def test_nobody_listens_at_a_refused_provider() -> None:
    with refused() as provider, pytest.raises(httpx2.ConnectError):
        ask(provider, "chat")


def test_a_case_that_does_not_exist_is_told_at_once() -> None:
    with pytest.raises(ValueError, match="no case 'limitt'"), loopback("limitt"):
        pass


def test_every_protocol_is_spoken() -> None:
    assert {wire.name for wire in WIRES} == set(PATHS)
