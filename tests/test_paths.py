"""Whether something is there, or nobody can tell: the same on every Python."""

from __future__ import annotations

from pathlib import Path

import pytest

from custodes.adapters.agents import read_agents
from custodes.adapters.errors import DescriptorError
from custodes.paths import absent, there
from custodes.store import Database, StoreUnusable
from custodes.supervision.record.project_file import overriding

TOO_LONG = "x" * 5_000


def test_what_is_there_is_told_from_what_is_not(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "leads-nowhere").symlink_to("gone")
    (tmp_path / "loop").symlink_to("loop")
    names = ["", "file", "leads-nowhere", "loop", "gone", "gone/deeper", "file/deeper", "loop/deeper", "a\0b"]
    assert [name for name in names if there(tmp_path / name)] == ["", "file", "leads-nowhere", "loop"]


def test_what_nobody_can_tell_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="File name too long"):
        there(tmp_path / TOO_LONG)


def test_agents_that_cannot_be_looked_for_are_not_taken_for_none(tmp_path: Path) -> None:
    with pytest.raises(DescriptorError, match="cannot be read: File name too long"):
        read_agents(tmp_path / TOO_LONG)


def test_only_what_is_certainly_not_there_is_absent(tmp_path: Path) -> None:
    assert [name for name in ("", "gone", TOO_LONG) if absent(tmp_path / name)] == ["gone"]


@pytest.mark.anyio
async def test_a_store_that_cannot_be_looked_for_is_not_taken_for_none(tmp_path: Path) -> None:
    with pytest.raises(StoreUnusable, match="File name too long"):
        await Database.open_read_only(tmp_path / TOO_LONG, [])
    with pytest.raises(StoreUnusable, match="File name too long"):
        async with overriding(tmp_path / TOO_LONG):
            pass
