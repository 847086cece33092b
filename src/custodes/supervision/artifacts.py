"""The files that evidence names: looked at, never believed.

A file inside the project is hashed and compared with what was stated. One that is missing or differs is
told as that; one that is outside, cannot be read, or was stated without a hash is told as not looked at.
"""

from __future__ import annotations

import hashlib
import os
import stat
from pathlib import Path

import anyio.to_thread
from msgspec.structs import replace

from custodes.supervision.evidence import Artifact, Evidence

MAX_HASHED = 256 * 1024 * 1024
"""The bytes that are read for the artifacts of one answer; what lies beyond is not looked at."""
_CHUNK = 1024 * 1024


async def verified(evidence: Evidence, project: Path) -> Evidence:
    """The evidence with what is true of each artifact. Ask while the work's scope is still held.

    Files are read in a thread; cancelled, nobody waits for it.
    """
    if not evidence.artifacts:
        return evidence
    artifacts = await anyio.to_thread.run_sync(
        _all_looked_at, evidence.artifacts, project, abandon_on_cancel=True
    )
    return replace(evidence, artifacts=artifacts)


def _all_looked_at(artifacts: tuple[Artifact, ...], project: Path) -> tuple[Artifact, ...]:
    left = MAX_HASHED
    looked: list[Artifact] = []
    for artifact in artifacts:
        verdict, problem, read = _looked_at(artifact, project, left)
        left -= read
        looked.append(replace(artifact, verified=verdict, problem=problem))
    return tuple(looked)


def _looked_at(artifact: Artifact, project: Path, limit: int) -> tuple[bool | None, str, int]:
    """Whether the file is what was stated, why not, and the bytes that were read to know it."""
    try:
        place = (project / artifact.path).resolve()
        if not place.is_relative_to(project.resolve()):
            return None, "is outside the project, where nobody looks", 0
        # A pipe must not hold us up, and what `place` says now is what is opened.
        descriptor = os.open(place, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return False, "there is no such file", 0
    except (OSError, ValueError, RuntimeError) as error:  # a name that none can have, a loop of links
        return None, f"cannot be read: {getattr(error, 'strerror', None) or error}", 0
    try:
        return _compared(artifact, descriptor, limit)
    except OSError as error:
        return None, f"cannot be read: {error.strerror or error}", 0
    finally:
        os.close(descriptor)


def _compared(artifact: Artifact, descriptor: int, limit: int) -> tuple[bool | None, str, int]:
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        return False, "is no file", 0
    if not artifact.sha256:
        return None, "no SHA-256 was stated", 0
    if status.st_size > limit:
        return None, f"is too large to look at ({status.st_size} bytes; {limit} are left of the bound)", 0
    found, read = _hash(descriptor, limit)
    if found == artifact.sha256.strip().lower().removeprefix("sha256:"):
        return True, "", read
    return False, f"its SHA-256 is {found}, another than stated", read


def _hash(descriptor: int, limit: int) -> tuple[str, int]:
    """Of the file as far as the limit: one that grows while it is read ends there, too."""
    digest, read = hashlib.sha256(), 0
    while read < limit and (chunk := os.read(descriptor, min(_CHUNK, limit - read))):
        digest.update(chunk)
        read += len(chunk)
    return digest.hexdigest(), read
