"""Run one seed from an empty ledger to its last check."""

from __future__ import annotations

import shutil
from pathlib import Path

from lockstep.epoch import KeyedBy
from tests.simulation.chaos import Chaos
from tests.simulation.invariants import Watch
from tests.simulation.misfortunes import Taste
from tests.simulation.servers import Server
from tests.simulation.sinks import SERVERS
from tests.simulation.world import make_world

NONE = Taste()


class SimulationFailed(AssertionError):
    """The seed, what is broken, and how it came to that."""


def simulate(
    dsn: str,
    memory: Path,
    seed: int,
    taste: Taste = NONE,
    *,
    packs: bool = False,
    restates: bool = False,
    restores: bool = False,
    merges: bool = False,
) -> list[str]:
    """The trace of what happened. `taste`: beside the seed's own. `packs`: epochs are decided together where they can.
    `restates`: some runs replace what is published; `restores`: of intervals, and some of these by what was published
    before, and WALs are kept; `merges`: of a cursor, whose stuck epochs are merged. Raises `SimulationFailed`."""
    folder = memory / "simulation"  # the same whenever it runs, as is all that a trace names
    folder.mkdir()
    identity = KeyedBy.CURSOR if merges or (seed % 3 == 0 and not restores) else KeyedBy.INTERVAL
    world = make_world(dsn, folder, identity, files=seed % 2 == 0, keep_wal=2 if restores else None, merges=merges)
    servers: dict[str, Server] = {}
    watch = Watch(world, servers)
    servers.update({name: Server(name, watch.on_show) for name in ("voting", "redoing")})
    SERVERS.clear()
    SERVERS.update(servers)
    world.on_discard = watch.on_discard
    chaos = Chaos(seed, world, servers, watch, taste, packs=packs, restates=restates, restores=restores)
    try:
        chaos.unfold()
    except Exception as error:
        told = "\n".join([*chaos.trace, f"{type(error).__name__}: {error}"])
        raise SimulationFailed(f"LOCKSTEP_SEED={seed} repeats this:\n{told}") from error
    finally:
        chaos.close()
        world.close()
        shutil.rmtree(folder)
    return chaos.trace
