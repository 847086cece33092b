"""A session with an agent, line by line: what each recorded agent says, and what is said to it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import acp.schema
import msgspec
import pytest

from custodes.adapters.acp import agents
from custodes.adapters.acp.session import Session
from custodes.adapters.asks import MAX_ASKED
from custodes.adapters.port import DispatchRequest, PermissionAnswer, PermissionAsk, Progress
from support.asks import Recorded

RECORDED = Path(__file__).parents[2] / "fixtures" / "runtimes" / "acp"
MODES = [{"id": each, "name": each} for each in ("default", "plan", "acceptEdits")]
ASKED = DispatchRequest(
    run_id="r", role="reviewer", prompt="Say LOOPBACK-OK.", mutable=False, cwd="/work", timeout_s=9
)


class Talk:
    """A session and what it wrote."""

    def __init__(self, *, agent: agents.Agent | None = None, **asked: Any) -> None:
        self.progress: list[Progress] = []
        request = msgspec.structs.replace(ASKED, **asked)
        self.asks = Recorded()
        progress = self.progress.append
        self.session = Session(acp.schema, "acp", request, agent or agents.Agent(), progress, self.asks)
        self.session.begin()

    def hear(self, message: object) -> bool:
        return self.session.output_line(json.dumps(message).encode())

    def answer(self, number: int, **result: object) -> bool:
        return self.hear({"jsonrpc": "2.0", "id": number, "result": result})

    def open(self, modes: list[dict[str, str]] | None = None, **can: object) -> bool:
        """To the prompt, unless it fails before that."""
        return (
            self.answer(1, protocolVersion=1, agentCapabilities=can)
            or self.answer(2, sessionId="s1", modes={"availableModes": MODES if modes is None else modes})
            or self.answer(3)
        )

    def updates(self, **update: object) -> bool:
        return self.hear({"method": "session/update", "params": {"sessionId": "s1", "update": update}})

    @property
    def wrote(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in bytes(self.session.stdin._rest).splitlines()]

    @property
    def failure(self) -> tuple[str, bool, str] | None:
        said = self.session.failure
        return (said.category, said.retryable, said.outcome) if said else None


CAPACITY = ("capacity", True, "known_failed")
AUTH = ("auth", False, "known_failed")
SERVER = ("provider", True, "unknown")
INVALID = ("invalid", False, "known_failed")
EXPECTED: dict[str, dict[str, tuple[str, bool, str] | None]] = {
    name: {
        "success": None,
        "limit": CAPACITY,
        "usage_limit": CAPACITY,
        "auth": AUTH,
        "server_error": SERVER,
        "unknown_model": INVALID,
    }
    for name in ("claude-agent-acp", "codex-acp", "gemini", "hermes")
}
# These two sat their retries out in silence: only what they told is recorded.
EXPECTED |= {name: {"success": None, "auth": AUTH, "unknown_model": INVALID} for name in ("opencode", "qwen")}


@pytest.mark.parametrize(("agent", "case"), [(a, c) for a, cases in EXPECTED.items() for c in cases])
def test_a_recorded_turn_comes_to_what_the_table_says(agent: str, case: str) -> None:
    talk = Talk()
    talk.open()
    lines = (RECORDED / f"{agent}.ndjson").read_text(encoding="utf-8").splitlines()
    turn = [said["said"] for said in map(json.loads, lines) if said["case"] == case]
    assert any(talk.hear(said) for said in turn), "it says when it is over"
    assert talk.failure == EXPECTED[agent][case]
    assert talk.session.done is (case == "success")
    if case == "success":
        assert talk.session.text == "LOOPBACK-OK"
        assert talk.session.usage is not None
        assert talk.session.usage.output_tokens == 5
        assert "output" in [each.kind for each in talk.progress]


def test_the_words_of_a_failed_turn_state_its_wait() -> None:
    talk = Talk()
    talk.open()
    said = {"type": "text", "text": "API call failed after 2 retries: HTTP 429: Please try again in 7s."}
    talk.updates(sessionUpdate="agent_message_chunk", content=said)
    assert talk.answer(4, stopReason="end_turn")
    assert talk.session.failure is not None
    assert talk.session.failure.retry_after_s == 7


def test_read_only_work_is_set_to_the_mode_that_does_not_write_and_work_that_may_to_the_one_that_asks() -> (
    None
):
    for mutable, mode in ((False, "plan"), (True, "acceptEdits")):
        talk = Talk(mutable=mutable)
        talk.open()
        methods = [each["method"] for each in talk.wrote]
        assert methods == ["initialize", "session/new", "session/set_mode", "session/prompt"]
        assert talk.wrote[2]["params"]["modeId"] == mode


def test_an_agent_without_a_read_only_mode_gets_no_read_only_work() -> None:
    talk = Talk()
    assert talk.open(modes=[{"id": "default", "name": "x"}])
    assert talk.failure == INVALID
    assert "session/prompt" not in [each["method"] for each in talk.wrote]


def test_read_only_work_narrows_an_agent_that_is_known() -> None:
    known = agents.known(["/somewhere/bin/claude-agent-acp"])
    narrowed = [Talk(agent=known, mutable=mutable) for mutable in (False, True)]
    for talk in narrowed:
        talk.open()
    options = narrowed[0].wrote[1]["params"]["_meta"]["claudeCode"]["options"]
    assert "Bash" not in options["tools"]
    assert "_meta" not in narrowed[1].wrote[1]["params"]


OPTIONS = [
    {"optionId": "always", "name": "Always", "kind": "allow_always"},
    {"optionId": "yes", "name": "Yes", "kind": "allow_once"},
    {"optionId": "no", "name": "No", "kind": "reject_once"},
]


CALL = {"toolCallId": "t", "title": "make it", "kind": "execute", "rawInput": {"command": "make"}}


def permission(talk: Talk, number: object = 0, **params: object) -> dict[str, Any]:
    """Opens the talk, asks for leave, and gives back the last that was written."""
    talk.open()
    about = {"toolCall": CALL, "options": OPTIONS, **params}
    talk.hear({"id": number, "method": "session/request_permission", "params": about})
    return talk.wrote[-1]


@pytest.mark.parametrize(("answer", "chosen"), [("allow", "yes"), ("deny", "no")])
def test_a_permission_is_asked_for_and_given_or_refused_this_once(
    answer: PermissionAnswer, chosen: str
) -> None:
    talk = Talk(mutable=True)
    assert permission(talk)["method"] == "session/prompt"
    assert talk.asks.asks == [PermissionAsk(tool="execute", detail="make")]
    talk.asks.answer(answer)
    assert talk.wrote[-1]["result"]["outcome"] == {"outcome": "selected", "optionId": chosen}
    assert talk.session.tools is (answer == "allow")
    assert talk.session.output_seen


def test_work_that_may_not_write_is_denied_without_asking() -> None:
    talk = Talk()
    assert permission(talk)["result"]["outcome"] == {"outcome": "selected", "optionId": "no"}
    assert talk.asks.asks == []


def test_a_permission_without_a_way_to_refuse_is_cancelled() -> None:
    said = permission(Talk(), "x", options=OPTIONS[:2])
    assert said == {"jsonrpc": "2.0", "id": "x", "result": {"outcome": {"outcome": "cancelled"}}}


def test_what_could_only_be_allowed_for_good_is_not_allowed() -> None:
    talk = Talk(mutable=True)
    permission(talk, options=OPTIONS[:1])
    talk.asks.answer("allow")
    assert talk.wrote[-1]["result"]["outcome"] == {"outcome": "cancelled"}


@pytest.mark.parametrize("call", [None, [], {}, {"title": 7, "rawInput": "make"}])
def test_an_ask_that_does_not_say_for_what_is_denied(call: object) -> None:
    talk = Talk(mutable=True)
    assert permission(talk, toolCall=call)["result"]["outcome"]["optionId"] == "no"
    assert talk.asks.asks == []


def test_what_waits_for_an_answer_at_the_end_is_cancelled() -> None:
    talk = Talk(mutable=True)
    permission(talk, 5)
    talk.session.part()
    assert [each.get("id") for each in talk.wrote[-2:]] == [5, None]
    assert talk.wrote[-2]["result"]["outcome"] == {"outcome": "cancelled"}
    assert talk.wrote[-1]["method"] == "session/cancel"
    talk.asks.answer("allow")
    assert talk.wrote[-1]["method"] == "session/cancel"


def test_a_turn_that_ends_with_a_refusal_says_so() -> None:
    talk = Talk(mutable=True)
    permission(talk)
    talk.asks.answer("deny")
    assert talk.answer(4, stopReason="cancelled")
    assert talk.session.failure is not None
    assert "denied" in talk.session.failure.reason


def test_files_and_terminals_are_not_offered() -> None:
    talk = Talk(mutable=True)
    talk.open()
    assert talk.wrote[0]["params"]["clientCapabilities"]["fs"] == {
        "readTextFile": False,
        "writeTextFile": False,
    }
    talk.hear({"id": 7, "method": "fs/write_text_file", "params": {"path": "/work/x", "content": "y"}})
    assert talk.wrote[-1]["error"]["code"] == -32601


def test_an_agent_that_asks_without_end_is_ended() -> None:
    talk = Talk()
    talk.open()
    asked = sum(1 for _ in iter(lambda: talk.hear({"id": 1, "method": "terminal/create"}), True))
    assert asked == MAX_ASKED
    assert talk.failure == ("provider", False, "unknown")


@pytest.mark.parametrize("can", [{"loadSession": True}, {"sessionCapabilities": {"resume": {}}}])
def test_a_thread_goes_on_and_what_it_tells_of_before_is_not_this_turns(can: dict[str, object]) -> None:
    talk = Talk(resume="s7")
    talk.answer(1, protocolVersion=1, agentCapabilities=can)
    talk.updates(sessionUpdate="agent_message_chunk", content={"type": "text", "text": "an old answer"})
    talk.answer(2, modes={"availableModes": MODES})
    talk.answer(3)
    assert talk.wrote[1]["params"]["sessionId"] == "s7"
    assert talk.session.id == "s7"
    assert talk.session.text == ""
    assert not talk.session.output_seen


def test_an_agent_that_keeps_no_threads_refuses_to_go_on_with_one() -> None:
    talk = Talk(resume="s7")
    assert talk.open()
    assert talk.failure == INVALID


def test_another_version_of_the_protocol_is_told() -> None:
    talk = Talk()
    assert talk.answer(1, protocolVersion=2)
    assert talk.failure == ("unavailable", False, "known_failed")


def test_the_answer_is_what_was_said_after_the_last_tool_in_its_last_message() -> None:
    talk = Talk()
    talk.open()
    for message, text in (("m1", "I will look."), ("m2", "The ans"), ("m2", "wer."), (None, "**Note:** x")):
        if message == "m2" and text == "The ans":
            talk.updates(sessionUpdate="tool_call", toolCallId="t", title="x", kind="read")
        update: dict[str, object] = {"content": {"type": "text", "text": text}}
        if message:
            update["messageId"] = message
        talk.updates(sessionUpdate="agent_message_chunk", **update)
    assert talk.answer(4, stopReason="end_turn", usage={"inputTokens": 1, "outputTokens": 1})
    assert talk.session.text == "The answer."
    assert talk.session.tools


@pytest.mark.parametrize("stop", ["max_tokens", "refusal", "max_turn_requests", "cancelled", None, 7])
def test_any_other_stop_is_no_success(stop: object) -> None:
    talk = Talk()
    talk.open()
    talk.updates(sessionUpdate="agent_message_chunk", content={"type": "text", "text": "half"})
    assert talk.answer(4, stopReason=stop)
    assert talk.failure is not None
    assert not talk.session.done


def test_a_turn_that_goes_on_is_cancelled_before_its_end_and_then_the_input_ends() -> None:
    talk = Talk()
    talk.open()
    talk.session.part()
    assert talk.wrote[-1] == {"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": "s1"}}
    assert not talk.session.stdin._closed
    assert talk.answer(4, stopReason="cancelled") is False
    assert talk.session.stdin._closed


@pytest.mark.parametrize(
    "line", [b"", b"Welcome!", b"[]", b"{", b'{"id":{},"result":1}', b'"x"', b"\xff\xfe"]
)
def test_what_is_no_message_is_passed_over(line: bytes) -> None:
    talk = Talk()
    talk.open()
    assert talk.session.output_line(line) is False
    assert talk.failure is None
