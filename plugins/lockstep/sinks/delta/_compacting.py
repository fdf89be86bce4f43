"""What compaction does with a Delta table: one log entry of `remove` and `add` actions without a change of data."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import CommitProperties, DeltaTable, Transaction
from deltalake.schema import PrimitiveType
from deltalake.transaction import AddAction, RemoveAction

from lockstep.errors import ExpiryRefused, PreflightRefused
from lockstep.sinks.adopting import Answer
from lockstep.sinks.compacting import CompactingTable, NewFile, Replacement, TableFile
from lockstep.sinks.delta._columns import new_columns
from lockstep.sinks.delta._markers import TxnMarkers
from lockstep.sinks.delta._places import TablePlace, log_entry
from lockstep.sinks.delta._statistics import partition_text, statistics
from lockstep.wal.file_facts import FileFacts
from lockstep.wal.table_staging import CompactionFolder

_VECTORS = "deletionVectors"
_TYPES = ("boolean", "byte", "short", "integer", "long", "string", "date", "timestamp_ntz")
_WRITABLE = [PrimitiveType(name) for name in _TYPES]  #: what `partition_text` takes

Actions = list[AddAction | RemoveAction]
Send = Callable[[DeltaTable, Actions, CommitProperties], Answer]


class DeltaCompaction(CompactingTable[DeltaTable]):
    """`load`, `send` and `make_durable` are the sink's; `place` is where the table is."""

    def __init__(
        self,
        markers: TxnMarkers,
        place: TablePlace,
        epoch_column: str,
        load: Callable[[], DeltaTable],
        send: Send,
        durable: Callable[[DeltaTable], None],
    ) -> None:
        self.name = markers.owner.sink
        self._markers, self._place, self._epoch_column = markers, place, epoch_column
        self._folder = CompactionFolder(markers.owner.deployment, markers.owner.pipeline)
        self._load, self._send, self._durable = load, send, durable

    def load_head(self) -> DeltaTable:
        return self._load()

    def make_durable(self, head: DeltaTable) -> None:
        self._durable(head)

    # --- files ---

    def files(self, head: DeltaTable) -> Iterator[TableFile]:
        deleted = _with_deleted_rows(head)
        found = pa.table(head.get_add_actions())
        partitions = found["partition"].to_pylist() if "partition" in found.column_names else [{}] * found.num_rows
        columns = (found[name].to_pylist() for name in ("path", "size_bytes", "num_records"))
        for path, size, rows, partition, epochs in zip(*columns, partitions, self._epochs(found), strict=True):
            epoch, kept = self._folder.owner_of(path)
            if hides := any(name.endswith(f"/{unquote(path)}") for name in deleted):
                kept = "with rows that a deletion vector takes away"
            elif kept is None and rows is None:
                kept = "without statistics"
            told = json.dumps(partition, default=str, sort_keys=True)
            yield TableFile(path, size, rows or 0, told, epoch, kept, hides, epochs)

    def _epochs(self, found: pa.Table) -> list[tuple[int, int] | None]:
        """The least and the greatest of each file's rows."""
        bounds = [self._bound(found, name) for name in ("min", "max")]
        return [
            (least, greatest) if isinstance(least, int) and isinstance(greatest, int) else None
            for least, greatest in zip(*bounds, strict=True)
        ]

    def _bound(self, found: pa.Table, name: str) -> list[int | None]:
        told = found[name].type if name in found.column_names else None
        if told is None or not pa.types.is_struct(told) or told.get_field_index(self._epoch_column) < 0:
            return [None] * found.num_rows
        bounds: list[int | None] = pc.struct_field(found[name], [self._epoch_column]).to_pylist()
        return bounds

    def folder(self, number: int) -> str:
        return self._folder.of(number)

    def named(self, head: DeltaTable, path: str) -> str:
        return path

    def open_file(self, head: DeltaTable, path: str) -> Any:
        return self._place.open(unquote(path))  # as a URI has it

    def create_file(self, head: DeltaTable, path: str) -> AbstractContextManager[Any]:
        return self._place.create(path)

    def fault(self, head: DeltaTable, facts: FileFacts) -> str | None:
        try:
            if new_columns(self.name, head, facts.schema):
                return "with columns that the table lacks"
            by = head.metadata().partition_columns
            if odd := [one.name for one in head.schema().fields if one.name in by and one.type not in _WRITABLE]:
                return f"of partitions by {', '.join(odd)}, of a type whose values Lockstep can't write into the log"
        except PreflightRefused:
            return "with columns of another type than the table's"
        return None

    def readable(self, head: DeltaTable, since: datetime) -> Iterator[str]:
        """By the log: what an entry since then has taken out was there until then."""
        yield from pa.table(head.get_add_actions())["path"].to_pylist()
        yield from _named_since(self.name, self._place, head.version(), since)

    # --- commits ---

    def replace(self, head: DeltaTable, replacement: Replacement) -> Answer:
        actions = self.exchange(head, replacement.removed, replacement.added, changes=False)
        told = {
            "lockstep.compaction": str(replacement.number),
            "lockstep.files": f"{len(replacement.removed)} to {len(replacement.added)}",
        }
        rows = sum(file.rows for file in replacement.removed)
        transactions = self._markers.compacted(replacement.number, rows)
        return self._send(head, actions, _properties(transactions, told))

    def exchange(
        self, head: DeltaTable, removed: Sequence[TableFile], added: Sequence[NewFile], *, changes: bool
    ) -> Actions:
        """The actions by which files go and others come. `changes`: whether that changes rows.

        Each new file has the partition of those whose rows it has: files of Delta's own writers lack those columns.
        """
        now, partition_by = int(time.time() * 1000), head.metadata().partition_columns
        partitions = self._partitions(head) if removed and partition_by else {}
        alike = {file.partition: partitions.get(file.path, {}) for file in removed}
        found: Actions = [
            RemoveAction(file.path, changes, now, file.bytes, partitions.get(file.path, {})) for file in removed
        ]
        for new in added:
            bounds = statistics(new.facts, self._epoch_column)
            found.append(AddAction(new.path, new.bytes, alike[new.partition], now, changes, bounds))
        return found

    def _partitions(self, head: DeltaTable) -> dict[str, dict[str, str | None]]:
        """Each file's values to partition by, as the log has them."""
        found = pa.table(head.get_add_actions())
        told = zip(found["path"].to_pylist(), found["partition"].to_pylist(), strict=True)
        return {path: {name: partition_text(value) for name, value in values.items()} for path, values in told}

    def fence(self, head: DeltaTable, number: int) -> Answer:
        return self._send(head, [], _properties(self._markers.fenced(number), {"lockstep.fence": str(number)}))

    def last(self, head: DeltaTable) -> int | None:
        return self._markers.last_compaction(head)

    def knows(self, head: DeltaTable, number: int) -> bool:
        return self._markers.has_compaction(head, number)


