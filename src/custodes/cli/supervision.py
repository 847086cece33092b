"""``cos supervision``: the policy, shown and changed. Reads settings and descriptors; opens no store."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

from cyclopts import App, Parameter
from msgspec import UNSET, UnsetType

from custodes.cli.options import FormatOption, ProjectDir, complexity, project_at
from custodes.cli.output import DONE, Format, usage_error, write_json
from custodes.policy.policy import Complexity, FallbackPolicy, Mode
from custodes.policy.roles import is_role, unknown_role

if TYPE_CHECKING:
    from custodes.policy.patch import PolicyPatch, TargetPatch
    from custodes.policy.settings import Snapshot

T = TypeVar("T")

app = App(
    name="supervision",
    help="Show and change the supervision policy of a project (.coding-os/hub-settings.json).",
    help_format="plaintext",
)

app.command("custodes.cli.explain:explain", name="explain")


@app.command
def show(
    *,
    health: Annotated[
        bool,
        Parameter(name="--health", negative=(), help="Add how the pools stand, and when they recover."),
    ] = False,
    project_dir: ProjectDir = Path(),
    format: FormatOption = "text",  # noqa: A002 - the option's word
) -> int:
    """Show the policy and the adapters that may get work.

    Nothing is started, no provider is asked, no token is spent. With --health the
    project's database is read, too.
    """
    project = project_at(project_dir)
    if health:
        from custodes.cli.health import show_with_health

        return show_with_health(project, format)
    return _show(project, format)


@app.command
def enable(
    *,
    project_dir: ProjectDir = Path(),
    format: FormatOption = "text",  # noqa: A002 - the option's word
) -> int:
    """Turn supervision on. The policy stays as it was; no cooldown is cleared."""
    return _enabled(project_at(project_dir), True, format)


@app.command
def disable(
    *,
    project_dir: ProjectDir = Path(),
    format: FormatOption = "text",  # noqa: A002 - the option's word
) -> int:
    """Turn supervision off. The policy and what is known of limits are kept."""
    return _enabled(project_at(project_dir), False, format)


@app.command
def turn_defaults(
    *,
    project_dir: ProjectDir = Path(),
    format: FormatOption = "text",  # noqa: A002 - the option's word
) -> int:
    """Show the model and effort that a host's composer falls back to when a turn names none.

    They are the orchestrator's; none where supervision is off.
    """
    from custodes.cli.output import write
    from custodes.cli.overview import target_words
    from custodes.policy.policy import turn_defaults as defaults
    from custodes.policy.settings import Settings

    state = Settings(project_at(project_dir)).read()
    target = defaults(state.policy, state.module_enabled)
    if format == "json":
        write_json(target)
    else:
        write(target_words(target))
    return DONE


def _option(name: str, help: str) -> Parameter:  # noqa: A002 - the parameter's word
    return Parameter(name=name, help=help)


@app.command(name="set")
def set_(
    *,
    mode: Annotated[
        Mode | None,
        _option("--mode", "explicit: always; adaptive: from the complexity gate up; suggest: a dry run."),
    ] = None,
    complexity_threshold: Annotated[
        Complexity | None, complexity("--complexity-threshold", "The gate of the adaptive mode.")
    ] = None,
    fallback_policy: Annotated[
        FallbackPolicy | None, _option("--fallback-policy", "What happens where the target cannot run.")
    ] = None,
    max_parallel: Annotated[
        int | None, _option("--max-parallel", "Attempts at once on this host, 1 to 16.")
    ] = None,
    max_live: Annotated[
        int | None,
        _option(
            "--max-live", "Attempts that have begun, those waiting for their own children too, 1 to 256."
        ),
    ] = None,
    ask_seconds: Annotated[
        int | None,
        _option("--ask-seconds", "How long an ask for permission waits for an answer, until it is denied."),
    ] = None,
    cooldown_default_seconds: Annotated[
        int | None, _option("--cooldown-default-seconds", "The first wait after a limit that states none.")
    ] = None,
    cooldown_maximum_seconds: Annotated[
        int | None,
        _option("--cooldown-maximum-seconds", "The longest such wait; a stated one may be longer."),
    ] = None,
    cooldown_retry_after_ceiling_seconds: Annotated[
        int | None,
        _option("--cooldown-retry-after-ceiling-seconds", "The longest stated wait that is believed."),
    ] = None,
    orchestrator_adapter: Annotated[
        str | None, _option("--orchestrator-adapter", 'The default adapter of every role; "" clears it.')
    ] = None,
    orchestrator_model: Annotated[
        str | None, _option("--orchestrator-model", 'The default model of every role; "" clears it.')
    ] = None,
    orchestrator_effort: Annotated[
        str | None, _option("--orchestrator-effort", 'The default effort of every role; "" clears it.')
    ] = None,
    clear_orchestrator: Annotated[
        bool, Parameter(name="--clear-orchestrator", negative=(), help="Clear all three.")
    ] = False,
    role: Annotated[str | None, _option("--role", "The role that the --role-… options are for.")] = None,
    role_adapter: Annotated[
        str | None, _option("--role-adapter", 'Its adapter; "" goes back to the orchestrator\'s.')
    ] = None,
    role_model: Annotated[
        str | None, _option("--role-model", 'Its model; "" goes back to the orchestrator\'s.')
    ] = None,
    role_effort: Annotated[
        str | None, _option("--role-effort", 'Its effort; "" goes back to the orchestrator\'s.')
    ] = None,
    clear_role: Annotated[
        bool, Parameter(name="--clear-role", negative=(), help="Clear the entry of --role.")
    ] = False,
    preset: Annotated[str | None, _option("--preset", 'The active preset; "" is none.')] = None,
    in_preset: Annotated[
        str | None, _option("--in-preset", "Write --role into this preset instead of into the roles.")
    ] = None,
    clear_preset: Annotated[str | None, _option("--clear-preset", "Remove a preset.")] = None,
    telemetry_relay: Annotated[
        bool | None, _option("--telemetry-relay", "Whether a runtime's own spans join an exported trace.")
    ] = None,
    telemetry_prompts: Annotated[
        bool | None, _option("--telemetry-prompts", "Whether prompts are exported; secrets never are.")
    ] = None,
    telemetry_outputs: Annotated[
        bool | None, _option("--telemetry-outputs", "Whether answers are exported; secrets never are.")
    ] = None,
    telemetry_tool_arguments: Annotated[
        bool | None, _option("--telemetry-tool-arguments", "The same for what tools take and return.")
    ] = None,
    clear: Annotated[
        list[str] | None,
        Parameter(
            name="--clear",
            negative=(),
            help="Put any key back to its default, as cooldown.default_seconds; repeat it for more.",
        ),
    ] = None,
    project_dir: ProjectDir = Path(),
    format: FormatOption = "text",  # noqa: A002 - the option's word
) -> int:
    """Change the policy. What is not named stays; all is checked before any is written.

    Says what was changed, from what to what, and in which file.

    Example: cos supervision set --role reviewer --role-effort low
    """
    project = project_at(project_dir)
    role_fields = (role_adapter, role_model, role_effort)
    if role is None and (clear_role or any(field is not None for field in role_fields)):
        raise usage_error("--role-… and --clear-role need --role to say which role is meant")
    if role is not None and not clear_role and all(field is None for field in role_fields):
        raise usage_error(
            f"--role {role} alone changes nothing; "
            "add --role-adapter, --role-model, --role-effort or --clear-role"
        )
    if role is not None and not clear_role and not is_role(role):
        raise usage_error(unknown_role(role))
    if in_preset is not None and role is None:
        raise usage_error("--in-preset needs --role to say which role's entry is meant")

    from custodes.policy.patch import CooldownPatch, PolicyPatch, TelemetryPatch

    entry = {role: _target(*role_fields)} if role is not None else {}
    clears = list(clear or ())
    if clear_role and role is not None:
        clears.append(f"presets.{in_preset}.{role}" if in_preset is not None else f"roles.{role}")
    patch = PolicyPatch(
        mode=_given(mode),
        complexity_threshold=_given(complexity_threshold),
        fallback_policy=_given(fallback_policy),
        max_parallel=_given(max_parallel),
        max_live=_given(max_live),
        ask_seconds=_given(ask_seconds),
        cooldown=CooldownPatch(
            default_seconds=_given(cooldown_default_seconds),
            maximum_seconds=_given(cooldown_maximum_seconds),
            retry_after_ceiling_seconds=_given(cooldown_retry_after_ceiling_seconds),
        ),
        orchestrator=_target(orchestrator_adapter, orchestrator_model, orchestrator_effort),
        clear_orchestrator=clear_orchestrator,
        roles=entry if in_preset is None else {},
        preset=_given(preset),
        presets={in_preset: entry} if in_preset is not None else {},
        telemetry=TelemetryPatch(
            relay=_given(telemetry_relay),
            prompts=_given(telemetry_prompts),
            outputs=_given(telemetry_outputs),
            tool_arguments=_given(telemetry_tool_arguments),
        ),
        clear_presets=(clear_preset,) if clear_preset is not None else (),
        clear=tuple(clears),
    )
    if patch == PolicyPatch():
        raise usage_error("nothing to set; `cos supervision set --help` lists what can be")
    return _set(project, patch, format)


def _target(adapter: str | None, model: str | None, effort: str | None) -> TargetPatch:
    from custodes.policy.patch import TargetPatch

    return TargetPatch(adapter=_given(adapter), model=_given(model), effort=_given(effort))


def _given(value: T | None) -> T | UnsetType:
    return UNSET if value is None else value


def _enabled(project: Path, value: bool, form: Format) -> int:
    from custodes.policy.patch import PolicyPatch

    _write(project, PolicyPatch(enabled=value))
    return _show(project, form)


def _set(project: Path, patch: PolicyPatch, form: Format) -> int:
    from custodes.cli.overview import write_changes
    from custodes.policy.changes import changes
    from custodes.policy.overview import overview_of
    from custodes.policy.settings import Settings

    settings = Settings(project)
    before = settings.read().policy
    after = _write(project, patch).policy
    if form == "json":
        return _show(project, form)
    write_changes(changes(before, after, patch), settings.path, overview_of(project))
    return DONE


def _write(project: Path, patch: PolicyPatch) -> Snapshot:
    from custodes.adapters.registry import Registry
    from custodes.policy.catalog import Catalog
    from custodes.policy.settings import Settings

    return Settings(project).patch(patch, Catalog.of(Registry.discover(project), readiness=False))


def _show(project: Path, form: Format) -> int:
    from custodes.cli.overview import write_overview
    from custodes.policy.overview import overview_of

    overview = overview_of(project)
    if form == "json":
        write_json(overview)
    else:
        write_overview(overview)
    return DONE
