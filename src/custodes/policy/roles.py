"""The 11 semantic roles."""

from __future__ import annotations

from typing import Literal, get_args

Role = Literal[
    "researcher",
    "analyst",
    "architect",
    "documenter",
    "implementer",
    "reviewer",
    "debugger",
    "security_auditor",
    "deployer",
    "observer",
    "refactorer",
]

ROLES: tuple[Role, ...] = get_args(Role)
