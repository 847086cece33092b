"""Asks one endpoint how it is: a GET, with a bound on its time and its size. No token is ever spent unless
the file says ``probe: completion``, the one question that costs one."""

from __future__ import annotations

import os
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Literal

import anyio

from custodes.adapters import foreign
from custodes.adapters.process import ProgramError, base_environment, run_program
from custodes.adapters.process_lookup import current_folder
from custodes.adapters.web import NoClientError, body_of, web_client
from custodes.overseer.endpoint import Endpoint
from custodes.overseer.probe import Answer

if TYPE_CHECKING:
    import httpx2

Ask = Callable[[Endpoint, float], Awaitable[Answer]]
"""Asks an endpoint, within so many seconds; it never raises but under cancellation."""

MAX_BYTES = 2 << 20
"""Of an answer. A list of models is some hundred kB at most; what is larger is cut off and not read."""
KEY_COMMAND_S = 15.0


class KeyMissingError(Exception):
    """The key cannot be had. The text names the variable or the program, and no value."""


async def ask(endpoint: Endpoint, timeout: float) -> Answer:  # noqa: ASYNC109 - the bound is part of the answer
    """One answer, whatever happens. ``timeout`` is in seconds, the whole exchange included."""
    import httpx2  # a quarter of a second to import: only where something is asked

    begun = time.monotonic()

    def trouble(kind: Literal["timeout", "refused", "broken", "key", "client"], detail: str = "") -> Answer:
        return Answer(seconds=time.monotonic() - begun, trouble=kind, detail=detail)

    try:
        key = await _key(endpoint)
    except KeyMissingError as error:
        return trouble("key", str(error))
    begun = time.monotonic()
    try:
        with anyio.fail_after(timeout):
            async with web_client(endpoint.url) as client:
                return await _exchange(client, endpoint, key, begun)
    except NoClientError as error:
        return trouble("client", str(error))
    except (TimeoutError, httpx2.TimeoutException):
        return trouble("timeout")
    except (httpx2.ConnectError, httpx2.ProxyError):
        return trouble("refused")
    except (httpx2.HTTPError, httpx2.InvalidURL, httpx2.StreamError, OSError, UnicodeError):
        return trouble("broken")


async def _exchange(client: httpx2.AsyncClient, endpoint: Endpoint, key: str, begun: float) -> Answer:
    headers = {"accept": "application/json"} | ({"authorization": f"Bearer {key}"} if key else {})
    if endpoint.probe == "completion":
        question = {"model": endpoint.model, "max_tokens": 1, "messages": [{"role": "user", "content": "Hi"}]}
        status, answered, body = await _send(client, "POST", endpoint.url, headers, question)
    else:
        status, answered, body = await _send(client, "GET", endpoint.url, headers)
    seconds = time.monotonic() - begun
    left = None
    if endpoint.usage is not None and status < 400:
        _, _, told = await _send(client, "GET", endpoint.usage.url, headers)
        left = _number(told, endpoint.usage.remaining)
    return Answer(seconds=seconds, status=status, headers=answered, body=body, keyed=bool(key), left=left)


async def _send(
    client: httpx2.AsyncClient, method: str, url: str, headers: dict[str, str], question: Any = None
) -> tuple[int, dict[str, str], Any]:
    async with client.stream(method, url, headers=headers, json=question) as response:
        body = await body_of(response, MAX_BYTES)
        read = foreign.decode(body) if len(body) <= MAX_BYTES else None
        return response.status_code, dict(response.headers), read


async def _key(endpoint: Endpoint) -> str:
    """The key, "" where none is wanted. :raises KeyMissingError: it cannot be had."""
    if endpoint.key_env:
        key = os.environ.get(endpoint.key_env, "").strip()
        if not key:
            raise KeyMissingError(f"the variable {endpoint.key_env} is not set")
    elif endpoint.key_command:
        key = await _told(endpoint.key_command)
    else:
        return ""
    if not key.isascii() or not key.isprintable():
        raise KeyMissingError(f"the key from {_source(endpoint)} holds what no header can carry")
    return key


async def _told(command: tuple[str, ...]) -> str:
    try:
        ended = await run_program(
            command,
            cwd=current_folder(),
            environment=base_environment({}, tuple(os.environ)),
            timeout_s=KEY_COMMAND_S,
        )
    except ProgramError as error:
        raise KeyMissingError(f"key_command: {error}") from error
    key = ended.stdout.decode("utf-8", "replace").strip().partition("\n")[0].strip()
    if ended.exit_code != 0 or not key:
        how = "took too long" if ended.timed_out else f"ended with {ended.exit_code} and no key"
        raise KeyMissingError(f"key_command '{command[0]}' {how}")
    return key


def _source(endpoint: Endpoint) -> str:
    return endpoint.key_env or f"'{endpoint.key_command[0]}'"


def _number(body: Any, path: str) -> float | None:
    """The number at a dotted path; None where there is none."""
    for part in path.split("."):
        body = foreign.mapping(body).get(part)
    try:
        return float(body) if isinstance(body, int | float) and not isinstance(body, bool) else None
    except OverflowError:  # of 400 digits, say
        return None