def _named_since(sink: str, place: TablePlace, version: int, since: datetime) -> Iterator[str]:
    """Every file that an entry of the log names which was written at `since` or later."""
    written = place.log_entries()
    first = min((entry for entry, at in written.items() if at >= since), default=version + 1)
    before = first - 1 if first else 0  # an older one has to be there: else younger ones may be gone, too
    if missing := set(range(before, version + 1)) - written.keys():
        raise ExpiryRefused(
            f"sink {sink}: the table's log has no entry {min(missing)} any more, so nobody can tell which files a "
            f"reader of {since:%Y-%m-%d %H:%M} UTC needs: give --expire less, or keep the log for longer "
            "(delta.logRetentionDuration)"
        )
    for entry in sorted(number for number in written if number >= first):
        with place.open(log_entry(entry)) as file:
            for line in file.read().splitlines():
                action = json.loads(line)
                yield from (action[kind]["path"] for kind in ("add", "remove") if kind in action)


def _properties(transactions: Sequence[Transaction], told: dict[str, str]) -> CommitProperties:
    return CommitProperties(custom_metadata=told, max_commit_retries=0, app_transactions=list(transactions))


def _with_deleted_rows(head: DeltaTable) -> set[str]:
    """Files of which a deletion vector takes rows away, by their decoded URIs."""
    if _VECTORS not in (head.protocol().reader_features or ()):
        return set()
    uris = (uri for batch in head.deletion_vectors() for uri in pa.record_batch(batch).column(0).to_pylist())
    return set(map(unquote, uris))
