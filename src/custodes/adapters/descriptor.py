"""``adapter.yaml`` as a Descriptor: what a runtime is, can do, and how its models are metered.

The Structs are what everyone reads; `describe` makes one of a file's mapping, checking every field
and naming the file and the field that is wrong. It reads no file and runs nothing.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal, get_args
from urllib.parse import urlsplit

import msgspec

from custodes.adapters.errors import DescriptorError, instead, near_miss

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
CAPABILITIES: tuple[Capability, ...] = get_args(Capability)
MODULES = ("dispatch", "transcript", "profile_switch")
"""The entrypoints that name a module of the adapter's folder."""


Operation = Literal["", "chat", "execute_tool", "invoke_agent"]
"""What a runtime's own span is in the words of OpenTelemetry's GenAI conventions; "" for none of them."""


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
    tier: str = ""
    """``fast``, ``balanced`` or ``deep``: which role default it answers. Any other word answers none."""


class Entrypoints(msgspec.Struct, frozen=True, kw_only=True):
    dispatch: str | None = None
    transcript: str | None = None
    profile_switch: str | None = None
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
    default_url: str = ""
    """Where neither ``base_url`` nor the variable says one."""

    def url(self, environ: Mapping[str, str]) -> str:
        """The address in force: ``base_url``, else the variable's, else the default; no slash at its end."""
        stated = environ.get(self.base_url_env, "").strip() if self.base_url_env else ""
        return (self.base_url or stated or self.default_url).rstrip("/")


def is_loopback(url: str) -> bool:
    """Whether a URL's host is this machine by its own spelling (no name is looked up)."""
    try:
        host = urlsplit(url).hostname or ""
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class Readiness(msgspec.Struct, frozen=True, kw_only=True):
    """What the readiness fingerprint looks at: the existence and mtime of files (``~`` allowed), and
    whether variables are set. Never a content or a value."""

    files: tuple[str, ...] = ()
    env: tuple[str, ...] = ()
    programs: bool = False
    """It runs the programs its models name (``argv``): at least one of them must be found."""
    extra: str = ""
    """The extra of Custodes that it needs, which brings a module of the same name."""


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
    spans: dict[str, Operation] = {}
    """By name, those of its own telemetry's spans that may be passed on, where it sends them to the OTLP
    address in its attempt's ``OTEL_EXPORTER_OTLP_ENDPOINT``: it cannot join a trace by itself, or sends far
    more than anybody wants to see."""
    origin: Literal["builtin", "project", "entry_point"] = "builtin"
    folder: str = ""
    """Where its dispatch module stands (the built-in's own folder where a project only overrides)."""

    def can(self, capability: Capability) -> bool:
        return capability in self.runtime_entrypoints.capabilities

    @property
    def binary(self) -> str:
        """Its native program: the one that ``cli`` names, else the one of its own name."""
        return self.cli.binary if self.cli else self.id

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


_STRUCTS: dict[str, type[msgspec.Struct]] = {
    "": Descriptor,
    "runtime_entrypoints": Entrypoints,
    "models[]": Model,
    "models[].price": Price,
    "cli": Cli,
    "endpoint": Endpoint,
    "readiness": Readiness,
}
_OURS = {"origin", "folder"}  # set by the registry, never by a file
_IGNORED: dict[str, frozenset[str]] = {
    # Keys of the original project's descriptors that mean nothing here: warned about, not refused.
    "": frozenset(
        {
            "name",
            "title",
            "description",
            "summary",
            "kind",
            "type",
            "hooks",
            "install",
            "installer",
            "chat",
            "commands",
            "skills",
            "agents",
            "rules",
            "settings",
            "settings_file",
            "instructions",
            "instructions_file",
            "docs",
            "docs_url",
            "homepage",
            "url",
            "repository",
            "status",
            "maturity",
            "icon",
            "color",
            "tags",
            "author",
            "authors",
            "maintainers",
            "license",
            "since",
            "notes",
            "paths",
            "templates",
            "mcp",
            "plugins",
            "permissions",
            "features",
            "detect",
            "requires",
        }
    ),
    "runtime_entrypoints": frozenset({"chat", "hooks"}),
    "models[]": frozenset({"name", "description", "family", "context_window", "notes", "status"}),
    "cli": frozenset({"install", "docs"}),
}
_ID = re.compile(r"[a-z0-9][a-z0-9_.-]{0,63}")
_NAME = re.compile(r"[^\s\x00-\x1f:]+")
_Wrong = Callable[[str, str], DescriptorError]
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def describe(raw: Mapping[str, Any], *, file: Path, default_id: str) -> tuple[Descriptor, tuple[str, ...]]:
    """The Descriptor of one file's mapping, and what in it was ignored.

    :raises DescriptorError: naming ``file`` and the field: an unknown key (with its near miss), a wrong
        type, an id that is no id, two models of one id, two defaults, an effort that is not listed, …
    """
    warnings = tuple(f"{file}: '{where}' is not used by Custodes" for where in _check_keys(raw, file))
    _check_capabilities(raw, file)
    # `models:` with nothing after it is the default, not an error.
    wanted = {key: value for key, value in raw.items() if value is not None}
    wanted.setdefault("id", default_id)
    try:
        found = msgspec.convert(wanted, Descriptor)
    except msgspec.ValidationError as error:
        raise DescriptorError(f"{file}: {_readable(str(error))}") from error
    _check(found, file)
    return found, warnings


def _check_keys(raw: Mapping[str, Any], file: Path) -> list[str]:
    """The ignored keys of a mapping, as paths. :raises DescriptorError: for the first unknown one."""
    ignored: list[str] = []
    for where, shape, key in _keys(raw):
        if key in _fields(shape):
            continue
        if key in _IGNORED.get(shape, ()) or key.startswith("x-"):
            ignored.append(where)
            continue
        raise DescriptorError(f"{file}: unknown key '{where}'; {instead(key, sorted(_fields(shape)))}")
    return ignored


