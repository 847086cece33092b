"""What the configured adapters offer: which are eligible, and may this one take this model, this effort."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Protocol

import msgspec

from custodes.adapters.descriptor import Descriptor
from custodes.adapters.errors import closest, instead
from custodes.policy import wording

_CONFIGURE = "name an agent that declares dispatch in .coding-os.yaml::agents"


class Objection(msgspec.Struct, frozen=True, kw_only=True):
    """Why not: the words people search for, and what would work. ``str()`` is both."""

    wording: str
    hint: str = ""

    def __str__(self) -> str:
        return f"{self.wording}; {self.hint}" if self.hint else self.wording


class ReadinessView(Protocol):
    @property
    def ready(self) -> bool: ...
    @property
    def reason(self) -> str: ...
    @property
    def fingerprint(self) -> str: ...


class RegistryView(Protocol):
    """The part of the adapter registry that policy looks at."""

    @property
    def agents(self) -> Sequence[str]: ...
    @property
    def descriptors(self) -> Mapping[str, Descriptor]: ...
    @property
    def errors(self) -> Mapping[str, str]: ...
    def readiness(self, adapter: str, /) -> ReadinessView: ...


class Adapter(msgspec.Struct, frozen=True, kw_only=True):
    """An eligible adapter. ``reason`` says why it is not ready; ``fingerprint`` is what an auth or
    configuration failure of it is remembered by, "" where that is not known."""

    descriptor: Descriptor
    ready: bool = True
    reason: str = ""
    fingerprint: str = ""

    @property
    def id(self) -> str:
        return self.descriptor.id


class Catalog(msgspec.Struct, frozen=True, kw_only=True):
    """The eligible adapters in the order of ``.coding-os.yaml::agents``, and why any other is not one."""

    adapters: tuple[Adapter, ...] = ()
    ineligible: dict[str, str] = {}

    @classmethod
    def of(cls, registry: RegistryView, *, readiness: bool = True) -> Catalog:
        """A view of a registry as it stands now. Without ``readiness`` none is asked and all read ready:
        what a policy may say does not depend on who is logged in today."""
        adapters: list[Adapter] = []
        ineligible = {
            known: "it is not in .coding-os.yaml::agents"
            for known in registry.descriptors
            if known not in registry.agents
        }
        for agent in dict.fromkeys(registry.agents):
            descriptor = registry.descriptors.get(agent)
            if descriptor is None:
                ineligible[agent] = registry.errors.get(agent, "no adapter has this id")
            elif not descriptor.can("dispatch"):
                ineligible[agent] = "it does not declare dispatch"
            elif readiness:
                state = registry.readiness(agent)
                adapters.append(
                    Adapter(
                        descriptor=descriptor,
                        ready=state.ready,
                        reason=state.reason,
                        fingerprint=state.fingerprint,
                    )
                )
            else:
                adapters.append(Adapter(descriptor=descriptor))
        return cls(adapters=tuple(adapters), ineligible=ineligible)

    def find(self, adapter: str) -> Adapter | None:
        return next((a for a in self.adapters if a.id == adapter), None)

    def not_eligible(self, adapter: str) -> Objection:
        """Why an adapter that :meth:`find` does not know is not eligible."""
        why = self.ineligible.get(adapter, "no adapter has this id")
        ids = [a.id for a in self.adapters]
        if not ids:
            would = _CONFIGURE
        elif adapter in self.ineligible:
            would = f"eligible: {', '.join(ids)}"
        else:
            close = closest(adapter, ids)
            would = (f"did you mean '{close}'? " if close else "") + f"eligible: {', '.join(ids)}"
        return Objection(wording=wording.no_eligible_adapter(adapter), hint=f"{why}; {would}")

    def none_eligible(self) -> Objection:
        """Why nothing at all can run."""
        by_reason: dict[str, list[str]] = {}
        for adapter, reason in self.ineligible.items():
            by_reason.setdefault(reason, []).append(adapter)
        why = [f"{', '.join(adapters)}: {reason}" for reason, adapters in by_reason.items()]
        return Objection(wording="no eligible dispatch adapter", hint="; ".join([*why, _CONFIGURE]))


def declares_model(descriptor: Descriptor, model: str) -> bool:
    return descriptor.can("model_selection") and descriptor.model(model) is not None


def forwards_models(descriptor: Descriptor) -> bool:
    """An empty catalog with ``model_selection``: any non-empty string is passed on as it is, and the
    operator owns it (seed 000, "Model catalogs")."""
    return descriptor.can("model_selection") and not descriptor.models


def model_objection(descriptor: Descriptor, model: str) -> Objection | None:
    """Why this adapter cannot be given this model; None where it can."""
    if not descriptor.can("model_selection"):
        return Objection(
            wording=wording.no_model_selection(descriptor.id), hint=f"leave out the model '{model}'"
        )
    if not descriptor.models or descriptor.model(model):
        return None
    return Objection(
        wording=wording.model_not_declared(model, descriptor.id),
        hint=instead(model, [m.id for m in descriptor.models]),
    )


def lists_effort(descriptor: Descriptor, effort: str) -> bool:
    return descriptor.can("effort_selection") and effort in descriptor.efforts


def effort_objection(descriptor: Descriptor, effort: str) -> Objection | None:
    """Why this adapter cannot be given this effort; None where it can."""
    if not descriptor.can("effort_selection"):
        return Objection(
            wording=wording.no_effort_selection(descriptor.id), hint=f"clear the effort '{effort}'"
        )
    if not descriptor.efforts or effort in descriptor.efforts:
        return None
    return Objection(
        wording=wording.effort_not_listed(effort, descriptor.id),
        hint=instead(effort, descriptor.efforts),
    )


_SNAPSHOT = re.compile(r"[-@](\d{8}|\d{4}-\d{2}-\d{2}|\d{3,4}|latest)")


def serves(asked: str, served: str) -> bool:
    """Whether the model that answered is the one that was asked for: the same, or a dated snapshot of it.

    A gateway's own prefix (``anthropic/…``) on either side does not make it another one.
    """
    asked, served = asked.rpartition("/")[2].lower(), served.rpartition("/")[2].lower()
    shorter, longer = sorted((asked, served), key=len)
    return longer.startswith(shorter) and (
        longer == shorter or _SNAPSHOT.fullmatch(longer[len(shorter) :]) is not None
    )
