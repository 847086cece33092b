"""A project's own adapter is data until the person who runs it trusts its folder.

A repository can bring an adapter, and an adapter names programs to run and addresses to send prompts
and keys to. So nothing of it is imported or run before the person says so once, in their own
configuration and outside of any repository; and what was trusted is the *content* of the folder, so a
later pull that changes a byte, a name or a mode of it undoes the trust by itself.

The whole folder counts, compiled files too (an interpreter would prefer a planted one to its source).
A link that leaves the folder, a pipe or a device cannot be covered by a hash and is refused.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from custodes.adapters.errors import AdapterError, UntrustedError
from custodes.replacing import replace_file

MAX_FILES = 2_000
MAX_BYTES = 16 << 20
_LOCK_SECONDS = 10


class Trusted(msgspec.Struct, frozen=True, kw_only=True):
    """One folder's trust: the hash of what was in it, and when that was said (ISO 8601, UTC)."""

    digest: str
    since: str


class TrustFile(msgspec.Struct, frozen=True, kw_only=True):
    version: int = 1
    folders: dict[str, Trusted] = {}
    """By the folder's real path."""


def trust_file() -> Path:
    """``$XDG_CONFIG_HOME/custodes/trust.json``; a relative value counts for nothing (XDG)."""
    stated = os.environ.get("XDG_CONFIG_HOME", "")
    base = Path(stated) if stated and Path(stated).is_absolute() else Path.home() / ".config"
    return base / "custodes" / "trust.json"


def signature(folder: Path) -> tuple[tuple[str, int, int, int, int, int], ...]:
    """What the folder looks like by stats alone: each entry's name, mode, inode, size, mtime and ctime (ns).

    Where this is unchanged, so is the digest; it is what makes asking again cheap.

    :raises UntrustedError: the folder cannot be hashed (see `folder_digest`).
    """
    return tuple(
        (name, at.st_mode, at.st_ino, at.st_size, at.st_mtime_ns, at.st_ctime_ns)
        for name, _, at in _entries(folder)
    )


def folder_digest(folder: Path) -> str:
    """``sha256:…`` over every name, kind, executable bit, content and link target in the folder.

    :raises UntrustedError: the folder is a link or holds a link that leaves it, a pipe, a device or a
        socket, or more than `MAX_FILES` entries or `MAX_BYTES` bytes.
    """
    total = hashlib.sha256()
    for name, path, at in _entries(folder):
        if stat.S_ISLNK(at.st_mode):
            kind, content = "link", os.fsencode(os.readlink(path))  # noqa: PTH115 - a plain string
        elif stat.S_ISDIR(at.st_mode):
            kind, content = "folder", b""
        else:
            kind = "program" if at.st_mode & 0o111 else "file"
            content = _content(path)
        for part in (kind.encode(), os.fsencode(name), content):
            # Lengths first: no two different folders may feed the same bytes.
            total.update(len(part).to_bytes(8, "big"))
            total.update(part)
    return f"sha256:{total.hexdigest()}"


def trusted_digest(folder: Path) -> str:
    """The folder's digest if it stands exactly as it was when it was trusted, else ``""``. Runs nothing.

    :raises UntrustedError: the folder cannot be trusted at all, or the trust file itself cannot be.
    """
    known = read_trust(trust_file()).folders.get(str(folder.resolve()))
    return known.digest if known is not None and known.digest == folder_digest(folder) else ""


def trust(folder: Path) -> str:
    """Keep the folder's digest in the user's configuration (mode 0600, written whole or not at all).

    :raises AdapterError: the folder cannot be hashed, or the trust file not read or written.
    """
    digest = folder_digest(folder)
    since = datetime.now(UTC).isoformat(timespec="seconds")
    with _changing(trust_file()) as folders:
        folders[str(folder.resolve())] = Trusted(digest=digest, since=since)
    return digest


def distrust(folder: Path) -> bool:
    """Forget the folder. Whether it had been known. :raises AdapterError: as `trust`."""
    with _changing(trust_file()) as folders:
        return folders.pop(str(folder.resolve()), None) is not None


def read_trust(file: Path) -> TrustFile:
    """What the person trusted; nothing where there is no file.

    :raises UntrustedError: the file is not only the user's own to write, or not readable as ours: then
        nothing is trusted, and it is said.
    """
    try:
        with file.open("rb") as opened:
            at = os.fstat(opened.fileno())
            if at.st_uid != os.geteuid() or at.st_mode & 0o022:
                raise UntrustedError(f"{file}: must belong to you and be writable by you alone (chmod 600)")
            found = msgspec.json.decode(opened.read(), type=TrustFile)
    except FileNotFoundError:
        return TrustFile()
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise UntrustedError(f"{file}: cannot be read ({error}); repair or remove it") from error
    if found.version != 1:
        raise UntrustedError(f"{file}: version {found.version} is not known to this Custodes")
    return found


@contextlib.contextmanager
def _changing(file: Path) -> Iterator[dict[str, Trusted]]:
    """The folders to change in place; written back under a lock when the block ends well."""
    from filelock import FileLock, Timeout  # not needed by anyone who only reads

    try:
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with FileLock(file.with_suffix(".lock"), timeout=_LOCK_SECONDS, mode=0o600):
            known = read_trust(file)
            folders = dict(known.folders)
            yield folders
            content = msgspec.json.encode(msgspec.structs.replace(known, folders=folders))
            replace_file(file, msgspec.json.format(content, indent=2) + b"\n", file.with_suffix(".new"))
    except Timeout as error:
        raise AdapterError(f"{file}: another process has held it for {_LOCK_SECONDS} s; try again") from error
    except OSError as error:
        raise AdapterError(f"{file}: cannot be written: {error.strerror}") from error


def _entries(folder: Path) -> Iterator[tuple[str, str, os.stat_result]]:
    """Every entry under the folder in one order everywhere: relative name, path, lstat.

    By plain strings: it is asked at every admission, where pathlib would be most of the cost.
    """
    if folder.is_symlink():
        raise UntrustedError(f"{folder}: is a link; put the adapter's files there themselves")
    top = str(folder)
    count = size = 0
    pending = [top]
    while pending:
        here = pending.pop()
        try:
            with os.scandir(here) as found:
                entries = sorted(found, key=lambda entry: entry.name)
        except OSError as error:
            raise UntrustedError(f"{here}: cannot be read: {error.strerror}") from error
        for entry in entries:
            path = entry.path
            try:
                at = entry.stat(follow_symlinks=False)
            except OSError as error:
                raise UntrustedError(f"{path}: cannot be read: {error.strerror}") from error
            count += 1
            size += at.st_size
            if count > MAX_FILES or size > MAX_BYTES:
                raise UntrustedError(f"{folder}: holds more than {MAX_FILES} entries or {MAX_BYTES} bytes")
            if stat.S_ISLNK(at.st_mode):
                if not Path(path).resolve().is_relative_to(folder.resolve()):
                    raise UntrustedError(f"{path}: is a link that leaves the adapter's folder")
            elif stat.S_ISDIR(at.st_mode):
                pending.append(path)
            elif not stat.S_ISREG(at.st_mode):
                raise UntrustedError(f"{path}: is neither a file, a folder nor a link")
            yield path[len(top) + 1 :], path, at


def _content(path: str) -> bytes:
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
        with os.fdopen(handle, "rb") as file:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                raise UntrustedError(f"{path}: is no longer a plain file")
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise UntrustedError(f"{path}: cannot be read: {error.strerror}") from error
    if len(data) > MAX_BYTES:
        raise UntrustedError(f"{path}: holds more than {MAX_BYTES} bytes")
    return data
