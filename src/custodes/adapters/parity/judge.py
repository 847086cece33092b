"""What the contract holds against a result, as words that say what would be right, and why."""

from __future__ import annotations

import msgspec

from custodes.adapters.descriptor import Capability
from custodes.adapters.parity.cases import SLACK_S, Case
from custodes.adapters.port import DispatchResult, Failure

_TABLE = "custodes.adapters.failures.classify(Said(status=…, message=…), who=…, now=…) knows the whole table"
_FIELDS = {
    "limit": "limit",
    "limit with a wait": "limit",
    "usage limit with a reset": "limit",
    "billing": "billing",
    "overloaded": "overloaded",
    "server error": "server",
    "auth": "auth",
    "invalid": "invalid",
    "timeout": "timeout",
}
"""The row of the table that a case is, by the name `failures` gives it."""


def judge_failure(name: str, case: Case, result: object, secret: str = "") -> str:
    """What is wrong, what is right, why, and what helps; empty where the result says what the case is."""
    wrong = _wrong(case, result)
    if isinstance(result, DispatchResult):
        wrong += _of_any(result, secret)
    if not wrong:
        return ""
    kind = _FIELDS.get(name, "other")
    helps = f"failures.failure({kind!r}, who) is this row; {_TABLE}"
    return told(f"the case '{name}'", case.says, wrong, case.why, helps, result)


def told(what: str, did: str, wrong: list[str], why: str, helps: str, result: object = None) -> str:
    lines = [f"{what}: {did}", *(f"  wrong:  {each}" for each in wrong)]
    if result is not None:
        lines.append(f"  came:   {shown(result)}")
    return "\n".join([*lines, f"  why:    {why}", f"  helps:  {helps}", "  more:   docs/adapters.md"])


def _wrong(case: Case, result: object) -> list[str]:
    if not isinstance(result, DispatchResult):
        return [f"dispatch returned a {type(result).__name__}, must return a DispatchResult"]
    failure = result.failure
    if failure is None:
        return ["it reads as a success: `failure` is None"]
    if not isinstance(failure, Failure):
        return [f"`failure` is a {type(failure).__name__}, must be a Failure"]
    wrong = []
    wanted = {"category": case.category, "retryable": case.retryable, "outcome": case.outcome}
    for field, value in wanted.items():
        if value is not None and getattr(failure, field) != value:
            wrong.append(f"`failure.{field}` is {getattr(failure, field)!r}, must be {value!r}")
    return wrong + _wait(case, failure)


def _wait(case: Case, failure: Failure) -> list[str]:
    wait = failure.retry_after_s
    if case.wait is None:
        none = "must be None: no wait was stated"
        return [] if wait is None else [f"`failure.retry_after_s` is {wait!r}, {none}"]
    if isinstance(wait, int) and case.wait <= wait <= case.wait + SLACK_S:
        return []
    return [
        f"`failure.retry_after_s` is {wait!r}, must be {case.wait}: whole seconds, never less than stated"
    ]


def _of_any(result: DispatchResult, secret: str) -> list[str]:
    wrong = []
    if result.failure is not None and (result.text or result.structured is not None):
        wrong.append("a failure carries an answer: `text` must be empty and `structured` None")
    if secret and secret.encode() in msgspec.json.encode(result):
        wrong.append("a field holds the secret of the environment: reasons are composed, never copied")
    return wrong


def shown(result: object) -> str:
    """A result in a line of a readable length."""
    if isinstance(result, DispatchResult) and isinstance(result.failure, Failure):
        said = result.failure
        return f"{said.category}, retryable {said.retryable}, {said.outcome}: {said.reason[:200]}"
    return repr(result)[:300]


def judge_refusal(capability: Capability, asked: str, result: object) -> str:
    """What is wrong with the answer to a request for something that is not declared."""
    failure = result.failure if isinstance(result, DispatchResult) else None
    if failure is not None and failure.category == "invalid":
        return ""
    wanted = f"must be a failure of category 'invalid': '{capability}' is not in its capabilities"
    why = "work that silently ran otherwise than asked reads as done"
    refuse = "return DispatchResult(failure=failures.failure('invalid', who, detail='…'))"
    helps = f"{refuse}, or make it work and declare '{capability}'"
    return told(f"asked for {asked}", "it does not declare it", [wanted], why, helps, result)
