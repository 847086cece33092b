"""The command line and environment of one attempt."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from custodes.adapters.port import DispatchRequest
from custodes.adapters.process import base_environment

MANAGED = Path(__file__).parent / "managed"
KEPT = (
    *("HERMES_HOME", "HERMES_MANAGED_DIR", "HERMES_INFERENCE_MODEL", "HERMES_INFERENCE_PROVIDER"),
    *("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENROUTER_API_KEY", "NOUS_API_KEY", "NOUS_INFERENCE_BASE_URL"),
    *("ANTHROPIC_API_KEY", "ANTHROPIC_TOKEN", "ANTHROPIC_BASE_URL", "GOOGLE_API_KEY", "GEMINI_API_KEY"),
    *("DEEPSEEK_API_KEY", "GLM_API_KEY", "KIMI_API_KEY", "MINIMAX_API_KEY", "DASHSCOPE_API_KEY"),
    *("XAI_API_KEY", "MISTRAL_API_KEY", "HF_TOKEN", "NVIDIA_API_KEY", "AI_GATEWAY_API_KEY"),
)
"""Its home, and the keys its providers are given by variable."""
ADMINISTRATOR = Path("/etc/hermes")
READING = "file,todo"
"""What read-only work gets. The files' set can write too: the folder it may write to is then an empty one."""


def arguments(binary: str, request: DispatchRequest, report: Path) -> list[str]:
    """The prompt is a word of the command line, the only way in, so the system bounds its length."""
    argv = [binary, f"--oneshot={request.prompt}", "--usage-file", str(report)]
    if request.model:
        argv += ["--model", request.model]
    return argv if request.mutable else [*argv, "--toolsets", READING]


def environment(request: DispatchRequest, inherited: Mapping[str, str], empty: Path) -> dict[str, str]:
    """Ours over what it needs. An administrator's configuration stays in force instead of ours."""
    environ = {**inherited, **request.environment}
    extra = {"NO_COLOR": "1"}
    if "HERMES_MANAGED_DIR" not in environ and not ADMINISTRATOR.is_dir():
        extra["HERMES_MANAGED_DIR"] = str(MANAGED)
    bound = {} if request.mutable else {"HERMES_WRITE_SAFE_ROOT": str(empty)}
    return base_environment({**extra, **request.environment, **bound}, KEPT)
