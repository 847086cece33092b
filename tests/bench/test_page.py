"""What was found stands between the page's marks, and nothing else of the page is touched."""

from __future__ import annotations

from pathlib import Path

from bench.suite import page
from bench.suite.results import Found, Results
from support.found import found

PAGE = """\
# What it costs

<!-- targets -->
old
<!-- /targets -->

Words of a person.

<!-- small -->
old
<!-- /small -->

The end.
"""


def test_the_marks_hold_what_was_found_and_the_rest_stays() -> None:
    written = page.written(PAGE, Results({"small": found(), "unmarked": found()}))
    assert "old" not in written
    assert "![By size](images/bench/small-2.svg)" in written
    assert written.count("<!--") == 4
    outside = written.split("<!-- small -->")[0].split("<!-- /targets -->")[1]
    assert outside == "\n\nWords of a person.\n\n"
    assert written.endswith("<!-- /small -->\n\nThe end.\n")
    assert "small: one call, custodes" in written.split("<!-- /targets -->")[0]


def test_written_twice_it_is_the_same_page() -> None:
    results = Results({"small": found()})
    once = page.written(PAGE, results)
    assert page.written(once, results) == once


def test_a_mark_without_its_end_is_left_alone() -> None:
    torn = "before\n<!-- small -->\nafter\n"
    assert page.written(torn, Results({"small": found()})) == torn


def test_a_bench_that_failed_says_so_on_the_page() -> None:
    failed = Found(at="2026-01-02", machine="", load=(0, 0), failed="OSError: no disk")
    assert "Failed on 2026-01-02: OSError: no disk" in page.written(PAGE, Results({"small": failed}))


def test_the_drawings_are_written_beside_it(tmp_path: Path) -> None:
    file = tmp_path / "performance.md"
    file.write_text(PAGE)
    page.write(file, Results({"small": found()}))
    drawn = sorted(each.name for each in (tmp_path / "images" / "bench").iterdir())
    assert drawn == ["small-1.svg", "small-2.svg", "small-3.svg"]
