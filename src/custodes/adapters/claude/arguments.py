"""Claude Code's command line and environment for one request."""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec

from custodes.adapters.port import DispatchRequest
from custodes.adapters.process import base_environment
from custodes.adapters.schemas import rooted
from custodes.adapters.traces import exporter

READ_TOOLS = ("Read", "Grep", "Glob", "WebFetch", "WebSearch")
"""All the tools of read-only work. None of them writes a file or starts a program, so nothing in a user's or
a project's own settings can widen it. (With a shell, the runtime would fold searching into it.)"""
INTERNAL_RETRIES = 2
"""Of a failed request. A limit is not waited for at all (`stream`), but only a retry it means to make is
announced, so this is never 0."""

_KEPT = (
    *("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_BASE_URL", "ANTHROPIC_CUSTOM_HEADERS"),
    *("CLAUDE_CODE_OAUTH_TOKEN", "CLAUDE_CONFIG_DIR"),
)
_CLOUDS = {
    "CLAUDE_CODE_USE_BEDROCK": r"AWS_\w+|ANTHROPIC_BEDROCK_\w+|CLAUDE_CODE_SKIP_BEDROCK_AUTH",
    "CLAUDE_CODE_USE_VERTEX": (
        r"ANTHROPIC_VERTEX_\w+|CLOUD_ML_REGION|VERTEX_REGION_\w+|GOOGLE_APPLICATION_CREDENTIALS|GOOGLE_CLOUD_\w+"
    ),
}
"""The switch of a cloud that serves the models, and what its login needs."""
_QUIET = {
    "DISABLE_TELEMETRY": "1",
    "DISABLE_ERROR_REPORTING": "1",
    "DISABLE_AUTOUPDATER": "1",
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "CLAUDE_CODE_MAX_RETRIES": str(INTERNAL_RETRIES),
    "NO_COLOR": "1",
    # The log of its HTTP client, for the headers of a refusal (`stream`): heads only, keys hidden.
    "ANTHROPIC_LOG": "debug",
}
_TRACED = {
    "CLAUDE_CODE_ENABLE_TELEMETRY": "1",
    "CLAUDE_CODE_ENHANCED_TELEMETRY_BETA": "1",
    "OTEL_TRACES_EXPORTER": "otlp",
    "OTEL_METRICS_EXPORTER": "none",
    "OTEL_LOGS_EXPORTER": "none",
}
"""Its spans into the operator's own collector, and nothing else of it."""


def arguments(binary: str, request: DispatchRequest, model: str) -> list[str]:
    """The prompt is not among them: it goes to standard input (`control`), where it may be of any length."""
    words = [binary, "--print", "--input-format", "stream-json", "--output-format", "stream-json"]
    words += ["--verbose", "--model", model, "--permission-prompt-tool", "stdio"]
    if request.effort:
        words += ["--effort", request.effort]
    if request.schema is not None:
        words += ["--json-schema", msgspec.json.encode(rooted(request.schema)).decode()]
    if request.resume:
        words += ["--resume", request.resume]
    if request.mutable:
        # With somebody to ask it would also put questions, which "allow" and "deny" do not answer.
        return [*words, "--permission-mode", "acceptEdits", "--disallowedTools", "AskUserQuestion"]
    # A user's MCP servers may do anything at all, so read-only work has none.
    return [*words, "--permission-mode", "plan", "--tools", ",".join(READ_TOOLS), "--strict-mcp-config"]


def environment(request: DispatchRequest, environ: Mapping[str, str]) -> dict[str, str]:
    """What Claude Code needs: its login, its configuration, a cloud's login where it is told to use one."""
    kept = [name for name in _KEPT if name in environ]
    for switch, names in _CLOUDS.items():
        if environ.get(switch):
            kept += [switch, *(name for name in environ if re.fullmatch(names, name))]
    login = {name: environ[name] for name in kept}
    found = exporter(request.environment, environ)
    traced = {**_TRACED, **found.variables} if found else {}
    return base_environment({**login, **_QUIET, **traced, **request.environment})
