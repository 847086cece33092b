"""The door of the room."""

from __future__ import annotations

import subprocess
import sys

import custodes.actors
from custodes.actors import ActorError


def test_every_name_of_the_door_is_there_and_public() -> None:
    assert sorted(custodes.actors.__all__) == list(custodes.actors.__all__)
    assert all(hasattr(custodes.actors, name) for name in custodes.actors.__all__)


def test_every_error_of_the_door_is_an_actor_error() -> None:
    errors = [value for value in vars(custodes.actors).values() if isinstance(value, type)]
    errors = [error for error in errors if issubclass(error, BaseException)]
    assert len(errors) == 13
    assert all(issubclass(error, ActorError) for error in errors)


def test_the_kernel_loads_nothing_it_need_not_know() -> None:
    code = (
        "import sys, custodes.actors\n"
        "print(*{name.partition('.')[0] for name in sys.modules} "
        "& {'msgspec', 'opentelemetry', 'aiosqlite', 'httpx2', 'trio', 'psutil', 'asyncio'})"
    )
    loaded = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    ).stdout.split()
    assert set(loaded) <= {"asyncio"}
