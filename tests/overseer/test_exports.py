from __future__ import annotations

import subprocess
import sys

from custodes import overseer


def test_the_door_names_what_is_there() -> None:
    assert overseer.__all__ == sorted(overseer.__all__)
    assert all(hasattr(overseer, name) for name in overseer.__all__)


def test_neither_the_client_nor_the_postman_is_loaded_before_they_are_needed() -> None:
    late = ("httpx2", "apprise", "ruamel")
    told = f"import sys, custodes.overseer; print([n for n in {late} if n in sys.modules])"
    done = subprocess.run([sys.executable, "-c", told], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
