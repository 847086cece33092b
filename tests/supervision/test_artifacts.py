"""The files that evidence names are looked at: hashed where they may be, and told where they differ."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

import pytest

import custodes
from custodes.adapters.port import DispatchRequest, DispatchResult, ProgressSink
from custodes.supervision import artifacts
from custodes.supervision.artifacts import verified
from custodes.supervision.evidence import Artifact, Evidence, parse
from support import scripted

TEXT = b"a report\n"
SHA256 = hashlib.sha256(TEXT).hexdigest()


def naming(*told: dict[str, object]) -> Evidence:
    return parse("analyst", {"summary": "s", "artifacts": list(told)})


async def looked_at(project: Path, **told: object) -> Artifact:
    return (await verified(naming(told), project)).artifacts[0]


@pytest.mark.anyio
@pytest.mark.parametrize("stated", [SHA256, SHA256.upper(), f"sha256:{SHA256}"])
async def test_a_file_with_the_stated_hash_is_verified(tmp_path: Path, stated: str) -> None:
    (tmp_path / "report").write_bytes(TEXT)
    found = await looked_at(tmp_path, path="report", sha256=stated)
    assert (found.verified, found.problem) == (True, "")


@pytest.mark.anyio
async def test_another_hash_is_told_with_the_true_one(tmp_path: Path) -> None:
    (tmp_path / "report").write_bytes(TEXT)
    found = await looked_at(tmp_path, path="report", sha256="0" * 64)
    assert (found.verified, found.problem) == (False, f"its SHA-256 is {SHA256}, another than stated")


@pytest.mark.anyio
async def test_what_nobody_can_vouch_for_is_told_and_never_read_as_verified(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (tmp_path / "outside").write_bytes(TEXT)
    (project / "link").symlink_to(tmp_path / "outside")
    (project / "loop").symlink_to(project / "loop")
    (project / "inside").write_bytes(TEXT)
    os.mkfifo(project / "pipe")
    for path, verdict, says in [
        ("../outside", None, "outside the project"),
        (str(tmp_path / "outside"), None, "outside the project"),
        ("link", None, "outside the project"),
        ("gone", False, "no such file"),
        ("inside/below", False, "no such file"),
        ("pipe", False, "is no file"),
        (".", False, "is no file"),
        ("loop", None, "cannot be read"),
        ("nul\0", None, "cannot be read"),
    ]:
        found = await looked_at(project, path=path, sha256=SHA256)
        assert (found.verified, says in found.problem) == (verdict, True), (path, found)
    found = await looked_at(project, path="inside")
    assert (found.verified, found.problem) == (None, "no SHA-256 was stated")


@pytest.mark.anyio
async def test_no_more_is_read_for_one_answer_than_the_bound(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(artifacts, "MAX_HASHED", len(TEXT) + 1)
    for name in ("first", "second"):
        (tmp_path / name).write_bytes(TEXT)
    told: list[dict[str, object]] = [{"path": name, "sha256": SHA256} for name in ("first", "second")]
    first, second = (await verified(naming(*told), tmp_path)).artifacts
    assert (first.verified, second.verified) == (True, None)
    assert second.problem == f"is too large to look at ({len(TEXT)} bytes; 1 are left of the bound)"


@pytest.mark.anyio
@pytest.mark.parametrize("mode", ["explicit", "adaptive"])
async def test_what_a_child_names_is_looked_at_before_its_parent_has_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    """Above and below the adaptive gate alike."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    script = scripted.install(tmp_path, "one")
    scripted.configure(tmp_path, mode=mode)
    (tmp_path / "report").write_bytes(TEXT)

    async def act(request: DispatchRequest, progress: ProgressSink) -> DispatchResult:
        told = [{"path": "report", "sha256": SHA256, "verified": False}, {"path": "gone", "verified": True}]
        return DispatchResult(text=json.dumps({"summary": "s", "artifacts": told}))

    script.acts.append(act)
    async with custodes.Supervision(tmp_path) as supervision, supervision.conversation("c") as parent:
        outcome = await parent.dispatch(custodes.Work(role="analyst", prompt="x"))
    assert outcome.evidence is not None
    assert [each.verified for each in outcome.evidence.artifacts] == [True, False]
