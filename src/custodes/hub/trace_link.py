"""The address at which a trace is looked at, in the viewer that its spans are sent to."""

from __future__ import annotations

from urllib.parse import quote, urlsplit

PLACE = "{trace}"
"""Where the trace's id goes."""


class TraceLinkError(ValueError):
    """The words say what would work."""


def check(template: str) -> str:
    """The template, if it can be linked to.

    :raises TraceLinkError: it leads nowhere that a browser opens, or names no place for the id.
    """
    try:
        parts = urlsplit(template)
        web = parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        web = False
    if not web or PLACE not in template:
        raise TraceLinkError(
            f"{template!r} is no address with a place for the trace's id; "
            f"http://localhost:16686/trace/{PLACE} would work"
        )
    return template


def link(template: str, trace: str) -> str:
    """The address of one trace. ``template`` is one that :func:`check` has let pass."""
    return template.replace(PLACE, quote(trace, safe=""))
