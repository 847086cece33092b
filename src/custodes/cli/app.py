"""The program: its commands, and the one place where an error becomes a line and an exit code."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Container, Sequence
from itertools import pairwise

from cyclopts import App, CycloptsError, UnknownCommandError, UnusedCliTokensError

from custodes.cli.console import version
from custodes.cli.output import (
    DONE,
    FAILED,
    USAGE,
    CliError,
    Format,
    UnwritableError,
    report_error,
    usage_error,
)

_HELP = """Bounded child work on the coding agents you already have, under supervision.

Start with `cos demo` (no account, no network). Then, in a project of yours:
`cos init`, `cos supervision enable`, `cos run PLAN.yaml`.

Exit codes: 0 done, 1 failed or refused, 2 not understood, 130 after Ctrl-C.
"""

_COMMANDS = (
    ("demo.demo:demo", "demo", "Watch a supervised fan-out: no account, no key, no network."),
    ("init:init", "init", "Make a project ready, from the runtimes found here."),
    ("supervision:app", "supervision", "Show and change the policy: which runtime does what, and when."),
    ("run:run", "run", "Run a plan: its steps as children, as parallel as their needs allow."),
    ("dispatch:dispatch", "dispatch", "Give one piece of work to a child and show its evidence."),
    ("roles:roles", "roles", "Show the roles, and what each starts from."),
    ("adapters:app", "adapters", "List and check the adapters there are, and trust a project's own."),
    ("runs:app", "runs", "Show what ran here, and how each run went."),
    ("cognition:app", "cognition", "Trace a conversation: adapter, model, effort and health of each child."),
    ("health:app", "health", "Show how each model pool stands, and clear one."),
    ("scopes:app", "scopes", "Show which work holds what to write, and release a hold."),
    ("overseer:app", "overseer", "Watch providers; move profiles off a sick one, and back."),
    ("hub:hub", "hub", "See and change all this in a browser."),
    ("mcp:mcp", "mcp", "Serve the same to an agent, as its MCP server on stdio."),
    ("completion:completion", "completion", "Print the script that lets your shell complete all this."),
    ("doctor:doctor", "doctor", "Check settings, adapters and database, and change nothing."),
)


COMMANDS = tuple(name for _, name, _ in _COMMANDS)


def make_app(own: Container[str] = ()) -> App:
    """The command tree. A command's module is imported when that command runs or its help is shown.

    :param own: the commands whose own help may be wanted. Cyclopts would show of it no more than the sentence
        that stands for the command while its module is not imported.
    """
    app = App(
        name="cos",
        help=_HELP,
        help_format="plaintext",
        version=version,
        backend="trio",
        suppress_keyboard_interrupt=False,
    )
    for place, name, sentence in _COMMANDS:
        app.command(f"custodes.cli.{place}", name=name, help=None if name in own else sentence)
    return app


def call(tokens: Sequence[str]) -> int:
    """Run one command line and return its exit code. Errors are one line on stderr, or one JSON document."""
    form = _asked_format(tokens)
    try:
        words = _stdin_last(_help_last(_otlp_after_command(tokens)))
        result = make_app(own=words[:1])(
            words, exit_on_error=False, print_error=False, result_action="return_value"
        )
    except CycloptsError as error:
        report_error(usage_error(_one_line(error)), form)
        return USAGE
    except (BrokenPipeError, UnwritableError):
        raise
    except Exception as error:
        known = _known(error)
        if known is None and form == "text":
            raise
        if known is None:  # a fault of ours: the document says so, and stderr where
            traceback.print_exc()
            known = CliError(f"{type(error).__name__}: {error}", kind="internal")
        report_error(known, form)
        return known.code
    return result if isinstance(result, int) else DONE


def _otlp_after_command(tokens: Sequence[str]) -> list[str]:
    """``cos --otlp ENDPOINT run …`` is ``cos run --otlp ENDPOINT …``."""
    said = 2 if tokens[:1] == ["--otlp"] else 1 if tokens and tokens[0].startswith("--otlp=") else 0
    if not said or len(tokens) <= said:
        return list(tokens)
    return [tokens[said], *tokens[:said], *tokens[said + 1 :]]


def _help_last(tokens: Sequence[str]) -> list[str]:
    """``cos help run`` is ``cos run --help``."""
    return [*tokens[1:], "--help"] if tokens[:1] == ["help"] else list(tokens)


def _stdin_last(tokens: Sequence[str]) -> list[str]:
    """A lone ``-`` is a word that stands for stdin, and no option: it goes where no option can stand."""
    if "-" not in tokens or "--" in tokens:
        return list(tokens)
    return [*(word for word in tokens if word != "-"), "--", "-"]


def _asked_format(tokens: Sequence[str]) -> Format:
    """Which form an error is wanted in, though the command line may not be understood."""
    for this, following in pairwise((*tokens, "")):
        if this == "--format=json" or (this == "--format" and following == "json"):
            return "json"
    return "text"


def _one_line(error: CycloptsError) -> str:
    text = " ".join(str(error).split())
    word = error.unused_tokens[0] if isinstance(error, UnknownCommandError) and error.unused_tokens else ""
    if word.startswith("-"):
        text = f'Unknown option "{word}" where a command is expected; a command\'s options come after it.'
    if isinstance(error, UnusedCliTokensError):
        unused = " ".join(error.unused_tokens or ())
        text = f'"{unused}" is more than it takes; a text with spaces goes into quotes.'
    command = " ".join(("cos", *(error.command_chain or ())))
    return f"{text}{'' if text.endswith(('.', '?')) else '.'} `{command} --help` shows what it takes."


def _known(error: BaseException) -> CliError | None:
    """The error of a person's input or settings behind an exception; None is a fault of ours."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    if isinstance(error, CliError):
        return error
    # Looked up by what has been imported: a command that never read a plan cannot raise its error.
    for module, name, kind in (
        ("custodes.policy.settings", "SettingsError", "settings"),
        ("custodes.adapters.errors", "AdapterError", "adapters"),
        ("custodes.supervision.plans.plan", "PlanError", "plan"),
        ("custodes.overseer.reading", "ConfigError", "overseer"),
        ("custodes.supervision.plans.plan_standing", "PlanRunError", "resume"),
        ("custodes.supervision.plans.resolution", "ResolutionError", "resolve"),
        ("custodes.supervision.asks.operator_ask", "OperatorError", "request"),
        ("custodes.supervision.record.audit", "AuditError", "audit"),
        ("custodes.store", "StoreError", "store"),
    ):
        loaded = sys.modules.get(module)
        if loaded is not None and isinstance(error, getattr(loaded, name, ())):
            return CliError(str(error), kind=kind, code=USAGE if kind == "plan" else FAILED)
    return None
