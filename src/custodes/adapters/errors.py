"""What can be wrong with an adapter, in words for the person who reads them."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class AdapterError(Exception):
    """An adapter, or the list of them, cannot be used. The text says what, where, and what would work."""


class DescriptorError(AdapterError):
    """An ``adapter.yaml`` (or ``.coding-os.yaml``) is not what it must be; names the file and the field."""


class UntrustedError(AdapterError):
    """A project's own adapter that the person has not trusted, or that changed since."""


def near_miss(wrong: str, known: Iterable[str]) -> str:
    """``"; did you mean 'x'?"`` where one of ``known`` is close to ``wrong``, else ``""``."""
    close = difflib.get_close_matches(wrong, list(known), n=1, cutoff=0.6)
    return f"; did you mean '{close[0]}'?" if close else ""
