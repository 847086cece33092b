"""Which exporters the operator asked for, by OpenTelemetry's own variables or by an endpoint of his.

Nothing is asked for by default: OpenTelemetry's own default, a collector on this machine, is taken only
once a variable says that there is one.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any, Literal
from urllib.parse import urlsplit

import msgspec

from custodes.extras import missing

Signal = Literal["traces", "metrics", "logs"]
SIGNALS: tuple[Signal, ...] = ("traces", "metrics", "logs")
MISSING = missing("exporting needs", "otel")


class ExportError(ValueError):
    """What was asked for cannot be exported: the text says what would work."""


class Wanted(msgspec.Struct, frozen=True):
    """``exporters`` are the entry-point names for each signal; ``endpoint`` is the operator's own, a base
    address; "" where the variables say where to."""

    exporters: Mapping[Signal, tuple[str, ...]]
    endpoint: str = ""

    def __bool__(self) -> bool:
        return any(self.exporters.values())


def base_of(endpoint: str) -> str:
    """The base address of an OTLP/HTTP collector, with or without the path of a signal.

    :raises ExportError: it is none.
    """
    stated = endpoint.strip()
    try:
        parts = urlsplit(stated)
        host, _ = parts.hostname, parts.port
    except ValueError:
        host = None
    if not host or parts.scheme not in ("http", "https") or parts.query or parts.fragment:
        raise ExportError(
            f"{endpoint!r} is no address of an OTLP/HTTP collector; one as http://localhost:4318 would work"
        )
    base = stated.rstrip("/")
    for signal in SIGNALS:
        base = base.removesuffix(f"/v1/{signal}")
    return base.rstrip("/")


def wanted(environ: Mapping[str, str], endpoint: str = "") -> Wanted:
    """What is to be exported. ``endpoint`` wins over the variables, as what is typed does.

    :raises ExportError: the endpoint is none, or a protocol is not known.
    """
    if environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return Wanted({})
    if endpoint:
        return Wanted(dict.fromkeys(SIGNALS, ("otlp_proto_http",)), base_of(endpoint))
    return Wanted({signal: _named(environ, signal) for signal in SIGNALS})


def _named(environ: Mapping[str, str], signal: Signal) -> tuple[str, ...]:
    upper = signal.upper()
    somewhere = environ.get(f"OTEL_EXPORTER_OTLP_{upper}_ENDPOINT") or environ.get(
        "OTEL_EXPORTER_OTLP_ENDPOINT"
    )
    said = environ.get(f"OTEL_{upper}_EXPORTER") or ("otlp" if somewhere else "none")
    names = [name.strip() for name in said.split(",")]
    return tuple(_otlp(environ, upper) if name == "otlp" else name for name in names if name != "none")


def _otlp(environ: Mapping[str, str], upper: str) -> str:
    protocol = environ.get(f"OTEL_EXPORTER_OTLP_{upper}_PROTOCOL") or environ.get(
        "OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf"
    )
    known = {"http/protobuf": "otlp_proto_http", "grpc": "otlp_proto_grpc"}
    if protocol not in known:
        raise ExportError(
            f"{protocol!r} is no protocol that spans can be exported by; http/protobuf would work"
        )
    return known[protocol]


def made(asked: Wanted, signal: Signal) -> list[Any]:
    """The exporters of one signal, which read what else the variables say (headers, timeout, TLS).

    :raises ExportError: one is not installed, or does not take what the variables say.
    """
    from importlib.metadata import entry_points  # nobody pays for its import who exports nothing

    found = []
    for name in asked.exporters.get(signal, ()):
        (entry,) = entry_points(group=f"opentelemetry_{signal}_exporter", name=name) or (None,)
        if entry is None:
            other = f"no exporter {name!r} for {signal} is installed"
            raise ExportError(MISSING if name == "otlp_proto_http" else other)
        options: dict[str, Any] = {"endpoint": f"{asked.endpoint}/v1/{signal}"} if asked.endpoint else {}
        if name == "console":
            options["out"] = sys.stderr  # what goes to stdout is the command's own document
        try:
            found.append(entry.load()(**options))
        except ImportError:
            raise ExportError(MISSING) from None
        except ValueError as error:
            raise ExportError(f"the exporter {name!r} for {signal} cannot be made: {error}") from None
    return found
