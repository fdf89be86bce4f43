"""FileSink: an epoch as files in a folder or on an object store, visible atomically through `files`.

Before commit the files are written into a hidden pending folder. Publishing links, renames or copies them to their
final names, which have sink, epoch, output and a number but no attempt: two publishers use the same names instead of
duplicating rows. The marker, created exclusively and last, lists them. Pending files that are renamed at commit are the
idea of Flink's FileSink.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field, fields
from functools import partial
from typing import ClassVar

import pyarrow as pa

import lockstep.sinks.files._folder as _folder
import lockstep.sinks.files._hdfs_folder as _hdfs_folder
import lockstep.sinks.files._prefix as _prefix
from lockstep.connections.hdfs.address import HdfsAddress, is_hdfs
from lockstep.connections.names import Dataset, absolute, dataset_at
from lockstep.connections.object_store.address import Address, is_object_store
from lockstep.connections.object_store.store import ObjectStore, UnreadableKey
from lockstep.epoch import Json, Vote, require_name
from lockstep.errors import (
    InvalidPipeline,
    LedgerConflict,
    LockstepError,
    PreflightRefused,
    SinkRejected,
    SinkUnavailable,
    StoreRefused,
    TargetChanged,
)
from lockstep.sinks.base import Sink
from lockstep.sinks.durable_file import Damaged
from lockstep.sinks.files._folder import FolderTarget
from lockstep.sinks.files._format import BYTES_PER_FILE, ROWS_PER_FILE, FileFormat
from lockstep.sinks.files._hdfs_folder import HdfsTarget
from lockstep.sinks.files._layout import FileLayout
from lockstep.sinks.files._prefix import PrefixTarget
from lockstep.sinks.files._target import EpochFiles, FileTarget, PublishedFile, published_names
from lockstep.sinks.files.buckets import Buckets, buckets_of
from lockstep.sinks.handles import SinkName
from lockstep.sinks.two_phase import TwoPhaseCommitSink
from lockstep.sinks.values import Batches, EpochCut, Marker, ReadCut, Replaced, SinkContext, SinkEpoch, Txn

MAX_OBJECT_BYTES = 1 << 30  #: an object is in memory while it is put
_MAX_BUCKETS = 10_000


def files(path: str, login: str | None = None) -> list[str]:
    """The published files of `path`, by epoch: for each epoch all or none, and none of a replaced one.

    Reads markers only: files that are visible before their epoch's marker exists are not listed. Empty if nothing has
    been published. On an object store (`s3://…`) the files are `s3://bucket/key`, on HDFS `hdfs://cluster/path`, not
    percent-encoded. `login`: a Connection as a URI, by default from the environment. Raises `OutcomeUnknown` if a
    marker is damaged, OSError if something can't be read.
    """
    if is_object_store(path):
        return _prefix.published(ObjectStore.at(path, login))
    if is_hdfs(path):
        return _hdfs_folder.published(HdfsAddress.of(path))
    return _folder.published(absolute(path))


@dataclass(frozen=True, kw_only=True)
class FileSink(Sink):
    """Writes files of one output into one folder, or below one prefix of an object store, exactly once.

    `path`: a folder on a file system with hard links; or on HDFS, `hdfs://cluster/path`, where `hdfs:///path` is on the
    cluster of Hadoop's configuration; or `s3://bucket/prefix`. No other sink may use it, unless all set `shared=True`.
    `connection`: id of the store's login, by default from the environment. `format`: "parquet", "csv", "json" (lines)
    or "text"; all but Parquet refuse types that they can't restore. `bucket`: assigns rows to folders below `path`
    (`ByTime`, `ByColumns`, `ByFunction`); an epoch with more than `max_buckets` is refused. A file is closed at
    `max_rows_per_file`, or once it has `max_bytes_per_file`. `success`: a name, beginning with `_`, that is created in
    every bucket of an epoch (without buckets: in `path`) once all its files are visible; `{epoch}` in it is replaced by
    the epoch's number.

    Readers of the bare folder see an epoch's files arrive one by one; `lockstep.files(path)` returns all or none.
    Raises `InvalidPipeline`.
    """

    name: str = field(kw_only=False)
    output: str
    path: str
    format: str = "parquet"
    bucket: Buckets | Mapping[str, Json] | None = None
    max_buckets: int = _MAX_BUCKETS
    max_rows_per_file: int = ROWS_PER_FILE
    max_bytes_per_file: int = BYTES_PER_FILE
    success: str | None = None
    shared: bool = False
    connection: str | None = None

    local_paths: ClassVar[frozenset[str]] = frozenset({"path"})

    def __post_init__(self) -> None:
        super().__post_init__()
        require_name("output", self.output)
        if is_hdfs(self.path):
            self._require_cluster()
        elif "://" in self.path:
            self._require_store()
        elif self.connection is not None:
            raise InvalidPipeline(f"sink {self.name}: connection is for object stores, but {self.path} is a folder")
        self._layout()

    def _require_cluster(self) -> None:
        if self.connection is not None:
            raise InvalidPipeline(f"sink {self.name}: HDFS takes no connection: the environment determines the user")
        try:
            HdfsAddress.require(self.path)
        except StoreRefused as error:  # the path may hold a secret
            raise InvalidPipeline(f"sink {self.name}: {error}") from None
        if ":" in self.path.partition("://")[2].partition("/")[2]:
            raise InvalidPipeline(f"sink {self.name}: {self.path} has a colon, which HDFS doesn't allow in names")

    def _require_store(self) -> None:
        if not is_object_store(self.path):
            raise InvalidPipeline(
                f"sink {self.name}: FileSink takes folders on a POSIX file system, without a scheme, "
                f"s3://bucket/prefix, and hdfs://cluster/path, not {self.path.partition('://')[0]}://"
            )
        try:
            Address.of(self.path)
        except StoreRefused as error:  # the path may hold a secret
            raise InvalidPipeline(f"sink {self.name}: {error}") from None
        if self.max_bytes_per_file > MAX_OBJECT_BYTES:
            raise InvalidPipeline(
                f"sink {self.name}: max_bytes_per_file is at most {MAX_OBJECT_BYTES}: an object is put by one request"
            )

    def arguments(self) -> dict[str, Json]:
        """Arguments that differ from their defaults, and those that are always in plans. `hdfs:///` becomes the cluster
        that is configured at planning time. Raises `StoreRefused` if there is none."""
        bucket = None if self.bucket is None else buckets_of(self.bucket).to_json()
        arguments = {argument.name: getattr(self, argument.name) for argument in fields(self)} | {
            "bucket": bucket,
            "path": self._place,
        }
        defaults = {
            argument.name: argument.default for argument in fields(self) if argument.name not in ("format", "shared")
        }
        return {name: value for name, value in arguments.items() if name not in defaults or value != defaults[name]}

    def writes_to(self) -> frozenset[str]:
        place = Address.of(self.path).uri if is_object_store(self.path) else self._place
        return frozenset({f"folder {place}"})

    def datasets(self, connections: Mapping[str, str]) -> Mapping[str, Dataset]:
        return {self.output: dataset_at(self.path)}

    @property
    def _place(self) -> str:
        return HdfsAddress.of(self.path).uri if is_hdfs(self.path) else self.path

    def open(self, context: SinkContext) -> OpenFileSink:
        return OpenFileSink(self, self._target(context), self._layout())

    def _target(self, context: SinkContext) -> FileTarget:
        owner = SinkName.of(context, self.name)
        if is_hdfs(self.path):
            return HdfsTarget(HdfsAddress.of(self.path), owner, self.shared)
        if not is_object_store(self.path):
            return FolderTarget(self.path, owner, self.shared)
        login = context.dsn(self.connection, self.name) if self.connection is not None else None
        return PrefixTarget(ObjectStore.at(self.path, login), owner, self.shared)

    def _layout(self) -> FileLayout:
        if self.format not in list(FileFormat):
            raise InvalidPipeline(f"format {self.format!r} must be one of {', '.join(FileFormat)}")
        return FileLayout(
            FileFormat(self.format),
            None if self.bucket is None else buckets_of(self.bucket),
            self.max_buckets,
            self.max_rows_per_file,
            self.max_bytes_per_file,
            self.success,
        )


class OpenFileSink(TwoPhaseCommitSink):
    """Access to `target` by one process, with files laid out by `layout`."""

    def __init__(self, sink: Sink, target: FileTarget, layout: FileLayout) -> None:
        super().__init__(sink)
        self._target, self._layout = target, layout
        self._written: dict[int, tuple[SinkEpoch, tuple[PublishedFile, ...] | None]] = {}  # by token

    # --- life cycle ---

    def close(self) -> None:
        self._written.clear()

    def preflight(self, schemas: Mapping[str, pa.Schema] | None) -> None:
        with self._storage_errors():
            self._target.claim()
        if schemas is None:
            return
        if self.sink.output not in schemas:
            raise PreflightRefused(f"sink {self.name}: no output {self.sink.output!r} among {list(schemas)}")
        format = self._layout.format
        if unsupported := self._layout.unsupported(schemas[self.sink.output]):
            raise PreflightRefused(
                f"sink {self.name}: {format} files can't give back {'; '.join(unsupported)}: cast it in the transform"
                + ("" if format is FileFormat.PARQUET else ", or use format='parquet'")
            )
        if misfits := self._layout.misfits(schemas[self.sink.output]):
            raise PreflightRefused(f"sink {self.name}: rows can't be put into buckets: {'; '.join(misfits)}")

    def require_replaceable(self) -> None:
        """Nothing to check: the marker says which epochs are replaced."""

    def disclaim(self) -> None:
        with self._storage_errors():
            self._target.disclaim()

    # --- prepare ---

    def begin_transaction(self, epoch: SinkEpoch) -> Txn:
        """Create the pending folder. Raises `LedgerConflict` if the epoch's marker exists."""
        txn = self._target.owner.transaction(epoch)
        with self._storage_errors():
            self._target.require()
            if marker := self._target.find_marker(epoch.id):
                raise LedgerConflict(
                    f"sink {self.name}: epoch {epoch.id} is to be prepared, but token {marker.token} has published it"
                )
            self._target.begin(txn)
        self._written[txn.token] = (epoch, None)
        return txn

    def write(self, txn: Txn, batches: Batches) -> None:
        epoch, _ = self._written[txn.token]
        with self._storage_errors(lambda: self._target.discard(txn)):
            facts = self._write_files(self._target.folder(txn), epoch, batches)
            self._target.refuse_blocked_buckets({fact.bucket for fact in facts})
            self._written[txn.token] = (epoch, facts)

    def pre_commit(self, txn: Txn) -> Vote:
        epoch, facts = self._written.pop(txn.token)
        listing = self._listing(epoch, facts, decided=False)
        with self._storage_errors(lambda: self._target.discard(txn)):
            self._target.vote(self._target.folder(txn), listing)
            target_id = self._target.require()
        return Vote(txn.token, txn.handle, target_id, {self.sink.output: sum(fact.rows for fact in listing.files)})

    # --- publish ---

    def is_pending(self, txn: Txn) -> bool:
        with self._storage_errors():
            return self._target.find_marker(txn.epoch) is None and self._target.read_vote(txn) is not None

    def commit(self, txn: Txn) -> None:
        """Publish what `txn` voted for. Raises `SinkUnavailable` if its pending files are missing and there is no
        marker."""
        if not self.recover_and_commit(txn) and self.find_marker(txn.epoch) is None:
            raise SinkUnavailable(
                f"sink {self.name}: the pending files of epoch {txn.epoch} are missing or damaged: publish it again"
            )

    def recover_and_commit(self, txn: Txn) -> bool:
        """False if another process has published the epoch, or its pending files are missing or differ from the
        vote."""
        with self._storage_errors():
            self._target.require()
            created = False
            if self._target.find_marker(txn.epoch) is None and (listing := self._target.read_vote(txn)) is not None:
                with suppress(Damaged, FileNotFoundError):
                    created = self._publish(self._target.folder(txn), listing)
            self._clean_up(txn, created)
            return created

    def _publish(self, folder: str, listing: EpochFiles) -> bool:
        return self._target.publish(folder, listing, self._layout.success_names(listing))

    def _clean_up(self, txn: Txn, created: bool) -> None:
        """Delete what `txn` left, and the files of replaced epochs, if the epoch is published with this manifest;
        another marker needs a person."""
        listing = self._target.find_marker(txn.epoch)
        if listing and listing.manifest_hash[:12] == txn.manifest:
            self._target.delete_replaced(txn, listing)
            self._target.discard(txn, just_published=created)

    def write_again(self, epoch: SinkEpoch, wal: Iterable[Batches]) -> bool:
        txn = self._target.owner.transaction(epoch)
        with self._storage_errors():
            self._target.require()
            folder = self._target.scratch(txn)
            try:
                facts: tuple[PublishedFile, ...] | None = None
                for batches in wal:
                    facts = self._write_files(folder, epoch, batches)
                listing = self._listing(epoch, facts, decided=True)
                self._target.vote(folder, listing)
                self._target.refuse_unlisted(self._prefix(epoch.id), listing)
                created = self._publish(folder, listing)
            except (Damaged, FileNotFoundError) as error:
                if self._target.find_marker(epoch.id) is None:
                    raise SinkUnavailable(
                        f"sink {self.name}: {folder} of {self._target.place} was deleted while it was written"
                    ) from error
                created = False
            self._clean_up(txn, created)
            return created

    # --- recovery and verification ---

    def pending(self) -> list[Txn]:
        with self._storage_errors():
            transactions = map(self._target.owner.parse, self._target.handles())
        return [txn for txn in transactions if txn is not None]

    def abort(self, txn: Txn) -> None:
        """Delete the pending files of `txn`; published ones stay."""
        if self._target.owner.parse(txn.handle) != txn:
            raise LedgerConflict(f"sink {self.name}: {txn.handle} isn't a handle of this sink")
        with self._storage_errors():
            self._target.discard(txn)

    def find_marker(self, epoch: int) -> Marker | None:
        with self._storage_errors():
            listing = self._target.find_marker(epoch)
        return listing.marker if listing else None

    def find_marker_of_span(self, span: str) -> Marker | None:
        with self._storage_errors():
            listing = self._target.find_marker_of_span(span)
        return listing.marker if listing else None

    def newest_markers(self) -> list[Marker]:
        with self._storage_errors():
            last = max(self._target.epochs(), default=None)
        marker = self.find_marker(last) if last is not None else None
        return [marker] if marker else []

    def markers(self) -> Iterator[Marker]:
        with self._storage_errors():
            epochs = sorted(self._target.epochs())
        yield from filter(None, map(self.find_marker, epochs))

    def target_id(self) -> str:
        with self._storage_errors():
            return self._target.require()

    def read(self, epoch: int, output: str, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """Rows of the files that the epoch's marker lists; none of a replaced epoch.

        Raises `TargetChanged` if a file is missing or unreadable.
        """
        if output != self.sink.output:
            raise InvalidPipeline(f"sink {self.name} takes the output {self.sink.output!r}, not {output!r}")
        with self._storage_errors():
            listing = self._target.find_marker(epoch)
            replaced = listing is not None and self._target.replaced_by(epoch) is not None
        for fact in listing.files if listing and not replaced else ():
            path = f"{self._target.place}/{fact.name}"
            try:
                with closing(self._target.open(fact.name)) as file:
                    yield from self._layout.read(file, fact, schema)
            except (FileNotFoundError, ValueError, pa.ArrowException) as error:
                raise TargetChanged(
                    f"sink {self.name}: the published file {path} is missing or damaged: {error}"
                ) from error
            except OSError as error:
                raise self._unavailable(error) from error

    def cut(self, epochs: EpochCut) -> list[ReadCut]:
        with self._storage_errors():
            listings = [self._target.find_marker(epoch) for epoch in sorted(self._target.epochs()) if epoch in epochs]
        files = tuple(f"{self._target.place}/{name}" for name in published_names(filter(None, listings)))
        return [ReadCut(self.sink.output, self._target.place, files=files)]

    # --- writing ---

    def _write_files(self, folder: str, epoch: SinkEpoch, batches: Batches) -> tuple[PublishedFile, ...]:
        if batches.output != self.sink.output:
            raise InvalidPipeline(f"sink {self.name} takes the output {self.sink.output!r}, not {batches.output!r}")
        write = partial(self._layout.write, self._prefix(epoch.id), epoch, batches)
        return self._target.write(folder, write)

    def _listing(self, epoch: SinkEpoch, facts: tuple[PublishedFile, ...] | None, *, decided: bool) -> EpochFiles:
        if facts is None:
            raise SinkRejected(f"sink {self.name}: the WAL of epoch {epoch.id} has no output {self.sink.output!r}")
        name = self._target.owner
        owner = (name.deployment, name.pipeline, name.sink)
        replaced = self._all_replaced(epoch, decided)
        return EpochFiles(*owner, epoch.id, epoch.token, epoch.manifest_hash, facts, epoch.span, replaced)

    def _all_replaced(self, epoch: SinkEpoch, decided: bool) -> tuple[int, ...]:
        """Epochs that this one replaces, and those that they had replaced: one marker lists all, for readers that miss
        another one.

        Raises `LedgerConflict` if one isn't published as decided; for a decided epoch see `_removed_epochs`.
        """
        markers: Sequence[tuple[Replaced, Marker | None]]
        if not decided:
            markers = [(old, self._require_shown(old, self.find_marker(old.id), epoch)) for old in epoch.replaced]
        if decided or epoch.lacking:
            markers = self._removed_epochs(epoch, self.find_marker)
        return tuple(sorted({id for old, marker in markers for id in (old.id, *(marker.replaced if marker else ()))}))

    # --- names ---

    def _prefix(self, epoch: int) -> str:
        return f"{self.name}{self._target.suffix}-epoch={epoch}-"

    # --- errors ---

    @contextmanager
    def _storage_errors(self, undo: Callable[[], None] | None = None) -> Iterator[None]:
        """Turn OSError into `SinkUnavailable`, after `undo`, which frees space."""
        try:
            yield
        except OSError as error:
            if undo is not None:
                with suppress(OSError):  # the sweeper does it later
                    undo()
            raise self._unavailable(error) from error

    def _unavailable(self, error: OSError) -> LockstepError:
        if isinstance(error, UnreadableKey):  # a retry doesn't help: a person has to move the object
            return TargetChanged(f"sink {self.name}: {self._target.place} can't be listed: {error.strerror}")
        return SinkUnavailable(f"sink {self.name}: {self._target.place} can't be read or written now: {error}")
