"""The typed slice each role returns: what a parent needs of it, bounded, never a transcript.

Only ``summary`` is required of every role, so that a small program can take part; the other fields are
what the role is for. A runtime that can enforce a schema is handed ``schema_for(role)``; what any other
one answers is parsed by ``parse`` and refused where it does not fit.

An answer that fits but is longer than a parent can use is shortened, and says so in ``cut``: to refuse it
would make work unknown that is done.
"""

from __future__ import annotations

import json
from functools import cache
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta
from msgspec.structs import replace

from custodes.adapters import foreign
from custodes.policy.roles import Role

MAX_BYTES = 256 * 1024
"""An answer larger than this is refused: evidence is a slice, artifacts go by path and hash."""
MAX_TEXT = 4_000
"""The characters of one text that are kept; the last of them says that it goes on."""
MAX_ENTRIES = 100
"""The entries of one list that are kept."""

Severity = Literal["info", "low", "medium", "high", "critical"]
Confidence = Literal["low", "medium", "high"]


class Artifact(msgspec.Struct, frozen=True, kw_only=True):
    """A file too large or too binary to return: its path and SHA-256.

    ``verified`` and ``problem`` are ours, whatever the answer says of them: whether the file has that hash,
    and else why not, or why nobody looked (None). See :mod:`custodes.supervision.artifacts`.
    """

    path: str
    sha256: str = ""
    note: str = ""
    verified: bool | None = None
    problem: str = ""


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """``place`` is a path, with ``:line`` where it is known; ``rule`` names what it breaks (CWE-79, a lint
    rule, a requirement)."""

    message: str
    place: str = ""
    rule: str = ""
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


class Backtrack(msgspec.Struct, frozen=True, kw_only=True):
    """An earlier step of the plan is wrong, and what it said cannot be built upon."""

    step: Annotated[str, Meta(description="The id of the earlier step.")]
    reason: Annotated[str, Meta(description="What is wrong with its result, and what would be right.")]


class Slice(msgspec.Struct, frozen=True, kw_only=True, tag_field="role"):
    """What every role may return beside its own fields. ``open_items`` is what it leaves undone.

    ``cut`` is ours: what was left out of a longer answer, an entry each.
    """

    summary: str
    artifacts: tuple[Artifact, ...] = ()
    open_items: tuple[str, ...] = ()
    discoveries: Annotated[
        tuple[str, ...],
        Meta(description="What was found beside the task that whoever asked should know."),
    ] = ()
    backtrack: Annotated[
        Backtrack | None,
        Meta(description="Only where the result of an earlier step turned out to be wrong."),
    ] = None
    cut: tuple[str, ...] = ()


class ResearcherEvidence(Slice, frozen=True, kw_only=True, tag="researcher"):
    claims: tuple[Claim, ...] = ()


class AnalystEvidence(Slice, frozen=True, kw_only=True, tag="analyst"):
    """``recommendation`` is what the conclusions come to; empty where they come to none."""

    claims: tuple[Claim, ...] = ()
    risks: tuple[str, ...] = ()
    recommendation: str = ""


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
    """``root_cause`` is empty where none was found; ``confidence`` is how sure it is."""

    root_cause: str = ""
    confidence: Confidence = "medium"
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
    """``behaviour_kept`` is None where nothing that was run can tell."""

    behaviour_kept: bool | None = None
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


_OURS: dict[type[msgspec.Struct], tuple[str, ...]] = {
    Artifact: ("verified", "problem"),
    **dict.fromkeys(SLICES.values(), ("cut",)),
}
"""The fields that no runtime is asked for, or believed in."""


def schema_for(role: Role) -> dict[str, Any]:
    """The JSON Schema of what a role is asked for: the caller's own copy."""
    schema: dict[str, Any] = msgspec.json.decode(schema_text(role))
    return schema


@cache
def schema_text(role: Role) -> str:
    """The same as JSON. Made once: that takes a hundred times as long as a copy of it."""
    schema = msgspec.json.schema(SLICES[role])
    for kind, fields in _OURS.items():
        asked = schema["$defs"].get(kind.__name__, {}).get("properties", {})
        for name in fields:
            asked.pop(name, None)
    return json.dumps(schema)


_LEAST = '{"summary": "…"}'


def parse(role: Role, answer: str | bytes | dict[str, Any]) -> Evidence:
    """The slice in a runtime's final answer: a JSON object, or one in a single code fence.

    The ``role`` field may be missing; another role's slice is refused. What is longer than the bounds above
    is shortened; fields that are ours to fill are as they are by default.

    :raises EvidenceError: the answer is too large, is no JSON object, or does not fit the role's slice.
    """
    if isinstance(answer, bytes):
        answer = answer.decode(errors="replace")
    document: Any = answer
    if isinstance(answer, str):
        if len(answer.encode(errors="replace")) > MAX_BYTES:
            raise EvidenceError(
                f"the answer is over {MAX_BYTES // 1024} KiB; evidence is a slice, not a transcript"
            )
        document = foreign.decode(foreign.unfenced(answer))
    elif not _is_json(answer):
        raise EvidenceError(f"the answer is not the {role}'s evidence: it holds what JSON cannot")
    if not isinstance(document, dict):
        raise EvidenceError(
            f"the answer is not the {role}'s evidence: it is no JSON object; the least is {_LEAST}"
        )
    try:
        found = msgspec.convert({"role": role, **document}, SLICES[role])
    except msgspec.ValidationError as error:
        raise EvidenceError(f"the answer is not the {role}'s evidence: {error}") from None
    cut: list[str] = []
    bounded = _bounded(found, "", cut)
    return replace(bounded, cut=tuple(cut[:MAX_ENTRIES])) if cut else bounded  # type: ignore[no-any-return]


def _is_json(answer: object) -> bool:
    """Whether it can be stored and handed on: a dictionary of an adapter's own may hold anything, half a
    surrogate pair for one."""
    try:
        return bool(msgspec.json.encode(answer))
    except (TypeError, ValueError, RecursionError):
        return False


def _bounded(value: Any, place: str, cut: list[str]) -> Any:
    """The value within the bounds, its fields that are ours reset; ``cut`` is told what was left out."""
    if isinstance(value, str):
        if len(value) <= MAX_TEXT:
            return value
        cut.append(f"{place}: {len(value) - MAX_TEXT + 1} of {len(value)} characters")
        return value[: MAX_TEXT - 1] + "…"
    if isinstance(value, tuple):
        if len(value) > MAX_ENTRIES:
            cut.append(f"{place}: {len(value) - MAX_ENTRIES} of {len(value)} entries")
        return tuple(_bounded(each, f"{place}[{n}]", cut) for n, each in enumerate(value[:MAX_ENTRIES]))
    if not isinstance(value, msgspec.Struct):
        return value
    theirs, ours = _fields(type(value))
    changed = {name: default for name, default in ours if getattr(value, name) != default}
    for name in theirs:
        if before := getattr(value, name):  # what is empty is within every bound
            after = _bounded(before, f"{place}.{name}" if place else name, cut)
            if after != before:
                changed[name] = after
    return replace(value, **changed) if changed else value


@cache
def _fields(kind: type[msgspec.Struct]) -> tuple[tuple[str, ...], tuple[tuple[str, Any], ...]]:
    """The names of those that the answer gives, and ours with their defaults."""
    fields = msgspec.structs.fields(kind)
    ours = _OURS.get(kind, ())
    return (
        tuple(field.name for field in fields if field.name not in ours),
        tuple((field.name, field.default) for field in fields if field.name in ours),
    )
