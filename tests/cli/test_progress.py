from __future__ import annotations

from custodes.adapters.port import Failure, Progress
from custodes.cli.output import plain
from custodes.cli.progress import PoolRow, Tree, apply, close
from custodes.supervision.event_words import sentence
from custodes.supervision.events import (
    AttemptEnded,
    AttemptProgress,
    AttemptRefused,
    AttemptStarted,
    ChildEnded,
    ChildQueued,
    ChildWaiting,
    Event,
    PermissionAnswered,
    PermissionAsked,
)
from custodes.supervision.evidence import AnalystEvidence
from custodes.supervision.work import Outcome, Refusal, Waiting

LIMIT = Failure(
    category="capacity", reason="limited", retryable=True, retry_after_s=3, outcome="known_failed"
)


def queued(run: str = "a", at: float = 0) -> ChildQueued:
    return ChildQueued(at=at, conversation="c", run_id=run, role="analyst", name=f"step {run}")


def started(
    pool: str,
    number: int = 1,
    *,
    run: str = "a",
    probe: bool = False,
    reason: str | None = None,
    at: float = 1,
) -> AttemptStarted:
    return AttemptStarted(
        at=at,
        conversation="c",
        run_id=run,
        number=number,
        adapter=pool.partition(":")[0],
        model="m",
        effort=None,
        pool=pool,
        probe=probe,
        fallback_reason=reason,
    )


def ended(
    pool: str, number: int = 1, failure: Failure | None = None, *, run: str = "a", at: float = 2
) -> Event:
    return AttemptEnded(
        at=at, conversation="c", run_id=run, number=number, pool=pool, seconds=0.5, failure=failure
    )


def output(number: int = 1, *, run: str = "a", chars: int = 10) -> Event:
    return AttemptProgress(
        at=2, conversation="c", run_id=run, number=number, progress=Progress(kind="output", chars=chars)
    )


def done(run: str = "a") -> ChildEnded:
    evidence = AnalystEvidence(summary="all \x1b[31mwell\nand good")
    outcome = Outcome(run_id=run, role="analyst", name=f"step {run}", status="done", evidence=evidence)
    return ChildEnded(at=3, conversation="c", run_id=run, outcome=outcome)


def told(*events: Event) -> tuple[Tree, list[str]]:
    tree, said = Tree(), []
    for event in events:
        tree = apply(tree, event)
        row = tree.rows.get(event.run_id)
        text = sentence(row.name, event) if row is not None else None
        if text is not None:
            said.append(plain(text))
    return tree, said


def test_a_child_goes_from_queued_to_done_with_each_thing_said_once() -> None:
    tree, said = told(queued(), started("p:x"), output(), output(), ended("p:x"), done())
    row = tree.rows["a"]
    assert (row.state, row.attempts[0].chars, row.attempts[0].seconds) == ("done", 20, 0.5)
    assert said == [
        "step a: queued as analyst",
        "step a: runs on p:x (m)",
        "step a: done: all [31mwell and good",
    ]


def test_a_limit_cools_its_pool_and_the_fallback_is_said_with_its_reason() -> None:
    tree, said = told(
        queued(),
        started("p:x"),
        ended("p:x", failure=LIMIT),
        started("q", 2, reason="capacity"),
        ended("q", 2),
    )
    assert tree.pools["p:x"] == PoolRow(state="cooling_down", until=5, attempts=1)
    assert tree.pools["q"].state == "healthy"
    assert said[2:] == [
        "step a: p:x failed: capacity, retry after 3 s: limited",
        "step a: runs on q (m), falling back after capacity",
    ]


def test_only_the_probe_heals_a_pool_and_it_does_at_its_first_output() -> None:
    cooled = [queued("a"), queued("b"), started("p:x"), started("p:x", run="b"), ended("p:x", failure=LIMIT)]
    tree, _ = told(*cooled, output(run="b"), ended("p:x", run="b"))
    assert tree.pools["p:x"].state == "cooling_down"
    tree, said = told(*cooled, started("p:x", 2, probe=True))
    assert tree.pools["p:x"].state == "half_open"
    assert said[-1] == "step a: runs on p:x (m), as the one probe that may heal the pool"
    tree, _ = told(*cooled, started("p:x", 2, probe=True), output(2))
    assert tree.pools["p:x"].state == "healthy"


def test_a_failed_probe_that_met_no_limit_heals_nothing() -> None:
    broken = Failure(category="provider", reason="500", retryable=True)
    tree, _ = told(queued(), started("p:x", probe=True), ended("p:x", failure=broken))
    assert tree.pools["p:x"].state == "half_open"


