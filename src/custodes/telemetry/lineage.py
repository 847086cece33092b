"""Where in its trace an attempt stands: the ids without the spans, for a record that outlives its process."""

from __future__ import annotations

from typing import Literal

import msgspec

Level = Literal["conversation", "fan_out", "child", "attempt", "call"]
"""The levels of a tree, from its root down."""


class Lineage(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Ids as a ``traceparent`` writes them (hexadecimal); "" for a level that there is not, or not yet.

    ``host`` is the host's own span above the root, ``under`` what the child hangs under: its fan-out, its
    conversation, or the attempt that asked for it.
    """

    trace: str
    flags: str = "01"
    state: str = ""
    host: str = ""
    conversation: str = ""
    fan_out: str = ""
    under: str = ""
    child: str = ""
    attempt: str = ""
    call: str = ""

    @property
    def sampled(self) -> bool:
        return bool(int(self.flags, 16) & 1)
