"""How one provider stands, verdict by verdict. Pure: ``advance(watch, verdict, now, …)`` gives the next one.

==============  ==========================  ===========================================================
verdict         well, or unknown            degraded, limited, needs_person, dead
==============  ==========================  ===========================================================
good            well                        counts towards recovery; the last one of N: well
slow, timeout   third bad one in a row:     stays, and the count towards recovery begins anew
                degraded
down            third in a row: dead        third in a row: dead; else stays, the count begins anew
limited         limited                     limited
needs_person    needs_person                needs_person
misconfigured   misconfigured               stays: what was seen before it was real
==============  ==========================  ===========================================================

*Three in a row* of mixed bad ones (a timeout, a refusal, …) is degraded; dead needs three refusals or 5xx one
after the other. *Misconfigured* is over with the next verdict of any other kind: nothing is known against the
provider. N good ones count when they are ``spacing`` seconds apart (seed: 3, 60 s).

A limit that was met in real work is not over because a list of models is still answered: until the wait it
came with has passed, or the pool has healed, a good probe counts for nothing.

A model that was listed, and that three good lists in a row then do not name, is *absent* while its provider
is well. One that never was is likely called something else there.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from custodes.overseer.config import Config
from custodes.overseer.probe import Verdict
from custodes.overseer.quota import next_reset, parse_reset
from custodes.supervision.record.clock import Deadline, Now, after, later

Condition = Literal["unknown", "well", "degraded", "limited", "needs_person", "dead", "misconfigured"]
SICK: frozenset[Condition] = frozenset({"degraded", "limited", "needs_person", "dead"})
STRIKES = 3
"""So many in a row (seed: "a timeout three times")."""
LONGEST_PAUSE_S = 3_600.0
"""The longest time between two probes of a provider whose quota is known to be spent for longer."""
LONGEST_STATED_S = 86_400.0
"""So long a stated wait is kept to the second. Of a longer one it is asked once a day, by a GET, whether it
still is so: a plan can be upgraded, and a wait of a year is more likely a slip than the truth."""


class Watch(msgspec.Struct, frozen=True, kw_only=True):
    """``since`` is when the condition began, in wall seconds. ``strikes`` are bad verdicts in a row, ``down``
    those of them at the end that were refusals or 5xx. ``good`` counts towards recovery, from ``counted``.

    ``until`` is the wait that a limit came with, ``stated`` whether the provider itself said it (else its
    quota's reset); ``met`` says that real work met the limit. ``missing`` counts the lists without a model.
    """

    provider: str
    condition: Condition = "unknown"
    code: str = ""
    detail: str = ""
    since: float = 0.0
    checked: Now | None = None
    seconds: float = 0.0
    strikes: int = 0
    down: int = 0
    good: int = 0
    counted: Now | None = None
    until: Deadline | None = None
    stated: bool = False
    met: bool = False
    pauses: int = 0
    served: tuple[str, ...] = ()
    missing: dict[str, int] = {}

    @property
    def sick(self) -> bool:
        return self.condition in SICK

    def listed(self, model: str) -> bool:
        """Whether the last list named it."""
        return model in self.served or f"{self.provider}/{model}" in self.served

    def absent(self, model: str) -> bool:
        return self.missing.get(model, 0) >= STRIKES

    def eta(self, now: Now) -> float | None:
        """When it is expected back, in wall seconds; None where nobody knows."""
        return None if self.until is None or not self.sick else now.wall + self.until.remaining(now)


def advance(watch: Watch, verdict: Verdict, now: Now, config: Config) -> Watch:
    """The watch after one more verdict."""
    seen = msgspec.structs.replace(watch, checked=now, seconds=round(verdict.seconds, 3))
    match verdict.kind:
        case "good":
            return _good(seen, verdict, now, config)
        case "slow" | "timeout" | "down":
            return _bad(seen, verdict, now)
    answered = msgspec.structs.replace(seen, strikes=0, down=0)  # no longer in a row
    if verdict.kind == "limited":
        return _limited(answered, verdict, now, config)
    if verdict.kind == "needs_person":
        return _turned(answered, "needs_person", verdict, now)
    return answered if answered.sick else _turned(answered, "misconfigured", verdict, now)


def met_limit(watch: Watch, until: Deadline, now: Now) -> Watch:
    """Real work met a limit of this provider, with the wait that its pool is under."""
    if watch.condition == "limited" and watch.met and watch.until == until:
        return watch
    verdict = Verdict(kind="limited", code="429", detail="work met its limit")
    turned = _turned(watch, "limited", verdict, now)
    return msgspec.structs.replace(turned, until=later(watch.until, until, now), stated=True, met=True)


def healed_in_work(watch: Watch) -> Watch:
    """The pool that had met the limit works again: good probes count from now on."""
    return msgspec.structs.replace(watch, met=False, until=None, stated=False) if watch.met else watch


def pause(watch: Watch, now: Now, config: Config) -> float:
    """Seconds until the provider is asked again: soon where a count is running, late where its limit is
    known to last (no storm before the reset), else ``check_interval``."""
    rest = resting(watch, now, config)
    if rest > 0:
        return rest
    if watch.good or (watch.strikes and watch.condition != "dead"):
        return min(config.recovery.spacing or config.check_interval, config.check_interval)
    return config.check_interval


def resting(watch: Watch, now: Now, config: Config) -> float:
    """Seconds for which it is not asked at all; 0 where it may be.

    The provider's own word is kept to the second, for a day at a time. Before a mere schedule's reset it is
    asked now and then, ever less often: a quota can be bought.
    """
    if watch.condition != "limited" or watch.until is None or watch.good:
        return 0.0
    left = watch.until.remaining(now)
    if watch.checked is None:
        return left
    since = _since(watch.checked, now)
    if watch.stated:
        return max(0.0, min(left, LONGEST_STATED_S - since))
    pause_s = min(
        config.check_interval * 2.0 ** min(watch.pauses, 16), max(LONGEST_PAUSE_S, config.check_interval)
    )
    # A tenth early counts as due: a cron's ticks come a little sooner or later.
    return min(left, pause_s - since) if since < 0.9 * pause_s else 0.0


def _since(checked: Now, now: Now) -> float:
    """Seconds since then; after a reboot by the wall clock, never negative."""
    return now.uptime - checked.uptime if checked.boot == now.boot else max(0.0, now.wall - checked.wall)


def _good(watch: Watch, verdict: Verdict, now: Now, config: Config) -> Watch:
    missing = {
        model: watch.missing.get(model, 0) + 1
        for model in verdict.absent
        if model in watch.missing or watch.listed(model)
    }
    seen = msgspec.structs.replace(
        watch, strikes=0, down=0, served=verdict.served or watch.served, missing=missing
    )
    if not seen.sick:
        return seen if seen.condition == "well" else _well(seen, now)
    if seen.met and seen.until is not None and seen.until.remaining(now) > 0:
        return seen
    last = seen.counted
    apart = last is None or last.boot != now.boot or now.uptime - last.uptime >= config.recovery.spacing
    if not apart:
        return seen
    good = seen.good + 1
    if good >= config.recovery.checks:
        return _well(seen, now)
    return msgspec.structs.replace(seen, good=good, counted=now)


def _bad(watch: Watch, verdict: Verdict, now: Now) -> Watch:
    down = watch.down + 1 if verdict.kind == "down" else 0
    seen = msgspec.structs.replace(watch, strikes=watch.strikes + 1, down=down, good=0, counted=None)
    if down >= STRIKES:
        return _turned(seen, "dead", verdict, now)
    if seen.sick:
        return seen
    if seen.strikes >= STRIKES:
        return _turned(seen, "degraded", verdict, now)
    # One bad answer ends a misconfigured probe's ignorance, and makes no condition by itself.
    return _well(seen, now, strikes=seen.strikes, down=down) if seen.condition == "misconfigured" else seen


def _limited(watch: Watch, verdict: Verdict, now: Now, config: Config) -> Watch:
    turned = _turned(watch, "limited", verdict, now)
    reset = parse_reset(config.providers[watch.provider].quota_reset)
    if verdict.wait is not None:
        return msgspec.structs.replace(
            turned, until=later(turned.until, after(verdict.wait, now), now), stated=True
        )
    again = watch.condition == "limited"
    until = watch.until if again and watch.until is not None and watch.until.remaining(now) > 0 else None
    if until is None and reset is not None:
        until = after(next_reset(reset, now.wall) - now.wall, now)
    return msgspec.structs.replace(turned, until=until, pauses=watch.pauses + 1 if again else 0)


def _turned(watch: Watch, condition: Condition, verdict: Verdict, now: Now) -> Watch:
    """In this condition by this verdict; the counts that it ends are over."""
    same = watch.condition == condition
    return msgspec.structs.replace(
        watch,
        condition=condition,
        code=verdict.code,
        detail=verdict.detail,
        since=watch.since if same else now.wall,
        good=0,
        counted=None,
        until=watch.until if same else None,
        stated=watch.stated if same else False,
        met=watch.met if same else False,
        pauses=watch.pauses if same else 0,
    )


def _well(watch: Watch, now: Now, strikes: int = 0, down: int = 0) -> Watch:
    return Watch(
        provider=watch.provider,
        condition="well",
        since=now.wall,
        checked=watch.checked,
        seconds=watch.seconds,
        strikes=strikes,
        down=down,
        served=watch.served,
        missing=watch.missing,
    )
