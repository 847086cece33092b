"""The watch over providers: probes them, moves profiles off a sick one, and moves them back.

`config` is what a person writes; `watch`, `decide` and `ledger` are the rules, `Overseer` their one executor;
`run` is the overseer of a project as a tree, `tick` one round of it, `switch_by_hand` what a person asks of
either.
"""

from custodes.overseer.by_hand import Switched, SwitchOrder, SwitchRefused
from custodes.overseer.config import Config
from custodes.overseer.daemon import Tick, run, tick
from custodes.overseer.hand_switch import switch_by_hand
from custodes.overseer.holder import AlreadyRunning
from custodes.overseer.incident import Incident
from custodes.overseer.overseer import Overseer
from custodes.overseer.reading import ConfigError, find_config, read_config

__all__ = [
    "AlreadyRunning",
    "Config",
    "ConfigError",
    "Incident",
    "Overseer",
    "SwitchOrder",
    "SwitchRefused",
    "Switched",
    "Tick",
    "find_config",
    "read_config",
    "run",
    "switch_by_hand",
    "tick",
]
