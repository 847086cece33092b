"""``cos demo``: a supervised fan-out on a real project, with no account, no key and no network."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

from custodes.cli.options import FormatOption, Otlp
from custodes.cli.output import CliError, paint, write

if TYPE_CHECKING:
    from custodes import Conversation

SWIFT_WAIT_S = 3
"""The provider's Retry-After once its first model has served its one request, in seconds."""


async def demo(
    *,
    otlp: Otlp = "",
    format: FormatOption = "text",  # noqa: A002 - the option's word
) -> int:
    """Watch a supervised fan-out: no account, no key, no network.

    Programs and models work side by side, a pool meets its limit, another covers,
    and a probe heals it. It takes about ten seconds and leaves nothing behind.
    """
    git = shutil.which("git")
    if git is None:
        raise CliError("the demo makes a git repository, and there is no git on PATH", kind="missing")

    from custodes.cli.conduct import conduct, session_adapter
    from custodes.cli.demo.provider import Quota, serving
    from custodes.supervision.plans.plan import load_plan
    from custodes.supervision.plans.plan_run import Begun, PlanEnd, run_plan

    quotas = {"swift-1": Quota(1, SWIFT_WAIT_S), "deep-1": Quota(None, 0), "steady-1": Quota(None, 0)}
    with (
        _workshop() as (project, config),
        serving(quotas) as provider,
        _variable("XDG_CONFIG_HOME", str(config)),
    ):
        _make_project(git, project)
        adapters = _bring_adapters(project, provider.base_url)
        trusted = _trust(project, adapters)
        if format == "text":
            _introduce(project, provider.base_url, trusted, list(quotas))
        plan = load_plan(project / "plan.yaml")

        async def ask(parent: Conversation, _: Begun) -> PlanEnd:
            return await run_plan(parent, plan)

        default = session_adapter(project, "")
        code = await conduct(project, plan.name, ask, adapter=default, form=format, otlp=otlp)
        if format == "text":
            served = ", ".join(
                f"{name} {provider.served[name]} answered, {provider.limited[name]} limited"
                for name in quotas
            )
            write(f"the provider counted: {served}")
            _changed(git, project)
    if format == "text":
        _what_next()
    return code


@contextlib.contextmanager
def _workshop() -> Iterator[tuple[Path, Path]]:
    """A folder for the project and one for the demo's own user configuration; both are removed."""
    with tempfile.TemporaryDirectory(prefix="custodes-demo-", ignore_cleanup_errors=True) as folder:
        # The real path: a scope is compared by real paths.
        root = Path(folder).resolve()
        for name in ("tally", "config"):
            (root / name).mkdir()
        yield root / "tally", root / "config"


@contextlib.contextmanager
def _variable(name: str, value: str) -> Iterator[None]:
    before = os.environ.get(name)
    os.environ[name] = value
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before


def _make_project(git: str, project: Path) -> None:
    """The project with its history. The person's own git configuration has no say in it."""
    environment = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    for name in [name for name in environment if name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE")]:
        del environment[name]

    def run(*arguments: str, stdin: bytes | None = None) -> None:
        subprocess.run(
            [git, "-C", str(project), *arguments],
            input=stdin,
            check=True,
            capture_output=True,
            env=environment,
        )

    run("init", "--quiet", "--initial-branch=main")
    run("fast-import", "--quiet", stdin=_file("tally.fastimport").encode())
    run("reset", "--quiet", "--hard", "main")


def _bring_adapters(project: Path, base_url: str) -> list[str]:
    """Write the project's own files: agents, settings, plan, and its adapters with their programs."""
    shipped = resources.files(__package__) / "files"
    home = project / ".coding-os" / "adapters"
    adapters = sorted(entry.name for entry in (shipped / "adapters").iterdir() if entry.is_dir())
    for adapter in adapters:
        (home / adapter).mkdir(parents=True)
        for entry in (shipped / "adapters" / adapter).iterdir():
            if entry.is_file():
                text = entry.read_text(encoding="utf-8")
                text = text.replace('"@PYTHON@"', json.dumps(sys.executable)).replace("@BASE_URL@", base_url)
                (home / adapter / entry.name).write_text(text, encoding="utf-8")
                if "/tools.py" in text:
                    (home / adapter / "tools.py").write_text(_file("tools.py"), encoding="utf-8")
    (project / ".coding-os.yaml").write_text(_file("files/coding-os.yaml"), encoding="utf-8")
    (project / ".coding-os" / "hub-settings.json").write_text(
        _file("files/hub-settings.json"), encoding="utf-8"
    )
    (project / "plan.yaml").write_text(_file("files/plan.yaml"), encoding="utf-8")
    return adapters


def _file(name: str) -> str:
    return (resources.files(__package__) / name).read_text(encoding="utf-8")


def _trust(project: Path, adapters: list[str]) -> list[str]:
    """Trust what the demo itself has just written, in its own configuration folder."""
    from custodes.adapters.registry import Registry

    registry = Registry.discover(project)
    return [f"{adapter} {registry.trust(adapter)[:19]}" for adapter in adapters]


def _introduce(project: Path, base_url: str, trusted: list[str], models: list[str]) -> None:
    write(f"project   {project} (a copy that is removed at the end)")
    write(f"provider  {base_url}, on this machine: the protocol is real, its models are a few rules")
    write(f"models    {', '.join(models)}, a pool each; the first limits after one request")
    for line in trusted:
        write(f"trusted   {line}…, for this run alone")
    write()


def _changed(git: str, project: Path) -> None:
    diff = subprocess.run(
        [git, "-C", str(project), "diff", "--shortstat"], capture_output=True, text=True, check=False
    )
    if diff.stdout.strip():
        write(f"the writer's change: {diff.stdout.strip()}")


def _what_next() -> None:
    from custodes.cli.init import look

    ready = [runtime.id for runtime in look(Path()) if runtime.ready]
    agents = f"would configure: {', '.join(ready)}" if ready else "would say what each agent wants first"
    write()
    write(f"{paint('next', 'bold')}, in a project of yours:")
    if shutil.which("cos") is None:
        write(f'  export PATH="{Path(sys.executable).parent}:$PATH"   brings cos along')
    write(f"  cos init                 {agents}")
    write("  cos supervision enable   turns supervision on; cos supervision show says what it would do")
    write('  cos dispatch --role reviewer "What in this project would you change first?"')
