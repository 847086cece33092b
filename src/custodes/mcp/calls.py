"""What each tool takes, as Structs. Their descriptions are all that an agent knows of us: they teach."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeVar, get_args

import msgspec
from msgspec import UNSET, Meta, UnsetType

from custodes.policy.patch import CooldownPatch, PolicyPatch, TargetPatch, TelemetryPatch
from custodes.policy.policy import Complexity, FallbackPolicy, Mode
from custodes.policy.roles import ROLES

T = TypeVar("T")


def _words(literal: Any) -> dict[str, Any]:
    """The choices in a schema, where the words themselves are checked by the policy service, in any case."""
    return {"enum": list(get_args(literal))}


_ROLE = Meta(description="Who does it: one of the 11 roles; cos_role_info tells them.")


class Target(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    adapter: Annotated[str | UnsetType, Meta(description='The adapter\'s id; "" clears it.')] = UNSET
    model: Annotated[str | UnsetType, Meta(description='A model of that adapter; "" clears it.')] = UNSET
    effort: Annotated[str | UnsetType, Meta(description='An effort it lists; "" clears it.')] = UNSET


class Cooldown(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    default_seconds: Annotated[
        int | UnsetType, Meta(description="The first wait after a limit that states none.")
    ] = UNSET
    maximum_seconds: Annotated[
        int | UnsetType, Meta(description="The longest such wait; it doubles up to this.")
    ] = UNSET
    retry_after_ceiling_seconds: Annotated[
        int | UnsetType, Meta(description="The longest wait that a provider states and is believed.")
    ] = UNSET


class Telemetry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    relay: Annotated[bool | UnsetType, Meta(description="A runtime's own spans join the trace.")] = UNSET
    prompts: Annotated[bool | UnsetType, Meta(description="Prompts are exported.")] = UNSET
    outputs: Annotated[bool | UnsetType, Meta(description="Answers are exported.")] = UNSET
    tool_arguments: Annotated[
        bool | UnsetType, Meta(description="What tools are called with, and return, is exported.")
    ] = UNSET


class ConfigCall(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The other fields are for ``set``: what is not given stays."""

    action: Annotated[
        Literal["show", "enable", "disable", "set"],
        Meta(
            description="show: the policy, the adapters and what is stale. enable, disable: the switch. "
            "set: change what the other fields name; the result is shown."
        ),
    ]
    health: Annotated[bool, Meta(description="show: add how the model pools stand.")] = False
    mode: Annotated[
        str | UnsetType,
        Meta(
            description="explicit: the policy always applies; adaptive: from complexity_threshold up; "
            "suggest: a dry run that returns the route and runs nothing.",
            extra_json_schema=_words(Mode),
        ),
    ] = UNSET
    complexity_threshold: Annotated[
        str | UnsetType,
        Meta(description="The gate of the adaptive mode.", extra_json_schema=_words(Complexity)),
    ] = UNSET
    fallback_policy: Annotated[
        str | UnsetType,
        Meta(
            description="Where the target cannot run. fail_closed: say why; same_adapter_default: its "
            "adapter's default model; next_eligible: another configured adapter.",
            extra_json_schema=_words(FallbackPolicy),
        ),
    ] = UNSET
    max_parallel: Annotated[int | UnsetType, Meta(description="Attempts at once on this host, 1 to 16.")] = (
        UNSET
    )
    max_live: Annotated[
        int | UnsetType,
        Meta(description="Attempts begun and not ended, those that wait for children of their own too."),
    ] = UNSET
    ask_seconds: Annotated[
        int | UnsetType,
        Meta(description="Seconds that a child's ask for permission waits for an answer; then it is denied."),
    ] = UNSET
    cooldown: Annotated[Cooldown, Meta(description="Waits after a limit, in seconds.")] = Cooldown()
    orchestrator: Annotated[Target, Meta(description="The default of every role, field by field.")] = Target()
    roles: Annotated[
        dict[str, Target],
        Meta(
            description='By role, over the orchestrator: {"reviewer": {"effort": "low"}}.',
            extra_json_schema={"propertyNames": {"enum": list(ROLES)}},
        ),
    ] = {}
    preset: Annotated[str | UnsetType, Meta(description='The active preset; "" is none.')] = UNSET
    presets: Annotated[
        dict[str, dict[str, Target]],
        Meta(description="Named sets of role hints; they give way where an adapter cannot follow."),
    ] = {}
    telemetry: Annotated[
        Telemetry, Meta(description="What is exported beyond our own spans; contents are off by default.")
    ] = Telemetry()
    clear: Annotated[
        tuple[str, ...],
        Meta(
            description="Keys that go back to their default, dotted: mode, cooldown.default_seconds, "
            "orchestrator, orchestrator.model, roles.reviewer, roles.reviewer.effort, presets.night."
        ),
    ] = ()

    def patch(self) -> PolicyPatch:
        """The change that it asks for; nothing for ``show``."""
        if self.action in ("enable", "disable"):
            return PolicyPatch(enabled=self.action == "enable")
        return PolicyPatch(
            mode=self.mode,
            complexity_threshold=self.complexity_threshold,
            fallback_policy=self.fallback_policy,
            max_parallel=self.max_parallel,
            max_live=self.max_live,
            ask_seconds=self.ask_seconds,
            cooldown=_as(CooldownPatch, self.cooldown),
            orchestrator=_as(TargetPatch, self.orchestrator),
            roles={role: _as(TargetPatch, target) for role, target in self.roles.items()},
            preset=self.preset,
            presets={
                preset: {role: _as(TargetPatch, target) for role, target in hints.items()}
                for preset, hints in self.presets.items()
            },
            telemetry=_as(TelemetryPatch, self.telemetry),
            clear=self.clear,
        )

    @property
    def changes(self) -> bool:
        """Whether a field is given that only ``set`` takes."""
        blank = ConfigCall(action=self.action, health=self.health)
        return self != blank


