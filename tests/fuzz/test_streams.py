"""What runtimes print, spoiled: an adapter says what came of it as one of the port's categories, always."""

from __future__ import annotations

import json
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from custodes.adapters.descriptor import Model
from custodes.adapters.port import Runtime
from custodes.adapters.registry import Registry
from support.fuzz import bent_lines, every_bend, spoiled, tried
from support.printed import Printed, answered, check
from support.replay import FIXTURES

NATIVE = ("claude", "codex", "gemini", "opencode", "qwen", "hermes")
LARGEST_SEED = 40_000
"""Bytes. A few captures are much larger; they say nothing more."""


def captures(adapter: str) -> list[dict[str, bytes]]:
    """Each capture's files by their ending."""
    found: dict[Path, dict[str, bytes]] = {}
    for file in sorted((FIXTURES / adapter).rglob("*.*")):
        if file.is_file() and file.stat().st_size <= LARGEST_SEED:
            found.setdefault(file.with_suffix(""), {})[file.suffix] = file.read_bytes()
    return list(found.values())


def acp_captures() -> list[dict[str, bytes]]:
    """What each agent says in each case, after the answers that open a session."""
    opening = [
        {"id": 1, "result": {"protocolVersion": 1, "agentCapabilities": {"loadSession": True}}},
        {"id": 2, "result": {"sessionId": "s1", "modes": {"availableModes": [{"id": "plan"}]}}},
        {"id": 3, "result": {}},
    ]
    found = []
    for file in sorted((FIXTURES / "acp").glob("*.ndjson")):
        cases: dict[str, list[object]] = {}
        for line in file.read_bytes().splitlines():
            told = json.loads(line)
            cases.setdefault(told["case"], []).append(told["said"])
        for said in cases.values():
            lines = [json.dumps(each).encode() for each in (*opening, *said)]
            found.append({".stdout": b"\n".join(lines)})
    return found


SEEDS = {name: captures(name) for name in NATIVE} | {
    "acp": acp_captures(),
    "command": [
        {".stdout": b'{"summary": "done"}'},
        {".stdout": b'{"failure": {"category": "capacity", "retry_after_s": 5, "outcome": "known_failed"}}'},
        {".stderr": b"HTTP 429: rate limit reached, try again in 5 minutes", ".exit": b"1"},
    ],
}
EVERYTHING = sorted(SEEDS)
PIECES = [
    *(b"\0", b"\xff", b"\n", b"\r", b'"', b"{", b"}", b"[" * 300, b"x" * 70_000, b"\xed\xa0\x80", b"\\ud800"),
    *(b"1" * 400, b"9" * 4_400, b"1e999", b"NaN", b"null", b"true", b"-1", b"\xc2\xb2", b"\x1b[31m", b"[]"),
    *(
        b"429",
        b" status: '\xc2\xb2',\n",
        b"resets at 10:00 +99:99",
        b"retrying sampling request (1/5 in 1.2.3s)",
    ),
    *(b" in " + b"9" * 400 + b" days", b"Retrying after 9ms...", b'\n{\n"error": {"code": []}\n}\n'),
]


@cache
def runtime(adapter: str) -> Runtime:
    """``acp`` and ``command`` have a program of their own, which is never started."""
    found = Registry.discover(Path(__file__).parent).descriptor(adapter)
    if adapter in ("acp", "command"):
        found = replace(found, models=(Model(id="mine", argv=("mine",)),))
    made: Runtime = import_module(f"custodes.adapters.{adapter}.dispatch").runtime(found)
    return made


cuts = st.lists(st.integers(0, 1 << 20), max_size=6)
ends = st.sampled_from([0, 0, 0, 1, 41, 53, 137, 429 % 256, -9])
SCHEMA = {"type": "object", "properties": {"summary": {}}}


def line(**event: object) -> bytes:
    return json.dumps(event).encode() + b"\n"


