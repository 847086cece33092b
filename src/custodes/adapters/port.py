"""The port between dispatch and a runtime: what is asked, what comes back, what is told meanwhile.

An adapter turns its runtime's own events into these Structs and nothing else crosses the border:
no provider object, no transcript, no secret.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Literal, Protocol
from urllib.parse import urlsplit

import msgspec

Category = Literal["capacity", "auth", "unavailable", "timeout", "provider", "invalid"]
Certainty = Literal["known_failed", "unknown"]


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """A normalized failure (seed 000, "Normalized failure metadata").

    ``retry_after_s`` is the provider's stated wait in whole seconds, rounded up; None where it
    stated none. ``reason`` is composed by us and safe to store: never provider text, never a secret.
    """

    category: Category
    reason: str
    retryable: bool = False
    retry_after_s: int | None = None
    outcome: Certainty = "unknown"
    overloaded: bool = False
    """The provider is overloaded (503, 529): no quota of ours, a short mark at most."""
    accepted: bool = False
    """The runtime had begun the work (output or tool activity was seen)."""
    left: tuple[str, ...] = ()
    """What could not be proven to have ended, by name and pid. While it lives, the scope stays held."""


class Usage(msgspec.Struct, frozen=True, kw_only=True):
    """What the runtime says it used: tokens as integers, cost in USD. None where it says nothing."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_input_tokens: int | None = None
    cost_usd: float | None = None


class PermissionAsk(msgspec.Struct, frozen=True, kw_only=True):
    """What a runtime asks leave for while it works. ``tool`` is its own name for it, ``detail`` what the
    person who decides has to see (a command, a path), bounded to 2,000 characters by the adapter."""

    tool: str
    detail: str = ""


PermissionAnswer = Literal["allow", "deny"]

Permit = Callable[[PermissionAsk], Awaitable[PermissionAnswer]]
"""Asks whoever decides, and waits for the answer; unanswered in time it is ``deny``. It never raises but
under cancellation."""


RUN_VARIABLE = "CUSTODES_RUN"
"""What every descendant of an attempt carries, with its run id: how those that are left are found."""


class DispatchRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One attempt, fully resolved. ``timeout_s`` is the supervisor's own deadline in seconds."""

    run_id: str
    role: str
    prompt: str
    mutable: bool
    cwd: str
    timeout_s: float
    model: str | None = None
    effort: str | None = None
    schema: dict[str, Any] | None = None
    """JSON Schema of the wanted evidence, for runtimes that can enforce one."""
    environment: dict[str, str] = {}
    """Variables this attempt must carry (``CUSTODES_RUN``, ``TRACEPARENT``, …), over the adapter's own."""
    resume: str | None = None
    """The native id of an earlier thread to go on with. `invalid` without the capability ``resume``."""
    permit: Permit | None = None
    """Who is asked what the runtime wants leave for, by an adapter with the capability
    ``permission_requests``; None: it is denied. What read-only work must not do is denied without asking."""


class DispatchResult(msgspec.Struct, frozen=True, kw_only=True):
    """What one attempt came to. Success needs ``failure is None``: the runtime's positive completion."""

    text: str = ""
    """The final answer, bounded; empty on failure."""
    structured: Any = None
    """The final answer as a JSON value, where the runtime itself produced one."""
    failure: Failure | None = None
    usage: Usage | None = None
    native_thread_id: str | None = None
    served_model: str | None = None


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    """A thing the runtime was seen doing. ``output`` is the first or further model output (never a
    banner): the first one confirms a probe. ``pid`` comes with ``started``, ``chars`` with ``output``."""

    kind: Literal["started", "output", "tool", "usage", "retrying"]
    pid: int | None = None
    chars: int | None = None
    tool: str | None = None
    usage: Usage | None = None


class Transcript(msgspec.Struct, frozen=True, kw_only=True):
    """Where a native thread stands on this machine, and the command that goes on with it, typed in its
    working folder. Empty where neither is known."""

    place: str | None = None
    """The file; None where it is not there (any more)."""
    command: tuple[str, ...] = ()


class FindTranscript(Protocol):
    """What the module that an adapter names as ``transcript`` holds, by the name ``transcript``."""

    def __call__(self, native_id: str, environ: Mapping[str, str]) -> Transcript:
        """By the id of a thread alone, and the variables that say where its runtime keeps things.

        It reads no content and runs nothing. What is no id of its kind names nothing: it comes from a
        record, and becomes part of a path and a command.
        """
        ...


class ProfileSetting(msgspec.Struct, frozen=True, kw_only=True):
    """Which model a profile of a runtime works on, and where. None: not stated, and so not compared.

    ``model`` is what the runtime itself calls it.
    """

    model: str
    provider: str | None = None
    base_url: str | None = None

    def holds(self, wanted: ProfileSetting) -> bool:
        """Whether this, as it was read, is what is wanted in every field that is stated there."""
        stated = ((wanted.provider, self.provider), (wanted.base_url, self.base_url))
        return self.model == wanted.model and all(want is None or want == here for want, here in stated)

    def __str__(self) -> str:
        where = [part for part in (self.provider, _place(self.base_url or "")) if part]
        return f"{self.model} ({', '.join(where)})" if where else self.model


def _place(url: str) -> str:
    """A URL without what may be a secret in it; "" where it is none."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return ""
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}" if parts.netloc else ""


class SwitchError(Exception):
    """A profile cannot be read or set. ``changed`` says that it no longer stands as it did before: then a
    person has to look. The text holds no secret and nothing of the profile's other settings."""

    def __init__(self, message: str, *, changed: bool = False) -> None:
        super().__init__(message)
        self.changed = changed


class ProfileSwitch(Protocol):
    """Sets the model of a runtime's profiles. Made once for each adapter that can (capability
    ``profile_switch``) by its module's ``profile_switch(descriptor: Descriptor) -> ProfileSwitch``."""

    async def read(self, profile: str) -> ProfileSetting:
        """What is set now. It changes nothing. :raises SwitchError: there is no such profile, or it cannot
        be read."""
        ...

    async def switch(self, profile: str, wanted: ProfileSetting, expected: ProfileSetting) -> None:
        """Set model, provider and address together, or none of them, and prove it by reading back.

        Cancelled, or after an error without ``changed``, the profile stands as it did.

        :raises SwitchError: it does not stand as ``expected`` any more, or could not be set.
        """
        ...

    async def recover(self, profile: str) -> bool:
        """Put right what a switch left that was killed half way: it then stands as before it, or as after
        it. Whether there was anything. :raises SwitchError: it cannot be; a person has to look."""
        ...


ProgressSink = Callable[[Progress], None]
"""Called from the attempt's task; returns at once and never raises."""


class Runtime(Protocol):
    """One runtime, ready to be called. Made once for each adapter by its dispatch module's
    ``runtime(descriptor: Descriptor) -> Runtime``."""

    async def dispatch(self, request: DispatchRequest, progress: ProgressSink) -> DispatchResult:
        """Do the work and say what came of it.

        Provider and runtime errors come back as ``failure``, never as an exception. Under
        cancellation everything that was started is ended, with proof, before the cancellation goes on.
        ``request.timeout_s`` is enforced here and gives category ``timeout``, outcome ``unknown``.
        """
        ...
