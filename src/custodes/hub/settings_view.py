"""Builds the settings page from the policy, the adapters it is about, and what somebody typed. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Container, Iterable, Mapping
from typing import Literal, TypeVar, get_args

import msgspec

from custodes.hub.forms import NEW_HINT, values_of
from custodes.hub.project_view import SettingsNow
from custodes.hub.settings_fields import Draft, Field, Option, Section, SettingsPage
from custodes.policy.overview import AdapterView
from custodes.policy.policy import Complexity, FallbackPolicy, Mode, Policy, Target
from custodes.policy.roles import ROLE_DEFAULTS, ROLES, is_role
from custodes.policy.routing import RouteRequest, resolve

MODES: Mapping[Mode, str] = {
    "explicit": "always",
    "adaptive": "from the gate up",
    "suggest": "a dry run",
}
FALLBACKS: Mapping[FallbackPolicy, str] = {
    "fail_closed": "refuse, and say why",
    "same_adapter_default": "its adapter's default model",
    "next_eligible": "another configured adapter",
}


T = TypeVar("T", bound=str)


def settings_page(now: SettingsNow, draft: Draft | None = None) -> SettingsPage:
    overview = now.overview
    policy = overview.policy
    return SettingsPage(
        enabled=policy.enabled,
        module_enabled=overview.module_enabled,
        groups=_Sections(now, draft).groups() if policy.enabled else {},
        warnings=overview.warnings,
    )


class _Sections:
    """One building of the page: everything below looks at the same moment."""

    def __init__(self, now: SettingsNow, draft: Draft | None) -> None:
        self._now = now
        self._policy: Policy = now.overview.policy
        self._saved = values_of(self._policy)
        self._draft = draft
        self._notes: dict[str, str] = {}
        for problem in now.stale:
            if problem.involves:
                self._notes.setdefault(".".join(problem.involves[-1]), problem.text)

    def groups(self) -> dict[str, tuple[Section, ...]]:
        roles = dict.fromkeys((*ROLES, *self._policy.roles))
        presets = [
            self._hint(preset, role) for preset, hints in self._policy.presets.items() for role in hints
        ]
        return {
            "When it applies": (self._trigger(),),
            "Default for every role": (self._orchestrator(),),
            "By role": tuple(self._role(role) for role in roles),
            "Fallback and limits": (self._limits(), self._cooldown(), self._telemetry()),
            "Presets": (self._preset(), *presets, self._new_hint()),
        }

    def _trigger(self) -> Section:
        return self._section(
            "trigger",
            "Trigger",
            self._words("mode", "Mode", MODES, "Which work this policy is for."),
            self._words(
                "complexity_threshold",
                "Complexity gate",
                dict.fromkeys(get_args(Complexity), ""),
                "Adaptive mode supervises from here up.",
            ),
        )

    def _limits(self) -> Section:
        return self._section(
            "limits",
            "Fallback and concurrency",
            self._words(
                "fallback_policy",
                "Where the target cannot run",
                FALLBACKS,
                "Never for work that may have begun.",
            ),
            self._number("max_parallel", "Attempts at once", "On this host, 1 to 16."),
            self._number("max_live", "Begun and not ended", "Those that wait for their children, too."),
            self._number("ask_seconds", "Seconds an ask waits", "For an answer; then it is denied."),
        )

    def _cooldown(self) -> Section:
        return self._section(
            "cooldown",
            "Cooldown, in seconds",
            self._number("cooldown.default_seconds", "First wait", "After a limit that states none."),
            self._number("cooldown.maximum_seconds", "Longest such wait", "It doubles up to this."),
            self._number(
                "cooldown.retry_after_ceiling_seconds",
                "Longest stated wait",
                "A provider's word is believed up to this.",
            ),
        )

    def _telemetry(self) -> Section:
        return self._section(
            "telemetry",
            "Telemetry",
            self._switch("telemetry.relay", "Runtimes' own spans"),
            self._switch("telemetry.prompts", "Prompts"),
            self._switch("telemetry.outputs", "Answers"),
            self._switch("telemetry.tool_arguments", "Tools' contents"),
            about="What is exported beyond our own spans, where anything is. Secrets never are.",
        )

    def _orchestrator(self) -> Section:
        return self._section(
            "orchestrator",
            "Orchestrator",
            *self._target("orchestrator", Target()),
            about="A role inherits from here what its own entry leaves open.",
            clear="orchestrator",
            clear_label="Clear all three",
        )

    def _role(self, role: str) -> Section:
        route, refusal = self._route(role)
        return self._section(
            f"role-{role}" if is_role(role) else f"role-{_short(role)}",
            role.replace("_", " "),
            *self._target(f"roles.{role}", self._policy.orchestrator),
            about=ROLE_DEFAULTS[role].purpose if is_role(role) else self._notes.get(f"roles.{role}", ""),
            route=route,
            refusal=refusal,
            clear=f"roles.{role}" if role in self._policy.roles else "",
            clear_label="Inherit all",
        )

    def _preset(self) -> Section:
        options = [Option(value="", label="None")]
        options += [Option(value=name, label=name) for name in self._policy.presets]
        return self._section(
            "preset",
            "Active preset",
            self._select(
                "preset", "Preset", options, "A named set of hints; they give way where they do not fit."
            ),
        )

    def _hint(self, preset: str, role: str) -> Section:
        return self._section(
            f"hint-{_short(preset)}-{_short(role)}",
            f"{preset} · {role.replace('_', ' ')}",
            *self._target(f"presets.{preset}.{role}", Target()),
            clear_preset=preset,
            clear_label=f"Remove preset “{preset}”",
            active=preset == self._policy.preset,
        )

    def _new_hint(self) -> Section:
        """A preset comes to be by its first hint."""
        draft = self._draft if self._draft and self._draft.section == "new-hint" else Draft(section="")
        roles = [Option(value=role, label=role.replace("_", " ")) for role in ROLES]
        name, role = draft.edit.name, draft.edit.role or ROLES[0]
        return self._section(
            "new-hint",
            "Add a hint",
            Field(
                key="name",
                label="Preset",
                kind="text",
                value=name,
                saved="",
                error=draft.errors.get("name", ""),
                help="A new name, or one above.",
            ),
            Field(key="role", label="Role", kind="select", value=role, saved="", options=tuple(roles)),
            *self._target(NEW_HINT, Target()),
        )

    # -- Fields

    def _target(self, where: str, inherited: Target) -> Iterable[Field]:
        adapters = [each for each in self._now.overview.adapters if each.eligible]
        key = f"{where}.adapter"
        if len(adapters) != 1 or self._saved.get(key, "") not in ("", adapters[0].id):
            yield msgspec.structs.replace(
                self._select(key, "Adapter", self._adapters(inherited.adapter), "", inherited.adapter),
                chooses=True,
            )
        named = self._shown(key) or inherited.adapter
        chosen = [each for each in adapters if each.id == named] or ([] if named else adapters)
        yield self._model(f"{where}.model", chosen, inherited.model)
        yield self._effort(f"{where}.effort", chosen, inherited.effort)

    def _adapters(self, inherited: str) -> list[Option]:
        options = [Option(value="", label=_inherits(inherited, [inherited]))]
        for each in self._now.overview.adapters:
            label = each.label or each.id
            if not (each.ready and each.eligible):
                label = f"{label} — unavailable: {each.reason}"
            options.append(Option(value=each.id, label=label, disabled=not (each.ready and each.eligible)))
        return options

    def _model(self, key: str, chosen: list[AdapterView], inherited: str) -> Field:
        """A list where one adapter is meant and publishes one, else free text: an empty catalog means that
        the runtime takes any model, and without an adapter a model may name it."""
        if len(chosen) == 1 and not chosen[0].any_model:
            models = chosen[0].models
            known = [model.id for model in models]
            options = [Option(value="", label=_inherits(inherited, known))]
            options += [
                Option(value=model.id, label=f"{model.id} (default)" if model.default else model.id)
                for model in models
            ]
            return self._select(key, "Model", options, "" if models else "It runs its own model.")
        field = self._field(
            key,
            "Model",
            "text",
            about="Any model id is passed on as it is." if len(chosen) == 1 else "",
            default=_inherits(inherited, [inherited]),
        )
        suggestions = dict.fromkeys(model.id for each in chosen for model in each.models)
        return msgspec.structs.replace(field, suggestions=tuple(suggestions))

    def _effort(self, key: str, chosen: list[AdapterView], inherited: str) -> Field:
        efforts = dict.fromkeys(effort for each in chosen for effort in each.efforts)
        options = [Option(value="", label=_inherits(inherited, efforts))]
        options += [Option(value=effort, label=effort) for effort in efforts]
        return self._select(key, "Effort", options, "" if efforts else "It takes no effort.")

    def _words(self, key: str, label: str, words: Mapping[T, str], about: str) -> Field:
        options = [
            Option(value=word, label=f"{word}: {meaning}" if meaning else word)
            for word, meaning in words.items()
        ]
        return self._select(key, label, options, about, _DEFAULTS[key])

    def _switch(self, key: str, label: str) -> Field:
        options = [Option(value="true", label="exported"), Option(value="false", label="not exported")]
        return self._select(key, label, options, "", _DEFAULTS[key])

    def _number(self, key: str, label: str, about: str) -> Field:
        return self._field(key, label, "number", about=about, default=_DEFAULTS[key])

    def _select(
        self,
        key: str,
        label: str,
        options: list[Option],
        about: str,
        default: str = "",
    ) -> Field:
        field = self._field(key, label, "select", about=about, default=default)
        if field.value not in [option.value for option in options]:
            # What is saved is shown, whatever became of it: an empty control would say that nothing is.
            options = [*options, Option(value=field.value, label=f"{field.value} — unavailable")]
            note = field.note or "it is not offered any more by what is configured"
            field = msgspec.structs.replace(field, note=note)
        return msgspec.structs.replace(field, options=tuple(options))

    def _field(
        self,
        key: str,
        label: str,
        kind: Literal["select", "text", "number"],
        *,
        about: str,
        default: str,
    ) -> Field:
        draft = self._draft
        return Field(
            key=key,
            label=label,
            kind=kind,
            value=self._shown(key),
            saved=self._saved.get(key, ""),
            note=self._notes.get(key, "") if self._shown(key) == self._saved.get(key, "") else "",
            error=draft.errors.get(key, "") if draft else "",
            conflict=draft.conflicts.get(key) if draft else None,
            help=about,
            default=default,
        )

    def _shown(self, key: str) -> str:
        saved = self._saved.get(key, "")
        return self._draft.edit.typed.get(key, saved) if self._draft else saved

    def _section(
        self,
        section: str,
        title: str,
        *fields: Field,
        about: str = "",
        route: str = "",
        refusal: str = "",
        clear: str = "",
        clear_preset: str = "",
        clear_label: str = "",
        active: bool = False,
    ) -> Section:
        draft = self._draft if self._draft and self._draft.section == section else None
        return Section(
            id=section,
            title=title,
            fields=fields,
            help=about,
            route=route,
            refusal="" if any(field.note for field in fields) else refusal,
            clear=clear if any(field.saved for field in fields) else "",
            clear_preset=clear_preset,
            clear_label=clear_label,
            version=_short(*(f"{field.key}={field.saved}" for field in fields)),
            draft=draft is not None and not draft.saved,
            saved=draft is not None and draft.saved,
            error=draft.error if draft else "",
            active=active,
        )

    def _route(self, role: str) -> tuple[str, str]:
        resolution = resolve(RouteRequest(role=role), self._policy, self._now.catalog)
        if resolution.candidates:
            first = resolution.candidates[0]
            words = (first.adapter, first.model or "its own model", first.effort or "")
            return " · ".join(word for word in words if word), ""
        return "", str(resolution.refusal) if resolution.refusal else ""


_DEFAULTS = values_of(Policy())


def _inherits(value: str, offered: Container[str]) -> str:
    """What an empty field comes to: the inherited value, where it is offered at all."""
    return f"Inherit ({value})" if value and value in offered else "Default"


def _short(*texts: str) -> str:
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:10]
