"""Where a case is set: the request that will be dispatched, and what stands in for the runtime."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import Any, Literal

import msgspec

from custodes.adapters.descriptor import Descriptor
from custodes.adapters.port import DispatchRequest

ASKED = "--- asked"
ANSWER = '{"summary":"done"}'
"""What the runtime answers in the case ``success``: JSON, so that it is right with and without a schema."""
_NOISE = "noise " * 170
_RECORD = """#!/bin/sh
{tree}{{
  printf '%s\\n' '{asked}' "$0" "$@" "CUSTODES_RUN=$CUSTODES_RUN" "TRACEPARENT=$TRACEPARENT"
}} >> {heard}
{stdin}printf 'trace {secret}\\n' >&2
"""

Input = Literal["all", "line", "own"]


class Stage(msgspec.Struct, frozen=True, kw_only=True):
    """One dispatch about to be made. ``parity.py`` has ``arrange(case, stage)``, which gives back the stage
    with the runtime (or whatever stands in for it) in place: the same Stage, a changed one, or a context
    manager of one.

    ``folder`` is empty and the stage's own; ``secret`` must come back in no field; ``noise`` are the bytes
    printed before and after what the script prints.
    """

    descriptor: Descriptor
    request: DispatchRequest
    folder: Path
    secret: str
    answer: str = ANSWER
    noise: tuple[int, int] = (0, 0)
    tree: bool = False
    """The stand-in first starts processes that outlive it, one of them in a session of its own."""

    def asking(self, **fields: Any) -> Stage:
        """With these fields of the request."""
        return msgspec.structs.replace(self, request=msgspec.structs.replace(self.request, **fields))

    def described(self, **fields: Any) -> Stage:
        """With these fields of the descriptor."""
        return msgspec.structs.replace(self, descriptor=msgspec.structs.replace(self.descriptor, **fields))

    def program(self, name: str, script: str, *, stdin: Input = "all", noise_to: str = "&1") -> Stage:
        """With this program in place of ``name`` on PATH and the folder for a home.

        :param script: a shell script without its first line, or any program with one (``#!``).
        :param stdin: ``all`` of its input is read first, and given to it again; of an input that stays open,
            its first ``line`` is, and the script has the rest; on its ``own``, it has its input as it comes,
            and notes in `heard_file` what it hears.
        :param noise_to: ``&2`` where the runtime's standard output is its answer and nothing else.
        """
        place = self.script(name, script, stdin=stdin, noise_to=noise_to).parent
        path = f"{place}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
        own = {"PATH": path, "HOME": str(self.folder)}
        return self.asking(environment={**self.request.environment, **own})

    def script(self, name: str, script: str, *, stdin: Input = "all", noise_to: str = "&1") -> Path:
        """The program by itself, for an adapter that is told its place. What it was called with, its input
        and the run's variables are `heard`."""
        place = self.folder / "bin"
        place.mkdir(exist_ok=True)
        body = self.folder / f"{name}.body"
        body.write_text(script if script.startswith("#!") else f"#!/bin/sh\n{script}\n")
        body.chmod(0o755)
        prompt, run = self.folder / "stdin", f'{shlex.quote(str(body))} "$@"'
        if stdin == "all":
            run += f" < {shlex.quote(str(prompt))}"
        before, after = (_noise(size, noise_to) for size in self.noise)
        last = f"{before}{run}\ncode=$?\n{after}exit $code\n" if after else f"{before}exec {run}\n"
        heard = shlex.quote(str(self.heard_file))
        kept = shlex.quote(str(prompt))
        read = {
            "all": f"cat > {kept}; cat {kept} >> {heard}\n",
            "line": f"IFS= read -r line; printf '%s\\n' \"$line\" >> {heard}\n",
            "own": "",
        }
        record = _RECORD.format(
            tree="(setsid sleep 300 &) 2>/dev/null; sleep 300 &\n" if self.tree else "",
            asked=ASKED,
            heard=heard,
            stdin=read[stdin],
            secret=self.secret,
        )
        program = place / name
        program.write_text(record + last)
        program.chmod(0o755)
        return program

    @property
    def heard_file(self) -> Path:
        """Where what was heard is kept, for a stand-in that notes it by itself."""
        return self.folder / "heard"

    def hears(self, said: str) -> None:
        """Note what the runtime was asked, where it is no `program`: its model, its prompt, all of it."""
        with self.heard_file.open("a", encoding="utf-8") as file:
            file.write(f"{ASKED}\n{said}\n")

    @property
    def heard(self) -> str:
        """All that the runtime was told so far."""
        try:
            return self.heard_file.read_text(encoding="utf-8", errors="replace")
        except OSError:
            return ""

    def asks(self, ask: object, allowed: str) -> str:
        """A script that asks leave for `wanted` by this line of JSON, reads the answer as a line of input,
        and runs `wanted` where ``allowed`` stands in it. It goes on with what follows."""
        runs = f"case $said in *{shlex.quote(allowed)}*)\n{self.wanted}\n;; esac\n"
        return f"{prints(ask, code=None)}IFS= read -r said\n{runs}"

    @property
    def wanted(self) -> str:
        """The command that a runtime asks leave for: it leaves `made`, and is longer than an ask may be."""
        return f"touch {shlex.quote(str(self.made))} # {'x' * 5_000}"

    @property
    def made(self) -> Path:
        """What is there once `wanted` has run."""
        return self.folder / "made"

    @property
    def asked(self) -> int:
        """How often the runtime was asked."""
        return self.heard.splitlines().count(ASKED)


def prints(*lines: object, error: str = "", code: int | None = 0) -> str:
    """A script that prints these lines to standard output (an object as a line of JSON), ``error`` to
    standard error, and ends with ``code`` (None: goes on with what follows)."""
    said = "\n".join(line if isinstance(line, str) else msgspec.json.encode(line).decode() for line in lines)
    complains = f"cat >&2 <<'EOF'\n{error}\nEOF\n" if error else ""
    return f"cat <<'EOF'\n{said}\nEOF\n{complains}{'' if code is None else f'exit {code}'}\n"


SILENCE = "exec sleep 300"
"""A script that never says a word."""


def _noise(size: int, to: str) -> str:
    return f"{{ yes '{_NOISE}' | head -c {size}; echo; }} >{to}\n" if size else ""