def _as(kind: type[T], value: msgspec.Struct) -> T:
    return kind(**msgspec.structs.asdict(value))


class RoleInfoCall(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    role: Annotated[
        str, Meta(description="One role; all 11 where not given.", extra_json_schema={"enum": ["", *ROLES]})
    ] = ""


class HealthCall(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    action: Annotated[
        Literal["show", "clear"],
        Meta(
            description="show: every pool that was ever limited, with the seconds until it recovers. clear: "
            "override the breaker for one target; it is written to the audit log. Clear only what a person "
            "says is well again: a cleared pool that is still limited makes its limit longer."
        ),
    ] = "show"
    target: Annotated[
        str, Meta(description="clear: ADAPTER for all its pools, or one pool as ADAPTER:BUCKET.")
    ] = ""


class Work(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One piece of work for a child."""

    role: Annotated[str, _ROLE, Meta(extra_json_schema={"enum": list(ROLES)})]
    prompt: Annotated[
        str,
        Meta(
            min_length=1,
            description="What is asked. The child knows nothing of this conversation: say all it needs.",
        ),
    ]
    scope: Annotated[
        tuple[str, ...],
        Meta(
            description="What a mutable child may change, as paths from the project on; the whole project "
            "where empty. Children of scopes that meet take turns; outside of the project, only those of "
            "this project do."
        ),
    ] = ()
    mutable: Annotated[
        bool | None, Meta(description="Whether it may change files; the role's own default where not given.")
    ] = None
    adapter: Annotated[str, Meta(description="The adapter, instead of the policy's.")] = ""
    model: Annotated[str, Meta(description="The model, instead of the policy's.")] = ""
    effort: Annotated[str, Meta(description="The effort, instead of the policy's.")] = ""
    complexity: Annotated[
        str,
        Meta(
            description="How hard it is. Without it the adaptive mode never supervises.",
            extra_json_schema=_words(Complexity),
        ),
    ] = ""
    timeout: Annotated[
        Annotated[float, Meta(gt=0)] | None,
        Meta(description="Seconds one attempt may take; the role's default if not given."),
    ] = None
    wait: Annotated[
        float, Meta(ge=0, description="Seconds it may wait for a refused pool, instead of ending refused.")
    ] = 0
    estimate_tokens: Annotated[
        Annotated[int, Meta(ge=0)] | None,
        Meta(
            description="Tokens, in and out together, that a budget reserves for one attempt; from past "
            "attempts or the role's default if not given."
        ),
    ] = None
    estimate_usd: Annotated[
        Annotated[float, Meta(ge=0)] | None,
        Meta(description="USD that a budget reserves for one attempt, likewise."),
    ] = None
    resume: Annotated[
        str,
        Meta(
            description="The run_id of an earlier run: the child goes on in that run's own thread, on its "
            "adapter and model. Refused as invalid where its adapter cannot."
        ),
    ] = ""
    name: Annotated[str, Meta(description="A label for people.")] = ""


class DispatchCall(Work, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One piece of work, waited for."""


class Budget(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    children: Annotated[Annotated[int, Meta(ge=0)] | None, Meta(description="The most children.")] = None
    wall_seconds: Annotated[
        Annotated[float, Meta(gt=0)] | None, Meta(description="Nothing starts after these seconds.")
    ] = None
    when_spent: Annotated[
        Literal["finish", "stop"],
        Meta(
            description="finish: what runs then keeps its own timeout; stop: it is cancelled, and so is a "
            "child that uses more tokens or USD than there are."
        ),
    ] = "finish"
    tokens: Annotated[
        Annotated[int, Meta(ge=0)] | None,
        Meta(description="Tokens, in and out together. A child that no longer fits is refused, not kept."),
    ] = None
    usd: Annotated[
        Annotated[float, Meta(ge=0)] | None,
        Meta(
            description="USD. An adapter that reports no cost needs a model with a declared price, or "
            "estimate_usd on the work."
        ),
    ] = None
    depth: Annotated[
        Annotated[int, Meta(ge=0)] | None,
        Meta(description="Levels of children; 1 is this call's own."),
    ] = None


class FanOutCall(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    children: Annotated[
        tuple[Work, ...], Meta(min_length=1, description="The work; outcomes come back in this order.")
    ]
    name: Annotated[str, Meta(description="A label for people.")] = "fan-out"
    budget: Annotated[Budget, Meta(description="For the whole of it.")] = Budget()
    max_parallel: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        Meta(description="At once; it narrows the policy's number, never widens it."),
    ] = None


class AsksCall(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    action: Annotated[
        Literal["list", "answer"],
        Meta(
            description="list: what children ask leave for and nobody has answered yet. answer: decide on "
            "one; allow only what the person you work for would."
        ),
    ] = "list"
    ask: Annotated[str, Meta(description="answer: the ask's id.")] = ""
    answer: Annotated[
        str, Meta(description="answer: the decision.", extra_json_schema={"enum": ["", "allow", "deny"]})
    ] = ""


class CancelCall(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    target: Annotated[
        str,
        Meta(min_length=1, description="A run's id, or a conversation's: then all of it."),
    ]


class OverseerCall(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    action: Annotated[
        Literal["status", "incidents", "switch"],
        Meta(
            description="status: how each watched provider is, and what each profile is on. incidents: what "
            "happened and what was done. switch: move a profile by hand, only where the person you work for "
            "wants it."
        ),
    ] = "status"
    count: Annotated[
        int, Meta(ge=1, le=1_000, description="incidents: how many of the newest, oldest first.")
    ] = 50
    profile: Annotated[str, Meta(description="switch: a profile that status names.")] = ""
    target: Annotated[
        str,
        Meta(
            description="switch: provider/model, to be left there; primary, to be back on it; auto, where it "
            "belongs now."
        ),
    ] = ""
    force: Annotated[bool, Meta(description="switch: also to what is not well, or what no list names.")] = (
        False
    )
    was: Annotated[
        str, Meta(description="switch: the model that this was decided on; on any other it is refused.")
    ] = ""


class TraceCall(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    conversation: Annotated[
        str, Meta(description="A conversation's id, as results name it; this session's where not given.")
    ] = ""
