"""What compaction does with an Iceberg table: a snapshot of the operation `replace`, by one conditional commit."""

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
from lockstep.sinks.adopting import Answer
from lockstep.sinks.compacting import CompactingTable, NewFile, Replacement, TableFile
from lockstep.sinks.iceberg._columns import DROPPED, mapped_ids, named_by_ids
from lockstep.sinks.iceberg._data_files import SealedFile, data_file, faults
from lockstep.sinks.iceberg._table import LakeTable
from lockstep.wal.file_facts import FileFacts, leaves_of
from lockstep.wal.table_staging import CompactionFolder, with_field_ids

_FIRST = 1  #: number of a table's first snapshot


class IcebergCompaction(CompactingTable[Table]):
    """`load`: the table, once it is this sink's and nothing forbids to write its files anew."""

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
            epoch, kept = self._folder.owner_of(file.file_path)
            if kept is None:
                kept = _kept(head, file, bool(task.delete_files))
            partition = f"{file.spec_id}:{file.partition!r}"
            hides = epoch is None and bool(task.delete_files)  # whoever takes out all of a file needs not mind them
            size, rows, epochs = file.file_size_in_bytes, file.record_count, self._epochs(head, file)
            yield TableFile(file.file_path, size, rows, partition, epoch, kept, hides, epochs)

    def _epochs(self, head: Table, file: DataFile) -> tuple[int, int] | None:
        """The least and the greatest of a file's rows."""
        try:
            column = head.schema().find_field(self._epoch_column)
        except ValueError:
            return None
        if not isinstance(column.field_type, LongType):
            return None
        if (file.null_value_counts or {}).get(column.field_id) == file.record_count:
            return 1, 0  # no epoch's
        told = [(bounds or {}).get(column.field_id) for bounds in (file.lower_bounds, file.upper_bounds)]
        least, greatest = (from_bytes(LongType(), one) if one is not None else None for one in told)
        return (least, greatest) if isinstance(least, int) and isinstance(greatest, int) else None

    def _tasks(self, head: Table) -> list[Any]:
        with self._table.link.naming("listing the table's files"):
            try:
                return list(head.scan().plan_files())
            except ValueError as error:  # deletes that pyiceberg doesn't read
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
        found = faults(head.metadata, SealedFile("", 0, self._named_facts(head, facts)))
        return found[0] if found else None

    def numbered(self, head: Table, schema: pa.Schema) -> pa.Schema:
        return named_by_ids(head.metadata, with_field_ids(schema, mapped_ids(head.metadata, schema)))

    def _named_facts(self, head: Table, facts: FileFacts) -> FileFacts:
        """As the table names the columns now, without those that it has dropped: what counts are their field ids."""
        schema = self.numbered(head, facts.schema)
        names = [(len(a.name), b.name) for a, b in zip(facts.schema, schema, strict=True) for _ in leaves_of([a])]
        renamed = [(one, f"{new}{one.path[old:]}") for one, (old, new) in zip(facts.columns, names, strict=True)]
        columns = tuple(replace(one, path=path) for one, path in renamed if not path.startswith(DROPPED))
        left = pa.schema([field for field in schema if not field.name.startswith(DROPPED)])
        return replace(facts, schema=left, columns=columns)

    def readable(self, head: Table, since: datetime) -> Iterator[str]:
        """Of every snapshot that isn't expired: what keeps one, its age or a branch or tag, is the table's business."""
        if head.properties.get("gc.enabled", "true").lower() == "false":
            raise ExpiryRefused(
                f"sink {self.name}: the table says gc.enabled=false, so others may have its files: nothing is deleted"
            )
        for gone in _expired_since(head.metadata, since.timestamp() * 1000):
            raise ExpiryRefused(
                f"sink {self.name}: {gone} is expired, and may have been the newest one after {since:%Y-%m-%d %H:%M} "
                "UTC, so nobody can tell which files readers need: give --expire less, or keep snapshots for longer"
            )
        with self._table.link.naming("listing the files of the table's snapshots"):
            manifests = {found.manifest_path: found for one in head.snapshots() for found in one.manifests(head.io)}
            for manifest in manifests.values():
                entries = manifest.fetch_manifest_entry(head.io, discard_deleted=True)
                yield from (entry.data_file.file_path for entry in entries)

    # --- commits ---

    def replace(self, head: Table, replacement: Replacement) -> Answer:
        new = [data_file(head.metadata, file) for file in self.written(head, replacement.added)]
        return self._table.replace(head, replacement.number, self.found(head, replacement.removed), new)

    def found(self, head: Table, files: Sequence[TableFile]) -> list[DataFile]:
        """Files as the table has them."""
        wanted = {file.path for file in files}
        return [task.file for task in self._tasks(head) if task.file.file_path in wanted] if wanted else []

    def written(self, head: Table, files: Sequence[NewFile]) -> list[SealedFile]:
        return [SealedFile(self.named(head, one.path), one.bytes, self._named_facts(head, one.facts)) for one in files]

    def fence(self, head: Table, number: int) -> Answer:
        return self._table.fence(head, number)

    def last(self, head: Table) -> int | None:
        return self._table.compactions(head).last

    def knows(self, head: Table, number: int) -> bool:
        return number in self._table.compactions(head).known


def _expired_since(metadata: TableMetadata, then: float) -> Iterator[str]:
    """Snapshots that are gone, and that may have been a branch's newest one at `then`, in milliseconds, or later.

    Some take the parent's id away with an expired snapshot: only the very first one, by its number, has none. One that
    a branch was taken back from is no ancestor: its number is missing.
    """
    there = {one.snapshot_id: one for one in metadata.snapshots}
    for name, ref in metadata.refs.items():
        snapshot = there.get(ref.snapshot_id) if ref.snapshot_ref_type == SnapshotRefType.BRANCH else None
        while snapshot is not None and snapshot.timestamp_ms > then:
            before = snapshot.parent_snapshot_id
            parent = there.get(before) if before is not None else None
            if parent is None and snapshot.sequence_number != _FIRST:
                yield f"what branch {name} had before snapshot {snapshot.snapshot_id}"
            snapshot = parent
    if metadata.format_version == 1:
        yield "any snapshot (format version 1 doesn't number them: upgrade the table to 2)"
        return
    numbers = {one.sequence_number: one.timestamp_ms for one in metadata.snapshots}
    first = max((number or _FIRST for number, at in numbers.items() if at <= then), default=_FIRST)
    lost = set(range(first, metadata.last_sequence_number + 1)) - numbers.keys()
    yield from (f"the snapshot with sequence number {number}" for number in sorted(lost))


def _kept(head: Table, file: DataFile, has_deletes: bool) -> str | None:
    if has_deletes:
        return "with rows that delete files take away"
    return None if file.spec_id == head.metadata.default_spec_id else "of an older partitioning"
