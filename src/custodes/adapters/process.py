"""Running one native program under a keeper: bounded output, a bounded end, and proof of it.

`run_program` gives back how a program ended and never leaves anything of it behind: not after its own
end, a timeout, a cancellation, or the death of this process. Proof covers descendants; what a daemon
starts for a program (docker, systemd) is outside it.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence

import anyio
import anyio.lowlevel
import anyio.to_thread
import msgspec

from custodes.adapters.keeper import Keeper
from custodes.adapters.port import RUN_VARIABLE
from custodes.adapters.process_errors import (
    ArgumentsTooLong,
    KeeperError,
    LeftBehind,
    ProgramError,
    ProgramMissing,
    ProgramNotExecutable,
    Survivor,
    WorkingFolderError,
)
from custodes.adapters.process_lookup import find_program, not_started, refuse_unspeakable
from custodes.adapters.process_output import Output

__all__ = [
    "ArgumentsTooLong",
    "KeeperError",
    "LeftBehind",
    "ProcessResult",
    "ProgramError",
    "ProgramInput",
    "ProgramMissing",
    "ProgramNotExecutable",
    "Survivor",
    "WorkingFolderError",
    "base_environment",
    "run_program",
]

PARTING_S = 1.0
"""How long a program that was asked to end by itself (``on_end``) may take for it, in seconds."""
PROOF_S = 5.0
"""How long after the grace a keeper may take to prove the end (it bounds itself to 3), in seconds."""
NEEDED = (
    *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "TMPDIR", "TZ"),
    *("LANG", "LC_ALL", "LC_CTYPE"),
    *("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR"),
    *("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"),
    *("http_proxy", "https_proxy", "all_proxy", "no_proxy"),
    *("SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE"),
)
"""What any program needs to find its home, its words and its way to the network. No key, no token."""

OnLine = Callable[[bytes], bool | None]


class ProcessResult(msgspec.Struct, frozen=True, kw_only=True):
    """How a program ended.

    ``exit_code`` is its own, negative for a signal; None where it was ended before it began. ``survivors``
    is empty where the whole tree is proven gone. ``stdout`` and ``stderr`` hold at most ``keep_bytes`` of
    head and of tail each, and where ``truncated`` a line between them that counts what was left out.
    ``seconds`` run from its start to its end, without the proof.
    """

    exit_code: int | None
    timed_out: bool = False
    stopped: bool = False
    """Ended early because a line callback asked for it."""
    survivors: tuple[Survivor, ...] = ()
    stdout: bytes = b""
    stderr: bytes = b""
    truncated: bool = False
    seconds: float = 0.0

    @property
    def ending(self) -> str:
        """How it ended, in words: its exit status, or the signal that ended it."""
        if self.exit_code is None:
            return "ended before it began"
        if self.exit_code >= 0:
            return f"exit status {self.exit_code}"
        try:
            return f"ended by {signal.Signals(-self.exit_code).name}"
        except ValueError:
            return f"ended by signal {-self.exit_code}"


class ProgramInput:
    """A program's standard input that is written to while it runs, by the callbacks of its lines.

    What is written is kept until the program takes it, so its bound is its writer's own.
    """

    def __init__(self, data: bytes = b"", *, closed: bool = False) -> None:
        self._rest = bytearray(data)
        self._closed = closed
        self._more = anyio.Event()

    def write(self, data: bytes) -> None:
        """Returns at once. Nothing happens after `close`."""
        if not self._closed:
            self._rest += data
            self._more.set()

    def close(self) -> None:
        """Its end comes after what was written."""
        self._closed = True
        self._more.set()

    async def take(self) -> bytes:
        """The next piece; empty at the end."""
        while not self._rest and not self._closed:
            self._more = anyio.Event()
            await self._more.wait()
        piece = bytes(self._rest[:65536])
        del self._rest[:65536]
        return piece


def base_environment(extra: Mapping[str, str], keep: Iterable[str] = ()) -> dict[str, str]:
    """The environment of a program: `NEEDED` and the names in ``keep`` as they are here, then ``extra``."""
    chosen = {name: os.environ[name] for name in (*NEEDED, *keep) if name in os.environ}
    return {**chosen, **extra}


async def run_program(
    argv: Sequence[str],
    *,
    cwd: str,
    environment: Mapping[str, str],
    stdin: bytes | ProgramInput = b"",
    timeout_s: float,
    grace_s: float = 2.0,
    on_line: OnLine | None = None,
    on_error_line: OnLine | None = None,
    on_start: Callable[[int], None] | None = None,
    on_end: Callable[[], None] | None = None,
    beside: Callable[[], Awaitable[None]] | None = None,
    keep_bytes: int = 64 * 1024,
    max_line_bytes: int = 4 * 1024 * 1024,
) -> ProcessResult:
    """Run a program to its end and prove that nothing of it is left.

    It gets exactly ``environment`` (its PATH is where ``argv[0]`` is looked for), ``stdin`` and then the end
    of it (that of a `ProgramInput` comes when it is closed), no terminal, and no file of ours. After
    ``timeout_s`` seconds it is ended; and whatever it leaves behind is ended too: TERM to the whole tree,
    ``grace_s`` seconds, KILL, proof.

    ``on_start`` gets its process id, before any line. ``on_line`` and ``on_error_line`` get each line of
    stdout and stderr as it comes, without its end, cut off at ``max_line_bytes``; True ends the program now.
    They are called in the caller's loop and must return at once; what one of them raises is raised here,
    after the end.

    ``on_end`` is called once where the program must end before it has: it may still write to the program (a
    word of farewell, the end of its input), which then has `PARTING_S` to end by itself.

    ``beside`` runs while the program does: it is cancelled as soon as that has ended, or must.

    Memory is bounded by ``keep_bytes`` and ``max_line_bytes`` whatever the program prints.

    Cancelled before it began, nothing runs. Under cancellation the same end is gone through, in at most
    ``grace_s`` and some seconds, before the cancellation goes on.

    :raises ProgramMissing, ProgramNotExecutable, WorkingFolderError, ArgumentsTooLong: it did not start.
    :raises KeeperError: the keeper could not be started, or was lost; how the program ended is unknown.
    :raises LeftBehind: it was cancelled, and not all of it could be ended.
    """
    program = find_program(argv, cwd, environment)
    arguments = [program, *argv[1:]]
    refuse_unspeakable(arguments, environment)
    out = Output(keep_bytes, max_line_bytes, on_line)
    err = Output(keep_bytes, max_line_bytes, on_error_line)
    source = stdin if isinstance(stdin, ProgramInput) else ProgramInput(stdin, closed=True)
    feeds = isinstance(stdin, ProgramInput) or bool(stdin)
    problem: Exception | None = None
    # The order to run goes out in one breath, and the order to end comes after it: what was cancelled before
    # would have run for a moment.
    await anyio.lowlevel.checkpoint_if_cancelled()

    def started(pid: int) -> None:
        nonlocal problem
        if on_start is not None:
            try:
                on_start(pid)
            except Exception as raised:  # the caller's: raised below
                problem = raised
                keeper.over.set()

    async def accompany() -> None:
        nonlocal problem
        assert beside is not None  # noqa: S101 - for the type checker; started only with one
        try:
            await beside()
        except Exception as raised:  # as above
            problem = raised
            keeper.over.set()

    keeper = Keeper(environment, with_stdin=feeds, on_start=started)
    begun = ended = time.monotonic()
    pumps = [_Pump(keeper.stdout, out, keeper), _Pump(keeper.stderr, err, keeper)]
    timed_out = False
    try:
        async with anyio.create_task_group() as group:
            feeding, company = anyio.CancelScope(shield=True), anyio.CancelScope()
            group.start_soon(_within, keeper.listening, keeper.listen)
            for pump in pumps:
                group.start_soon(_within, pump.scope, pump.run)
            if feeds:
                group.start_soon(_within, feeding, _feed, keeper, source)
            if beside is not None:
                group.start_soon(_within, company, accompany)
            try:
                with anyio.move_on_after(timeout_s):
                    await keeper.go(arguments, cwd, grace_s)
                    await keeper.over.wait()
                timed_out = not keeper.over.is_set()
            finally:
                ended = time.monotonic()
                company.cancel()
                if on_end is not None and keeper.pid is not None and not keeper.ended.is_set():
                    problem = await _part(keeper, on_end) or problem
                await end_program(keeper, grace_s)
                for scope in (feeding, keeper.listening, *(pump.scope for pump in pumps)):
                    scope.cancel()
        for pump in pumps:
            pump.drain()
    except anyio.get_cancelled_exc_class():
        if keeper.survivors:
            raise LeftBehind(_left(program, keeper.survivors), keeper.survivors) from None
        raise
    finally:
        keeper.close()

    if keeper.failed is not None:
        raise not_started(program, cwd, *keeper.failed)
    if not keeper.proven:
        raise KeeperError(_lost(program, keeper, err.kept.value()), keeper.survivors)
    problem = problem or out.error or err.error
    if problem is not None:
        raise problem
    return ProcessResult(
        exit_code=keeper.exit_code,
        timed_out=timed_out,
        stopped=out.ended or err.ended,
        survivors=keeper.survivors,
        stdout=out.kept.value(),
        stderr=err.kept.value(),
        truncated=out.kept.truncated or err.kept.truncated,
        seconds=ended - begun,
    )


async def _part(keeper: Keeper, on_end: Callable[[], None]) -> Exception | None:
    """Let a program that must end do so by itself, for a bounded time. What ``on_end`` raised, if it did."""
    with anyio.CancelScope(shield=True), anyio.move_on_after(PARTING_S):
        try:
            on_end()
        except Exception as raised:  # the caller's: raised by run_program
            return raised
        await keeper.ended.wait()
    return None


async def end_program(keeper: Keeper, grace_s: float) -> None:
    """The one way a program ends early: graceful signal, bounded wait, kill, proof.

    Runs shielded. It takes at most ``grace_s`` + `PROOF_S`, and twice `PROOF_S` more where the keeper itself
    was stopped or killed.
    """
    with anyio.CancelScope(shield=True):
        if keeper.exit_code is None:
            keeper.ask_end()
        with anyio.move_on_after(grace_s + PROOF_S):
            await keeper.finished.wait()
        if not keeper.finished.is_set():
            keeper.abandon()
        await keeper.reap(PROOF_S)
        if not keeper.proven:
            mark = (RUN_VARIABLE, keeper.mark) if keeper.mark else None
            keeper.survivors = await anyio.to_thread.run_sync(_end_orphans, keeper.pid, mark)


def _end_orphans(session: int | None, mark: tuple[str, str] | None) -> tuple[Survivor, ...]:
    from custodes.adapters.orphans import end_orphans  # psutil: loaded only when it is needed

    return end_orphans(session, mark, PROOF_S)


class _Pump:
    """Moves one of the program's streams into its `Output`, and ends the program where that asks for it."""

    def __init__(self, fd: int, output: Output, keeper: Keeper) -> None:
        self.fd = fd
        self.output = output
        self.keeper = keeper
        self.scope = anyio.CancelScope(shield=True)
        self.at_end = False

    def read(self) -> bool:
        """Take in what is there. False where nothing is there now, or ever again."""
        try:
            data = os.read(self.fd, 65536)
        except BlockingIOError:
            return False
        if not data:
            self.at_end = True
            self.output.end()
            return False
        self.output.add(data)
        return True

    async def run(self) -> None:
        await self.keeper.begun.wait()  # its lines may be here before its keeper has told that it runs
        while not self.at_end:
            if self.read():
                await anyio.lowlevel.checkpoint()
            elif not self.at_end:
                await anyio.wait_readable(self.fd)
            if self.output.ended or self.output.error is not None:
                self.keeper.over.set()

    def drain(self) -> None:
        """After the proof nobody writes any more: what is in the pipe is all there will ever be. Bounded
        all the same, for a pipe that was handed to a stranger."""
        for _ in range(64):
            if self.at_end or not self.read():
                break
        if not self.at_end:
            self.output.end()


