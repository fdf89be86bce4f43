"""Compaction of a Delta table: one log entry of `remove` and `add` actions that change no data."""

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
from lockstep.sinks.adopting import CommitOutcome
from lockstep.sinks.compacting import CompactingTable, Replacement, RewrittenFile, TableFile
from lockstep.sinks.delta._columns import new_columns, partition_text, statistics
from lockstep.sinks.delta._locations import TableLocation, log_entry
from lockstep.sinks.delta._log import TxnMarkers
from lockstep.wal.file_facts import FileFacts
from lockstep.wal.table_staging import CompactionFolder

_VECTORS = "deletionVectors"
_TYPES = ("boolean", "byte", "short", "integer", "long", "string", "date", "timestamp_ntz")
_WRITABLE = [PrimitiveType(name) for name in _TYPES]  #: types that `partition_text` supports

Actions = list[AddAction | RemoveAction]
Send = Callable[[DeltaTable, Actions, CommitProperties], CommitOutcome]


class DeltaCompaction(CompactingTable[DeltaTable]):
    """`load`, `send` and `durable` are methods of the sink."""

    def __init__(
        self,
        markers: TxnMarkers,
        place: TableLocation,
        epoch_column: str,
        load: Callable[[], DeltaTable],
        send: Send,
        durable: Callable[[DeltaTable], None],
    ) -> None:
        self.name = markers.owner.sink
        self._markers, self._location, self._epoch_column = markers, place, epoch_column
        self._folder = CompactionFolder(markers.owner.deployment, markers.owner.pipeline)
        self._load, self._send, self._durable = load, send, durable

    def load_head(self) -> DeltaTable:
        return self._load()

    def make_durable(self, head: DeltaTable) -> None:
        self._durable(head)

    # --- files ---

    def files(self, head: DeltaTable) -> Iterator[TableFile]:
        deleted = _with_deleted_rows(head)
        actions = pa.table(head.get_add_actions())
        partitions = (
            actions["partition"].to_pylist() if "partition" in actions.column_names else [{}] * actions.num_rows
        )
        columns = (actions[name].to_pylist() for name in ("path", "size_bytes", "num_records"))
        for path, size, rows, values, epochs in zip(*columns, partitions, self._epochs(actions), strict=True):
            epoch, skip_reason = self._folder.owner_of(path)
            if hides := any(name.endswith(f"/{unquote(path)}") for name in deleted):
                skip_reason = "with rows that a deletion vector hides"
            elif skip_reason is None and rows is None:
                skip_reason = "without statistics"
            partition_key = json.dumps(values, default=str, sort_keys=True)
            yield TableFile(path, size, rows or 0, partition_key, epoch, skip_reason, hides, epochs)

    def _epochs(self, actions: pa.Table) -> list[tuple[int, int] | None]:
        """Least and greatest epoch of each file, where the log has both."""
        bounds = []
        for name in ("min", "max"):
            type = actions[name].type if name in actions.column_names else None
            if type is None or not pa.types.is_struct(type) or type.get_field_index(self._epoch_column) < 0:
                return [None] * actions.num_rows
            bounds.append(pc.struct_field(actions[name], [self._epoch_column]).to_pylist())
        return [
            (least, greatest) if isinstance(least, int) and isinstance(greatest, int) else None
            for least, greatest in zip(*bounds, strict=True)
        ]

    def folder(self, number: int) -> str:
        return self._folder.of(number)

    def named(self, head: DeltaTable, path: str) -> str:
        return path

    def open_file(self, head: DeltaTable, path: str) -> Any:
        return self._location.open(unquote(path))  # as a URI has it

    def create_file(self, head: DeltaTable, path: str) -> AbstractContextManager[Any]:
        return self._location.create(path)

    def fault(self, head: DeltaTable, facts: FileFacts) -> str | None:
        try:
            if new_columns(self.name, head, facts.schema):
                return "with columns that the table lacks"
            partition_by = head.metadata().partition_columns
            if unwritable := [
                column.name
                for column in head.schema().fields
                if column.name in partition_by and column.type not in _WRITABLE
            ]:
                return f"partitioned by {', '.join(unwritable)}, of a type that Lockstep can't write into the log"
        except PreflightRefused:
            return "with columns of another type than the table's"
        return None

    def readable(self, head: DeltaTable, since: datetime) -> Iterator[str]:
        """According to the log: a file that an entry since then has removed was readable until then."""
        yield from pa.table(head.get_add_actions())["path"].to_pylist()
        yield from _named_since(self.name, self._location, head.version(), since)

    # --- commits ---

    def replace(self, head: DeltaTable, replacement: Replacement) -> CommitOutcome:
        actions = self.exchange(head, replacement.removed, replacement.added, changes=False)
        metadata = {
            "lockstep.compaction": str(replacement.number),
            "lockstep.files": f"{len(replacement.removed)} to {len(replacement.added)}",
        }
        rows = sum(file.rows for file in replacement.removed)
        transactions = self._markers.compacted(replacement.number, rows)
        return self._send(head, actions, _properties(transactions, metadata))

    def exchange(
        self, head: DeltaTable, removed: Sequence[TableFile], added: Sequence[RewrittenFile], *, changes: bool
    ) -> Actions:
        """Actions that remove files and add others; `changes`: whether that changes rows.

        A new file gets the partition values of the files that its rows come from: files of Delta's own writers lack
        these columns.
        """
        timestamp, partition_by = int(time.time() * 1000), head.metadata().partition_columns
        partitions = self._partitions(head) if removed and partition_by else {}
        alike = {file.partition: partitions.get(file.path, {}) for file in removed}
        actions: Actions = [
            RemoveAction(file.path, changes, timestamp, file.bytes, partitions.get(file.path, {})) for file in removed
        ]
        for new in added:
            bounds = statistics(new.facts, self._epoch_column)
            actions.append(AddAction(new.path, new.bytes, alike[new.partition], timestamp, changes, bounds))
        return actions

    def _partitions(self, head: DeltaTable) -> dict[str, dict[str, str | None]]:
        """Partition values of each file, as the log has them."""
        actions = pa.table(head.get_add_actions())
        values_by_path = zip(actions["path"].to_pylist(), actions["partition"].to_pylist(), strict=True)
        return {
            path: {name: partition_text(value) for name, value in values.items()} for path, values in values_by_path
        }

    def fence(self, head: DeltaTable, number: int) -> CommitOutcome:
        return self._send(head, [], _properties(self._markers.fenced(number), {"lockstep.fence": str(number)}))

    def last(self, head: DeltaTable) -> int | None:
        return self._markers.last_compaction(head)

    def knows(self, head: DeltaTable, number: int) -> bool:
        return self._markers.has_compaction(head, number)


