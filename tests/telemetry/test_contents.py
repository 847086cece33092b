"""What may leave of prompts and answers, where the operator asked for them."""

from __future__ import annotations

import json

import pytest

from custodes.telemetry.contents import BLOT, MAX_CONTENT, Contents, blotting, safe
from support.genai import ATTRIBUTES

EVERYTHING = Contents(prompts=True, outputs=True, tool_arguments=True)


def test_nothing_is_said_by_default() -> None:
    assert Contents().attributes == frozenset()
    assert Contents().said(prompt="p", output="o") == {}


def test_each_kind_is_asked_for_by_itself() -> None:
    assert set(Contents(prompts=True).said(prompt="p", output="o")) == {"gen_ai.input.messages"}
    assert set(Contents(outputs=True).said(prompt="p", output="o")) == {"gen_ai.output.messages"}
    assert Contents(tool_arguments=True).said(prompt="p", output="o") == {}
    assert all(ATTRIBUTES[name]["sensitive"] for name in EVERYTHING.attributes)


def test_a_message_has_the_form_of_the_conventions() -> None:
    said = json.loads(EVERYTHING.said(prompt="look")["gen_ai.input.messages"])
    assert said == [{"role": "user", "parts": [{"type": "text", "content": "look"}]}]


@pytest.mark.parametrize(
    ("content", "left"),
    [
        ("key sk-ant-abcdefghijklmnop0123 end", f"key {BLOT} end"),
        ("ghp_" + "a1" * 18, BLOT),
        ("AKIA" + "A1" * 8, BLOT),
        ("see eyJhbGciOiJI.eyJzdWIiOiIx.c2lnbmF0dXJl", f"see {BLOT}"),
        ("Authorization: Bearer abcdefgh", f"Authorization: Bearer {BLOT}"),
        ('{"api_key": "abcdefgh"}', f'{{"api_key": "{BLOT}"}}'),
        ("PASSWORD=hunter2hunter2 x", f"PASSWORD={BLOT} x"),
        ("postgres://user:swordfish@host/db", f"postgres://user:{BLOT}@host/db"),
        ("-----BEGIN RSA PRIVATE KEY-----\nMII\n-----END RSA PRIVATE KEY-----!", f"{BLOT}!"),
        ("-----BEGIN PRIVATE KEY-----\ncut off", BLOT),
        ("the token count is 12, the task-sk-id fits", "the token count is 12, the task-sk-id fits"),
        ("https://example.org/a:b@c", "https://example.org/a:b@c"),
    ],
)
def test_what_looks_like_a_secret_is_blotted_out_and_prose_is_not(content: str, left: str) -> None:
    assert safe(content) == left


def test_what_the_environment_holds_as_a_secret_is_blotted_out_wherever_it_stands() -> None:
    blot = blotting({"MY_API_KEY": "swordfish-1", "HOME": "/home/agent", "PIN_TOKEN": "1234"})
    assert blot("<swordfish-1> in /home/agent, 1234") == f"<{BLOT}> in /home/agent, 1234"


def test_a_content_is_bounded_and_always_encodes() -> None:
    assert len(safe("x" * 10_000_000)) == MAX_CONTENT
    safe("\ud800").encode()
