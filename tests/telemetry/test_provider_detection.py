"""Which provider is used, in fresh interpreters: the global provider can be set only once in each."""

from __future__ import annotations

import os
import subprocess
import sys
from textwrap import dedent

PROVIDER = """
    import os
    from opentelemetry import trace
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    trace.set_tracer_provider(provider)
"""
TREE = """
    from custodes.telemetry import attach, capture, current_tracer
    tracer = current_tracer()
    with attach(capture()), tracer.conversation("ours") as conversation:
        with tracer.call(conversation, role="r", provider="", adapter="a", model=None, effort=None) as called:
            environment = called.traceparent()
"""


def run(*parts: str, **environment: str) -> str:
    """What a fresh interpreter prints; its failure is the test's."""
    code = "\n".join(dedent(part) for part in parts)
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("OTEL_", "TRACE"))}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        env=clean | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_without_a_provider_nothing_of_opentelemetry_is_loaded_and_no_thread_started() -> None:
    run(
        TREE,
        """
        import sys, threading
        from custodes.telemetry import NOTHING
        assert tracer is NOTHING
        assert environment == {}
        assert not [name for name in sys.modules if name.split(".")[0] == "opentelemetry"]
        assert threading.active_count() == 1
        """,
        OTEL_TRACES_EXPORTER="otlp",
        TRACEPARENT=f"00-{'1' * 32}-{'2' * 16}-01",
    )


def test_a_host_that_only_imported_the_api_has_configured_nothing() -> None:
    run(
        "from opentelemetry import trace",
        TREE,
        """
        import sys
        from custodes.telemetry import NOTHING
        assert tracer is NOTHING
        assert environment == {}
        assert "opentelemetry.sdk" not in sys.modules
        assert "custodes.telemetry.bridge" not in sys.modules
        """,
    )


def test_a_host_that_set_the_noop_provider_has_configured_nothing() -> None:
    run(
        "from opentelemetry import trace; trace.set_tracer_provider(trace.NoOpTracerProvider())",
        TREE,
        "from custodes.telemetry import NOTHING; assert tracer is NOTHING",
    )


def test_a_provider_that_is_switched_off_is_none() -> None:
    run(
        PROVIDER,
        TREE,
        "from custodes.telemetry import NOTHING; assert tracer is NOTHING; assert environment == {}",
        OTEL_SDK_DISABLED="true",
    )


def test_the_hosts_provider_gets_the_spans_under_our_scope() -> None:
    printed = run(
        PROVIDER,
        TREE,
        """
        import importlib.metadata
        spans = exporter.get_finished_spans()
        assert [span.name for span in spans] == ["invoke_agent r", "invoke_agent parent"]
        scope = spans[0].instrumentation_scope
        assert (scope.name, scope.version) == ("custodes", importlib.metadata.version("custodes"))
        assert scope.schema_url == "https://opentelemetry.io/schemas/gen-ai/1.42.0"
        print(environment["TRACEPARENT"])
        """,
    )
    assert printed.startswith("00-")


def test_a_provider_configured_later_is_found_by_the_next_conversation() -> None:
    run(
        TREE,
        PROVIDER,
        TREE,
        "assert [span.name for span in exporter.get_finished_spans()][1:] == ['invoke_agent parent']",
    )


def test_a_child_process_goes_on_in_the_same_trace() -> None:
    """The child reads its environment as OpenTelemetry defines it; a stale pair in ours is replaced."""
    child = """
        from opentelemetry.propagate import extract
        from custodes.telemetry import attach
        carrier = {key.lower(): value for key, value in os.environ.items() if key.startswith("TRACE")}
        with attach(extract(carrier)):
            from custodes.telemetry import current_tracer
            current_tracer().conversation("nested").end()
        (span,) = exporter.get_finished_spans()
        print(f"{span.context.trace_id:032x} {span.parent.span_id:016x} {span.parent.is_remote}")
    """
    printed = run(
        PROVIDER,
        TREE,
        f"""
        import subprocess, sys
        code = {dedent(PROVIDER) + dedent(child)!r}
        answer = subprocess.run(
            [sys.executable, "-c", code], env={{**os.environ, **environment}}, capture_output=True, text=True
        )
        assert answer.returncode == 0, answer.stderr
        _, trace_id, span_id, _ = environment["TRACEPARENT"].split("-")
        assert answer.stdout.split() == [trace_id, span_id, "True"], answer.stdout
        print("joined")
        """,
        TRACEPARENT=f"00-{'1' * 32}-{'2' * 16}-01",
        TRACESTATE="stale=1",
    )
    assert printed == "joined\n"
