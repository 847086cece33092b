"""The command line and environment of one attempt. No I/O but the question whether a file is there."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from custodes.adapters.port import DispatchRequest
from custodes.adapters.process import base_environment
from custodes.adapters.traces import is_relayed

HOME = Path(__file__).parent
KEPT = (
    *("GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_GEMINI_BASE_URL", "GOOGLE_VERTEX_BASE_URL"),
    *("GOOGLE_GENAI_USE_VERTEXAI", "GOOGLE_GENAI_USE_GCA", "GOOGLE_APPLICATION_CREDENTIALS"),
    *("GOOGLE_CLOUD_PROJECT", "GOOGLE_CLOUD_PROJECT_ID", "GOOGLE_CLOUD_LOCATION", "CODE_ASSIST_ENDPOINT"),
    *("GEMINI_CLI_HOME", "GEMINI_CLI_SYSTEM_SETTINGS_PATH", "GEMINI_CLI_SYSTEM_DEFAULTS_PATH"),
)
"""Its login, its endpoint and its administrator's settings: nothing else of ours reaches it."""
_RELAYED = {
    "GEMINI_TELEMETRY_ENABLED": "true",
    "GEMINI_TELEMETRY_TRACES_ENABLED": "true",
    "GEMINI_TELEMETRY_TARGET": "local",
    "GEMINI_TELEMETRY_USE_COLLECTOR": "true",
    "GEMINI_TELEMETRY_OTLP_PROTOCOL": "http",
    "GEMINI_TELEMETRY_LOG_PROMPTS": "false",
}
ADMINISTRATOR = Path("/etc/gemini-cli")


def arguments(binary: str, request: DispatchRequest, model: str) -> list[str]:
    """The prompt goes to standard input: there is no bound on its length there."""
    argv = [binary, "--output-format", "stream-json", "--model", model, "--skip-trust"]
    # A repository may name servers to start; without a person's word none of them is.
    argv += ["--allowed-mcp-server-names", "none"]
    if request.resume:
        argv += ["--resume", request.resume]
    if request.mutable:
        return [*argv, "--approval-mode", "yolo"]
    rules = str(HOME / "read_only.toml")
    # Where an administrator has policies of his own, the second is ignored and the first still holds.
    return [*argv, "--approval-mode", "plan", "--policy", rules, "--admin-policy", rules]


def environment(request: DispatchRequest, inherited: Mapping[str, str]) -> dict[str, str]:
    """Ours over what it needs. Settings files of an administrator stay in force instead of ours."""
    environ = {**inherited, **request.environment}
    extra = {"GEMINI_CLI_NO_RELAUNCH": "true", "NO_COLOR": "1", "GEMINI_TELEMETRY_ENABLED": "false"}
    if is_relayed(request.environment):
        extra |= _RELAYED
    if "GEMINI_CLI_SYSTEM_SETTINGS_PATH" not in environ and not (ADMINISTRATOR / "settings.json").exists():
        extra["GEMINI_CLI_SYSTEM_SETTINGS_PATH"] = str(HOME / "settings.json")
    # With an endpoint of its own it would guess a login that it cannot do; a person's choice wins over this.
    keyed = environ.get("GEMINI_API_KEY") and environ.get("GOOGLE_GEMINI_BASE_URL")
    if keyed and "GEMINI_CLI_SYSTEM_DEFAULTS_PATH" not in environ:
        extra["GEMINI_CLI_SYSTEM_DEFAULTS_PATH"] = str(HOME / "key.json")
    return base_environment({**extra, **request.environment}, KEPT)
