"""Template of compaction: published epochs' small files of a table are rewritten as few large ones, by one commit.

The new files are written below the table first; the rows read and the rows written are counted and digested. Then one
commit, conditional on the newest table version, replaces the small files by the large ones. Before each attempt
`compact` checks that the table still has every file to be removed and that no other process has fenced the compaction.
A conflict or a lost response is resolved by loading the table again. Epochs' markers aren't changed.

A compaction has a unique number. The table records the numbers of all committed compactions, and the last number
committed or fenced. Before the files of a dead compaction are deleted, the table is fenced with a new number: a
compaction that is still running then finds another last number, or its commit conflicts.
"""

from __future__ import annotations

import logging
import secrets
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from itertools import groupby
from typing import Any, Generic

import pyarrow as pa
import pyarrow.parquet as pq

from lockstep.crash import CrashPoint, reach
from lockstep.errors import CompactionOvertaken, CompactionRefused, InvalidPipeline, SinkUnavailable
from lockstep.sinks.adopting import CommitOutcome, TableVersion
from lockstep.wal.digest import RowDigest
from lockstep.wal.file_facts import FileFacts
from lockstep.wal.parquet import ParquetWriter

BATCH_BYTES = 8 << 20  #: of a batch that is read, in memory, approximately
GROUP_BYTES = 64 << 20  #: of a row group that is written, in memory: the peak memory of a rewrite
_ROWS, _BUFFER = 1 << 16, 1 << 20
_TEXT, _BYTES = pa.string(), pa.binary()
_PLAIN = {pa.large_string(): _TEXT, pa.string_view(): _TEXT, pa.large_binary(): _BYTES, pa.binary_view(): _BYTES}

OpenFile = Callable[[], Any]  #: opens a seekable binary file
Choose = Callable[[pa.RecordBatch], pa.RecordBatch]  #: selects the rows of a batch to write


def schema_of(footer: pq.FileMetaData) -> pa.Schema:
    """Columns with field ids and nullability, without writer metadata. Large, view and dictionary types become plain
    ones, INT96 timestamps become microseconds in UTC."""
    leaves = (footer.schema.column(number) for number in range(footer.num_columns))
    int96 = any(leaf.physical_type == "INT96" for leaf in leaves)
    return pa.schema([_plain(column, int96) for column in footer.schema.to_arrow_schema()])


def _plain(column: pa.Field, int96: bool) -> pa.Field:
    type = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if pa.types.is_struct(type):
        type = pa.struct([_plain(part, int96) for part in type])
    elif pa.types.is_list(type) or pa.types.is_large_list(type):
        type = pa.list_(_plain(type.value_field, int96))
    elif int96 and type == pa.timestamp("ns"):
        type = pa.timestamp("us", "UTC")
    return column.with_type(_PLAIN.get(type, type))


def facts_of(footer: pq.FileMetaData) -> FileFacts:
    """Facts of a file to be rewritten, with the schema it is rewritten with."""
    return replace(FileFacts.of(footer), schema=schema_of(footer))


def is_comparable(schema: pa.Schema) -> bool:
    """True if the row digest supports every column."""
    try:
        RowDigest(schema)
    except InvalidPipeline:
        return False
    return True


def footer_of(open_file: OpenFile) -> pq.FileMetaData:
    with closing(open_file()) as raw:
        return pq.read_metadata(raw)


def rewrite(
    sources: Sequence[OpenFile],
    target: Any,
    choose: Choose = lambda batch: batch,
    numbered: Callable[[pa.Schema], pa.Schema] = lambda schema: schema,
) -> RowDigest:
    """Write the selected rows of all `sources`, in order, to `target`; return count and digest of the selected rows.

    After `numbered` all sources must have the same schema, which is the one written. At most one row group of
    `GROUP_BYTES` is in memory. Raises `InvalidPipeline` for a type that the digest doesn't support, OSError,
    pa.ArrowException.
    """
    writer: ParquetWriter | None = None
    try:
        for number, open_file in enumerate(sources):
            with closing(open_file()) as raw, _reading(raw) as file:
                if writer is None:
                    schema = numbered(schema_of(file.metadata))
                    digest, rows = RowDigest(schema), _Group(schema)
                    writer = ParquetWriter(target, schema, compression=_codec(file.metadata))
                if not numbered(schema_of(file.metadata)).equals(schema, check_metadata=True):
                    raise ValueError(f"file {number} has another schema than those before it")
                for batch in (choose(batch.rename_columns(schema.names)) for batch in _batches(file)):
                    digest.update(batch)
                    rows.add(batch, writer)
        if writer is None:
            raise ValueError("there are no files to rewrite")
        rows.flush(writer)
    finally:
        if writer is not None:
            writer.close()
    return digest


