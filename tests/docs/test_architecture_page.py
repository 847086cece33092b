"""docs/architecture.md: its map of the largest room is whole."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")


def test_every_module_of_supervision_stands_once_on_the_map() -> None:
    section = PAGE.partition("## Where in `supervision`")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| [^|]+ \| (.*) \|$", section, re.MULTILINE)
    named = Counter(name for row in rows for name in re.findall(r"`(\w+)`", row))
    modules = {file.stem for file in (ROOT / "src" / "custodes" / "supervision").glob("*.py")}
    assert named == Counter(modules - {"__init__"})
