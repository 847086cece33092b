from __future__ import annotations

import subprocess
import sys

import pytest

import custodes
from custodes import supervision


def test_every_name_of_the_door_is_there_and_the_packages_own_names_are_among_them() -> None:
    found = {name: getattr(supervision, name) for name in supervision.__all__}
    assert len({id(value) for value in found.values()}) == len(supervision.__all__)
    for name in set(custodes.__all__) - {"__version__"}:
        assert getattr(custodes, name) is found[name]


def test_the_door_alone_loads_nothing_of_what_is_behind_it() -> None:
    told = "import sys, custodes.supervision; print([n for n in sys.modules if n.startswith('custodes.')])"
    ran = subprocess.run([sys.executable, "-c", told], capture_output=True, text=True, check=True)
    assert ran.stdout == "['custodes.supervision']\n"


def test_a_name_that_is_not_there_is_told_as_one() -> None:
    with pytest.raises(AttributeError, match=r"module 'custodes\.supervision' has no attribute 'Supervison'"):
        supervision.Supervison  # type: ignore[attr-defined]  # noqa: B018 - the lookup is what is tried
