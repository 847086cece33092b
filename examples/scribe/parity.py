"""How scribe says each case of the contract."""

from __future__ import annotations

from custodes.adapters.parity import SILENCE, Stage, prints


def fails(status: int | None, message: str, **more: object) -> str:
    return prints({"event": "error", "status": status, "message": message, **more}, code=1)


FAILURES = {
    "limit": fails(429, "Slow down."),
    "limit with a wait": fails(429, "Slow down.", retry_after_s=52),
    "usage limit with a reset": fails(429, "This plan's limit is reached.", retry_after_s=7200),
    "billing": fails(402, "Payment required."),
    "overloaded": fails(503, "Overloaded."),
    "server error": fails(500, "Oops."),
    "auth": fails(401, "Who are you?"),
    "invalid": fails(404, "There is no such model."),
    "timeout": SILENCE,
    "unanticipated": "exit 77",
    "no proof of success": prints({"event": "said", "text": "half an ans"}),
    "our own refusal": fails(None, "all eligible adapters are at capacity"),
    "innocent words": fails(None, "402913 tokens used at line 4031"),
}


def script(case: str, stage: Stage) -> str:
    done = prints(
        {"event": "began", "thread": "t1"},
        {"event": "said", "text": stage.answer},
        {"event": "done", "tokens": 5},
    )
    if case == "permission":
        ask = {"event": "asks", "id": 1, "tool": "shell", "command": stage.wanted}
        return stage.asks(ask, '"allow":true') + done
    return done if case == "success" else FAILURES[case]


def arrange(case: str, stage: Stage) -> Stage:
    return stage.program("scribe", script(case, stage), stdin="line")
