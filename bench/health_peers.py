"""Other breakers, each in its own way and environment: the peers of ``bench/health.py``.

    python -m bench.health_peers NAME

What guarding one call costs, and how many callers begin their call after the wait is over and before the
first of them has an answer.
"""

from __future__ import annotations

import asyncio
import importlib.metadata
import os
import sys
import threading
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import timedelta
from typing import Any

from bench.suite.contender import Case, Figures, Spent, repeated, serve

Call = Callable[[], Awaitable[None]]
Guard = Callable[[Call], Awaitable[Any]]
"""Runs a call behind a breaker, which opens at one failure for ``WAIT_S``."""
WAIT_S = 0.3
CALL_S = 0.2


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


def of_guard(make: Callable[[], Awaitable[Guard]]) -> dict[str, Case]:
    """The cases of a breaker whose callers are tasks; ``make`` makes one anew."""

    async def cost(times: int) -> Figures:
        guard = await make()
        await guard(nothing)
        spent = Spent()
        while not spent.enough:
            with spent.counting(times):
                for _ in range(times):
                    await guard(nothing)
        return spent.figures()

    async def through(callers: int) -> Figures:
        guard = await make()
        await asyncio.gather(guard(fails), return_exceptions=True)
        refused = Door()
        await asyncio.gather(guard(refused.call), return_exceptions=True)
        assert refused.begun == 0, "it did not open"
        await asyncio.sleep(WAIT_S + 0.1)
        door = Door()
        await asyncio.gather(*(guard(door.call) for _ in range(callers)), return_exceptions=True)
        return {"through": door.through}

    return {
        "guard": lambda times: asyncio.run(cost(times)),
        "door": lambda callers: asyncio.run(through(callers)),
    }


def purgatory() -> dict[str, Case]:
    from purgatory import AsyncCircuitBreakerFactory  # type: ignore[import-not-found]  # the peers'

    async def make() -> Guard:
        factory = AsyncCircuitBreakerFactory(default_threshold=1, default_ttl=WAIT_S)

        async def guard(call: Call) -> None:
            async with await factory.get_breaker("pool"):
                await call()

        return guard

    return of_guard(make)


def aiobreaker() -> dict[str, Case]:
    from aiobreaker import CircuitBreaker  # type: ignore[import-not-found]  # the peers'

    async def make() -> Guard:
        guard: Guard = CircuitBreaker(fail_max=1, timeout_duration=timedelta(seconds=WAIT_S)).call_async
        return guard

    return of_guard(make)


def pybreaker() -> dict[str, Case]:
    """It is synchronous, so its callers are threads."""
    from pybreaker import CircuitBreaker  # type: ignore[import-not-found]  # the peers'

    def cost(times: int) -> Figures:
        breaker = CircuitBreaker(fail_max=1, reset_timeout=WAIT_S)

        def some() -> None:
            for _ in range(times):
                breaker.call(lambda: None)

        return repeated(some, times)

    def through(callers: int) -> Figures:
        breaker = CircuitBreaker(fail_max=1, reset_timeout=WAIT_S)

        def fail() -> None:
            raise ConnectionError("the limit")

        for _ in range(2):
            with suppress(Exception):  # it opens, and says so by raising
                breaker.call(fail)
        time.sleep(WAIT_S + 0.1)
        door, together = Door(), threading.Barrier(callers)

        def call() -> None:
            door.begin()
            time.sleep(CALL_S)
            door.end()

        def caller() -> None:
            together.wait()
            with suppress(Exception):  # refused
                breaker.call(call)

        threads = [threading.Thread(target=caller) for _ in range(callers)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return {"through": door.through}

    return {"guard": cost, "door": through}


def litellm() -> dict[str, Case]:
    """Its router's own check: a deployment in cooldown is not among those it picks from."""
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
    from litellm import Router  # type: ignore[import-not-found]  # the peers'

    entry = {
        "model_name": "m",
        "litellm_params": {"model": "openai/m", "api_key": "none", "mock_response": "x"},
    }

    async def make() -> Guard:
        router = Router(model_list=[entry])

        async def guard(call: Call) -> None:
            deployment = await router.async_get_available_deployment(model="m", request_kwargs={})
            try:
                await call()
            except ConnectionError as error:
                router.cooldown_cache.add_deployment_to_cooldown(
                    model_id=deployment["model_info"]["id"],
                    original_exception=error,
                    exception_status=429,
                    cooldown_time=WAIT_S,
                )

        return guard

    return of_guard(make)


PEERS = {
    "purgatory-circuitbreaker": purgatory,
    "pybreaker": pybreaker,
    "aiobreaker": aiobreaker,
    "litellm": litellm,
}


if __name__ == "__main__":
    serve(importlib.metadata.version(sys.argv[1]), PEERS[sys.argv[1]]())
