"""How everything stands, for people and surfaces that start no overseer. Reads, and changes nothing."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import anyio
import msgspec

from custodes.adapters.port import SwitchError
from custodes.overseer import holder, tables
from custodes.overseer.actuators import Actuators
from custodes.overseer.by_hand import offers
from custodes.overseer.config import Choice, Config
from custodes.overseer.decide import Action, Decision, ProfileRecord, Standing, decide, standing, taken_up
from custodes.overseer.holder import Holder
from custodes.overseer.incident import Incident
from custodes.overseer.probe import Answer, judge
from custodes.overseer.watch import STRIKES, Condition, Watch, advance
from custodes.store import Connection
from custodes.supervision.record.clock import Now, utc_time
from custodes.supervision.record.project_file import ProjectFile


class ProviderView(msgspec.Struct, frozen=True, kw_only=True):
    """``since`` and ``recovery_eta`` are ISO 8601 in UTC; ``seconds`` how long its last answer took."""

    provider: str
    condition: Condition
    error_code: str
    detail: str
    since: str | None
    recovery_eta: str | None
    seconds: float
    strikes: int
    good: int


class ProfileView(msgspec.Struct, frozen=True, kw_only=True):
    """``model`` is what it is set to, as far as it can be read, ``by_hand`` whether a person set it to that;
    ``action`` what a round would do now."""

    profile: str
    primary: str
    model: str
    by_hand: bool
    action: Action
    to: str
    why: str


class ChoiceView(msgspec.Struct, frozen=True, kw_only=True):
    choice: str
    stands: Standing
    detail: str


class Status(msgspec.Struct, frozen=True, kw_only=True):
    """``pid`` of the overseer that runs; None where none does."""

    config: str
    pid: int | None
    providers: tuple[ProviderView, ...]
    profiles: tuple[ProfileView, ...]
    active: tuple[Incident, ...]


class Known(msgspec.Struct, frozen=True, kw_only=True):
    """What the database says, and what every profile was just read to be set to."""

    watches: dict[str, Watch]
    records: dict[str, ProfileRecord]
    active: tuple[Incident, ...] = ()
    holder: Holder | None = None


async def known(project: Path, config: Config) -> Known:
    """:raises StoreError: the project's database cannot be read."""
    async with ProjectFile(project) as file:
        watches = await file.look(tables.load_watches, dict[str, Watch]())
        records = await file.look(tables.load_records, dict[str, ProfileRecord]())
        active = await file.look(tables.active_incidents, list[Incident]())
        running = await file.look(holder.look, None)
    watches = {name: watches.get(name) or Watch(provider=name) for name in config.providers}
    fresh = {name: records.get(name) or ProfileRecord(profile=name) for name in config.fallback_matrix}
    actuators = Actuators(config, project)

    async def read(name: str) -> None:
        row = config.fallback_matrix[name]
        try:
            found = await actuators(row.actuator).read(name)
        except SwitchError as error:
            fresh[name] = msgspec.structs.replace(fresh[name], problem=str(error))
        else:
            fresh[name] = taken_up(fresh[name], found, row, config, watches)

    async with anyio.create_task_group() as group:
        for name in config.fallback_matrix:
            group.start_soon(read, name)
    return Known(watches=watches, records=fresh, active=tuple(active), holder=running)


async def incidents(project: Path, count: int) -> tuple[Incident, ...]:
    """The newest, oldest of them first. :raises StoreError: the project's database cannot be read."""

    async def latest(connection: Connection) -> list[Incident]:
        return await tables.latest_incidents(connection, count)

    async with ProjectFile(project) as file:
        return tuple(await file.look(latest, list[Incident]()))


def status(found: Known, config: Config, now: Now) -> Status:
    running = found.holder is not None and not found.holder.gone(now)
    return Status(
        config=config.file,
        pid=found.holder.owner.pid if running and found.holder else None,
        providers=tuple(_provider(found.watches[name], now) for name in config.providers),
        profiles=tuple(profile_view(found, name, config, now) for name in config.fallback_matrix),
        active=found.active,
    )


def profile_view(found: Known, name: str, config: Config, now: Now) -> ProfileView:
    row, record = config.fallback_matrix[name], found.records[name]
    decision = decide(record, row, config, found.watches, now)
    return ProfileView(
        profile=name,
        primary=str(row.primary),
        model=record.model,
        by_hand=bool(record.hand),
        action=decision.action,
        to=str(decision.to or ""),
        why=decision.why,
    )


def choices(name: str, config: Config, watches: Mapping[str, Watch]) -> tuple[ChoiceView, ...]:
    """The row of a profile, in its order, and how each choice stands."""
    return tuple(_choice(choice, watches) for choice in config.fallback_matrix[name].choices)


def offered(name: str, config: Config, watches: Mapping[str, Watch]) -> tuple[ChoiceView, ...]:
    """What a person may switch a profile to, its row first, and how each stands."""
    return tuple(_choice(each, watches) for each in offers(config.fallback_matrix[name], config, watches))


def simulate(found: Known, config: Config, provider: str, answer: Answer, now: Now) -> tuple[Decision, ...]:
    """What every profile would do if the provider gave this answer, as often as it takes to count. Providers
    that were never asked are taken to be well."""
    watches = {
        name: msgspec.structs.replace(watch, condition="well") if watch.condition == "unknown" else watch
        for name, watch in found.watches.items()
    }
    models = config.models_of(provider)
    verdict = judge(provider, config.providers[provider], answer, now.wall, models, ())
    for _ in range(STRIKES if verdict.kind != "good" else config.recovery.checks):
        watches[provider] = advance(
            msgspec.structs.replace(watches[provider], counted=None), verdict, now, config
        )
    return tuple(
        decide(found.records[name], row, config, watches, now) for name, row in config.fallback_matrix.items()
    )


def _provider(watch: Watch, now: Now) -> ProviderView:
    eta = watch.eta(now)
    return ProviderView(
        provider=watch.provider,
        condition=watch.condition,
        error_code=watch.code,
        detail=watch.detail,
        since=utc_time(watch.since) if watch.since else None,
        recovery_eta=None if eta is None else utc_time(eta),
        seconds=watch.seconds,
        strikes=watch.strikes,
        good=watch.good,
    )


def _choice(choice: Choice, watches: Mapping[str, Watch]) -> ChoiceView:
    watch = watches[choice.provider]
    return ChoiceView(choice=str(choice), stands=standing(choice, watches), detail=watch.detail)
