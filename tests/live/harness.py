"""Drives an installed runtime through its real adapter against the loopback provider.

A runtime joins by a module `live/targets/<adapter>.py` with a ``TARGET``: how to aim it at a provider, and
where its truth is less than the matrix's. `test_matrix.py` then drives it through every case of `MATRIX`:

    driven = await drive(TARGETS["claude"], "limit", tmp_path)
    driven.result.failure, driven.progress, driven.seconds, driven.requests, driven.left

Runtimes come from `scripts/runtimes install NAME`, else from PATH; what is not there is skipped. With
``CUSTODES_RECORD=FOLDER`` what each program printed is written to FOLDER/<adapter>/<case>.{stdout,stderr}.
"""

from __future__ import annotations

import importlib
import os
import shutil
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path

import anyio
import psutil

from custodes.adapters import Registry
from custodes.adapters.port import Category, Certainty, DispatchRequest, DispatchResult, Progress
from live.recording import Recording
from support.loopback.provider import Provider, loopback, refused
from support.processes import RUN, marked, new_mark

ROOT = Path(__file__).resolve().parent.parent.parent
INSTALLED = ROOT / ".runtimes" / "bin"
PROMPT = "Say LOOPBACK-OK and nothing else."
DEADLINE_S = 90.0
"""Seconds a case may take that is not about time."""
HANG_S = 8.0
"""The supervisor's deadline where the provider keeps silent, in seconds."""
TOLD_S = 5.0
"""How long after the start of a tool its event may come, in seconds."""
TOOL = "setsid sleep 300 & sleep 300"
"""What runs when a tool's run is cancelled: one process in a session of its own, one without."""


@dataclass(frozen=True)
class Expected:
    """What a case must come to. ``wait`` is a range of whole seconds; None: no wait may be stated."""

    category: Category | None
    retryable: bool = False
    outcome: Certainty = "known_failed"
    wait: tuple[int, int] | None = None


TRIED_AGAIN = frozenset({"limit", "quota", "overload", "server_error", "refused"})
"""The cases in which a runtime that is not bounded tries again and again."""
MATRIX: dict[str, Expected] = {
    "success": Expected(None),
    "limit": Expected("capacity", retryable=True, wait=(7, 7)),
    "usage_limit": Expected("capacity", retryable=True, wait=(7_100, 7_260)),
    "quota": Expected("unavailable"),
    "billing": Expected("unavailable"),
    "auth": Expected("auth"),
    "overload": Expected("provider", retryable=True, outcome="unknown"),
    "server_error": Expected("provider", retryable=True, outcome="unknown"),
    "hang": Expected("timeout", outcome="unknown"),
    "refused": Expected("unavailable", retryable=True),
    "cut": Expected("provider", outcome="unknown"),
    "unknown_model": Expected("invalid"),
    "context": Expected("invalid"),
}


@dataclass(frozen=True)
class Target:
    """One runtime. ``aim`` writes its configuration below a private home and returns the variables that
    send it to the provider; ``differs`` says where the runtime tells less, with the reason in its module."""

    adapter: str
    binary: str
    model: str
    aim: Callable[[Provider, Path], dict[str, str]]
    effort: str | None = None
    differs: Mapping[str, Expected] = field(default_factory=dict)
    reads_with_shell: bool = False
    """Whether read-only work has a shell, so that something must keep it from writing."""
    resumes_next_minute: bool = False
    """It loses a thread that is gone on with in the very minute it began (its file is named by that)."""
    sits_out: str = ""
    """Why it tries again here for longer than a case may take ("" where it does not)."""
    cautious: Callable[[Path], None] | None = None
    """Makes its user, whose home this is, one who is asked before a command runs. None: this runtime asks
    nobody."""
    tools: str = ""
    """Why a tool cannot be run here ("" where it can)."""
    name: str = ""
    """What tells it from another of the same adapter."""

    @property
    def key(self) -> str:
        return self.name or self.adapter

    @property
    def program(self) -> str | None:
        return shutil.which(self.binary, path=f"{INSTALLED}{os.pathsep}{os.environ.get('PATH', '')}")

    def expected(self, case: str) -> Expected:
        return self.differs.get(case, MATRIX[case])


@dataclass
class Driven:
    """What a drive came to. ``result`` is None where it was cancelled; ``left`` the processes that were still
    there after it; ``requests`` the completions that were asked for; ``seconds`` its wall time."""

    target: Target
    case: str
    result: DispatchResult | None
    progress: list[Progress]
    seconds: float
    provider: Provider
    work: Path
    left: list[psutil.Process]

    @property
    def requests(self) -> int:
        return len(self.provider.journal)

    def kinds(self) -> list[str]:
        return [each.kind for each in self.progress]


def targets() -> dict[str, Target]:
    """Every target, by its key."""
    names = sorted(path.stem for path in (Path(__file__).parent / "targets").glob("[a-z]*.py"))
    modules = [importlib.import_module(f"live.targets.{name}") for name in names]
    found = [each for module in modules for each in getattr(module, "TARGETS", None) or (module.TARGET,)]
    return {target.key: target for target in found}


