"""Its log on standard error: failed attempts as they fail, and tools as they begin.

    level=ERROR … message="stream error" … small=false … error.error="AI_APICallError: Rate limit reached …"
    level=INFO  … message=evaluated permission=bash pattern="sleep 97" … action.action=allow …

It makes six attempts, its waits growing to half a minute, and says nothing of them on standard output; no
setting lowers that. The log has no status, so what an attempt failed of is read from its words: one that
names a limit ends the program at once, any other when it was tried again: it only tries again what may pass.
"""

from __future__ import annotations

import re

from custodes.adapters import failures, foreign, waits

_SESSION = re.compile(r"\s(?:message=created id|session\.id)=(?P<session>ses_\w{1,100})\s")
_ASKED = re.compile(r"(?P<provider>\S{1,100}) modelID=(?P<model>\S{1,100})\s")
_TOOL = re.compile(r"[\w.-]{1,100}(?=\s)")
_AT_ONCE = frozenset({"limit", "billing"})
_TOLD = frozenset({"auth", "invalid"})
"""These it does not try again, but tells on standard output, with more than words."""


class Log:
    """Built line by line. ``kind`` is the last attempt's row of the table; ``failed`` counts the attempts;
    ``model`` is the one it asked last."""

    def __init__(self) -> None:
        self.failed = 0
        self.message = ""
        self.kind: failures.Kind | None = None
        self.session: str | None = None
        self.model: str | None = None
        self.tool = ""

    def take(self, line: str) -> bool:
        """One line; ``tool`` is set where it tells of one. True where it is not worth staying."""
        self.tool = ""
        if self.session is None and (match := _SESSION.search(line)):
            self.session = match["session"]
        asked = _after(line, " message=stream providerID=")
        tool = _after(line, " level=INFO ", " message=evaluated permission=")
        failed = _after(line, " level=ERROR ", ' message="stream error" ', " error.error=")
        if " small=false " in asked and (match := _ASKED.match(asked)):
            self.model = f"{match['provider']}/{match['model']}"
        elif " action.action=allow" in tool and (match := _TOOL.match(tool)):
            self.tool = match[0]
        elif (said := failed.strip()).startswith('"') and said.endswith('"') and " small=true " not in line:
            self.failed += 1
            said = foreign.text(foreign.decode(said)) or said.strip('"')
            self.message = said.partition(": ")[2][:8_000] or said[:8_000]
            self.kind = failures.kind_of_text(self.message, waits.now())
            if "unable to connect" in self.message.lower():
                self.kind = "refused"
            elif self.message.startswith("Cannot connect to API"):
                self.kind = "cut"
            return self.kind in _AT_ONCE or (self.failed > 1 and self.kind not in _TOLD)
        return False


def _after(line: str, *marks: str) -> str:
    """What follows the marks, which stand in this order; "" where one is missing. In one pass: an expression
    with gaps between them takes the square or the cube of a line that repeats them."""
    for mark in marks:
        line = line.partition(mark)[2]
    return line
