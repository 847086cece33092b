"""The refusals of real providers, with their own status, headers and bodies, by case and protocol."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from email.utils import formatdate
from typing import Any

from support.loopback.protocol import Wire

LIMIT_S = 7
USAGE_LIMIT_S = 7200
"""Seconds a limited provider says to wait."""


@dataclass(frozen=True)
class Refusal:
    status: int
    kind: str
    message: str
    headers: Mapping[str, str] = field(default_factory=dict)
    more: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Bytes:
    status: int
    headers: Mapping[str, str]
    body: bytes


def refusal(case: str, wire: Wire, now: float) -> Bytes | None:
    """What a case answers, byte for byte; None where it is no refusal. ``now`` is an epoch in seconds."""
    made = _STATED.get(case)
    said = made(wire.name, now) if made else _PLAIN.get(case, {}).get(_vendor(wire.name))
    if said is None:
        return None
    body = wire.error(said.status, said.kind, said.message, said.more)
    return Bytes(said.status, said.headers, json.dumps(body).encode())


def is_refusal(case: str) -> bool:
    return case in _STATED or case in _PLAIN


def _vendor(wire: str) -> str:
    return "openai" if wire in ("responses", "chat") else wire


def _limited(headers: Callable[[float], Mapping[str, str]], seconds: int) -> Callable[[str, float], Refusal]:
    def made(wire: str, now: float) -> Refusal:
        if wire == "anthropic":
            message = (
                "This request would exceed your organization's rate limit of 50 requests per minute. "
                "Please try again later."
            )
            return Refusal(429, "rate_limit_error", message, headers(now))
        if wire == "gemini":
            quota = {
                "quotaMetric": "generativelanguage.googleapis.com/generate_content_requests",
                "quotaId": "GenerateRequestsPerMinutePerProjectPerModel",
                "quotaValue": "5",
            }
            message = f"You exceeded your current quota. Please retry in {seconds}s."
            return Refusal(
                429, "RESOURCE_EXHAUSTED", message, headers(now), {"details": _google([quota], seconds)}
            )
        message = (
            "Rate limit reached for loopback-model in organization org-loopback on requests per min (RPM): "
            f"Limit 3, Used 3, Requested 1. Please try again in {seconds}s."
        )
        return Refusal(429, "rate_limit_exceeded", message, headers(now), {"type": "requests"})

    return made


def _usage_limit(wire: str, now: float) -> Refusal:
    """A plan's window is spent, as subscriptions say it."""
    reset = int(now) + USAGE_LIMIT_S
    if wire == "anthropic":
        unified = {
            "status": "rejected",
            "reset": reset,
            "representative-claim": "five_hour",
            "5h-status": "rejected",
            "5h-reset": reset,
            "5h-utilization": "1.0",
            "7d-status": "allowed",
            "7d-reset": reset + 400_000,
            "7d-utilization": "0.4",
            "overage-status": "rejected",
            "overage-disabled-reason": "org_level_disabled",
        }
        headers = {f"anthropic-ratelimit-unified-{name}": str(value) for name, value in unified.items()}
        headers |= {"retry-after": str(USAGE_LIMIT_S), "x-should-retry": "false"}
        message = "This request would exceed your account's rate limit. Please try again later."
        return Refusal(429, "rate_limit_error", message, headers)
    if wire == "gemini":
        quota = {
            "quotaMetric": "generativelanguage.googleapis.com/generate_content_free_tier_requests",
            "quotaId": "GenerateRequestsPerDayPerProjectPerModel-FreeTier",
            "quotaValue": "50",
        }
        info = {
            "@type": "type.googleapis.com/google.rpc.ErrorInfo",
            "reason": "QUOTA_EXHAUSTED",
            "domain": "cloudcode-pa.googleapis.com",
            "metadata": {"quotaResetDelay": f"{USAGE_LIMIT_S}s", "model": "loopback"},
        }
        message = "You have exhausted your capacity on this model. Your quota will reset after 2h0m0s."
        details = [info, *_google([quota], USAGE_LIMIT_S)]
        return Refusal(429, "RESOURCE_EXHAUSTED", message, {}, {"details": details})
    headers = {"primary-used-percent": "100", "primary-window-minutes": "300", "primary-reset-at": str(reset)}
    stated = {"plan_type": "plus", "resets_at": reset, "resets_in_seconds": USAGE_LIMIT_S}
    return Refusal(
        429,
        "usage_limit_reached",
        "The usage limit has been reached",
        {f"x-codex-{name}": value for name, value in headers.items()},
        stated,
    )


def _google(quotas: list[Mapping[str, str]], seconds: int) -> list[Mapping[str, Any]]:
    rpc = "type.googleapis.com/google.rpc"
    return [
        {"@type": f"{rpc}.QuotaFailure", "violations": quotas},
        {"@type": f"{rpc}.RetryInfo", "retryDelay": f"{seconds}s"},
    ]


