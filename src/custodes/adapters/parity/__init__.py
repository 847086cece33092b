"""The contract every adapter keeps, as tests: ``pytest --custodes-adapter PATH_OR_ID``.

An adapter says in its ``parity.py`` how to make its runtime fail in each of `CASES`, on a `Stage`;
`CHECKS` dispatches and judges what comes back. docs/adapters.md shows it on an example.
"""

from custodes.adapters.parity.cases import CASES, Case
from custodes.adapters.parity.checks import CHECKS
from custodes.adapters.parity.driving import ContractError
from custodes.adapters.parity.stage import SILENCE, Stage, prints
from custodes.adapters.parity.subject import Subject, find_subject

__all__ = [
    "CASES",
    "CHECKS",
    "SILENCE",
    "Case",
    "ContractError",
    "Stage",
    "Subject",
    "find_subject",
    "prints",
]
