"""The templates: escaped without exception, since a run's text is hostile; and how figures read."""

from __future__ import annotations

import shlex
from functools import cache, partial
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from custodes.hub.runs_view import element_id
from custodes.supervision.record.clock import local_time, utc_time

STATIC = files("custodes.hub") / "static"


@cache
def environment() -> Environment:
    made = Environment(
        loader=PackageLoader("custodes.hub", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {
        "seconds": seconds,
        "count": count,
        "usd": usd,
        "amount": amount,
        "clock": local_time,  # the browser's machine is this one, or one of the same person
        "iso": utc_time,
        "words": words,
        "shell": shlex.join,
        "element_id": partial(element_id, "e"),
    }
    return made


NONE = "\N{EN DASH}"
"""For what is not known."""


def render(template: str, **values: Any) -> str:
    return environment().get_template(template).render(values)


def seconds(value: float) -> str:
    """A length of time, in the two largest units that say it."""
    if value < 9.95:
        return f"{value:.1f} s"
    whole = round(value)
    if whole < 60:
        return f"{whole} s"
    if whole < 3_600:
        return f"{whole // 60} min {whole % 60} s"
    if whole < 86_400:
        return f"{whole // 3_600} h {whole % 3_600 // 60} min"
    return f"{whole // 86_400} d {whole % 86_400 // 3_600} h"


def count(value: int | None) -> str:
    """A number of tokens, to three figures."""
    if value is None:
        return NONE
    for unit, size in (("M", 1_000_000), ("k", 1_000)):
        if value >= size:
            return f"{value / size:.3g} {unit}" if value < 999.5 * size else f"{value / size:.0f} {unit}"
    return str(value)


def usd(value: float | None) -> str:
    if value is None:
        return NONE
    return f"${value:.2f}" if value >= 0.995 else f"${value:.4f}"


def amount(value: float) -> str:
    """A figure of a budget: whole where it is, else to the cent."""
    return f"{value:,.0f}" if value == int(value) or value >= 100 else f"{value:,.2f}"


def words(value: str) -> str:
    """An identifier as words."""
    return value.replace("_", " ")
