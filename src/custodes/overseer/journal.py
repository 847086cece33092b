"""``supervisor.log``: a line of JSON for each incident that opens, moves a profile, or is resolved."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import anyio.to_thread
import msgspec

from custodes.overseer.incident import Incident
from custodes.supervision.record.audit import append_line
from custodes.supervision.record.clock import Now, utc_time

logger = logging.getLogger("custodes.overseer")
LOG = Path(".coding-os") / "supervisor.log"


class Journal:
    """The project's log. A line that cannot be written is told to the program's own log, and stops nothing:
    the incident itself is in the database."""

    def __init__(self, project: Path) -> None:
        self._file = project / LOG

    async def write(self, event: str, incident: Incident, now: Now) -> None:
        """``event`` is ``opened``, ``moved`` or ``resolved``."""
        entry: dict[str, Any] = {"at": utc_time(now.wall), "event": event, **msgspec.structs.asdict(incident)}
        line = msgspec.json.encode({key: value for key, value in entry.items() if value is not None})
        try:
            await anyio.to_thread.run_sync(append_line, self._file, line)
        except OSError as error:
            logger.warning("%s: the line of incident %s was not written: %s", self._file, incident.id, error)
