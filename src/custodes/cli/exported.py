"""Export around a command: where to, and one line on stderr where it did not go well."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from custodes.cli.output import complain, usage_error
from custodes.telemetry import ExportError, exporting


@contextmanager
def exported(otlp: str) -> Iterator[None]:
    """:param otlp: what ``--otlp`` was given; "" leaves it to the ``OTEL_*`` variables.
    :raises CliError: ``--otlp`` cannot be done. What the variables ask for in vain is only a note: they are
        there for every program, and the work does not depend on it.
    """
    with ExitStack() as stack:
        stack.enter_context(_sdk_is_quiet())
        export = None
        try:
            export = stack.enter_context(exporting(otlp))
        except ExportError as error:
            if otlp:
                raise usage_error(f"--otlp: {error}") from None
            complain(f"cos: note: nothing is exported: {error}")
        else:
            if otlp and export is None:
                complain(
                    "cos: note: nothing is exported: OTEL_SDK_DISABLED is set, which --otlp does not undo"
                )
        yield
        stack.close()
        if export is not None and not export.complete:
            what = f"{export.lost} spans" if export.lost else "some spans"
            complain(f"cos: note: {what} did not reach the collector; the work itself is not affected")


@contextmanager
def _sdk_is_quiet() -> Iterator[None]:
    """What a collector does wrong is told once, at the end, and not in the midst of a live tree."""
    sdk, nowhere = logging.getLogger("opentelemetry"), logging.NullHandler()
    before = sdk.propagate
    sdk.addHandler(nowhere)
    sdk.propagate = False
    try:
        yield
    finally:
        sdk.removeHandler(nowhere)
        sdk.propagate = before
