"""The trace of one conversation as a document: the same from the command line and from the MCP tool."""

from __future__ import annotations

from pathlib import Path

import msgspec

from custodes.supervision.record.record_file import RecordFile
from custodes.supervision.record.run_view import AttemptView


class Trace(msgspec.Struct, frozen=True, kw_only=True):
    """``attempts`` are oldest first, refusals and dry runs among them; none where nothing is on record."""

    conversation: str
    attempts: tuple[AttemptView, ...]


async def trace(project: Path, conversation: str) -> Trace:
    """:raises StoreError: the database cannot be read."""
    async with RecordFile(project) as file:
        return Trace(conversation=conversation, attempts=await file.conversation(conversation))
