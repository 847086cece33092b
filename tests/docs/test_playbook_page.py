"""docs/playbook.md is followed line by line, and the words it explains are those the product says."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from support.cos import Cos
from support.projects import cos, project

__all__ = ["cos", "project"]

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "playbook.md").read_text(encoding="utf-8")
COMMANDS = [
    words
    for block in re.findall(r"^```bash\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    for line in block.splitlines()
    if (words := shlex.split(line, comments=True))
]
NOTHING_TO_CLEAR = ["cos", "health", "clear", "claude"]


def test_every_command_works_as_typed_in_its_order(
    cos: Cos, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("claude", "codex"):
        (programs / name).write_text("#!/bin/sh\nexit 1\n")
        (programs / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(programs))
    (project / ".coding-os.yaml").unlink(missing_ok=True)
    assert len(COMMANDS) > 15
    for words in COMMANDS:
        assert words[0] == "cos"
        answer = cos(*words[1:])
        assert answer.code == (1 if words == NOTHING_TO_CLEAR else 0), (words, answer)


def test_every_wording_it_explains_is_one_that_the_product_says() -> None:
    rows = re.findall(
        r"^\| `(.+?)` \| .* \| .* \|$", PAGE.split("## When something is refused")[1], re.MULTILINE
    )
    assert len(rows) == 8
    source = "\n".join(file.read_text(encoding="utf-8") for file in (ROOT / "src").rglob("*.py"))
    said = re.sub(r'"\s*\n\s*f?"', "", source)
    for row in rows:
        for fixed in re.split(r"'?\b[XM]\b'?|: ", row):
            assert fixed.strip() in said, row
