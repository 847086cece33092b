"""A project of its own for each test."""

from __future__ import annotations

from support.projects import cos, programs, project, tiered

__all__ = ["cos", "programs", "project", "tiered"]
