"""How Gemini CLI says each case of the contract: a dump on standard error, an event, an exit code."""

from __future__ import annotations

from custodes.adapters.parity import SILENCE, Stage, prints

INIT = {"type": "init", "session_id": "1", "model": "m1"}


def said(text: str) -> dict[str, object]:
    return {"type": "message", "role": "assistant", "content": text, "delta": True}


def dump(message: str, *fields: str, name: str = "_ApiError") -> str:
    lines = "".join(f"  {field},\n" for field in fields)
    return (
        f"Error when talking to Gemini API Full report available at: /r.json {name}: {message} {{\n{lines}}}"
    )


def result(message: str) -> dict[str, object]:
    return {"type": "result", "status": "error", "error": {"message": f"[API Error: {message}]"}}


FAILURES = {
    "limit": prints(INIT, result("x"), error=dump("x", "status: 429"), code=173),
    "limit with a wait": prints(INIT, error=dump("Please retry in 52s.", "status: 429"), code=173),
    "usage limit with a reset": prints(
        INIT,
        error=dump(
            "You have exhausted your daily quota on this model.",
            "message: 'Your quota will reset after 2h0m0s.'",
            "status: 429",
            name="TerminalQuotaError",
        ),
        code=173,
    ),
    "billing": prints(INIT, error=dump("Billing is not enabled.", "status: 402"), code=146),
    "overloaded": prints(INIT, error=dump("Overloaded", "status: 503"), code=247),
    "server error": prints(INIT, result("oops"), code=244),
    "auth": prints(INIT, error=dump("x", "status: 401"), code=145),
    "invalid": prints(INIT, error=dump("m1 is not found", "code: 404", name="ModelNotFoundError"), code=1),
    "timeout": SILENCE,
    "unanticipated": "exit 77",
    "no proof of success": prints(INIT, said("half an ans")),
    "our own refusal": prints(INIT, result("all eligible adapters are at capacity"), code=1),
    "innocent words": prints(INIT, result("402913 tokens used at line 4031"), code=1),
}


def arrange(case: str, stage: Stage) -> Stage:
    if case != "success":
        return stage.program("gemini", FAILURES[case])
    stats = {"input_tokens": 11, "output_tokens": 5}
    done = {"type": "result", "status": "success", "stats": stats}
    return stage.program("gemini", prints(INIT, said(stage.answer), done))
