"""The keeper: a tiny launcher that starts one program and answers for every process that comes of it.

Started isolated by ``keeper.py`` (``python -I -S``), in a session of its own, as
``main(control, host, host_pid)``. Standard library only, and little of it: each running program costs one
of these. It never trusts the program's cooperation, nor its host's.

*Why a process of its own.* Killing a process group misses every tool that a runtime put into a session of
its own. On Linux the keeper is a child subreaper, so a process that lost its parent falls back to it; and
a keeper without children has no descendants. ``waitpid`` answering ECHILD is therefore the kernel's own
proof that nothing is left, which no walk of a process table gives.

*Why only direct children are killed.* The kernel keeps the number of a child until its parent has reaped
it, so a number that the keeper itself has not reaped can never name a stranger. Killing the top of a tree
hands its next level to the keeper, and so on down; whole groups die in one call, which no fork outruns.

*Why a pipe and a pidfd.* The control socket closes when its host dies, unless the host had forked: then
the fork holds it open. The pidfd (the parent's number where there is none) sees that death too. The
parent-death signal is of no use: it follows the thread that spawned us.

Protocol, on the control socket. Host to keeper: ``<length>\\n`` and the program, its fields joined by NUL
(grace in seconds, working folder, argument count, arguments, environment entries): that is the *go*, and
nothing runs before it. Then ``T`` ends the tree gracefully; closing, or shutting down the sending side,
ends it at once.
Keeper to host, a line each: ``B pid`` the process is there; ``P`` it runs the program; ``F stage errno`` it
could not; ``X code`` the program's exit, negative for a signal; ``S pid reason name`` a process that could
not be ended; ``D`` done, and with no ``S`` before it nothing is left. A broken socket never stops the
killing.
"""

# pathlib would double the start:
# ruff: noqa: PTH110, PTH123, PTH208

from __future__ import annotations

import errno
import os
import select
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal

    from custodes.adapters._process_table import Table
else:
    # The C half of `signal`: the enums around it, and contextlib, would cost 6 ms and 0.8 MB of each start.
    import _signal as signal

SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER of <linux/prctl.h>
WAIT_ALL = os.WNOHANG | (0x40000000 if sys.platform == "linux" else 0)  # __WALL: clones without SIGCHLD too
PROOF_S = 3.0
"""After the kill, how long a process may take to vanish before it is named as left over, in seconds.
Long enough for the tear-down of gigabytes of memory; what lasts longer sits in the kernel."""
HOST_S = 0.2
"""Where there is no pidfd: how often the keeper looks whether its parent is still the host."""
FORBIDDEN_S = 0.25
"""After the kill, when it is no use waiting longer for processes that we may not signal."""
NAMED = 64
"""At most this many left-overs are named: a host that stopped reading must not fill the socket."""