_STATED: dict[str, Callable[[str, float], Refusal]] = {
    "limit": _limited(lambda _: {"retry-after": str(LIMIT_S)}, LIMIT_S),
    "limit_long": _limited(lambda _: {"retry-after": "3600"}, 3600),
    "limit_date": _limited(lambda now: {"retry-after": formatdate(now + LIMIT_S, usegmt=True)}, LIMIT_S),
    "limit_bare": _limited(lambda _: {}, LIMIT_S),
    "usage_limit": _usage_limit,
}
_KEY_INVALID = [
    {
        "@type": "type.googleapis.com/google.rpc.ErrorInfo",
        "reason": "API_KEY_INVALID",
        "domain": "googleapis.com",
    }
]
_PLAIN: dict[str, dict[str, Refusal]] = {
    "quota": {
        "anthropic": Refusal(
            400,
            "invalid_request_error",
            "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to "
            "upgrade or purchase credits.",
        ),
        "openai": Refusal(
            429,
            "insufficient_quota",
            "You exceeded your current quota, please check your plan and billing details. For more "
            "information on this error, read the docs.",
        ),
        "gemini": Refusal(
            429,
            "RESOURCE_EXHAUSTED",
            "You exceeded your current quota, please check your plan and billing details.",
        ),
    },
    "billing": {
        "anthropic": Refusal(
            402,
            "billing_error",
            "There is an issue with your billing or payment information. Please check your payment details.",
        ),
        "openai": Refusal(402, "payment_required", "Insufficient Balance"),
        "gemini": Refusal(402, "FAILED_PRECONDITION", "Billing is not enabled."),
    },
    "auth": {
        "anthropic": Refusal(401, "authentication_error", "invalid x-api-key"),
        "openai": Refusal(
            401,
            "invalid_api_key",
            "Incorrect API key provided: sk-dummy. You can find your API key at the dashboard.",
            more={"type": "invalid_request_error"},
        ),
        "gemini": Refusal(
            400,
            "INVALID_ARGUMENT",
            "API key not valid. Please pass a valid API key.",
            more={"details": _KEY_INVALID},
        ),
    },
    "forbidden": {
        "anthropic": Refusal(
            403, "permission_error", "Your API key does not have permission to use the specified resource."
        ),
        "openai": Refusal(
            403,
            "model_not_found",
            "Project does not have access to model `loopback-model`",
            more={"type": "invalid_request_error"},
        ),
        "gemini": Refusal(403, "PERMISSION_DENIED", "Permission denied on resource project loopback."),
    },
    "server_error": {
        "anthropic": Refusal(500, "api_error", "Internal server error"),
        "openai": Refusal(500, "server_error", "The server had an error while processing your request."),
        "gemini": Refusal(500, "INTERNAL", "An internal error has occurred."),
    },
    "unavailable": {
        "anthropic": Refusal(503, "api_error", "Service unavailable"),
        "openai": Refusal(503, "server_is_overloaded", "The server is overloaded or not ready yet."),
        "gemini": Refusal(503, "UNAVAILABLE", "The model is overloaded. Please try again later."),
    },
    "overload": {
        "anthropic": Refusal(529, "overloaded_error", "Overloaded"),
        "openai": Refusal(529, "server_is_overloaded", "Overloaded", more={"type": "overloaded_error"}),
        "gemini": Refusal(503, "UNAVAILABLE", "The model is overloaded. Please try again later."),
    },
    "context": {
        "anthropic": Refusal(
            400, "invalid_request_error", "prompt is too long: 214315 tokens > 200000 maximum"
        ),
        "openai": Refusal(
            400,
            "context_length_exceeded",
            "This model's maximum context length is 128000 tokens. However, your messages resulted in "
            "214315 tokens. Please reduce the length of the messages.",
            more={"type": "invalid_request_error"},
        ),
        "gemini": Refusal(
            400,
            "INVALID_ARGUMENT",
            "The input token count (1214315) exceeds the maximum number of tokens allowed (1048576).",
        ),
    },
    "bad_request": {
        "anthropic": Refusal(400, "invalid_request_error", "messages.0.content: Field required"),
        "openai": Refusal(
            400,
            "unsupported_parameter",
            "Unsupported parameter: 'foo'",
            more={"type": "invalid_request_error"},
        ),
        "gemini": Refusal(400, "INVALID_ARGUMENT", "Invalid JSON payload received."),
    },
    "unknown_model": {
        "anthropic": Refusal(404, "not_found_error", "model: loopback-model-nope"),
        "openai": Refusal(
            404,
            "model_not_found",
            "The model `loopback-model-nope` does not exist or you do not have access to it.",
            more={"type": "invalid_request_error"},
        ),
        "gemini": Refusal(
            404,
            "NOT_FOUND",
            "models/loopback-model-nope is not found for API version v1beta, or is not supported for "
            "generateContent.",
        ),
    },
}
