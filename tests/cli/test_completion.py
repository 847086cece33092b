from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from support.cos import Cos

BASH = shutil.which("bash")


@pytest.mark.skipif(BASH is None, reason="bash is not installed: its completion cannot be tried")
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("cos", "supervision", ""), {"show", "enable", "disable", "set", "explain", "turn-defaults"}),
        (("cos", "supervision", "set", "--mo"), {"--mode"}),
        (("cos", "supervision", "set", "--mode", "s"), {"suggest"}),
        (("cos", "dispatch", "--role", "re"), {"researcher", "reviewer", "refactorer"}),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_bash_completes_commands_options_and_their_words(
    cos: Cos, project: Path, words: tuple[str, ...], expected: set[str]
) -> None:
    script = project / "completion"
    script.write_text(cos("completion", "bash").out)
    ask = (
        'eval "$(cat "$1")"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); '
        'complete -p cos | sed "s/.*-F \\([^ ]*\\).*/\\1/" > function; $(cat function); '
        'echo "${COMPREPLY[@]}"'
    )
    command = [str(BASH), "--norc", "-c", ask, "bash", str(script), *words]
    said = subprocess.run(command, capture_output=True, text=True, check=True, cwd=project).stdout
    assert set(said.split()) == expected


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_have_a_script_too(cos: Cos, project: Path, shell: str) -> None:
    answer = cos("completion", shell)
    assert answer.code == 0
    assert "supervision" in answer.out


def test_an_unknown_shell_is_not_understood(cos: Cos, project: Path) -> None:
    assert cos("completion", "tcsh").code == 2