def test_a_wait_for_recovery_says_how_long_and_ends_with_the_attempt() -> None:
    waits = ChildWaiting(at=10, conversation="c", run_id="a", reason="recovery", seconds=4)
    tree, said = told(queued(), waits)
    assert (tree.rows["a"].state, tree.rows["a"].until) == ("waiting", 14)
    assert said[-1] == "step a: waits 4 s for the pool to recover"
    tree, _ = told(queued(), waits, started("p:x"))
    assert (tree.rows["a"].state, tree.rows["a"].until) == ("running", None)


def test_a_refusal_shows_every_pool_and_is_said_once_without_its_reason() -> None:
    refusal = Refusal(
        category="capacity",
        reason="all eligible adapters are at capacity",
        waiting=(
            Waiting(pool="p:x", state="cooling_down", recovery_s=5, reason="limit"),
            Waiting(pool="q", state="half_open", recovery_s=60, reason="probe"),
        ),
        retry_after_s=5,
    )
    outcome = Outcome(run_id="a", role="analyst", name="step a", status="refused", refusal=refusal)
    tree, said = told(
        queued(),
        AttemptRefused(at=1, conversation="c", run_id="a", refusal=refusal),
        ChildEnded(at=1, conversation="c", run_id="a", outcome=outcome),
    )
    assert {name: (pool.state, pool.until) for name, pool in tree.pools.items()} == {
        "p:x": ("cooling_down", 6),
        "q": ("half_open", 61),
    }
    assert said[1:] == ["step a: refused: capacity"]  # the reason is the report's


def test_a_refusal_that_is_waited_out_shows_its_pools_while_it_waits() -> None:
    waiting = (Waiting(pool="p:x", state="cooling_down", recovery_s=4, reason="limit"),)
    refusal = Refusal(category="capacity", reason="limited", waiting=waiting, retry_after_s=4)
    tree, said = told(
        queued(),
        AttemptRefused(at=10, conversation="c", run_id="a", refusal=refusal),
        ChildWaiting(at=10, conversation="c", run_id="a", reason="recovery", seconds=4),
    )
    assert tree.pools["p:x"] == PoolRow(state="cooling_down", until=14)
    assert (tree.rows["a"].state, tree.rows["a"].until) == ("waiting", 14)
    assert said[1:] == ["step a: waits 4 s for the pool to recover"]


def test_what_has_not_ended_when_the_conversation_ends_was_cancelled() -> None:
    tree, _ = told(queued("a"), queued("b"), started("p:x"), done("b"))
    closed = close(tree)
    assert [row.state for row in closed.rows.values()] == ["cancelled", "done"]
    assert [outcome.run_id for outcome in closed.outcomes] == ["b"]


def test_an_event_of_a_child_nobody_queued_changes_nothing() -> None:
    tree, said = told(started("p:x"), ended("p:x"), done())
    assert (tree, said) == (Tree(), [])


def test_nested_children_stand_below_the_one_that_asked_and_are_no_outcomes_of_the_conversation() -> None:
    nested = ChildQueued(at=1, conversation="c", run_id="b", role="analyst", name="step b", parent_run="a")
    ended = ChildEnded(
        at=2,
        conversation="c",
        run_id="b",
        outcome=Outcome(run_id="b", role="analyst", name="step b", status="done"),
    )
    tree = Tree()
    for event in (queued("a"), queued("z"), nested, ended):
        tree = apply(tree, event)
    assert [row.run_id for row in tree.below(None)] == ["a", "z"]
    assert [row.run_id for row in tree.below("a")] == ["b"]
    assert tree.outcomes == ()


def test_an_ask_is_shown_with_the_command_that_answers_it_until_it_is_answered() -> None:
    asked = PermissionAsked(
        at=1, conversation="c", run_id="a", ask="id1", tool="shell", detail="make", seconds=60, depth=1
    )
    answered = PermissionAnswered(at=2, conversation="c", run_id="a", ask="id1", answer="deny", by="cli")
    assert sentence("step a", asked) == (
        "step a: asks leave for shell: make; `cos runs answer id1 allow` or `deny`, denied in 60 s"
    )
    assert sentence("step a", answered) == "step a: may not, by cli"
    tree = apply(apply(Tree(), queued("a")), asked)
    assert tree.rows["a"].asks == (asked,)
    assert apply(tree, answered).rows["a"].asks == ()
