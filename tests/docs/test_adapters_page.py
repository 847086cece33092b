"""docs/adapters.md is followed to the letter: its files, its commands; and broken copies are taught."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "scribe"
PAGE = (ROOT / "docs" / "adapters.md").read_text(encoding="utf-8")
FILES = ("adapter.yaml", "dispatch.py", "transcript.py", "parity.py")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)


def run(folder: Path, *argv: str) -> subprocess.CompletedProcess[str]:
    own = {"HOME": str(folder), "XDG_CONFIG_HOME": str(folder / "config"), "SCRIBE_KEY": "x"}
    environment = {**os.environ, **own, "PYTHONPATH": "", "NO_COLOR": "1", "COLUMNS": "200"}
    return subprocess.run(argv, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def contract(folder: Path, named: str, *more: str) -> subprocess.CompletedProcess[str]:
    argv = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "--custodes-adapter", named, *more)
    return run(folder, sys.executable, *argv)


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


@pytest.mark.parametrize("fault", BROKEN)
def test_a_broken_copy_fails_with_what_is_wrong_why_and_what_helps(fault: str, project: Path) -> None:
    right, wrong, check, says = BROKEN[fault]
    file = project / ".coding-os" / "adapters" / "scribe" / "dispatch.py"
    text = file.read_text()
    assert right in text
    file.write_text(text.replace(right, wrong))
    ran = contract(project, ".coding-os/adapters/scribe", "-k", f"{check} and asyncio")
    assert ran.returncode == 1, ran.stderr
    assert says in ran.stdout
    for part in ("adapter 'scribe' breaks the contract", "why: ", "helps: ", "docs/adapters.md"):
        assert part in ran.stdout
    assert "Traceback" not in ran.stdout


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
