"""Our own policy, any program, and a stranger's adapter as what sets a profile."""

from __future__ import annotations

import json
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest

from custodes.adapters.port import ProfileSetting, ProfileSwitch, SwitchError
from custodes.adapters.registry import Registry
from custodes.overseer.actuators import Actuators, Guarded
from custodes.policy.settings import Settings
from support.overseer import config

pytestmark = pytest.mark.anyio
ONE = ProfileSetting(model="one", provider="openai")
TWO = ProfileSetting(model="two", provider="openai")
PROGRAM = """\
import json, sys
from pathlib import Path
from types import SimpleNamespace

file, what, *rest = Path({file!r}), *sys.argv[1:]
if what == "read":
    print(file.read_text())
    sys.exit(0)
{fault}
file.write_text(json.dumps(dict(zip(("model", "provider", "base_url"), rest))))
"""


@pytest.fixture
def role(tmp_path: Path) -> ProfileSwitch:
    """The actuator `supervision` of a project whose reviewer is on openai/one."""
    own = tmp_path / ".coding-os" / "adapters" / "openai"
    own.mkdir(parents=True)
    (own / "adapter.yaml").write_text("models: [{id: one}, {id: two}]\n")
    (tmp_path / ".coding-os.yaml").write_text("agents: [openai]\n")
    roles = {"reviewer": {"adapter": "openai", "model": "one"}}
    (tmp_path / ".coding-os" / "hub-settings.json").write_text(
        json.dumps({"model_routing": {"roles": roles}})
    )
    return Actuators(config(), tmp_path)("supervision")


async def test_a_role_of_the_policy_is_read_and_set(role: ProfileSwitch) -> None:
    assert await role.read("reviewer") == ONE
    await role.switch("reviewer", TWO, ONE)
    assert await role.read("reviewer") == TWO


async def test_a_role_set_by_another_hand_meanwhile_is_left_so(role: ProfileSwitch) -> None:
    with pytest.raises(SwitchError, match=r"was set to one \(openai\) meanwhile"):
        await role.switch("reviewer", ONE, TWO)


async def test_a_change_between_the_reading_and_the_writing_wins(
    role: ProfileSwitch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Settings.patch

    def late(self: Settings, *args: object, **kwargs: object) -> object:
        file = tmp_path / ".coding-os" / "hub-settings.json"
        document = json.loads(file.read_text())
        document["model_routing"]["max_parallel"] = 7
        file.write_text(json.dumps(document))
        return real(self, *args, **kwargs)  # type: ignore[arg-type]  # as they came

    monkeypatch.setattr(Settings, "patch", late)
    with pytest.raises(SwitchError):
        await role.switch("reviewer", TWO, ONE)
    assert await role.read("reviewer") == ONE


@pytest.mark.parametrize(
    ("profile", "says"),
    [
        ("reviwer", "did you mean 'reviewer'"),
        ("analyst", "`cos supervision set --role analyst --role-adapter ADAPTER`"),
    ],
)
async def test_a_role_that_is_none_or_names_no_adapter_is_said(
    role: ProfileSwitch, profile: str, says: str
) -> None:
    with pytest.raises(SwitchError, match=says):
        await role.read(profile)


async def test_a_model_that_the_policy_would_refuse_is_refused(role: ProfileSwitch) -> None:
    with pytest.raises(SwitchError, match="three"):
        await role.switch("reviewer", ProfileSetting(model="three", provider="openai"), ONE)
    assert await role.read("reviewer") == ONE


def program(tmp_path: Path, fault: str = "") -> ProfileSwitch:
    file = tmp_path / "setting"
    file.write_text(json.dumps(msgspec.structs.asdict(ONE)))
    script = tmp_path / "switch.py"
    script.write_text(PROGRAM.format(file=str(file), fault=fault))
    argv = [sys.executable, str(script)]
    words = ["{model}", "{provider}", "{base_url}"]
    return Actuators(
        config(command={"read": [*argv, "read"], "switch": [*argv, "switch", *words]}), tmp_path
    )("command")


async def test_any_program_can_be_what_sets_a_profile(tmp_path: Path) -> None:
    switch = program(tmp_path)
    assert await switch.read("w") == ONE
    await switch.switch("w", TWO, ONE)
    assert (await switch.read("w")).holds(TWO)


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        ("sys.exit(0)", "still reads as one"),
        ("sys.exit(3)", "ended with 3"),
        ("rest[1] = 'wrong' if rest[0] == 'two' else rest[1]", "still reads as one"),
    ],
)
async def test_a_program_without_effect_or_half_way_leaves_the_profile_as_it_was(
    tmp_path: Path, fault: str, says: str
) -> None:
    switch = program(tmp_path, fault)
    with pytest.raises(SwitchError, match=says) as caught:
        await switch.switch("w", TWO, ONE)
    assert not caught.value.changed
    assert (await switch.read("w")).holds(ONE)


async def test_a_program_that_cannot_be_brought_back_is_said_to_have_changed_it(tmp_path: Path) -> None:
    switch = program(tmp_path, "rest[1] = 'wrong'")
    with pytest.raises(SwitchError, match=r"is left at one \(wrong\), half way") as caught:
        await switch.switch("w", TWO, ONE)
    assert caught.value.changed


async def test_an_actuator_that_is_none_is_named_with_what_there_is(tmp_path: Path) -> None:
    with pytest.raises(SwitchError, match=r"did you mean 'hermes'\?"):
        Actuators(config(), tmp_path)("hermse")
    with pytest.raises(SwitchError, match="does not declare 'profile_switch'"):
        Actuators(config(), tmp_path)("claude")


async def test_without_a_name_it_is_the_one_adapter_that_can(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Actuators(config(), tmp_path)("")
    monkeypatch.setattr(Registry, "discover", lambda _: SimpleNamespace(descriptors={}))
    with pytest.raises(
        SwitchError, match="name the actuator: 0 adapters can switch profiles; command, supervision"
    ):
        Actuators(config(), tmp_path)("")


async def test_whatever_a_strangers_adapter_raises_is_a_switch_error(tmp_path: Path) -> None:
    class Stranger:
        async def read(self, profile: str) -> ProfileSetting:
            raise ZeroDivisionError("by accident")

        async def switch(self, profile: str, wanted: ProfileSetting, expected: ProfileSetting) -> None:
            raise ZeroDivisionError

        async def recover(self, profile: str) -> bool:
            return False

    guarded = Guarded("stranger", Stranger())
    steps: list[Callable[[], Awaitable[object]]] = [
        lambda: guarded.read("w"),
        lambda: guarded.switch("w", TWO, ONE),
    ]
    changed = []
    for step in steps:
        with pytest.raises(SwitchError, match="ZeroDivisionError") as caught:
            await step()
        changed.append(caught.value.changed)
    assert changed == [False, True], "after a switch that raised, a person has to look"


def test_an_address_is_told_without_what_may_be_a_secret_in_it() -> None:
    told = str(ProfileSetting(model="m", provider="p", base_url="https://me:hunter2@host:8/v1?key=hunter2"))
    assert told == "m (p, https://host:8/v1)"
    assert str(ProfileSetting(model="m", base_url="http://[hunter2")) == "m"
