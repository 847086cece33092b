"""Delivery from the database: real messages to a loopback webhook, and a channel that is down."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from custodes.overseer import tables
from custodes.overseer.config import Channel
from custodes.overseer.notice import line
from custodes.overseer.notify import NotDelivered, Postman, address, message, send
from custodes.overseer.tables import Notice
from support.health_provider import health_provider
from support.overseen import GOOD, status, world
from support.overseer import MIDNIGHT, config

TOLD = config(notify={"telegram": True, "spacing": 30})
TWO = {name: {"primary": "a/one", "fallbacks": ["b/two"]} for name in ("v", "w")}


class Channels:
    """Takes messages, or does not."""

    def __init__(self) -> None:
        self.down = False
        self.taken: list[str] = []
        self.tries = 0

    async def __call__(self, url: str, text: str) -> None:
        self.tries += 1
        if self.down:
            raise NotDelivered("it did not take the message")
        self.taken.append(text)


@pytest.fixture
def telegram(monkeypatch: pytest.MonkeyPatch) -> Channels:
    monkeypatch.setenv("CUSTODES_NOTIFY_TELEGRAM", "tgram://secret-token/1")
    return Channels()


@pytest.mark.anyio
async def test_a_switch_is_told_in_one_line_and_only_once(tmp_path: Path, telegram: Channels) -> None:
    async with world(tmp_path, TOLD) as w:
        postman = Postman(w.config, w.database, w.now, telegram)
        w.answers["a"] = status(429, headers={"retry-after": "3600"})
        await w.tick(60)
        assert not await postman.deliver()
        await w.ticks(3, 60)
        await postman.deliver()
        assert telegram.taken == [
            "w: a/one → b/two (a/one is limited; 429; expected back 2026-07-20T01:00:00Z)"
        ]


@pytest.mark.anyio
async def test_a_channel_that_is_down_is_tried_again_and_blocks_nothing(
    tmp_path: Path, telegram: Channels, caplog: pytest.LogCaptureFixture
) -> None:
    telegram.down = True
    async with world(tmp_path, TOLD) as w:
        postman = Postman(w.config, w.database, w.now, telegram)
        w.answers["a"] = status(429)
        await w.tick(0)
        assert await postman.deliver()
        assert (w.model(), len(await w.active())) == ("b/two", 1)
        for _ in range(60):
            w.seconds += 60
            await postman.deliver()
        assert telegram.tries == 7, "after 0.5, 1, 2, 4, 8, 16 and 32 minutes, less each time"
        telegram.down = False
        w.seconds += 3_600
        assert not await postman.deliver()
        assert len(telegram.taken) == 1
        assert "secret-token" not in caplog.text


@pytest.mark.anyio
async def test_what_waits_goes_as_one_message_and_no_sooner_than_the_spacing(
    tmp_path: Path, telegram: Channels
) -> None:
    async with world(
        tmp_path, config(notify={"telegram": True}, fallback_matrix=TWO, cooldown_minutes=0)
    ) as w:
        postman = Postman(w.config, w.database, w.now, telegram)
        w.answers["a"] = status(402)
        await w.tick(10)
        await postman.deliver()
        assert telegram.taken[0].count("\n") == 1, "two profiles, one message"
        w.answers["a"] = GOOD
        await w.ticks(3, 0)
        w.seconds += 65
        await w.tick(0)
        w.seconds += 65
        await w.tick(5)
        await postman.deliver()
        await postman.deliver()
        assert len(telegram.taken) == 2


@pytest.mark.anyio
async def test_after_a_day_it_is_given_up_and_said(
    tmp_path: Path, telegram: Channels, caplog: pytest.LogCaptureFixture
) -> None:
    telegram.down = True
    async with world(tmp_path, TOLD) as w:
        postman = Postman(w.config, w.database, w.now, telegram)
        await w.database.write(
            lambda c: tables.add_notices(c, [Notice(channel="telegram", key="k", text="t", since=MIDNIGHT)])
        )
        w.seconds = 86_401
        assert not await postman.deliver()
        assert telegram.tries == 0
        assert "given up" in caplog.text


@pytest.mark.anyio
async def test_a_successor_delivers_what_was_left(tmp_path: Path, telegram: Channels) -> None:
    async with world(tmp_path, TOLD) as w:
        w.answers["a"] = status(429)
        await w.tick()
        await Postman(w.config, w.database, w.now, telegram).deliver()
        assert len(telegram.taken) == 1


def test_an_address_comes_from_the_environment_alone() -> None:
    telegram = Channel(name="telegram", url_env="CUSTODES_NOTIFY_TELEGRAM")
    assert address(telegram, {"CUSTODES_NOTIFY_TELEGRAM": "tgram://t/1"}) == "tgram://t/1"
    assert address(telegram, {"TELEGRAM_BOT_TOKEN": "t", "TELEGRAM_CHAT_ID": "1"}) == "tgram://t/1/"
    assert address(telegram, {"TELEGRAM_BOT_TOKEN": "t", "TELEGRAM_HOME_CHANNEL": "2"}) == "tgram://t/2/"
    with pytest.raises(NotDelivered, match="CUSTODES_NOTIFY_TELEGRAM is not set"):
        address(telegram, {"TELEGRAM_BOT_TOKEN": "t"})
    with pytest.raises(NotDelivered, match="OPS is not set"):
        address(Channel(name="ops", url_env="OPS"), {"TELEGRAM_BOT_TOKEN": "t", "TELEGRAM_CHAT_ID": "1"})
    assert address(Channel(name="desktop", url_env="X"), {}) in ("dbus://", "macosx://")


def test_a_flood_is_one_bounded_message() -> None:
    flood = [Notice(channel="c", key=str(n), text=f"line {n}", since=0) for n in range(100)]
    assert message(flood).splitlines()[-1] == "… and 80 more; `cos overseer incidents`"


@pytest.mark.anyio
async def test_it_is_sent_by_apprise_for_real() -> None:
    with health_provider() as webhook:
        host = webhook.url.removeprefix("http://")
        await send(f"json://{host}", "a test")
        assert webhook.methods == ["POST"]
        webhook.status = 500
        with pytest.raises(NotDelivered, match="did not take"):
            await send(f"json://{host}", "a test")
    with pytest.raises(NotDelivered, match="is not one that Apprise knows") as caught:
        await send("nonsense://hunter2", "a test")
    assert "hunter2" not in str(caught.value)


SENDS = """
import sys, anyio
from custodes.overseer import notify
notify.SEND_S = 5.0
try:
    anyio.run(notify.send, sys.argv[1], "a test")
