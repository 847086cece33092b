"""The program called in process, and what it answered."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple


class Answer(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        """Stdout as the one JSON document that it must be."""
        return json.loads(self.out)


Cos = Callable[..., Answer]


class Tiered(NamedTuple):
    """A project whose one adapter has two models in two pools and three efforts."""

    project: Path
    adapter: str
