"""Delivers what is to be told: retried, rate-limited, and never in the way of a switch.

What waits for a channel goes as one message, at most one in ``notify.spacing`` seconds. A channel that does
not take it is tried again, less and less often, and given up after a day. An address holds a secret: it comes
from the environment when a message is sent, and is neither kept nor repeated.
"""

from __future__ import annotations

import importlib.util
import logging
import os
import sys
from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import partial

import anyio
import msgspec

from custodes.adapters.process import ProgramError, base_environment, run_program
from custodes.adapters.process_lookup import current_folder
from custodes.extras import missing
from custodes.overseer import post, tables
from custodes.overseer.config import Channel, Config
from custodes.overseer.tables import Notice
from custodes.store import Connection, Database
from custodes.supervision.record.clock import Now, after

logger = logging.getLogger("custodes.overseer")

FIRST_RETRY_S = 30.0
LAST_RETRY_S = 3_600.0
GIVEN_UP_S = 86_400.0
REMEMBERED_S = 7 * 86_400.0
"""How long a delivered notice keeps its like from being told again, in seconds."""
SEND_S = 30.0
MOST_LINES = 20
MISSING = missing("notifications need", "overseer")


class NotDelivered(Exception):  # noqa: N818 - named for what is so
    """A channel did not take a message. The text holds no address."""


Send = Callable[[str, str], Awaitable[None]]
"""Sends a text to an Apprise address. :raises NotDelivered: it was not taken."""


def address(channel: Channel, environ: Mapping[str, str]) -> str:
    """The channel's Apprise address. Telegram is also known by the variables that Hermes has for it.

    :raises NotDelivered: no variable says it; the text names the variable.
    """
    if stated := environ.get(channel.url_env, "").strip():
        return stated
    if channel.name == "desktop":
        return "macosx://" if sys.platform == "darwin" else "dbus://"
    token = environ.get("TELEGRAM_BOT_TOKEN", "").strip()
    chat = environ.get("TELEGRAM_CHAT_ID", "").strip() or environ.get("TELEGRAM_HOME_CHANNEL", "").strip()
    if channel.name == "telegram" and token and chat:
        return f"tgram://{token}/{chat}/"
    other = ", nor TELEGRAM_BOT_TOKEN and TELEGRAM_CHAT_ID" if channel.name == "telegram" else ""
    raise NotDelivered(f"the variable {channel.url_env} is not set{other}")


async def send(url: str, text: str) -> None:
    """By Apprise, in a program of its own, for `SEND_S` at most; nothing of it is left afterwards, whatever
    the channel does. :raises NotDelivered: it was not taken."""
    if importlib.util.find_spec("apprise") is None:
        raise NotDelivered(MISSING)
    try:
        ended = await run_program(
            [sys.executable, "-P", "-m", post.__name__],
            cwd=current_folder(),
            environment=base_environment({}, tuple(os.environ)),
            stdin=msgspec.json.encode(post.Letter(url, text)),
            timeout_s=SEND_S,
        )
    except ProgramError as error:
        raise NotDelivered(f"its message cannot be sent: {error}") from error
    if ended.timed_out:
        raise NotDelivered(f"not taken within {SEND_S:.0f} s")
    if ended.exit_code == post.UNKNOWN_ADDRESS:
        raise NotDelivered("its address is not one that Apprise knows (https://appriseit.com)")
    if ended.exit_code != 0:
        raise NotDelivered("it did not take the message")


def message(notices: Iterable[Notice]) -> str:
    """One text for all that waits, bounded."""
    lines = [notice.text for notice in notices]
    left = len(lines) - MOST_LINES
    return "\n".join(
        [*lines[:MOST_LINES], *([f"… and {left} more; `cos overseer incidents`"] if left > 0 else [])]
    )


class Postman:
    """Delivers from the database; one for a process."""

    def __init__(self, config: Config, database: Database, now: Callable[[], Now], send: Send = send) -> None:
        self._channels = {channel.name: channel for channel in config.notify.channels}
        self._spacing = config.notify.spacing
        self._database = database
        self._now = now
        self._send = send
        self._sent: dict[str, Now] = {}

    async def deliver(self) -> bool:
        """Send what is due, every channel at its own pace. Whether anything still waits.

        :raises StoreError: the database cannot be used. A message may then be sent once more.
        """
        waiting: dict[str, list[Notice]] = {}
        for notice in await self._database.read(tables.waiting_notices):
            waiting.setdefault(notice.channel, []).append(notice)
        async with anyio.create_task_group() as group:
            for name, notices in waiting.items():
                group.start_soon(self._deliver, name, notices)
        return bool(await self._database.read(tables.waiting_notices))

    async def _deliver(self, name: str, notices: list[Notice]) -> None:
        now = self._now()
        channel = self._channels.get(name)
        old = [each for each in notices if channel is None or now.wall - each.since > GIVEN_UP_S]
        if old:
            logger.warning("%d notices for %s are given up: nobody took them", len(old), name)
            await self._close(old, now)
        due = [each for each in notices if each not in old]
        last = self._sent.get(name)
        if not due or channel is None:
            return
        if any(each.due is not None and each.due.remaining(now) > 0 for each in due):
            return  # the channel is down: what came meanwhile goes with the rest
        if last is not None and last.boot == now.boot and now.uptime - last.uptime < self._spacing:
            return
        self._sent[name] = now
        try:
            await self._send(address(channel, os.environ), message(due))
        except NotDelivered as error:
            logger.warning("%d notices for %s are not delivered yet: %s", len(due), name, error)
            await self._database.write(partial(_postpone, notices=due, now=now))
        else:
            await self._close(due, now)

    async def _close(self, notices: list[Notice], now: Now) -> None:
        before = now.wall - REMEMBERED_S
        await self._database.write(lambda c: tables.close_notices(c, notices, before), 5.0)


async def _postpone(connection: Connection, notices: list[Notice], now: Now) -> None:
    tries = max(notice.tries for notice in notices)
    due = after(min(FIRST_RETRY_S * 2.0 ** min(tries, 16), LAST_RETRY_S), now)
    for notice in notices:
        await tables.save_notice(connection, msgspec.structs.replace(notice, tries=tries + 1, due=due))
