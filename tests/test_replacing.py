"""A file is replaced as a whole, or stands as it did."""

from __future__ import annotations

from pathlib import Path

import pytest

from custodes.replacing import replace_file


def test_the_new_file_stands_in_the_place_of_the_old_with_the_mode_asked_for(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"old")
    replace_file(file, b"new", tmp_path / "aside", 0o640)
    assert (file.read_bytes(), file.stat().st_mode & 0o777) == (b"new", 0o640)
    assert [each.name for each in tmp_path.iterdir()] == ["file"]


def test_what_a_killed_writer_left_goes_and_is_never_followed(tmp_path: Path) -> None:
    theirs = tmp_path / "theirs"
    theirs.write_bytes(b"theirs")
    (tmp_path / "aside").symlink_to(theirs)
    replace_file(tmp_path / "file", b"new", tmp_path / "aside")
    assert (theirs.read_bytes(), (tmp_path / "file").read_bytes()) == (b"theirs", b"new")
    assert not (tmp_path / "file").is_symlink()


def test_where_it_cannot_be_put_in_place_nothing_is_left_of_the_new_one(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(OSError, match="directory"):
        replace_file(tmp_path / "folder", b"new", tmp_path / "aside")
    assert [each.name for each in tmp_path.iterdir()] == ["folder"]
