"""Other breakers, each in its own way: run by ``bench/health.py`` in an environment that has them.

For each one a line of JSON: what guarding one call costs, in microseconds, and how many of 50 callers began
their call after the wait was over and before the first of them had an answer. One that cannot run says why.
"""

from __future__ import annotations

import asyncio
import importlib.metadata
import json
import os
import threading
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import timedelta
from typing import Any

CALLERS = 50
WAIT_S = 0.3
CALL_S = 0.2
ROUNDS = 2_000


class Door:
    """Counts who begins before the first one has ended."""

    def __init__(self) -> None:
        self.begun = 0
        self.through = 0
        self.open = True
        self._lock = threading.Lock()

    def begin(self) -> None:
        with self._lock:
            self.begun += 1
            self.through += self.open

    def end(self) -> None:
        self.open = False

    async def call(self) -> None:
        self.begin()
        await asyncio.sleep(CALL_S)
        self.end()


async def fails() -> None:
    raise ConnectionError("the limit")


async def nothing() -> None:
    """A call that costs nothing."""


async def measured(guard: Callable[[Callable[[], Awaitable[None]]], Awaitable[Any]]) -> tuple[float, int]:
    """``guard`` runs a call behind the breaker, which opens at one failure for ``WAIT_S``."""
    await guard(nothing)
    before = time.perf_counter()
    for _ in range(ROUNDS):
        await guard(nothing)
    cost = (time.perf_counter() - before) / ROUNDS
    await asyncio.gather(guard(fails), return_exceptions=True)
    refused = Door()
    await asyncio.gather(guard(refused.call), return_exceptions=True)
    assert refused.begun == 0, "it did not open"
    await asyncio.sleep(WAIT_S + 0.1)
    door = Door()
    await asyncio.gather(*(guard(door.call) for _ in range(CALLERS)), return_exceptions=True)
    return cost, door.through


async def purgatory() -> tuple[float, int]:
    from purgatory import AsyncCircuitBreakerFactory  # type: ignore[import-not-found]  # the peers'

    factory = AsyncCircuitBreakerFactory(default_threshold=1, default_ttl=WAIT_S)

    async def guard(call: Callable[[], Awaitable[None]]) -> None:
        async with await factory.get_breaker("pool"):
            await call()

    return await measured(guard)


async def aiobreaker() -> tuple[float, int]:
    from aiobreaker import CircuitBreaker  # type: ignore[import-not-found]  # the peers'

    breaker = CircuitBreaker(fail_max=1, timeout_duration=timedelta(seconds=WAIT_S))
    return await measured(breaker.call_async)


async def pybreaker() -> tuple[float, int]:
    """It is synchronous, so its callers are threads."""
    from pybreaker import CircuitBreaker  # type: ignore[import-not-found]  # the peers'

    breaker = CircuitBreaker(fail_max=1, reset_timeout=WAIT_S)

    def fail() -> None:
        raise ConnectionError("the limit")

    before = time.perf_counter()
    for _ in range(ROUNDS):
        breaker.call(lambda: None)
    cost = (time.perf_counter() - before) / ROUNDS
    for _ in range(2):
        with suppress(Exception):  # it opens, and says so by raising
            breaker.call(fail)
    await asyncio.sleep(WAIT_S + 0.1)
    door = Door()

    def call() -> None:
        door.begin()
        time.sleep(CALL_S)
        door.end()

    together = threading.Barrier(CALLERS)

    def caller() -> None:
        together.wait()
        with suppress(Exception):  # refused
            breaker.call(call)

    threads = [threading.Thread(target=caller) for _ in range(CALLERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        await asyncio.to_thread(thread.join)
    return cost, door.through


async def litellm() -> tuple[float, int]:
    """Its router's own check: a deployment in cooldown is not among those it picks from."""
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
    from litellm import Router  # type: ignore[import-not-found]  # the peers'

    entry = {
        "model_name": "m",
        "litellm_params": {"model": "openai/m", "api_key": "none", "mock_response": "x"},
    }
    router = Router(model_list=[entry])

    async def pick() -> Any:
        return await router.async_get_available_deployment(model="m", request_kwargs={})

    deployment = await pick()
    before = time.perf_counter()
    for _ in range(ROUNDS):
        await pick()
    cost = (time.perf_counter() - before) / ROUNDS
    router.cooldown_cache.add_deployment_to_cooldown(
        model_id=deployment["model_info"]["id"],
        original_exception=ConnectionError("the limit"),
        exception_status=429,
        cooldown_time=WAIT_S,
    )
    refused = await asyncio.gather(pick(), return_exceptions=True)
    assert isinstance(refused[0], BaseException), "it did not open"
    await asyncio.sleep(WAIT_S + 0.1)
    door = Door()

    async def one() -> None:
        await pick()
        await door.call()

    await asyncio.gather(*(one() for _ in range(CALLERS)), return_exceptions=True)
    return cost, door.through


PEERS = {
    "purgatory-circuitbreaker": purgatory,
    "pybreaker": pybreaker,
    "aiobreaker": aiobreaker,
    "litellm": litellm,
}


def main() -> None:
    for name, peer in PEERS.items():
        line: dict[str, Any] = {"name": name}
        try:
            line["version"] = importlib.metadata.version(name)
            cost, through = asyncio.run(peer())
            line |= {"cost_us": cost * 1e6, "through": through}
        except Exception as error:  # a peer that cannot run is named, and the others go on
            line["cannot"] = f"{type(error).__name__}: {error}"
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
