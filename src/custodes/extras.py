"""What is installed only where it is asked for: the extras of the package."""

from __future__ import annotations


def missing(who: str, extra: str) -> str:
    """What a person reads where ``who`` (with its verb) needs an extra that is not there. uv and pipx keep an
    environment of their own for it, so pip is not the answer for everybody."""
    return (
        f"{who} what is not installed; `pip install 'custodes[{extra}]'` brings it, or `uv tool install` or "
        f"`pipx install --force` of the same where one of them installed custodes (in a clone: '.[{extra}]')"
    )
