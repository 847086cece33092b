"""The profile switch, with a program in Hermes's place that misbehaves as the real one was seen to."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest

from custodes.adapters.port import ProfileSetting, ProfileSwitch, SwitchError
from custodes.adapters.registry import Registry

pytestmark = pytest.mark.anyio

HERMES = """\
#!{python}
import json, os, sys, time
from pathlib import Path
from ruamel.yaml import YAML

profile, words = "default", sys.argv[1:]
if words[0] == "-p":
    profile, words = words[1], words[2:]
home = Path(os.environ["HERMES_HOME"])
file = (home if profile == "default" else home / "profiles" / profile) / "config.yaml"
document = YAML(typ="safe").load(file) or {{}}
model = document.get("model", {{}})
with open({journal!r}, "a") as journal:
    print(profile, *words, file=journal)
if words[1] == "get":
{get}
    print(json.dumps(model))
    sys.exit(0)
{set}
if not isinstance(model, dict):
    model = {{}}
document["model"] = {{**model, words[2].partition(".")[2]: words[3]}}
YAML(typ="safe").dump(document, file)
"""
CONFIG = """\
# mine
model:
  # the primary
  default: kimi-k2.7-code   # for now
  provider: opencode-go
  base_url: http://127.0.0.1:1/v1
  api_key: sk-secret
agent: {max_turns: 7}
answer: no
"""
HERE = ProfileSetting(model="kimi-k2.7-code", provider="opencode-go", base_url="http://127.0.0.1:1/v1")
THERE = ProfileSetting(model="grok-4.5", provider="custom", base_url="http://127.0.0.1:2/v1")

Install = Callable[..., ProfileSwitch]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Puts a hermes on PATH (``set`` and ``get`` are what it does first) and gives its ProfileSwitch."""
    home = tmp_path / "hermes"
    (home / "profiles" / "worker-code").mkdir(parents=True)
    (home / "profiles" / "worker-code" / "config.yaml").write_text(CONFIG)
    monkeypatch.setenv("HERMES_HOME", str(home))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=os.pathsep)

    def put(set: str = "", get: str = "    pass") -> ProfileSwitch:  # noqa: A002 - the program's own word
        (tmp_path / "bin").mkdir(exist_ok=True)
        program = tmp_path / "bin" / "hermes"
        journal = str(tmp_path / "journal")
        program.write_text(HERMES.format(python=sys.executable, journal=journal, set=set, get=get))
        program.chmod(0o755)
        return Registry.discover(tmp_path).profile_switch("hermes")

    return put


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "hermes" / "profiles" / "worker-code" / "config.yaml"


async def test_it_is_found_by_the_descriptor_and_reads_a_profile(install: Install) -> None:
    assert await install().read("worker-code") == HERE


async def test_model_provider_and_address_move_together_and_every_other_byte_stays(
    install: Install, file: Path, tmp_path: Path
) -> None:
    file.chmod(0o640)
    await install().switch("worker-code", THERE, HERE)
    assert file.read_text() == CONFIG.replace("kimi-k2.7-code ", '"grok-4.5" ').replace(
        "opencode-go", '"custom"'
    ).replace("http://127.0.0.1:1/v1", '"http://127.0.0.1:2/v1"')
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    assert sorted(each.name for each in file.parent.iterdir()) == ["config.yaml"]
    journal = (tmp_path / "journal").read_text().splitlines()
    assert "worker-code config set model.default grok-4.5" in journal
    assert journal[-1] == "worker-code config get model --json"


async def test_what_is_not_stated_is_not_touched(install: Install, file: Path) -> None:
    only = ProfileSetting(model="grok-cli/grok-4.5")
    await install().switch("worker-code", only, ProfileSetting(model="kimi-k2.7-code"))
    assert file.read_text() == CONFIG.replace("kimi-k2.7-code", '"grok-cli/grok-4.5"')


@pytest.mark.parametrize("before", ["model: kimi-k2.7-code\n", "model: {default: kimi-k2.7-code}\n"])
async def test_a_model_in_another_shape_is_set_as_hermes_sets_it(
    install: Install, file: Path, before: str
) -> None:
    file.write_text(before + "agent: {max_turns: 7}\n")
    switch = install()
    await switch.switch("worker-code", THERE, ProfileSetting(model="kimi-k2.7-code"))
    assert await switch.read("worker-code") == THERE
    assert "max_turns: 7" in file.read_text()


