"""What is said to Claude Code while it runs: its prompt, and the answers to what it asks leave for."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from custodes.adapters import DispatchRequest, PermissionAnswer, PermissionAsk
from custodes.adapters.asks import MAX_ASKED
from custodes.adapters.claude.control import Control
from support.asks import Recorded

ASKED = DispatchRequest(
    run_id="r", role="implementer", prompt="Do\nit.", mutable=True, cwd="/work", timeout_s=9
)


class Talk:
    def __init__(self, **asked: Any) -> None:
        self.asks = Recorded()
        self.control = Control(msgspec.structs.replace(ASKED, **asked), self.asks)

    def request(self, tool: object = "Bash", given: object = None, **more: object) -> None:
        about = {"subtype": "can_use_tool", "tool_name": tool, "input": given or {"command": "make"}, **more}
        self.control.asked({"type": "control_request", "request_id": "r1", "request": about})

    @property
    def wrote(self) -> list[dict[str, Any]]:
        return [msgspec.json.decode(line) for line in bytes(self.control.stdin._rest).splitlines()]

    @property
    def said(self) -> dict[str, Any]:
        """The last answer."""
        response: dict[str, Any] = self.wrote[-1]["response"]
        return response


def test_the_prompt_is_one_line_whatever_stands_in_it() -> None:
    assert Talk().wrote == [{"type": "user", "message": {"role": "user", "content": "Do\nit."}}]


@pytest.mark.parametrize("answer", ["allow", "deny"])
def test_an_ask_waits_for_its_answer_and_gets_it(answer: PermissionAnswer) -> None:
    talk = Talk()
    talk.request()
    assert talk.asks.asks == [PermissionAsk(tool="Bash", detail="make")]
    assert len(talk.wrote) == 1
    talk.asks.answer(answer)
    assert (talk.said["subtype"], talk.said["request_id"]) == ("success", "r1")
    assert talk.said["response"]["behavior"] == answer
    if answer == "allow":
        assert talk.said["response"]["updatedInput"] == {"command": "make"}


@pytest.mark.parametrize("tool", ["Bash", "Write", "ExitPlanMode", "mcp__any__thing"])
def test_work_that_may_not_write_is_denied_without_asking(tool: str) -> None:
    talk = Talk(mutable=False)
    talk.request(tool)
    assert talk.asks.asks == []
    assert talk.said["response"]["behavior"] == "deny"


def test_work_that_may_not_write_may_ask_for_what_reads() -> None:
    talk = Talk(mutable=False)
    talk.request("WebFetch", {"url": "https://example.org"})
    assert [ask.detail for ask in talk.asks.asks] == ["https://example.org"]


@pytest.mark.parametrize(("tool", "given"), [(None, {"a": 1}), ("", {"a": 1}), ("Bash", "make"), (7, [1])])
def test_a_malformed_ask_is_denied(tool: object, given: object) -> None:
    talk = Talk()
    talk.request(tool, given)
    assert talk.asks.asks == []
    assert talk.said["response"]["behavior"] == "deny"


def test_what_else_it_wants_of_its_client_is_refused() -> None:
    talk = Talk()
    talk.request(subtype="hook_callback")
    assert talk.said["subtype"] == "error"


@pytest.mark.parametrize("event", [{}, {"request_id": 7}, {"request_id": None, "request": []}])
def test_an_ask_that_cannot_be_answered_is_passed_over(event: dict[str, object]) -> None:
    talk = Talk()
    talk.control.asked(event)
    assert len(talk.wrote) == 1


def test_a_program_that_asks_without_end_and_does_not_listen_costs_bounded_memory() -> None:
    talk = Talk(mutable=False)
    for _ in range(MAX_ASKED + 7):
        talk.request()
    assert len(talk.wrote) == MAX_ASKED + 1  # the prompt


def test_its_input_ends_with_its_turn() -> None:
    talk = Talk()
    talk.control.over()
    assert talk.control.stdin._closed
