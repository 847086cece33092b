"""One session with an agent, from *initialize* to the end of its turn: lines in, lines out, no I/O.

The official client's models make what is sent. Its connection is not used: it runs on asyncio alone, and
handles each notification in a task of its own, so that the parts of an answer may change places.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from functools import partial
from types import ModuleType
from typing import Any

import msgspec

from custodes.adapters import failures, foreign, native, waits
from custodes.adapters.acp import agents, permissions, reading
from custodes.adapters.asks import MAX_ASKED, Asks
from custodes.adapters.port import DispatchRequest, Failure, PermissionAnswer, Progress, ProgressSink, Usage
from custodes.adapters.process import ProgramInput

_METHOD_UNKNOWN = -32601


class Session:
    """``failure`` is what was said to be wrong; ``done`` whether the turn ended as one that is done."""

    def __init__(
        self,
        acp: ModuleType,
        who: str,
        request: DispatchRequest,
        agent: agents.Agent,
        progress: ProgressSink,
        asks: Asks,
        clock: Callable[[], datetime] = waits.now,
    ) -> None:
        self._acp = acp
        self._who = who
        self._request = request
        self._agent = agent
        self._progress = progress
        self._asks = asks
        self._clock = clock
        self.stdin = ProgramInput()
        self.id = ""
        self.initialized = False
        self.done = False
        self.failure: Failure | None = None
        self.output_seen = False
        self.tools = False
        self.usage: Usage | None = None
        self.words = ""
        """The last lines of standard error."""
        self._answer = _Answer()
        self._cost: float | None = None
        self._prompted = False
        self._waiting: tuple[int, Callable[[Mapping[str, Any]], bool]] | None = None
        self._sent = 0
        self._asked = 0
        self._undecided: dict[object, Mapping[str, Any]] = {}
        """What it asks leave for and has no answer to yet, by the id of the question."""
        self._denied = False

    @property
    def text(self) -> str:
        return self._answer.text

    def begin(self) -> None:
        """Say hello; everything else follows from what comes back."""
        acp = self._acp
        hello = acp.InitializeRequest(
            protocol_version=1,
            client_capabilities=acp.ClientCapabilities(),  # none: it works on the files itself
            client_info=acp.Implementation(name="custodes", version="0"),
        )
        self._ask("initialize", hello, self._met)

    def part(self) -> None:
        """Before its end: cancel a turn that goes on, and what it asks leave for; an agent with nothing to do
        ends with its input."""
        for number in tuple(self._undecided):
            self._decided(number, None)
        if self._prompted and self._waiting is not None:
            self._tell("session/cancel", self._acp.CancelNotification(session_id=self.id))
            self._waiting = (self._waiting[0], self._parted)
        else:
            self.stdin.close()

    def output_line(self, line: bytes) -> bool:
        """True where there is nothing more to wait for."""
        said = foreign.mapping(foreign.decode(line))
        method = foreign.text(said.get("method"))
        if method and "id" in said:
            return self._requested(method, said)
        if method:
            return self._notified(method, foreign.mapping(said.get("params")))
        if self._waiting is None or said.get("id") != self._waiting[0]:
            return False
        then, self._waiting = self._waiting[1], None
        if "error" in said and then != self._parted:
            return self._fail(reading.failed(foreign.mapping(said["error"]), self._who, self._clock()))
        return then(foreign.mapping(said.get("result")))

    def error_line(self, line: bytes) -> bool:
        self.words = foreign.last_words(self.words, line)
        return False

    def _met(self, result: Mapping[str, Any]) -> bool:
        version = result.get("protocolVersion")
        if version != 1:
            return self._fail(
                failures.failure("missing", self._who, detail="it speaks another version of ACP")
            )
        self.initialized = True
        acp, request = self._acp, self._request
        if not request.resume:
            new = acp.NewSessionRequest(cwd=request.cwd, mcp_servers=[], field_meta=self._narrowed())
            return self._ask("session/new", new, self._opened)
        self.id = request.resume
        same = {"session_id": request.resume, "cwd": request.cwd, "mcp_servers": []}
        can = foreign.mapping(result.get("agentCapabilities"))
        if "resume" in foreign.mapping(can.get("sessionCapabilities")):
            again = acp.ResumeSessionRequest(**same, field_meta=self._narrowed())
            return self._ask("session/resume", again, self._opened)
        if can.get("loadSession") is True:  # tells the whole thread again first; nothing of it is this turn's
            again = acp.LoadSessionRequest(**same, field_meta=self._narrowed())
            return self._ask("session/load", again, self._opened)
        return self._fail(self._invalid("this agent cannot go on with an earlier thread"))

    def _narrowed(self) -> dict[str, Any] | None:
        return dict(self._agent.narrow) if self._agent.narrow and not self._request.mutable else None

    def _opened(self, result: Mapping[str, Any]) -> bool:
        self.id = foreign.name(result.get("sessionId")) or self.id
        listed = foreign.mapping(result.get("modes")).get("availableModes")
        modes = listed if isinstance(listed, list) else []
        offered = [foreign.text(foreign.mapping(each).get("id")) for each in modes]
        mode = agents.mode(offered, mutable=self._request.mutable)
        if mode is None:
            if not self._request.mutable:
                return self._fail(self._invalid("this agent offers no read-only mode"))
            return self._prompt({})
        wanted = self._acp.SetSessionModeRequest(session_id=self.id, mode_id=mode)
        return self._ask("session/set_mode", wanted, self._prompt)

    def _prompt(self, _: Mapping[str, Any]) -> bool:
        self._prompted = True
        text = self._acp.TextContentBlock(type="text", text=self._request.prompt)
        return self._ask(
            "session/prompt", self._acp.PromptRequest(session_id=self.id, prompt=[text]), self._ended
        )

    def _ended(self, result: Mapping[str, Any]) -> bool:
        """Done is ``end_turn`` with an answer and, where it is reported, usage above zero."""
        self._used(reading.usage_of(result))
        stop = foreign.text(result.get("stopReason"))
        if stop == "cancelled" and self._denied:  # Codex, say, takes a refusal so
            ended = "it ended its turn when it was denied what it asked leave for"
            return self._fail(failures.failure("other", self._who, detail=ended))
        if stop != "end_turn":
            return self._fail(
                failures.failure(_STOPS.get(stop, "other"), self._who, detail="its turn was cut short")
            )
        text, never_ran = self._answer.text, reading.reports_no_usage(result)
        if never_ran or (self.usage is None and reading.is_error_text(text)):
            words = self._answer.words or text
            return self._fail(reading.worded(words, self._who, self._clock()))
        if self._answer.too_long or not text:
            said = (
                "its answer is longer than the bound"
                if self._answer.too_long
                else "ended well but said nothing"
            )
            return self._fail(failures.failure("other", self._who, detail=said))
        self.done = True
        return True

    def _parted(self, _: Mapping[str, Any]) -> bool:
        self.stdin.close()
        return False

    def _notified(self, method: str, params: Mapping[str, Any]) -> bool:
        if method != "session/update" or not self._prompted:
            return False
        update = foreign.mapping(params.get("update"))
        match update.get("sessionUpdate"):
            case "agent_message_chunk":
                self._used(reading.usage_of(update))
                if chars := self._answer.take(update):
                    self._speaks(chars)
                return self._answer.too_long and self._fail(
                    failures.failure("other", self._who, detail="its answer is longer than the bound")
                )
            case "agent_thought_chunk":
                if chars := len(foreign.text(foreign.mapping(update.get("content")).get("text"))):
                    self._speaks(chars)
            case "tool_call":
                self._answer.clear()
                self.tools = self.output_seen = True
                self._progress(Progress(kind="tool", tool=foreign.name(update.get("kind")) or None))
            case "usage_update":
                cost = foreign.mapping(update.get("cost"))
                if cost.get("currency") == "USD":
                    self._cost = foreign.cost(cost.get("amount")) or self._cost
            case "session_info_update":
                return self._retries(reading.retried(update, self._who, self._clock()))
        return False

    def _retries(self, found: Failure | None) -> bool:
        """What may pass is not sat out where nothing was done yet: it is told, and tried again by others."""
        if found is None or self._waiting is None:
            return False
        self._progress(Progress(kind="retrying"))
        worth_telling = found.retryable or found.category in ("unavailable", "auth")
        return worth_telling and not self.tools and self._fail(found)

    def _speaks(self, chars: int) -> None:
        self.output_seen = True
        self._progress(Progress(kind="output", chars=chars))

    def _used(self, used: Usage | None) -> None:
        if used is not None and (used.input_tokens or used.output_tokens):
            self.usage = msgspec.structs.replace(used, cost_usd=self._cost)
            self._progress(Progress(kind="usage", usage=self.usage))

    def _requested(self, method: str, said: Mapping[str, Any]) -> bool:
        self._asked += 1
        if self._asked > MAX_ASKED:
            return self._fail(failures.failure("other", self._who, detail="it asked without end"))
        if method == "session/request_permission":
            self._permission(said["id"], foreign.mapping(said.get("params")))
        else:
            error = {"code": _METHOD_UNKNOWN, "message": "not offered by this client"}
            self._send({"id": said["id"], "error": error})
        return False

    def _permission(self, number: object, params: Mapping[str, Any]) -> None:
        """Work that may write asks. Read-only work does not: what a tool does is the agent's word alone."""
        if not isinstance(number, int | str):
            return  # no question of this protocol, and none that could be told from another
        self._undecided[number] = params
        self._speaks(0)
        ask = permissions.ask_of(params) if self._request.mutable else None
        if ask is None:
            self._decided(number, "deny")
        else:
            self._asks.put(ask, partial(self._decided, number))

    def _decided(self, number: object, answer: PermissionAnswer | None) -> None:
        """None: the turn is cancelled before there was one."""
        params = self._undecided.pop(number, None)
        if params is None:
            return
        self.tools = self.tools or answer == "allow"  # some agents tell of no tool but by asking for it
        self._denied = self._denied or answer == "deny"
        chosen = permissions.response(self._acp, params, answer)
        self._send({"id": number, "result": chosen.model_dump(by_alias=True, exclude_none=True)})

    def _invalid(self, detail: str) -> Failure:
        return failures.failure("invalid", self._who, detail=detail)

    def _fail(self, failure: Failure) -> bool:
        self.failure = failure
        return True

    def _ask(self, method: str, params: Any, then: Callable[[Mapping[str, Any]], bool]) -> bool:
        self._sent += 1
        self._waiting = (self._sent, then)
        self._tell(method, params, id=self._sent)
        return False

    def _tell(self, method: str, params: Any, **more: int) -> None:
        self._send({**more, "method": method, "params": params.model_dump(by_alias=True, exclude_none=True)})

    def _send(self, message: Mapping[str, Any]) -> None:
        self.stdin.write(msgspec.json.encode({"jsonrpc": "2.0", **message}) + b"\n")


_STOPS: dict[str, failures.Kind] = {"max_tokens": "invalid", "refusal": "invalid", "cancelled": "cut"}


class _Answer:
    """The agent's last message. ``words`` is all of its text lately, notes of the agent's own included."""

    def __init__(self) -> None:
        self.words = ""
        self._parts: list[str] = []
        self._message = ""
        self._chars = 0

    @property
    def text(self) -> str:
        return "".join(self._parts).strip()

    @property
    def too_long(self) -> bool:
        return self._chars > native.MAX_ANSWER

    def clear(self) -> None:
        self._parts.clear()
        self._chars = 0

    def take(self, update: Mapping[str, Any]) -> int:
        """A piece of a message; how many characters it has."""
        said = foreign.text(foreign.mapping(update.get("content")).get("text"))
        message = foreign.text(update.get("messageId"))
        self.words = f"{self.words}{said}"[-2_000:]
        if self._parts and self._message and not message:
            return len(said)  # a note of the agent's own between the model's messages
        if message != self._message:
            self.clear()
            self._message = message
        self._chars += len(said)
        if said and not self.too_long:
            self._parts.append(said)
        return len(said)
