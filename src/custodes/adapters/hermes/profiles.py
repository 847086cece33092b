"""Sets the model of Hermes's profiles by its own command line, and believes nothing but the proof.

``hermes config set`` was seen to end with 0 and change nothing (an installation that a system manages), to
replace a malformed file by an almost empty one, and to drop every comment; and it sets one key at a time,
while a model, its provider and its address only make sense together. So it works on a copy, in a home of its
own inside the profile's folder. The copy must then read as the profile does but for what was to change; the
profile's file is replaced as a whole, its comments kept; and Hermes itself must read the new model back, else
the old bytes return. Killed at any point, the profile has the old file or the new one.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import anyio.to_thread

from custodes.adapters import foreign, manifest
from custodes.adapters.descriptor import Descriptor
from custodes.adapters.errors import AdapterError, instead
from custodes.adapters.hermes.arguments import KEPT
from custodes.adapters.hermes.profile_text import (
    KEYS,
    MalformedError,
    model_setting,
    parse,
    respelled,
    setting_of,
    with_setting,
)
from custodes.adapters.port import ProfileSetting, SwitchError
from custodes.adapters.process import ProgramError, base_environment, run_program
from custodes.paths import absent, there
from custodes.replacing import replace_file

TIMEOUT_S = 30.0
"""For one call of Hermes, which takes about one second."""
DEFAULT = "default"
SCRATCH = ".custodes-switch"
"""In the profile's folder, so that what its file holds stays where it is guarded."""


class HermesProfiles:
    def __init__(self, descriptor: Descriptor) -> None:
        self._binary = descriptor.binary
        self._known: dict[str, tuple[manifest.Identity | None, ProfileSetting]] = {}

    async def read(self, profile: str) -> ProfileSetting:
        """From its file alone, a stat where that is unchanged: Hermes takes a second to say the same."""
        return await anyio.to_thread.run_sync(self._read, profile)

    def _read(self, profile: str) -> ProfileSetting:
        file = _file(profile)
        stamp = manifest.identity(file)
        known = self._known.get(profile)
        if known is None or known[0] != stamp:
            known = self._known[profile] = (stamp, setting_of(_parsed(profile, _text_of(file))))
        return known[1]

    async def switch(self, profile: str, wanted: ProfileSetting, expected: ProfileSetting) -> None:
        text, file = await anyio.to_thread.run_sync(_content, profile)
        document = _parsed(profile, text)
        if not (found := setting_of(document)).holds(expected):
            raise SwitchError(f"Hermes profile '{profile}' was set to {found} meanwhile; it is left so")
        new = await self._changed(profile, text, wanted, file)
        await anyio.to_thread.run_sync(_replace, profile, file, text, new)
        try:
            await self._prove(profile, wanted)
        except BaseException:
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(_put_back, profile, file, new, text)
            raise

    async def recover(self, profile: str) -> bool:
        """The file itself is never half written; what is left is the copy."""
        _, file = await anyio.to_thread.run_sync(_content, profile)
        scratch = file.parent / SCRATCH
        found = scratch.exists()
        await anyio.to_thread.run_sync(_remove, scratch)
        return found

    async def _changed(self, profile: str, text: str, wanted: ProfileSetting, file: Path) -> str:
        """The new text of its file. What Hermes makes of a copy must be that, or nothing is changed."""
        result = with_setting(_parsed(profile, text), wanted)
        scratch = file.parent / SCRATCH
        await anyio.to_thread.run_sync(_remove, scratch)
        try:
            copy = await anyio.to_thread.run_sync(_copy, scratch, profile, text)
            for field, key in KEYS.items():
                if (value := getattr(wanted, field)) is not None:
                    words = ["config", "set", f"model.{key}", value]
                    await self._hermes(profile, words, {"HERMES_HOME": str(scratch)})
            made = await anyio.to_thread.run_sync(_text_of, copy)
            if _parsed(profile, made) != result:
                now = setting_of(_parsed(profile, made))
                raise SwitchError(
                    f"Hermes profile '{profile}' is unchanged: `hermes config set` ended well, but on a "
                    f"copy of it the model came to {now} and not to {wanted} alone"
                )
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(_remove, scratch)
        return respelled(text, wanted, result) or made

    async def _prove(self, profile: str, wanted: ProfileSetting) -> None:
        printed = await self._hermes(profile, ["config", "get", "model", "--json"], {})
        now = model_setting(foreign.decode(printed, ""))
        if not now.holds(wanted):
            raise SwitchError(
                f"Hermes profile '{profile}' was set to {wanted}, but Hermes reads {now} (is it pinned by an "
                f"administrator's configuration?); it is put back"
            )

    async def _hermes(self, profile: str, words: list[str], environ: dict[str, str]) -> bytes:
        argv = [self._binary, *([] if profile == DEFAULT else ["-p", profile]), *words]
        try:
            ended = await run_program(
                argv,
                cwd=str(_home()),
                environment=base_environment({"NO_COLOR": "1", **environ}, (*KEPT, "HERMES_MANAGED")),
                timeout_s=TIMEOUT_S,
            )
        except ProgramError as error:
            raise SwitchError(f"Hermes profile '{profile}': {error}") from error
        if ended.exit_code != 0:
            how = f"took over {TIMEOUT_S:.0f} s" if ended.timed_out else f"ended with {ended.exit_code}"
            said = ended.stderr.decode("utf-8", "replace").strip().splitlines()
            why = f": {said[-1][:300]}" if said else ""
            raise SwitchError(f"Hermes profile '{profile}': `hermes {' '.join(words[:3])}` {how}{why}")
        return ended.stdout


