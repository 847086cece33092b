"""The guide's examples run, on both loops, and print what the guide says."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

GUIDE = Path(__file__).parents[2] / "docs" / "actors.md"
EXAMPLES = re.findall(
    r"```python\n(.*?)```\n\n```text\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL
)


def test_every_example_says_what_it_prints() -> None:
    assert len(EXAMPLES) == GUIDE.read_text(encoding="utf-8").count("```python")
    assert len(EXAMPLES) == 8


@pytest.mark.parametrize("loop", ["asyncio", "trio"])
@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_the_example_prints_what_the_guide_says(number: int, loop: str) -> None:
    code, expected = EXAMPLES[number]
    code = code.replace("anyio.run(main)", f"anyio.run(main, backend={loop!r})")
    ran = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], check=False, capture_output=True, text=True, timeout=60
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout == expected
