"""The program's own export, to a collector that takes, one that is silent, and none at all."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from custodes.telemetry.exporters import base_of
from support.cos import Cos
from support.otlp_sink import sink, tree
from support.program import running
from support.projects import cos, programs, project

__all__ = ["cos", "programs", "project"]

COS = [sys.executable, "-W", "error", "-m", "custodes.cli"]
LOOK = ("dispatch", "--role", "reviewer", "--model", "look", "Look at canary-prompt.")
ROOT = "invoke_agent parent"
CHILD = f"{ROOT} > invoke_agent reviewer"
WHOLE = [ROOT, CHILD, f"{CHILD} > dispatch command", f"{CHILD} > dispatch command > invoke_agent reviewer"]


LOOKING = {"role": "reviewer", "prompt": "Look.", "model": "look"}
CLIENT = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "a client", "version": "0"},
}
MCP_CALL = (
    {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": CLIENT},
    {"jsonrpc": "2.0", "method": "notifications/initialized"},
    {
        "jsonrpc": "2.0",
        "id": 2,
        "method": "tools/call",
        "params": {"name": "cos_dispatch", "arguments": LOOKING},
    },
)


def environment(**more: str) -> dict[str, str]:
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("OTEL_", "TRACE"))}
    return clean | more


def run(*words: str, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COS, *words], env=environment(**more), capture_output=True, text=True, check=False, timeout=120
    )


def nowhere() -> str:
    """An address at which nobody listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{taken.getsockname()[1]}"


def test_a_dispatch_is_one_trace_with_its_metrics_and_its_logs(programs: Path) -> None:
    with sink() as collector:
        done = run(*LOOK, "--otlp", collector.url)
    assert (done.returncode, done.stderr) == (0, "")
    spans = collector.spans
    assert tree(spans) == WHOLE
    assert len({span.trace for span in spans}) == 1
    assert {span.resource["service.name"] for span in spans} == {"custodes"}
    assert {
        "gen_ai.invoke_agent.duration",
        "gen_ai.client.inference.duration",
        "gen_ai.invoke_agent.tool_calls",
        "custodes.attempts",
        "custodes.pool.state",
        "custodes.pool.cooldown",
    } <= collector.metric_names
    (record,) = collector.log_records
    assert record.body.string_value.endswith("on command:look ended: well")
    assert record.trace_id.hex() == spans[0].trace
    assert record.span_id.hex() == next(span.id for span in spans if span.name == "dispatch command")
    assert not any(b"canary" in raw for raw in collector.raw)


def test_the_variables_decide_where_nothing_is_typed(programs: Path) -> None:
    with sink() as collector:
        parent = f"00-{'a' * 32}-{'b' * 16}-01"
        done = run(
            *LOOK,
            OTEL_EXPORTER_OTLP_ENDPOINT=collector.url,
            OTEL_SERVICE_NAME="ours",
            OTEL_METRICS_EXPORTER="none",
            TRACEPARENT=parent,
        )
    assert done.returncode == 0, done.stderr
    spans = {span.name: span for span in collector.spans}
    assert {(span.trace, span.resource["service.name"]) for span in spans.values()} == {("a" * 32, "ours")}
    assert spans[ROOT].parent == "b" * 16
    assert collector.logs
    assert not collector.metrics


@pytest.mark.parametrize("more", [{"OTEL_SDK_DISABLED": "true"}, {"OTEL_TRACES_EXPORTER": "none"}])
def test_what_is_switched_off_sends_no_span(programs: Path, more: dict[str, str]) -> None:
    with sink() as collector:
        done = run(*LOOK, OTEL_EXPORTER_OTLP_ENDPOINT=collector.url, **more)
    assert (done.returncode, done.stderr) == (0, "")
    assert not collector.spans


def test_an_endpoint_that_is_typed_though_the_sdk_is_disabled_is_told_in_vain(programs: Path) -> None:
    with sink() as collector:
        done = run(*LOOK, "--otlp", collector.url, OTEL_SDK_DISABLED="true")
    assert done.returncode == 0
    assert done.stderr == (
        "cos: note: nothing is exported: OTEL_SDK_DISABLED is set, which --otlp does not undo\n"
    )
    assert not collector.raw


def test_while_supervision_is_off_nothing_is_exported_though_the_variables_ask_for_it(
    programs: Path, cos: Cos
) -> None:
    assert cos("supervision", "disable").code == 0
    with sink() as collector:
        done = run(*LOOK, OTEL_EXPORTER_OTLP_ENDPOINT=collector.url)
        assert not collector.asked.is_set()
    assert done.returncode == 1
    assert "supervision is off" in done.stderr


