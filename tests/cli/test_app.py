from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from custodes.cli.console import main
from support.cos import Cos
from support.program import running

COS = [sys.executable, "-m", "custodes.cli"]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["supervison"], 'Did you mean "supervision"'),
        (["--verion"], 'Unknown option "--verion"'),
        (["-d", "there", "runs", "list"], "options come after it"),
        (["supervision", "shwo"], 'Did you mean "show"'),
        (["supervision", "show", "--formt", "json"], "Did you mean --format"),
        (["supervision", "show", "--format", "yaml"], 'Choose from: "text", "json"'),
        (["run"], "PLAN"),
        (["run", "a.yaml", "b.yaml"], '"b.yaml" is more than it takes'),
        (["dispatch", "--role", "reviewer", "what", "is", "this"], '"is this" is more than it takes; a text'),
        (["run", "a.yaml", "--wait", "soon"], "--wait"),
        (["run", "a.yaml", "--wait", "-1"], "no number of seconds"),
        (["dispatch", "what?"], "--role"),
        (["dispatch", "--role", "reviwer", "what?"], 'Did you mean "reviewer"'),
        (["dispatch", "--role", "reviewer", " "], "the prompt is empty"),
        (["dispatch", "--role", "reviewer", "--timeout", "0", "what?"], "--timeout"),
        (["runs", "list", "-d", "x" * 5_000], "File name too long"),
    ],
)
def test_what_is_not_understood_is_one_line_and_exit_code_2(cos: Cos, words: list[str], says: str) -> None:
    answer = cos(*words)
    assert answer.code == 2
    assert says in answer.err
    assert answer.err.startswith("cos: ")
    assert answer.err.count("\n") == 1
    assert answer.out == ""


def test_in_a_folder_that_was_deleted_it_asks_for_another(
    cos: Cos, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    folder.rmdir()
    for words in (["runs", "list"], ["overseer", "status"], ["supervision", "show"], ["init"]):
        answer = cos(*words)
        assert answer.code == 2
        assert answer.err == (
            "cos: the current folder cannot be used (No such file or directory); -d takes the project's\n"
        )


def test_with_json_the_error_is_the_one_document(cos: Cos) -> None:
    answer = cos("supervision", "shwo", "--format", "json")
    assert answer.code == 2
    assert answer.document["error"]["kind"] == "usage"
    assert answer.err == ""


def test_a_fault_of_ours_is_a_document_too_and_its_place_is_on_stderr(
    cos: Cos, monkeypatch: pytest.MonkeyPatch
) -> None:
    def faulty(project: Path) -> None:
        raise RuntimeError("a fault")

    monkeypatch.setattr("custodes.policy.overview.overview_of", faulty)
    answer = cos("supervision", "show", "--format", "json")
    assert answer.code == 1
    assert answer.document == {"error": {"kind": "internal", "message": "RuntimeError: a fault"}}
    assert "in faulty" in answer.err
    with pytest.raises(RuntimeError, match="a fault"):
        cos("supervision", "show")


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["demo"],
        ["init"],
        ["run"],
        ["dispatch"],
        ["supervision"],
        ["supervision", "show"],
        ["supervision", "set"],
        ["adapters", "list"],
        ["adapters", "trust"],
        ["runs", "list"],
        ["runs", "show"],
        ["cognition", "trace"],
    ],
)
def test_every_command_has_help_with_a_sentence_for_each_option(cos: Cos, words: list[str]) -> None:
    answer = cos(*words, "--help")
    assert answer.code == 0
    assert answer.out.startswith(f"Usage: {' '.join(('cos', *words))}")


@pytest.mark.parametrize("columns", ["0", "2", "9"])
def test_help_comes_to_an_end_in_a_terminal_of_hardly_any_width(columns: str) -> None:
    command = [*COS, "demo", "--help"]
    environment = {**os.environ, "COLUMNS": columns}
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=60)
    assert "--format" in run.stdout


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["completion"], 'eval "$(cos completion zsh)"'),
        (["run"], "A plan is a YAML file with `steps`"),
        (["hub"], "what runs in the project goes on"),
        (["runs", "resolve"], "Example: cos runs resolve RUN fix done"),
        (["supervision", "explain"], "no token is spent"),
    ],
)
def test_a_command_s_own_help_is_whole_not_the_sentence_of_the_list(
    cos: Cos, words: list[str], says: str
) -> None:
    assert says in cos(*words, "--help").out
    assert says not in cos("--help").out
    assert says in cos("help", *words).out


