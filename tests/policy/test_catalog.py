from __future__ import annotations

from pathlib import Path

import msgspec

from custodes.adapters.descriptor import Descriptor
from custodes.adapters.readiness import ReadinessState
from custodes.adapters.registry import Registry
from custodes.policy.catalog import Catalog, effort_objection, model_objection
from support.catalogs import CLAUDE, CODEX, PLAIN, descriptor


class Fixed:
    """A registry whose readiness is given."""

    def __init__(self, agents: tuple[str, ...], *known: Descriptor, unready: str = "") -> None:
        self.agents = agents
        self.descriptors = {d.id: d for d in known}
        self.errors = {"broken": "adapter.yaml: unknown key 'modles'"}
        self.asked: list[str] = []
        self._unready = unready

    def readiness(self, adapter: str) -> ReadinessState:
        self.asked.append(adapter)
        return ReadinessState(
            ready=adapter != self._unready, reason="no login" if adapter == self._unready else ""
        )


def test_eligible_are_the_configured_agents_that_declare_dispatch_in_their_order() -> None:
    mute = descriptor("mute", capabilities=())
    registry = Fixed(
        ("codex", "mute", "gone", "broken", "claude", "codex"), CLAUDE, CODEX, PLAIN, mute, unready="claude"
    )
    view = Catalog.of(registry)
    assert [(a.id, a.ready, a.reason) for a in view.adapters] == [
        ("codex", True, ""),
        ("claude", False, "no login"),
    ]
    assert view.ineligible == {
        "plain": "it is not in .coding-os.yaml::agents",
        "mute": "it does not declare dispatch",
        "gone": "no adapter has this id",
        "broken": "adapter.yaml: unknown key 'modles'",
    }


def test_a_view_for_validation_asks_nobody_whether_it_is_ready() -> None:
    registry = Fixed(("claude",), CLAUDE, unready="claude")
    assert Catalog.of(registry, readiness=False).adapters[0].ready
    assert registry.asked == []


def test_the_real_registry_is_one_that_a_view_can_be_taken_of(tmp_path: Path) -> None:
    (tmp_path / ".coding-os.yaml").write_text("agents: [nobody]\n")
    view = Catalog.of(Registry.discover(tmp_path))
    assert view.adapters == ()
    assert "nobody" in view.ineligible


def test_a_model_needs_selection_and_a_declaration_or_an_empty_catalog() -> None:
    assert model_objection(CLAUDE, "claude-fable-5") is None
    assert model_objection(CODEX, "anything") is None
    assert str(model_objection(CLAUDE, "x")).startswith(
        "model 'x' is not declared by adapter 'claude'; Known: "
    )
    assert str(model_objection(PLAIN, "x")).startswith("adapter 'plain' does not support model selection")


def test_an_effort_needs_selection_and_a_listing_or_no_list() -> None:
    assert effort_objection(CLAUDE, "max") is None
    assert effort_objection(msgspec.structs.replace(CODEX, efforts=()), "odd") is None
    assert "effort 'xlow' is not listed by adapter 'claude'; did you mean 'low'?" in str(
        effort_objection(CLAUDE, "xlow")
    )
    assert str(effort_objection(PLAIN, "low")).startswith("adapter 'plain' does not support effort selection")
