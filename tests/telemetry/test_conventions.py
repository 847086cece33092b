"""The table of names against the public registry."""

from __future__ import annotations

import pytest

from custodes.telemetry import conventions
from support.genai import ATTRIBUTES, DEPRECATED, OPERATION, REGISTRY

NAMES = {value for key, value in vars(conventions).items() if key.isupper() and isinstance(value, str)}


def test_every_genai_name_is_registered_and_none_is_deprecated() -> None:
    ours = {name for name in NAMES if name.startswith(("gen_ai.", "otel.", "error."))}
    assert conventions.CONVERSATION_ID in ours
    assert ours <= set(ATTRIBUTES) | set(REGISTRY["metrics"])
    assert not ours & set(DEPRECATED)


def test_every_operation_is_registered() -> None:
    assert {conventions.INVOKE_AGENT, conventions.INVOKE_WORKFLOW} <= set(ATTRIBUTES[OPERATION]["enum"])


def test_the_schema_url_is_the_registrys() -> None:
    assert conventions.SCHEMA_URL in REGISTRY["_about"]["version"]


@pytest.mark.parametrize(("declared", "name"), [("vendor", "vendor"), ("", "runtime")])
def test_the_provider_is_the_descriptors_or_else_the_adapter(declared: str, name: str) -> None:
    assert conventions.provider_name(declared, "runtime") == name