async def _within(scope: anyio.CancelScope, task: Callable[..., Awaitable[None]], *args: object) -> None:
    """Run a task in a scope of its own. In a shielded one it outlives the cancellation of its caller, so
    that the end of the program is still heard."""
    with scope:
        await task(*args)


async def _feed(keeper: Keeper, source: ProgramInput) -> None:
    """Write the program's input and close it. A program that does not read it is none the worse."""
    assert keeper.stdin is not None  # noqa: S101 - for the type checker; started only with input
    try:
        while piece := await source.take():
            rest = memoryview(piece)
            while rest:
                try:
                    rest = rest[os.write(keeper.stdin, rest) :]
                    await anyio.lowlevel.checkpoint()
                except BlockingIOError:
                    await anyio.wait_writable(keeper.stdin)
    except OSError:
        pass  # it closed its input, or is gone
    finally:
        keeper.close_stdin()


def _left(program: str, survivors: tuple[Survivor, ...]) -> str:
    return f"'{program}' was ended, but left behind: {', '.join(map(str, survivors))}"


def _lost(program: str, keeper: Keeper, stderr: bytes) -> str:
    left = f"; left behind: {', '.join(map(str, keeper.survivors))}" if keeper.survivors else ""
    if keeper.pid is None:
        said = stderr.decode(errors="replace").strip().rpartition("\n")[2]
        return f"the keeper of '{program}' ended before it ran anything ({said or 'it said nothing'}){left}"
    return f"the keeper of '{program}' was lost (killed?), so how it ended is unknown{left}"
