"""The tools without the protocol: each on both loops, in this process."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest

from custodes import Supervision
from custodes.adapters.port import DispatchRequest, DispatchResult, PermissionAsk, ProgressSink, Usage
from custodes.mcp import calls
from custodes.mcp.tools import TOOLS, Tools, Watch
from custodes.overseer.reading import ConfigError
from custodes.policy.arguments import ArgumentsError, schema_of
from custodes.policy.normalize import policy_keys
from custodes.policy.patch import PolicyPatch
from custodes.policy.policy import Cooldown, Policy, Target, Telemetry
from custodes.policy.settings import PolicyRefusedError, Settings, SettingsError
from custodes.supervision.asks.operator_ask import OperatorError
from custodes.supervision.work import Budget, Work
from support import scripted
from support.cos import Tiered
from support.overseer import kept_in_a_file

pytestmark = pytest.mark.anyio


@pytest.fixture
async def tools(project: Path, anyio_backend: str) -> AsyncIterator[Tools]:
    watch = Watch()
    async with (
        Supervision(project, observer=watch.observe) as supervision,
        supervision.conversation("c") as parent,
    ):
        yield Tools(supervision, parent)


async def ignore(progress: float, message: str) -> None:
    pass


async def call(tools: Tools, name: str, **arguments: Any) -> Any:
    """The document as a client gets it."""
    return msgspec.json.decode(msgspec.json.encode(await tools.call(name, arguments, ignore)))


async def config(tools: Tools, action: str, **arguments: Any) -> Any:
    return await call(tools, "cos_supervision_config", action=action, **arguments)


OTHER: dict[str, Any] = {
    "enabled": True,
    "mode": "adaptive",
    "complexity_threshold": "CHAOTIC",
    "fallback_policy": "next_eligible",
    "max_parallel": 7,
    "max_live": 70,
    "ask_seconds": 6,
    "cooldown": {"default_seconds": 7, "maximum_seconds": 7_000, "retry_after_ceiling_seconds": 70_000},
    "orchestrator": {"adapter": "fixture", "model": "large-1", "effort": "high"},
    "roles": {"reviewer": {"adapter": "fixture", "model": "small-1", "effort": "low"}},
    "preset": "night",
    "presets": {"night": {"architect": {"adapter": "fixture", "model": "large-1", "effort": "medium"}}},
    "telemetry": {"relay": False, "prompts": True, "outputs": True, "tool_arguments": True},
}
"""A value other than the default for each key of the policy."""


def test_there_is_another_value_for_every_key_of_the_policy() -> None:
    assert set(OTHER) == set(Policy.__struct_fields__)
    assert set(OTHER["cooldown"]) == set(Cooldown.__struct_fields__)
    assert set(OTHER["orchestrator"]) == set(Target.__struct_fields__)
    assert set(OTHER["telemetry"]) == set(Telemetry.__struct_fields__)


async def test_every_key_of_the_policy_is_shown_set_and_cleared(tools: Tools, tiered: Tiered) -> None:
    changes = {key: value for key, value in OTHER.items() if key != "enabled"}
    await config(tools, "enable")
    shown = await config(tools, "set", **changes)
    assert shown["policy"] == OTHER
    assert msgspec.convert(OTHER, Policy) == Settings(tiered.project).read().policy
    for key in Policy.__struct_fields__:
        shown = await config(tools, "set", clear=[key])
        blank = msgspec.to_builtins(getattr(Policy(), key))
        assert shown["policy"][key] == blank, key


@pytest.mark.parametrize(
    "key", [key for key in policy_keys() if "." in key], ids=lambda key: key.replace("<", "").replace(">", "")
)
async def test_every_single_field_can_be_cleared_alone(tools: Tools, tiered: Tiered, key: str) -> None:
    await config(tools, "set", **{key: value for key, value in OTHER.items() if key != "enabled"})
    name = key.replace("presets.<preset>.<role>", "presets.night.architect").replace("<preset>", "night")
    path = name.replace("<role>", "reviewer").split(".")
    expected = json.loads(json.dumps({**OTHER, "enabled": False}))
    inner = expected
    for step in path[:-1]:
        inner = inner[step]
    if path[0] == "cooldown":
        inner[path[-1]] = getattr(Cooldown(), path[-1])
    elif path[0] == "telemetry":
        inner[path[-1]] = getattr(Telemetry(), path[-1])
    elif path[-1] in Target.__struct_fields__:
        inner[path[-1]] = ""
    else:
        del inner[path[-1]]
    if path[0] == "presets" and len(path) == 3:
        expected["presets"] = {"night": {}}
    shown = await config(
        tools, "set", clear=[".".join(path)], preset="" if path == ["presets", "night"] else "night"
    )
    if path == ["presets", "night"]:
        expected["preset"] = ""
    assert shown["policy"] == expected


@pytest.mark.parametrize("field", Target.__struct_fields__)
async def test_an_empty_text_clears_one_field_of_a_role_and_of_the_orchestrator(
    tools: Tools, tiered: Tiered, field: str
) -> None:
    await config(tools, "set", orchestrator=OTHER["orchestrator"], roles=OTHER["roles"])
    shown = await config(tools, "set", orchestrator={field: ""}, roles={"reviewer": {field: ""}})
    assert shown["policy"]["orchestrator"] == {**OTHER["orchestrator"], field: ""}
    assert shown["policy"]["roles"]["reviewer"] == {**OTHER["roles"]["reviewer"], field: ""}


async def test_what_could_never_run_is_refused_and_nothing_is_written(tools: Tools, tiered: Tiered) -> None:
    with pytest.raises(PolicyRefusedError, match="effort 'xhigh' is not listed by adapter 'fixture'"):
        await config(tools, "set", roles={"reviewer": {"adapter": "fixture", "effort": "xhigh"}})
    assert not (tiered.project / ".coding-os" / "hub-settings.json").exists()


async def test_a_malformed_file_is_reported_and_left(tools: Tools, tiered: Tiered) -> None:
    file = tiered.project / ".coding-os" / "hub-settings.json"
    file.write_text("{")
    for action in ("show", "enable"):
        with pytest.raises(SettingsError, match="malformed settings"):
            await config(tools, action)
    assert file.read_text() == "{"
    outcome = await call(tools, "cos_dispatch", role="reviewer", prompt="x")
    assert outcome["refusal"]["category"] == "settings"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"action": "show", "mode": "suggest"}, "takes no change"),
        ({"action": "enable", "roles": {"reviewer": {"effort": "low"}}}, "takes no change"),
        ({"action": "set"}, "needs a field to set"),
        ({"action": "set", "mod": "suggest"}, "unknown field 'mod'; did you mean 'mode'?"),
        ({"action": "set", "cooldown": {"default": 3}}, "did you mean 'default_seconds'?"),
        ({"action": "set", "roles": {"reviwer": {}}}, "unknown role 'reviwer'; did you mean 'reviewer'?"),
        ({"action": "set", "presets": {"night": {"reviewer": {"efort": "low"}}}}, "did you mean 'effort'?"),
        ({"action": "set", "max_parallel": "3"}, "max_parallel: Expected int"),
        ({"action": "sett"}, "did you mean 'set'?"),
        ({}, "the field 'action' is missing"),
    ],
)
async def test_arguments_that_do_not_fit_say_what_would(
    tools: Tools, tiered: Tiered, arguments: dict[str, Any], says: str
) -> None:
    with pytest.raises(ArgumentsError) as refused:
        await tools.call("cos_supervision_config", arguments, ignore)
    assert says in str(refused.value)


async def test_without_a_file_of_its_own_the_overseer_says_where_it_would_be(
    tools: Tools, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HERMES_HOME", str(tmp_path))
    with pytest.raises(ConfigError, match=f"there is no {tmp_path}/supervisor.yaml"):
        await tools.call("cos_overseer", {}, ignore)
    assert await call(tools, "cos_overseer", action="incidents") == {"incidents": []}


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"profile": "w"}, "action 'status' switches nothing; action 'switch' does"),
        ({"action": "switch", "profile": "w"}, "needs a profile, and a target"),
        ({"action": "switch", "target": "auto"}, "needs a profile, and a target"),
        ({"action": "incidents", "count": 0}, "count"),
    ],
)
async def test_what_is_asked_of_the_overseer_in_part_says_what_lacks(
    tools: Tools, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: dict[str, Any], says: str
) -> None:
    monkeypatch.setenv("HERMES_HOME", str(tmp_path))
    kept_in_a_file(tmp_path)
    with pytest.raises(ArgumentsError, match=says):
        await tools.call("cos_overseer", arguments, ignore)


async def test_an_unknown_tool_names_those_there_are(tools: Tools) -> None:
    with pytest.raises(ArgumentsError, match="there is no tool 'cos_run'; there are cos_supervision_config"):
        await tools.call("cos_run", {}, ignore)


async def test_a_clear_needs_a_target_and_says_when_there_was_nothing(tools: Tools, tiered: Tiered) -> None:
    with pytest.raises(ArgumentsError, match="needs a target"):
        await call(tools, "cos_health", action="clear")
    cleared = await call(tools, "cos_health", action="clear", target="fixture")
    assert cleared == {"target": "fixture", "cleared": []}


async def test_while_it_is_off_work_is_refused_as_data_and_no_store_is_made(
    tools: Tools, tiered: Tiered
) -> None:
    outcome = await call(tools, "cos_dispatch", role="reviewer", prompt="x")
    assert (outcome["status"], outcome["refusal"]["category"]) == ("refused", "disabled")
    assert not list((tiered.project / ".coding-os").glob("*.db*"))
    assert (await call(tools, "cos_trace"))["attempts"] == []


async def test_a_dry_run_returns_the_route_with_its_estimate(tools: Tools, programs: Path) -> None:
    await config(tools, "set", mode="suggest")
    work = {"role": "reviewer", "prompt": "x", "model": "look"}
    fan = await call(tools, "cos_fan_out", children=[work, {**work, "model": "limit"}])
    assert [outcome["status"] for outcome in fan["outcomes"]] == ["skipped", "skipped"]
    proposed = fan["outcomes"][1]["output_json"]
    assert proposed["proposed_route"]["pool"] == "command:limit"
    assert proposed["estimate"]["input_tokens"] == 50_000
    assert "the reviewer's default" in proposed["estimate"]["source"]


async def test_a_fan_out_refuses_what_its_budget_does_not_hold_and_says_what_was_spent(
    tools: Tools, project: Path
) -> None:
    script = scripted.install(project, "one")
    script.acts.append(scripted.using(usage=Usage(input_tokens=60, output_tokens=30)))
    work = {"role": "reviewer", "prompt": "x", "estimate_tokens": 90}
    fan = await call(tools, "cos_fan_out", children=[work, work], budget={"tokens": 100})
    assert [outcome["status"] for outcome in fan["outcomes"]] == ["done", "refused"]
    shortfall = fan["outcomes"][1]["refusal"]["shortfall"]
    assert (shortfall["limit"], shortfall["needed"], shortfall["left"]) == ("tokens", 90, 10)
    assert (fan["spent"]["tokens"]["spent"], fan["spent"]["tokens"]["left"]) == (90, 10)


async def test_a_call_in_which_nothing_happens_says_that_it_is_at_work(
    tools: Tools, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("custodes.mcp.tools.BEAT_S", 0.01)
    heard_of = anyio.Event()

    async def until_heard_of(request: DispatchRequest, progress: ProgressSink) -> DispatchResult:
        await heard_of.wait()
        return await scripted.answer(request, progress)

    async def hear(progress: float, message: str) -> None:
        if "at work for" in message:
            heard_of.set()

    scripted.install(project, "one").acts.append(until_heard_of)
    outcome = await tools.call("cos_dispatch", {"role": "reviewer", "prompt": "x"}, hear)
    assert isinstance(outcome, dict)
    assert outcome["status"] == "done"


def test_the_calls_carry_every_field_of_what_they_stand_for() -> None:
    fields = set(calls.ConfigCall.__struct_fields__) - {"action", "health"}
    spelled_by_clear = {"clear_orchestrator", "clear_roles", "clear_presets"}
    assert fields == set(PolicyPatch.__struct_fields__) - {"enabled"} - spelled_by_clear
    assert calls.Work.__struct_fields__ == Work.__struct_fields__
    assert calls.Budget.__struct_fields__ == Budget.__struct_fields__


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_a_schema_is_whole_in_itself_and_takes_no_union(tool: Any) -> None:
    text = json.dumps(schema_of(tool.call))
    assert "$ref" not in text
    assert "anyOf" not in text
    assert "null" not in text


async def test_another_process_s_words_for_asks_and_cancel_are_the_command_lines(
    tools: Tools, tiered: Tiered
) -> None:
    assert await call(tools, "cos_asks") == {"asks": []}
    with pytest.raises(ArgumentsError, match="takes no ask"):
        await call(tools, "cos_asks", ask="x")
    with pytest.raises(ArgumentsError, match="allow or deny"):
        await call(tools, "cos_asks", action="answer", ask="x")
    with pytest.raises(OperatorError, match="no ask 'x'"):
        await call(tools, "cos_asks", action="answer", ask="x", answer="allow")
    with pytest.raises(OperatorError, match="no run and no conversation 'x'"):
        await call(tools, "cos_cancel", target="x")


async def test_a_child_asks_while_its_call_waits_and_another_call_answers_and_cancels(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = scripted.install(project, "one")
    hangs = anyio.Event()
    told: list[str] = []

    async def asks(request: DispatchRequest, progress: ProgressSink) -> DispatchResult:
        assert request.permit is not None
        told.append(await request.permit(PermissionAsk(tool="shell", detail="make")))
        hangs.set()
        await anyio.sleep_forever()
        raise AssertionError

    script.acts.append(asks)
    watch, said = Watch(), list[str]()

    async def report(progress: float, message: str) -> None:
        said.append(message)

    with anyio.fail_after(60):
        async with (
            Supervision(project, observer=watch.observe) as supervision,
            supervision.conversation("c") as parent,
            anyio.create_task_group() as group,
        ):
            tools = Tools(supervision, parent)
            arguments = {"role": "reviewer", "prompt": "look"}
            group.start_soon(tools.call, "cos_dispatch", arguments, report)
            while not (waiting := (await call(tools, "cos_asks"))["asks"]):  # noqa: ASYNC110 - no event tells
                await anyio.sleep(0.01)
            given = await call(tools, "cos_asks", action="answer", ask=waiting[0]["id"], answer="allow")
            await hangs.wait()
            report_of_cancel = await call(tools, "cos_cancel", target="c")
    assert told == ["allow"]
    assert (given["answer"], given["by"], given["first"]) == ("allow", "mcp", True)
    assert [run["status"] for run in report_of_cancel["runs"]] == ["cancelled"]
    assert any("asks leave for shell: make" in message for message in said)
