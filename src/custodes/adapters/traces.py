"""Whether a runtime may send spans of its own into the tree it was started from, and where to.

Only with both: the attempt carries a ``TRACEPARENT``, and the operator configured an OTLP endpoint in the
standard variables. Nothing is sent anywhere else, and a runtime's own switches for contents stay off.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

_PREFIX = "OTEL_EXPORTER_OTLP_"


class Exporter(msgspec.Struct, frozen=True):
    """``endpoint`` takes traces (with its path); ``variables`` are the operator's OTLP variables, headers
    included: they belong into an environment, never on a command line."""

    endpoint: str
    protocol: str
    variables: Mapping[str, str]


def is_relayed(carried: Mapping[str, str]) -> bool:
    """Whether an attempt brings an address for the telemetry of its runtime. The operator's own is never
    taken here: spans that cannot join the trace would only stand beside it."""
    return bool(carried.get(f"{_PREFIX}ENDPOINT"))


def exporter(carried: Mapping[str, str], environ: Mapping[str, str]) -> Exporter | None:
    """The exporter for an attempt that carries the variables ``carried``; None where there is none."""
    if not carried.get("TRACEPARENT"):
        return None
    both = {**environ, **carried}
    variables = {name: value for name, value in both.items() if name.startswith(_PREFIX) and value}
    protocol = variables.get(f"{_PREFIX}TRACES_PROTOCOL") or variables.get(f"{_PREFIX}PROTOCOL")
    protocol = protocol or "http/protobuf"
    endpoint = variables.get(f"{_PREFIX}TRACES_ENDPOINT", "")
    if not endpoint and (base := variables.get(f"{_PREFIX}ENDPOINT", "").rstrip("/")):
        endpoint = base if protocol == "grpc" else f"{base}/v1/traces"
    return Exporter(endpoint, protocol, variables) if endpoint else None
