from __future__ import annotations

from pathlib import Path

import pytest

from support.cos import Cos

PLAN = """\
name: look
steps:
  - {id: first, role: researcher, prompt: What is here?, model: look}
  - {id: fix, role: implementer, prompt: Write., model: write, needs: [first], mutable: true, scope: [w.txt]}
  - {id: again, role: reviewer, prompt: And now?, model: look, needs: [fix]}
"""

CYCLE = """\
steps:
  - {id: a, role: analyst, prompt: x, needs: [b]}
  - {id: b, role: analyst, prompt: x, needs: [a]}
"""


def plan(project: Path, text: str = PLAN) -> str:
    (project / "plan.yaml").write_text(text)
    return "plan.yaml"


def test_a_plan_runs_in_the_order_of_its_needs_and_returns_evidence(cos: Cos, programs: Path) -> None:
    answer = cos("run", plan(programs), "--format", "json")
    assert answer.code == 0
    report = answer.document
    assert (report["name"], report["status"]) == ("look", "done")
    assert [(o["name"], o["status"], o["evidence"]["summary"]) for o in report["outcomes"]] == [
        ("first", "done", "researcher saw a.txt"),
        ("fix", "done", "implementer saw a.txt, w.txt"),
        ("again", "done", "reviewer saw a.txt, w.txt"),
    ]
    assert report["outcomes"][0]["metadata"]["capacity_scope"] == "command:look"
    assert report["totals"]["attempts"] == 3
    assert answer.err == ""


def test_a_scope_outside_the_project_is_noted_of_a_plan_as_of_a_dispatch(cos: Cos, programs: Path) -> None:
    away = plan(programs, PLAN.replace("w.txt]", "w.txt, ../elsewhere]"))
    fix = ("--role", "implementer", "--model", "write", "--scope", "../elsewhere", "Write.")
    answers = [cos("run", away), cos("dispatch", *fix)]
    assert cos("dispatch", *fix, "--no-mutable").err == "", "what only reads holds no scope"
    assert [each.code for each in answers] == [0, 0]
    assert answers[0].err == answers[1].err
    assert answers[0].err == (
        f"cos: note: the scope ../elsewhere lies outside the project {programs}: "
        "only work of this project takes turns there\n"
    )


def test_without_a_terminal_the_way_there_is_plain_lines_and_then_the_report(
    cos: Cos, programs: Path
) -> None:
    answer = cos("run", plan(programs))
    assert answer.code == 0
    lines = answer.out.splitlines()
    assert "first: queued as researcher" in lines
    assert "first: runs on command:look (look)" in lines
    assert lines.index("first: done: researcher saw a.txt") < lines.index(
        "fix: runs on command:write (write)"
    )
    assert lines[-1].startswith("look done: 3 done, 3 attempts")
    assert "\x1b" not in answer.out


def test_a_limit_ends_the_run_refused_with_the_wait_and_exit_code_1(cos: Cos, programs: Path) -> None:
    text = (
        "steps:\n"
        "  - {id: first, role: reviewer, prompt: Look., model: limit}\n"
        "  - {id: second, role: reviewer, prompt: Look., model: limit}\n"
        "  - {id: third, role: reviewer, prompt: Look., model: look, needs: [second]}\n"
        "max_parallel: 1\n"
    )
    answer = cos("run", plan(programs, text), "--format", "json")
    assert answer.code == 1
    first, second, third = answer.document["outcomes"]
    assert (first["status"], first["failure"]["category"], first["failure"]["retry_after_s"]) == (
        "failed",
        "capacity",
        60,
    )
    assert (second["status"], second["refusal"]["category"]) == ("refused", "capacity")
    assert [wait["pool"] for wait in second["refusal"]["waiting"]] == ["command:limit"]
    assert 0 < second["refusal"]["retry_after_s"] <= 60
    assert (third["status"], third["refusal"]["category"]) == ("refused", "need")
    assert third["attempts"] == []


def test_one_piece_of_work_is_dispatched_with_its_overrides(cos: Cos, programs: Path) -> None:
    answer = cos("dispatch", "--role", "reviewer", "--model", "look", "What is here?", "--format", "json")
    assert answer.code == 0
    (outcome,) = answer.document["outcomes"]
    assert (outcome["role"], outcome["evidence"]["summary"]) == ("reviewer", "reviewer saw a.txt")


def test_suggest_shows_the_route_and_runs_nothing(cos: Cos, programs: Path) -> None:
    cos("supervision", "set", "--mode", "suggest")
    answer = cos("dispatch", "--role", "implementer", "--model", "write", "Write it.", "--format", "json")
    assert answer.code == 0
    (outcome,) = answer.document["outcomes"]
    assert (outcome["status"], outcome["output_json"]["proposed_route"]["model"]) == ("skipped", "write")
    text = cos("dispatch", "--role", "implementer", "--model", "write", "Write it.").out
    assert "  would run on command:write (write), 3600 s\n" in text
    assert not (programs / "w.txt").exists()