def profile_switch(descriptor: Descriptor) -> HermesProfiles:
    return HermesProfiles(descriptor)


def _home() -> Path:
    return Path(os.environ.get("HERMES_HOME") or Path.home() / ".hermes")


def _content(profile: str) -> tuple[str, Path]:
    """Its file's text, and where that stands. :raises SwitchError: there is none."""
    file = _file(profile)
    return _text_of(file), file


def _file(profile: str) -> Path:
    """Where its file really stands. :raises SwitchError: there is none."""
    home = _home()
    folder = home if profile == DEFAULT else home / "profiles" / profile
    try:
        found = there(folder) and folder.is_dir()
    except OSError as error:  # a name too long, or a home that may not be looked into
        raise SwitchError(f"{folder}: cannot be looked into: {error.strerror}") from None
    if not found:
        known = [DEFAULT, *sorted(each.name for each in (home / "profiles").glob("*") if each.is_dir())]
        raise SwitchError(
            f"there is no Hermes profile '{profile}' in {home}; {instead(profile, known)}. "
            f"`hermes profile create {profile}` makes one"
        )
    file = Path(os.path.realpath(folder / "config.yaml"))
    if absent(file):
        raise SwitchError(
            f"Hermes profile '{profile}' has no model yet; `hermes -p {profile} model` sets its first one"
        )
    return file


def _text_of(file: Path) -> str:
    try:
        return manifest.read_bytes(file).decode("utf-8")
    except (AdapterError, UnicodeDecodeError) as error:
        raise SwitchError(f"{file}: cannot be read as text: {error}") from error


def _parsed(profile: str, text: str) -> dict[str, object]:
    try:
        return parse(text)
    except MalformedError as error:
        raise SwitchError(
            f"Hermes profile '{profile}': its config.yaml is malformed ({error}); Hermes would replace it by "
            f"an almost empty one, so it is left alone: repair it by hand"
        ) from error


def _copy(scratch: Path, profile: str, text: str) -> Path:
    folder = scratch if profile == DEFAULT else scratch / "profiles" / profile
    scratch.mkdir(mode=0o700)
    folder.mkdir(parents=True, exist_ok=True)
    copy = folder / "config.yaml"
    copy.write_text(text, encoding="utf-8", newline="")
    return copy


def _remove(scratch: Path) -> None:
    shutil.rmtree(scratch, ignore_errors=True)


def _replace(profile: str, file: Path, expected: str, new: str) -> None:
    """Put a whole new file in its place, durably. :raises SwitchError: it is no longer what was read."""
    if _text_of(file) != expected:
        raise SwitchError(f"Hermes profile '{profile}' was changed by another hand meanwhile; it is left so")
    try:
        mode = file.stat().st_mode & 0o777
        replace_file(file, new.encode(), file.with_name(f".{file.name}.custodes-new"), mode)
    except OSError as error:
        raise SwitchError(f"{file}: cannot be written: {error.strerror or error}") from error


def _put_back(profile: str, file: Path, ours: str, before: str) -> None:
    try:
        _replace(profile, file, ours, before)
    except SwitchError as error:
        raise SwitchError(f"{error}; it could not be put back, look at {file}", changed=True) from error