def test_a_collector_that_is_down_costs_a_note_and_nothing_else(programs: Path) -> None:
    done = run(*LOOK, "--format", "json", "--otlp", nowhere())
    assert done.returncode == 0
    assert json.loads(done.stdout)["outcomes"][0]["status"] == "done"
    assert done.stderr.startswith("cos: note: ")
    assert done.stderr.endswith("did not reach the collector; the work itself is not affected\n")
    assert done.stderr.count("\n") == 1


def test_a_collector_that_never_answers_does_not_hold_the_exit(programs: Path) -> None:
    with sink(silent=True) as collector:
        done = run(*LOOK, "--otlp", collector.url)  # it ended, and the collector has still not answered
        assert collector.asked.is_set()
    assert done.returncode == 0
    assert "did not reach the collector" in done.stderr


def test_the_option_may_stand_before_the_command(programs: Path) -> None:
    with sink() as collector:
        assert run("--otlp", collector.url, *LOOK).returncode == 0
        assert run(f"--otlp={collector.url}", *LOOK).returncode == 0
    assert len([span for span in collector.spans if span.name == ROOT]) == 2
    alone = run("--otlp", collector.url)
    assert alone.returncode == 2


def test_a_server_that_is_told_to_end_sends_what_it_had(programs: Path) -> None:
    with sink() as collector:
        server = [*COS, "mcp", "--otlp", collector.url]
        with running(
            server,
            env=environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            bufsize=1,
        ) as program:
            assert program.stdin is not None
            assert program.stdout is not None
            program.stdin.writelines(json.dumps(message) + "\n" for message in MCP_CALL)
            while '"id":2' not in program.stdout.readline().replace(" ", ""):
                pass
            program.send_signal(signal.SIGTERM)
            assert program.wait(60) == 128 + signal.SIGTERM
    assert tree(collector.spans) == WHOLE


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_every_open_span_and_sends_it(programs: Path, number: signal.Signals) -> None:
    os.mkfifo(programs / "pids")
    with sink() as collector:
        words = ["dispatch", "--role", "reviewer", "--model", "slow", "Look.", "--otlp", collector.url]
        with running([*COS, *words], env=environment(), stdout=subprocess.DEVNULL) as program:
            (programs / "pids").read_text()  # the child is at work
            program.send_signal(number)
            assert program.wait(60) == 128 + number
    assert tree(collector.spans) == WHOLE
    ended = {span.name: (span.status, span.attributes.get("error.type")) for span in collector.spans}
    assert ended["dispatch command"] == (2, "cancelled")
    assert ended["invoke_agent reviewer"] == (2, "cancelled")


@pytest.mark.parametrize(
    "typed",
    [
        *("localhost:4318", "grpc://x", "http://", "x"),
        *("http://[::1", "http://h:port", "http://h:99999", "http://h?key=x", "http://h#x"),
    ],
)
def test_an_address_that_is_none_is_refused_before_anything_starts(
    cos: Cos, programs: Path, typed: str
) -> None:
    answer = cos("dispatch", "--role", "reviewer", "Look.", "--otlp", typed)
    assert answer.code == 2
    assert "http://localhost:4318 would work" in answer.err


@pytest.mark.parametrize(
    "typed", ["http://h:1", " http://h:1/ ", "http://h:1/v1/traces", "http://h:1/v1/logs/", "HTTP://h:1"]
)
def test_an_address_is_taken_in_any_way_it_is_pasted(typed: str) -> None:
    assert base_of(typed).lower() == "http://h:1"


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("OTEL_BSP_MAX_QUEUE_SIZE", "10"),
        ("OTEL_METRIC_EXPORT_INTERVAL", "-5"),
        ("OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT", "many"),
        ("OTEL_METRICS_EXEMPLAR_FILTER", "coffee"),
    ],
)
def test_what_the_sdk_does_not_take_is_a_note_and_the_work_is_done(
    programs: Path, variable: str, value: str
) -> None:
    done = run(*LOOK, OTEL_EXPORTER_OTLP_ENDPOINT="http://localhost:1", **{variable: value})
    assert done.returncode == 0
    assert done.stderr.startswith("cos: note: nothing is exported: ")
    assert "Traceback" not in done.stderr


WITHOUT = """
import sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.startswith("opentelemetry.exporter"):
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Missing())
from custodes.cli import main
sys.argv[0] = "cos"
main()
"""


