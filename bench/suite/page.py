"""docs/performance.md: what was found, between marks in a page that a person writes."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from bench.suite.measure import Plot
from bench.suite.plot import drawing
from bench.suite.results import Found, Results
from bench.suite.table import figures, targets

IMAGES = "images/bench"


def written(page: str, results: Results) -> str:
    """The page anew: the targets between their marks, and each bench's plots and tables between its own. What
    has no marks in the page is left out, and whatever stands outside of marks stays."""
    ran = {name: found for name, found in results.benches.items() if not found.failed}
    page = _between(page, "targets", targets(ran))
    for name, found in results.benches.items():
        if found.failed:
            page = _between(page, name, [f"Failed on {found.at}: {found.failed}"])
        else:
            images = (f"![{plot.title}]({IMAGES}/{file})\n" for file, plot in named_plots(name, found))
            page = _between(page, name, [*images, *figures(found)])
    return page


def write(page: Path, results: Results) -> None:
    """The page and its drawings."""
    page.write_text(written(page.read_text(encoding="utf-8"), results), encoding="utf-8")
    folder = page.parent / IMAGES
    folder.mkdir(parents=True, exist_ok=True)
    for name, found in results.benches.items():
        for file, plot in named_plots(name, found):
            (folder / file).write_text(drawing(found, plot), encoding="utf-8")


def named_plots(name: str, found: Found) -> Iterable[tuple[str, Plot]]:
    """Each plot with the name of its file."""
    for number, plot in enumerate(found.plots, 1):
        yield f"{name}-{number}.svg", plot


def _between(page: str, name: str, lines: Iterable[str]) -> str:
    begin, end = f"<!-- {name} -->\n", f"<!-- /{name} -->"
    before, mark, rest = page.partition(begin)
    _, closing, after = rest.partition(end)
    if not (mark and closing):
        return page
    block = "\n".join(lines)
    return f"{before}{begin}\n{block}\n\n{end}{after}"
