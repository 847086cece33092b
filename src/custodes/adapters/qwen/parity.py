"""How Qwen Code says each case of the contract: its result event, and its debug log before that."""

from __future__ import annotations

import msgspec

from custodes.adapters.parity import SILENCE, Stage, prints


def result(message: str) -> dict[str, object]:
    error = {"message": f"[API Error: {message}]"}
    return {"type": "result", "subtype": "error_during_execution", "is_error": True, "error": error}


def attempt(delay_ms: int) -> str:
    head = "T [WARN] [RETRY] Attempt 1 failed with status 429. Retrying after explicit delay of"
    return f"{head} {delay_ms}ms... {{\n  statusCode: 429,\n}} Error: x"


def said(text: str) -> dict[str, object]:
    return {"type": "assistant", "message": {"content": [{"type": "text", "text": text}]}}


FAILURES = {
    "limit": prints(result("429 Too many requests"), code=1),
    "limit with a wait": prints(error=attempt(52_000), code=1),
    "usage limit with a reset": prints(result("429 usage limit reached, try again in 2h"), code=1),
    "billing": prints(result("402 Insufficient Balance"), code=1),
    "overloaded": prints(result("503 The server is overloaded"), code=1),
    "server error": prints(result("500 oops"), code=1),
    "auth": prints(result("401 Incorrect API key provided"), code=1),
    "invalid": prints(result("404 The model `m1` does not exist"), code=1),
    "timeout": SILENCE,
    "unanticipated": "exit 77",
    "no proof of success": prints(said("half an ans")),
    "our own refusal": prints(result("all eligible adapters are at capacity"), code=1),
    "innocent words": prints(result("402913 tokens used at line 4031"), code=1),
}


def arrange(case: str, stage: Stage) -> Stage:
    if case != "success":
        return stage.program("qwen", FAILURES[case])
    usage = {"input_tokens": 11, "output_tokens": 5, "cache_read_input_tokens": 0}
    done = {"type": "result", "subtype": "success", "is_error": False, "result": stage.answer, "usage": usage}
    if stage.request.schema is not None:
        done["structured_result"] = msgspec.json.decode(stage.answer)
    session = {"type": "system", "subtype": "init", "session_id": "s1"}
    return stage.program("qwen", prints(session, said(stage.answer), done))
