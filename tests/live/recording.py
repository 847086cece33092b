"""Keeps what a runtime printed while its adapter drove it, without what differs from run to run."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path

_UUID = re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b")
_TEE = Path(__file__).with_name("tee.py")


class Recording:
    """Does nothing unless ``CUSTODES_RECORD`` names a folder."""

    def __init__(self, folder: Path, adapter: str, case: str) -> None:
        self._raw = folder / "raw"
        place = os.environ.get("CUSTODES_RECORD")
        self._to = Path(place) / adapter / case if place else None
        self._scripts = folder / "recorder"

    def wrap(self, binary: str, program: str) -> Path | None:
        """A folder for PATH in which ``binary`` is ``program`` behind a recorder."""
        if self._to is None:
            return None
        self._scripts.mkdir()
        script = self._scripts / binary
        script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -I "{_TEE}" "{self._raw}" "{program}" "$@"\n')
        script.chmod(0o755)
        return self._scripts

    def keep(self, names: Mapping[str, str]) -> None:
        """Write the capture: ``names`` replaced, unique ids numbered in the order they come."""
        if self._to is None:
            return
        self._to.parent.mkdir(parents=True, exist_ok=True)
        numbers: dict[str, str] = {}

        def numbered(match: re.Match[str]) -> str:
            return numbers.setdefault(match[0], f"00000000-0000-4000-8000-{len(numbers) + 1:012}")

        for kind in ("stdout", "stderr", "exit"):
            raw = self._raw.with_suffix(f".{kind}")
            text = raw.read_text(errors="replace") if raw.exists() else ""
            for name, stand_in in names.items():
                text = text.replace(name, stand_in)
            lines = [_trimmed(line) for line in text.splitlines(keepends=True)]
            target = self._to.with_suffix(f".{kind}")
            target.write_text(_UUID.sub(numbered, "".join(lines)))
            if not text:
                target.unlink()


def _trimmed(line: str) -> str:
    """A JSON line with its long lists of plain words (tools, commands) cut to three."""
    try:
        event = json.loads(line)
    except ValueError:
        return line
    if not isinstance(event, dict):
        return line
    short = {
        key: value[:3] if isinstance(value, list) and len(value) > 8 and isinstance(value[0], str) else value
        for key, value in event.items()
    }
    return json.dumps(short, ensure_ascii=False, separators=(",", ":")) + "\n"
