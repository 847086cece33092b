"""One seed, one life of a host with its fan-outs: random, virtual in time, the same again for the same seed.

Everything is the product's own but four parts: the runtime, the clock, the store's thread (see
:mod:`support.fan_outs.store`), and the processes that a call left behind.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import anyio.to_thread
import pytest
import trio
import trio.testing

from custodes.adapters.registry import Registry
from custodes.adapters.trust import trust
from custodes.supervision import tree
from custodes.supervision.asks import owner
from custodes.supervision.pools.pool_table import load_pools
from custodes.supervision.record import records, recovery
from custodes.supervision.writers import leases
from custodes.supervision.writers.lease_table import load_leases
from support.fan_outs import parents
from support.fan_outs.invariants import INVARIANTS
from support.fan_outs.life import Life
from support.fan_outs.stage import LIVES, USUAL
from support.fan_outs.store import InlineStore
from support.fan_outs.temper import draw_temper, draw_weights
from support.puppets import Violation
from support.simulation import seeded_scheduling

PATIENCE = 2_000.0
"""Virtual seconds after which a life counts as hung: most of its children in turn, each to its timeout."""

ADAPTER_YAML = """\
version: 1
id: {id}
runtime_entrypoints:
  dispatch: dispatch.py
  capabilities: [dispatch, model_selection, effort_selection, structured_output, usage, cost]
models:
  - {{id: large, bucket: large, default: true}}
  - {{id: small, bucket: small}}
efforts: [low, high]
default_effort: low
"""


def build(project: Path) -> Path:
    """A project with two adapters that are played, for any number of lives."""
    for adapter in ("one", "two"):
        folder = project / ".coding-os" / "adapters" / adapter
        folder.mkdir(parents=True)
        (folder / "adapter.yaml").write_text(ADAPTER_YAML.format(id=adapter))
        (folder / "dispatch.py").write_text("from support.fan_outs.stage import runtime as runtime\n")
        trust(folder)
    (project / ".coding-os" / "custodes.db").touch()  # where a nested process looks for its owner's
    (project / ".coding-os.yaml").write_text("agents: [one, two]\n")
    return project


def judge(life: Life) -> None:
    """:raises Violation: an invariant does not hold."""
    for invariant in INVARIANTS:
        invariant(life)


def life_of(seed: int, project: Path) -> Life:
    draw = random.Random(seed)  # noqa: S311  # repeatable, not secret
    return Life(seed, project.resolve(), draw, draw_temper(draw), draw_weights(draw, USUAL))


def live(seed: int, project: Path) -> Life:
    """Live one seed. :raises Violation: it did not come to its end."""
    life = life_of(seed, project)
    play(life, parents.host)
    return life


def play(life: Life, host: Callable[[Life], Awaitable[None]]) -> None:
    """Let a host live this life. :raises Violation: it did not come to its end."""
    LIVES[str(life.project)] = life
    life.store = store = InlineStore(life)
    with closing(store), seeded_scheduling(life.seed), simulated(life, store):
        try:
            trio.run(_bounded, life, store, host, clock=trio.testing.MockClock(autojump_threshold=0))
        except BaseException as error:
            raise Violation(f"the life ended with {error!r}") from error


async def _bounded(life: Life, store: InlineStore, host: Callable[[Life], Awaitable[None]]) -> None:
    with trio.fail_after(PATIENCE):
        parents.settle_on(life, **parents.draw_policy(life))
        await host(life)
        life.ended_at = trio.current_time()
    if store.made:
        life.rows = await store.read(lambda connection: records.latest_runs(connection, 10_000))
        life.leases = await store.read(load_leases)
        life.pools = await store.read(load_pools)


@contextmanager
def simulated(life: Life, store: InlineStore) -> Iterator[None]:
    """Put the parts of the simulation in place of those that take real time or real chance."""
    chance = random.getstate()
    registry = Registry.discover(life.project)
    tokens = random.Random(life.seed)  # noqa: S311  # as above

    async def inline(function: Any, *given: Any) -> Any:
        await anyio.lowlevel.checkpoint()
        return function(*given)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Registry, "discover", lambda project: registry)  # half a life's time went into stats
        patch.setattr(tree, "Database", store)
        patch.setattr(tree, "now", life.now)
        patch.setattr(tree, "current_tracer", life.spans.tracer)
        patch.setattr(leases, "now", life.now)
        patch.setattr(owner, "LOOK_S", 0.5)  # looking each 0.05 s would take half of a life's time
        patch.setattr(recovery, "end_survivors", life.end_survivors)
        patch.setattr(anyio.to_thread, "run_sync", inline)
        patch.setattr("secrets.token_hex", lambda size: tokens.randbytes(size).hex())
        random.seed(life.seed)
        logging.disable()  # thousands of faults are meant
        try:
            yield
        finally:
            logging.disable(logging.NOTSET)
            random.setstate(chance)
