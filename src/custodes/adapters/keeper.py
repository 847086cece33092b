"""The host's end of a keeper: start it, say go, hear what it says, order the end.

``_keeper.py`` tells why there is a keeper at all, and the protocol.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import weakref
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import anyio

from custodes.adapters.port import RUN_VARIABLE
from custodes.adapters.process_errors import KeeperError, Survivor

PYTHON_VARIABLE = "CUSTODES_PYTHON"
BOOTSTRAP = "import sys; sys.path.append(sys.argv[1]); import _keeper; _keeper.main(*map(int, sys.argv[2:]))"
"""Imported rather than run as a script: so its compiled form is cached (7 ms of each start)."""
KEEPER_VARIABLES = ("PATH", "HOME", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "DYLD_FALLBACK_LIBRARY_PATH")


def python() -> str:
    """The interpreter that runs keepers: ``CUSTODES_PYTHON`` where it is set, else this one.

    :raises KeeperError: this process is no plain Python (a frozen or embedding program) and the variable
        is not set, or what it names is no program.
    """
    named = os.environ.get(PYTHON_VARIABLE)
    if named:
        found = shutil.which(named)
        if found is None:
            raise KeeperError(f"{PYTHON_VARIABLE} names '{named}', which is no program that can be run")
        return str(Path(found).absolute())
    own = sys.executable or ""
    if getattr(sys, "frozen", False) or "py" not in Path(own).name.lower():
        raise KeeperError(
            f"programs run under a small Python process, and this process ('{own or 'unknown'}') is no plain "
            f"Python: set {PYTHON_VARIABLE} to a Python 3.11 or newer, for example {PYTHON_VARIABLE}=python3"
        )
    return own


_open: weakref.WeakSet[Keeper] = weakref.WeakSet()


def _close_in_fork() -> None:
    """A fork of the host would hold our pipes open: a program would wait for the end of its input."""
    for keeper in tuple(_open):
        keeper.close()


os.register_at_fork(after_in_child=_close_in_fork)


class Keeper:
    """One started keeper. `close` (or the death of this process) ends whatever it runs."""

    def __init__(
        self, environment: Mapping[str, str], *, with_stdin: bool, on_start: Callable[[int], None]
    ) -> None:
        """Start it: about a millisecond here, 25 until it is ready. Nothing of the program runs yet.

        ``on_start`` gets the program's process id once it runs, and must not raise.

        :raises KeeperError: it cannot be started.
        """
        self.environment = environment
        self.on_start = on_start
        self.pid: int | None = None
        self.failed: tuple[str, int] | None = None  # stage and errno of a program that did not start
        self.exit_code: int | None = None
        self.survivors: tuple[Survivor, ...] = ()
        self.proven = False
        self.listening = anyio.CancelScope(shield=True)
        self.begun = anyio.Event()  # the program runs, or never will be heard of
        self.over = anyio.Event()  # the program has ended, is to end, or never will be heard of
        self.ended = anyio.Event()  # the program has ended, or never will be heard of
        self.finished = anyio.Event()  # the keeper has given its proof, or is lost
        self._went = False
        self._fds: set[int] = set()
        self.stdin: int | None
        executable = python()
        theirs: list[int] = []
        try:
            self.stdout, out = self._pipe(theirs, reading=True)
            self.stderr, err = self._pipe(theirs, reading=True)
            self.stdin, source = (
                self._pipe(theirs, reading=False) if with_stdin else (None, subprocess.DEVNULL)
            )
            self._control, far_end = socket.socketpair()
            self._control.setblocking(False)
            control = far_end.detach()
            theirs.append(control)
            host = _own_pidfd()
            if host >= 0:
                theirs.append(host)
            folder = str(Path(__file__).parent.absolute())
            self._process = subprocess.Popen(
                [executable, "-I", "-S", "-c", BOOTSTRAP, folder, str(control), str(host), str(os.getpid())],
                stdin=source,
                stdout=out,
                stderr=err,
                cwd="/",
                env=_keeper_environment(environment),
                pass_fds=[control] if host < 0 else [control, host],
                start_new_session=True,
            )
        except OSError as problem:
            self._close_fds()
            raise KeeperError(f"the keeper could not be started with '{executable}': {problem}") from problem
        finally:
            for fd in theirs:
                os.close(fd)
        _open.add(self)

    def _pipe(self, theirs: list[int], *, reading: bool) -> tuple[int, int]:
        ours, other = os.pipe() if reading else reversed(os.pipe())
        os.set_blocking(ours, False)
        self._fds.add(ours)
        theirs.append(other)
        return ours, other

    def _close_fds(self) -> None:
        while self._fds:
            os.close(self._fds.pop())
        if hasattr(self, "_control"):
            self._control.close()

    def close_stdin(self) -> None:
        """Give the program the end of its input."""
        if self.stdin in self._fds:
            self._fds.discard(self.stdin)
            os.close(self.stdin)

    async def go(self, argv: Sequence[str], cwd: str, grace_s: float) -> None:
        """Let it run ``argv`` (``argv[0]`` a full path). ``grace_s``: from the order to end, or from the
        program's own end, until what is left of its tree is killed."""
        entries = [f"{name}={value}" for name, value in self.environment.items()]
        fields = [repr(float(grace_s)), cwd, str(len(argv)), *argv, *entries]
        body = b"\0".join(map(os.fsencode, fields))
        message = memoryview(b"%d\n" % len(body) + body)
        while message:
            try:
                message = message[self._control.send(message) :]
            except BlockingIOError:
                await anyio.wait_writable(self._control)
            except OSError:
                return  # a dead keeper: `listen` tells
        self._went = True

    async def listen(self) -> None:
        """Take in what the keeper says until it closes its end."""
        pending = b""
        while True:
            try:
                data = self._control.recv(65536)
            except BlockingIOError:
                await anyio.wait_readable(self._control)
                continue
            except OSError:
                data = b""
            if not data:
                break
            *lines, pending = (pending + data).split(b"\n")
            for line in lines:
                self._hear(line.decode(errors="replace"))
        self._ended()
        self.finished.set()

    def _ended(self) -> None:
        self.begun.set()
        self.ended.set()
        self.over.set()

    def _hear(self, line: str) -> None:
        kind, _, rest = line.partition(" ")
        match kind:
            case "B":
                self.pid = int(rest)
            case "P":
                if self.pid is not None:
                    self.on_start(self.pid)
                self.begun.set()
            case "F":
                stage, number = rest.split()
                self.failed = (stage, int(number))
                self._ended()
            case "X":
                self.exit_code = int(rest)
                self._ended()
            case "S":
                pid, reason, name = rest.split(" ", 2)
                self.survivors += (Survivor(int(pid), name, reason),)
            case "D":
                self.proven = True
                self._ended()
                self.finished.set()

    def ask_end(self) -> None:
        """Order the graceful end: TERM, the grace, KILL, proof. A keeper that has not got the whole of *go*
        just ends. One that its program had stopped goes on first."""
        with contextlib.suppress(OSError):
            if self._went:
                self._control.send(b"T")
            else:
                self._control.shutdown(socket.SHUT_WR)
        self._process.send_signal(signal.SIGCONT)

    def abandon(self) -> None:
        """Kill a keeper that does not answer."""
        self._process.kill()

    async def reap(self, bound_s: float) -> None:
        """Collect the keeper's own process, which ends right after it has closed its end."""
        pause = 0.0005
        with anyio.move_on_after(bound_s):
            while self._process.poll() is None:
                await anyio.sleep(pause)
                pause = min(pause * 2, 0.05)

    def close(self) -> None:
        """Give everything back. A keeper that still runs ends its tree now, by itself."""
        _open.discard(self)
        self._close_fds()
        self._process.poll()

    @property
    def mark(self) -> str | None:
        """The run id that every descendant carries in its environment, where it is this program's alone."""
        mark = self.environment.get(RUN_VARIABLE)
        return mark if mark and mark != os.environ.get(RUN_VARIABLE) else None


def _own_pidfd() -> int:
    """A pidfd of this process, for the keeper to watch; -1 where the system has none. Opened by the host
    itself: a keeper that looked us up by number might find a stranger."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError):
            return os.pidfd_open(os.getpid())
    return -1


def _keeper_environment(program: Mapping[str, str]) -> dict[str, str]:
    """What the keeper itself needs: to find its libraries, and the run's mark, so that a keeper which has
    not started its program yet is found by it too. None of the program's secrets."""
    chosen = {name: os.environ[name] for name in KEEPER_VARIABLES if name in os.environ}
    if RUN_VARIABLE in program:
        chosen[RUN_VARIABLE] = program[RUN_VARIABLE]
    return chosen
