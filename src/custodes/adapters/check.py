"""Is an adapter's runtime here, new enough and ready, and what can it do: the answer for a person.

Its module is imported and its version command run, and nothing else, and only where the adapter is trusted: a
project's own adapter may name any program.
"""

from __future__ import annotations

import re
import shutil
import tempfile

import anyio.to_thread
import msgspec

from custodes.adapters.descriptor import CAPABILITIES, Cli, Descriptor
from custodes.adapters.errors import AdapterError
from custodes.adapters.process import ProgramError, base_environment, run_program
from custodes.adapters.registry import Registry

VERSION_TIMEOUT_S = 30.0
"""A first start of a runtime unpacks itself, which takes some of them many seconds."""
_VERSION = re.compile(r"\d+(?:\.\d+)+")

LACKING = {
    "dispatch": "it can be given no work",
    "model_selection": "it always runs its own model, and a model that is named is refused",
    "effort_selection": "an effort that is named is refused",
    "structured_output": "its evidence is asked for in words, and what does not fit is a failure",
    "resume": "an earlier thread of it cannot be gone on with",
    "cancel": "cancelling ends its processes; it is not asked first",
    "usage": "its tokens are not known, and settle as they were reckoned",
    "cost": "its cost is not known",
    "trace_context": "its own spans do not join the tree",
    "permission_requests": "what it asks permission for is not seen: its own settings decide",
    "profile_switch": "the overseer cannot move its profiles to another model",
}
"""What it means that an adapter does not declare a capability."""


class AdapterCheck(msgspec.Struct, frozen=True, kw_only=True):
    """``program`` is where its program stands ("" for none, or none found); ``version`` what that says of
    itself, None where it was not asked or says nothing of the kind. ``problems`` must be mended before it
    can get work; ``lacks`` says what each capability that it does not declare means."""

    id: str
    label: str
    origin: str
    agent: bool
    ready: bool
    program: str
    version: str | None
    minimum: str | None
    capabilities: tuple[str, ...]
    lacks: dict[str, str]
    models: tuple[str, ...]
    efforts: tuple[str, ...]
    problems: tuple[str, ...]


async def check(registry: Registry, adapter: str) -> AdapterCheck:
    """Look at one adapter.

    :raises AdapterError: there is none of this id, or its file is broken.
    """
    found = registry.descriptor(adapter)
    readiness = registry.readiness(adapter)
    problems = [] if readiness.ready else [readiness.reason]
    program = shutil.which(found.cli.binary) or "" if found.cli else ""
    version = None
    if found.cli is not None and program and readiness.code != "untrusted":
        version, problem = await _version(found, found.cli, program)
        problems += [problem] if problem else []
    if found.can("dispatch") and readiness.code != "untrusted":
        try:
            await anyio.to_thread.run_sync(registry.runtime, adapter)  # its import may take a second
        except AdapterError as error:
            problems.append(str(error))
    if adapter not in registry.agents:
        problems.append("it is not in .coding-os.yaml::agents; name it there to let it have work")
    if not found.can("dispatch"):
        problems.append("it does not declare dispatch")
    return AdapterCheck(
        id=found.id,
        label=found.label,
        origin=found.origin,
        agent=adapter in registry.agents,
        ready=readiness.ready,
        program=program,
        version=version,
        minimum=found.cli.minimum if found.cli else None,
        capabilities=found.runtime_entrypoints.capabilities,
        lacks={name: LACKING[name] for name in CAPABILITIES if not found.can(name)},
        models=tuple(model.id for model in found.models),
        efforts=found.efforts,
        problems=tuple(problems),
    )


async def _version(found: Descriptor, cli: Cli, program: str) -> tuple[str | None, str]:
    """What the program says its version is, and what is wrong with that ("" for nothing)."""
    asked = " ".join((cli.binary, *cli.version))
    try:
        ended = await run_program(
            [program, *cli.version],
            cwd=tempfile.gettempdir(),
            environment=base_environment({}),
            timeout_s=VERSION_TIMEOUT_S,
        )
    except ProgramError as error:
        return None, f"`{asked}` cannot be run: {error}"
    if ended.timed_out:
        return None, f"`{asked}` gave no answer within {VERSION_TIMEOUT_S:g} s"
    if ended.exit_code != 0:
        return None, f"`{asked}` ended with {ended.exit_code}"
    said = _VERSION.search((ended.stdout + b"\n" + ended.stderr).decode(errors="replace"))
    if said is None:
        return None, f"`{asked}` named no version" if cli.minimum else ""
    version = said.group()
    if cli.minimum and older(version, cli.minimum):
        return version, f"version {version} is too old; {found.label or found.id} needs {cli.minimum}"
    return version, ""


def older(version: str, minimum: str) -> bool:
    """Whether a dotted version comes before another, number by number; a missing one is 0."""
    ours, wanted = ([int(number) for number in re.findall(r"\d+", text)] for text in (version, minimum))
    width = max(len(ours), len(wanted))
    return ours + [0] * (width - len(ours)) < wanted + [0] * (width - len(wanted))