class Drive:
    """A drive in the making: its provider, its private home, its working folder."""

    def __init__(
        self,
        target: Target,
        case: str,
        folder: Path,
        *,
        traced: str = "",
        cautious: bool = False,
        **asked: object,
    ) -> None:
        self.target = target
        self.traced = traced
        self.cautious = cautious
        self.case = case
        self.asked = asked
        self.home = folder / "home"
        self.work = folder / "work"
        for each in (self.home, self.work, folder / "tmp"):
            each.mkdir(exist_ok=True)  # a second drive finds the first one's home, as a resumed thread must
        (self.work / "README.md").write_text("# A project\n")
        self.temporary = folder / "tmp"
        self.mark = new_mark()
        self.progress: list[Progress] = []
        self.recording = Recording(folder, target.adapter, case)

    def provider(self, command: str) -> AbstractContextManager[Provider]:
        if self.case == "refused":
            return refused()
        return loopback(self.case, command=command)

    async def dispatch(self, provider: Provider) -> DispatchResult:
        """The adapter's own dispatch. Whatever it is refused with comes back as its result."""
        target = self.target
        runtime = Registry.discover(self.work).runtime(target.adapter)
        places = [str(INSTALLED), os.environ["PATH"]]
        if recorder := self.recording.wrap(target.binary, target.program or target.binary):
            places.insert(0, str(recorder))
        environment = {
            "PATH": os.pathsep.join(places),
            "HOME": str(self.home),
            "TMPDIR": str(self.temporary),
            "TZ": "UTC",
            "LANG": "C.UTF-8",
            RUN: self.mark,
            **{name: str(self.home / where) for name, where in _XDG.items()},
            **(self._collector(provider) if self.traced else {}),
            **target.aim(provider, self.home),
        }
        if self.cautious and target.cautious is not None:
            target.cautious(self.home)
        wanted: dict[str, object] = {
            "run_id": "live",
            "role": "reviewer",
            "prompt": PROMPT,
            "mutable": False,
            "cwd": str(self.work),
            "timeout_s": HANG_S if self.case in ("hang", "stall") else DEADLINE_S,
            "model": target.model,
            "effort": target.effort,
            "environment": environment,
            **self.asked,
        }
        result = await runtime.dispatch(DispatchRequest(**wanted), self.progress.append)  # type: ignore[arg-type]  # a mapping of its own fields
        self.recording.keep({str(self.home): "/home/agent", str(self.work): "/work", provider.url: _URL})
        return result

    def _collector(self, provider: Provider) -> dict[str, str]:
        """The provider takes the spans too (and answers 404, as a collector that is out of order)."""
        endpoint = {
            "OTEL_EXPORTER_OTLP_ENDPOINT": provider.url,
            "OTEL_EXPORTER_OTLP_PROTOCOL": "http/json",
        }
        return {"TRACEPARENT": self.traced, **endpoint}

    def kinds(self) -> list[str]:
        return [each.kind for each in self.progress]

    def tool_runs(self) -> bool:
        """Whether the tool's own processes are there."""
        return sum(_name(process.pid) == "sleep" for process in marked(self.mark)) >= 2


async def drive(
    target: Target,
    case: str,
    folder: Path,
    *,
    tool: str = "",
    traced: str = "",
    cautious: bool = False,
    **asked: object,
) -> Driven:
    """Run a case to its end. ``tool`` is the shell command of the ``tool`` case, ``traced`` a
    ``traceparent`` (spans then go to the provider, too), ``asked`` are fields of the request."""
    making = Drive(target, case, folder, traced=traced, cautious=cautious, **asked)
    with making.provider(tool or TOOL) as provider:
        begun = time.monotonic()
        result = await making.dispatch(provider)
        seconds = time.monotonic() - begun
    return Driven(target, case, result, making.progress, seconds, provider, making.work, marked(making.mark))


async def cancel_during_tool(target: Target, folder: Path) -> Driven:
    """Cancel a run while its tool is running, and look what is left. ``seconds`` is how long the end took.

    :raises AssertionError: no tool was running within the deadline.
    """
    making = Drive(target, "tool", folder, mutable=True)
    result: DispatchResult | None = None
    with making.provider(TOOL) as provider:

        async def run() -> None:
            nonlocal result
            result = await making.dispatch(provider)

        begun = time.monotonic()
        async with anyio.create_task_group() as group:
            group.start_soon(run)
            # A stranger's program starts its tool when it will, and nobody tells us; its own word of it
            # may come a moment later, if it has one.
            with anyio.move_on_after(DEADLINE_S):
                while result is None and not making.tool_runs():  # noqa: ASYNC110
                    await anyio.sleep(0.05)
            running = making.tool_runs()
            with anyio.move_on_after(TOLD_S):
                while result is None and "tool" not in making.kinds():  # noqa: ASYNC110
                    await anyio.sleep(0.05)
            begun = time.monotonic()
            group.cancel_scope.cancel()
        seconds = time.monotonic() - begun
    assert running, f"its tool never ran; it came to {result}"
    return Driven(
        target, "cancel_tool", result, making.progress, seconds, provider, making.work, marked(making.mark)
    )


def _name(pid: int) -> str:
    """A process's name as it is now (a `psutil.Process` remembers the one from before its exec)."""
    try:
        return psutil.Process(pid).name()
    except psutil.Error:
        return ""


_URL = "http://127.0.0.1:18080"
_XDG = {
    "XDG_CONFIG_HOME": ".config",
    "XDG_DATA_HOME": ".local/share",
    "XDG_STATE_HOME": ".local/state",
    "XDG_CACHE_HOME": ".cache",
}
