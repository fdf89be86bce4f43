"""Compaction of an Iceberg table: a snapshot with the operation `replace`, by one conditional commit."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from datetime import datetime
from typing import Any

import pyarrow as pa
from pyiceberg.conversions import from_bytes
from pyiceberg.manifest import DataFile
from pyiceberg.table import Table
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.refs import SnapshotRefType
from pyiceberg.types import LongType

from lockstep.errors import ExpiryRefused, PreflightRefused
from lockstep.sinks.adopting import CommitOutcome
from lockstep.sinks.compacting import CompactingTable, Replacement, RewrittenFile, TableFile
from lockstep.sinks.iceberg._columns import DROPPED, mapped_ids, named_by_ids
from lockstep.sinks.iceberg._data_files import SealedDataFile, data_file, faults
from lockstep.sinks.iceberg._table import LakeTable
from lockstep.wal.file_facts import FileFacts, leaves_of
from lockstep.wal.table_staging import CompactionFolder, with_field_ids

_FIRST = 1  #: number of a table's first snapshot


class IcebergCompaction(CompactingTable[Table]):
    """`load`: loads the table after checking that it is this sink's and may be rewritten."""

    def __init__(self, table: LakeTable, epoch_column: str, load: Callable[[], Table]) -> None:
        self.name, self._table, self._load = table.owner.sink, table, load
        self._epoch_column = epoch_column
        self._folder = CompactionFolder(table.owner.deployment, table.owner.pipeline)

    def load_head(self) -> Table:
        return self._load()

    # --- files ---

    def files(self, head: Table) -> Iterator[TableFile]:
        for task in self._tasks(head):
            file = task.file
            epoch, skip_reason = self._folder.owner_of(file.file_path)
            if skip_reason is None and task.delete_files:
                skip_reason = "with rows that delete files hide"
            elif skip_reason is None and file.spec_id != head.metadata.default_spec_id:
                skip_reason = "of an older partitioning"
            partition = f"{file.spec_id}:{file.partition!r}"
            hides = epoch is None and bool(task.delete_files)  # irrelevant where the file is removed entirely
            size, rows, epochs = file.file_size_in_bytes, file.record_count, self._epochs(head, file)
            yield TableFile(file.file_path, size, rows, partition, epoch, skip_reason, hides, epochs)

    def _epochs(self, head: Table, file: DataFile) -> tuple[int, int] | None:
        """Least and greatest epoch of a file's rows."""
        try:
            column = head.schema().find_field(self._epoch_column)
        except ValueError:
            return None
        if not isinstance(column.field_type, LongType):
            return None
        if (file.null_value_counts or {}).get(column.field_id) == file.record_count:
            return 1, 0  # matches no epoch
        encoded = [(bounds or {}).get(column.field_id) for bounds in (file.lower_bounds, file.upper_bounds)]
        least, greatest = (from_bytes(LongType(), value) if value is not None else None for value in encoded)
        return (least, greatest) if isinstance(least, int) and isinstance(greatest, int) else None

    def _tasks(self, head: Table) -> list[Any]:
        with self._table.link.naming("listing the table's files"):
            try:
                return list(head.scan().plan_files())
            except ValueError as error:  # pyiceberg doesn't support some kinds of deletes
                raise PreflightRefused(
                    f"sink {self.name}: the table's files can't be listed: {error}; have the table rewrite them "
                    "without such deletes (rewrite_data_files)"
                ) from error

    def folder(self, number: int) -> str:
        return self._folder.of(number)

    def named(self, head: Table, path: str) -> str:
        place = head.location().rstrip("/")
        return f"{f'file://{place}' if place.startswith('/') else place}/{path}"

    def open_file(self, head: Table, path: str) -> Any:
        return head.io.new_input(path).open()

    @contextmanager
    def create_file(self, head: Table, path: str) -> Iterator[Any]:
        with closing(head.io.new_output(self.named(head, path)).create()) as file:
            yield file

    def fault(self, head: Table, facts: FileFacts) -> str | None:
        problems = faults(head.metadata, SealedDataFile("", 0, self._named_facts(head, facts)))
        return problems[0] if problems else None

    def numbered(self, head: Table, schema: pa.Schema) -> pa.Schema:
        return named_by_ids(head.metadata, with_field_ids(schema, mapped_ids(head.metadata, schema)))

    def _named_facts(self, head: Table, facts: FileFacts) -> FileFacts:
        """Facts under the table's current column names, without dropped columns: field ids identify the columns."""
        schema = self.numbered(head, facts.schema)
        names = [(len(a.name), b.name) for a, b in zip(facts.schema, schema, strict=True) for _ in leaves_of([a])]
        renamed = [
            (column, f"{new}{column.path[old:]}") for column, (old, new) in zip(facts.columns, names, strict=True)
        ]
        columns = tuple(replace(column, path=path) for column, path in renamed if not path.startswith(DROPPED))
        remaining = pa.schema([field for field in schema if not field.name.startswith(DROPPED)])
        return replace(facts, schema=remaining, columns=columns)

    def readable(self, head: Table, since: datetime) -> Iterator[str]:
        """Files of every snapshot that hasn't expired: whether a snapshot is kept by age, branch or tag is the table's
        decision."""
        if head.properties.get("gc.enabled", "true").lower() == "false":
            raise ExpiryRefused(
                f"sink {self.name}: the table has gc.enabled=false, so its files may be shared: nothing is deleted"
            )
        for expired in _expired_since(head.metadata, since.timestamp() * 1000):
            raise ExpiryRefused(
                f"sink {self.name}: {expired} is expired, and may have been current after {since:%Y-%m-%d %H:%M} UTC, "
                "so the files that readers need are unknown: give --expire a shorter time, or keep snapshots for longer"
            )
        with self._table.link.naming("listing the files of the table's snapshots"):
            manifests = {
                manifest_file.manifest_path: manifest_file
                for snapshot in head.snapshots()
                for manifest_file in snapshot.manifests(head.io)
            }
            for manifest in manifests.values():
                entries = manifest.fetch_manifest_entry(head.io, discard_deleted=True)
                yield from (entry.data_file.file_path for entry in entries)

    # --- commits ---

    def replace(self, head: Table, replacement: Replacement) -> CommitOutcome:
        new = [data_file(head.metadata, file) for file in self.written(head, replacement.added)]
        return self._table.replace(head, replacement.number, self.found(head, replacement.removed), new)

    def found(self, head: Table, files: Sequence[TableFile]) -> list[DataFile]:
        """The table's data files with these paths."""
        paths = {file.path for file in files}
        return [task.file for task in self._tasks(head) if task.file.file_path in paths] if paths else []

    def written(self, head: Table, files: Sequence[RewrittenFile]) -> list[SealedDataFile]:
        return [
            SealedDataFile(self.named(head, file.path), file.bytes, self._named_facts(head, file.facts))
            for file in files
        ]

    def fence(self, head: Table, number: int) -> CommitOutcome:
        return self._table.fence(head, number)

    def last(self, head: Table) -> int | None:
        return self._table.compactions(head).last

    def knows(self, head: Table, number: int) -> bool:
        return number in self._table.compactions(head).committed


