"""Child specs: what is refused, and who is started again."""

from __future__ import annotations

import math
from typing import Any

import pytest

from custodes.actors import Actor, ChildSpec
from custodes.actors.child_spec import must_restart


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"id": ""}, "non-empty text without a slash"),
        ({"id": "a/b"}, "non-empty text without a slash"),
        ({"start": None}, "start must be a callable"),
        ({"restart": "always"}, "restart must be one of permanent, transient, temporary, not 'always'"),
        ({"shutdown": -1}, "shutdown must be a finite number of seconds"),
        ({"shutdown": math.inf}, "shutdown must be a finite number of seconds"),
        ({"shutdown": math.nan}, "shutdown must be a finite number of seconds"),
    ],
)
def test_what_cannot_be_followed_is_said(changes: dict[str, Any], words: str) -> None:
    arguments: dict[str, Any] = {"id": "a", "start": Actor} | changes
    problem = ChildSpec[Actor](**arguments).problem()
    assert problem is not None
    assert words in problem


def test_permanent_always_transient_after_a_crash_temporary_never() -> None:
    assert [must_restart("permanent", crashed=crashed) for crashed in (True, False)] == [True, True]
    assert [must_restart("transient", crashed=crashed) for crashed in (True, False)] == [True, False]
    assert [must_restart("temporary", crashed=crashed) for crashed in (True, False)] == [False, False]
