"""Where the file may stand."""

from __future__ import annotations

from collections import namedtuple
from pathlib import Path

import psutil
import pytest

from custodes.store import StoreOnNetwork
from custodes.store.place import file_system, prepare

Mount = namedtuple("Mount", "mountpoint fstype")


def test_the_innermost_mount_decides(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mounts = [Mount("/", "ext4"), Mount(str(tmp_path / "share"), "nfs4"), Mount(str(tmp_path / "sh"), "cifs")]
    monkeypatch.setattr(psutil, "disk_partitions", lambda **_: mounts)
    assert file_system(tmp_path / "share" / "project") == "nfs4"
    assert file_system(tmp_path / "shared") == "ext4"


@pytest.mark.parametrize("kind", ["nfs4", "cifs", "SMBFS", "fuse.sshfs"])
def test_a_network_file_system_is_refused_before_anything_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    share = tmp_path / "share"
    share.mkdir()
    monkeypatch.setattr(psutil, "disk_partitions", lambda **_: [Mount(str(share), kind)])
    with pytest.raises(StoreOnNetwork, match=rf"network file system \({kind}\).*local disk"):
        prepare(share / "custodes.db")
    assert list(share.iterdir()) == []


def test_a_link_is_followed_to_where_the_file_really_stands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "share").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "share")
    monkeypatch.setattr(psutil, "disk_partitions", lambda **_: [Mount(str(tmp_path / "share"), "nfs")])
    with pytest.raises(StoreOnNetwork):
        prepare(tmp_path / "link" / "custodes.db")


def test_a_disk_of_this_machine_is_named() -> None:
    """The root of a chroot is none by itself."""
    last = psutil.disk_partitions(all=True)[-1]
    assert file_system(Path(last.mountpoint)) == last.fstype


def test_a_file_that_others_could_read_is_closed_to_them(tmp_path: Path) -> None:
    path = tmp_path / "custodes.db"
    path.touch(0o644)
    path.chmod(0o644)
    prepare(path)
    assert path.stat().st_mode & 0o777 == 0o600
