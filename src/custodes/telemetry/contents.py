"""What the operator may ask for beside names and numbers: prompts, answers, what tools take and return.

Nothing of it is recorded unless asked for, and all of it is redacted: no setting turns that off.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from functools import cache

import msgspec

from custodes.telemetry.values import text

MAX_CONTENT = 16_384
"""Characters of one content. A span of megabytes would cost its batch."""
BLOT = "[redacted]"

SYSTEM_INSTRUCTIONS = "gen_ai.system_instructions"
INPUT_MESSAGES = "gen_ai.input.messages"
OUTPUT_MESSAGES = "gen_ai.output.messages"
TOOL_ARGUMENTS = "gen_ai.tool.call.arguments"
TOOL_RESULT = "gen_ai.tool.call.result"


class Contents(msgspec.Struct, frozen=True, kw_only=True):
    """Which contents are exported; none by default."""

    prompts: bool = False
    outputs: bool = False
    tool_arguments: bool = False

    @property
    def attributes(self) -> frozenset[str]:
        """The conventions' names of what is wanted."""
        wanted = {INPUT_MESSAGES, SYSTEM_INSTRUCTIONS} if self.prompts else set()
        wanted |= {OUTPUT_MESSAGES} if self.outputs else set()
        return frozenset(wanted | ({TOOL_ARGUMENTS, TOOL_RESULT} if self.tool_arguments else set()))

    def said(self, *, prompt: str = "", output: str = "") -> dict[str, str]:
        """Of one call, as messages in the form of the conventions; what is not wanted is not there."""
        found = {}
        if prompt and self.prompts:
            found[INPUT_MESSAGES] = _message("user", prompt)
        if output and self.outputs:
            found[OUTPUT_MESSAGES] = _message("assistant", output)
        return found


def safe(content: str) -> str:
    """A content as it may leave the process: without what is, or looks like, a secret; bounded.

    What is a secret: the values of this process's own variables whose names say so. What looks like one:
    the known shapes of keys and tokens, private keys, and what stands after a word as ``password=``.
    """
    for redact in (_own_secrets(), _shapes()):
        content = redact(content)
    return text(content, MAX_CONTENT)


def _message(role: str, content: str) -> str:
    parts = [{"type": "text", "content": safe(content)}]
    return msgspec.json.encode([{"role": role, "parts": parts}]).decode()


_NAME = re.compile(r"KEY|TOKEN|SECRET|PASSW|CREDENTIAL|COOKIE|AUTH|HEADERS", re.IGNORECASE)
_SHORTEST = 8  # a shorter value is a word like any other


@cache
def _own_secrets() -> Callable[[str], str]:
    return blotting(os.environ)


def blotting(environ: Mapping[str, str]) -> Callable[[str], str]:
    """Blots out the values of these variables whose names say that they are secret."""
    secrets = {value for name, value in environ.items() if _NAME.search(name) and len(value) >= _SHORTEST}
    if not secrets:
        return lambda content: content
    either = re.compile("|".join(re.escape(secret) for secret in sorted(secrets, key=len, reverse=True)))
    return lambda content: either.sub(BLOT, content)


@cache
def _shapes() -> Callable[[str], str]:
    whole = re.compile(
        r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)"
        r"|\b(?:sk|pk|rk)[-_][A-Za-z0-9_-]{16,}"  # OpenAI, Anthropic, Stripe and others
        r"|\bgh[pousr]_[A-Za-z0-9]{20,}|\bgithub_pat_\w{20,}|\bglpat-[\w-]{16,}"
        r"|\bxox[abeoprs]-[\w-]{10,}|\bhf_[A-Za-z0-9]{20,}|\bnpm_[A-Za-z0-9]{20,}|\bpypi-[\w-]{20,}"
        r"|\bA(?:KIA|SIA)[A-Z0-9]{16}\b|\bAIza[\w-]{20,}|\bya29\.[\w-]{20,}"
        r"|\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*",  # a JSON web token
        re.DOTALL,
    )
    named = re.compile(
        r"(?i)(\b(?:api[_-]?key|access[_-]?key|secret|token|passw(?:or)?d|authorization)\b[\"']?\s*[:=]\s*"
        r"(?:bearer\s+|basic\s+)?[\"']?|\bbearer\s+|://[^\s/:@]+:)([^\s\"'@,;]{4,})"
    )
    return lambda content: named.sub(rf"\g<1>{BLOT}", whole.sub(BLOT, content))
