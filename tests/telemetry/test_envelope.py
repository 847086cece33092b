"""The result metadata (seed: "Dispatch identity and evidence")."""

from __future__ import annotations

from custodes.telemetry import envelope


def test_a_failed_probe_carries_the_whole_table() -> None:
    metadata = envelope(
        role="reviewer",
        provider="vendor",
        adapter="runtime",
        model="small-1",
        pool="runtime:small",
        health_state="half_open",
        health_probe=True,
        category="capacity",
        retry_after_s=42,
    )
    assert metadata == {
        "gen_ai.provider.name": "vendor",
        "gen_ai.agent.id": "reviewer",
        "gen_ai.request.model": "small-1",
        "capacity_scope": "runtime:small",
        "health_state": "half_open",
        "health_probe": True,
        "error_category": "capacity",
        "retry_after_s": 42,
    }


def test_what_is_not_known_has_no_key_and_a_false_probe_has_one() -> None:
    metadata = envelope(
        role="reviewer",
        provider="",
        adapter="runtime",
        model=None,
        pool="runtime",
        health_state="healthy",
        health_probe=False,
    )
    assert metadata == {
        "gen_ai.provider.name": "runtime",
        "gen_ai.agent.id": "reviewer",
        "capacity_scope": "runtime",
        "health_state": "healthy",
        "health_probe": False,
    }
