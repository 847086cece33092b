"""Schemas in the shape that enforcers take."""

from __future__ import annotations

from typing import Any, get_args

import pytest

from custodes.adapters.schemas import rooted, strict
from custodes.policy.roles import Role
from custodes.supervision.evidence import schema_for

FINDING = {
    "title": "Finding",
    "type": "object",
    "properties": {"place": {"type": "string", "default": ""}, "message": {"type": "string"}},
    "required": ["message"],
}
SCHEMA: dict[str, Any] = {"$ref": "#/$defs/Finding", "$defs": {"Finding": FINDING}}


def test_a_root_that_is_a_reference_becomes_the_object_it_points_to() -> None:
    assert rooted(SCHEMA) == {**FINDING, "$defs": SCHEMA["$defs"]}


def test_a_root_that_points_nowhere_or_to_itself_stays() -> None:
    assert rooted({"$ref": "#/$defs/Nope"}) == {"$ref": "#/$defs/Nope"}
    assert rooted({"$ref": "#"}) == {"$ref": "#"}
    circle = {"$ref": "#/$defs/A", "$defs": {"A": {"$ref": "#/$defs/A"}}}
    assert rooted(circle)["$defs"] == circle["$defs"]


def test_strict_closes_every_object_and_requires_all_of_it() -> None:
    made = strict(SCHEMA)
    assert made is not None
    for found in (made, made["$defs"]["Finding"]):
        assert found["required"] == ["place", "message"]
        assert found["additionalProperties"] is False
        assert found["properties"]["place"] == {"type": "string"}


@pytest.mark.parametrize("words", ["default", "title", "required"])
def test_a_property_may_be_called_like_a_keyword(words: str) -> None:
    made = strict({"type": "object", "properties": {words: {"type": "string"}}})
    assert made is not None
    assert made["properties"] == {words: {"type": "string"}}


def test_free_keys_cannot_be_said_strictly() -> None:
    assert strict({"type": "object"}) is None
    assert strict({"type": "object", "properties": {"a": {"type": "object", "properties": {}}}}) is None


@pytest.mark.parametrize("role", get_args(Role.__value__ if hasattr(Role, "__value__") else Role))
def test_the_evidence_of_every_role_can_be_said_strictly(role: Any) -> None:
    made = strict(schema_for(role))
    assert made is not None
    assert made["type"] == "object"