def require_written(open_file: OpenFile, read: RowDigest, label: str, path: str) -> pq.FileMetaData:
    """Read back what was written and return its footer. Raises `CompactionRefused` if the rows differ from those
    read."""
    with closing(open_file()) as raw, _reading(raw) as file:
        written = RowDigest(schema_of(file.metadata))
        for batch in _batches(file):
            written.update(batch)
        footer = file.metadata
    if (written.rows, written.hexdigest()) != (read.rows, read.hexdigest()):
        raise CompactionRefused(
            f"{label}: {path} has {written.rows} rows with digest {written.hexdigest()}, but {read.rows} rows with "
            f"digest {read.hexdigest()} were read: the table was not changed; check the disk and its log"
        )
    return footer


class _Group:
    """Rows waiting to become a row group."""

    def __init__(self, schema: pa.Schema) -> None:
        self._schema, self._waiting, self._bytes = schema, list[pa.RecordBatch](), 0

    def add(self, batch: pa.RecordBatch, writer: ParquetWriter) -> None:
        self._waiting.append(batch)
        self._bytes += batch.nbytes
        if self._bytes >= GROUP_BYTES:
            self.flush(writer)

    def flush(self, writer: ParquetWriter) -> None:
        if self._waiting:
            batches = [batch.replace_schema_metadata(None) for batch in self._waiting]
            writer.write_table(pa.Table.from_batches(batches, self._schema))
            self._waiting, self._bytes = [], 0


def _reading(raw: Any) -> pq.ParquetFile:
    """Open a Parquet file for reading page by page: a row group may be larger than memory."""
    return pq.ParquetFile(raw, pre_buffer=False, buffer_size=_BUFFER, coerce_int96_timestamp_unit="us")