class Quiet:
    """Passes over an OSError: what was asked of has just gone, or may not be asked. Others propagate."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, _kind: object, problem: object, _trace: object) -> bool:
        return isinstance(problem, OSError)


def become_subreaper() -> bool:
    """Let orphaned descendants fall back to this process. False where the system has no such thing."""
    if sys.platform != "linux":
        return False
    try:
        import ctypes

        return bool(ctypes.CDLL(None).prctl(SUBREAPER, 1, 0, 0, 0) == 0)
    except (ImportError, OSError, AttributeError):
        return False


def children_of(pid: int) -> list[int]:
    """The children of every thread of a process, by /proc; empty when it is gone."""
    found: list[int] = []
    with Quiet():
        for task in os.listdir(f"/proc/{pid}/task"):
            with Quiet(), open(f"/proc/{pid}/task/{task}/children", "rb") as file:
                found += map(int, file.read().split())
    return found


def name_of(pid: int) -> str:
    try:
        with open(f"/proc/{pid}/comm", "rb") as file:
            return file.read().decode(errors="replace").strip()
    except OSError:
        return "?"


class Reaper:
    """The tree below a subreaper: whatever there is of it is, or hangs under, a child of ours."""

    look_s: float | None = None

    def look(self) -> None:
        """Nothing to watch while the program runs: what loses its parent comes to us."""

    def gone(self) -> bool:
        """Whether the kernel knows no child of ours, dead or alive."""
        assert sys.platform == "linux"  # noqa: S101 - for the type checker
        try:
            os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT | WAIT_ALL)
        except ChildProcessError:
            return True
        return False

    def everything(self) -> list[int]:
        """The descendants, parents first. Read within milliseconds of being signalled: Linux hands out
        process numbers in turn, so none of them comes back in that time."""
        found = children_of(os.getpid())
        for pid in found:
            found += children_of(pid)
        return found

    def terminate(self) -> None:
        for pid in self.everything():
            with Quiet():
                os.kill(pid, signal.SIGTERM)
                os.kill(pid, signal.SIGCONT)  # a stopped process could not act on it

    def kill(self, thorough: bool) -> None:
        """Kill the children and their groups; ``thorough`` walks below children that do not die."""
        own = os.getpgrp()
        groups: set[int] = set()
        for pid in self.everything() if thorough else children_of(os.getpid()):
            with Quiet():
                group = os.getpgid(pid)
                if group not in (own, *groups):
                    groups.add(group)
                    os.killpg(group, signal.SIGKILL)
            with Quiet():
                os.kill(pid, signal.SIGKILL)

    def remains(self) -> list[tuple[int, str]]:
        return [(pid, name_of(pid)) for pid in self.everything()]


class Keeper:
    """One program, from *go* to the proof."""

    def __init__(self, control: int, host: int, host_pid: int) -> None:
        self.control = control
        self.host = host  # pidfd, or -1 where the system has none
        self.host_pid = host_pid
        self.buffer = b""
        self.pid = 0
        self.exited = False
        self.grace_s = 0.0
        self.ordered = ""  # "T": end gracefully; "K": at once
        # Handlers before anything else: a host may have left SIGCHLD ignored, and then no status survives.
        self.alarm, wake = os.pipe()
        for fd in (self.alarm, wake):
            os.set_blocking(fd, False)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, self.on_signal)
        signal.pthread_sigmask(signal.SIG_SETMASK, [])
        for fd in (control, host):
            if fd >= 0:
                os.set_inheritable(fd, False)  # none of ours reaches the program
        os.set_blocking(control, False)
        if become_subreaper() and os.path.exists(f"/proc/self/task/{os.getpid()}/children"):
            self.tree: Reaper | Table = Reaper()
        else:
            if not TYPE_CHECKING:
                from _process_table import Table
            self.tree = Table()
        self.poller = select.poll()
        for fd in (control, host, self.alarm):
            if fd >= 0:
                self.poller.register(fd, select.POLLIN)

    def on_signal(self, number: int, _frame: object) -> None:
        if number != signal.SIGCHLD:
            self.ordered = self.ordered or "T"  # whoever ends the keeper means the whole tree

    def say(self, line: str) -> None:
        with Quiet():
            os.write(self.control, line.encode(errors="replace") + b"\n")

    def wait(self, seconds: float | None) -> None:
        """Sleep until something happens, then take in every order and every death."""
        if self.host < 0:  # no pidfd: nobody wakes us when the host dies
            seconds = HOST_S if seconds is None else min(seconds, HOST_S)
        for fd, _ in self.poller.poll(None if seconds is None else max(0, seconds) * 1000):
            if fd == self.alarm:
                with Quiet():
                    while os.read(fd, 4096):
                        pass
            elif fd == self.host:
                self.lose_host(fd)
            else:
                self.read_control()
        if self.host < 0 and os.getppid() != self.host_pid:
            self.ordered = "K"
        self.reap()

    def lose_host(self, fd: int) -> None:
        self.ordered = "K"
        self.poller.unregister(fd)

    def read_control(self) -> None:
        try:
            data = os.read(self.control, 65536)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self.lose_host(self.control)
        elif self.pid:
            self.ordered = self.ordered or "T"
        else:
            self.buffer += data

    def reap(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, WAIT_ALL)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if pid == self.pid:
                self.exited = True
                self.say(f"X {os.waitstatus_to_exitcode(status)}")

    def program(self) -> list[bytes] | None:
        """The fields of *go*, once they are complete."""
        head, found, rest = self.buffer.partition(b"\n")
        if not found or len(rest) < int(head):
            return None
        if rest[int(head) :]:  # the order to end came right behind
            self.ordered = self.ordered or "T"
        self.buffer = b""
        return rest[: int(head)].split(b"\0")

    def start(self, fields: list[bytes]) -> bool:
        self.grace_s = float(fields[0])
        folder, count = fields[1], int(fields[2])
        arguments, entries = fields[3 : 3 + count], fields[3 + count :]
        failed, report = os.pipe()
        try:
            self.pid = os.fork()
        except OSError as problem:
            self.say(f"F process {problem.errno}")
            return False
        if self.pid == 0:
            launch(
                self.control,
                report,
                folder,
                arguments,
                dict(entry.split(b"=", 1) for entry in entries if entry),
            )
        os.close(report)
        with open(failed, "rb") as file:
            reason = file.read()
        nowhere = os.open(os.devnull, os.O_RDWR)
        for fd in (0, 1, 2):  # the program's own ends: only it and its children may hold them open
            os.dup2(nowhere, fd)
        os.close(nowhere)
        self.say(f"F {reason.decode()}" if reason else "P")
        return not reason

    def run(self) -> None:
        while (fields := self.program()) is None:
            if self.ordered:
                break
            self.wait(None)
        if fields and not self.ordered and self.start(fields):
            while not self.exited and not self.ordered:
                self.wait(self.tree.look_s)
                self.tree.look()
        self.end()

    def end(self) -> None:
        """End the whole tree: ask, wait the grace, kill, prove. Bounded by the grace and ``PROOF_S``."""
        if self.ordered != "K" and not self.tree.gone():
            self.tree.terminate()
            deadline = time.monotonic() + self.grace_s
            while self.ordered != "K" and not self.tree.gone() and time.monotonic() < deadline:
                left = deadline - time.monotonic()
                self.wait(left if self.tree.look_s is None else min(left, 0.05))
        begun = time.monotonic()
        pause = 0.002
        while not self.tree.gone() and time.monotonic() < begun + PROOF_S:
            self.tree.kill(thorough=time.monotonic() > begun + 0.05)
            self.wait(pause)
            pause = min(pause * 1.5, 0.05)
            if time.monotonic() > begun + FORBIDDEN_S and self.only_forbidden():
                break
        if not self.tree.gone():
            for pid, name in self.tree.remains()[:NAMED]:
                self.say(f"S {pid} {verdict(pid)} {name}")
        self.say("D")

    def only_forbidden(self) -> bool:
        left = self.tree.remains()
        return bool(left) and all(verdict(pid) == "forbidden" for pid, _ in left)


def verdict(pid: int) -> str:
    """Why a process outlived its kill: ``forbidden`` (another user's), or ``stuck`` (in the kernel)."""
    try:
        os.kill(pid, signal.SIGKILL)
    except OSError as problem:
        return "forbidden" if problem.errno == errno.EPERM else "stuck"
    return "stuck"


def launch(
    control: int, report: int, folder: bytes, arguments: list[bytes], environment: dict[bytes, bytes]
) -> None:
    """In the child: its own session, hence no terminal; default signals; then the program. Never returns.

    It tells its own number first: a program may kill its keeper before that could say a word."""
    stage = "session"
    try:
        os.setsid()
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGPIPE, signal.SIGXFSZ):  # ignored by Python, and that would be inherited
            signal.signal(number, signal.SIG_DFL)
        with Quiet():
            os.write(control, b"B %d\n" % os.getpid())
        stage = "folder"
        os.chdir(folder)
        stage = "program"
        os.execve(arguments[0], arguments, environment)  # noqa: S606 - what a keeper is for
    except OSError as problem:
        os.write(report, f"{stage} {problem.errno}".encode())
    finally:
        os._exit(127)


def main(control: int, host: int, host_pid: int) -> None:
    """Keep one program. Whatever goes wrong in here, its tree is ended first."""
    keeper = Keeper(control, host, host_pid)
    try:
        keeper.run()
    except BaseException:
        keeper.ordered = "K"
        keeper.end()
    finally:
        os._exit(0)
