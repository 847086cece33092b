"""Where Claude Code keeps the transcript of a thread."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from custodes.adapters.port import Transcript


def transcript(native_id: str, environ: Mapping[str, str]) -> Transcript:
    """By its id alone; nothing for what is no id of its kind (it becomes part of a path and a command)."""
    if not re.fullmatch(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", native_id):
        return Transcript()
    home = environ.get("CLAUDE_CONFIG_DIR") or Path(environ.get("HOME") or Path.home()) / ".claude"
    found = next(Path(home).glob(f"projects/*/{native_id}.jsonl"), None)
    return Transcript(place=str(found) if found else None, command=("claude", "--resume", native_id))
