"""The programs of the demo: each reads its prompt on stdin, does real work in the current directory, and
prints its evidence as one JSON object. Standard library only; it is copied into the demo's project.

    python tools.py history|tests|lint|tidy
"""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

Finding = dict[str, str]


def history() -> dict[str, Any]:
    """What the commits say: who, how often, which files change most."""
    log = _run("git", "log", "--no-merges", "--format=%h%x09%ad%x09%s", "--date=short").stdout.splitlines()
    names = _run("git", "log", "--no-merges", "--name-only", "--format=").stdout.split()
    claims = [
        {"claim": subject, "source": f"commit {commit}, {date}", "confidence": "high"}
        for commit, date, subject in (line.split("\t", 2) for line in log)
    ]
    busiest = ", ".join(f"{name} ({count})" for name, count in Counter(names).most_common(2))
    return {"summary": f"{len(log)} commits; changed most often: {busiest}", "claims": claims}


def tests() -> dict[str, Any]:
    """The project's own test suite, run."""
    run = _run(
        sys.executable,
        "-m",
        "unittest",
        "discover",
        "--start-directory",
        "tests",
        "--top-level-directory",
        ".",
    )
    ran = re.search(r"^Ran (\d+) tests?", run.stderr, re.MULTILINE)
    count = ran[1] if ran else "0"
    verdict = run.stderr.strip().splitlines()[-1] if run.stderr.strip() else "no output"
    passed = run.returncode == 0 and count != "0"
    return {
        "summary": f"{count} tests: {verdict}",
        "signals": [
            {"name": "tests run", "value": count},
            {"name": "result", "value": verdict, "healthy": passed},
        ],
    }


def lint() -> dict[str, Any]:
    """Every source file compiled with warnings as errors, and looked through for unused imports."""
    found = [finding for path in _sources() for finding in _lint(path)]
    return {
        "summary": f"{len(_sources())} files, {len(found)} findings",
        "findings": found,
        "verdict": "request_changes" if found else "approve",
    }


def tidy() -> dict[str, Any]:
    """Removes what `lint` finds and can be removed safely, then runs the tests again."""
    changed = [str(path) for path in _sources() if _tidy(path)]
    again, tested = lint(), tests()
    return {
        "summary": f"{len(changed)} files changed; {again['summary']}; {tested['summary']}",
        "files_changed": changed,
        "checks": [
            {"name": "lint", "passed": not again["findings"], "detail": again["summary"]},
            {"name": "tests", "passed": tested["signals"][1]["healthy"], "detail": tested["summary"]},
        ],
    }


def _sources() -> list[Path]:
    return sorted(path for path in Path().rglob("*.py") if not path.parts[0].startswith("."))


def _lint(path: Path) -> list[Finding]:
    source = path.read_text(encoding="utf-8")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            tree = ast.parse(source, str(path))
        except SyntaxError as error:
            return [_finding(path, error.lineno or 1, f"syntax error: {error.msg}", "high")]
    found = [_finding(path, warning.lineno, str(warning.message), "medium") for warning in caught]
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    unused = [
        _finding(path, node.lineno, f"unused import {node.names[0].name!r}", "low")
        for node in _unused(tree, used)
    ]
    return found + unused


def _unused(tree: ast.Module, used: set[str]) -> list[ast.Import]:
    return [
        node
        for node in tree.body
        if isinstance(node, ast.Import)
        and len(node.names) == 1
        and (node.names[0].asname or node.names[0].name.partition(".")[0]) not in used
    ]


def _tidy(path: Path) -> bool:
    source = path.read_text(encoding="utf-8")
    lines = source.splitlines(keepends=True)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        tree = ast.parse(source, str(path))
    for warning in caught:
        if "invalid escape sequence" in str(warning.message) or "is an invalid escape" in str(
            warning.message
        ):
            # A string whose escapes are no escapes means what it says as a raw string.
            lines[warning.lineno - 1] = re.sub(
                r'(?<![rbfu\w])"(?=[^"]*\\[dsw.])', 'r"', lines[warning.lineno - 1], count=1
            )
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    for node in sorted(_unused(tree, used), key=lambda node: node.lineno, reverse=True):
        del lines[node.lineno - 1]
    tidied = "".join(lines)
    if tidied != source:
        path.write_text(tidied, encoding="utf-8")
    return tidied != source


def _finding(path: Path, line: int, message: str, severity: str) -> Finding:
    return {"message": message, "place": f"{path}:{line}", "severity": severity}


def _run(*argv: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(argv, capture_output=True, text=True, check=False)


if __name__ == "__main__":
    programs = {"history": history, "tests": tests, "lint": lint, "tidy": tidy}
    sys.stdout.write(json.dumps(programs[sys.argv[1]]()) + "\n")
