"""Whether a runtime could be called, and the fingerprint of what that hangs on. Stats only: runs nothing.

The fingerprint is what an auth or configuration failure is remembered by: the adapter stays unavailable until
it changes. It looks at the program's file, the login's files and whether variables are set, never at a
content or a secret; so a key that is replaced by another key changes nothing here, and an operator's clear is
what says "try again". Of a project's own adapter it also holds the digest that was trusted.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

import msgspec

from custodes.adapters.descriptor import Descriptor, is_loopback, url_problem
from custodes.adapters.manifest import identity
from custodes.adapters.program import Program, find_program
from custodes.extras import missing

Code = Literal["", "error", "untrusted", "missing", "no_program", "no_key", "endpoint", "no_extra"]
Found = Mapping[str, Program | None]
"""An adapter's programs, by name; None for one that PATH does not have."""


class ReadinessState(msgspec.Struct, frozen=True, kw_only=True):
    """``ready``, or why not: ``code`` for a program, ``reason`` for a person (``""`` if ready)."""

    ready: bool
    reason: str = ""
    fingerprint: str = ""
    code: Code = ""


def readiness_of(descriptor: Descriptor, environ: Mapping[str, str], digest: str = "") -> ReadinessState:
    """The state of an adapter that may be used (trust is the registry's question, asked before).

    :param digest: of its folder, where that is the project's own: mending its module is a change of it.
    """
    names = [descriptor.cli.binary] if descriptor.cli else []
    names += [model.argv[0] for model in descriptor.models if model.argv]
    found = {name: find_program(name, environ.get("PATH")) for name in names}
    code, reason = _problem(descriptor, environ, found)
    looked_at = [reason, msgspec.json.encode(descriptor).decode(), *_looked_at(descriptor, environ, found)]
    looked_at += [digest] if digest else []
    return ReadinessState(ready=not reason, reason=reason, code=code, fingerprint=_fingerprint(looked_at))


def _problem(descriptor: Descriptor, environ: Mapping[str, str], found: Found) -> tuple[Code, str]:
    if descriptor.cli and not found[descriptor.cli.binary]:
        return "missing", f"program '{descriptor.cli.binary}' was not found on PATH"
    if descriptor.readiness.programs:
        programs = [model for model in descriptor.models if model.argv]
        if not programs:
            file = f".coding-os/adapters/{descriptor.id}/adapter.yaml"
            return (
                "no_program",
                f"no program is named; name one in {file}: models: [{{id: test, argv: [make, test]}}]",
            )
        if not any(found[model.argv[0]] for model in programs):
            names = ", ".join(dict.fromkeys(f"'{model.argv[0]}'" for model in programs))
            return "missing", f"none of its programs was found: {names}"
    if (extra := descriptor.readiness.extra) and find_spec(extra) is None:
        return "no_extra", missing("it needs", extra)
    if descriptor.endpoint:
        url = descriptor.endpoint.url(environ)
        if not url:
            return "endpoint", f"no address: set {descriptor.endpoint.base_url_env or 'endpoint.base_url'}"
        if why := url_problem(url):
            return (
                "endpoint",
                f"the address {why}; see {descriptor.endpoint.base_url_env or 'endpoint.base_url'}",
            )
        key = descriptor.endpoint.key_env
        if key and not environ.get(key) and not is_loopback(url):
            return "no_key", f"no key: set {key}"
    for name in descriptor.readiness.env:
        if not environ.get(name):
            return "missing", f"the variable {name} is not set"
    return "", ""


def _fingerprint(looked_at: Iterable[str]) -> str:
    total = hashlib.sha256()
    for part in looked_at:
        total.update(part.encode("utf-8", "surrogateescape") + b"\0")
    return total.hexdigest()[:32]


def _looked_at(descriptor: Descriptor, environ: Mapping[str, str], found: Found) -> Iterator[str]:
    for name, program in found.items():
        yield f"{name}={program and program.real}:{program and program.at}"
    for name in descriptor.readiness.files:
        yield f"{name}:{identity(Path(name).expanduser())}"
    variables = list(descriptor.readiness.env)
    if descriptor.endpoint:
        yield descriptor.endpoint.url(environ)
        variables.append(descriptor.endpoint.key_env)
    for variable in variables:
        yield f"{variable}:{bool(environ.get(variable))}"
