"""What others do to a table, by pyiceberg on a catalog of their own."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

import pyarrow as pa
from pyiceberg.table import Table
from pyiceberg.types import StringType

from lockstep.testing._sealed_rows import table as rows_from

FOREIGN = 900_000_000  #: where the ids of rows begin that others bring
Deed = Callable[[Table], None]


def appends(table: Table) -> None:
    foreign = rows_from(10, FOREIGN).append_column("lockstep_epoch", pa.nulls(10, pa.int64()))
    table.append(foreign)


def compacts(table: Table) -> None:
    """Every row into one new file."""
    table.overwrite(table.scan().to_arrow())


def expires(table: Table) -> None:
    """Every snapshot but the newest."""
    table.maintenance.expire_snapshots().older_than(datetime.now() + timedelta(days=1)).commit()


def adds_a_column(table: Table) -> None:
    with table.update_schema() as update:
        update.add_column(f"remark_{len(table.schema().fields)}", StringType())


def sets_a_property(table: Table) -> None:
    with table.transaction() as transaction:
        transaction.set_properties({"comment": "theirs"})


def rolls_back(table: Table) -> None:
    """By one snapshot."""
    now = table.current_snapshot()
    assert now is not None and now.parent_snapshot_id is not None
    table.manage_snapshots().rollback_to_snapshot(now.parent_snapshot_id).commit()


HARMLESS: dict[str, Deed] = {
    "append": appends,
    "compaction": compacts,
    "expire_snapshots": expires,
    "a column": adds_a_column,
    "a property": sets_a_property,
}
