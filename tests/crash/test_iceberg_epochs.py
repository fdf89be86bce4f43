"""A whole epoch into an Iceberg table and Postgres, killed and stopped at every crash point."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import NoSuchTableError
from pyiceberg.table import Table as LoadedTable

from lockstep.operations.verify import verify
from lockstep.sinks.iceberg import IcebergSink
from stack.postgres import PostgresServer
from tests.crash.adopting_world import OUTPUT, SINK, AdoptingWorld, Table, make_adopting_world
from tests.crash.test_adoption import SWEEPS
from tests.crash.test_kill_and_zombie import hits, strike_each
from tests.crash.victims import in_turn
from tests.sampling import Sampling

EMPTY = pa.table({"day": [], "number": [], "label": []})


@contextmanager
def loaded_table(dsn: str) -> Iterator[LoadedTable | None]:
    """As its catalog has it, without the sink."""
    catalog = SqlCatalog("warehouse", uri=dsn.replace("postgresql://", "postgresql+psycopg2://"))
    try:
        yield catalog.load_table("db.numbers")
    except NoSuchTableError:
        yield None
    finally:
        catalog.engine.dispose()


def iceberg_table(dsn: str, folder: Path) -> Table:
    sink = IcebergSink(
        SINK, output=OUTPUT, table="db.numbers", catalog="warehouse", warehouse=str(folder / "lake"), create=True
    )
    root = folder / "lake" / "db" / "numbers"

    def rows() -> pa.Table:
        with loaded_table(dsn) as table:
            return table.scan().to_arrow() if table else EMPTY

    def files() -> list[str]:
        with loaded_table(dsn) as table:
            paths = table.inspect.files()["file_path"].to_pylist() if table else []
        return [path.removeprefix(f"file://{root}/") for path in paths]

    return Table(sink, root, rows, files)


@pytest.fixture(scope="module")
def world(
    ledger_server: PostgresServer, warehouse_server: PostgresServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[AdoptingWorld]:
    folder = tmp_path_factory.mktemp("iceberg")
    name = f"iceberg_{folder.parent.name.replace('-', '_')}"
    ledger_server.create_database(name)
    warehouse = warehouse_server.create_database(name)
    yield make_adopting_world(ledger_server.dsn(name), warehouse, folder, iceberg_table(warehouse, folder))


@pytest.mark.timeout(1200)  # each commit takes a catalog a while, and the whole is some eighty strikes in every way
def test_every_row_is_shown_once_wherever_a_process(
    world: AdoptingWorld,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    subtests: pytest.Subtests,
    sampling: Sampling,
) -> None:
    """… is killed, or hangs and is released after another one has finished the epoch."""
    shares = [hit for hit in hits(world, monkeypatch) if "warehouse" not in hit.task]
    days = strike_each(world, in_turn(sampling, shares, SWEEPS, every=8), tmp_path, subtests)
    for day in days:
        assert all(one.agrees and one.compared for one in verify(world.runtime(), world.epoch_of(day)))
