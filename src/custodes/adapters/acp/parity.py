"""How an agent says each case of the contract: what it answers to ``session/prompt``."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping

from custodes.adapters.descriptor import Model
from custodes.adapters.parity import SILENCE, Stage

AGENT = """#!{python}
import json, subprocess, sys
TURN = json.loads({turn!r})
MODES = {{"currentModeId": "x", "availableModes": [{{"id": i, "name": i}} for i in ("plan", "acceptEdits")]}}
CAN = {{"sessionCapabilities": {{"resume": {{}}}}}}
RESULTS = {{
    "initialize": {{"protocolVersion": 1, "agentCapabilities": CAN}},
    "session/new": {{"sessionId": "s1", "modes": MODES}},
    "session/resume": {{"modes": MODES}},
    "session/set_mode": {{}},
}}
KINDS = ("allow_always", "allow_once", "reject_once")
OPTIONS = [{{"optionId": kind, "name": kind, "kind": kind}} for kind in KINDS]
def send(message):
    print(json.dumps({{"jsonrpc": "2.0", **message}}), flush=True)
def ask_leave(command):
    call = {{"toolCallId": "t", "title": "Shell", "kind": "execute", "rawInput": {{"command": command}}}}
    about = {{"sessionId": "s1", "toolCall": call, "options": OPTIONS}}
    send({{"id": 99, "method": "session/request_permission", "params": about}})
    if json.loads(sys.stdin.readline())["result"]["outcome"].get("optionId") == "allow_once":
        subprocess.run(command, shell=True, check=True)
for line in sys.stdin:
    with open({heard!r}, "a") as heard:
        heard.write(line)
    asked = json.loads(line)
    if asked["method"] in RESULTS:
        send({{"id": asked["id"], "result": RESULTS[asked["method"]]}})
    elif asked["method"] == "session/prompt":
        if "asks" in TURN:
            ask_leave(TURN["asks"])
        for update in TURN.get("updates", ()):
            send({{"method": "session/update", "params": {{"sessionId": "s1", "update": update}}}})
        if "exit" in TURN:
            sys.exit(TURN["exit"])
        send({{"id": asked["id"], **TURN["answer"]}})
"""
Turn = Mapping[str, object]


def says(text: str) -> dict[str, object]:
    return {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}}


def ends(text: str, **result: object) -> Turn:
    return {"updates": [says(text)], "answer": {"result": {"stopReason": "end_turn", **result}}}


def fails(message: str, code: int = -32603, **data: object) -> Turn:
    return {"answer": {"error": {"code": code, "message": message, "data": data}}}


FAILURES: dict[str, Turn] = {
    "limit": ends("exceeded retry limit, last status: 429 Too Many Requests", usage=None),
    "limit with a wait": fails("You exceeded your current quota. Please retry in 52s.", 429),
    "usage limit with a reset": fails(
        "You've hit your usage limit. It resets in 2 hours.", codexErrorInfo="usageLimitExceeded"
    ),
    "billing": fails("API Error: 402", errorKind="billing_error"),
    "overloaded": fails("Overloaded", 529),
    "server error": fails("An internal error has occurred.", 500),
    "auth": fails("Authentication required", -32000),
    "invalid": fails("There's an issue with the selected model", errorKind="model_not_found"),
    "unanticipated": {"exit": 77},
    "no proof of success": {"updates": [says("half an ans")], "exit": 0},
    "our own refusal": fails("all eligible adapters are at capacity"),
    "innocent words": fails("402913 tokens used at line 4031"),
}


def arrange(case: str, stage: Stage) -> Stage:
    usage = {"inputTokens": 11, "outputTokens": 5, "totalTokens": 16}
    turn = FAILURES.get(case, {})
    if case in ("success", "permission"):
        turn = ends(stage.answer, usage=usage)
    if case == "permission":
        turn = {**turn, "asks": stage.wanted}
    script = AGENT.format(python=sys.executable, turn=json.dumps(turn), heard=str(stage.heard_file))
    name = stage.request.model or ""
    program = stage.script(name, SILENCE if case == "timeout" else script, stdin="own")
    return stage.described(models=(Model(id=name, argv=(str(program),)),))
