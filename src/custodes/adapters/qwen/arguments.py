"""The command line and environment of one attempt."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

import msgspec

from custodes.adapters.port import DispatchRequest
from custodes.adapters.process import base_environment
from custodes.adapters.schemas import rooted
from custodes.adapters.traces import is_relayed

HOME = Path(__file__).parent
KEPT = (
    *("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_MODEL", "QWEN_API_KEY", "QWEN_BASE_URL", "QWEN_MODEL"),
    *("DASHSCOPE_API_KEY", "BAILIAN_CODING_PLAN_API_KEY", "MODELSCOPE_API_KEY", "OPENROUTER_API_KEY"),
    *("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_BASE_URL", "ANTHROPIC_MODEL"),
    *("GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_CLOUD_PROJECT", "GOOGLE_CLOUD_LOCATION"),
    *("QWEN_HOME", "QWEN_RUNTIME_DIR", "QWEN_DEFAULT_AUTH_TYPE", "QWEN_TLS_INSECURE"),
    *("QWEN_CODE_SYSTEM_SETTINGS_PATH", "QWEN_CODE_SYSTEM_DEFAULTS_PATH"),
)
"""Its logins, its endpoints and its administrator's settings: nothing else of ours reaches it."""
ADMINISTRATOR = Path("/etc/qwen-code/settings.json")
CHANGING = (
    *("run_shell_command", "write_file", "edit", "notebook_edit", "exit_plan_mode", "save_memory"),
    *("cron_create", "cron_delete", "enter_worktree", "exit_worktree", "record_artifact"),
)
"""Tools that read-only work does not get, whatever a person's settings allow. Plan mode alone leaves some."""


_RELAYED = {
    "QWEN_TELEMETRY_ENABLED": "true",
    "QWEN_TELEMETRY_TARGET": "local",
    "QWEN_TELEMETRY_OTLP_PROTOCOL": "http",
    "QWEN_TELEMETRY_LOG_PROMPTS": "false",
}


def program(binary: str, path: str | None) -> list[str]:
    """The program itself. Its usual entry starts a second process that outlives a TERM."""
    found = shutil.which(binary, path=path)
    if found is not None:
        entry = Path(os.path.realpath(found))
        if entry.name == "cli-entry.js" and entry.with_name("cli.js").is_file():
            return ["node", str(entry.with_name("cli.js"))]
    return [binary]


def arguments(program: list[str], request: DispatchRequest, session: str) -> list[str]:
    """The prompt goes to standard input: there is no bound on its length there."""
    argv = [*program, "--output-format", "stream-json", "--include-partial-messages"]
    argv += ["--resume" if request.resume else "--session-id", session]
    # A repository may name servers to start; without a person's word none of them is.
    argv += ["--allowed-mcp-server-names", "none"]
    if request.model:
        argv += ["--model", request.model]
    if request.schema is not None:
        argv += ["--json-schema", msgspec.json.encode(rooted(request.schema)).decode()]
    if request.mutable:
        return [*argv, "--approval-mode", "yolo"]
    return [
        *argv,
        "--approval-mode",
        "plan",
        *(word for tool in CHANGING for word in ("--exclude-tools", tool)),
    ]


def environment(request: DispatchRequest, inherited: Mapping[str, str]) -> dict[str, str]:
    """Ours over what it needs. Settings files of an administrator stay in force instead of ours."""
    environ = {**inherited, **request.environment}
    extra = {
        "QWEN_CODE_NO_RELAUNCH": "1",
        "QWEN_CODE_SUPPRESS_YOLO_WARNING": "1",
        "QWEN_DEBUG_LOG_FILE": "1",
        "QWEN_TELEMETRY_ENABLED": "0",
        "QWEN_USAGE_STATISTICS_ENABLED": "0",
        "NO_COLOR": "1",
    }
    if is_relayed(request.environment):
        extra |= _RELAYED
    if "QWEN_CODE_SYSTEM_SETTINGS_PATH" not in environ and not ADMINISTRATOR.exists():
        extra["QWEN_CODE_SYSTEM_SETTINGS_PATH"] = str(HOME / "settings.json")
    # Without a choice in its settings it refuses to start; a person's choice there wins over this.
    if environ.get("OPENAI_API_KEY") and "QWEN_CODE_SYSTEM_DEFAULTS_PATH" not in environ:
        extra["QWEN_CODE_SYSTEM_DEFAULTS_PATH"] = str(HOME / "key.json")
    return base_environment({**extra, **request.environment}, KEPT)
