"""docs/adapters.md is followed to the letter: its files, its commands; and broken copies are taught."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from custodes.adapters.sources import ENTRY_POINT_GROUP
from support import pages
from support.pages import ROOT

EXAMPLE = ROOT / "examples" / "scribe"
FILES = ("adapter.yaml", "dispatch.py", "transcript.py", "parity.py")


def blocks(language: str) -> list[str]:
    return [block.text for block in pages.blocks("docs/adapters.md") if block.language == language]


def run(folder: Path, *argv: str, **more: str) -> subprocess.CompletedProcess[str]:
    own = {"HOME": str(folder), "XDG_CONFIG_HOME": str(folder / "config"), "SCRIBE_KEY": "x", **more}
    environment = {**os.environ, **own, "PYTHONPATH": "", "NO_COLOR": "1", "COLUMNS": "200"}
    return subprocess.run(argv, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def contract(folder: Path, *named: str, only: str = "") -> subprocess.CompletedProcess[str]:
    """Without the plugins of others: most of the time of a run that ends at once is theirs."""
    options = [word for name in named for word in ("--custodes-adapter", name)]
    pytest_ = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "custodes.pytest_plugin")
    alone = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    return run(folder, sys.executable, *pytest_, *options, "-k", only, **alone)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with the page's four files."""
    place = tmp_path / ".coding-os" / "adapters" / "scribe"
    place.mkdir(parents=True)
    for name, text in zip(FILES, (*blocks("yaml"), *blocks("python")), strict=True):
        (place / name).write_text(text, encoding="utf-8")
    return tmp_path


def test_the_page_and_the_example_are_the_same() -> None:
    files = [(EXAMPLE / name).read_text(encoding="utf-8") for name in FILES]
    assert [*blocks("yaml"), *blocks("python")] == files


def test_who_follows_the_page_has_an_adapter_that_keeps_the_contract(project: Path) -> None:
    commands = [line.split() for block in blocks("bash") for line in block.splitlines()]
    assert [command[0] for command in commands] == ["pytest", "cos", "cos"]
    for command in commands:
        program = {"pytest": ["-m", "pytest", "-q"], "cos": ["-m", "custodes.cli"]}[command[0]]
        ran = run(project, sys.executable, *program, *command[1:])
        assert ran.returncode in (0, 1) if command[1:3] == ["adapters", "check"] else ran.returncode == 0
        assert "passed" in ran.stdout or "scribe" in ran.stdout, ran.stderr


BROKEN = {
    "no category": (
        "return failures.classify(stream.error, who=who, now=waits.now())",
        "return Failure(category=None, reason='it failed')",
        "limit",
        "`failure.category` is None, must be 'capacity'",
    ),
    "no failure at all": (
        "return failures.classify(stream.error, who=who, now=waits.now())",
        "return None",
        "auth",
        "it reads as a success: `failure` is None",
    ),
    "no proof": (
        "stream.usage is None or not stream.text",
        "not stream.text",
        "proof",
        "it reads as a success: `failure` is None",
    ),
    "a secret": (
        'failures.failure("cut", who, detail=ended.ending)',
        'failures.failure("other", who, detail=ended.stderr.decode())',
        "unanticipated",
        "a field holds the secret of the environment",
    ),
    "a promise it does not keep": (
        "if wrong := native.refusal(self.descriptor, request, model):",
        "if request.effort and (wrong := native.refusal(self.descriptor, request, model)):",
        "resume",
        "must be a failure of category 'invalid': 'resume' is not in its capabilities",
    ),
    "a denial it does not obey": (
        '"allow": answer == "allow"',
        '"allow": True',
        "permission_requests",
        "it was denied, and was done all the same",
    ),
    "an ask it does not put": (
        "self.asks.put(ask, partial(self.answer, number))",
        'self.answer(number, "deny" if len(ask.detail) > 5 else "allow")',
        "permission_requests",
        "it was allowed, and was not done",
    ),
    "an exception": (
        "return failures.classify(stream.error, who=who, now=waits.now())",
        "raise RuntimeError(stream.error.message)",
        "overloaded",
        "dispatch raised RuntimeError: Overloaded.",
    ),
}


def test_a_broken_copy_fails_with_what_is_wrong_why_and_what_helps(project: Path) -> None:
    scribe = project / ".coding-os" / "adapters" / "scribe"
    names = {fault: fault.replace(" ", "_") for fault in BROKEN}
    for fault, (right, wrong, *_) in BROKEN.items():
        copy = shutil.copytree(scribe, project / names[fault])
        text = (copy / "dispatch.py").read_text()
        assert right in text
        (copy / "dispatch.py").write_text(text.replace(right, wrong))
    chosen = " or ".join(f"{names[fault]} and {check}" for fault, (_, _, check, _) in BROKEN.items())
    ran = contract(project, *names.values(), only=f"asyncio and ({chosen})")
    assert ran.returncode == 1, ran.stderr
    assert "Traceback" not in ran.stdout
    for fault, (_, _, _, says) in BROKEN.items():
        # Of one adapter, from its name to the next.
        told = ran.stdout.partition(f"adapter '{names[fault]}' breaks the contract")[2]
        told = told.partition("breaks the contract")[0]
        for part in (says, "why: ", "helps: ", "docs/adapters.md"):
            assert part in told, (fault, ran.stdout)
    (shown,) = (text for text in blocks("text") if "breaks the contract" in text)
    assert pages.missing_line(shown.replace("scribe", names["no category"]), ran.stdout) is None


def test_its_entry_point_is_of_the_group_that_is_looked_in() -> None:
    (declared,) = (tomllib.loads(text) for text in blocks("toml"))
    assert set(declared["project"]["entry-points"]) == {ENTRY_POINT_GROUP}


def test_an_adapter_without_a_parity_file_is_told_what_to_write(project: Path) -> None:
    (project / ".coding-os" / "adapters" / "scribe" / "parity.py").unlink()
    ran = contract(project, ".coding-os/adapters/scribe")
    assert ran.returncode == pytest.ExitCode.USAGE_ERROR
    assert "parity.py does not exist" in ran.stderr
    assert "arrange(case, stage)" in ran.stderr


def test_an_id_that_nobody_has_is_told_with_its_near_miss(project: Path) -> None:
    ran = contract(project, "comand")
    assert ran.returncode == pytest.ExitCode.USAGE_ERROR
    assert "there is no adapter 'comand'" in ran.stderr
    assert "command" in ran.stderr


def test_a_projects_adapter_named_by_its_id_is_not_run_before_it_is_trusted(project: Path) -> None:
    ran = contract(project, "scribe")
    assert ran.returncode == pytest.ExitCode.USAGE_ERROR
    assert "cos adapters trust scribe" in ran.stderr


def test_a_pytest_run_without_the_option_loads_nothing_of_ours(project: Path) -> None:
    (project / "test_other.py").write_text(
        "import sys\n\n\ndef test_it():\n"
        "    ours = [name for name in sys.modules if name.startswith('custodes')]\n"
        "    assert ours == ['custodes', 'custodes.pytest_plugin']\n"
    )
    ran = run(project, sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_other.py")
    assert ran.returncode == 0, ran.stdout