def _check_capabilities(raw: Mapping[str, Any], file: Path) -> None:
    entrypoints = raw.get("runtime_entrypoints")
    named = entrypoints.get("capabilities") if isinstance(entrypoints, Mapping) else None
    for number, capability in enumerate(named if isinstance(named, list) else ()):
        if isinstance(capability, str) and capability not in CAPABILITIES:
            at = f"runtime_entrypoints.capabilities[{number}]"
            hint = instead(capability, CAPABILITIES)
            raise DescriptorError(f"{file}: {at}: unknown capability '{capability}'; {hint}")


def _fields(shape: str) -> set[str]:
    return set(_STRUCTS[shape].__struct_fields__) - _OURS


def _keys(raw: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """Every key of a descriptor's mapping as (path for a person, shape, key)."""
    found: list[tuple[str, str, str]] = []

    def walk(value: Any, path: str, shape: str) -> None:
        if isinstance(value, Mapping) and shape in _STRUCTS:
            for key, inner in value.items():
                here = f"{path}.{key}" if path else str(key)
                found.append((here, shape, str(key)))
                walk(inner, here, f"{shape}.{key}" if shape else str(key))
        elif isinstance(value, list):
            for number, inner in enumerate(value):
                walk(inner, f"{path}[{number}]", f"{shape}[]")

    walk(raw, "", "")
    return found


def _readable(text: str) -> str:
    """msgspec's "Expected `str`, got `int` - at `$.models[0].id`" with the field first."""
    said, _, at = text.partition(" - at ")
    field = at.strip("`").removeprefix("$.")
    said = said.replace("`", "")
    return f"{field}: {said[:1].lower()}{said[1:]}" if field and field != "$" else said


def _check(found: Descriptor, file: Path) -> None:
    def wrong(field: str, why: str) -> DescriptorError:
        return DescriptorError(f"{file}: {field}: {why}")

    if not _ID.fullmatch(found.id):
        raise wrong("id", f"'{found.id}' must be lower-case letters, digits, '-', '_' or '.'")
    if found.version != 1:
        raise wrong("version", f"{found.version} is not known; this Custodes reads version 1")
    if not 0 < found.dispatch_timeout_s <= 7 * 86_400:
        raise wrong("dispatch_timeout_s", "must be above 0 and at most 604800 seconds")
    _check_models(found, wrong)
    if found.default_effort and found.default_effort not in found.efforts:
        hint = near_miss(found.default_effort, found.efforts)
        raise wrong("default_effort", f"'{found.default_effort}' is not one of efforts{hint}")
    if len(set(found.efforts)) != len(found.efforts):
        raise wrong("efforts", "names one effort twice")
    for field in MODULES:
        module = getattr(found.runtime_entrypoints, field)
        if module is not None and not re.fullmatch(r"[A-Za-z_]\w*\.py", module):
            raise wrong(
                f"runtime_entrypoints.{field}",
                f"'{module}' must be the plain name of a Python file in the adapter's folder, as dispatch.py",
            )
    for field in ("dispatch", "profile_switch"):
        if field in found.runtime_entrypoints.capabilities and not getattr(found.runtime_entrypoints, field):
            raise wrong(f"runtime_entrypoints.{field}", f"is missing, but capabilities has '{field}'")
    if found.endpoint is not None:
        _check_endpoint(found.endpoint, wrong)
    if found.cli is not None and not found.cli.binary.strip():
        raise wrong("cli.binary", "must name a program")
    if not re.fullmatch(r"[a-z]*", found.readiness.extra):
        raise wrong("readiness.extra", f"'{found.readiness.extra}' must be an extra's plain name, as acp")


def _check_models(found: Descriptor, wrong: _Wrong) -> None:
    seen: set[str] = set()
    for number, model in enumerate(found.models):
        at = f"models[{number}]"
        if not model.id.strip() or re.search(r"[\x00-\x1f]", model.id):
            raise wrong(f"{at}.id", "must be a model's id")
        if model.id in seen:
            raise wrong(f"{at}.id", f"'{model.id}' is declared twice")
        seen.add(model.id)
        if model.bucket is not None and not _NAME.fullmatch(model.bucket):
            raise wrong(f"{at}.bucket", f"'{model.bucket}' must be a name without spaces or ':'")
        if model.argv and not model.argv[0].strip():
            raise wrong(f"{at}.argv", "its first word must name a program")
        if any("\0" in word for word in model.argv):
            raise wrong(f"{at}.argv", "a word holds a NUL")
    if sum(model.default for model in found.models) > 1:
        raise wrong("models", "more than one of them says default: true")


def _check_endpoint(endpoint: Endpoint, wrong: _Wrong) -> None:
    for field in ("base_url", "default_url"):
        url = getattr(endpoint, field)
        if url and (why := url_problem(url)):
            raise wrong(f"endpoint.{field}", why)
    for field in ("base_url_env", "key_env"):
        name = getattr(endpoint, field)
        if name and not _VARIABLE.fullmatch(name):
            raise wrong(f"endpoint.{field}", "must be the name of an environment variable, never a value")


def url_problem(url: str) -> str:
    """Why a URL cannot be an endpoint's base, without repeating it (it may hold a secret); "" if it can."""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        return "is not a URL"
    if parts.scheme not in ("http", "https") or not host:
        return "must be an http or https URL with a host"
    if parts.username is not None or parts.password is not None:
        return "must not hold a user name or password"
    if parts.query or parts.fragment:
        return "must not hold a query or fragment"
    return ""
