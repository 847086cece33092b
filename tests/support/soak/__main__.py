"""Many surfaces at once on one project, killed at random. Exit code 1 where a fault was found."""

from __future__ import annotations

import argparse
import random
import shutil
import sys
import tempfile
from pathlib import Path

import anyio

from support.soak.soak import soaking


def main() -> int:
    parser = argparse.ArgumentParser(prog="scripts/soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=5, help="how long (%(default)s)")
    parser.add_argument("--seed", type=int, help="the choices; any where not given")
    parser.add_argument("--keep", action="store_true", help="keep the folder though nothing was found")
    asked = parser.parse_args()
    seed = random.SystemRandom().randrange(1_000_000) if asked.seed is None else asked.seed
    folder = Path(tempfile.mkdtemp(prefix="custodes-soak-"))
    print(f"soak of {asked.minutes:g} min, seed {seed}, in {folder}", flush=True)
    with soaking(folder, seed=seed, seconds=asked.minutes * 60) as soak:
        anyio.run(soak.run, backend="trio")
        faults = soak.crew.faults
        print(*soak.told(), sep="\n")
    if faults:
        print(f"{len(faults)} faults", *faults, sep="\n")
        print(
            f"again: scripts/soak --minutes {asked.minutes:g} --seed {seed}; what was said lies in {folder}"
        )
        return 1
    print("no fault")
    if not asked.keep:
        shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
