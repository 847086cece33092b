"""Nested work as it travels between a child's own process and the owner: the ask, and the variables."""

from __future__ import annotations

import msgspec

from custodes.adapters.port import RUN_VARIABLE
from custodes.policy.project import RUN_PROJECT
from custodes.supervision.work import Work

RUN = RUN_VARIABLE
TOKEN = "CUSTODES_TOKEN"  # noqa: S105 - the variable's name
PROJECT = RUN_PROJECT
VARIABLES = (RUN, TOKEN, PROJECT)
"""What an attempt's processes know of it: the run, a secret that only they and their owner have, and the
project's path."""


class NestedWork(msgspec.Struct, frozen=True, kw_only=True):
    """``session`` is the runtime the client itself runs on, for what no policy routes; "" for none.
    ``below`` is how many levels of children it may have at most; None: what its owner allows."""

    work: Work
    session: str = ""
    below: int | None = None
