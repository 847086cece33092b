"""The whole tree over a real server, a real database and the real policy service."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest

from custodes.overseer import daemon, report
from custodes.overseer.ask import ask
from custodes.overseer.config import Config
from custodes.overseer.endpoint import Endpoint
from custodes.overseer.holder import AlreadyRunning
from custodes.overseer.incident import Incident
from custodes.overseer.notify import NotDelivered
from custodes.overseer.probe import Answer
from custodes.store import Database
from custodes.supervision.pools.breaker import Pool
from custodes.supervision.pools.pool_table import load_pools, save_pools
from custodes.supervision.record.clock import after, now
from custodes.supervision.record.schema import DATABASE, MIGRATIONS
from support.health_provider import HealthProvider, health_provider
from support.overseer import config

pytestmark = pytest.mark.anyio


def of_two(first: HealthProvider, second: HealthProvider, **changes: object) -> Config:
    """The reviewer's adapter is what is moved, from one OpenAI-compatible model to another."""
    return config(
        providers={
            "a": {"health_url": first.url, "switch": {"model": "{model}", "provider": "openai"}},
            "b": {"health_url": second.url, "switch": {"model": "{model}", "provider": "openai"}},
            "c": {"health_url": second.url, "switch": {"model": "{model}", "provider": "openai"}},
        },
        fallback_matrix={"reviewer": {"primary": "a/one", "fallbacks": ["b/two"], "actuator": "supervision"}},
        **{"check_interval": 1, "recovery": {"checks": 2, "spacing": 0}, "cooldown_minutes": 0, **changes},
    )


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    own = folder / ".coding-os" / "adapters" / "openai"
    own.mkdir(parents=True)
    (own / "adapter.yaml").write_text("models: [{id: one}, {id: two}]\n")
    (folder / ".coding-os.yaml").write_text("agents: [openai]\n")
    routing = {"roles": {"reviewer": {"adapter": "openai", "model": "one"}}}
    (folder / ".coding-os" / "hub-settings.json").write_text(json.dumps({"model_routing": routing, "x": 1}))
    return folder


def role(project: Path) -> str:
    settings = json.loads((project / ".coding-os" / "hub-settings.json").read_text())
    assert settings["x"] == 1
    return str(settings["model_routing"]["roles"]["reviewer"]["model"])


class Told:
    """Waits for events by their words."""

    def __init__(self) -> None:
        self.events: list[str] = []
        self._changed = anyio.Event()

    def __call__(self, event: str, incident: Incident) -> None:
        self.events.append(f"{event} {incident.action}")
        self._changed.set()

    async def until(self, wanted: Callable[[list[str]], bool]) -> None:
        with anyio.fail_after(60):
            while not wanted(self.events):
                self._changed = anyio.Event()
                await self._changed.wait()


async def test_it_switches_and_switches_back_by_itself_and_lets_the_project_go(project: Path) -> None:
    told, ready = Told(), anyio.Event()
    with health_provider("one") as first, health_provider("two") as second:
        first.status = 429
        async with anyio.create_task_group() as group:

            async def run() -> None:
                found = of_two(first, second)
                await daemon.run(project, found, observer=told, started=ready.set)

            group.start_soon(run)
            await ready.wait()
            await told.until(lambda events: "moved switch_to_fallback" in events)
            assert role(project) == "two"
            first.status = 200
            await told.until(lambda events: "resolved switch_to_fallback" in events)
            assert role(project) == "one"
            assert set(first.methods) == {"GET"}
            view = report.status(
                await report.known(project, of_two(first, second)), of_two(first, second), now()
            )
            assert view.pid is not None
            group.cancel_scope.cancel()
        after_it = report.status(
            await report.known(project, of_two(first, second)), of_two(first, second), now()
        )
        assert (after_it.pid, after_it.active) == (None, ())


async def test_of_two_one_runs_and_a_tick_leaves_it_to_it(project: Path) -> None:
    ready = anyio.Event()
    with health_provider("one") as first, health_provider("two") as second:
        found = of_two(first, second)
        async with anyio.create_task_group() as group:
            group.start_soon(lambda: daemon.run(project, found, started=ready.set))
            await ready.wait()
            with pytest.raises(AlreadyRunning):
                await daemon.tick(project, found)
            with pytest.raises(AlreadyRunning):
                await daemon.run(project, found)
            group.cancel_scope.cancel()


async def test_a_probe_that_crashes_is_started_again_and_the_others_go_on(
    project: Path, caplog: pytest.LogCaptureFixture
) -> None:
    told, crashed = Told(), False

    async def crash_once(endpoint: Endpoint, bound: float) -> Answer:
        nonlocal crashed
        if endpoint.name == "a" and not crashed:
            crashed = True
            raise ZeroDivisionError
        return await ask(endpoint, bound)

    with health_provider("one") as first, health_provider("two") as second:
        first.status = 402
        async with anyio.create_task_group() as group:
            found = of_two(first, second)
            group.start_soon(lambda: daemon.run(project, found, observer=told, ask=crash_once))
            await told.until(lambda events: "moved switch_to_fallback" in events)
            group.cancel_scope.cancel()
    assert "ZeroDivisionError" in caplog.text


