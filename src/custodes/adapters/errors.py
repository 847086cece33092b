"""What can be wrong with an adapter, and what was probably meant, in words for the person who reads them."""

from __future__ import annotations

from collections.abc import Iterable


class AdapterError(Exception):
    """An adapter, or the list of them, cannot be used. The text says what, where, and what would work."""


class DescriptorError(AdapterError):
    """An ``adapter.yaml`` (or ``.coding-os.yaml``) is not what it must be; names the file and the field."""


class UntrustedError(AdapterError):
    """A project's own adapter that the person has not trusted, or that changed since."""


def quoted(word: str) -> str:
    """A word that somebody gave, for a sentence: on one line, whatever it holds, and of a readable length."""
    plain = word if word.isprintable() else repr(word)[1:-1]
    return f"'{plain}'" if len(plain) <= 80 else f"'{plain[:79]}…'"


_LONGEST_NAME = 200
"""Characters. The comparison takes time by their product: what is longer is no name that was misspelled."""


def closest(word: str, known: Iterable[str], cutoff: float = 0.6) -> str | None:
    """The known word that was probably meant; ``cutoff`` is how alike they must be, 0 to 1."""
    import difflib  # only errors need it

    if len(word) > _LONGEST_NAME:
        return None
    names = [name for name in known if len(name) <= _LONGEST_NAME]
    found = difflib.get_close_matches(word, names, n=1, cutoff=cutoff)
    return found[0] if found else None


def near_miss(wrong: str, known: Iterable[str]) -> str:
    """``"; did you mean 'x'?"`` where one of ``known`` is close to ``wrong``, else ``""``."""
    close = closest(wrong, known)
    return f"; did you mean '{close}'?" if close else ""


def instead(word: str, known: Iterable[str]) -> str:
    """What would work in place of ``word``: the near miss where there is one, and every choice."""
    known = list(known)
    if not known:
        return ""
    close = closest(word, known) or closest(word.lower(), known)
    return (f"did you mean '{close}'? " if close else "") + f"Known: {', '.join(known)}"
