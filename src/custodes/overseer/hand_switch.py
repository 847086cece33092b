"""A person's switch of a profile, from any process: by the overseer that runs, or by being it for a moment.

One at a time acts on a project, so neither fights the other. Killed in the middle, what was begun is
completed or undone by whoever acts next.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import anyio
import msgspec

from custodes.overseer import holder
from custodes.overseer.actuators import Actuators
from custodes.overseer.by_hand import Switched, SwitchOrder, SwitchRefused, SwitchReply, row_of
from custodes.overseer.config import Config
from custodes.overseer.holder import SWITCH_S, AlreadyRunning, holding
from custodes.overseer.journal import Journal
from custodes.overseer.overseer import Overseer
from custodes.store import Database
from custodes.supervision.asks.posted import posted
from custodes.supervision.record.clock import Now, now
from custodes.supervision.record.schema import DATABASE, MIGRATIONS

TAKEN_S = 60.0
"""How long an overseer that lives may leave an order where it is, in seconds. A tick takes none, and ends."""


async def switch_by_hand(
    project: Path,
    config: Config,
    order: SwitchOrder,
    *,
    now: Callable[[], Now] = now,
) -> Switched:
    """Switch a profile as a person asked; see `by_hand`. It is proven by reading back, and logged as an
    incident, of which the overseer tells the channels. Asks no provider how it is.

    Cancelled, what was begun is completed or undone by whoever acts next.

    :raises SwitchRefused: it was not switched; or an overseer took it, and its end was waited for in vain.
    :raises StoreError: the project's database cannot be used.
    """
    row_of(order, config)  # before anything is made in a folder that is none of a project
    while True:
        try:
            async with holding(project, now, "switch") as (database, _):
                overseer = Overseer(config, database, Actuators(config, project), Journal(project), now)
                await overseer.start()
                return await overseer.switch(order)
        except AlreadyRunning as error:
            if (told := await _through(project, error, order, now)) is not None:
                return told


async def _through(
    project: Path, other: AlreadyRunning, order: SwitchOrder, now: Callable[[], Now]
) -> Switched | None:
    """By the overseer that runs. None: it ended without an answer, and what it began is ended by the next; so
    does a tick or another switch by hand, which take no order.

    :raises SwitchRefused: it refuses, or does not take it.
    """
    running = other.holder
    who = f"the overseer that runs (pid {running.owner.pid})"
    database = await Database.open(project / DATABASE, MIGRATIONS)

    async def over() -> bool:
        found = await database.read(holder.look)
        return found is None or found.id != running.id or found.gone(now())

    try:
        reply: str | None = None
        async with posted(database, running.owner, "switch", order.profile, order) as request:
            with anyio.move_on_after(SWITCH_S):
                reply = await request.reply(over, TAKEN_S)
        if reply is not None:
            return _answer(reply)
        if request.dead or (request.status is None and await over()):
            return None
        if request.status is None and running.errand != "overseer":
            raise SwitchRefused("busy", str(other))
        if request.status is None:
            why = f"{who} takes no switch by hand; is it of an older version? End it, and ask again"
            raise SwitchRefused("busy", why)
        why = f"{who} took the switch of '{order.profile}', and had not ended it after {SWITCH_S:.0f} s"
        raise SwitchRefused("busy", f"{why}; `cos overseer status` shows what comes of it")
    finally:
        await database.aclose()


def _answer(reply: str) -> Switched:
    """:raises SwitchRefused: it refuses, or speaks as no version known here."""
    try:
        answer = msgspec.json.decode(reply, type=SwitchReply)
    except msgspec.DecodeError as error:
        raise SwitchRefused(
            "failed", f"the answer of the overseer that runs cannot be read: {error}"
        ) from error
    if answer.done is None:
        raise SwitchRefused(answer.kind, answer.message)
    return answer.done