def _expired_since(metadata: TableMetadata, since_ms: float) -> Iterator[str]:
    """Expired snapshots that may have been a branch's newest one at `since_ms` or later.

    Some writers remove the parent's id together with an expired snapshot: then only the very first one, by its number,
    has no parent. A snapshot that a branch was rolled back from is no ancestor, but its sequence number is missing.
    """
    snapshots = {entry.snapshot_id: entry for entry in metadata.snapshots}
    for name, ref in metadata.refs.items():
        snapshot = snapshots.get(ref.snapshot_id) if ref.snapshot_ref_type == SnapshotRefType.BRANCH else None
        while snapshot is not None and snapshot.timestamp_ms > since_ms:
            parent_id = snapshot.parent_snapshot_id
            parent = snapshots.get(parent_id) if parent_id is not None else None
            if parent is None and snapshot.sequence_number != _FIRST:
                yield f"the snapshot before {snapshot.snapshot_id} of branch {name}"
            snapshot = parent
    if metadata.format_version == 1:
        yield "a snapshot (format version 1 doesn't number them: upgrade the table to 2)"
        return
    numbers = {entry.sequence_number: entry.timestamp_ms for entry in metadata.snapshots}
    first = max((number or _FIRST for number, at in numbers.items() if at <= since_ms), default=_FIRST)
    lost = set(range(first, metadata.last_sequence_number + 1)) - numbers.keys()
    yield from (f"the snapshot with sequence number {number}" for number in sorted(lost))
