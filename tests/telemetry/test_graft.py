"""Which of a runtime's own spans are passed on, what of them, and under what. Pure."""

from __future__ import annotations

from typing import Any

import pytest

from custodes.telemetry import graft as module
from custodes.telemetry.graft import ALLOWED, Graft, allowed
from custodes.telemetry.span_record import Source, SpanRecord
from support.genai import ATTRIBUTES, DEPRECATED

TRACE, CALL = "a" * 32, "b" * 16
WANTED = {"llm": "chat", "tool": "execute_tool", "turn": "invoke_agent", "step": ""}


def graft(**fields: Any) -> Graft:
    return Graft(TRACE, CALL, WANTED, "vendor", **fields)


def span(id: str, name: str = "step", parent: str = "", **fields: Any) -> SpanRecord:  # noqa: A002
    return SpanRecord(
        trace="f" * 32,
        id=id,
        parent=parent,
        name=name,
        begun=1,
        ended=2,
        **{"source": Source("runtime", "1.0", "lib"), **fields},
    )


def tree(records: list[SpanRecord]) -> dict[str, str]:
    """The name of each span's parent, by its own name."""
    names = {record.id: record.name for record in records} | {CALL: "call"}
    return {record.name: names[record.parent] for record in records}


def test_every_attribute_that_is_passed_on_is_the_registrys_or_a_stable_one_of_http() -> None:
    ours = {name for name in ALLOWED if not name.startswith(("http.", "server."))}
    assert ours <= set(ATTRIBUTES)
    assert not ours & set(DEPRECATED)
    assert not any(ATTRIBUTES[name].get("sensitive") for name in ours)


def test_a_root_hangs_under_the_call_and_a_child_under_its_own_parent() -> None:
    found = list(graft().take([span("2", "llm", parent="1"), span("1", "turn")]))
    assert tree(found) == {"chat": "invoke_agent", "invoke_agent": "call"}
    assert {record.trace for record in found} == {TRACE}


def test_the_children_of_a_span_that_is_left_out_climb_to_the_nearest_that_is_not() -> None:
    batch = [span("3", "llm", parent="2"), span("2", "noise", parent="1"), span("1", "turn")]
    for order in (batch, batch[::-1]):
        kept = graft()
        assert tree(list(kept.take(order))) == {"chat": "invoke_agent", "invoke_agent": "call"}
        assert (kept.passed_on, kept.left_out) == (2, 1)


def test_a_child_is_passed_on_at_once_and_a_parent_that_comes_later_connects_it() -> None:
    kept = graft()
    found = list(kept.take([span("3", "llm", parent="2")]))
    assert [record.name for record in found] == ["chat"]
    secret = {"prompt": "canary", "gen_ai.request.model": "m"}
    found += kept.take([span("2", "canary noise", parent="1", attributes=secret, error=True)])
    found += kept.take([span("1", "turn")])
    assert tree(found) == {"chat": "runtime", "runtime": "invoke_agent", "invoke_agent": "call"}
    assert "canary" not in repr(found)
    assert list(kept.finish()) == []


def test_a_parent_that_never_comes_is_stood_in_for_at_the_end() -> None:
    kept = graft()
    found = list(kept.take([span("2", "llm", parent="1"), span("3", "tool", parent="1")]))
    found += kept.finish()
    assert [record.parent for record in found].count(CALL) == 1
    ids = {record.id for record in found} | {CALL}
    assert all(record.parent in ids for record in found)


def test_ids_are_ours_so_that_a_runtime_can_take_no_place_in_the_tree() -> None:
    found = list(graft().take([span(CALL, "turn"), span("", "turn"), span("9", "turn", parent=CALL)]))
    assert CALL not in {record.id for record in found}
    assert len({record.id for record in found}) == len(found) == 2
    assert len(found[0].id) == 16


