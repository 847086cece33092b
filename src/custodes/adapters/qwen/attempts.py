"""The failed attempts of a run, as its debug log tells them.

2026-11-30T09:37:50.199Z [WARN] [RETRY] Attempt 1 failed with status 429. Retrying after explicit delay …
  statusCode: 429,
  providerCode: 'rate_limit_exceeded',
  providerMessage: 'Rate limit reached … Please try again in 7s.'
} Error: 429 Rate limit reached …
"""

from __future__ import annotations

import re

from custodes.adapters import foreign
from custodes.adapters.failures import Said

MAX_RETRIES = 2
"""At the announcement of which retry it is ended: the first may still mend it within a second or two."""

_ATTEMPT = re.compile(
    r"\] \[RETRY\] Attempt (?P<number>[0-9]{1,9}) failed(?: with status (?P<status>[0-9]{3}))?\. Retrying"
    r"(?: after explicit delay of (?P<delay>[0-9]{1,18})ms)?"
)
_STREAM = re.compile(r"\] Rate limit retry scheduled\b")
_FIELD = re.compile(r"^\s+(?P<name>\w+): (?P<value>[0-9]+|'.*'|\".*\"|`.*`),?$")


class Attempts:
    """Built line by line; keeps the last attempt alone."""

    def __init__(self) -> None:
        self._begin(0, None)

    def _begin(self, number: int, status: int | None) -> None:
        self.number = number
        self.status = status
        self.delay_ms: int | None = None
        self.code = ""
        self.message = ""
        self.transport = ""
        self._open = False

    def take(self, line: str) -> bool:
        """One line. True where it is about to wait for a limit, or has failed often enough."""
        if self._announced(line):
            self._open = line.endswith("{")
            return not self._open and self._enough()
        if not self._open:
            return False
        if match := _FIELD.match(line):
            self._field(match["name"], match["value"].strip("'\"`"))
        if line.startswith("}"):
            self._open = False
            return self._enough()
        return False

    def _announced(self, line: str) -> bool:
        """Whether the line begins to tell of another failed attempt."""
        if match := _ATTEMPT.search(line):
            self._begin(int(match["number"]), int(match["status"]) if match["status"] else None)
            self.delay_ms = int(match["delay"]) if match["delay"] else None
            return True
        if _STREAM.search(line):
            self._begin(self.number + 1, 429)
            return True
        return False

    def _field(self, name: str, value: str) -> None:
        match name:
            case "statusCode":
                self.status = foreign.status(foreign.digits(value)) or self.status
            case "retryDelayMs":
                self.delay_ms = foreign.digits(value)
            case "providerCode":
                self.code = value[:200]
            case "providerMessage":
                self.message = value[:8_000]
            case "transportCode":
                self.transport = value[:200]

    def _enough(self) -> bool:
        return self.status == 429 or self.number >= MAX_RETRIES

    def said(self) -> Said:
        body = {"retry_delay_ms": self.delay_ms} if self.status in (429, 503) else None
        return Said(status=self.status, codes=(self.code,), message=self.message, body=body)
