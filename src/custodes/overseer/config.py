"""``supervisor.yaml`` as Structs, with every default (seed 003, "Supervisor configuration").

The seed's file loads as it is printed. Everything beyond it is optional. No key and no address of a
notification stands in the file: only the names of the variables, or the commands, that give them.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from custodes.adapters.port import ProfileSetting

POLICY = "supervision"
"""The actuator that moves a role of this project's own policy."""
PROGRAM = "command"
"""The actuator that runs the programs of ``command``."""
ProbeKind = Literal["models", "health", "completion"]
CHANNELS = ("telegram", "slack", "discord", "email", "webhook", "desktop")
"""Channels that ``notify`` knows by name; any other has a name of its own below ``notify.channels``."""


class Choice(msgspec.Struct, frozen=True, order=True):
    """A model at a provider: ``provider/model``, as the matrix writes it."""

    provider: str
    model: str

    def __str__(self) -> str:
        return f"{self.provider}/{self.model}"


class Usage(msgspec.Struct, frozen=True, kw_only=True):
    """A usage API: a GET whose JSON has what is left at the dotted path ``remaining``; 0 is a limit."""

    url: str
    remaining: str


class Template(msgspec.Struct, frozen=True, kw_only=True):
    """How a profile is set to a provider's models; ``{provider}`` and ``{model}`` are filled in.

    What is None is not touched, and not compared: as the seed prints it, only the model's name moves.
    """

    model: str = "{provider}/{model}"
    provider: str | None = None
    base_url: str | None = None


class ProviderConfig(msgspec.Struct, frozen=True, kw_only=True):
    """Where a provider is asked how it is, and what its answers mean.

    ``expect`` are the statuses of a good answer; ``slow_seconds`` counts a later one as slow (None: only
    ``health_timeout`` does). ``pools`` are the health keys (``adapter:bucket``) that it meters, ``models``
    what a last resort may choose from beyond those in the matrix.
    """

    health_url: str
    quota_reset: str = ""
    probe: ProbeKind = "models"
    probe_model: str = ""
    key_env: str = ""
    key_command: tuple[str, ...] = ()
    expect: tuple[int, ...] = (200,)
    slow_seconds: float | None = None
    usage: Usage | None = None
    models: tuple[str, ...] = ()
    pools: tuple[str, ...] = ()
    switch: Template | None = None


class ProfileConfig(msgspec.Struct, frozen=True, kw_only=True):
    """One row of the matrix. ``last_resort`` names a provider: any healthy model of it."""

    primary: Choice
    fallbacks: tuple[Choice, ...] = ()
    last_resort: str = ""
    actuator: str = ""

    @property
    def choices(self) -> tuple[Choice, ...]:
        """The named ones, in order, each once."""
        return tuple(dict.fromkeys((self.primary, *self.fallbacks)))

    @property
    def providers(self) -> frozenset[str]:
        """All that it may ever work on. What one of them states of a profile's setting all of them state."""
        return frozenset({*(choice.provider for choice in self.choices), self.last_resort} - {""})


class Recovery(msgspec.Struct, frozen=True, kw_only=True):
    """Seed: "check the primary 3 times, 60 s apart; all 3 well: back"."""

    checks: int = 3
    spacing: float = 60.0


class Channel(msgspec.Struct, frozen=True, kw_only=True):
    """``url_env`` names the variable that holds its Apprise address."""

    name: str
    url_env: str


class Notify(msgspec.Struct, frozen=True, kw_only=True):
    """``spacing`` is the least time between two messages of one channel, in seconds: what comes meanwhile
    goes with the next one."""

    log: bool = True
    channels: tuple[Channel, ...] = ()
    spacing: float = 30.0


class Commands(msgspec.Struct, frozen=True, kw_only=True):
    """Programs that read and set a profile; each word may hold ``{profile}``, and those of ``switch``
    ``{model}``, ``{provider}`` and ``{base_url}``."""

    read: tuple[str, ...]
    switch: tuple[str, ...]


class Config(msgspec.Struct, frozen=True, kw_only=True):
    """Times in seconds but ``cooldown_minutes``. ``file`` is where it was read from."""

    file: str = ""
    enabled: bool = True
    dry_run: bool = False
    check_interval: float = 300.0
    health_timeout: float = 15.0
    cooldown_minutes: float = 30.0
    switch_degraded: bool = False
    """Whether a profile leaves a merely degraded provider for a healthy one."""
    actuator: str = ""
    """The actuator of every profile that names none; "": the one adapter that can switch profiles."""
    recovery: Recovery = Recovery()
    notify: Notify = Notify()
    command: Commands | None = None
    providers: dict[str, ProviderConfig] = {}
    fallback_matrix: dict[str, ProfileConfig] = {}

    @property
    def cooldown_s(self) -> float:
        return self.cooldown_minutes * 60

    def models_of(self, provider: str) -> tuple[str, ...]:
        """Every model of a provider that this file names: its own list first, then the matrix's."""
        named = (
            choice.model
            for profile in self.fallback_matrix.values()
            for choice in profile.choices
            if choice.provider == provider
        )
        return tuple(dict.fromkeys((*self.providers[provider].models, *named)))

    def setting(self, profile: str, choice: Choice) -> ProfileSetting:
        """What the profile is set to for this choice."""
        stated = self.providers[choice.provider].switch or Template()
        if (
            self.fallback_matrix[profile].actuator == POLICY
            and self.providers[choice.provider].switch is None
        ):
            stated = Template(model="{model}", provider="{provider}")
        return ProfileSetting(
            model=_filled(stated.model, choice),
            provider=None if stated.provider is None else _filled(stated.provider, choice),
            base_url=stated.base_url,
        )


def _filled(template: str, choice: Choice) -> str:
    return template.replace("{provider}", choice.provider).replace("{model}", choice.model)
