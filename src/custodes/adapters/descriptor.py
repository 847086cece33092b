"""``adapter.yaml`` as a Descriptor: what a runtime is, can do, and how its models are metered."""

from __future__ import annotations

from typing import Literal

import msgspec

Capability = Literal[
    "dispatch",
    "model_selection",
    "effort_selection",
    "structured_output",
    "resume",
    "cancel",
    "usage",
    "cost",
    "trace_context",
    "permission_requests",
    "profile_switch",
]


class Price(msgspec.Struct, frozen=True, kw_only=True):
    """USD for each million tokens, with where and when it was read."""

    input: float
    output: float
    source: str
    date: str


class Model(msgspec.Struct, frozen=True, kw_only=True):
    """One model id. ``bucket`` is the pool its provider meters it in; ``argv`` the program that a
    program-like adapter runs for it."""

    id: str
    bucket: str | None = None
    default: bool = False
    label: str = ""
    argv: tuple[str, ...] = ()
    price: Price | None = None


class Entrypoints(msgspec.Struct, frozen=True, kw_only=True):
    dispatch: str | None = None
    transcript: str | None = None
    capabilities: tuple[Capability, ...] = ()


class Cli(msgspec.Struct, frozen=True, kw_only=True):
    """The native program: ``binary`` is looked up on PATH; ``version`` are the arguments that print it."""

    binary: str
    version: tuple[str, ...] = ("--version",)
    minimum: str | None = None


class Endpoint(msgspec.Struct, frozen=True, kw_only=True):
    """A model endpoint. ``base_url_env`` and ``key_env`` name environment variables; never a key itself."""

    base_url: str = ""
    base_url_env: str = ""
    key_env: str = ""


class Readiness(msgspec.Struct, frozen=True, kw_only=True):
    """What the readiness fingerprint looks at: the existence and mtime of files (``~`` allowed), and
    whether variables are set. Never a content or a value."""

    files: tuple[str, ...] = ()
    env: tuple[str, ...] = ()


class Descriptor(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    version: int = 1
    label: str = ""
    provider: str = ""
    runtime_entrypoints: Entrypoints = Entrypoints()
    models: tuple[Model, ...] = ()
    efforts: tuple[str, ...] = ()
    default_effort: str = ""
    dispatch_timeout_s: float = 300
    cli: Cli | None = None
    endpoint: Endpoint | None = None
    readiness: Readiness = Readiness()
    origin: Literal["builtin", "project", "entry_point"] = "builtin"
    folder: str = ""
    """Where its dispatch module stands (the built-in's own folder where a project only overrides)."""

    def can(self, capability: Capability) -> bool:
        return capability in self.runtime_entrypoints.capabilities

    def model(self, model_id: str) -> Model | None:
        return next((m for m in self.models if m.id == model_id), None)

    @property
    def default_model(self) -> str | None:
        """The catalog's default, else its first model, else None (the runtime's own choice)."""
        chosen = next((m for m in self.models if m.default), self.models[0] if self.models else None)
        return chosen.id if chosen else None

    def pool(self, model_id: str | None) -> str:
        """The health key: ``<adapter>:<bucket>``, or ``<adapter>`` where no pool is declared."""
        model = self.model(model_id) if model_id else None
        return f"{self.id}:{model.bucket}" if model and model.bucket else self.id
