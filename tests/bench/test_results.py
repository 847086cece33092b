"""The file that a run leaves, and its schema."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.suite.results import Results, ResultsError, read, schema, write
from support.found import found

BENCH = Path(__file__).parents[2] / "bench"


def test_what_is_written_reads_back(tmp_path: Path) -> None:
    file = tmp_path / "results.json"
    results = Results({"small": found()})
    write(file, results)
    assert read(file) == results
    assert [each.name for each in tmp_path.iterdir()] == ["results.json"]


@pytest.mark.parametrize("text", ["", "{", '{"benches": {"small": {}}}', '{"dispatch": {"said": "words"}}x'])
def test_a_file_that_holds_no_results_is_named_and_kept(tmp_path: Path, text: str) -> None:
    file = tmp_path / "results.json"
    file.write_text(text)
    with pytest.raises(ResultsError, match=r"results\.json holds no results of this suite"):
        read(file)
    assert file.read_text() == text


def test_a_file_that_is_not_there_says_what_writes_one(tmp_path: Path) -> None:
    with pytest.raises(ResultsError, match="scripts/bench writes one"):
        read(tmp_path / "results.json")


def test_the_schema_beside_the_results_is_theirs() -> None:
    assert (BENCH / "results.schema.json").read_bytes() == schema(), "scripts/bench --page writes it anew"


def test_the_results_that_are_kept_are_of_this_schema() -> None:
    assert read(BENCH / "results.json").benches
