"""docs/howto/hub-api.md: its program is run against a Hub, and prints what the page says it prints."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import anyio
import msgspec
import pytest

from custodes.policy.settings import Settings
from custodes.supervision.record.records import AttemptRow
from support import chromium, scripted
from support.hub import put_on_record
from support.pages import ROOT

PAGE = (ROOT / "docs" / "howto" / "hub-api.md").read_text(encoding="utf-8")


def test_its_program_lists_changes_and_follows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    scripted.install(tmp_path, "one")
    (typed,) = re.findall(r"^```python\n# mine\.py\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    (command,) = re.findall(r"^python mine\.py http://localhost:8787 (\S+)$", PAGE, re.MULTILINE)
    (tmp_path / "mine.py").write_text(typed)
    attempt = AttemptRow(
        run_id="r", number=1, conversation=command, role="implementer", name="changelog", adapter="one"
    )
    anyio.run(put_on_record, tmp_path, [attempt])
    with chromium.hub_process(tmp_path) as address:
        mine = [sys.executable, str(tmp_path / "mine.py"), address.rstrip("/"), command]
        with subprocess.Popen(mine, stdout=subprocess.PIPE, text=True, env=dict(os.environ)) as program:
            assert program.stdout is not None
            try:
                told = [program.stdout.readline()]
                while told[-1] and not told[-1].startswith("changelog"):
                    told.append(program.stdout.readline())
                assert "one ready\n" in told
                assert told[-1] == "changelog one running\n"
                ended = msgspec.structs.replace(attempt, status="done", ended=1.0)
                anyio.run(lambda: put_on_record(tmp_path, [ended], update=True))
                assert program.stdout.readline() == "changelog one done\n"
            finally:
                program.terminate()
    assert Settings(tmp_path).read().policy.max_parallel == 4
