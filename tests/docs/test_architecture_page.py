"""docs/architecture.md: its map of the largest room is whole."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
ROOM = ROOT / "src" / "custodes" / "supervision"


def test_every_module_of_supervision_stands_once_on_the_map_in_its_folder() -> None:
    section = PAGE.partition("## Where in `supervision`")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (\w* ?)\| [^|]+ \| (.*) \|$", section, re.MULTILINE)
    named = Counter((folder.strip(), name) for folder, row in rows for name in re.findall(r"`(\w+)`", row))
    modules = {
        ("" if file.parent == ROOM else file.parent.name, file.stem)
        for file in ROOM.rglob("*.py")
        if file.stem != "__init__"
    }
    assert named == Counter(modules)
