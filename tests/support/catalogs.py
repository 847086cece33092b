"""Adapters as data, for the tests of routing and of the policy service."""

from __future__ import annotations

from custodes.adapters.descriptor import Capability, Descriptor, Entrypoints, Model
from custodes.policy.catalog import Adapter, Catalog

ALL: tuple[Capability, ...] = ("dispatch", "model_selection", "effort_selection")


def descriptor(
    name: str,
    models: tuple[Model, ...] = (),
    efforts: tuple[str, ...] = (),
    capabilities: tuple[Capability, ...] = ALL,
    default_effort: str = "",
) -> Descriptor:
    return Descriptor(
        id=name,
        models=models,
        efforts=efforts,
        default_effort=default_effort,
        runtime_entrypoints=Entrypoints(dispatch="dispatch.py", capabilities=capabilities),
    )


CLAUDE = descriptor(
    "claude",
    (
        Model(id="claude-opus-4-8", bucket="opus-4x", default=True),
        Model(id="claude-sonnet-5", bucket="sonnet-5"),
        Model(id="claude-haiku-4-5", bucket="haiku-4-5"),
        Model(id="claude-fable-5", bucket="fable-5"),
    ),
    ("low", "medium", "high", "xhigh", "max"),
    default_effort="high",
)
CODEX = descriptor("codex", (), ("minimal", "low", "medium", "high", "xhigh"))
"""An empty catalog: it passes any model on."""
PLAIN = descriptor("plain", capabilities=("dispatch",))
"""Neither models nor efforts."""


def catalog(*adapters: Descriptor | Adapter, ineligible: dict[str, str] | None = None) -> Catalog:
    return Catalog(
        adapters=tuple(a if isinstance(a, Adapter) else Adapter(descriptor=a) for a in adapters),
        ineligible=ineligible or {},
    )


def unready(found: Descriptor, reason: str) -> Adapter:
    return Adapter(descriptor=found, ready=False, reason=reason)
