"""One chat completion over HTTP, streamed, under one deadline."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import anyio
import msgspec

from custodes.adapters import failures, waits
from custodes.adapters.descriptor import Descriptor, is_loopback, url_problem
from custodes.adapters.foreign import decode, unfenced
from custodes.adapters.openai.answer import DONE_REASONS, Answer, TooLongError
from custodes.adapters.openai.events import Events
from custodes.adapters.port import DispatchRequest, DispatchResult, Failure, Progress, ProgressSink
from custodes.adapters.refusal import undeclared
from custodes.adapters.web import NoClientError, body_of, feed, web_client

if TYPE_CHECKING:
    import httpx2

MAX_ERROR_BYTES = 64 << 10
MAX_PLAIN_BYTES = 20 << 20
SECOND_TRIES = 2

_TORN = object()
"""What stands for JSON that is none: null is a value."""

_NAMES_STREAM = re.compile(r"stream_options|include_usage", re.IGNORECASE)
_NAMES_FORMAT = re.compile(r"response_format|json_schema|schema|structured|grammar", re.IGNORECASE)


class OpenAIRuntime:
    def __init__(self, descriptor: Descriptor) -> None:
        self._descriptor = descriptor

    async def dispatch(self, request: DispatchRequest, progress: ProgressSink) -> DispatchResult:
        environ = {**os.environ, **request.environment}
        call = _Call(self._descriptor, request, progress, environ)
        if refused := call.refusal():
            return DispatchResult(failure=refused)
        with anyio.move_on_after(request.timeout_s):
            return await call.run()
        failure = call.failed("timeout", f"{request.timeout_s:g} s")
        return DispatchResult(failure=failure, usage=call.answer.usage, served_model=call.answer.model)


class _Call:
    """One attempt."""

    def __init__(
        self,
        descriptor: Descriptor,
        request: DispatchRequest,
        progress: ProgressSink,
        environ: Mapping[str, str],
    ) -> None:
        self.descriptor = descriptor
        self.request = request
        self.progress = progress
        self.model = request.model or descriptor.default_model
        endpoint = descriptor.endpoint
        self.base_url = endpoint.url(environ) if endpoint else ""
        self.key = environ.get(endpoint.key_env, "").strip() if endpoint and endpoint.key_env else ""
        self.answer = Answer()
        self.accepted = False
        self.dropped: set[str] = set()

    def refusal(self) -> Failure | None:
        """What is wrong before anything is sent."""
        endpoint = self.descriptor.endpoint
        if not self.base_url or (why := url_problem(self.base_url)):
            return self.failed("missing", "no address" if not self.base_url else f"its address {why}")
        if endpoint and endpoint.key_env and not self.key and not is_loopback(self.base_url):
            return self.failed("auth", f"{endpoint.key_env} is not set")
        if not self.key.isascii() or not self.key.isprintable():
            return self.failed("auth", "its key holds characters no key has")
        if not self.model:
            return self.failed("invalid", "no model was named and the catalog has no default")
        wrong = undeclared(self.descriptor, self.request)
        return self.failed("invalid", wrong) if wrong else None

    def failed(self, kind: failures.Kind, detail: str = "") -> Failure:
        return failures.failure(kind, self.descriptor.id, detail=detail, accepted=self.accepted)

    async def run(self) -> DispatchResult:
        import httpx2  # a quarter of a second to import: only where something is sent

        try:
            async with web_client(self.base_url) as client:
                failure = await self._exchange(client)
        except NoClientError as error:
            failure = self.failed("invalid", str(error))
        except (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.ProxyError):
            failure = self.failed("refused")
        except httpx2.TimeoutException:
            failure = self.failed("timeout")
        except TooLongError:
            failure = self.failed("other", "its answer is longer than the bound")
        except (httpx2.HTTPError, httpx2.InvalidURL, httpx2.StreamError) as error:
            # A reset, a cut body, an oversized event, a broken encoding.
            failure = self.failed("cut", type(error).__name__)
        answer = self.answer
        if failure is not None:
            return DispatchResult(failure=failure, usage=answer.usage, served_model=answer.model)
        return DispatchResult(
            text=answer.text,
            structured=_structured(answer.text) if self.request.schema else None,
            usage=answer.usage,
            served_model=answer.model,
        )

    async def _exchange(self, client: httpx2.AsyncClient) -> Failure | None:
        """Send, and send again without what the server says it cannot take. None if it is answered."""
        self.progress(Progress(kind="started"))
        for _ in range(SECOND_TRIES + 1):
            headers = {"accept": "text/event-stream, application/json", "accept-encoding": "identity"}
            if self.key:
                headers["authorization"] = f"Bearer {self.key}"
            url = f"{self.base_url}/chat/completions"
            async with client.stream("POST", url, json=self.payload(), headers=headers) as response:
                if response.status_code == 200:
                    return await self._read(response)
                said = await _said(response)
            if not self._drop(said):
                break
        return failures.classify(said, who=self.descriptor.id, now=waits.now(), accepted=self.accepted)

    def payload(self) -> dict[str, Any]:
        request = self.request
        prompt = request.prompt
        body: dict[str, Any] = {"model": self.model, "stream": True}
        if "stream_options" not in self.dropped:
            body["stream_options"] = {"include_usage": True}
        if request.effort:
            body["reasoning_effort"] = request.effort
        if request.schema is not None:
            if "response_format" not in self.dropped:
                name = re.sub(r"\W", "_", request.role)[:60] or "evidence"
                wanted = {"name": name, "schema": request.schema}
                body["response_format"] = {"type": "json_schema", "json_schema": wanted}
            else:
                schema = msgspec.json.encode(request.schema).decode()
                prompt += (
                    f"\n\nAnswer with one JSON value that fits this JSON Schema, and nothing else:\n{schema}"
                )
        body["messages"] = [{"role": "user", "content": prompt}]
        return body

    def _drop(self, said: failures.Said) -> bool:
        """Whether a rejected request is worth sending again without one of its options."""
        if said.status not in (400, 422):
            return False
        words = " ".join((*said.codes, said.message))
        options = {"stream_options": _NAMES_STREAM}
        if self.request.schema is not None:
            options["response_format"] = _NAMES_FORMAT
        left = {name: pattern for name, pattern in options.items() if name not in self.dropped}
        named = {name for name, pattern in left.items() if pattern.search(words)}
        kind = failures.kind_of_text(said.message, waits.now())
        if not named and (kind is not None or re.search(r"context_length|model", words, re.IGNORECASE)):
            return False  # it says what is wrong, and it is not an option
        self.dropped |= named or set(left)
        return bool(left)

    async def _read(self, response: httpx2.Response) -> Failure | None:
        kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind == "text/event-stream":
            if (failure := await self._stream(response)) is not None:
                return failure
        else:
            raw = await body_of(response, MAX_PLAIN_BYTES)
            if len(raw) > MAX_PLAIN_BYTES:
                raise TooLongError
            if (plain := decode(raw, _TORN)) is _TORN:
                return self.failed("other", "what it answered is no chat completion")
            self._take(plain)
        return self._verdict(response)

    async def _stream(self, response: httpx2.Response) -> Failure | None:
        events = Events()
        torn = False

        def take(piece: bytes) -> bool:
            nonlocal torn
            for name, data in events.feed(piece):
                if data.strip() == "[DONE]":
                    return True
                if (chunk := decode(data, _TORN)) is _TORN:
                    torn = True
                    return True
                stated = isinstance(chunk, dict) and "error" in chunk
                self._take({"error": chunk} if name == "error" and not stated else chunk)
                if self.answer.error:
                    return True
            return False

        await feed(response, take)
        return self.failed("cut", "an event is no JSON") if torn else None

    def _take(self, chunk: object) -> None:
        before = self.answer.usage
        chars = self.answer.take(chunk)
        if chars:
            self.accepted = True
            self.progress(Progress(kind="output", chars=chars))
        if self.answer.usage is not None and self.answer.usage != before:
            self.progress(Progress(kind="usage", usage=self.answer.usage))

    def _verdict(self, response: httpx2.Response) -> Failure | None:
        """Success is a finish reason and an answer; this is where anything less is said."""
        answer = self.answer
        if answer.error:
            said = failures.said_by(answer.error, response.headers)
            return failures.classify(said, who=self.descriptor.id, now=waits.now(), accepted=self.accepted)
        if answer.finish is None:
            return self.failed("cut")
        if answer.finish == "length":
            return self.failed("invalid", "its answer was cut off at the output limit")
        if answer.refused or answer.finish == "content_filter":
            return self.failed("invalid", "the model or its filter declined to answer")
        if answer.finish not in DONE_REASONS:
            return self.failed("other", "it stopped for another reason than being done")
        if not answer.text:
            return self.failed("other", "its answer is empty")
        return None


async def _said(response: httpx2.Response) -> failures.Said:
    """What a refusal says; a broken or oversized body takes nothing from its status and headers."""
    import httpx2

    raw = b""
    with contextlib.suppress(httpx2.HTTPError):
        raw = await body_of(response, MAX_ERROR_BYTES)
    text = raw[:MAX_ERROR_BYTES].decode("utf-8", "replace")
    return failures.said_by(decode(text, text), response.headers, status=response.status_code)


def _structured(answer: str) -> Any:
    """The answer as JSON, also where the model put it into a fence; None where it is none."""
    return decode(unfenced(answer))


def runtime(descriptor: Descriptor) -> OpenAIRuntime:
    return OpenAIRuntime(descriptor)
