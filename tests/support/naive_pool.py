"""A pool told again in another way: nothing but the history of what happened, and questions to it.

Slow, and with no state of its own but the log; so it can be read against the design sentence by sentence.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Entry:
    kind: str
    """``probe`` granted, ``released``, ``limit``, ``opened``, ``heal``, ``clear``, ``mark``."""
    at: int
    attempt: str = ""
    until: int = 0
    counted: bool = False


@dataclass
class NaivePool:
    default: int
    maximum: int
    ceiling: int
    log: list[Entry] = field(default_factory=list)
    granted: dict[str, int] = field(default_factory=dict)
    """attempt -> length of the log when its ticket was granted"""
    leased: set[str] = field(default_factory=set)
    confirmed: set[str] = field(default_factory=set)

    # -- Questions

    def since_reset(self) -> list[Entry]:
        resets = [i for i, entry in enumerate(self.log) if entry.kind in ("heal", "clear")]
        return self.log[resets[-1] + 1 :] if resets else self.log

    def limits(self) -> list[Entry]:
        return [entry for entry in self.since_reset() if entry.kind == "limit"]

    def sick(self) -> bool:
        return bool(self.limits())

    def out_until(self) -> int:
        return max((entry.until for entry in self.limits()), default=0)

    def count(self) -> int:
        return sum(entry.counted for entry in self.limits())

    def generation(self) -> int:
        return sum(entry.kind in ("opened", "clear") for entry in self.log)

    def live_probe(self, now: int) -> Entry | None:
        probes = [i for i, entry in enumerate(self.log) if entry.kind == "probe"]
        if not probes:
            return None
        probe = self.log[probes[-1]]
        ended = any(
            entry.kind in ("heal", "clear", "opened")
            or (entry.kind == "released" and entry.attempt == probe.attempt)
            for entry in self.log[probes[-1] + 1 :]
        )
        return None if ended or now >= probe.until else probe

    def marked_until(self) -> int:
        last_clear = max((i for i, entry in enumerate(self.log) if entry.kind == "clear"), default=-1)
        return max((entry.until for entry in self.log[last_clear + 1 :] if entry.kind == "mark"), default=0)

    def recovery(self, now: int) -> int:
        if not self.sick():
            return 0
        probe = self.live_probe(now)
        return max(self.out_until() - now, probe.until - now if probe else 0, 0)

    # -- What happens

    def ask(self, attempt: str, lease: int, now: int) -> bool | None:
        """None: refused. True: it is the probe."""
        if self.recovery(now) > 0:
            return None
        probe = self.sick()
        if probe:
            self.log.append(Entry("probe", now, attempt, now + lease))
            self.leased.add(attempt)
        self.granted[attempt] = len(self.log)
        return probe

    def is_live(self, attempt: str, now: int) -> bool:
        probe = self.live_probe(now)
        return probe is not None and probe.attempt == attempt

    def confirm(self, attempt: str, now: int) -> None:
        if self.is_live(attempt, now):
            self.log.append(Entry("heal", now))
            self.confirmed.add(attempt)

    def settle(self, attempt: str, outcome: str, stated: int, now: int) -> None:
        live = self.is_live(attempt, now)
        if attempt in self.leased and not live and attempt not in self.confirmed:
            return
        if live:
            self.log.append(Entry("released", now, attempt))
        if outcome == "success" and live:
            self.log.append(Entry("heal", now))
        if outcome == "overload":
            self.log.append(Entry("mark", now, until=now + min(max(stated, 10), 60)))
        if outcome == "limit":
            self.limited(attempt, live, stated, now)

    def limited(self, attempt: str, live: bool, stated: int, now: int) -> None:
        was_sick = self.sick()
        nothing_since = not any(
            entry.kind in ("opened", "clear") for entry in self.log[self.granted[attempt] :]
        )
        counted = live or (nothing_since and not was_sick)
        if not counted and not stated:
            return
        wait = min(stated, self.ceiling) if stated else self.default
        if not stated:
            for _ in range(self.count()):
                wait *= 2
            wait = min(wait, self.maximum)
        self.log.append(Entry("limit", now, attempt, now + wait, counted))
        if counted or not was_sick:
            self.log.append(Entry("opened", now))

    def clear(self, now: int) -> None:
        self.log.append(Entry("clear", now))