def test_without_the_extra_what_is_typed_is_refused_and_a_variable_is_only_noted(programs: Path) -> None:
    def without(*words: str, **more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-c", WITHOUT, *LOOK, *words],
            env=environment(**more),
            capture_output=True,
            text=True,
            check=False,
        )

    typed = without("--otlp", "http://localhost:1")
    assert typed.returncode == 2
    assert "pip install 'custodes[otel]'" in typed.stderr
    noted = without(OTEL_EXPORTER_OTLP_ENDPOINT="http://localhost:1")
    assert noted.returncode == 0
    assert noted.stderr.startswith("cos: note: nothing is exported: ")
    assert "pip install 'custodes[otel]'" in noted.stderr


@pytest.mark.parametrize("variable", ["OTEL_EXPORTER_OTLP_PROTOCOL", "OTEL_TRACES_EXPORTER"])
def test_an_exporter_that_is_not_there_is_named(programs: Path, variable: str) -> None:
    done = run(*LOOK, OTEL_EXPORTER_OTLP_ENDPOINT="http://localhost:1", **{variable: "pigeon"})
    assert done.returncode == 0
    assert "nothing is exported" in done.stderr
    assert "pigeon" in done.stderr


def test_the_console_exporter_leaves_the_document_on_stdout_alone(programs: Path) -> None:
    signals = {f"OTEL_{signal}_EXPORTER": "console" for signal in ("TRACES", "METRICS", "LOGS")}
    done = run(*LOOK, "--format", "json", **signals)
    assert json.loads(done.stdout)["outcomes"][0]["status"] == "done"
    for told in ("dispatch command", "custodes.attempts", "ended: well"):
        assert told in done.stderr


def test_a_nested_program_goes_on_in_the_same_tree(programs: Path) -> None:
    """A child's own program asks for a child: across three processes it is one trace without an orphan."""
    asked = [*COS, "dispatch", "--role", "analyst", "--model", "look", "Look again.", "-d", str(programs)]
    nest = programs / "nest.py"
    nest.write_text(
        "import json, os, subprocess, sys\n"
        "sys.stdin.read()\n"
        f"done = subprocess.run({asked!r}, capture_output=True, text=True)\n"
        "assert done.returncode == 0, done.stderr\n"
        'print(json.dumps({"summary": "asked another"}))\n'
    )
    manifest = programs / ".coding-os" / "adapters" / "command" / "adapter.yaml"
    line = f"  - {{id: nest, bucket: nest, argv: [{sys.executable}, {nest}]}}\n"
    manifest.write_text(
        manifest.read_text() + line + "readiness:\n  env: [OTEL_EXPORTER_OTLP_ENDPOINT, XDG_CONFIG_HOME]\n"
    )
    with sink() as collector:
        assert run("adapters", "trust", "command").returncode == 0
        words = ("dispatch", "--role", "reviewer", "--model", "nest", "Look.")
        done = run(*words, OTEL_EXPORTER_OTLP_ENDPOINT=collector.url)
    assert done.returncode == 0, done.stderr + done.stdout
    spans = collector.spans
    paths = tree(spans)
    assert len({span.trace for span in spans}) == 1
    assert [span.name for span in spans if not span.parent] == [ROOT]
    assert sum(path.endswith("invoke_agent analyst") for path in paths) == 2
    assert all(path.startswith(f"{CHILD} > dispatch command") for path in paths if "analyst" in path)


def test_after_a_kill_the_next_start_tells_what_was_open_under_the_same_trace(programs: Path) -> None:
    """Acceptance T3."""
    os.mkfifo(programs / "pids")
    slow = ["dispatch", "--role", "reviewer", "--model", "slow", "Look."]
    with sink() as before:
        with running([*COS, *slow, "--otlp", before.url], env=environment()) as program:
            (programs / "pids").read_text()
            program.kill()
    assert not before.spans
    with sink() as collector:
        assert run(*LOOK, "--otlp", collector.url).returncode == 0
    recovered = [span for span in collector.spans if span.attributes.get("custodes.recovered")]
    assert tree(recovered) == WHOLE
    assert {span.attributes["error.type"] for span in recovered} == {"owner_died"}
    (lost,) = {span.trace for span in recovered}
    others = {span.trace for span in collector.spans} - {lost}
    assert len(others) == 1
    with sink() as again:
        assert run(*LOOK, "--otlp", again.url).returncode == 0
    assert lost not in {span.trace for span in again.spans}
