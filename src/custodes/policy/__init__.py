"""What the operator decided: the policy, its settings file, when it applies, and where work then goes.

Pure rules on frozen Structs, and one service that touches the file. No store, no telemetry, no actor.
"""

from custodes.policy.catalog import Adapter, Catalog, Objection
from custodes.policy.explain import Estimate, Explanation, explain
from custodes.policy.patch import CooldownPatch, PolicyPatch, TargetPatch, TelemetryPatch
from custodes.policy.policy import (
    Complexity,
    Cooldown,
    FallbackPolicy,
    Mode,
    Policy,
    Target,
    Telemetry,
    turn_defaults,
)
from custodes.policy.roles import ROLE_DEFAULTS, ROLES, Role, RoleDefaults
from custodes.policy.routing import Denial, PassedOver, Resolution, Route, RouteRequest, Step, resolve
from custodes.policy.settings import OldVersionError, PolicyRefusedError, Settings, SettingsError, Snapshot
from custodes.policy.trigger import Decision, applies, complexity_of

__all__ = [
    "ROLES",
    "ROLE_DEFAULTS",
    "Adapter",
    "Catalog",
    "Complexity",
    "Cooldown",
    "CooldownPatch",
    "Decision",
    "Denial",
    "Estimate",
    "Explanation",
    "FallbackPolicy",
    "Mode",
    "Objection",
    "OldVersionError",
    "PassedOver",
    "Policy",
    "PolicyPatch",
    "PolicyRefusedError",
    "Resolution",
    "Role",
    "RoleDefaults",
    "Route",
    "RouteRequest",
    "Settings",
    "SettingsError",
    "Snapshot",
    "Step",
    "Target",
    "TargetPatch",
    "Telemetry",
    "TelemetryPatch",
    "applies",
    "complexity_of",
    "explain",
    "resolve",
    "turn_defaults",
]
