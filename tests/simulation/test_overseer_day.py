"""A scripted day of the whole tree in virtual time: limits, deaths, healing and flapping."""

from __future__ import annotations

from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing

from custodes.adapters.port import ProfileSetting
from custodes.overseer import tables
from custodes.overseer.endpoint import Endpoint, endpoints
from custodes.overseer.holder import take
from custodes.overseer.incident import Incident
from custodes.overseer.journal import Journal
from custodes.overseer.notify import Postman
from custodes.overseer.overseer import Overseer
from custodes.overseer.probe import Answer
from custodes.overseer.tree import tree
from custodes.store import Database
from custodes.supervision.record.clock import Now, utc_time
from custodes.supervision.record.schema import MIGRATIONS
from support.overseen import GOOD, REFUSED, TIMEOUT, Shelf, status
from support.overseer import MIDNIGHT, config

HOUR = 3_600.0
DAY: list[tuple[float, str, Answer]] = [
    (1 * HOUR, "opencode-go", status(429)),
    (3 * HOUR, "grok-cli", REFUSED),
    (4 * HOUR, "grok-cli", GOOD),
    (6 * HOUR, "nvidia", status(402)),
    (8 * HOUR, "nvidia", GOOD),
    (9 * HOUR, "gemini", TIMEOUT),
    (10 * HOUR, "gemini", GOOD),
    *((11 * HOUR + n * 400, "gemini", GOOD if n % 2 else status(503)) for n in range(9)),
    (12 * HOUR, "gemini", GOOD),
    (16 * HOUR, "opencode-go", GOOD),
    (20 * HOUR, "grok-cli", status(405)),
    (21 * HOUR, "grok-cli", GOOD),
]
ROWS = {
    "worker-code": ["opencode-go/kimi", "grok-cli/grok", "gemini/flash"],
    "worker-fast": ["grok-cli/grok", "opencode-go/kimi", "gemini/flash"],
    "worker-research": ["gemini/flash", "opencode-go/kimi"],
    "worker-review": ["nvidia/deepseek", "opencode-go/kimi", "gemini/flash"],
}
FOUND = config(
    providers={
        name: {"health_url": f"http://127.0.0.1:9/{name}/models", "quota_reset": "daily"}
        for name in ("opencode-go", "grok-cli", "gemini", "nvidia")
    },
    fallback_matrix={name: {"primary": row[0], "fallbacks": row[1:]} for name, row in ROWS.items()},
    notify={"telegram": True, "log": False},
)


async def awake(future: Future[Any]) -> Any:
    """Wait for the database's thread without ever being idle: an idle loop's clock would jump meanwhile."""
    with trio.CancelScope(shield=True):
        while not future.done():
            await trio.lowlevel.checkpoint()
    return future.result()


@pytest.mark.full
def test_a_scripted_day_in_virtual_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUSTODES_NOTIFY_TELEGRAM", "tgram://token/1")
    shelf = Shelf({name: ProfileSetting(model=row[0]) for name, row in ROWS.items()})
    answers: dict[str, Answer] = {}
    asked: list[str] = []
    messages: list[str] = []
    moves: list[tuple[str, str]] = []

    def now() -> Now:
        seconds = trio.current_time()
        return Now("boot", seconds, MIDNIGHT + seconds)

    async def ask(endpoint: Endpoint, bound: float) -> Answer:
        asked.append(endpoint.probe)
        answer = answers.get(endpoint.name, GOOD)
        await trio.sleep(bound if answer is TIMEOUT else 0.2)
        return answer

    async def send(url: str, text: str) -> None:
        messages.append(text)

    def observer(event: str, incident: Incident) -> None:
        if event == "moved":
            at = utc_time(now().wall)[11:16]
            moves.append((at, f"{incident.profile_affected} {incident.new_model}"))

    async def script() -> None:
        for moment, name, answer in DAY:
            await trio.sleep(moment - trio.current_time())
            answers[name] = answer

    async def day() -> None:
        database = await Database.open(tmp_path / "custodes.db", MIGRATIONS)
        mine = await take(database, now())
        root = tree(
            FOUND,
            database,
            mine,
            make=lambda: Overseer(FOUND, database, lambda _: shelf, Journal(tmp_path), now, observer),
            ask=ask,
            postman=Postman(FOUND, database, now, send),
            now=now,
            lost=lambda error: pytest.fail(str(error)),
        )
        try:
            async with root, trio.open_nursery() as nursery:
                nursery.start_soon(script)
                await trio.sleep(23 * HOUR)
                nursery.cancel_scope.cancel()
            active = await database.read(tables.active_incidents)
            assert active == []
            closed = await database.read(lambda c: tables.latest_incidents(c, 1_000))
            assert {incident.status for incident in closed} == {"resolved"}
        finally:
            await database.aclose()

    monkeypatch.setattr("custodes.store.database.outcome_of", awake)
    trio.run(day, clock=trio.testing.MockClock(autojump_threshold=0))

    assert {name: setting.model for name, setting in shelf.profiles.items()} == {
        name: row[0] for name, row in ROWS.items()
    }
    by_hour = [(at[:2], what) for at, what in moves]
    assert by_hour[:2] == [("01", "worker-code grok-cli/grok"), ("03", "worker-code gemini/flash")]
    assert ("03", "worker-fast gemini/flash") in by_hour, "its first fallback is limited"
    assert ("06", "worker-review grok-cli/grok") not in by_hour
    assert ("06", "worker-review gemini/flash") in by_hour
    assert ("08", "worker-review nvidia/deepseek") in by_hour
    assert ("16", "worker-code opencode-go/kimi") in by_hour
    assert not [what for at, what in by_hour if at in ("20", "21")], "a misconfigured probe moves nobody"
    assert set(asked) == {"models"}
    assert len(endpoints(FOUND)) == 7  # the three of the support's own among them
    assert any("gemini/flash is degraded" in text for text in messages)
