"""What a change of the policy came to: each key that it touched, as it was and as it is now. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from custodes.policy.patch import PolicyPatch, cleared, written
from custodes.policy.policy import Policy


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """``key`` is dotted, as ``cooldown.default_seconds``. None stands for what is not set."""

    key: str
    before: str | None
    after: str | None


def changes(before: Policy, after: Policy, patch: PolicyPatch) -> tuple[Change, ...]:
    """Every key that the patch sets, though it was so before, and every one that it cleared, in the policy's
    order. What somebody else changed meanwhile is not among them.
    """
    named = {".".join(path) for path in written(patch)}
    below = tuple(".".join(path) + "." for path in cleared(patch))
    was, now = dict(_leaves(before)), dict(_leaves(after))
    return tuple(
        Change(key=key, before=was.get(key), after=now.get(key))
        for key in dict.fromkeys((*now, *was))
        if key in named or (was.get(key) != now.get(key) and f"{key}.".startswith(below))
    )


def _leaves(policy: Policy) -> Iterator[tuple[str, str]]:
    todo: list[tuple[str, Any]] = [("", msgspec.to_builtins(policy))]
    while todo:
        key, value = todo.pop()
        if isinstance(value, dict):
            todo += [(f"{key}.{name}".lstrip("."), each) for name, each in reversed(value.items())]
        elif value != "":
            yield key, value if isinstance(value, str) else msgspec.json.encode(value).decode()
