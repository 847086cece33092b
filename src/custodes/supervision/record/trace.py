"""The trace of one conversation as a document: the same from the command line and from the MCP tool."""

from __future__ import annotations

import time
from pathlib import Path

import msgspec

from custodes.supervision.budgets.fan_out_view import FanOutAccount
from custodes.supervision.record.record_file import RecordFile
from custodes.supervision.record.run_view import AttemptView


class Trace(msgspec.Struct, frozen=True, kw_only=True):
    """``attempts`` are oldest first, refusals and dry runs among them; none where nothing is on record.
    ``fan_outs`` are those that have a budget, with what was spent of it."""

    conversation: str
    attempts: tuple[AttemptView, ...]
    fan_outs: tuple[FanOutAccount, ...] = ()


async def trace(project: Path, conversation: str) -> Trace:
    """:raises StoreError: the database cannot be read."""
    async with RecordFile(project) as file:
        return await trace_in(file, conversation)


async def trace_in(file: RecordFile, conversation: str) -> Trace:
    """:raises StoreError: the database cannot be read."""
    return Trace(
        conversation=conversation,
        attempts=await file.conversation(conversation),
        fan_outs=await file.fan_outs(conversation, time.time()),
    )
