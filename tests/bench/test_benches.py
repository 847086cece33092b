"""The suite's own declarations: every base, target and drawing names what is there."""

from __future__ import annotations

from contextlib import ExitStack

import pytest

from bench.suite.__main__ import BENCHES, PAGE


@pytest.mark.parametrize("quick", [False, True], ids=["whole", "quick"])
@pytest.mark.parametrize("name", BENCHES)
def test_what_a_declaration_names_is_there(name: str, quick: bool) -> None:
    bench = BENCHES[name]
    measures = list(bench.measures(quick))
    with ExitStack() as running:
        ours = {each.name for each in bench.contenders(running, None)}
    places = {(each.case, each.size) for each in measures}
    cases = {case for case, _ in places}
    for measure in measures:
        asked = set(measure.among) or ours
        targeted = {each.contender for each in measure.targets}
        assert targeted <= asked, measure.title
        if measure.base:
            size = measure.size if measure.base.size is None else measure.base.size
            assert (measure.base.case or measure.case, size) in places, measure.title
        assert all(each.absolute or measure.base for each in measure.targets), measure.title
    if not quick:
        assert all(each.case in cases | ours for each in bench.plots)


@pytest.mark.parametrize("name", ["targets", *BENCHES])
def test_the_page_has_a_place_for_it(name: str) -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert page.count(f"<!-- {name} -->\n") == page.count(f"<!-- /{name} -->") == 1