def _batches(file: pq.ParquetFile) -> Iterator[pa.RecordBatch]:
    schema = schema_of(file.metadata)
    for number in range(file.metadata.num_row_groups):
        group = file.metadata.row_group(number)
        bytes_a_row = max(1, group.total_byte_size // max(1, group.num_rows))
        rows = max(1, min(_ROWS, BATCH_BYTES // bytes_a_row))
        yield from (batch.cast(schema) for batch in file.iter_batches(batch_size=rows, row_groups=[number]))


def _codec(footer: pq.FileMetaData) -> str:
    """Compression codec of the source file."""
    if footer.num_row_groups and footer.num_columns:
        codec = str(footer.row_group(0).column(0).compression)
        return "none" if codec == "UNCOMPRESSED" else codec.lower()
    return "snappy"


TARGET_BYTES = 256 << 20  #: size of a rewritten file
MIN_FILES = 5  #: small files of a partition, below which it is left alone
LARGE_ENOUGH = 0.75  #: share of the target size from which a file is left alone
_ROUNDS = 50
_log = logging.getLogger(__name__)

Progress = Callable[[int, int], object]  #: called with (files rewritten, files to rewrite)


@dataclass(frozen=True)
class TableFile:
    """A file of the table. `path`: as the table names it; `partition`: equal for files that may be merged; `epoch`: the
    epoch that added it, None for a compacted or foreign file; `skip_reason`: why compaction leaves it alone;
    `hides_rows`: True if some rows are deleted by a separate file; `epochs`: least and greatest epoch of its rows,
    where known."""

    path: str
    bytes: int
    rows: int
    partition: str
    epoch: int | None = None
    skip_reason: str | None = None
    hides_rows: bool = False
    epochs: tuple[int, int] | None = None


@dataclass(frozen=True)
class RewrittenFile:
    """A file to be added to the table. `path`: relative to the table's folder."""

    path: str
    bytes: int
    partition: str
    facts: FileFacts


@dataclass(frozen=True)
class Replacement:
    """Content of one commit: the files removed and added, and the number of the compaction."""

    number: int
    removed: Sequence[TableFile]
    added: Sequence[RewrittenFile]


@dataclass(frozen=True)
class Goal:
    """Parameters of a compaction. `target_bytes`: approximate size of a file; `min_files`: small files of a partition,
    below which it is left alone; `is_shown`: tells whether every sink has published an epoch, so that its files aren't
    needed by name any more."""

    is_shown: Callable[[int], bool]
    target_bytes: int = TARGET_BYTES
    min_files: int = MIN_FILES

    def __post_init__(self) -> None:
        if self.target_bytes < 1 or self.min_files < 2:
            raise InvalidPipeline(
                f"target_bytes={self.target_bytes} and min_files={self.min_files} are out of range: give at least "
                "1 byte and 2 files"
            )


@dataclass(frozen=True)
class Expiry:
    """Former files of the table that were deleted, or would be. `since`: readers of table versions that were current
    then or later are not affected. `kept`: number of unreferenced files that stay, by reason."""

    since: datetime
    files: int
    bytes: int
    kept: Mapping[str, int]


@dataclass(frozen=True)
class Compaction:
    """Result of a compaction, or its plan: counts and bytes of the rewritten files, not of the whole table. `kept`:
    number of files left alone, by reason. `number`: None if nothing was committed. `expired`: None if not requested."""

    sink: str
    number: int | None
    files_before: int
    files_after: int
    bytes_before: int
    bytes_after: int | None
    rows: int
    kept: Mapping[str, int] = field(default_factory=dict)
    expired: Expiry | None = None


class CompactingTable(ABC, Generic[TableVersion]):
    """Interface of a table format to compaction. Every method raises the same errors as the sink's."""

    name: str  #: the sink's

    @abstractmethod
    def load_head(self) -> TableVersion:
        """Load the newest version; see `AdoptingSink`. Raises also if the table isn't the sink's, or compaction would
        damage it."""

    @abstractmethod
    def files(self, head: TableVersion) -> Iterator[TableFile]:
        """Every file of this table version."""

    @abstractmethod
    def folder(self, number: int) -> str:
        """Folder that compaction `number` writes to, relative to the table's folder."""

    @abstractmethod
    def open_file(self, head: TableVersion, path: str) -> Any:
        """Open a file of the table, or one to be added, for reading."""

    @abstractmethod
    def create_file(self, head: TableVersion, path: str) -> AbstractContextManager[Any]:
        """Create a file, durable when the block ends. Raises FileExistsError."""

    @abstractmethod
    def named(self, head: TableVersion, path: str) -> str:
        """The table's name of a file, by its path relative to the table's folder."""

    @abstractmethod
    def fault(self, head: TableVersion, facts: FileFacts) -> str | None:
        """Why a file with these columns can't be rewritten; None if it can."""

    def numbered(self, head: TableVersion, schema: pa.Schema) -> pa.Schema:
        """The columns of a file with the field ids and names they get when it is rewritten."""
        return schema

    @abstractmethod
    def replace(self, head: TableVersion, replacement: Replacement) -> CommitOutcome:
        """Send one commit, once, conditional on `head`. It declares that no rows changed."""

    @abstractmethod
    def fence(self, head: TableVersion, number: int) -> CommitOutcome:
        """Send one commit that makes `number` the last compaction and changes nothing else."""

    @abstractmethod
    def last(self, head: TableVersion) -> int | None:
        """Number of the last compaction committed or fenced by any sink of the pipeline, whatever its name: a fence by
        one sink holds for all."""

    @abstractmethod
    def knows(self, head: TableVersion, number: int) -> bool:
        """True if the compaction was ever committed by any sink of the pipeline: then its files belong to the table."""

    @abstractmethod
    def readable(self, head: TableVersion, since: datetime) -> Iterable[str]:
        """Paths of all files of `head`, and of every other version that was current at `since` or later, or that is
        kept readable by other means, such as a tag. Raises `ExpiryRefused` if the table's history doesn't reach back
        that far."""

    def make_durable(self, head: TableVersion) -> None:
        """See `AdoptingSink`."""


def plan(table: CompactingTable[TableVersion], goal: Goal) -> Compaction:
    """Plan `compact` by file sizes alone. Writes nothing."""
    chosen, skipped = _choose(table.files(table.load_head()), goal)
    files = [file for bundle in chosen for file in bundle]
    size, rows = sum(file.bytes for file in files), sum(file.rows for file in files)
    return Compaction(table.name, None, len(files), len(chosen), size, None, rows, skipped)


def compact(table: CompactingTable[TableVersion], goal: Goal, progress: Progress = lambda done, of: None) -> Compaction:
    """Rewrite the files that `plan` selects, then commit.

    Raises `CompactionOvertaken` if another writer has changed those files or fenced this compaction, and
    `CompactionRefused` if the rows written differ from those read. In both cases, and after a crash, the table is
    unchanged, and the files written are garbage.
    """
    number, head = new_number(), table.load_head()
    last_before = table.last(head)
    bundles, skipped = _choose(table.files(head), goal)
    removed, added = list[TableFile](), list[RewrittenFile]()
    total, done = sum(map(len, bundles)), 0
    try:
        for bundle in bundles:
            for alike in _of_one_schema(table, head, bundle, skipped):
                path, rows = f"{table.folder(number)}/part-{len(added):05}.parquet", sum(file.rows for file in alike)
                added.append(write_anew(table, head, alike, path, rows, lambda batch: batch))
                removed += alike
            done += len(bundle)
            progress(done, total)
    except (OSError, pa.ArrowException) as error:
        raise SinkUnavailable(
            f"sink {table.name}: the table's files can't be rewritten: {' '.join(str(error).split())}; nothing was "
            "changed"
        ) from error
    if added:
        _commit(table, last_before, Replacement(number, removed, added))
    return Compaction(
        sink=table.name,
        number=number if added else None,
        files_before=len(removed),
        files_after=len(added),
        bytes_before=sum(file.bytes for file in removed),
        bytes_after=sum(file.bytes for file in added),
        rows=sum(file.rows for file in removed),
        kept=skipped,
    )


def fence(table: CompactingTable[TableVersion]) -> TableVersion:
    """Make the table refuse every compaction that is running; return a version that has the fence."""
    number = new_number()
    for _ in range(_ROUNDS):
        head = table.load_head()
        if table.last(head) == number:
            table.make_durable(head)
            return head
        reach(CrashPoint.COMPACT_BEFORE_FENCE)
        table.fence(head, number)
        reach(CrashPoint.COMPACT_AFTER_FENCE)
    raise SinkUnavailable(f"sink {table.name}: the table changes faster than it can be fenced; this is retried")


def new_number() -> int:
    """A unique number for a compaction."""
    return secrets.randbits(52) | 1 << 52


def _choose(files: Iterable[TableFile], goal: Goal) -> tuple[list[list[TableFile]], Counter[str]]:
    """Group small files into bundles that become one file each, and count the others by reason; large files don't
    count."""
    skipped: Counter[str] = Counter()
    small: list[TableFile] = []
    for file in files:
        if file.bytes >= LARGE_ENOUGH * goal.target_bytes:
            continue
        if file.skip_reason is not None:
            skipped[file.skip_reason] += 1
        elif file.epoch is not None and not goal.is_shown(file.epoch):
            skipped["of epochs that some sink hasn't published yet"] += 1
        else:
            small.append(file)
    bundles = []
    for _, alike in groupby(sorted(small, key=_place), key=lambda file: file.partition):
        candidates = list(alike)
        if len(candidates) < goal.min_files:
            skipped["too few in a partition"] += len(candidates)
            continue
        bundles += [bundle for bundle in _bundles(candidates, goal.target_bytes) if len(bundle) > 1]
    return bundles, skipped


def _place(file: TableFile) -> tuple[str, int, str]:
    """Sort key: by epoch, so that readers of few epochs skip most row groups; previously compacted files come first."""
    return file.partition, -1 if file.epoch is None else file.epoch, file.path


def _bundles(files: Sequence[TableFile], target: int) -> Iterator[list[TableFile]]:
    bundle: list[TableFile] = []
    for file in files:
        if bundle and sum(earlier.bytes for earlier in bundle) + file.bytes > target:
            yield bundle
            bundle = []
        bundle.append(file)
    if bundle:
        yield bundle


def _of_one_schema(
    table: CompactingTable[TableVersion], head: TableVersion, bundle: Sequence[TableFile], skipped: Counter[str]
) -> Iterator[list[TableFile]]:
    """Split a bundle by schema, including column order: rows are never cast."""
    by_schema: dict[str, list[TableFile]] = {}
    for file in bundle:
        footer = footer_of(partial(table.open_file, head, file.path))
        schema = table.numbered(head, schema_of(footer))
        if (fault := table.fault(head, facts_of(footer))) is not None:
            skipped[fault] += 1
        elif not is_comparable(schema_of(footer)):
            skipped["with columns of a type that the digest can't take"] += 1
        else:
            by_schema.setdefault(schema.to_string(show_field_metadata=True), []).append(file)
    for alike in by_schema.values():
        if len(alike) > 1:
            yield alike
        else:
            skipped["alone with its columns"] += 1


def write_anew(
    table: CompactingTable[TableVersion],
    head: TableVersion,
    files: Sequence[TableFile],
    path: str,
    rows: int,
    choose: Choose,
) -> RewrittenFile:
    """Write the selected rows of `files` into one new file. Raises `CompactionRefused` if they aren't `rows` many."""
    label, name = f"sink {table.name}", table.named(head, path)
    reach(CrashPoint.COMPACT_BEFORE_WRITE)
    with table.create_file(head, path) as target:
        sources = [partial(table.open_file, head, file.path) for file in files]
        read = rewrite(sources, target, choose=choose, numbered=partial(table.numbered, head))
        size = target.tell()
    reach(CrashPoint.COMPACT_AFTER_WRITE)
    if read.rows != rows:
        raise CompactionRefused(
            f"{label}: {len(files)} files, such as {files[0].path}, have {read.rows} rows to rewrite, but the table "
            f"records {rows}: nothing was changed; a file was modified in place"
        )
    facts = FileFacts.of(require_written(partial(table.open_file, head, name), read, label, path))
    return RewrittenFile(path, size, files[0].partition, facts)


def _commit(table: CompactingTable[TableVersion], last_before: int | None, replacement: Replacement) -> None:
    unknown = False
    for _ in range(_ROUNDS):
        head = table.load_head()
        if table.knows(head, replacement.number):
            table.make_durable(head)
            return
        _require_unchanged(table, head, last_before, replacement)
        reach(CrashPoint.COMPACT_BEFORE_SINK_COMMIT)
        outcome = table.replace(head, replacement)
        reach(CrashPoint.COMPACT_AFTER_SINK_COMMIT)
        unknown = outcome is CommitOutcome.UNKNOWN
        if outcome is CommitOutcome.CONFLICT:
            _log.info("sink %s: the table changed since it was loaded: trying again", table.name)
    reason = "the outcome of the last one is unknown" if unknown else "another writer commits without pause"
    raise CompactionOvertaken(
        f"sink {table.name}: {_ROUNDS} commits of the compaction weren't applied: {reason}; run it again"
    )


def _require_unchanged(
    table: CompactingTable[TableVersion], head: TableVersion, last_before: int | None, replacement: Replacement
) -> None:
    """Raise `CompactionOvertaken` if this table version can't take the commit any more."""
    if table.last(head) != last_before:
        raise CompactionOvertaken(
            f"sink {table.name}: another compaction was committed in the meantime, or recovery has fenced this one: "
            "the table was not changed; run it again"
        )
    current = {file.path: file for file in table.files(head)}
    changed = [file.path for file in replacement.removed if current.get(file.path) != file]
    if changed:
        raise CompactionOvertaken(
            f"sink {table.name}: {len(changed)} of the {len(replacement.removed)} files were compacted, deleted from "
            f"or removed by another writer (such as {changed[0]}): the table was not changed; run it again"
        )
    if fault := next((fault for file in replacement.added if (fault := table.fault(head, file.facts))), None):
        raise CompactionOvertaken(
            f"sink {table.name}: the table's columns were changed in the meantime ({fault}): the table was not "
            "changed; run it again"
        )
