"""What `cos supervision show` says, as text: the two gates, the policy, the adapters that may get work; and
what `cos supervision set` does: the change alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from custodes.cli.output import paint, plain, write
from custodes.policy.changes import Change
from custodes.policy.overview import Overview
from custodes.policy.policy import Target

ENABLE = "cos supervision enable"


def write_overview(overview: Overview) -> None:
    for line in _lines(overview):
        write(line)


def write_changes(changes: tuple[Change, ...], file: Path, overview: Overview) -> None:
    """What was asked for, as it was and as it is, and the file; then what keeps it from having an effect."""
    for change in changes:
        now = _value(change.after)
        same = change.before == change.after
        words = f"{now}, as it was" if same else f"{_value(change.before)} → {paint(now, 'bold')}"
        write(f"{plain(change.key)}: {words}")
    if all(change.before == change.after for change in changes):
        write(f"nothing was changed in {plain(str(file))}")
    else:
        write(f"written to {plain(str(file))}; `cos supervision show` has the whole policy")
    if not overview.supervised:
        write(_state(overview))
    for line in _findings(overview):
        write(line)


def _value(value: str | None) -> str:
    return "not set" if value is None else plain(value)


def _state(overview: Overview) -> str:
    if not overview.module_enabled:
        return f"supervision  {paint('off', 'yellow')}: the module's gate is shut (cognition.enabled: false)"
    if not overview.policy.enabled:
        return f"supervision  {paint('off', 'yellow')}; `{ENABLE}` turns it on"
    return f"supervision  {paint('on', 'green')}"


def _findings(overview: Overview) -> Iterator[str]:
    for problem in overview.problems:
        yield f"{paint('cannot run:', 'red')} {plain(problem)}"
    for warning in overview.warnings:
        yield f"{paint('note:', 'yellow')} {plain(warning)}"


def _lines(overview: Overview) -> Iterator[str]:
    policy = overview.policy
    yield _state(overview)
    gate = f", from {policy.complexity_threshold} up" if policy.mode == "adaptive" else ""
    yield f"mode         {policy.mode}{gate}"
    yield f"fallback     {policy.fallback_policy}"
    yield f"parallel     {policy.max_parallel} attempts at once, {policy.max_live} begun and not ended"
    yield f"permissions  an ask waits {policy.ask_seconds} s for an answer; then it is denied"
    cooldown = policy.cooldown
    yield (
        f"cooldown     {cooldown.default_seconds} s, doubled up to {cooldown.maximum_seconds} s; "
        f"a stated wait up to {cooldown.retry_after_ceiling_seconds} s"
    )
    telemetry = policy.telemetry
    contents = [
        name.replace("_", " ")
        for name in ("prompts", "outputs", "tool_arguments")
        if getattr(telemetry, name)
    ]
    relay = "a runtime's own spans join" if telemetry.relay else "our own spans alone"
    yield f"telemetry    where it is exported: {relay}; contents: {', '.join(contents) or 'none'}"
    yield ""
    yield f"{'orchestrator':<18}{target_words(policy.orchestrator)}"
    for role, target in policy.roles.items():
        yield f"{plain(role):<18}{target_words(target)}"
    for name, hints in policy.presets.items():
        active = " (active)" if name == policy.preset else ""
        for role, target in hints.items():
            yield f"preset {plain(name)}{active}: {plain(role)}  {target_words(target)}"
    yield ""
    if not overview.adapters:
        yield "no agents are configured; `cos init` writes .coding-os.yaml from what it finds on this machine"
    for adapter in overview.adapters:
        state = (
            paint("ready", "green")
            if adapter.ready
            else paint(f"unavailable: {plain(adapter.reason)}", "red")
        )
        yield f"{paint(plain(adapter.id), 'bold')}  {state}"
        for model in adapter.models:
            yield f"  {plain(model.id):<28} pool {plain(model.pool)}{'  (default)' if model.default else ''}"
        if adapter.any_model:
            yield "  any model id is forwarded; it publishes no list"
        if adapter.efforts:
            yield f"  efforts {', '.join(adapter.efforts)}"
    yield from _findings(overview)


def target_words(target: Target) -> str:
    """An entry of the policy as a person reads it."""
    words = [
        f"{name} {plain(value)}"
        for name, value in (("adapter", target.adapter), ("model", target.model), ("effort", target.effort))
        if value
    ]
    return ", ".join(words) or paint("each adapter's own default", "dim")
