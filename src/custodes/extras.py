"""What is installed only where it is asked for: the extras of the package."""

from __future__ import annotations


def missing(who: str, extra: str) -> str:
    """What a person reads where ``who`` (with its verb) needs an extra that is not there. uv and pipx keep an
    environment of their own for it, so pip is not the answer for everybody. Each of the three adds to what is
    there, whether that came from an index, a wheel or a clone; uv drops the extras that it is not told."""
    return (
        f"{who} what is not installed; `pip install 'custodes[{extra}]'` brings it. Where uv or pipx "
        f"installed custodes it is `uv tool install 'custodes[{extra}]'`, with the other extras in use in "
        f"the same brackets, or `pipx inject custodes 'custodes[{extra}]'`"
    )
