"""The examples are run as a reader would run them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

EXAMPLES = Path(__file__).parent.parent / "examples"


def run(name: str) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "error", str(EXAMPLES / name)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_the_examples_under_asyncio_and_under_trio_print_the_same_evidence() -> None:
    printed = run("asyncio_host.py")
    assert printed == run("trio_host.py")
    assert printed.splitlines() == [
        "reviewer done the reviewer saw beans.txt, kale.txt",
        "analyst done the analyst saw beans.txt, kale.txt",
    ]


def test_only_the_host_differs_between_the_two() -> None:
    def work(name: str) -> str:
        text = (EXAMPLES / name).read_text()
        return text[text.index("PROGRAM") : text.index("if __name__")]

    assert work("asyncio_host.py") == work("trio_host.py")
