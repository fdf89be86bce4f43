"""The template of compaction: published epochs' small files of a table become few larger ones, by one commit.

The new files are written first, beside the table; what was read and what was written are counted and digested. Then one
commit takes the small files out and the large ones in. As an epoch's it is based on the very state that was looked
at: each try looks again whether the table still has every file that is to go, and whether nobody has fenced the
compaction. If the answer is lost, or another commit was first, the next look tells. Epochs' markers aren't touched.

A compaction is a number that nobody has had. The table keeps the numbers of those that were committed, and the last one
that was committed or fenced. Whoever clears away what a dead compaction left first puts a number of its own there: then
a zombie, whichever state it goes on from, finds another last number, or that its state is no longer the newest.
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
from lockstep.sinks.adopting import Answer, Head
from lockstep.wal.digest import RowDigest
from lockstep.wal.file_facts import FileFacts
from lockstep.wal.parquet_writer import ParquetWriter

BATCH_BYTES = 8 << 20  #: of rows as they stand in memory, about
GROUP_BYTES = 64 << 20  #: of a row group that is written, as it stands in memory: what rewriting needs of it
_ROWS, _BUFFER = 1 << 16, 1 << 20
_TEXT, _BYTES = pa.string(), pa.binary()
_PLAIN = {pa.large_string(): _TEXT, pa.string_view(): _TEXT, pa.large_binary(): _BYTES, pa.binary_view(): _BYTES}

OpenFile = Callable[[], Any]  #: a fresh, seekable binary file
Choose = Callable[[pa.RecordBatch], pa.RecordBatch]  #: rows of a batch that are to be written


def schema_of(footer: pq.FileMetaData) -> pa.Schema:
    """Columns with field ids and nullability, without what a writer says of itself: large and view types of Arrow, and
    dictionaries, become plain ones, and timestamps of INT96 are microseconds in UTC."""
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
    """Facts of a file that is to be rewritten, with the schema that it is rewritten by."""
    return replace(FileFacts.of(footer), schema=schema_of(footer))


def is_comparable(schema: pa.Schema) -> bool:
    """Whether the digest takes every column."""
    try:
        RowDigest(schema)
    except InvalidPipeline:
        return False
    return True


def footer_of(open_file: OpenFile) -> pq.FileMetaData:
    """What a file says of itself."""
    with closing(open_file()) as raw:
        return pq.read_metadata(raw)


def rewrite(
    sources: Sequence[OpenFile],
    target: Any,
    choose: Choose = lambda batch: batch,
    numbered: Callable[[pa.Schema], pa.Schema] = lambda schema: schema,
) -> RowDigest:
    """Write the rows of all `sources` that are chosen, in order, to `target`; the count and digest of those read.

    All of them have one schema, once they are `numbered`, which is what is written. No more is in memory than a row
    group of `GROUP_BYTES`, whatever the files' sizes. Raises `InvalidPipeline` for a type that the digest can't take,
    OSError, pa.ArrowException.
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
            raise ValueError("no files")
        rows.flush(writer)
    finally:
        if writer is not None:
            writer.close()
    return digest


def require_written(open_file: OpenFile, read: RowDigest, who: str, path: str) -> pq.FileMetaData:
    """Read back what was written; its footer. Raises `CompactionRefused` if it isn't what was read."""
    with closing(open_file()) as raw, _reading(raw) as file:
        written = RowDigest(schema_of(file.metadata))
        for batch in _batches(file):
            written.update(batch)
        footer = file.metadata
    if (written.rows, written.hexdigest()) != (read.rows, read.hexdigest()):
        raise CompactionRefused(
            f"{who}: {path} has {written.rows} rows with digest {written.hexdigest()}, those that were read were "
            f"{read.rows} with {read.hexdigest()}: the table was left as it is; look at the disk and its log"
        )
    return footer


class _Group:
    """Rows that wait to become a row group."""

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
    """Pages are read as they are needed: a whole row group may be larger than memory."""
    return pq.ParquetFile(raw, pre_buffer=False, buffer_size=_BUFFER, coerce_int96_timestamp_unit="us")


