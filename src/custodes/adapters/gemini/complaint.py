"""What the program says on standard error when its provider fails.

It prints the error as the language's own dump (a name, a message, ``status: 429``, ``retryDelayMs: 7000``),
and with ``--output-format json`` the failure once more as a JSON object at the very end. Its event on
standard output repeats the message alone.
"""

from __future__ import annotations

import re

from custodes.adapters.foreign import decode, digits, mapping, name, status, text

_DUMP = re.compile(r"^Error when talking to Gemini API.*?\.json (?:_?(?P<name>\w+): )?(?P<message>.*)$")
_RETRIED = re.compile(r"^Attempt [0-9]+ failed(?: with status (?P<status>[0-9]{3}))?[.:]")
_FIELD = re.compile(
    r"^\s+(?P<name>status|code|retryDelayMs|message|reason): (?P<value>[0-9]+|'.*'|\".*\"),?$"
)
_WAITS = re.compile(r"\. Retrying after [0-9]+ms\.\.\.$")
"""Its own wait, longer than what was stated by a random part: not to be taken for it."""
_MAX_JSON = 64_000
MAX_RETRIES = 2
"""Where an administrator's settings allow it more, it is ended when it announces the third."""


class Complaint:
    """Built line by line; bounded. ``status`` is the provider's HTTP status, where one was printed."""

    def __init__(self) -> None:
        self.name = ""
        self.message = ""
        self.cause = ""
        self.status: int | None = None
        self.reason = ""
        self.delay_ms: int | None = None
        self.refused = False
        self.session = ""
        self.retries = 0
        self._open = False
        self._json: list[str] = []
        self._json_size = 0

    def take(self, line: str) -> bool:
        """One line. True where it is about to wait for a limit, or tries again and again."""
        self._collect(line)
        if match := _RETRIED.match(line):
            self.retries += 1
            self._open = True
            self.message = _WAITS.sub("", line[:8_000])
            if match["status"]:
                self.status = int(match["status"])
        if match := _DUMP.match(line):
            self.name, self.message, self._open = match["name"] or "", match["message"][:8_000], True
            self._body(self.message)
        if not self._open:
            return False
        if match := _FIELD.match(line):
            self._field(match["name"], match["value"].strip("'\""))
        self.refused = self.refused or "ECONNREFUSED" in line
        # "Attempt 1 failed: <message, often of two lines>. Retrying after 7260ms..." is how it tells a limit.
        if _WAITS.search(line):
            self.status = self.status or 429
            if not _RETRIED.match(line):
                self.message += "\n" + _WAITS.sub("", line[:8_000])
            return True
        return self.retries > MAX_RETRIES

    def _field(self, field: str, value: str) -> None:
        if field in ("status", "code"):
            self.status = self.status or _failed(digits(value))
        elif field == "retryDelayMs":
            self.delay_ms = digits(value)
        elif field == "message":
            self.cause = value[:8_000]
        elif field == "reason":
            self.reason = value[:200]

    def _collect(self, line: str) -> None:
        """Keep what may be the last JSON object, which begins and ends with a brace alone on its line."""
        if line.rstrip() == "{":
            self._json, self._json_size = [], 0
        elif not self._json:
            return
        self._json_size += len(line)
        if self._json_size > _MAX_JSON:
            self._json = []
            return
        self._json.append(line)
        if line.rstrip() == "}":
            said = mapping(decode("\n".join(self._json)))
            error = mapping(said.get("error"))
            if error:
                self.session = name(said.get("session_id"))
                self.message = text(error.get("message"))[:8_000] or self.message
                self.status = _failed(error.get("code")) or self.status
                self._body(self.message)

    def _body(self, message: str) -> None:
        """A message that is itself the provider's JSON answer."""
        start = message.find('{"error"')
        if start < 0:
            return
        error = mapping(mapping(decode(message[start:])).get("error"))
        if error:
            self.status = _failed(error.get("code")) or self.status
            self.reason = text(error.get("status"))[:200]
            self.cause = text(error.get("message"))[:8_000]


def _failed(code: object) -> int | None:
    """A status that says of a request that it failed."""
    found = status(code)
    return found if found is not None and found >= 400 else None
