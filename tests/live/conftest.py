"""Live tests run only when asked for (`-m live`); their table is printed at the end."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from live.harness import Driven

_ROWS = pytest.StashKey[list[Driven]]()


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_ROWS] = []


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if "live" in str(config.option.markexpr):
        return
    live = [item for item in items if item.get_closest_marker("live")]
    items[:] = [item for item in items if not item.get_closest_marker("live")]
    config.hook.pytest_deselected(items=live)


@pytest.fixture
def note(pytestconfig: pytest.Config) -> Callable[[Driven], None]:
    """Puts a drive into the table."""
    return pytestconfig.stash[_ROWS].append


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    rows = config.stash[_ROWS]
    if not rows:
        return
    terminalreporter.section("live matrix")
    head = ("runtime", "case", "came back", "wait s", "seconds", "requests", "left")
    terminalreporter.line("{:12} {:14} {:30} {:>7} {:>8} {:>9} {:>5}".format(*head))
    for row in sorted(rows, key=lambda row: (row.target.key, row.case)):
        failure = row.result.failure if row.result else None
        said = (
            f"{failure.category}/{failure.outcome}" if failure else "answered" if row.result else "cancelled"
        )
        wait = failure.retry_after_s if failure and failure.retry_after_s else "-"
        line = f"{row.target.key:12} {row.case:14} {said:30} {wait!s:>7} {row.seconds:8.1f}"
        terminalreporter.line(f"{line} {row.requests:9} {len(row.left):5}")
