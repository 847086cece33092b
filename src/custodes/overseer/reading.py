"""Reads ``supervisor.yaml``: every key checked, the file and the field named in every error."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

import anyio.to_thread
import msgspec

from custodes.adapters.descriptor import url_problem
from custodes.adapters.errors import AdapterError, instead
from custodes.adapters.manifest import read_mapping
from custodes.overseer.config import (
    CHANNELS,
    PROGRAM,
    Channel,
    Choice,
    Commands,
    Config,
    Notify,
    ProfileConfig,
    ProviderConfig,
    Recovery,
    Template,
    Usage,
)
from custodes.overseer.probe import MODEL
from custodes.overseer.quota import parse_reset
from custodes.paths import there

FILE = "supervisor.yaml"
S = TypeVar("S", bound=msgspec.Struct)
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_RANGES: dict[str, tuple[float, float]] = {
    "check_interval": (1, 366 * 86_400),
    "health_timeout": (0.001, 3_600),
    "cooldown_minutes": (0, 366 * 1_440),
}
_NAME = re.compile(r"[^\s/\x00-\x1f\x7f-\x9f]{1,200}")


class ConfigError(Exception):
    """``supervisor.yaml`` is not what it must be; names the file and the field, and what would work."""


def find_config(stated: Path | None, environ: Mapping[str, str]) -> Path:
    """The stated file, else the one beside Hermes's own configuration (``HERMES_HOME``, else ``~/.hermes``).

    :raises ConfigError: neither is there.
    """
    beside = (
        Path(environ.get("HERMES_HOME") or Path(environ.get("HOME", "~")).expanduser() / ".hermes") / FILE
    )
    file = stated or beside
    try:
        file = file / FILE if file.is_dir() else file
        found = there(file) and file.is_file()
    except OSError as error:  # a name too long, or a folder that may not be looked into
        raise ConfigError(f"{file} cannot be read: {error.strerror}") from None
    if not found:
        how = "`cos overseer … --config FILE` takes another, and docs/overseer.md has one to start from"
        raise ConfigError(f"there is no {file}" if stated else f"there is no {file}; {how}")
    return file


def read_config(file: Path) -> Config:
    """:raises ConfigError: it cannot be read, or something in it cannot be followed."""
    try:
        raw = read_mapping(file)
    except AdapterError as error:
        raise ConfigError(str(error)) from error
    return parse_config(raw, str(file))


async def default_config() -> Config:
    """The one in its default place, read beside the loop.

    :raises ConfigError: there is none, or it is not as it must be.
    """
    return await anyio.to_thread.run_sync(lambda: read_config(find_config(None, os.environ)))


def parse_config(raw: Mapping[str, Any], file: str) -> Config:
    """The Config of a file's mapping. :raises ConfigError: as :func:`read_config`."""
    return _Reader(file).config(raw)


