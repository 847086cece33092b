"""How a program says each case of the contract: by its own statement, or by words and exit code."""

from __future__ import annotations

from custodes.adapters.descriptor import Model
from custodes.adapters.parity import SILENCE, Stage, prints


def fails(words: str) -> str:
    return prints(error=words, code=1)


def states(**failure: object) -> str:
    return prints({"failure": failure})


FAILURES = {
    "limit": prints("Error: 429 Too Many Requests", code=1),
    "limit with a wait": fails("rate limit reached, try again in 52s"),
    "usage limit with a reset": states(category="capacity", retry_after_s=7200),
    "billing": fails("Your credit balance is too low"),
    "overloaded": states(category="provider", overloaded=True),
    "server error": fails("HTTP 500 Internal Server Error"),
    "auth": fails("Not logged in. Please run /login"),
    "invalid": states(category="invalid"),
    "timeout": SILENCE,
    "unanticipated": "exit 77",
    "no proof of success": "exit 0",
    "our own refusal": fails("all eligible adapters are at capacity"),
    "innocent words": fails("402913 tokens used at line 4031"),
}


def arrange(case: str, stage: Stage) -> Stage:
    name = stage.request.model or ""
    script = prints(stage.answer) if case == "success" else FAILURES[case]
    program = Model(id=name, argv=(str(stage.script(name, script)),))
    return stage.described(models=(program,))
