"""What of a value may leave the process, up to the real encoder of the real exporter."""

from __future__ import annotations

from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from custodes.telemetry import Tracer
from custodes.telemetry.values import MAX_CHARACTERS, clean, text


def test_ten_megabytes_are_cut() -> None:
    assert len(text("x" * 10_000_000)) == MAX_CHARACTERS


def test_the_unknown_and_what_has_no_64_bit_form_is_left_out() -> None:
    assert clean({"a": None, "b": 2**63, "c": -(2**63) - 1, "d": 2**63 - 1, "e": 0, "f": False, "g": ""}) == {
        "d": 2**63 - 1,
        "e": 0,
        "f": False,
        "g": "",
    }


def test_a_runtimes_broken_values_never_lose_the_batch(
    tracer: Tracer, exporter: InMemorySpanExporter
) -> None:
    with tracer.call(None, role="r", provider="", adapter="a", model="\udcff", effort=None) as call:
        call.set(native_conversation="id-\ud800" * 10_000, input_tokens=10**30, cost_usd=float("nan"))
    tracer.conversation("sibling").end()
    encoded = encode_spans(exporter.get_finished_spans()).SerializeToString()
    assert b"sibling" in encoded
    assert b"id-?" in encoded
    assert len(encoded) < 4 * MAX_CHARACTERS
