"""One YAML file read as data: bounded, never followed out of place, its errors with file and line.

A file of a repository that nobody has looked at yet is read here, so nothing in it may hang, flood or
run: only regular files, at most `MAX_BYTES`, and of what they hold no more than `yaml_text` takes.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

from custodes.adapters.errors import DescriptorError

MAX_BYTES = 1 << 20

Identity = tuple[int, int, int, int, int]


def identity(path: Path | str) -> Identity | None:
    """What tells one version of a file from the next without reading it: device, inode, size, mtime and
    ctime in nanoseconds. None where there is no such file."""
    try:
        found = os.stat(path)  # noqa: PTH116 - without pathlib's own cost: this is asked at every admission
    except (OSError, ValueError):
        return None
    return (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)


def read_bytes(path: Path) -> bytes:
    """The bytes of a regular file.

    :raises DescriptorError: no such file, no plain file (a pipe would hang its reader), or over the bound.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise DescriptorError(f"{path}: cannot be read: {error.strerror}") from error
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise DescriptorError(f"{path}: is not a plain file")
    with os.fdopen(descriptor, "rb") as file:
        data = file.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise DescriptorError(f"{path}: is larger than {MAX_BYTES} bytes")
    return data


def read_mapping(path: Path) -> dict[str, Any]:
    """The mapping of a regular file; an empty file is an empty one.

    :raises DescriptorError: as :func:`read_bytes` and :func:`parse_mapping`.
    """
    return parse_mapping(path, read_bytes(path))


def parse_mapping(path: Path, data: bytes) -> dict[str, Any]:
    """The mapping that the bytes of ``path`` hold.

    YAML 1.2, so ``id: no`` stays text, and a key given twice is an error.

    :raises DescriptorError: not UTF-8, not YAML, a duplicate key, no mapping, or too large once expanded.
    """
    from custodes.adapters import yaml_text  # its own import takes long: only where a file is really read

    try:
        value = yaml_text.load(data.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise DescriptorError(f"{path}: is not UTF-8 text (byte {error.start})") from error
    except yaml_text.YamlError as error:
        line = f", line {error.line}" if error.line else ""
        raise DescriptorError(f"{path}{line}: not readable as YAML: {error.problem}") from error
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise DescriptorError(f"{path}: must be a mapping of keys, but is {_kind(value)}")
    _check_keys(path, value)
    return value


def _check_keys(path: Path, value: Any) -> None:
    pending = [value]
    while pending:
        here = pending.pop()
        if isinstance(here, dict):
            for key in here:
                if not isinstance(key, str):
                    raise DescriptorError(f"{path}: the key {key!r} must be text (put it in quotes)")
            pending.extend(here.values())
        elif isinstance(here, list):
            pending.extend(here)


def _kind(value: Any) -> str:
    """What it is instead, without quoting it."""
    return "a list" if isinstance(value, list) else "a text" if isinstance(value, str) else "one value"
