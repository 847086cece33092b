"""Every bench by one command: what was found goes into bench/results.json and docs/performance.md.

    scripts/bench [NAME…] [--quick] [--rounds N] [--no-peers] [--peers-in FOLDER] [--into FILE]
    scripts/bench --page
    scripts/bench --compare FIRST.json SECOND.json

Without a name all of them run, one after another. What a bench that does not run this time found before stays
in both files, and one that fails is named while the others go on. ``--into`` writes another results file and
leaves the page alone; two such files are what ``--compare`` is for.
"""

from __future__ import annotations

import argparse
import sys
import time
import traceback
from pathlib import Path

from bench import (
    actors,
    dispatch,
    growth,
    health,
    hub,
    overseer,
    policy,
    process,
    profile,
    startup,
    telemetry,
)
from bench.suite import page
from bench.suite.compare import comparison
from bench.suite.contest import ROOT, hold
from bench.suite.measure import QUICK_ROUNDS, Bench
from bench.suite.results import Found, Results, ResultsError, read, schema, write
from bench.suite.table import figures, targets

RESULTS = ROOT / "bench" / "results.json"
SCHEMA = ROOT / "bench" / "results.schema.json"
PAGE = ROOT / "docs" / "performance.md"
PEERS_IN = ROOT / "bench" / ".peers"
BENCHES: dict[str, Bench] = {
    each.BENCH.name: each.BENCH
    for each in (
        dispatch,
        profile,
        growth,
        startup,
        actors,
        health,
        policy,
        process,
        overseer,
        telemetry,
        hub,
    )
}


def main() -> int:
    given = _parser().parse_args()
    try:
        if given.compare:
            first, second = (read(file) for file in given.compare)
            lines, agree = comparison(first, second)
            print("\n".join(lines))
            return 0 if agree else 1
        if given.page:
            page.write(PAGE, read(RESULTS))
            SCHEMA.write_bytes(schema())
            return 0
        into = given.into or RESULTS
        results = read(into) if into.exists() else Results()
    except ResultsError as error:
        print(f"bench: {error}", file=sys.stderr)
        return 2
    failed = []
    for name in given.names or BENCHES:
        print(f"\n== {name}", flush=True)
        found = _run(BENCHES[name], given)
        results.benches[name] = found
        if found.failed:
            failed.append(name)
            print(f"bench: {name} failed: {found.failed}", file=sys.stderr)
        else:
            print("\n".join(figures(found)), flush=True)
        write(into, results)
        if into == RESULTS:
            page.write(PAGE, results)
    print()
    print("\n".join(targets({name: results.benches[name] for name in given.names or BENCHES})))
    return 1 if failed else 0


def _run(bench: Bench, given: argparse.Namespace) -> Found:
    """What it found; where the suite itself fails at it, that, so that the others go on."""
    peers_in = None if given.no_peers else given.peers_in
    try:
        return hold(bench, quick=given.quick, rounds=given.rounds, peers_in=peers_in)
    except Exception as error:  # named, and the next bench runs
        traceback.print_exc()
        at = time.strftime("%Y-%m-%d", time.gmtime())
        return Found(at=at, machine="", load=(0, 0), failed=f"{type(error).__name__}: {error}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="scripts/bench", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(BENCHES)}", type=_name)
    parser.add_argument("--quick", action="store_true", help=f"{QUICK_ROUNDS} rounds, and nothing large")
    parser.add_argument("--rounds", type=_rounds, default=0, help="of each measure that does not say its own")
    parser.add_argument("--no-peers", action="store_true")
    parser.add_argument(
        "--peers-in",
        type=Path,
        default=PEERS_IN,
        help="where the peers' environments are kept (bench/.peers)",
    )
    parser.add_argument("--into", type=Path, metavar="FILE", help="write there, and leave the page alone")
    parser.add_argument(
        "--page", action="store_true", help="write the page from bench/results.json, and the schema of that"
    )
    parser.add_argument("--compare", nargs=2, type=Path, metavar="FILE", help="two results, ratio by ratio")
    return parser


def _name(given: str) -> str:
    if given not in BENCHES:
        raise argparse.ArgumentTypeError(f"there is no bench '{given}'; there are {', '.join(BENCHES)}")
    return given


def _rounds(given: str) -> int:
    if not given.isdecimal() or int(given) < 1:
        raise argparse.ArgumentTypeError(f"'{given}' is no number of rounds; it takes 1 or more")
    return int(given)


if __name__ == "__main__":
    sys.exit(main())
