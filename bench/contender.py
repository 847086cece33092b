"""A contender of ``bench/dispatch.py``: a process of its own that measures what it is asked to, on request.

It is told a case and a size, a line of JSON each time, and answers with one. This module is imported in the
peers' own environments: standard library only.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

Case = Callable[[int], dict[str, Any]]
"""Measures with so many children, and says what came of it: seconds for each, or bytes."""


def serve(version: str, cases: Mapping[str, Case]) -> None:
    """Answer until the input ends. What goes wrong in a case is its answer: ``{"cannot": …}``.

    ``cpu`` is added to each: the processor's seconds that the whole case took, its set-up included, for each
    of its children. A machine with other work on it stretches every other figure.
    """
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # whatever a library prints is no answer
    print(json.dumps({"version": version, "cases": list(cases)}), file=answers)
    for line in sys.stdin:
        asked = json.loads(line)
        gc.collect()
        begun = time.process_time()
        try:
            answer = cases[asked["case"]](asked["size"])
            answer.setdefault("cpu", (time.process_time() - begun) / max(1, asked["size"]))
        except Exception as error:  # a contender that cannot is named, and the others go on
            answer = {"cannot": f"{type(error).__name__}: {error}"[:300]}
        print(json.dumps(answer), file=answers)
