"""Figures in words: three digits and the unit that fits."""

from __future__ import annotations

from bench.suite.reckoning import Figure

TIME = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))
BYTES = ((1e6, "MB"), (1e3, "kB"), (1.0, "B"))
KINDS = {"seconds": TIME, "cpu": TIME, "bytes": BYTES}


def kind(key: str) -> tuple[tuple[float, str], ...]:
    """The units of a figure by its name: ``seconds``, ``cpu`` and what ends in ``_s`` are times, what ends in
    ``bytes`` bytes, and anything else a count."""
    if key.endswith("_s"):
        return TIME
    return BYTES if key.endswith("bytes") else KINDS.get(key, ((1.0, ""),))


def amount(value: float, key: str) -> str:
    """``0.00123`` seconds: ``1.23 ms``."""
    units = kind(key)
    scale, unit = next((each for each in units if abs(value) >= each[0]), units[-1])
    return f"{digits(value / scale)} {unit}".rstrip()


def digits(value: float) -> str:
    """Three that count; whole from a hundred on."""
    if value == 0 or abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def spread(figure: Figure, key: str) -> str:
    return f"{amount(figure.least, key)} to {amount(figure.most, key)}" if figure.least != figure.most else ""


def times(value: float) -> str:
    """A ratio; far below one it is told as a part: ``1/80``."""
    return f"1/{digits(1 / value)}" if 0 < value < 0.1 else digits(value)
