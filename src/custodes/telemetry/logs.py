"""Our own log records to the collector, with the ids of the span they were written under.

A record carries its sentence, which is ours, and the type of an exception: never the exception's words or
its traceback, which may hold a secret.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version

from opentelemetry._logs import LoggerProvider, LogRecord, SeverityNumber
from opentelemetry.context import get_current

from custodes.telemetry import conventions as names
from custodes.telemetry.values import text

_SEVERITIES = (
    (logging.CRITICAL, SeverityNumber.FATAL),
    (logging.ERROR, SeverityNumber.ERROR),
    (logging.WARNING, SeverityNumber.WARN),
    (logging.INFO, SeverityNumber.INFO),
)


class LogExport(logging.Handler):
    """Hands each record to a provider's logger."""

    def __init__(self, provider: LoggerProvider) -> None:
        super().__init__(logging.INFO)
        self._provider = provider
        self._version = version("custodes")

    def emit(self, record: logging.LogRecord) -> None:
        attributes = {}
        if record.exc_info and record.exc_info[0] is not None:
            attributes["exception.type"] = record.exc_info[0].__qualname__
        severity = next((number for level, number in _SEVERITIES if record.levelno >= level), None)
        logger = self._provider.get_logger(record.name, self._version, schema_url=names.SCHEMA_URL)
        logger.emit(
            LogRecord(
                timestamp=int(record.created * 1e9),
                observed_timestamp=time.time_ns(),
                context=get_current(),
                severity_text=record.levelname,
                severity_number=severity,
                body=text(record.getMessage()),
                attributes=attributes,
            )
        )


@contextmanager
def handled(provider: LoggerProvider) -> Iterator[None]:
    """Everything that is logged below ``custodes`` from INFO up goes there too."""
    ours, handler = logging.getLogger(names.SCOPE), LogExport(provider)
    level = ours.level
    ours.addHandler(handler)
    if ours.getEffectiveLevel() > logging.INFO:
        ours.setLevel(logging.INFO)
    try:
        yield
    finally:
        ours.removeHandler(handler)
        ours.setLevel(level)
