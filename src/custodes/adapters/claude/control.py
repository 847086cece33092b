"""What is said to Claude Code while it runs: the prompt, and the answers to what it asks leave for.

Its standard input under ``--input-format stream-json``, as its SDKs speak it; ``--permission-prompt-tool
stdio`` is what makes it ask there.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import msgspec

from custodes.adapters import foreign
from custodes.adapters.asks import MAX_ASKED, Asks, asked
from custodes.adapters.claude.arguments import READ_TOOLS
from custodes.adapters.port import DispatchRequest, PermissionAnswer
from custodes.adapters.process import ProgramInput

_DENIED = "This was denied. Do what can be done without it."


class Control:
    """``stdin`` has the prompt in it already. It stays open until the turn is `over`."""

    def __init__(self, request: DispatchRequest, asks: Asks) -> None:
        self._mutable = request.mutable
        self._asks = asks
        self._asked = 0
        self.stdin = ProgramInput()
        self._write({"type": "user", "message": {"role": "user", "content": request.prompt}})

    def asked(self, event: Mapping[str, Any]) -> None:
        """A ``control_request``. What is none of those known is refused: without an answer it would wait, as
        one does that asks without end, for its deadline."""
        number, request = event.get("request_id"), foreign.mapping(event.get("request"))
        self._asked += 1
        if not isinstance(number, str) or self._asked > MAX_ASKED:
            return
        tool, given = request.get("tool_name"), request.get("input")
        if request.get("subtype") != "can_use_tool":
            self._respond(subtype="error", request_id=number, error="not offered by this client")
        elif not (isinstance(tool, str) and tool and isinstance(given, Mapping)):
            self._decided(number, {}, "deny")
        elif not self._mutable and tool not in READ_TOOLS:
            self._decided(number, given, "deny")
        else:
            self._asks.put(asked(tool, given), partial(self._decided, number, given))

    def over(self) -> None:
        """The turn has ended; the end of its input ends the program."""
        self.stdin.close()

    def _decided(self, number: str, given: Mapping[str, Any], answer: PermissionAnswer) -> None:
        allowed = {"behavior": "allow", "updatedInput": given}
        denied = {"behavior": "deny", "message": _DENIED}
        response = allowed if answer == "allow" else denied
        self._respond(subtype="success", request_id=number, response=response)

    def _respond(self, **response: object) -> None:
        self._write({"type": "control_response", "response": response})

    def _write(self, message: Mapping[str, Any]) -> None:
        self.stdin.write(msgspec.json.encode(message) + b"\n")
