"""The sweep of `test_delta` with the table on a real S3 server: kills and zombies, in a process that may fork."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, cast

import pytest

from lockstep.connections.object_store.store import ObjectStore
from lockstep.sinks.delta import DeltaSink
from tests.apart import apart
from tests.clean_process import CleanProcess
from tests.crash.adopting_world import OUTPUT, SINK, Table, make_adopting_world
from tests.crash.test_delta import ROWS, SWEEPS, DeltaWorld
from tests.crash.test_kill_and_zombie import hits, strike_each
from tests.crash.victims import Action, Hit
from tests.sampling import Sampling
from tests.sinks.delta_on_s3 import looked_at


@dataclass(frozen=True)
class WorldOnS3(DeltaWorld):
    """`told`: the DSNs of ledger and warehouse, a folder, and the table's URI."""

    told: tuple[str, str, str, str] = ("", "", "", "")

    def staged_at_home(self) -> list[str]:
        paths = apart(lambda: [found.path for found in ObjectStore.at(self.told[3]).find_below("_lockstep")])
        return sorted(path for path in paths if path.endswith(".parquet"))


@cache
def _world(*told: str) -> WorldOnS3:
    ledger, warehouse, folder, uri = told
    table = Table(
        DeltaSink(SINK, output=OUTPUT, path=uri, create=True),
        Path(),
        lambda: looked_at(uri, lambda log: log.rows(ROWS)),
        lambda: list(looked_at(uri, lambda log: log.files)),
    )
    made = make_adopting_world(ledger, warehouse, Path(folder), table)
    place = (ledger, warehouse, made.folder, made.pipeline, made.staging_folder)
    return WorldOnS3(*place, table=table, told=(ledger, warehouse, folder, uri))


def _hits(*told: str) -> list[Hit]:
    world = _world(*told)
    with pytest.MonkeyPatch.context() as environment:
        reached = apart(lambda: hits(world, environment))
    next(world.days)  # the dry run's, which only its process has counted
    return [hit for hit in reached if SINK in hit.task or hit.task in ("stage", "cleanup")]


@dataclass
class _Subtests:
    failed: list[str] = field(default_factory=list)

    @contextmanager
    def test(self, msg: str) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            self.failed.append(f"{msg}: {error!r}")


def _strike(struck_at: list[Hit], action: Action, resume: str, *told: str) -> list[str]:
    """What went wrong, of each place."""
    subtests = _Subtests()
    places = (((action, resume), hit) for hit in struck_at)
    strike_each(_world(*told), places, Path(told[2]), cast(Any, subtests))
    return subtests.failed


@pytest.fixture(scope="module")
def clean() -> Iterator[CleanProcess]:
    with CleanProcess() as process:
        yield process


@pytest.mark.parametrize(("action", "resume"), SWEEPS)
def test_every_row_is_shown_once_wherever_a_process(
    clean: CleanProcess,
    s3_uri: str,
    ledger_dsn: str,
    warehouse_dsn: str,
    tmp_path: Path,
    action: Action,
    resume: str,
    sampling: Sampling,
) -> None:
    """… is killed, or hangs and is released after another one has finished the epoch."""
    told = (ledger_dsn, warehouse_dsn, str(tmp_path), f"{s3_uri}/table")
    turn = SWEEPS.index((action, resume))
    mine = clean.call(_hits, *told)[turn :: len(SWEEPS)]  # of a local table each place is struck in every way
    struck_at = sampling.sample(mine, 1)
    assert struck_at and clean.call(_strike, struck_at, action, resume, *told) == []