except notify.NotDelivered as error:
    print(error)
"""


def test_a_channel_whose_answer_never_ends_holds_up_no_exit() -> None:
    ended = threading.Event()

    def answer() -> None:
        """A byte now and then: no timeout of a client's ever comes."""
        with contextlib.suppress(OSError), server.accept()[0] as taken:
            taken.recv(65_536)
            taken.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 1000000\r\n\r\n")
            while not ended.wait(0.2):
                taken.sendall(b"x")

    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(60)
        answering = threading.Thread(target=answer)
        answering.start()
        try:
            url = f"json://127.0.0.1:{server.getsockname()[1]}/"
            words = [sys.executable, "-c", SENDS, url]
            done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)
        finally:
            ended.set()
            answering.join()
    assert (done.stdout, done.returncode) == ("not taken within 5 s\n", 0), done.stderr


@pytest.mark.anyio
async def test_the_end_of_an_outage_says_how_long_it_was_and_who_ended_it(tmp_path: Path) -> None:
    async with world(tmp_path, config(cooldown_minutes=0)) as w:
        w.answers["a"] = status(402)
        await w.tick(2_000)
        w.answers["a"] = GOOD
        await w.ticks(3, 2_000)
        ended = next(incident for event, incident in w.told if event == "resolved")
        assert line("resolved", ended) == (
            "w: over: a/one is refused until a person acts (overseer; 1 h 40 min)"
        )
