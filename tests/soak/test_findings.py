"""Each thing that must never be is found where it is."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from support.soak import findings
from support.soak.findings import KEEPER_S, PROBE_S, START_S, Finding, Marked
from support.soak.growth import FEWEST, Sample, grown
from support.soak.record import QUERIES, Record, Row

LIVING, DEAD = [1, 0.0, "boot", ""], [2, 0.0, "boot", ""]
NOW = 1_000.0
EFFECT: Row = {"what": "effect", "key": "p/0"}


def alive(owner: Any) -> bool:
    return bool(owner == LIVING)


def record(**tables: list[Row]) -> Record:
    return Record(NOW, {**{name: [] for name in QUERIES}, **tables})


def attempt(attempt_id: str, **changes: Any) -> Row:
    return {
        "id": attempt_id,
        "run_id": f"run-{attempt_id}",
        "status": "running",
        "probe": 0,
        "confirmed": 0,
        "pool": "command:look",
        "generation": 1,
        "owner": LIVING,
        "started": NOW - 1,
        "ended": None,
        "outcome": None,
        "category": None,
        **changes,
    }


def step(status: str, **outcome: Any) -> Row:
    return {
        "plan": "plan",
        "step": "s0",
        "run_id": "run",
        "mutable": 1,
        "resolved": 0,
        "status": status,
        "outcome": outcome or None,
    }


def plan(spent: tuple[int, int] = (0, 0), **budget: int) -> Row:
    """``spent`` are children and tokens."""
    ledger = {"budget": budget, "children": spent[0], "spent": {"tokens": spent[1]}}
    return {"id": "plan", "name": "p", "status": "running", "owner": LIVING, "ledger": ledger}


def bounds(found: Iterable[Finding]) -> list[float]:
    return [each.bound_s for each in found]


def test_a_second_writer_is_found() -> None:
    assert bounds(findings.writers([{"what": "second writer", "key": "p/0", "leaf": "a"}, EFFECT])) == [0]


def test_what_was_done_twice_is_found_but_for_what_an_operator_excused() -> None:
    assert bounds(findings.repeated([EFFECT, EFFECT], {})) == [0]
    assert bounds(findings.repeated([EFFECT, EFFECT], {"p/0": 1})) == []
    assert bounds(findings.repeated([EFFECT], {})) == []


def test_a_second_probe_of_a_generation_is_found_until_the_first_ones_lease_may_be_over() -> None:
    one = attempt("one", probe=1)
    assert bounds(findings.probes(record(attempts=[one, attempt("two", probe=1)]), alive)) == [0]
    for other in (
        {"generation": 2},
        {"pool": "command:frail"},
        {"confirmed": 1},
        {"owner": DEAD},
        {"started": NOW - PROBE_S},
        {"status": "done"},
    ):
        two = attempt("two", **{"probe": 1, **other})
        assert bounds(findings.probes(record(attempts=[one, two]), alive)) == [], other


def test_what_a_dead_owner_left_open_may_stand_until_the_next_start() -> None:
    lease = {"id": "l", "run_id": "r", "owner": DEAD, "left": []}
    request = {"id": "q", "kind": "cancel", "owner": DEAD, "client": DEAD}
    ask = {"id": "a", "run_id": "r", "answer": None, "deadline": NOW - 1}
    for tables in (
        {"attempts": [attempt("one", owner=DEAD)]},
        {"leases": [lease]},
        {"leases": [{**lease, "owner": LIVING, "left": ["pid 7"]}]},
        {"requests": [request]},
        {"asks": [ask]},
    ):
        assert bounds(findings.left_open(record(**tables), alive)) == [START_S], tables
    closed = record(
        attempts=[attempt("one", owner=DEAD, status="unknown"), attempt("two")],
        leases=[{**lease, "owner": LIVING}],
        requests=[{**request, "client": LIVING}],
        asks=[{**ask, "answer": "deny"}],
    )
    assert bounds(findings.left_open(closed, alive)) == []


def test_a_process_of_a_run_that_nobody_owns_may_stand_as_long_as_its_keeper_may_take() -> None:
    rows = record(attempts=[attempt("one", owner=DEAD), attempt("two"), attempt("three", status="done")])
    marked = [Marked(number, f"run-{name}", "sh", struck=False) for number, name in enumerate(("one", "two"))]
    assert bounds(findings.orphans(rows, marked, alive)) == [KEEPER_S]
    assert bounds(findings.orphans(rows, [Marked(3, "run-three", "sh", struck=True)], alive)) == [START_S]
    assert bounds(findings.orphans(rows, [Marked(4, "run-of-others", "sh", struck=False)], alive)) == []


def test_an_overspent_budget_is_found() -> None:
    within = plan(spent=(3, 900), children=3, tokens=900)
    over = plan(spent=(4, 901), children=3, tokens=900)
    assert bounds(findings.overspent(record(plans=[within, plan(spent=(9, 9_000))]))) == []
    assert bounds(findings.overspent(record(plans=[over]))) == [0, 0]


def test_a_budget_that_only_its_ledger_keeps_is_found() -> None:
    plans = record(plans=[plan(spent=(1, 100), children=1, tokens=100)])
    begun = {"what": "begun", "key": "p/0", "end": "well"}
    others = {**begun, "key": "p0/1"}
    nothing = {**begun, "end": "limit"}
    assert bounds(findings.overdrawn(plans, [begun, others, nothing], 100)) == []
    assert bounds(findings.overdrawn(plans, [begun, begun], 100)) == [0]
    assert bounds(findings.overdrawn(plans, [begun, {**nothing, "key": "p/1"}], 100)) == [0]


def test_a_torn_line_of_a_log_is_found() -> None:
    assert bounds(findings.lines_whole("log", b'{"a": 1}\n{"b": 2}\n{"half')) == []  # it is being written
    assert bounds(findings.lines_whole("log", b'{"a": 1}\n{"ha{"b": 2}\n')) == [0]


def test_a_step_is_told_as_it_went() -> None:
    plans = [plan()]
    lied = record(plans=plans, steps=[step("failed", failure={"outcome": "known_failed"})])
    assert bounds(findings.untold(lied, [EFFECT], [EFFECT], {})) == [0]
    assert bounds(findings.untold(lied, [], [EFFECT], {})) == []  # it has begun again since
    assert bounds(findings.untold(record(plans=plans, steps=[step("done")]), [], [], {})) == [0]
    unknown = record(plans=plans, steps=[step("failed", failure={"outcome": "unknown"})])
    assert bounds(findings.untold(unknown, [EFFECT], [EFFECT], {})) == []


def test_an_end_that_changes_is_found() -> None:
    before = {"one": attempt("one", status="done", ended=1.0)}
    assert bounds(findings.changed_ends(before, record(attempts=[*before.values(), attempt("two")]))) == []
    now = record(attempts=[attempt("one", status="unknown", ended=1.0)])
    assert bounds(findings.changed_ends(before, now)) == [0]


def test_settings_that_are_half_written_or_lose_what_is_not_ours_are_found() -> None:
    foreign = {"b": 1, "a": 2}
    whole = json.dumps({**foreign, "model_routing": {}})
    assert bounds(findings.settings(whole, foreign)) == []
    assert bounds(findings.settings(whole[:-1], foreign)) == [0]
    assert bounds(findings.settings('{"a": 2, "b": 1}', foreign)) == [0]
    assert bounds(findings.settings('{"b": 1}', foreign)) == [0]


def test_growth_is_what_goes_on_after_the_warming_up() -> None:
    warm = [Sample(n, 40 if n < 5 else 80, 10, 4) for n in range(FEWEST)]
    assert list(grown(warm)) == []
    leaking = [Sample(n, 80 + n, 10 + n, 4) for n in range(FEWEST)]
    assert [words.split()[0] for words in grown(leaking)] == ["megabytes", "files"]
    assert list(grown(leaking[: FEWEST - 1])) == []