async def test_hundreds_of_endpoints_may_answer_at_one_moment(
    project: Path, caplog: pytest.LogCaptureFixture
) -> None:
    many = {f"p{number}": {"health_url": f"http://127.0.0.1:9/{number}"} for number in range(300)}
    found = config(providers=many, fallback_matrix={}, check_interval=1)
    asked: dict[str, int] = dict.fromkeys(found.providers, 0)
    all_once, all_twice = anyio.Event(), anyio.Event()

    async def at_once(endpoint: Endpoint, _bound: float) -> Answer:
        asked[endpoint.name] += 1
        if all(asked.values()):
            all_once.set()
        if min(asked.values()) == 2:
            all_twice.set()
        await all_once.wait()
        return Answer(seconds=0.0, status=200)

    async with anyio.create_task_group() as group:
        group.start_soon(lambda: daemon.run(project, found, ask=at_once))
        with anyio.fail_after(60):
            await all_twice.wait()
        group.cancel_scope.cancel()
    assert "crashed" not in caplog.text


async def test_a_notifier_that_hangs_holds_up_no_switch(project: Path) -> None:
    told = Told()

    async def hang(url: str, text: str) -> None:
        await anyio.sleep_forever()
        raise NotDelivered("never")

    with health_provider("one") as first, health_provider("two") as second:
        first.status = 402
        found = of_two(first, second, notify={"desktop": True})
        async with anyio.create_task_group() as group:
            group.start_soon(lambda: daemon.run(project, found, observer=told, send=hang))
            await told.until(lambda events: "moved switch_to_fallback" in events)
            first.status = 200
            await told.until(lambda events: "resolved switch_to_fallback" in events)
            group.cancel_scope.cancel()


async def test_a_limit_met_in_work_moves_the_role_at_once_and_not_at_the_next_probe(project: Path) -> None:
    told, asked = Told(), anyio.Event()
    with health_provider("one") as first, health_provider("two") as second:
        found = of_two(first, second, check_interval=3_600, cooldown_minutes=30)
        providers = dict(found.providers)
        providers["a"] = type(providers["a"])(
            health_url=first.url, pools=("openai:one",), switch=providers["a"].switch
        )
        found = type(found)(
            **{**{f: getattr(found, f) for f in found.__struct_fields__}, "providers": providers}
        )
        async with anyio.create_task_group() as group:
            group.start_soon(lambda: daemon.run(project, found, observer=told, started=asked.set))
            await asked.wait()
            # The fallback must be known to be well; its first probe is on its way.
            with anyio.fail_after(60):
                while (await report.known(project, found)).watches["b"].condition != "well":  # noqa: ASYNC110
                    await anyio.sleep(0.05)
            work = await Database.open(project / DATABASE, MIGRATIONS)
            limited = Pool(name="openai:one", generation=1, failure_count=1, deadline=after(600, now()))
            await work.write(lambda c: save_pools(c, [limited]), 5)
            await work.aclose()
            await told.until(lambda events: "moved switch_to_fallback" in events)
            assert role(project) == "two"
            (incident,) = (await report.known(project, found)).active
            assert incident.error_code == "429"
            assert "work met its limit" in (await report.known(project, found)).watches["a"].detail
            group.cancel_scope.cancel()


async def test_a_limit_that_a_probe_is_told_opens_the_mapped_pool(project: Path) -> None:
    with health_provider("one") as first, health_provider("two") as second:
        first.status, first.headers = 429, {"retry-after": "500"}
        found = config(
            providers={
                "a": {"health_url": first.url, "pools": ["openai:one"]},
                "b": {"health_url": second.url},
            },
            fallback_matrix={
                "reviewer": {"primary": "a/one", "fallbacks": ["b/two"], "actuator": "supervision"}
            },
        )
        await daemon.tick(project, found)
        database = await Database.open(project / DATABASE, MIGRATIONS)
        try:
            pool = (await database.read(load_pools))["openai:one"]
            assert (pool.state(now()), pool.failure_count) == ("cooling_down", 0)
            assert 490 < pool.recovery(now()) <= 500
        finally:
            await database.aclose()
        again = await daemon.tick(project, found)
        assert next(watch for watch in again.watches if watch.provider == "a").met is False


async def test_a_damaged_database_is_set_aside_and_everything_looked_at_anew(
    project: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with health_provider("one") as first, health_provider("two") as second:
        await daemon.tick(project, of_two(first, second))
        (project / DATABASE).write_bytes(b"SQLite format 3\0" + b"torn" * 2_000)
        first.status = 402
        done = await daemon.tick(project, of_two(first, second))
        assert role(project) == "two"
        assert [event.event for event in done.events] == ["moved"]
        assert "set aside" in caplog.text
