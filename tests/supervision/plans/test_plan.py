"""Plans as data: what is refused before anything starts, and in what order the steps run."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

import custodes
from custodes.adapters.port import DispatchRequest, DispatchResult, Failure, ProgressSink
from custodes.supervision.plans.plan import Plan, PlanError, Step, load_plan
from custodes.supervision.plans.plan_run import run_plan
from support import scripted


def step(step_id: str, *needs: str, **fields: object) -> str:
    more = "".join(f", {key}: {value}" for key, value in fields.items())
    return f"  - {{id: {step_id}, role: reviewer, prompt: look, needs: [{', '.join(needs)}]{more}}}\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "steps:\n" + step("a").replace("reviewer", "reviwer"),
            r"steps\[0\].role: unknown role 'reviwer'.*'reviewer'",
        ),
        ("steps:\n" + step("a", "b") + step("b", "a"), "cycle: "),
        ("steps:\n" + step("a", "missing"), r"steps\[0\].needs: there is no step 'missing'"),
        ("steps:\n" + step("lint") + step("b", "lin"), "did you mean 'lint'"),
        ("steps:\n" + step("a") + step("a"), r"steps\[1\].id: 'a' is used twice"),
        ("steps:\n" + step("a", promt="x"), r"steps\[0\]: unknown key 'promt'.*'prompt'"),
        ("step:\n" + step("a"), "unknown key 'step'.*'steps'"),
        ("steps:\n  - {id: '', role: reviewer, prompt: look}\n", r"steps\[0\].id: is empty"),
        ("steps:\n  - {id: a, role: reviewer, prompt: ' '}\n", r"steps\[0\].prompt: is empty"),
        ("steps: []\n", "at least one step"),
        ("- a\n- b\n", "must be a mapping"),
        ("", "yaml: `steps` is missing; a plan needs at least one step"),
        ("steps:\n" + step("a", timeout=-1), r"steps\[0\].timeout: -1"),
        ("max_parallel: 0\nsteps:\n" + step("a"), "max_parallel: 0 runs nothing"),
        ("steps:\n" + step("a") + "  id: b\n", r"plan.yaml, line \d+: "),
        (
            "steps:\n  - {id: a, id: b, role: reviewer, prompt: x}\n",
            r"plan.yaml, line \d+: .*duplicate",
        ),
        ("steps:\n  - {id: a, role: reviewer}\n", r"steps\[0\]: `prompt` is missing; each step needs one"),
        ("budget: {children: 0}\nsteps:\n" + step("a"), r"budget.children: 0 runs nothing"),
        ("budget: {wall_seconds: .nan}\nsteps:\n" + step("a"), r"budget.wall_seconds: nan"),
        ("budget: {wall_seconds: 0}\nsteps:\n" + step("a"), r"yaml: budget.wall_seconds: 0 runs nothing"),
        ("budget: {tokens: -5}\nsteps:\n" + step("a"), r"yaml: budget.tokens: -5 is no number of 0 or more"),
        ("budget: {tokens: many}\nsteps:\n" + step("a"), r"yaml: budget.tokens: Expected `int"),
        ("budget: {usd: 0}\nsteps:\n" + step("a"), r"budget.usd: 0 runs nothing; a number above 0"),
        ("budget: {usd: .inf}\nsteps:\n" + step("a"), r"yaml: budget.usd: inf is no number of 0 or more"),
        ("budget: {when_spent: wait}\nsteps:\n" + step("a"), r"budget.when_spent: .*'wait'"),
        ("budget: {dollars: 1}\nsteps:\n" + step("a"), r"budget: unknown key 'dollars'"),
        ("steps:\n" + step("a", estimate_usd=-1), r"steps\[0\].estimate_usd: -1"),
        ("budget: {childs: 1}\nsteps:\n" + step("a"), r"budget: unknown key 'childs'.*'children'"),
        ("pattern: seqence\nsteps:\n" + step("a"), r"pattern: .*'seqence'"),
        ("pattern: sequence\nsteps:\n" + step("a") + step("b", "a"), "step 'b' has `needs` of its own"),
        ("pattern: group\nsteps:\n" + step("a") + step("b"), "at least two steps and one that weighs"),
        ("max_backtracks: 11\nsteps:\n" + step("a"), "max_backtracks: 11 is no number from 0 to 10"),
        # What a YAML reader trips over itself: a day there is none of, numbers and depths without end.
        ("steps:\n" + step("a", timeout="2020-99-99"), "Expected `float | null`, got `str`"),
        ("steps:\n" + step("a", timeout="9" * 5000), "not readable as YAML"),
        ("steps: " + "[" * 5000 + "]" * 5000, "not readable as YAML"),
        ("steps:\n" + step('"a\\ud800"'), "no Unicode text"),
        ("# " + "x" * (1 << 20) + "\nsteps:\n" + step("a"), "larger than"),
    ],
)
def test_a_plan_that_cannot_run_is_refused_in_one_line(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "plan.yaml"
    path.write_text(text)
    with pytest.raises(PlanError, match=said) as caught:
        load_plan(path)
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith(str(path))


@pytest.mark.parametrize(
    ("pattern", "needs"),
    [
        ("sequence", [(), ("a",), ("b",), ("c",)]),
        ("hand_off", [(), ("a",), ("a", "b"), ("a", "b", "c")]),
        ("concurrent", [(), (), (), ()]),
        ("group", [(), (), (), ("a", "b", "c")]),
    ],
)
def test_a_pattern_stands_for_the_needs_that_nobody_has_to_write(
    tmp_path: Path, pattern: str, needs: list[tuple[str, ...]]
) -> None:
    path = tmp_path / "plan.yaml"
    steps = "".join(f"  - {{id: {name}, role: reviewer, prompt: x}}\n" for name in "abcd")
    path.write_text(f"pattern: {pattern}\nsteps:\n{steps}")
    plan = load_plan(path)
    assert [each.needs for each in plan.unfolded().steps] == needs
    assert plan.unfolded().unfolded() == plan.unfolded()


def test_the_digest_is_of_what_a_plan_says_and_not_of_how_its_file_words_it(tmp_path: Path) -> None:
    texts = (
        "steps:\n  - {id: a, role: reviewer, prompt: x}\n",
        "# a comment\nsteps:\n  - prompt: x\n    role: reviewer\n    id: a\n    needs: []\n",
        "steps:\n  - {id: a, role: reviewer, prompt: y}\n",
    )
    path = tmp_path / "plan.yaml"
    digests = []
    for text in texts:
        path.write_text(text)
        digests.append(load_plan(path).digest)
    assert digests[0] == digests[1] != digests[2]


@pytest.mark.anyio
async def test_a_plan_made_in_python_that_cannot_run_is_refused_before_anything_starts(
    tmp_path: Path, script: scripted.Script
) -> None:
    async with custodes.Supervision(tmp_path) as supervision, supervision.conversation("c") as parent:
        with pytest.raises(PlanError, match="there is no step 'b'"):
            await run_plan(parent, Plan(steps=(Step(id="a", role="reviewer", prompt="x", needs=("b",)),)))
    assert not script.requests


def test_a_missing_plan_is_named(tmp_path: Path) -> None:
    with pytest.raises(PlanError, match=r"nowhere.yaml: cannot be read: No such file"):
        load_plan(tmp_path / "nowhere.yaml")


def test_no_is_text_and_every_field_is_read(tmp_path: Path) -> None:
    path = tmp_path / "plan.yaml"
    path.write_text(
        "name: night\nmax_parallel: 2\nbudget: {children: 4, wall_seconds: 60}\nsteps:\n"
        + step("no", scope="[src]", mutable="true", max_wait=5, complexity="COMPLEX")
    )
    plan = load_plan(path)
    assert plan.name == "night"
    assert plan.budget.children == 4
    assert plan.steps[0] == Step(
        id="no",
        role="reviewer",
        prompt="look",
        scope=("src",),
        mutable=True,
        max_wait=5,
        complexity="COMPLEX",
    )


@pytest.mark.anyio
async def test_steps_run_after_their_needs_and_are_handed_their_evidence(
    tmp_path: Path, script: scripted.Script
) -> None:
    plan = Plan(
        steps=(
            Step(id="last", role="reviewer", prompt="review", needs=("left", "right")),
            Step(id="left", role="researcher", prompt="find left"),
            Step(id="right", role="analyst", prompt="find right"),
        )
    )
    async with custodes.Supervision(tmp_path) as supervision, supervision.conversation("c") as parent:
        outcomes = (await run_plan(parent, plan)).outcomes
    assert [outcome.name for outcome in outcomes] == ["last", "left", "right"]
    assert {outcome.status for outcome in outcomes} == {"done"}
    assert script.requests[-1].role == "reviewer"
    assert "find left" in script.requests[-1].prompt
    assert "find right" in script.requests[-1].prompt


@pytest.mark.anyio
async def test_a_step_whose_need_failed_is_refused_and_the_others_run(
    tmp_path: Path, script: scripted.Script
) -> None:
    script.acts.append(scripted.fail(Failure(category="invalid", reason="no", outcome="known_failed")))
    plan = Plan(
        steps=(
            Step(id="first", role="reviewer", prompt="x"),
            Step(id="second", role="reviewer", prompt="x", needs=("first",)),
            Step(id="third", role="reviewer", prompt="x", needs=("second",)),
        )
    )
    async with custodes.Supervision(tmp_path) as supervision, supervision.conversation("c") as parent:
        outcomes = (await run_plan(parent, plan)).outcomes
    assert [outcome.status for outcome in outcomes] == ["failed", "refused", "refused"]
    assert outcomes[1].refusal is not None
    assert outcomes[1].refusal.reason == "step 'second' needs 'first', which ended as failed"
    assert len(script.requests) == 1


@pytest.mark.anyio
async def test_a_plans_own_max_parallel_narrows_the_policys(tmp_path: Path, script: scripted.Script) -> None:
    running = most = 0

    async def act(request: DispatchRequest, progress: ProgressSink) -> DispatchResult:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await anyio.sleep(0.01)
        running -= 1
        return await scripted.answer(request, progress)

    script.acts.extend([act] * 4)
    plan = Plan(
        max_parallel=1,
        steps=tuple(Step(id=str(number), role="reviewer", prompt="x") for number in range(4)),
    )
    async with custodes.Supervision(tmp_path) as supervision, supervision.conversation("c") as parent:
        outcomes = (await run_plan(parent, plan)).outcomes
    assert {outcome.status for outcome in outcomes} == {"done"}
    assert most == 1