def test_a_root_that_has_joined_the_trace_by_itself_stays_under_the_call() -> None:
    (found,) = graft().take([span("1", "turn", parent=CALL)])
    assert found.parent == CALL


def test_a_common_name_stands_in_where_the_conventions_one_is_missing() -> None:
    assert allowed({"model": "m", "tool_name": "shell"}) == {
        "gen_ai.request.model": "m",
        "gen_ai.tool.name": "shell",
    }
    assert allowed({"gen_ai.request.model": "m", "model": "other"}) == {"gen_ai.request.model": "m"}


@pytest.mark.parametrize("name", ["noise", "step"])
def test_a_circle_of_parents_hangs_under_the_call(name: str) -> None:
    kept = graft()
    batch = [span("1", name, parent="2"), span("2", "noise", parent="1"), span("3", "llm", parent="2")]
    found = [*kept.take(batch), *kept.finish()]
    ids = {record.id for record in found} | {CALL}
    assert found
    assert all(record.parent in ids and record.parent != record.id for record in found)


def test_the_same_span_sent_again_is_passed_on_once() -> None:
    kept = graft()
    assert len([*kept.take([span("1"), span("1")]), *kept.take([span("1")])]) == 1


def test_only_so_many_are_passed_on_and_the_rest_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_SPANS", 3)
    kept = graft()
    assert len(list(kept.take(span(f"{n:x}") for n in range(1, 9)))) == 3
    assert (kept.passed_on, kept.left_out) == (3, 5)


def test_nothing_that_is_not_named_passes_and_no_text_does() -> None:
    given = {
        "gen_ai.request.model": "small-1",
        "gen_ai.usage.input_tokens": 3,
        "gen_ai.system": "vendor",
        "gen_ai.input.messages": "canary",
        "gen_ai.tool.name": "canary in a text of several words",
        "gen_ai.usage.output_tokens": "canary",
        "gen_ai.response.id": True,
        "http.response.status_code": 2**70,
        "url.full": "http://canary",
    }
    assert allowed(given) == {
        "gen_ai.request.model": "small-1",
        "gen_ai.usage.input_tokens": 3,
        "gen_ai.provider.name": "vendor",
    }


def test_a_source_that_is_no_name_is_none() -> None:
    (found,) = graft().take([span("1", source=Source("canary with words", "1", "x"))])
    assert found.source == Source("", "1", "x")


def test_an_error_keeps_its_type_where_it_is_one_and_has_one_in_any_case() -> None:
    kinds = [{}, {"error.type": "429"}, {"error.type": "the whole canary message"}]
    found = list(graft().take([span(str(n), attributes=a, error=True) for n, a in enumerate(kinds, 1)]))
    assert [record.attributes["error.type"] for record in found] == ["_OTHER", "429", "_OTHER"]
    (well,) = graft().take([span("1", attributes={"error.type": "429"})])
    assert well.attributes == {}


@pytest.mark.parametrize(
    ("name", "attributes", "called", "kind"),
    [
        ("llm", {"gen_ai.request.model": "m"}, "chat m", "client"),
        ("llm", {}, "chat", "client"),
        ("tool", {"gen_ai.tool.name": "shell"}, "execute_tool shell", "internal"),
        ("tool", {}, "tool", "internal"),
        ("turn", {"gen_ai.agent.name": "cli"}, "invoke_agent cli", "internal"),
        ("step", {}, "step", "internal"),
    ],
)
def test_a_span_is_named_as_the_conventions_name_its_operation(
    name: str, attributes: dict[str, Any], called: str, kind: str
) -> None:
    (found,) = graft().take([span("1", name, attributes=attributes, kind="producer")])
    assert (found.name, found.kind) == (called, kind)


def test_a_secret_where_an_identifier_belongs_is_left_out() -> None:
    key = "sk-ant-" + "a" * 40
    assert allowed({"gen_ai.request.model": key, "gen_ai.tool.name": "read"}) == {"gen_ai.tool.name": "read"}
