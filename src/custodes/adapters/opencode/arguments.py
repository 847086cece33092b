"""The command line and environment of one attempt."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from custodes.adapters import foreign
from custodes.adapters.port import DispatchRequest
from custodes.adapters.process import base_environment

KEPT = (
    *("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_BASE_URL", "OPENAI_API_KEY", "OPENAI_BASE_URL"),
    *("GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_GENERATIVE_AI_API_KEY", "GOOGLE_CLOUD_PROJECT"),
    *("GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_VERTEX_LOCATION", "VERTEX_LOCATION"),
    *("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE", "AWS_REGION"),
    *("AWS_BEARER_TOKEN_BEDROCK", "AZURE_API_KEY", "AZURE_RESOURCE_NAME", "GITHUB_TOKEN", "OPENCODE_API_KEY"),
    *("OPENROUTER_API_KEY", "GROQ_API_KEY", "MISTRAL_API_KEY", "XAI_API_KEY", "DEEPSEEK_API_KEY"),
    *("CEREBRAS_API_KEY", "TOGETHER_API_KEY", "FIREWORKS_API_KEY", "NVIDIA_API_KEY", "MOONSHOT_API_KEY"),
    *("ZHIPU_API_KEY", "DASHSCOPE_API_KEY", "HF_TOKEN"),
    *("OPENCODE_CONFIG", "OPENCODE_CONFIG_DIR", "OPENCODE_CONFIG_CONTENT"),
)
"""The keys its providers are given by variable, and where its configuration stands."""

READER = "custodes-read-only"
"""An agent of our own: an agent's rules come after all others, so no configuration widens them."""
_READS = ("read", "grep", "glob", "list", "lsp", "todoread", "todowrite")
_RULES = {"*": "deny", **dict.fromkeys(_READS, "allow")}


def arguments(binary: str, request: DispatchRequest) -> list[str]:
    """The prompt goes to standard input: there is no bound on its length there. A title spares the request
    that would make one."""
    argv = [binary, "run", "--format", "json", "--print-logs", "--log-level", "INFO"]
    if request.resume:
        argv += ["--session", request.resume]
    else:
        argv += ["--title", f"custodes {request.role}"[:80]]
    if request.model:
        argv += ["--model", request.model]
    if request.effort:
        argv += ["--variant", request.effort]
    # Without a person every question is answered no; `--auto` answers yes where nothing was denied.
    return [*argv, "--auto"] if request.mutable else [*argv, "--agent", READER]


def environment(request: DispatchRequest, inherited: Mapping[str, str]) -> dict[str, str]:
    environ = {**inherited, **request.environment}
    extra = {
        "OPENCODE_DISABLE_AUTOUPDATE": "1",
        "OPENCODE_DISABLE_MODELS_FETCH": "1",
        "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
        "OPENCODE_DISABLE_SHARE": "1",
        # A repository's configuration may name plugins and servers to run; only a person's own may.
        "OPENCODE_DISABLE_PROJECT_CONFIG": "1",
        "NO_COLOR": "1",
    }
    ours = {"OPENCODE_CONFIG_CONTENT": _configuration(environ.get("OPENCODE_CONFIG_CONTENT", ""))}
    return base_environment({**extra, **request.environment, **ours}, KEPT)


def _configuration(theirs: str) -> str:
    """Ours over what the variable held already."""
    given = foreign.mapping(foreign.decode(theirs))
    agents = {**foreign.mapping(given.get("agent")), READER: {"mode": "primary", "permission": _RULES}}
    return msgspec.json.encode({**given, "autoupdate": False, "share": "disabled", "agent": agents}).decode()