async def test_a_key_that_was_missing_is_put_in(install: Install, file: Path) -> None:
    file.write_text("model:\n  default: kimi-k2.7-code # here\nagent: {}\n")
    switch = install()
    await switch.switch("worker-code", THERE, ProfileSetting(model="kimi-k2.7-code"))
    assert await switch.read("worker-code") == THERE
    assert "# here" in file.read_text()


@pytest.mark.parametrize(
    ("behaviour", "says"),
    [
        ({"set": "sys.exit(0)"}, "ended well, but on a copy"),
        ({"set": "if words[2] == 'model.provider': sys.exit(0)"}, "ended well, but on a copy"),
        ({"set": "document['agent'] = {}"}, "ended well, but on a copy"),
        ({"set": "sys.exit('no such key')"}, "ended with 1: no such key"),
        ({"get": "    model = 'pinned'"}, "Hermes reads pinned"),
        ({"get": "    sys.exit(3)"}, "ended with 3"),
    ],
)
async def test_a_hermes_that_does_not_do_it_leaves_the_profile_as_it_was(
    install: Install, file: Path, behaviour: dict[str, str], says: str
) -> None:
    with pytest.raises(SwitchError, match=says) as caught:
        await install(**behaviour).switch("worker-code", THERE, HERE)
    assert not caught.value.changed
    assert file.read_text() == CONFIG
    assert sorted(each.name for each in file.parent.iterdir()) == ["config.yaml"]
    assert "sk-secret" not in str(caught.value)


@pytest.mark.parametrize(
    "text", ["model: [open\n  x: {", "model: a\nmodel: b\n", "- a list\n", "model: 'open sk-9"]
)
async def test_a_malformed_file_is_left_alone_and_hermes_is_not_called(
    install: Install, file: Path, tmp_path: Path, text: str
) -> None:
    file.write_text(text)
    for step in (install().read("worker-code"), install().switch("worker-code", THERE, HERE)):
        with pytest.raises(SwitchError, match="malformed") as caught:
            await step
        assert "sk-9" not in str(caught.value)
    assert file.read_text() == text
    assert not (tmp_path / "journal").exists()


async def test_a_missing_profile_is_named_with_what_there_is(install: Install) -> None:
    with pytest.raises(SwitchError, match=r"did you mean 'worker-code'\?.*hermes profile create worker-cod"):
        await install().read("worker-cod")


async def test_a_profile_that_cannot_be_looked_for_is_not_said_to_be_missing(install: Install) -> None:
    with pytest.raises(SwitchError, match="cannot be looked into: File name too long"):
        await install().read("w" * 300)


async def test_what_another_hand_set_meanwhile_is_left_so(install: Install, file: Path) -> None:
    file.write_text(CONFIG.replace("kimi", "theirs"))
    with pytest.raises(SwitchError, match="was set to theirs-k2"):
        await install().switch("worker-code", THERE, HERE)
    assert "theirs" in file.read_text()


async def test_what_another_hand_writes_while_hermes_works_is_left_so(install: Install, file: Path) -> None:
    switch = install(set=f"Path({str(file)!r}).write_text('model: theirs\\n')")
    with pytest.raises(SwitchError, match="by another hand meanwhile"):
        await switch.switch("worker-code", THERE, HERE)
    assert file.read_text() == "model: theirs\n"


async def test_cancelled_in_the_proof_the_profile_stands_as_it_did(
    install: Install, file: Path, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    switch = install(get=f"    open({str(gate)!r}, 'w').close(); time.sleep(600)")
    async with anyio.create_task_group() as group:
        group.start_soon(switch.switch, "worker-code", THERE, HERE)
        await anyio.to_thread.run_sync(gate.read_bytes)  # ends once Hermes is asked for its proof
        assert '"grok-4.5"' in file.read_text()
        group.cancel_scope.cancel()
    assert file.read_text() == CONFIG


async def test_what_one_that_was_killed_left_is_removed(install: Install, file: Path) -> None:
    left = file.parent / ".custodes-switch" / "profiles"
    left.mkdir(parents=True)
    switch = install()
    assert await switch.recover("worker-code")
    assert not left.exists()
    assert not await switch.recover("worker-code")
    assert await switch.read("worker-code") == HERE


async def test_a_file_behind_a_link_stays_behind_it(install: Install, file: Path, tmp_path: Path) -> None:
    real = tmp_path / "dotfiles.yaml"
    file.rename(real)
    file.symlink_to(real)
    await install().switch("worker-code", THERE, HERE)
    assert file.is_symlink()
    assert '"grok-4.5"' in real.read_text()
