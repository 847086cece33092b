"""A span as a value: what a runtime sent, or what the store knows of one that was never ended."""

from __future__ import annotations

from typing import Literal

import msgspec

from custodes.telemetry.values import Value

Kind = Literal["internal", "server", "client", "producer", "consumer"]
KINDS: tuple[Kind, ...] = ("internal", "server", "client", "producer", "consumer")
"""In the order of OTLP's numbers, which begin at 1."""


class Source(msgspec.Struct, frozen=True):
    """Who made a span: the service of its process, and the instrumentation scope."""

    service: str = ""
    version: str = ""
    scope: str = ""


class SpanRecord(msgspec.Struct, frozen=True, kw_only=True):
    """Ids are hexadecimal; ``parent`` is "" for a root. Times are nanoseconds since the epoch. Of its status
    only ``error`` is kept, and no text."""

    trace: str
    id: str
    parent: str = ""
    name: str
    kind: Kind = "internal"
    begun: int
    ended: int
    attributes: dict[str, Value | tuple[str, ...]] = {}
    error: bool = False
    flags: int = 1
    source: Source = Source()
