"""The distinct places that are asked: providers that share an address, a key and a question share a probe."""

from __future__ import annotations

import msgspec

from custodes.overseer.config import Config, ProbeKind, ProviderConfig, Usage


class Endpoint(msgspec.Struct, frozen=True, kw_only=True):
    """``model`` is what a completion asks for, empty for a GET. ``providers`` are those that share it."""

    url: str
    probe: ProbeKind
    model: str
    key_env: str
    key_command: tuple[str, ...]
    usage: Usage | None
    providers: tuple[str, ...]

    @property
    def name(self) -> str:
        """What tells it from the others: its first provider's name."""
        return self.providers[0]


def endpoints(config: Config) -> tuple[Endpoint, ...]:
    """Each once, in the file's order."""
    groups: dict[tuple[object, ...], list[str]] = {}
    for name, provider in config.providers.items():
        groups.setdefault(_identity(config, name, provider), []).append(name)
    found = []
    for names in groups.values():
        first = config.providers[names[0]]
        found.append(
            Endpoint(
                url=first.health_url,
                probe=first.probe,
                model=_model(config, names[0], first),
                key_env=first.key_env,
                key_command=first.key_command,
                usage=first.usage,
                providers=tuple(names),
            )
        )
    return tuple(found)


def _identity(config: Config, name: str, provider: ProviderConfig) -> tuple[object, ...]:
    model = _model(config, name, provider)
    return (
        provider.health_url,
        provider.probe,
        model,
        provider.key_env,
        provider.key_command,
        provider.usage,
    )


def _model(config: Config, name: str, provider: ProviderConfig) -> str:
    if provider.probe != "completion":
        return ""
    return provider.probe_model or config.models_of(name)[0]