def test_the_sentence_of_the_list_begins_a_command_s_own_help(
    cos: Cos, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    listed = cos("--help").out
    for command in ("demo", "init", "run", "dispatch", "roles", "hub", "mcp", "completion", "doctor"):
        sentence = cos(command, "--help").out.split("\n\n")[1]
        assert sentence in listed, command


def test_help_is_a_word_too(cos: Cos) -> None:
    assert cos("help") == cos("--help")
    assert cos("help", "supervision", "set") == cos("supervision", "set", "--help")


def test_no_words_at_all_are_a_question_for_help(cos: Cos) -> None:
    assert cos() == cos("--help")


def test_the_version_is_the_packages(cos: Cos) -> None:
    assert cos("--version").out.startswith("custodes ")


def test_asking_for_the_version_alone_loads_no_command_and_says_the_same(cos: Cos) -> None:
    code = (
        "import sys\n"
        "sys.argv = ['cos', '--version']\n"
        "from custodes.cli.console import main\n"
        "code = main()\n"
        "heavy = {'custodes.cli.app', 'cyclopts', 'msgspec', 'rich'}\n"
        "print(code, *heavy & {*sys.modules}, file=sys.stderr)\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stderr == "0\n"
    assert run.stdout == cos("--version").out


def test_on_a_system_on_which_it_does_not_run_every_command_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setattr(sys, "argv", ["cos", "dispatch", "--role", "reviewer", "x"])
    assert main() == 1
    told = capsys.readouterr()
    assert (told.out, told.err.count("\n")) == ("", 1)
    assert told.err.startswith("cos: on this system (win32) nothing proves that a child's processes are gone")
    monkeypatch.setattr(sys, "argv", ["cos", "--version"])
    assert main() == 0


def test_a_commands_start_does_not_read_the_packages_metadata() -> None:
    code = "import sys, custodes.cli.console; print('importlib.metadata' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "False\n"


def test_showing_a_policy_imports_nothing_heavy(project: Path) -> None:
    (project / ".coding-os.yaml").write_text("agents: []\n")
    code = (
        "import json, sys\n"
        "from custodes.cli.app import call\n"
        "code = call(['supervision', 'show'])\n"
        "print(json.dumps([code, sorted(sys.modules)]), file=sys.stderr)\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", code], cwd=project, capture_output=True, text=True, check=True
    )
    code_, modules = json.loads(run.stderr)
    assert code_ == 0
    heavy = ("rich", "httpx2", "trio", "anyio", "aiosqlite", "sqlite3", "opentelemetry", "psutil", "asyncio")
    rooms = ("custodes.store", "custodes.telemetry", "custodes.supervision", "custodes.actors")
    assert [name for name in (*heavy, *rooms) if name in modules] == []


def test_a_reader_that_goes_away_is_no_traceback(project: Path) -> None:
    with running(
        [*COS, "supervision", "show"], cwd=project, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as program:
        assert program.stdout is not None
        program.stdout.close()
        assert program.stderr is not None
        assert program.stderr.read() == ""
    assert program.returncode == 141


def test_output_that_cannot_be_written_is_one_line_and_exit_code_1(project: Path) -> None:
    for form in ("text", "json"):
        with Path("/dev/full").open("w") as full:
            run = subprocess.run(
                [*COS, "supervision", "show", "--format", form],
                cwd=project,
                stdout=full,
                stderr=subprocess.PIPE,
                text=True,
                check=False,
            )
        assert run.stderr.splitlines() == ["cos: the output cannot be written: No space left on device"]
        assert run.returncode == 1


def test_closed_standard_streams_lend_their_numbers_to_no_other_file(programs: Path) -> None:
    words = " ".join([*COS, "dispatch", "--role", "reviewer", "--model", "look", "x"])
    run = subprocess.run(["sh", "-c", f"{words} <&- >&- 2>&-"], cwd=programs, check=False)
    assert run.returncode == 0


def test_a_lone_hyphen_reads_the_prompt_from_stdin(programs: Path) -> None:
    words = [*COS, "dispatch", "--role", "reviewer", "-", "--model", "look"]
    run = subprocess.run(words, cwd=programs, input=b"look", capture_output=True, check=False)
    assert (run.returncode, run.stderr) == (0, b"")
    run = subprocess.run(words, cwd=programs, input=b"caf\xe9", capture_output=True, check=False)
    assert run.returncode == 2
    assert b"prompt" in run.stderr
    assert run.stderr.count(b"\n") == 1


def test_no_colour_where_there_is_no_terminal(project: Path) -> None:
    run = subprocess.run(
        [*COS, "supervision", "show"], cwd=project, capture_output=True, text=True, check=True
    )
    assert "\x1b" not in run.stdout