def _batches(file: pq.ParquetFile) -> Iterator[pa.RecordBatch]:
    schema = schema_of(file.metadata)
    for number in range(file.metadata.num_row_groups):
        group = file.metadata.row_group(number)
        bytes_a_row = max(1, group.total_byte_size // max(1, group.num_rows))
        rows = max(1, min(_ROWS, BATCH_BYTES // bytes_a_row))
        yield from (batch.cast(schema) for batch in file.iter_batches(batch_size=rows, row_groups=[number]))


def _codec(footer: pq.FileMetaData) -> str:
    """As the files had it that are written anew."""
    if footer.num_row_groups and footer.num_columns:
        found = str(footer.row_group(0).column(0).compression)
        return "none" if found == "UNCOMPRESSED" else found.lower()
    return "snappy"


TARGET_BYTES = 256 << 20  #: of a file
MIN_FILES = 5  #: of a partition that are small, before they are written anew
LARGE_ENOUGH = 0.75  #: of the target: such a file isn't written anew
_ROUNDS = 50
_log = logging.getLogger(__name__)

Progress = Callable[[int, int], object]  #: so many of so many small files are written anew


@dataclass(frozen=True)
class TableFile:
    """A file that the table consists of. `path`: as the table names it; `partition`: equal among files that may become
    one; `epoch`: that brought it, None of one that compaction wrote; `kept`: why it is left alone, if it is;
    `hides_rows`: whether some of its rows are deleted, by something beside it; `epochs`: the least and the greatest of
    its rows, where the table tells."""

    path: str
    bytes: int
    rows: int
    partition: str
    epoch: int | None = None
    kept: str | None = None
    hides_rows: bool = False
    epochs: tuple[int, int] | None = None


@dataclass(frozen=True)
class NewFile:
    """A file that is to become the table's. `path`: relative to the table's folder."""

    path: str
    bytes: int
    partition: str
    facts: FileFacts


@dataclass(frozen=True)
class Replacement:
    """What one commit does: `removed` go, `added` come, and the table knows compaction `number`."""

    number: int
    removed: Sequence[TableFile]
    added: Sequence[NewFile]


@dataclass(frozen=True)
class Goal:
    """`target_bytes`: of a file, about; `min_files`: small ones of a partition before it is touched; `is_shown`:
    whether every sink shows an epoch, so that nobody needs its files by their names."""

    is_shown: Callable[[int], bool]
    target_bytes: int = TARGET_BYTES
    min_files: int = MIN_FILES

    def __post_init__(self) -> None:
        if self.target_bytes < 1 or self.min_files < 2:
            raise InvalidPipeline(
                f"a compaction to {self.target_bytes} bytes a file, of at least {self.min_files} files, makes no "
                "sense: give a size, and 2 files or more"
            )


@dataclass(frozen=True)
class Expiry:
    """What was deleted of files that the table consisted of once, or would be. `since`: readers of versions that were
    the newest one then, or later, lose nothing. `kept`: files that no such version has, and that stay, by the reason
    why."""

    since: datetime
    files: int
    bytes: int
    kept: Mapping[str, int]


@dataclass(frozen=True)
class Compaction:
    """What was done, or would be: the numbers of files and bytes of what is written anew, not of the whole table.
    `kept`: files that are left alone, by the reason why. `number` is None if nothing was committed. `expired`: None
    where that wasn't asked for."""

    sink: str
    number: int | None
    files_before: int
    files_after: int
    bytes_before: int
    bytes_after: int | None
    rows: int
    kept: Mapping[str, int] = field(default_factory=dict)
    expired: Expiry | None = None


class CompactingTable(ABC, Generic[Head]):
    """What compaction asks of a table that adopts. Every call raises as those of its sink."""

    name: str  #: the sink's

    @abstractmethod
    def load_head(self) -> Head:
        """See `AdoptingSink`. Raises also if the table isn't the sink's, or is one that compaction would damage."""

    @abstractmethod
    def files(self, head: Head) -> Iterator[TableFile]:
        """Every file of this very state."""

    @abstractmethod
    def folder(self, number: int) -> str:
        """Where compaction `number` writes, relative to the table's folder."""

    @abstractmethod
    def open_file(self, head: Head, path: str) -> Any:
        """A file of the table, or one that is to become so, for reading."""

    @abstractmethod
    def create_file(self, head: Head, path: str) -> AbstractContextManager[Any]:
        """A new file, durable when the block ends. FileExistsError if it is there."""

    @abstractmethod
    def named(self, head: Head, path: str) -> str:
        """What the table calls a file by this path relative to its folder."""

    @abstractmethod
    def fault(self, head: Head, facts: FileFacts) -> str | None:
        """Why a file with these columns can't be written anew."""

    def numbered(self, head: Head, schema: pa.Schema) -> pa.Schema:
        """The columns of a file with the field ids and names that it is to have when it is written anew."""
        return schema

    @abstractmethod
    def replace(self, head: Head, replacement: Replacement) -> Answer:
        """Send one commit, to be applied only to `head`; once. It says that no rows changed."""

    @abstractmethod
    def fence(self, head: Head, number: int) -> Answer:
        """Send one commit that makes `number` the last one, and changes nothing else."""

    @abstractmethod
    def last(self, head: Head) -> int | None:
        """The number of the last compaction that was committed or fenced, whatever the pipeline's sink was called: what
        one sink fences, and deletes, no other one commits."""

    @abstractmethod
    def knows(self, head: Head, number: int) -> bool:
        """Whether that compaction was ever committed, by this sink or by one of another name that the pipeline had for
        the table: then its files are the table's."""

    @abstractmethod
    def readable(self, head: Head, since: datetime) -> Iterable[str]:
        """Every file, as the table names it, of `head`, and of every other version that was the newest one at `since`
        or later, or that something else than its age keeps readable. Raises `ExpiryRefused` if nobody can tell."""

    def make_durable(self, head: Head) -> None:
        """See `AdoptingSink`."""


def plan(table: CompactingTable[Head], goal: Goal) -> Compaction:
    """What `compact` would do now, by sizes alone. Writes nothing."""
    chosen, kept = _choose(table.files(table.load_head()), goal)
    old = [file for bundle in chosen for file in bundle]
    size, rows = sum(file.bytes for file in old), sum(file.rows for file in old)
    return Compaction(table.name, None, len(old), len(chosen), size, None, rows, kept)


def compact(table: CompactingTable[Head], goal: Goal, progress: Progress = lambda done, of: None) -> Compaction:
    """Write anew what `plan` finds, then commit it.

    Raises `CompactionOvertaken` if somebody else has changed those files meanwhile or has fenced this compaction, and
    `CompactionRefused` if what was written isn't what was read; then, and if it dies, the table is as it was, and the
    files that it wrote are nobody's.
    """
    number, head = new_number(), table.load_head()
    before = table.last(head)
    chosen, kept = _choose(table.files(head), goal)
    try:
        found = _write_all(table, head, number, chosen, kept, progress)
    except (OSError, pa.ArrowException) as error:
        raise SinkUnavailable(
            f"sink {table.name}: the table's files can't be written anew: {' '.join(str(error).split())}; nothing was "
            "changed"
        ) from error
    if found.added:
        _commit(table, before, found)
    return Compaction(
        table.name,
        number if found.added else None,
        len(found.removed),
        len(found.added),
        sum(file.bytes for file in found.removed),
        sum(file.bytes for file in found.added),
        sum(file.rows for file in found.removed),
        kept,
    )


def _write_all(
    table: CompactingTable[Head],
    head: Head,
    number: int,
    chosen: Sequence[Sequence[TableFile]],
    kept: Counter[str],
    progress: Progress,
) -> Replacement:
    old, new = list[TableFile](), list[NewFile]()
    total, done = sum(map(len, chosen)), 0
    for bundle in chosen:
        for alike in _of_one_schema(table, head, bundle, kept):
            path, rows = f"{table.folder(number)}/part-{len(new):05}.parquet", sum(file.rows for file in alike)
            new.append(write_anew(table, head, alike, path, rows, lambda batch: batch))
            old += alike
        done += len(bundle)
        progress(done, total)
    return Replacement(number, old, new)


def fence(table: CompactingTable[Head]) -> Head:
    """Have the table refuse every compaction that has begun; a state of it from then on."""
    number = new_number()
    for _ in range(_ROUNDS):
        head = table.load_head()
        if table.last(head) == number:
            table.make_durable(head)
            return head
        reach(CrashPoint.COMPACT_BEFORE_FENCE)
        table.fence(head, number)
        reach(CrashPoint.COMPACT_AFTER_FENCE)
    raise SinkUnavailable(f"sink {table.name}: the table changes faster than it can be fenced; it is tried again")


def new_number() -> int:
    """Of a compaction: one that nobody has had."""
    return secrets.randbits(52) | 1 << 52


def _choose(files: Iterable[TableFile], goal: Goal) -> tuple[list[list[TableFile]], Counter[str]]:
    """Files that are to become one each, and how many are left alone for which reason; large ones don't count."""
    kept: Counter[str] = Counter()
    small: list[TableFile] = []
    for file in files:
        if file.bytes >= LARGE_ENOUGH * goal.target_bytes:
            continue
        if file.kept is not None:
            kept[file.kept] += 1
        elif file.epoch is not None and not goal.is_shown(file.epoch):
            kept["of epochs that some sink doesn't show yet"] += 1
        else:
            small.append(file)
    chosen = []
    for _, alike in groupby(sorted(small, key=_place), key=lambda file: file.partition):
        found = list(alike)
        if len(found) < goal.min_files:
            kept["too few of a partition"] += len(found)
            continue
        chosen += [bundle for bundle in _bundles(found, goal.target_bytes) if len(bundle) > 1]
    return chosen, kept


def _place(file: TableFile) -> tuple[str, int, str]:
    """By epoch, so that who reads some epochs passes over most row groups; what was compacted before comes first."""
    return file.partition, -1 if file.epoch is None else file.epoch, file.path


def _bundles(files: Sequence[TableFile], target: int) -> Iterator[list[TableFile]]:
    bundle: list[TableFile] = []
    for file in files:
        if bundle and sum(one.bytes for one in bundle) + file.bytes > target:
            yield bundle
            bundle = []
        bundle.append(file)
    if bundle:
        yield bundle


def _of_one_schema(
    table: CompactingTable[Head], head: Head, bundle: Sequence[TableFile], kept: Counter[str]
) -> Iterator[list[TableFile]]:
    """Files of other columns, or of another order of them, become another file: no row is ever cast."""
    found: dict[str, list[TableFile]] = {}
    for file in bundle:
        footer = footer_of(partial(table.open_file, head, file.path))
        schema = table.numbered(head, schema_of(footer))
        if (fault := table.fault(head, facts_of(footer))) is not None:
            kept[fault] += 1
        elif not is_comparable(schema_of(footer)):
            kept["with columns of a type that the digest can't take"] += 1
        else:
            found.setdefault(schema.to_string(show_field_metadata=True), []).append(file)
    for alike in found.values():
        if len(alike) > 1:
            yield alike
        else:
            kept["alone with its columns"] += 1


def write_anew(
    table: CompactingTable[Head], head: Head, files: Sequence[TableFile], path: str, rows: int, choose: Choose
) -> NewFile:
    """One file of the rows of `files` that are chosen, so many. Raises `CompactionRefused` if it isn't those."""
    who, name = f"sink {table.name}", table.named(head, path)
    reach(CrashPoint.COMPACT_BEFORE_WRITE)
    with table.create_file(head, path) as target:
        sources = [partial(table.open_file, head, file.path) for file in files]
        read = rewrite(sources, target, choose=choose, numbered=partial(table.numbered, head))
        size = target.tell()
    reach(CrashPoint.COMPACT_AFTER_WRITE)
    if read.rows != rows:
        raise CompactionRefused(
            f"{who}: {len(files)} files, such as {files[0].path}, have {read.rows} rows to be written anew, and the "
            f"table says {rows} of them: it was left as it is; somebody has changed a file in place"
        )
    facts = FileFacts.of(require_written(partial(table.open_file, head, name), read, who, path))
    return NewFile(path, size, files[0].partition, facts)


def _commit(table: CompactingTable[Head], before: int | None, replacement: Replacement) -> None:
    unknown = False
    for _ in range(_ROUNDS):
        head = table.load_head()
        if table.knows(head, replacement.number):
            table.make_durable(head)
            return
        _require_unchanged(table, head, before, replacement)
        reach(CrashPoint.COMPACT_BEFORE_SINK_COMMIT)
        answer = table.replace(head, replacement)
        reach(CrashPoint.COMPACT_AFTER_SINK_COMMIT)
        unknown = answer is Answer.UNKNOWN
        if answer is Answer.CONFLICT:
            _log.info("sink %s: the table changed meanwhile: looking again", table.name)
    why = "nobody tells what became of its last commit" if unknown else "somebody writes to the table without pause"
    raise CompactionOvertaken(
        f"sink {table.name}: {_ROUNDS} commits of the compaction weren't applied: {why}; run it again"
    )


def _require_unchanged(table: CompactingTable[Head], head: Head, before: int | None, replacement: Replacement) -> None:
    """Raises `CompactionOvertaken` if this state can't take the commit any more."""
    if table.last(head) != before:
        raise CompactionOvertaken(
            f"sink {table.name}: another compaction was committed meanwhile, or recovery has taken this one for dead: "
            "the table was left as it is; run it again"
        )
    now = {file.path: file for file in table.files(head)}
    gone = [file.path for file in replacement.removed if now.get(file.path) != file]
    if gone:
        raise CompactionOvertaken(
            f"sink {table.name}: {len(gone)} of the {len(replacement.removed)} files were compacted, deleted from or "
            f"removed by somebody else meanwhile (such as {gone[0]}): the table was left as it is; run it again"
        )
    if fault := next((fault for file in replacement.added if (fault := table.fault(head, file.facts))), None):
        raise CompactionOvertaken(
            f"sink {table.name}: the table's columns were changed meanwhile ({fault}): nothing was done, run it again"
        )
