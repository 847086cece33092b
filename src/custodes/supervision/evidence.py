"""The typed slice each role returns: what a parent needs of it, bounded, never a transcript.

Only ``summary`` is required of every role, so that a small program can take part; the other fields are
what the role is for. A runtime that can enforce a schema is handed ``schema_for(role)``; what any other
one answers is parsed by ``parse`` and refused where it does not fit.
"""

from __future__ import annotations

import re
from typing import Any, Literal

import msgspec

from custodes.policy.roles import Role

MAX_BYTES = 256 * 1024
"""An answer larger than this is refused: evidence is a slice, artifacts go by path and hash."""

Severity = Literal["info", "low", "medium", "high", "critical"]
Confidence = Literal["low", "medium", "high"]


class Artifact(msgspec.Struct, frozen=True, kw_only=True):
    """A file too large or too binary to return: its path and SHA-256."""

    path: str
    sha256: str = ""
    note: str = ""


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """``place`` is a path, with ``:line`` where it is known."""

    message: str
    place: str = ""
    severity: Severity = "info"
    suggestion: str = ""


class Claim(msgspec.Struct, frozen=True, kw_only=True):
    claim: str
    source: str = ""
    confidence: Confidence = "medium"


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    decision: str
    rationale: str = ""
    alternatives: tuple[str, ...] = ()


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """Something that was run to see whether it holds: a test suite, a linter, a smoke test."""

    name: str
    passed: bool
    detail: str = ""


class Signal(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    value: str
    healthy: bool | None = None


class Slice(msgspec.Struct, frozen=True, kw_only=True, tag_field="role"):
    """What every role may return beside its own fields. ``open_items`` is what it leaves undone."""

    summary: str
    artifacts: tuple[Artifact, ...] = ()
    open_items: tuple[str, ...] = ()


class ResearcherEvidence(Slice, frozen=True, kw_only=True, tag="researcher"):
    claims: tuple[Claim, ...] = ()


class AnalystEvidence(Slice, frozen=True, kw_only=True, tag="analyst"):
    claims: tuple[Claim, ...] = ()
    risks: tuple[str, ...] = ()


class ArchitectEvidence(Slice, frozen=True, kw_only=True, tag="architect"):
    decisions: tuple[Decision, ...] = ()
    risks: tuple[str, ...] = ()


class DocumenterEvidence(Slice, frozen=True, kw_only=True, tag="documenter"):
    files_changed: tuple[str, ...] = ()


class ImplementerEvidence(Slice, frozen=True, kw_only=True, tag="implementer"):
    files_changed: tuple[str, ...] = ()
    checks: tuple[Check, ...] = ()


class ReviewerEvidence(Slice, frozen=True, kw_only=True, tag="reviewer"):
    findings: tuple[Finding, ...] = ()
    verdict: Literal["approve", "request_changes", "comment"] = "comment"


class DebuggerEvidence(Slice, frozen=True, kw_only=True, tag="debugger"):
    root_cause: str = ""
    reproduction: str = ""
    files_changed: tuple[str, ...] = ()
    checks: tuple[Check, ...] = ()


class SecurityAuditorEvidence(Slice, frozen=True, kw_only=True, tag="security_auditor"):
    findings: tuple[Finding, ...] = ()
    verdict: Literal["pass", "fail", "needs_review"] = "needs_review"


class DeployerEvidence(Slice, frozen=True, kw_only=True, tag="deployer"):
    environment: str = ""
    version: str = ""
    deployed: bool | None = None
    rollback: str = ""
    checks: tuple[Check, ...] = ()


class ObserverEvidence(Slice, frozen=True, kw_only=True, tag="observer"):
    signals: tuple[Signal, ...] = ()
    alerts: tuple[Finding, ...] = ()


class RefactorerEvidence(Slice, frozen=True, kw_only=True, tag="refactorer"):
    files_changed: tuple[str, ...] = ()
    checks: tuple[Check, ...] = ()


Evidence = (
    ResearcherEvidence
    | AnalystEvidence
    | ArchitectEvidence
    | DocumenterEvidence
    | ImplementerEvidence
    | ReviewerEvidence
    | DebuggerEvidence
    | SecurityAuditorEvidence
    | DeployerEvidence
    | ObserverEvidence
    | RefactorerEvidence
)

SLICES: dict[Role, type[Slice]] = {
    "researcher": ResearcherEvidence,
    "analyst": AnalystEvidence,
    "architect": ArchitectEvidence,
    "documenter": DocumenterEvidence,
    "implementer": ImplementerEvidence,
    "reviewer": ReviewerEvidence,
    "debugger": DebuggerEvidence,
    "security_auditor": SecurityAuditorEvidence,
    "deployer": DeployerEvidence,
    "observer": ObserverEvidence,
    "refactorer": RefactorerEvidence,
}


class EvidenceError(ValueError):
    """An answer that is not the evidence which was asked for."""


def schema_for(role: Role) -> dict[str, Any]:
    """The JSON Schema of a role's slice."""
    return msgspec.json.schema(SLICES[role])


_LEAST = '{"summary": "…"}'
_FENCE = re.compile(r"\A\s*```(?:json)?\s*\n(?P<body>.*?)\n?```\s*\Z", re.DOTALL)


def parse(role: Role, answer: str | bytes | dict[str, Any]) -> Evidence:
    """The slice in a runtime's final answer: a JSON object, or one in a single code fence.

    The ``role`` field may be missing; another role's slice is refused.

    :raises EvidenceError: the answer is too large, is no JSON object, or does not fit the role's slice.
    """
    if isinstance(answer, bytes):
        answer = answer.decode(errors="replace")
    document: Any = answer
    if isinstance(answer, str):
        if len(answer.encode()) > MAX_BYTES:
            raise EvidenceError(
                f"the answer is over {MAX_BYTES // 1024} KiB; evidence is a slice, not a transcript"
            )
        fenced = _FENCE.match(answer)
        try:
            document = msgspec.json.decode(fenced["body"] if fenced else answer)
        except (msgspec.DecodeError, RecursionError):
            document = None
    if not isinstance(document, dict):
        raise EvidenceError(
            f"the answer is not the {role}'s evidence: it is no JSON object; the least is {_LEAST}"
        )
    try:
        return msgspec.convert({"role": role, **document}, SLICES[role])  # type: ignore[return-value]
    except msgspec.ValidationError as error:
        raise EvidenceError(f"the answer is not the {role}'s evidence: {error}") from None
