"""Codex's command line and environment for one request."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from custodes.adapters.foreign import mapping
from custodes.adapters.port import DispatchRequest
from custodes.adapters.process import base_environment
from custodes.adapters.traces import Exporter, exporter

_KEPT = ("CODEX_HOME", "CODEX_API_KEY", "CODEX_ACCESS_TOKEN", "OPENAI_API_KEY", "CODEX_CA_CERTIFICATE")
_LOG = "off,codex_core::responses_retry=warn"
"""Its log on standard error: only the line that says how long it means to wait before a retry."""


def arguments(
    binary: str, request: DispatchRequest, model: str, schema_file: str, traces: Exporter | None
) -> list[str]:
    """The prompt is not among them: ``-`` reads it from standard input, where it may be of any length.

    No retries are set: they belong to the provider the user chose, and the built-in one takes none. What
    bounds them is `stream`.
    """
    words = [binary, "exec", "--json", "--color", "never", "--skip-git-repo-check", "--model", model]
    words += ["--sandbox", "workspace-write" if request.mutable else "read-only"]
    for setting in ("check_for_update_on_startup=false", "analytics.enabled=false", 'otel.exporter="none"'):
        words += ["-c", setting]
    if traces is not None:
        words += ["-c", f"otel.trace_exporter={_exporter(traces)}"]
    words += ["--disable", "plugins"]  # it would fetch its catalog of plugins at every start
    if request.effort:
        words += ["-c", f'model_reasoning_effort="{request.effort}"']
    if schema_file:
        words += ["--output-schema", schema_file]
    return [*words, "resume", request.resume, "-"] if request.resume else [*words, "-"]


def environment(request: DispatchRequest, environ: Mapping[str, str]) -> dict[str, str]:
    """What Codex needs: its login, its home, and the keys its own configuration says it reads."""
    both = {**environ, **request.environment}
    home = Path(both.get("CODEX_HOME") or Path(both.get("HOME") or "~").expanduser() / ".codex")
    kept = (*_KEPT, *named_variables(home / "config.toml"))
    login = {name: environ[name] for name in kept if name in environ}
    found = exporter(request.environment, environ)
    traced = found.variables if found else {}
    return base_environment({**login, **traced, "RUST_LOG": _LOG, "NO_COLOR": "1", **request.environment})


def _exporter(traces: Exporter) -> str:
    """The TOML of an exporter. Its headers come from the environment: a command line is no place for them."""
    endpoint = msgspec.json.encode(traces.endpoint).decode()  # a JSON string is a TOML string
    if traces.protocol == "grpc":
        return f"{{otlp-grpc={{endpoint={endpoint}}}}}"
    protocol = "json" if traces.protocol == "http/json" else "binary"
    return f'{{otlp-http={{endpoint={endpoint},protocol="{protocol}"}}}}'


def named_variables(config: Path) -> list[str]:
    """The environment variables a configuration names for its providers' keys and headers; none where
    there is no configuration that can be read (Codex itself then says what is wrong with it)."""
    try:
        settings = tomllib.loads(config.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return []
    return sorted(set(_names(settings)))


def _names(settings: Mapping[str, object]) -> Iterator[str]:
    for provider in mapping(settings.get("model_providers")).values():
        stated = mapping(provider)
        for name in (stated.get("env_key"), *mapping(stated.get("env_http_headers")).values()):
            if isinstance(name, str):
                yield name