def _named_since(sink: str, place: TableLocation, version: int, since: datetime) -> Iterator[str]:
    """Every file named in a log entry that was written at `since` or later."""
    written = place.log_entries()
    first = min((entry for entry, at in written.items() if at >= since), default=version + 1)
    before = first - 1 if first else 0  # without an older entry, entries since then may be missing, too
    if missing := set(range(before, version + 1)) - written.keys():
        raise ExpiryRefused(
            f"sink {sink}: the table's log has lost entry {min(missing)}, so the files that a reader of "
            f"{since:%Y-%m-%d %H:%M} UTC needs are unknown: give --expire a shorter time, or keep the log for longer "
            "(delta.logRetentionDuration)"
        )
    for entry in sorted(number for number in written if number >= first):
        with place.open(log_entry(entry)) as file:
            for line in file.read().splitlines():
                action = json.loads(line)
                yield from (action[kind]["path"] for kind in ("add", "remove") if kind in action)


def _properties(transactions: Sequence[Transaction], metadata: dict[str, str]) -> CommitProperties:
    return CommitProperties(custom_metadata=metadata, max_commit_retries=0, app_transactions=list(transactions))


def _with_deleted_rows(head: DeltaTable) -> set[str]:
    """Decoded URIs of files with a deletion vector."""
    if _VECTORS not in (head.protocol().reader_features or ()):
        return set()
    uris = (uri for batch in head.deletion_vectors() for uri in pa.record_batch(batch).column(0).to_pylist())
    return set(map(unquote, uris))
