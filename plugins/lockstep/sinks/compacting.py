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
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from itertools import groupby
from typing import Any, Generic

import pyarrow as pa

from lockstep.crash import CrashPoint, reach
from lockstep.errors import CompactionOvertaken, CompactionRefused, InvalidPipeline, SinkUnavailable
from lockstep.sinks.adopting import Answer, Head
from lockstep.sinks.rewriting import Choose, facts_of, footer_of, is_comparable, require_written, rewrite, schema_of
from lockstep.wal.file_facts import FileFacts

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
