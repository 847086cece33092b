"""docs/overseer.md is held to what it speaks of."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from custodes.overseer.config import Config, ProfileConfig, ProviderConfig
from custodes.overseer.reading import read_config
from support.cos import Cos
from support.health_provider import health_provider
from support.projects import cos, project

__all__ = ["cos", "project"]

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "overseer.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)


def test_every_key_of_the_file_is_told_of() -> None:
    for kind in (Config, ProviderConfig, ProfileConfig):
        for field in kind.__struct_fields__:
            assert field == "file" or f"`{field}`" in PAGE, f"{kind.__name__}.{field}"


def test_its_pieces_of_yaml_load(tmp_path: Path) -> None:
    provider, notify = blocks("yaml")
    file = tmp_path / "supervisor.yaml"
    file.write_text(
        f"supervisor:\n{notify}  providers:\n{provider}"
        "  fallback_matrix:\n    w: {primary: grok-cli/grok-4.5}\n"
    )
    found = read_config(file)
    assert [channel.url_env for channel in found.notify.channels] == [
        *("CUSTODES_NOTIFY_TELEGRAM", "OPS_CHANNEL_URL")
    ]
    assert found.setting("w", found.fallback_matrix["w"].primary).base_url == "https://grok.example/v1"


@pytest.mark.filterwarnings("ignore:'imghdr' is deprecated:DeprecationWarning")  # apprise, before Python 3.13
def test_its_commands_work_as_typed_and_the_last_runs_until_it_is_ended(
    cos: Cos, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    profile = project.parent / "worker-code"
    profile.write_text("opencode-go/kimi-k2.7-code")
    write = ["sh", "-c", 'printf %s "$1" > "$0"', str(profile), "{model}"]
    monkeypatch.setenv("HERMES_HOME", str(project.parent))
    typed = [line.split("#")[0].split() for line in blocks("bash")[0].splitlines()]
    with health_provider() as provider, health_provider() as channel:
        monkeypatch.setenv("OPS", channel.url.replace("http:", "json:"))
        row = {"primary": "opencode-go/kimi-k2.7-code", "fallbacks": ["grok-cli/grok-4.5"]}
        config = {
            "providers": {name: {"health_url": provider.url} for name in ("opencode-go", "grok-cli")},
            "fallback_matrix": {"worker-code": {**row, "actuator": "command"}},
            "command": {"read": ["cat", str(profile)], "switch": write},
            "notify": {"channels": {"ops": {"url_env": "OPS"}}},
        }
        (project.parent / "supervisor.yaml").write_text(json.dumps({"supervisor": config}))
        *once, last = typed
        assert [words[2] for words in once] == ["tick", "simulate", "explain", "switch", "notify"]
        for words in once:
            answer = cos(*words[1:])
            assert answer.code == 0, (words, answer)
        assert profile.read_text() == "grok-cli/grok-4.5"
        assert "POST" in channel.methods
        with subprocess.Popen(
            [sys.executable, "-m", "custodes.cli", *last[1:]], stdout=subprocess.PIPE, text=True
        ) as overseer:
            assert overseer.stdout is not None
            assert overseer.stdout.readline().startswith("watching ")
            overseer.send_signal(signal.SIGTERM)
            overseer.stdout.read()
        assert overseer.returncode == 0


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="no systemd-analyze on this machine")
def test_its_unit_is_one_that_systemd_takes(tmp_path: Path) -> None:
    program = tmp_path / ".local" / "bin" / "cos"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    unit = tmp_path / "custodes-overseer.service"
    unit.write_text(blocks("ini")[0])
    environment = {**os.environ, "HOME": str(tmp_path), "XDG_RUNTIME_DIR": str(tmp_path)}
    checked = subprocess.run(
        ["systemd-analyze", "verify", "--user", str(unit)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (checked.returncode, checked.stderr) == (0, "")


def test_its_cron_script_is_quiet_and_takes_its_keys_from_its_file(tmp_path: Path) -> None:
    """Run as Hermes runs it, with a cos that says what it was given."""
    (tmp_path / ".config" / "custodes").mkdir(parents=True)
    (tmp_path / ".config" / "custodes" / "overseer.env").write_text("GROK_API_KEY=from-the-file\n")
    cos = tmp_path / "cos"
    cos.write_text('#!/bin/sh\necho "$@" "$GROK_API_KEY"\n')
    cos.chmod(0o755)
    script = tmp_path / "overseer.sh"
    script.write_text(blocks("sh")[0])
    done = subprocess.run(
        ["bash", str(script)],
        env={"HOME": str(tmp_path), "PATH": f"{tmp_path}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == f"overseer tick --quiet --project-dir {tmp_path}/.hermes from-the-file\n"
