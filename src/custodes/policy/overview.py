"""The policy as it stands with the adapters it is about: what every surface shows of it.

The two gates, every key, what a turn falls back to, and the adapters that may get work. Settings and
descriptors are read; no store is opened, nothing is run.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from custodes.adapters.registry import Registry
from custodes.policy.catalog import Catalog
from custodes.policy.policy import Policy, Target, turn_defaults
from custodes.policy.settings import Settings


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
    version: str
    """Of the settings: a change that names it is refused once they are others."""
    supervised: bool
    """Both gates are open."""
    module_enabled: bool
    policy: Policy
    turn_defaults: Target
    """What a host's composer falls back to when a turn names no model or effort."""
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
        version=state.digest,
        supervised=state.module_enabled and state.policy.enabled,
        module_enabled=state.module_enabled,
        policy=state.policy,
        turn_defaults=turn_defaults(state.policy, state.module_enabled),
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
