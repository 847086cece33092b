"""How Codex says each case of the contract, in its own events and the line of its log."""

from __future__ import annotations

from datetime import datetime, timedelta

from custodes.adapters.parity import SILENCE, Stage, prints

BEGIN = ({"type": "thread.started", "thread_id": "t1"}, {"type": "turn.started"})
LIMITED = "exceeded retry limit, last status: 429 Too Many Requests"
LOG = (
    "WARN codex_core::responses_retry: stream disconnected - retrying sampling request (1/5 in 51.4s)... "
    f"sampling_error={LIMITED}"
)
FAILURES = {
    "limit": LIMITED,
    "limit with a wait": f"Reconnecting... 1/5 ({LIMITED})",
    "billing": "unexpected status 402 Payment Required: Insufficient Balance, url: https://api.example/v1",
    "overloaded": "Selected model is at capacity. Please try a different model.",
    "server error": "We\u2019re currently experiencing high demand, which may cause temporary errors.",
    "auth": "unexpected status 401 Unauthorized: Incorrect API key, url: https://api.example/v1",
    "invalid": "The model `m1` does not exist or you do not have access to it.",
    "unanticipated": "something new went wrong",
    "our own refusal": "all eligible adapters are at capacity",
    "innocent words": "402913 tokens used at line 4031, port 5290",
}


def spent(seconds: int) -> str:
    """It tells the reset as a clock time of this machine's zone, to the minute."""
    reset = datetime.now().astimezone() + timedelta(seconds=seconds + 89)
    at = reset.strftime("%I:%M %p").lstrip("0")
    return f"You\u2019ve hit your usage limit. Upgrade to Pro or try again at {at}."


def arrange(case: str, stage: Stage) -> Stage:
    if case == "timeout":
        return stage.program("codex", SILENCE)
    if case == "no proof of success":
        return stage.program("codex", prints(*BEGIN))
    if case == "success":
        said = {"type": "agent_message", "id": "i1", "text": stage.answer}
        done = {"type": "turn.completed", "usage": {"input_tokens": 11, "output_tokens": 5}}
        return stage.program("codex", prints(*BEGIN, {"type": "item.completed", "item": said}, done))
    message = spent(7200) if case == "usage limit with a reset" else FAILURES[case]
    log = LOG if case == "limit with a wait" else ""
    failed = {"type": "error", "message": message}
    return stage.program("codex", prints(*BEGIN, failed, error=log, code=1))
