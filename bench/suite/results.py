"""What a run found: every figure of every round, with the declarations that say what they mean.

``bench/results.json`` is a `Results`, and ``bench/results.schema.json`` its schema.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from bench.suite.contender import Figures
from bench.suite.measure import Measure, Plot


class ResultsError(Exception):
    """A file that holds no results of this version of the suite."""


class Entrant(msgspec.Struct, frozen=True):
    """A contender as it entered. ``cannot`` says why it did not run."""

    name: str
    version: str = ""
    cannot: str = ""


class Sample(msgspec.Struct, frozen=True):
    """One contender's figures for one case and size, for each round in which it was asked. ``cannot`` says
    why there are no more."""

    contender: str
    case: str
    size: int
    rounds: tuple[Figures, ...] = ()
    cannot: str = ""


class Found(msgspec.Struct, frozen=True):
    """``at`` is the day, ``load`` the machine's one-minute load when the bench began and when it ended.
    ``failed`` says why there are no figures at all."""

    at: str
    machine: str
    load: tuple[float, float]
    about: str = ""
    entrants: tuple[Entrant, ...] = ()
    measures: tuple[Measure, ...] = ()
    samples: tuple[Sample, ...] = ()
    plots: tuple[Plot, ...] = ()
    failed: str = ""

    def sample(self, contender: str, case: str, size: int) -> Sample | None:
        for each in self.samples:
            if (each.contender, each.case, each.size) == (contender, case, size):
                return each
        return None


class Results(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What each bench found when it last ran, by its name."""

    benches: dict[str, Found] = {}
    version: int = 2


def read(file: Path) -> Results:
    """:raises ResultsError: it is not there, or is none of ours."""
    try:
        return msgspec.json.decode(file.read_bytes(), type=Results)
    except FileNotFoundError as error:
        raise ResultsError(f"there is no {file}; scripts/bench writes one") from error
    except msgspec.DecodeError as error:
        raise ResultsError(
            f"{file} holds no results of this suite ({error}); remove it to begin anew"
        ) from error


def schema() -> bytes:
    """The JSON Schema of a file of results."""
    return msgspec.json.format(msgspec.json.encode(msgspec.json.schema(Results)), indent=1) + b"\n"


def write(file: Path, results: Results) -> None:
    """Whole or not at all."""
    beside = file.with_name(file.name + ".new")
    beside.write_bytes(msgspec.json.format(msgspec.json.encode(results), indent=1) + b"\n")
    beside.replace(file)
