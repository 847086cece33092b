"""What must hold of every life: judged on the journal alone, by code that shares nothing with the kernel."""

from __future__ import annotations

from collections import Counter, defaultdict

from custodes.actors import (
    ActorStopped,
    StartFailed,
)
from support.puppets import (
    ScriptedError,
    Violation,
    World,
)


def every_started_child_stopped_exactly_once(world: World) -> None:
    balance: Counter[tuple[int, str]] = Counter()
    for entry in world.journal:
        if entry.what in {"start", "stop"}:
            balance[entry.supervisor, entry.child] += 1 if entry.what == "start" else -1
            if balance[entry.supervisor, entry.child] not in {0, 1}:
                raise Violation(f"two lives of one child at once, or a stop of none: {entry}")
    if any(balance.values()):
        raise Violation(f"started and never stopped: {+balance}")


def start_in_order_and_stop_in_reverse(world: World) -> None:
    """Of the static children. A child may go out of turn by itself, or when a client stops it alone."""
    alive: dict[int, list[str]] = defaultdict(list)
    seen: dict[int, list[str]] = defaultdict(list)
    for entry in world.journal:
        order = world.static[entry.supervisor]
        if entry.child not in order:
            if entry.what == "start" and entry.child:
                alive[entry.supervisor].append(entry.child)
            elif entry.what == "stop":
                alive[entry.supervisor].remove(entry.child)
            continue
        index = order.index(entry.child)
        later = [child for child in alive[entry.supervisor] if child in order[index + 1 :]]
        dynamic = [child for child in alive[entry.supervisor] if child not in order]
        if entry.what == "start":
            if entry.child not in seen[entry.supervisor]:
                seen[entry.supervisor].append(entry.child)
                if later:
                    raise Violation(f"{later} had started before {entry}")
            elif later and world.strategies[entry.supervisor] != "one_for_one":
                raise Violation(f"{later} had been left alive by the plan that restarted {entry}")
            alive[entry.supervisor].append(entry.child)
        elif entry.what == "stop":
            by_itself = entry.detail.startswith(("crashed", "normal", "client"))
            if later and not by_itself:
                raise Violation(f"{later} were still alive at {entry}")
            if dynamic and not by_itself and not entry.detail.startswith("restarted"):
                raise Violation(f"dynamic {dynamic} were still alive at {entry}")
            alive[entry.supervisor].remove(entry.child)


def nothing_is_made_once_a_stop_was_asked_for(world: World) -> None:
    stopping: set[int] = set()
    for entry in world.journal:
        if entry.what == "stopping":
            stopping.add(entry.supervisor)
        elif entry.what == "make" and entry.supervisor in stopping:
            raise Violation(f"made while its supervisor was stopping: {entry}")


def intensity_is_never_exceeded_nor_given_up_early(world: World) -> None:
    for serial, judgements in world.judgements.items():
        intensity = world.intensities[serial]
        causes = [id(judgement.cause) for judgement in judgements]
        if len(set(causes)) != len(causes):
            raise Violation(f"one crash was counted twice by supervisor {serial}")
        for index, judgement in enumerate(judgements):
            recent = sum(judgement.at - earlier.at < intensity.period for earlier in judgements[:index])
            if judgement.admitted != (recent < intensity.restarts):
                raise Violation(f"{recent} of {intensity.restarts} restarts, admitted: {judgement.admitted}")


def every_ask_is_answered_at_most_once_and_handled_at_most_once(world: World) -> None:
    if any(reply.times > 1 for reply in world.replies):
        raise Violation("a message was answered twice")
    handled = Counter(entry.detail for entry in world.journal if entry.what == "handle")
    if any(times > 1 for times in handled.values()):
        raise Violation(f"handled twice: {handled.most_common(1)}")


def the_first_reason_wins(world: World) -> None:
    for ending, reason in world.first_reasons.values():
        if ending.end is None or ending.end.reason != reason:
            raise Violation(f"stopped for {reason!r} first, and ended with {ending.end}")


def every_supervisor_that_failed_says_why(world: World) -> None:
    for failure in world.failures:
        [serial] = [one.serial for one in world.supervisors if one._executor.failure is failure]
        allowed = world.intensities[serial].restarts
        if len(failure.exceptions) != allowed + 1:
            raise Violation(f"{len(failure.exceptions)} causes where {allowed} restarts were allowed")


def only_scripted_crashes_happen(world: World) -> None:
    causes: list[BaseException] = [*world.failures, *world.crashes]
    for supervisor in world.supervisors:
        causes.extend(end.cause for end in supervisor._executor.ends.values() if end.cause is not None)
    while causes:
        cause = causes.pop()
        if isinstance(cause, BaseExceptionGroup):
            causes.extend(cause.exceptions)
        elif isinstance(cause, StartFailed) and cause.__cause__ is not None:
            causes.append(cause.__cause__)
        elif not isinstance(cause, ScriptedError | ActorStopped):
            raise Violation(f"nobody scripted {cause!r}") from cause


def nothing_is_left(world: World) -> None:
    for supervisor in world.supervisors:
        executor = supervisor._executor
        if executor.state == "ended" and any(
            child.ending.end is None for child in executor.children.values()
        ):
            raise Violation(f"{supervisor} left a child without an end")
        if executor.state not in {"ended", "starting"} or executor.cap.alive:
            raise Violation(f"{supervisor} is left, with {executor.cap.alive} dynamic children")


INVARIANTS = (
    every_started_child_stopped_exactly_once,
    start_in_order_and_stop_in_reverse,
    nothing_is_made_once_a_stop_was_asked_for,
    intensity_is_never_exceeded_nor_given_up_early,
    every_ask_is_answered_at_most_once_and_handled_at_most_once,
    the_first_reason_wins,
    every_supervisor_that_failed_says_why,
    only_scripted_crashes_happen,
    nothing_is_left,
)
