"""What a descriptor does not declare is refused (seed 000, "Negotiate capability; never simulate it")."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from custodes.adapters import Capability, Descriptor, DispatchRequest
from custodes.adapters.descriptor import CAPABILITIES, Entrypoints
from custodes.adapters.native import refusal
from custodes.adapters.refusal import undeclared

PLAIN = DispatchRequest(run_id="r", role="observer", prompt="p", mutable=False, cwd="/", timeout_s=1)


def able(*capabilities: Capability) -> Descriptor:
    entrypoints = Entrypoints(dispatch="dispatch.py", capabilities=capabilities)
    return Descriptor(id="any", efforts=("low", "high"), runtime_entrypoints=entrypoints)


def asked(**fields: Any) -> DispatchRequest:
    return msgspec.structs.replace(PLAIN, **fields)


@pytest.mark.parametrize(
    ("capability", "fields", "says"),
    [
        ("effort_selection", {"effort": "high"}, "no effort to choose"),
        ("resume", {"resume": "t1"}, "an earlier thread"),
        ("structured_output", {"schema": {"type": "object"}}, "to a schema"),
    ],
)
def test_each_is_refused_without_its_capability_alone(
    capability: Capability, fields: dict[str, Any], says: str
) -> None:
    others = (name for name in CAPABILITIES if name != capability)
    assert says in undeclared(able(*others), asked(**fields))
    assert undeclared(able(capability), asked(**fields)) == ""


def test_a_request_for_nothing_special_needs_no_capability() -> None:
    assert undeclared(able(), PLAIN) == ""


def test_an_effort_that_is_not_listed_is_answered_with_those_that_are() -> None:
    says = undeclared(able("effort_selection"), asked(effort="hihg"))
    assert says == "'hihg' is not one of its efforts; did you mean 'high'? Known: low, high"


@pytest.mark.parametrize("word", ["", "--help", "a\nb"])
def test_what_a_command_line_would_take_for_something_else_is_no_id(word: str) -> None:
    assert "is no id" in refusal(able("resume"), asked(resume=word), None)
    assert "is no id" in refusal(able(), PLAIN, word)
    assert refusal(able("resume"), asked(resume="t1"), "m-1") == ""
