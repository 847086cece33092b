"""A real browser, and a Hub in a process of its own for it to open."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

from support.program import running


def found() -> str | None:
    """The program, or None where playwright brought one of its own."""
    return os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")


@contextmanager
def chromium() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        # Without a sandbox of its own: it opens nothing but a Hub of the test.
        browser = playwright.chromium.launch(executable_path=found(), args=["--no-sandbox"])
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def hub_process(project: Path, port: str = "0") -> Iterator[str]:
    """`cos hub` for a project; its address. It ends with the block."""
    command = [sys.executable, "-m", "custodes.cli", "hub", "--port", port, "-d", str(project)]
    with running(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            line = process.stdout.readline()
            assert "http://" in line, line
            yield line.split()[-1]
        finally:
            process.terminate()
            process.wait(30)
