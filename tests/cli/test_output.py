from __future__ import annotations

import io
import sys

import pytest

from custodes.cli.output import complain, paint, plain, write
from support.cos import Terminal


def test_what_an_encoding_lacks_is_replaced_and_never_raised() -> None:
    buffer = io.BytesIO()
    stream = io.TextIOWrapper(buffer, encoding="ascii")
    write("caf\u00e9 ✓", stream)
    assert buffer.getvalue() == b"caf? ?\n"


def test_foreign_text_is_one_bounded_line_without_control_characters() -> None:
    assert plain("a\r\nb\x1b[2Jc\x07\x9bd") == "a b[2Jcd"
    assert plain("src/\u202egpj.exe\u2066") == "src/gpj.exe"
    assert plain("x" * 500) == "x" * 399 + "…"


def test_an_error_that_quotes_a_file_cannot_drive_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    complain("adapter.yaml: unknown key '\x1b[2J\x9b\u202e'\n  on a second line")
    assert capsys.readouterr().err == "adapter.yaml: unknown key '[2J'\n  on a second line\n"


@pytest.mark.parametrize(
    ("variable", "value", "coloured"),
    [("NO_COLOR", "", True), ("NO_COLOR", "1", False), ("TERM", "dumb", False), ("TERM", "xterm", True)],
)
def test_colours_are_for_terminals_that_want_them(
    monkeypatch: pytest.MonkeyPatch, variable: str, value: str, coloured: bool
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv(variable, value)
    monkeypatch.setattr(sys, "stdout", Terminal())
    assert paint("text", "red") == ("\x1b[31mtext\x1b[0m" if coloured else "text")