def test_below_the_adaptive_gate_it_says_that_nothing_was_supervised(cos: Cos, programs: Path) -> None:
    cos("supervision", "set", "--mode", "adaptive")
    words = ("dispatch", "--role", "reviewer", "--model", "look", "What is here?")
    answer = cos(*words)
    assert answer.code == 0
    assert "reviewer  reviewer  done  plainly, since it is below the adaptive mode's gate" in answer.out
    assert "conversation:" not in answer.out
    assert cos(*words, "--format", "json").document["conversation"] == ""
    assert cos("runs", "list").out.startswith("nothing ran here under supervision yet")


@pytest.mark.parametrize("words", [["dispatch", "--role", "reviewer", "Look."], ["run", "plan.yaml"]])
def test_while_supervision_is_off_the_enabling_command_is_named(
    cos: Cos, programs: Path, words: list[str]
) -> None:
    plan(programs)
    cos("supervision", "disable")
    before = sorted(programs.rglob("*"))
    answer = cos(*words)
    assert answer.code == 1
    assert "`cos supervision enable` turns it on" in answer.err
    assert answer.err.count("\n") == 1
    assert sorted(programs.rglob("*")) == before


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("steps:\n  - {id: a, role: reviwer, prompt: x}\n", "did you mean 'reviewer'"),
        ("steps:\n  - {id: a, role: reviewer, prompt: x, needs: [b]}\n", "there is no step 'b'"),
        (
            CYCLE,
            "cycle",
        ),
        ("steps:\n  - {id: a, role: reviewer, promt: x}\n", "prompt"),
        ("steps: [\n", "not readable as YAML"),
        (None, "No such file"),
    ],
)
def test_a_plan_that_cannot_be_run_is_one_line_and_nothing_starts(
    cos: Cos, programs: Path, text: str | None, says: str
) -> None:
    if text is not None:
        plan(programs, text)
    before = sorted(programs.rglob("*"))
    answer = cos("run", "plan.yaml")
    assert answer.code == 2
    assert says in answer.err
    assert answer.err.startswith("cos: plan.yaml")
    assert answer.err.count("\n") == 1
    assert sorted(programs.rglob("*")) == before


def test_malformed_settings_refuse_the_run(cos: Cos, programs: Path) -> None:
    (programs / ".coding-os" / "hub-settings.json").write_text("{")
    answer = cos("run", plan(programs))
    assert answer.code == 1
    assert "malformed settings" in answer.err
    assert answer.err.count("\n") == 1


def test_a_changed_adapter_is_untrusted_and_runs_nothing(cos: Cos, programs: Path) -> None:
    program = programs / ".coding-os" / "adapters" / "command" / "program.py"
    program.write_text(f"{PROGRAM_THAT_TELLS}\n{program.read_text()}")
    answer = cos("run", plan(programs), "--format", "json")
    assert answer.code == 1
    first = answer.document["outcomes"][0]
    assert first["status"] == "refused"
    assert "cos adapters trust command" in first["refusal"]["reason"]
    assert answer.err.startswith("cos: note: untrusted: adapter 'command'"), (
        "another would take the work unsaid"
    )
    assert not (programs / "ran").exists()


PROGRAM_THAT_TELLS = "open('ran', 'w').close()"


def test_a_session_adapter_that_is_no_agent_is_named_with_the_near_miss(cos: Cos, programs: Path) -> None:
    answer = cos("run", plan(programs), "--adapter", "comand")
    assert answer.code == 1
    assert "did you mean 'command'" in answer.err


BUDGETED = """\
name: look
budget: {children: 2, tokens: 100000}
steps:
  - {id: a, role: reviewer, prompt: x, model: look, estimate_tokens: 90000}
  - {id: b, role: reviewer, prompt: x, model: look, estimate_tokens: 90000, needs: [a]}
"""


def test_a_step_that_the_budget_does_not_hold_is_refused_with_what_was_left(cos: Cos, programs: Path) -> None:
    answer = cos("run", plan(programs, BUDGETED), "--format", "json")
    assert answer.code == 1
    report = answer.document
    assert [o["status"] for o in report["outcomes"]] == ["done", "refused"]
    assert report["outcomes"][1]["refusal"]["shortfall"] == {
        "limit": "tokens",
        "allowed": 100000,
        "spent": 90000,
        "reserved": 0,
        "left": 10000,
        "needed": 90000,
        "source": "the caller's estimate",
    }
    assert report["spent"]["tokens"]["estimated"] == 90000


def test_the_report_says_what_was_spent_of_a_budget(cos: Cos, programs: Path) -> None:
    lines = cos("run", plan(programs, BUDGETED)).out.splitlines()
    assert (
        "  budget: the fan-out's budget of 100000 tokens leaves 10000 tokens (90000 tokens spent, 0 tokens "
        "reserved); one more attempt needs 90000 tokens (the caller's estimate)"
    ) in lines
    assert "budget: 2 of 2 children, 90000 of 100000 tokens (90000 of it estimated)" in lines
    assert not [
        line for line in cos("run", plan(programs)).out.splitlines() if line.startswith("budget: ")
    ], "no budget, no line"
