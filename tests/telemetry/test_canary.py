"""Acceptance T6: a secret in everything that goes in, and none of it in what goes out."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from support.cos import Cos
from support.otlp_sink import Sink, sink
from support.projects import cos, programs, project
from telemetry.test_export import run

__all__ = ["cos", "programs", "project"]

CANARY = "kanarienvogel"
LEAKY = """\
import json, os, sys, urllib.request
sys.stdin.read()
canary = os.environ["CANARY"]
endpoint = os.environ.get("OTEL_EXPORTER_OTLP_ENDPOINT")
if endpoint:
    said = [{"key": name, "value": {"stringValue": f"of {canary}"}} for name in
            ("gen_ai.input.messages", "gen_ai.tool.call.arguments", "gen_ai.request.model", canary)]
    span = {"traceId": "1" * 32, "spanId": "2" * 16, "name": "turn", "attributes": said,
            "startTimeUnixNano": "1", "endTimeUnixNano": "2",
            "status": {"code": 2, "message": canary},
            "events": [{"name": "exception", "attributes": said}]}
    other = {**span, "spanId": "3" * 16, "name": f"turn {canary}", "parentSpanId": "2" * 16}
    kept = {**span, "spanId": "4" * 16, "parentSpanId": "3" * 16}
    scoped = {"scope": {"name": f"by {canary}"}, "spans": [kept]}
    body = json.dumps({"resourceSpans": [
        {"resource": {"attributes": said}, "scopeSpans": [scoped]},
        {"scopeSpans": [{"spans": [other, span]}]}]})
    request = urllib.request.Request(
        f"{endpoint}/v1/traces", body.encode(), {"content-type": "application/json"})
    urllib.request.urlopen(request).read()
print(canary, file=sys.stderr)
if sys.argv[2] == "fail":
    print(f"rate limit reached for {canary}, retry after 9 seconds", file=sys.stderr)
    sys.exit(1)
print(json.dumps({"summary": canary}))
"""


@pytest.fixture
def leaky(programs: Path, cos: Cos) -> Path:
    """A runtime that lets out all it is given, by every way it has; in its command line too."""
    folder = programs / ".coding-os" / "adapters" / "command"
    (folder / "leaky.py").write_text(LEAKY)
    argv = f"[{sys.executable}, {folder / 'leaky.py'}, --key={CANARY}"
    (folder / "adapter.yaml").write_text(
        "models:\n"
        f"  - {{id: well, bucket: well, argv: {argv}, well]}}\n"
        f"  - {{id: fail, bucket: fail, argv: {argv}, fail]}}\n"
        "readiness:\n  env: [CANARY]\n"
        "spans: {turn: chat}\n"
    )
    assert cos("adapters", "trust", "command").code == 0
    return programs


def sent(programs: Path, model: str) -> tuple[Sink, str]:
    with sink() as collector:
        done = run(
            *("dispatch", "--role", "reviewer", "--model", model, f"Look at {CANARY}."),
            *("--otlp", collector.url),
            CANARY=CANARY,
            MY_API_KEY=CANARY,
        )
    assert done.returncode == (0 if model == "well" else 1), done.stderr
    return collector, done.stderr


@pytest.mark.parametrize("model", ["well", "fail"])
def test_no_byte_of_it_is_exported_logged_or_stored(leaky: Path, model: str) -> None:
    collector, errors = sent(leaky, model)
    (relayed,) = [span.attributes for span in collector.spans if "custodes.relay.spans" in span.attributes]
    assert (relayed["custodes.relay.spans"], relayed["custodes.relay.left_out"]) == (2, 1)
    out = b"".join(collector.raw)
    assert b"reviewer" in out
    stored = b"".join(path.read_bytes() for path in leaky.rglob("custodes.db*"))
    assert b"reviewer" in stored
    for place in (out, stored, errors.encode()):
        assert CANARY.encode() not in place


def test_what_is_asked_for_is_exported_without_the_secrets_in_it(leaky: Path, cos: Cos) -> None:
    words = ["--telemetry-prompts", "--telemetry-outputs", "--telemetry-tool-arguments"]
    assert cos("supervision", "set", *words).code == 0
    collector, _ = sent(leaky, "well")
    out = b"".join(collector.raw)
    assert b"Look at [redacted]." in out
    assert b"of [redacted]" in out  # of the runtime's own span
    assert CANARY.encode() not in out
