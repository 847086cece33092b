"""What is asked of the runtimes: deeds as work, and plans of them, chosen at random."""

from __future__ import annotations

import json
import random
from typing import Any

from support.soak.program import MARK, Deed
from support.soak.project import LEAVES

TIMEOUT_S = 6.0
ESTIMATE = 1_000
"""Tokens that each step of a plan is reckoned at: no program says what it used."""
READS = (("well", 60), ("limit", 12), ("crash", 6), ("hang", 4), ("noise", 3), ("empty", 3), ("overload", 6))
WRITES = (("well", 70), ("limit", 8), ("crash", 6), ("hang", 5), ("unchanged", 6), ("overload", 3))


def _pick(chance: random.Random, weighted: tuple[tuple[str, int], ...]) -> str:
    words, weights = zip(*weighted, strict=True)
    return str(chance.choices(words, weights)[0])


def scope_of(leaves: list[str]) -> list[str]:
    return ["src"] if len(leaves) == len(LEAVES) else [f"src/{leaf}" for leaf in leaves]


def a_deed(chance: random.Random, key: str, *, within: list[str] | None = None, depth: int = 0) -> Deed:
    """One that reads or writes; what is nested in it writes ``within`` its leaves alone."""
    may_write = within if within is not None else list(LEAVES)
    writes = bool(may_write) and chance.random() < 0.45
    leaves: list[str] = []
    if writes:
        everything = within is None and chance.random() < 0.25
        leaves = may_write if everything else [chance.choice(may_write)]
    end = _pick(chance, WRITES if writes else READS)
    nests = depth < 2 and end == "well" and chance.random() < (0.15 if depth == 0 else 0.3)
    return Deed(
        key=key,
        role="implementer" if writes else "reviewer",
        model="write" if writes else chance.choice(("look", "look", "frail")),
        seconds=round(chance.uniform(0.1, 1.6), 2),
        end=end,
        leaves=leaves,
        scope=scope_of(leaves) if leaves else [],
        tool=end in ("crash", "hang") and chance.random() < 0.5,
        nest=[a_deed(chance, f"{key}/0", within=leaves, depth=depth + 1)] if nests else [],
    )


def work_of(deed: Deed) -> dict[str, Any]:
    """A deed as work, in the words that a plan's step and the MCP tools share."""
    work: dict[str, Any] = {
        "role": deed["role"],
        "prompt": f"{MARK}{json.dumps(deed)}",
        "timeout": TIMEOUT_S + (8 if deed["nest"] else 0),
        "estimate_tokens": ESTIMATE,
    }
    if deed["scope"]:
        work["scope"] = deed["scope"]
    return work


def a_plan(chance: random.Random, name: str) -> dict[str, Any]:
    """A plan file. A third of them have a budget that is too small for all their steps."""
    count = chance.randint(2, 7)
    steps: list[dict[str, Any]] = []
    for number in range(count):
        deed = a_deed(chance, f"{name}/{number}")
        step = {"id": f"s{number}", **work_of(deed)}
        if chance.random() < 0.8:
            step["model"] = deed["model"]
        else:
            step["adapter"] = chance.choice(("command", "asker"))
        if number and chance.random() < 0.35:
            step["needs"] = [f"s{chance.randrange(number)}"]
        if chance.random() < 0.6:
            step["max_wait"] = 5
        steps.append(step)
    plan: dict[str, Any] = {"name": name, "steps": steps}
    if chance.random() < 0.3:
        plan["max_parallel"] = chance.randint(1, 3)
    if chance.random() < 0.35:
        tight = chance.choice(("tokens", "children", "wall_seconds"))
        amount = {"tokens": ESTIMATE * (count - 1), "children": max(1, count - 1), "wall_seconds": 4}[tight]
        plan["budget"] = {tight: amount, "when_spent": chance.choice(("finish", "stop"))}
    return plan
