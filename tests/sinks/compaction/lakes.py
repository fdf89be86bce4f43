"""Tables of both kinds as the tests of compaction see them, and what others do to them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa

from lockstep.sinks import compacting
from lockstep.sinks.adopting import AdoptingSink
from lockstep.sinks.compacting import CompactingTable, Compaction, Goal
from lockstep.sinks.delta import DeltaSink
from lockstep.sinks.values import Publication
from lockstep.testing._sealed_rows import SealedRows, sealed
from lockstep.testing._under_test import SinkUnderTest, epoch, prepare, publish
from tests.apart import apart
from tests.sinks.delta_target import DeltaUnderTest, append, on_table
from tests.sinks.iceberg.foreign_writers import appends
from tests.sinks.iceberg.iceberg_target import IcebergUnderTest

T = TypeVar("T")
ROWS = 20
EVERYTHING = Goal(lambda epoch: True, min_files=2)


class Lake(ABC):
    """A table whose sink publishes epochs of `ROWS` rows, two files each."""

    target: SinkUnderTest

    @abstractmethod
    def with_table(self, act: Callable[[CompactingTable[Any]], T]) -> T:
        """What this process, or one of its own, does by the sink."""

    @abstractmethod
    def files(self) -> dict[str, int]:
        """The table's files as a reader finds them, with the rows of each."""

    @abstractmethod
    def address(self) -> str:
        """What a reader is told to find the table by."""

    @abstractmethod
    def foreign_append(self) -> None:
        """Ten rows that others bring."""

    @abstractmethod
    def foreign_delete(self) -> None:
        """The rows of epoch 1 go."""

    @abstractmethod
    def foreign_compaction(self) -> None:
        """Somebody writes every file anew."""

    @abstractmethod
    def take_back(self) -> None:
        """Somebody has the table show what it showed before the last commit."""

    @abstractmethod
    def below(self) -> list[str]:
        """Every Parquet file below the table's folder, the table's or not."""

    def publish(self, number: int, wal: Sequence[SealedRows] | None = None) -> Sequence[SealedRows]:
        wal = wal if wal is not None else sealed(ROWS, start=1000 * number)
        at = epoch(number, token=10 * number, manifest=str(number))
        assert publish(self.target, at, prepare(self.target, at, wal), wal) is Publication.SENT
        return wal

    def fill(self, *numbers: int) -> dict[int, Sequence[SealedRows]]:
        """Publish these epochs."""
        return {number: self.publish(number) for number in numbers}

    def compact(self, goal: Goal = EVERYTHING) -> Compaction:
        return self.with_table(lambda table: compacting.compact(table, goal))

    def plan(self, goal: Goal = EVERYTHING) -> Compaction:
        return self.with_table(lambda table: compacting.plan(table, goal))

    def rows(self) -> Counter[str]:
        return Counter(map(repr, self.target.visible().to_pylist()))


class DeltaLake(Lake):
    def __init__(self, folder: Path, **arguments: Any) -> None:
        self.target = self._target = DeltaUnderTest(folder, **arguments)
        self.root = folder / "table"

    def publish(self, number: int, wal: Sequence[SealedRows] | None = None) -> Sequence[SealedRows]:
        return apart(lambda: Lake.publish(self, number, wal))

    def fill(self, *numbers: int) -> dict[int, Sequence[SealedRows]]:
        return apart(lambda: Lake.fill(self, *numbers))

    def with_table(self, act: Callable[[CompactingTable[Any]], T]) -> T:
        def run() -> T:
            sink = DeltaSink.open(self._target.sink(), self._target.context())
            assert isinstance(sink, AdoptingSink)
            table = sink.compaction()
            assert table is not None
            return act(table)

        return apart(run)

    def files(self) -> dict[str, int]:
        def look(found: Any) -> dict[str, int]:
            adds = pa.table(found.get_add_actions())
            return dict(zip(adds["path"].to_pylist(), adds["num_records"].to_pylist(), strict=True))

        return on_table(self.root, look)

    def address(self) -> str:
        return str(self.root)

    def foreign_append(self) -> None:
        rows = sealed(10, start=500_000)[0].table
        append(self.root, rows.append_column("lockstep_epoch", pa.array([None] * 10, pa.int64())))

    def foreign_delete(self) -> None:
        on_table(self.root, lambda found: found.delete("lockstep_epoch = 1") and None)

    def foreign_compaction(self) -> None:
        on_table(self.root, lambda found: found.optimize.compact() and None)

    def take_back(self) -> None:
        on_table(self.root, lambda found: found.restore(found.version() - 1) and None)

    def below(self) -> list[str]:
        found = [path for path in self.root.rglob("*.parquet") if "_delta_log" not in path.parts]
        return sorted(str(path.relative_to(self.root)) for path in found)


class IcebergLake(Lake):
    def __init__(self, dsn: str, folder: Path, **arguments: Any) -> None:
        self.target = self._target = IcebergUnderTest(dsn, folder, **arguments)

    def with_table(self, act: Callable[[CompactingTable[Any]], T]) -> T:
        with self._target.sink().opened(self._target.context()) as sink:
            assert isinstance(sink, AdoptingSink)
            table = sink.compaction()
            assert table is not None
            return act(table)

    def files(self) -> dict[str, int]:
        with self._target.table() as table:
            place, found = f"{table.location()}/", table.inspect.files()
            paths = [path.removeprefix(place) for path in found["file_path"].to_pylist()]
            return dict(zip(paths, found["record_count"].to_pylist(), strict=True))

    def address(self) -> str:
        with self._target.table() as table:
            return table.metadata_location

    def foreign_append(self) -> None:
        with self._target.table() as table:
            appends(table)

    def foreign_delete(self) -> None:
        with self._target.table() as table:
            table.delete("lockstep_epoch = 1")

    def foreign_compaction(self) -> None:
        with self._target.table() as table:
            table.overwrite(table.scan().to_arrow())

    def take_back(self) -> None:
        with self._target.table() as table:
            snapshot = table.current_snapshot()
            assert snapshot is not None and snapshot.parent_snapshot_id is not None
            table.manage_snapshots().rollback_to_snapshot(snapshot.parent_snapshot_id).commit()

    def below(self) -> list[str]:
        with self._target.table() as table:
            root = Path(table.location().removeprefix("file://"))
        return sorted(str(path.relative_to(root)) for path in root.rglob("*.parquet"))
