"""``cos run --resume``, ``cos runs resolve`` and what ``cos runs`` tells of a plan."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from support.cos import Answer, Cos

PLAN = """\
name: mend
steps:
  - {id: find, role: researcher, prompt: What is here?, model: look}
  - {id: fix, role: implementer, prompt: Write., model: silent, needs: [find], mutable: true, scope: [w.txt]}
  - {id: check, role: reviewer, prompt: And now?, model: look, needs: [fix]}
"""
SILENT = "import sys\nsys.stdin.read()\nopen('w.txt', 'a').write('written\\n')\n"
"""It writes and says nothing, so that nobody knows whether it was done."""


@pytest.fixture
def plan(cos: Cos, programs: Path) -> Path:
    folder = programs / ".coding-os" / "adapters" / "command"
    (folder / "silent.py").write_text(SILENT)
    text = (folder / "adapter.yaml").read_text()
    argv = re.findall(r"argv: \[(.*?), ", text)[0]
    (folder / "adapter.yaml").write_text(
        f"{text}  - {{id: silent, bucket: silent, argv: [{argv}, {folder / 'silent.py'}]}}\n"
    )
    assert cos("adapters", "trust", "command").code == 0
    place = programs / "plan.yaml"
    place.write_text(PLAN)
    return place


def begun(answer: Answer) -> str:
    return str(re.findall(r"^plan run: (\S+)$", answer.out, re.MULTILINE)[0])


def statuses(answer: Answer) -> list[str]:
    return [outcome["status"] for outcome in answer.document["outcomes"]]


def written(project: Path) -> int:
    return len((project / "w.txt").read_text().splitlines())


def test_a_plan_stops_at_what_nobody_knows_and_goes_on_once_an_operator_has_said_so(
    cos: Cos, plan: Path
) -> None:
    first = cos("run", "plan.yaml")
    assert first.code == 1
    run = begun(first)
    lines = first.out.splitlines()
    assert lines[0] == f"plan run {run}: if it is cut short, `cos run --resume {run}` goes on with it"
    choices = (
        f"nobody knows how fix ended: look, then `cos runs resolve {run} fix done` keeps it, and "
        f"`cos runs resolve {run} fix failed` lets it run again"
    )
    assert lines[-2:] == [choices, f"`cos run --resume {run}` goes on with what is not done"]
    again = cos("run", "--resume", run, "--format", "json")
    assert (again.code, statuses(again)) == (1, ["done", "unknown", "refused"])
    assert (again.document["plan_run"], again.document["uncertain"]) == (run, ["fix"])
    assert written(plan.parent) == 1

    resolved = cos("runs", "resolve", run, "fix", "done", "--summary", "w.txt is as it should be")
    assert resolved.code == 0
    assert f"`cos run --resume {run}` goes on" in resolved.out
    last = cos("run", "--resume", run, "--format", "json")
    assert (last.code, statuses(last)) == (0, ["done", "done", "done"])
    assert last.document["outcomes"][1]["evidence"]["summary"] == "w.txt is as it should be"
    assert last.document["conversation"] == again.document["conversation"]
    assert written(plan.parent) == 1


def test_a_step_that_an_operator_calls_failed_runs_again(cos: Cos, plan: Path) -> None:
    run = begun(cos("run", "plan.yaml"))
    assert cos("runs", "resolve", run, "fix", "failed").code == 0
    cos("run", "--resume", run)
    assert written(plan.parent) == 2


def test_evidence_comes_from_a_file_and_is_its_roles(cos: Cos, plan: Path) -> None:
    run = begun(cos("run", "plan.yaml"))
    file = plan.parent / "evidence.json"
    file.write_text(json.dumps({"summary": "s", "files_changed": 3}))
    answer = cos("runs", "resolve", run, "fix", "done", "--evidence", str(file))
    assert (answer.code, "files_changed" in answer.err) == (1, True)
    file.write_text(json.dumps({"summary": "s", "files_changed": ["w.txt"]}))
    resolved = cos("runs", "resolve", run, "fix", "done", "--evidence", str(file), "--format", "json")
    assert resolved.document["outcome"] == "done"
    evidence = cos("run", "--resume", run, "--format", "json").document["outcomes"][1]["evidence"]
    assert evidence["files_changed"] == ["w.txt"]


def test_the_list_and_the_run_of_a_plan_are_shown(cos: Cos, plan: Path) -> None:
    run = begun(cos("run", "plan.yaml"))
    (listed,) = cos("runs", "list", "--format", "json").document["plans"]
    assert (listed["plan_run"], listed["name"], listed["status"]) == (run, "mend", "unknown")
    shown = cos("runs", "show", run, "--format", "json").document
    assert shown == listed
    assert [(s["step"], s["status"], s["uncertain"]) for s in shown["steps"]] == [
        ("find", "done", False),
        ("fix", "unknown", True),
        ("check", "refused", False),
    ]
    text = cos("runs", "show", run).out
    assert f"cos runs resolve {run} fix done" in text
    assert f"from {plan}" in text
    assert "  find  researcher  read-only  done  researcher saw a.txt  run " in text
    assert f"plan run {run}" in cos("runs", "list").out


def test_a_plan_whose_file_changed_is_refused_unless_it_is_replanned(cos: Cos, plan: Path) -> None:
    run = begun(cos("run", "plan.yaml"))
    plan.write_text("# the same, with a comment\n" + PLAN)
    assert statuses(cos("run", "--resume", run, "--format", "json")) == ["done", "unknown", "refused"]
    plan.write_text(PLAN.replace("And now?", "And what now?"))
    refused = cos("run", "--resume", run)
    assert (refused.code, "has changed since it began; --replan" in refused.err) == (1, True)
    cos("runs", "resolve", run, "fix", "done", "--summary", "s")
    again = cos("run", "--resume", run, "--replan", "--format", "json")
    assert statuses(again) == ["done", "done", "done"]


def test_a_plan_whose_file_is_gone_goes_on_as_it_was_recorded(cos: Cos, plan: Path) -> None:
    run = begun(cos("run", "plan.yaml"))
    plan.unlink()
    answer = cos("run", "--resume", run, "--format", "json")
    assert statuses(answer) == ["done", "unknown", "refused"]
    assert f"{plan} is not there any more" in answer.err
    answer = cos("run", "--resume", run, "--replan")
    assert (answer.code, f"cos run PLAN --resume {run} --replan" in answer.err) == (2, True)


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (["run"], 2, "PLAN is missing"),
        (["run", "plan.yaml", "--replan"], 2, "--replan goes with --resume RUN"),
        (["run", "--resume", "nix"], 1, "no plan run 'nix' is on record"),
        (["runs", "resolve", "nix", "done"], 1, "there is no run 'nix' on record"),
        (["runs", "resolve", "nix", "fix", "dne"], 2, "'dne' is no outcome; did you mean 'done'"),
        (["runs", "resolve", "nix", "failed", "--summary", "x"], 2, "what failed has no evidence"),
        (["runs", "resolve", "nix", "done", "--evidence", "nowhere.json"], 2, "cannot be read"),
    ],
)
def test_what_cannot_be_is_one_line(cos: Cos, plan: Path, words: list[str], code: int, says: str) -> None:
    answer = cos(*words)
    assert (answer.code, answer.out) == (code, "")
    assert says in answer.err
    assert answer.err.count("\n") == 1


def test_a_dispatch_that_cannot_go_on_in_a_thread_says_why(cos: Cos, plan: Path) -> None:
    def outcome(*words: str) -> Any:
        return cos("dispatch", "--role", "reviewer", "--format", "json", *words).document["outcomes"][0]

    first = outcome("--model", "look", "x")
    refused = outcome("--resume", first["run_id"], "and now?")
    assert (refused["status"], refused["refusal"]["category"]) == ("refused", "invalid")
    assert "has no native thread" in refused["refusal"]["reason"]


def test_ctrl_c_at_a_mutable_step_leaves_it_to_the_operator_and_says_so(cos: Cos, plan: Path) -> None:
    plan.write_text(PLAN.replace("silent", "slow"))
    os.mkfifo(plan.parent / "pids")
    process = subprocess.Popen(
        [sys.executable, "-m", "custodes.cli", "run", "plan.yaml", "--format", "json"],
        cwd=plan.parent,
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        (plan.parent / "pids").read_text()
        process.send_signal(signal.SIGINT)
        assert process.stdout is not None
        report = json.loads(process.stdout.read())
    assert process.returncode == 130
    assert (report["status"], report["uncertain"]) == ("cancelled", ["fix"])
    again = cos("run", "--resume", report["plan_run"], "--format", "json")
    assert statuses(again) == ["done", "cancelled", "refused"]