class _Reader:
    def __init__(self, file: str) -> None:
        self.file = file

    def wrong(self, where: str, why: str) -> ConfigError:
        return ConfigError(f"{self.file}: {where}: {why}")

    def config(self, raw: Mapping[str, Any]) -> Config:
        self.keys(raw, ("supervisor",), "")
        top = self.mapping(raw.get("supervisor"), "supervisor", needed=True)
        fields = [name for name in Config.__struct_fields__ if name != "file"]
        self.keys(top, fields, "supervisor")
        parts: dict[str, Any] = {key: value for key, value in top.items() if value is not None}
        actuator = parts.get("actuator", "")
        parts["providers"] = {
            name: self.provider(name, value)
            for name, value in self.mapping(top.get("providers"), "providers", needed=True).items()
        }
        matrix = self.mapping(top.get("fallback_matrix"), "fallback_matrix", needed=True)
        parts["fallback_matrix"] = {
            name: self.profile(name, value, parts["providers"], actuator) for name, value in matrix.items()
        }
        parts["notify"] = self.notify(self.mapping(top.get("notify"), "notify"))
        parts["recovery"] = self.struct(self.mapping(top.get("recovery"), "recovery"), Recovery, "recovery")
        if "command" in parts:
            parts["command"] = command = self.struct(parts["command"], Commands, "command")
            if not (command.read and command.switch):
                raise self.wrong("command", "'read' and 'switch' each name a program")
        found = self.convert({**parts, "file": self.file}, Config, "supervisor")
        self.check(found)
        return found

    def provider(self, name: str, raw: Any) -> ProviderConfig:
        where = f"providers.{name}"
        if not _NAME.fullmatch(name):
            raise self.wrong(where, "a provider's name has no blank, no '/', and 200 characters at most")
        if not self.mapping(raw, where, needed=True).get("health_url"):
            raise self.wrong(where, "has no 'health_url', as https://api.example/v1/models")
        found = self.struct(raw, ProviderConfig, where, nested={"usage": Usage, "switch": Template})
        urls = {"health_url": found.health_url, "usage.url": found.usage.url if found.usage else ""}
        if found.switch and found.switch.base_url:
            urls["switch.base_url"] = found.switch.base_url
        for field, url in urls.items():
            if url and (why := url_problem(url)):
                raise self.wrong(f"{where}.{field}", why)
        if found.key_env and not _VARIABLE.fullmatch(found.key_env):
            raise self.wrong(f"{where}.key_env", "must be the name of an environment variable, never a key")
        if found.key_env and found.key_command:
            raise self.wrong(where, "has both key_env and key_command; one of them would work")
        if not found.expect or not all(100 <= status <= 599 for status in found.expect):
            raise self.wrong(f"{where}.expect", "must be a list of HTTP statuses, as [200]")
        for model in found.models:
            if not MODEL.fullmatch(model):
                raise self.wrong(f"{where}.models", f"{model!r} is no model's id")
        if found.slow_seconds is not None and not 0 < found.slow_seconds <= _RANGES["health_timeout"][1]:
            raise self.wrong(f"{where}.slow_seconds", "must be above 0 and 3600 at most")
        for pool in found.pools:
            if not all(pool.partition(":")):
                raise self.wrong(f"{where}.pools", f"{pool!r} is no pool; one is adapter:bucket")
        try:
            parse_reset(found.quota_reset)
        except ValueError as error:
            raise self.wrong(f"{where}.quota_reset", str(error)) from error
        return found

    def profile(
        self, name: str, raw: Any, providers: Mapping[str, ProviderConfig], actuator: Any
    ) -> ProfileConfig:
        where = f"fallback_matrix.{name}"
        if not _NAME.fullmatch(name) or name.startswith("-"):
            raise self.wrong(where, "a profile's name has no blank and no '/', and begins with no '-'")
        row = dict(self.mapping(raw, where, needed=True))
        self.keys(row, ProfileConfig.__struct_fields__, where)
        if "primary" not in row:
            raise self.wrong(where, "has no 'primary', as in primary: provider/model")
        row["primary"] = self.choice(row["primary"], f"{where}.primary", providers)
        fallbacks = [] if row.get("fallbacks") is None else row["fallbacks"]
        if not isinstance(fallbacks, list):
            raise self.wrong(f"{where}.fallbacks", "must be a list, as [provider/model, provider/model]")
        row["fallbacks"] = tuple(
            self.choice(value, f"{where}.fallbacks[{number}]", providers)
            for number, value in enumerate(fallbacks)
        )
        row.setdefault("actuator", actuator)
        found = self.convert(row, ProfileConfig, where)
        if found.last_resort and found.last_resort not in providers:
            hint = instead(found.last_resort, providers)
            raise self.wrong(f"{where}.last_resort", f"there is no provider '{found.last_resort}'; {hint}")
        self.together(found, where, providers)
        return found

    def together(self, profile: ProfileConfig, where: str, providers: Mapping[str, ProviderConfig]) -> None:
        """Provider, model and base URL move together: what one choice sets, every other must set, too."""
        names = profile.providers
        for field in ("provider", "base_url"):
            having = {
                name for name in names if getattr(providers[name].switch or Template(), field) is not None
            }
            if having and having != names:
                without, example = min(names - having), min(having)
                raise self.wrong(
                    where,
                    f"providers.{example}.switch states {field} and providers.{without}.switch does not: "
                    f"a switch between them would leave the other's behind; state it in both",
                )

    def choice(self, value: Any, where: str, providers: Mapping[str, ProviderConfig]) -> Choice:
        provider, slash, model = value.partition("/") if isinstance(value, str) else ("", "", "")
        if not slash or not provider or not MODEL.fullmatch(model):
            raise self.wrong(where, f"{value!r} must be provider/model, as grok-cli/grok-4.5")
        if provider not in providers:
            raise self.wrong(where, f"there is no provider '{provider}'; {instead(provider, providers)}")
        return Choice(provider, model)

    def notify(self, raw: Mapping[str, Any]) -> Notify:
        self.keys(raw, (*CHANNELS, "log", "spacing", "channels"), "notify")
        channels = []
        for name in CHANNELS:
            wanted = raw.get(name)
            if not isinstance(wanted, bool | None):
                raise self.wrong(f"notify.{name}", "must be true or false; its address comes by a variable")
            if wanted:
                channels.append(Channel(name=name, url_env=f"CUSTODES_NOTIFY_{name.upper()}"))
        for name, value in self.mapping(raw.get("channels"), "notify.channels").items():
            where = f"notify.channels.{name}"
            variable = self.mapping(value, where, needed=True).get("url_env")
            self.keys(value, ("url_env",), where)
            if not isinstance(variable, str) or not _VARIABLE.fullmatch(variable):
                raise self.wrong(
                    f"{where}.url_env", "must be the name of the variable that holds its address"
                )
            channels.append(Channel(name=name, url_env=variable))
        rest = {key: raw[key] for key in ("log", "spacing") if raw.get(key) is not None}
        return self.convert({**rest, "channels": tuple(channels)}, Notify, "notify")

    def check(self, found: Config) -> None:
        for field, (least, most) in _RANGES.items():
            if not least <= getattr(found, field) <= most:
                raise self.wrong(f"supervisor.{field}", f"must be {least:g} to {most:.0f}")
        if found.recovery.checks < 1 or not 0 <= found.recovery.spacing <= 86_400:
            raise self.wrong("recovery", "checks must be 1 or more, spacing 0 to 86400 seconds")
        if not 0 <= found.notify.spacing <= 86_400:
            raise self.wrong("notify.spacing", "must be 0 to 86400 seconds")
        for name, profile in found.fallback_matrix.items():
            if profile.actuator == PROGRAM and found.command is None:
                why = "the actuator 'command' needs supervisor.command with 'read' and 'switch'"
                raise self.wrong(f"fallback_matrix.{name}.actuator", why)
        for name, provider in found.providers.items():
            if provider.probe == "completion" and not (provider.probe_model or found.models_of(name)):
                raise self.wrong(f"providers.{name}.probe_model", "a completion must name a model")

    # -- Pieces

    def struct(
        self, raw: Any, kind: type[S], where: str, nested: Mapping[str, type[msgspec.Struct]] | None = None
    ) -> S:
        row = dict(self.mapping(raw, where, needed=True))
        self.keys(row, kind.__struct_fields__, where)
        for field, inner in (nested or {}).items():
            if row.get(field) is not None:
                row[field] = self.struct(row[field], inner, f"{where}.{field}")
        return self.convert({key: value for key, value in row.items() if value is not None}, kind, where)

    def convert(self, row: Mapping[str, Any], kind: type[S], where: str) -> S:
        try:
            return msgspec.convert(row, kind, strict=True, from_attributes=True)
        except msgspec.ValidationError as error:
            said, _, at = str(error).partition(" - at ")
            field = at.strip("`").removeprefix("$")
            said = said.replace("`", "")
            raise self.wrong(f"{where}{field}", said[:1].lower() + said[1:]) from error

    def mapping(self, value: Any, where: str, *, needed: bool = False) -> Mapping[str, Any]:
        if value is None and not needed:
            return {}
        if not isinstance(value, Mapping):
            raise self.wrong(where, "is missing" if value is None else "must be a mapping of keys")
        return value

    def keys(self, raw: Mapping[str, Any], known: Any, where: str) -> None:
        for key in raw:
            if key not in known and not key.startswith("x-"):
                at = f"{where}.{key}" if where else key
                raise ConfigError(f"{self.file}: unknown key '{at}'; {instead(key, sorted(known))}")