CLAUDE_DONE = {"type": "result", "subtype": "success", "is_error": False, "result": "ok"}
ACP_OPENING = b"\n".join(acp_captures()[0][".stdout"].splitlines()[:3]) + b"\n"
FAULTS: list[tuple[str, Printed]] = [
    ("claude", Printed(out=line(**CLAUDE_DONE, usage={"input_tokens": 1}, total_cost_usd=10**400))),
    ("claude", Printed(out=line(**CLAUDE_DONE, usage={"input_tokens": 2**63}))),
    ("claude", Printed(out=line(**CLAUDE_DONE, session_id="\0" * 9_000))),
    ("codex", Printed(out=line(type="error", message="resets at 10:00 +99:99"), code=1)),
    ("codex", Printed(out=b"", err=b"retrying sampling request (1/5 in 1.2.3s)", code=1)),
    ("codex", Printed(out=line(type="error", message=f"Reconnecting... {'9' * 5_000}/5 (x)"), code=1)),
    ("gemini", Printed(out=b"", err="Attempt 1 failed:\n  status: '\u00b2'".encode(), code=1)),
    ("gemini", Printed(out=b"", err=b"Attempt 1 failed:\n  retryDelayMs: " + b"9" * 5_000, code=1)),
    (
        "qwen",
        Printed(out=b"", err="] [RETRY] Attempt 1 failed. Retrying {\n  statusCode: '\u00b2'\n}".encode()),
    ),
    ("qwen", Printed(out=b"", err=b"] [RETRY] Attempt " + b"9" * 5_000 + b" failed. Retrying")),
    ("opencode", Printed(out=line(type="step_finish", part={"reason": "stop", "cost": 10**400}))),
    ("opencode", Printed(out=b"", err=b' level=ERROR x message="stream error" ' * 1_700, code=1)),
    ("acp", Printed(out=ACP_OPENING + line(id=4, result={"stopReason": ["end_turn"]}))),
    ("hermes", Printed(out=b"ok", report=line(completed=True, failed=False, input_tokens=2**64))),
]


@pytest.mark.parametrize(("adapter", "printed"), FAULTS)
def test_what_once_broke_an_adapter_is_one_of_the_categories(
    tmp_path: Path, adapter: str, printed: Printed
) -> None:
    check(*answered(runtime(adapter), printed, tmp_path))


@pytest.mark.parametrize("adapter", EVERYTHING)
@given(data=st.data())
@tried(15)
def test_whatever_a_runtime_prints_is_one_of_the_categories(
    tmp_path_factory: pytest.TempPathFactory, adapter: str, data: st.DataObject
) -> None:
    seed = data.draw(st.sampled_from(SEEDS[adapter]))
    files = {}
    for kind in (".stdout", ".stderr", ".report"):
        whole = [seed.get(kind, b"")]
        files[kind] = data.draw(bent_lines(whole) | bent_lines(whole) | spoiled(whole, PIECES))
    printed = Printed(
        out=files[".stdout"],
        err=files[".stderr"],
        report=files[".report"],
        cuts=data.draw(cuts),
        code=data.draw(ends),
    )
    schema, mutable = data.draw(st.sampled_from([None, SCHEMA])), data.draw(st.booleans())
    folder = tmp_path_factory.getbasetemp()
    check(*answered(runtime(adapter), printed, folder, schema=schema, mutable=mutable))


@pytest.mark.full
@pytest.mark.parametrize("adapter", EVERYTHING)
def test_every_field_of_every_event_may_hold_any_value(tmp_path: Path, adapter: str) -> None:
    tried_before: set[object] = set()
    for seed in SEEDS[adapter]:
        for kind, content in seed.items():
            lines = content.split(b"\n") if kind != ".report" else [content]
            for at, text in enumerate(lines):
                for path, bent in every_bend(text):
                    if (kind, path) in tried_before:
                        continue
                    files = {**seed, kind: b"\n".join([*lines[:at], bent, *lines[at + 1 :]])}
                    printed = Printed(
                        out=files.get(".stdout", b""),
                        err=files.get(".stderr", b""),
                        report=files.get(".report", b""),
                        code=int(seed.get(".exit", b"0")),
                    )
                    check(*answered(runtime(adapter), printed, tmp_path, schema=SCHEMA))
                tried_before |= {(kind, path) for path, _ in every_bend(text)}
