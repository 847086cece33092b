"""Where scribe keeps the transcript of a thread."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from custodes.adapters import Transcript


def transcript(native_id: str, environ: Mapping[str, str]) -> Transcript:
    if not re.fullmatch(r"[a-z0-9]{1,40}", native_id):
        return Transcript()
    file = Path(environ.get("HOME") or Path.home()) / ".scribe" / f"{native_id}.jsonl"
    place = str(file) if file.exists() else None
    return Transcript(place=place, command=("scribe", "--continue", native_id))
