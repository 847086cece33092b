"""The policy service of one project: read, validate, patch, lock and write its settings file.

Every surface goes through here. Reading costs one ``stat`` while the file is unchanged. Writing takes the
lock that every other program takes that writes this file (``flock`` on ``.coding-os/hub-settings.lock``),
reads again under it, and replaces the file as a whole, so that no update is lost and no reader and no
power cut ever sees half of one. What a change does not name keeps its bytes.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import stat
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

import msgspec

from custodes.adapters.foreign import too_deep
from custodes.policy import json_text
from custodes.policy.catalog import Catalog
from custodes.policy.json_text import Edit
from custodes.policy.normalize import BadValueError, boolean, normalize, section
from custodes.policy.patch import ROOT, PolicyPatch, UnknownKeyError, cleared, edits, written
from custodes.policy.policy import Policy
from custodes.policy.roles import is_role, unknown_role
from custodes.policy.validate import Problem, blocking, problems
from custodes.replacing import replace_file

FOLDER = ".coding-os"
FILE = "hub-settings.json"
LOCK = "hub-settings.lock"

MAX_BYTES = 4 << 20
"""Of a settings file; it is shared with other programs, which keep sections of their own in it."""

LOCK_TIMEOUT = 30.0
"""Seconds that a writer waits for another one."""

_TICK_NS = 10_000_000
"""File times move in ticks of up to 10 ms. A file whose time is younger than that may still change without
its identity changing, so it is not taken from the cache."""

Identity = tuple[int, int, int, int, int]


class SettingsError(Exception):
    """The settings cannot be read, or a change of them is refused; the file's bytes are as they were.

    ``where`` is the file, or the key in it; ``problem`` what is wrong; ``remedy`` what would work.
    """

    def __init__(self, where: str, problem: str, remedy: str = "") -> None:
        super().__init__(f"{where}: {problem}" + (f"; {remedy}" if remedy else ""))
        self.where = where
        self.problem = problem
        self.remedy = remedy


class PolicyRefusedError(SettingsError):
    """A change that could never be dispatched, or names what does not exist. ``problems`` are all of them;
    ``keys`` names for each the policy's keys that make it so, dotted, the one in question last (``()`` where
    it is about no key that there is)."""

    def __init__(self, where: str, found: tuple[str, ...], keys: tuple[tuple[str, ...], ...] = ()) -> None:
        super().__init__(where, "; also ".join(found))
        self.problems = found
        self.keys: tuple[tuple[str, ...], ...] = keys or ((),) * len(found)


class OldVersionError(SettingsError):
    """A change was made on a version of the settings that is not the current one. ``current`` is."""

    def __init__(self, where: str, current: Snapshot) -> None:
        super().__init__(
            where, "the settings have changed since they were read", "read them again and decide anew"
        )
        self.current = current


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """The settings as they stood at one moment. ``digest`` is the same for the same policy and gates,
    however the file is written."""

    policy: Policy
    module_enabled: bool
    digest: str
    warnings: tuple[str, ...] = ()


class Settings:
    """Safe to call from several threads and processes. :meth:`patch` blocks: call it in a worker thread."""

    def __init__(self, project: Path) -> None:
        self.path: Path = Path(project) / FOLDER / FILE
        self._path = os.fspath(self.path)
        self._cached: tuple[Identity, Snapshot] | None = None
        self._missing: Snapshot | None = None

    def read(self) -> Snapshot:
        """The current settings; a missing file is every default, which is: disabled.

        :raises SettingsError: the file cannot be read, is no JSON object, or holds one bad value.
        """
        try:
            found = os.stat(self._path)  # noqa: PTH116  # the one call of the disabled path
        except (FileNotFoundError, NotADirectoryError):
            if self._missing is None:
                self._missing = self._snapshot({})
            return self._missing
        except OSError as error:
            self._unreadable(error)
        cached = self._cached
        if cached is not None and cached[0] == _identity(found):
            return cached[1]
        return self._load()

    def patch(self, change: PolicyPatch, catalog: Catalog, based_on: str | None = None) -> Snapshot:
        """Make a change under the lock and return the settings as they then stand.

        The change is merged field by field into what stands in the file at that moment. A change that
        comes to nothing writes nothing. Interrupted at any point, the old or the new file is there, whole.

        :param based_on: the digest of the settings that the change was decided on, where it must be refused
            on any others.
        :raises OldVersionError: the settings are not those any more; nothing was written.
        :raises PolicyRefusedError: the merged policy could never be dispatched because of this change.
        :raises SettingsError: the file is malformed or holds a bad value; the lock stayed taken for
            :data:`LOCK_TIMEOUT` seconds; the file cannot be written.
        """
        for role in {*change.roles, *(r for hints in change.presets.values() for r in hints)}:
            if not is_role(role):
                raise PolicyRefusedError("role", (unknown_role(role),))
        try:
            with self._locked():
                document = self._document()
                before = self._parse(document) if document else {}
                current = self._snapshot(before)
                if based_on is not None and based_on != current.digest:
                    raise OldVersionError(self._path, current)
                new = self._edited(document, before, current.policy, change, catalog)
                if new != document:
                    self._replace(new.encode())
        except OSError as error:
            raise SettingsError(self._path, f"cannot be written: {error.strerror or error}") from error
        return self.read()

    def stale(self, catalog: Catalog) -> tuple[Problem, ...]:
        """What stands in the settings and could not be dispatched now: shown as it is, marked unavailable.

        :raises SettingsError: as :meth:`read`.
        """
        return problems(self.read().policy, catalog)

    def _edited(
        self, document: str, before: dict[str, Any], old: Policy, change: PolicyPatch, catalog: Catalog
    ) -> str:
        try:
            wanted = edits(change, before.get(ROOT))
            clears = cleared(change)
        except UnknownKeyError as error:
            raise PolicyRefusedError("clear", (str(error),)) from error
        for path in clears:
            if path[0] == "roles" and len(path) > 1 and not is_role(path[1]) and path[1] not in old.roles:
                raise PolicyRefusedError("role", (unknown_role(path[1]),))
        if not wanted:
            return document
        new = json_text.edit(document or "{\n}\n", self._canonical(wanted))
        after = self._parse(new)
        try:
            policy = normalize(after.get(ROOT)).policy
        except BadValueError as error:
            raise PolicyRefusedError(
                error.where,
                (f"is {error.found}; {error.wanted} would work",),
                ((error.where.removeprefix(f"{ROOT}."),),),
            ) from error
        # A field that is cleared states nothing, so what was wrong before does not block clearing it.
        touched = [path for path, value in written(change).items() if value != ""]
        found = blocking(problems(old, catalog), problems(policy, catalog), touched)
        if found:
            raise PolicyRefusedError(
                ROOT,
                tuple(str(problem) for problem in found),
                tuple(tuple(".".join(path) for path in problem.involves) for problem in found),
            )
        return new

    @staticmethod
    def _canonical(wanted: tuple[Edit, ...]) -> list[Edit]:
        """A threshold given in lower case is written as every reader of the file knows it."""
        threshold = (ROOT, "complexity_threshold")
        return [
            msgspec.structs.replace(e, value=e.value.upper())
            if e.path == threshold and isinstance(e.value, str)
            else e
            for e in wanted
        ]

    def _load(self) -> Snapshot:
        try:
            content, found = self._content()
        except OSError as error:
            self._unreadable(error)
        snapshot = self._snapshot(self._parse(self._decode(content)))
        settled = time.time_ns() - found.st_mtime_ns >= _TICK_NS
        self._cached = (_identity(found), snapshot) if settled else None
        return snapshot

    def _document(self) -> str:
        """The file's text; empty where there is none yet."""
        try:
            content, _ = self._content()
        except FileNotFoundError:
            return ""
        except OSError as error:
            self._unreadable(error)
        document = self._decode(content)
        self._parse(document)  # an empty file is malformed, not missing
        return document

    def _content(self) -> tuple[bytes, os.stat_result]:
        """The file's bytes, and what it then was. A repository can link it to anything: what is no plain
        file could keep its reader waiting, or reading, for ever."""
        descriptor = os.open(self._path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(descriptor, "rb") as file:  # noqa: PTH123  # a descriptor, no path
            found = os.fstat(descriptor)
            if not stat.S_ISREG(found.st_mode):
                raise SettingsError(self._path, "is no plain file")
            content = file.read(MAX_BYTES + 1)
        if len(content) > MAX_BYTES:
            raise SettingsError(self._path, f"is larger than {MAX_BYTES} bytes")
        return content, found

    def _decode(self, content: bytes) -> str:
        try:
            return content.decode()
        except UnicodeDecodeError as error:
            self._malformed(f"byte {error.start} is not UTF-8")

    def _parse(self, document: str) -> dict[str, Any]:
        if document.startswith("\ufeff"):
            self._malformed("it begins with a byte order mark")
        if not document.strip():
            self._malformed("it is empty")
        try:
            value = json.loads(document, object_pairs_hook=_object, parse_constant=_no_constant)
        except json.JSONDecodeError as error:
            self._malformed(f"line {error.lineno}, column {error.colno}: {error.msg}")
        except RecursionError:
            self._malformed("it is nested too deeply")
        except ValueError as error:
            self._malformed(str(error))
        if too_deep(document, value):
            self._malformed("it is nested too deeply")
        if not isinstance(value, dict):
            self._malformed("it is no JSON object")
        return value

    def _snapshot(self, document: dict[str, Any]) -> Snapshot:
        try:
            reading = normalize(document.get(ROOT))
            cognition = section("cognition", document.get("cognition"))
            module_enabled = boolean("cognition.enabled", cognition.get("enabled", True))
        except BadValueError as error:
            raise SettingsError(
                f"{self._path}: {error.where}", f"is {error.found}", f"{error.wanted} would work"
            ) from error
        digest = hashlib.sha256(msgspec.json.encode((reading.policy, module_enabled), order="sorted"))
        return Snapshot(
            policy=reading.policy,
            module_enabled=module_enabled,
            digest=digest.hexdigest(),
            warnings=reading.warnings,
        )

    def _malformed(self, problem: str) -> NoReturn:
        raise SettingsError(
            self._path,
            f"malformed settings: {problem}",
            "repair the file by hand; nothing writes to it until then",
        )

    def _unreadable(self, error: OSError) -> NoReturn:
        raise SettingsError(self._path, f"cannot be read: {error.strerror or error}") from error

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        # Only writers pay for its import. No soft fallback: another program's flock would not see it.
        from filelock import FileLock, Timeout

        self.path.parent.mkdir(mode=0o755, parents=False, exist_ok=True)
        lock = FileLock(
            self.path.with_name(LOCK), timeout=LOCK_TIMEOUT, poll_interval=0.005, fallback_to_soft=False
        )
        try:
            lock.acquire()
        except Timeout as error:
            raise SettingsError(
                os.fspath(self.path.with_name(LOCK)),
                f"another program has held the settings lock for {LOCK_TIMEOUT:.0f} s",
                "try again when it is done",
            ) from error
        try:
            yield
        finally:
            lock.release()

    def _replace(self, content: bytes) -> None:
        """The lock is held, so the temporary file's name is ours alone."""
        target = Path(os.path.realpath(self.path))
        replace_file(target, content, target.with_name(f".{target.name}.new"))


def _identity(found: os.stat_result) -> Identity:
    return (found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino, found.st_dev)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"the key '{key}' stands twice in one object")
        found[key] = value
    return found


def _no_constant(word: str) -> NoReturn:
    raise ValueError(f"{word} is no JSON value")
