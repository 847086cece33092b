"""What `cos supervision show` says: the two gates, the policy, and the adapters that may get work."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec

from custodes.adapters.registry import Registry
from custodes.cli.output import paint, plain, write
from custodes.policy.catalog import Catalog
from custodes.policy.policy import Policy, Target
from custodes.policy.settings import Settings

ENABLE = "cos supervision enable"


class ModelView(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    pool: str
    default: bool


class AdapterView(msgspec.Struct, frozen=True, kw_only=True):
    """An agent of the project. ``eligible``: known, and declares dispatch; ``ready``: it could run now."""

    id: str
    label: str
    eligible: bool
    ready: bool
    reason: str
    models: tuple[ModelView, ...] = ()
    any_model: bool = False
    """It forwards any model string: it publishes no list."""
    efforts: tuple[str, ...] = ()


class Overview(msgspec.Struct, frozen=True, kw_only=True):
    project: str
    supervised: bool
    """Both gates are open."""
    module_enabled: bool
    policy: Policy
    adapters: tuple[AdapterView, ...]
    problems: tuple[str, ...]
    """Saved values that could not be dispatched as things are."""
    warnings: tuple[str, ...]


def overview_of(project: Path) -> Overview:
    """:raises SettingsError: the settings file cannot be read."""
    settings = Settings(project)
    state = settings.read()
    registry = Registry.discover(project)
    catalog = Catalog.of(registry, readiness=False)
    return Overview(
        project=str(project),
        supervised=state.module_enabled and state.policy.enabled,
        module_enabled=state.module_enabled,
        policy=state.policy,
        adapters=tuple(_adapter(registry, agent) for agent in registry.agents),
        problems=tuple(str(problem) for problem in settings.stale(catalog)),
        warnings=(*state.warnings, *registry.warnings, *registry.errors.values()),
    )


def _adapter(registry: Registry, agent: str) -> AdapterView:
    found = registry.descriptors.get(agent)
    readiness = registry.readiness(agent)
    if found is None:
        return AdapterView(id=agent, label="", eligible=False, ready=False, reason=readiness.reason)
    selects = found.can("model_selection")
    return AdapterView(
        id=agent,
        label=found.label,
        eligible=found.can("dispatch"),
        ready=readiness.ready and found.can("dispatch"),
        reason=readiness.reason if found.can("dispatch") else "it does not declare dispatch",
        models=tuple(
            ModelView(id=model.id, pool=found.pool(model.id), default=model.id == found.default_model)
            for model in found.models
        ),
        any_model=selects and not found.models,
        efforts=found.efforts if found.can("effort_selection") else (),
    )


def write_overview(overview: Overview) -> None:
    for line in _lines(overview):
        write(line)


def _lines(overview: Overview) -> Iterator[str]:
    policy = overview.policy
    if not overview.module_enabled:
        yield f"supervision  {paint('off', 'yellow')}: the module's gate is shut (cognition.enabled: false)"
    elif not policy.enabled:
        yield f"supervision  {paint('off', 'yellow')}; `{ENABLE}` turns it on"
    else:
        yield f"supervision  {paint('on', 'green')}"
    gate = f", from {policy.complexity_threshold} up" if policy.mode == "adaptive" else ""
    yield f"mode         {policy.mode}{gate}"
    yield f"fallback     {policy.fallback_policy}"
    yield f"parallel     {policy.max_parallel} attempts at once"
    cooldown = policy.cooldown
    yield (
        f"cooldown     {cooldown.default_seconds} s, doubled up to {cooldown.maximum_seconds} s; "
        f"a stated wait up to {cooldown.retry_after_ceiling_seconds} s"
    )
    yield ""
    yield f"{'orchestrator':<18}{_target(policy.orchestrator)}"
    for role, target in policy.roles.items():
        yield f"{plain(role):<18}{_target(target)}"
    for name, hints in policy.presets.items():
        active = " (active)" if name == policy.preset else ""
        for role, target in hints.items():
            yield f"preset {plain(name)}{active}: {plain(role)}  {_target(target)}"
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
    for problem in overview.problems:
        yield f"{paint('cannot run:', 'red')} {plain(problem)}"
    for warning in overview.warnings:
        yield f"{paint('note:', 'yellow')} {plain(warning)}"


def _target(target: Target) -> str:
    words = [
        f"{name} {plain(value)}"
        for name, value in (("adapter", target.adapter), ("model", target.model), ("effort", target.effort))
        if value
    ]
    return ", ".join(words) or paint("each adapter's own default", "dim")
