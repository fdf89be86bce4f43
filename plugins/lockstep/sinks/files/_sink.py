"""FileSink: an epoch as files in a folder, whole or not at all for who asks `files`."""

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
from lockstep.connections.dataset import Dataset
from lockstep.connections.folder_dataset import dataset_at
from lockstep.connections.hdfs.address import HdfsAddress, is_hdfs
from lockstep.connections.home import absolute
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
from lockstep.sinks.files._target import EpochFiles, FileTarget, PublishedFile, names_of
from lockstep.sinks.files.buckets import Buckets, buckets_of
from lockstep.sinks.handles import SinkName
from lockstep.sinks.two_phase import TwoPhaseCommitSink
from lockstep.sinks.values import Batches, EpochCut, Marker, ReadCut, Replaced, SinkContext, SinkEpoch, Txn

MOST_BYTES = 1 << 30  #: of an object of a store: it is held in memory while it is put
_MAX_BUCKETS = 10_000


def files(path: str, login: str | None = None) -> list[str]:
    """The published files of `path`, by epoch: of each epoch all or none, and none of one that another has replaced.

    Reads the markers alone, so that a file that is shown before its epoch's marker stands isn't listed. An empty list
    if nothing has been published. On an object store (`s3://…`) the files are `s3://bucket/key`, on HDFS
    `hdfs://cluster/path`, not percent-encoded; `login`: a Connection as a URI, without it the environment's. Raises
    `OutcomeUnknown` if a marker is damaged, OSError for what can't be read.
    """
    if is_object_store(path):
        return _prefix.published(ObjectStore.at(path, login))
    if is_hdfs(path):
        return _hdfs_folder.published(HdfsAddress.of(path))
    return _folder.published(absolute(path))


@dataclass(frozen=True, kw_only=True)
class FileSink(Sink):
    """Files of one output in one folder, or below one prefix of an object store, exactly once.

    `path`: a folder of a file system with hard links; or of HDFS, `hdfs://cluster/path`, where `hdfs:///path` is on the
    cluster that Hadoop's configuration names; or `s3://bucket/prefix`. It is used by this sink alone unless every sink
    in it says `shared=True`. `connection`: the id of the store's login; without it the environment's. `format`:
    "parquet", "csv", "json" (lines) or "text"; all but Parquet take only what they can give back. `bucket`: puts rows
    into folders below `path` (`ByTime`, `ByColumns`, `ByFunction`); an epoch with more than `max_buckets` is refused. A
    file is closed at `max_rows_per_file`, or once it has `max_bytes_per_file`. `success`: a name that is created in
    every bucket that an epoch has rows in (without buckets: in `path`), once all its files can be seen; it starts with
    `_`, and `{epoch}` in it stands for the epoch.

    A reader of the bare folder sees an epoch's files arrive one by one; `lockstep.files(path)` gives all or nothing.
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
            raise InvalidPipeline(f"sink {self.name}: connection is for object stores, and {self.path} is a folder")
        self._layout()

    def _require_cluster(self) -> None:
        if self.connection is not None:
            raise InvalidPipeline(f"sink {self.name}: HDFS takes no connection: the environment says who asks")
        try:
            HdfsAddress.require(self.path)
        except StoreRefused as error:  # the path may hold a secret
            raise InvalidPipeline(f"sink {self.name}: {error}") from None
        if ":" in self.path.partition("://")[2].partition("/")[2]:
            raise InvalidPipeline(f"sink {self.name}: {self.path} has a colon in it, which no name on HDFS has")

    def _require_store(self) -> None:
        if not is_object_store(self.path):
            raise InvalidPipeline(
                f"sink {self.name}: FileSink takes folders on a POSIX file system, without a scheme, object stores, as "
                f"s3://bucket/prefix, and hdfs://cluster/path: not {self.path.partition('://')[0]}://"
            )
        try:
            Address.of(self.path)
        except StoreRefused as error:  # the path may hold a secret
            raise InvalidPipeline(f"sink {self.name}: {error}") from None
        if self.max_bytes_per_file > MOST_BYTES:
            raise InvalidPipeline(
                f"sink {self.name}: max_bytes_per_file is at most {MOST_BYTES}: an object is put by one request"
            )

    def arguments(self) -> dict[str, Json]:
        """Without what is as usual, but for those that plans have always held. `hdfs:///` is on the cluster that the
        configuration names where an epoch is planned, and its plan keeps it. Raises `StoreRefused` if it names none."""
        bucket = None if self.bucket is None else buckets_of(self.bucket).to_json()
        given = {one.name: getattr(self, one.name) for one in fields(self)} | {"bucket": bucket, "path": self._place}
        usual = {one.name: one.default for one in fields(self) if one.name not in ("format", "shared")}
        return {name: value for name, value in given.items() if name not in usual or value != usual[name]}

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
    """One process' view of `target`, whose files are laid out by `layout`."""

    def __init__(self, sink: Sink, target: FileTarget, layout: FileLayout) -> None:
        super().__init__(sink)
        self._target, self._layout = target, layout
        self._written: dict[int, tuple[SinkEpoch, tuple[PublishedFile, ...] | None]] = {}  # by token

    # --- life cycle ---

    def close(self) -> None:
        self._written.clear()

    def preflight(self, schemas: Mapping[str, pa.Schema] | None) -> None:
        with self._storage():
            self._target.claim()
        if schemas is None:
            return
        if self.sink.output not in schemas:
            raise PreflightRefused(f"sink {self.name}: no output {self.sink.output!r} among {list(schemas)}")
        format = self._layout.format
        if refused := self._layout.unkept(schemas[self.sink.output]):
            raise PreflightRefused(
                f"sink {self.name}: {format} files can't give back {'; '.join(refused)}: cast it in the transform"
                + ("" if format is FileFormat.PARQUET else ", or use format='parquet'")
            )
        if unfit := self._layout.unfit(schemas[self.sink.output]):
            raise PreflightRefused(f"sink {self.name}: rows can't be put into buckets: {'; '.join(unfit)}")

    def require_replaceable(self) -> None:
        """Any epoch can be: the marker says whose place it takes."""

    def disclaim(self) -> None:
        with self._storage():
            self._target.disclaim()

    # --- prepare ---

    def begin_transaction(self, epoch: SinkEpoch) -> Txn:
        """Make the pending folder. Raises `LedgerConflict` if the epoch's marker stands already."""
        txn = self._target.owner.transaction(epoch)
        with self._storage():
            self._target.require()
            if marker := self._target.shown(epoch.id):
                raise LedgerConflict(
                    f"sink {self.name}: epoch {epoch.id} is to be prepared, yet token {marker.token} has published it"
                )
            self._target.begin(txn)
        self._written[txn.token] = (epoch, None)
        return txn

    def write(self, txn: Txn, batches: Batches) -> None:
        epoch, _ = self._written[txn.token]
        with self._storage(lambda: self._target.discard(txn)):
            facts = self._write_files(self._target.folder(txn), epoch, batches)
            self._target.refuse_blocked({fact.bucket for fact in facts})
            self._written[txn.token] = (epoch, facts)

    def pre_commit(self, txn: Txn) -> Vote:
        epoch, facts = self._written.pop(txn.token)
        listing = self._listing(epoch, facts, decided=False)
        with self._storage(lambda: self._target.discard(txn)):
            self._target.vote(self._target.folder(txn), listing)
            target_id = self._target.require()
        return Vote(txn.token, txn.handle, target_id, {self.sink.output: sum(fact.rows for fact in listing.files)})

    # --- publish ---

    def is_pending(self, txn: Txn) -> bool:
        with self._storage():
            return self._target.shown(txn.epoch) is None and self._target.voted(txn) is not None

    def commit(self, txn: Txn) -> None:
        """Show what `txn` voted. Raises `SinkUnavailable` if its pending files are gone and no marker stands."""
        if not self.recover_and_commit(txn) and self.find_marker(txn.epoch) is None:
            raise SinkUnavailable(
                f"sink {self.name}: the pending files of epoch {txn.epoch} are gone or damaged: publish the epoch again"
            )

    def recover_and_commit(self, txn: Txn) -> bool:
        """False if somebody else has published the epoch, or its pending files are gone or aren't what was voted."""
        with self._storage():
            self._target.require()
            created = self._target.shown(txn.epoch) is None and self._show_pending(txn)
            self._tidy(txn, created)
            return created

    def _show_pending(self, txn: Txn) -> bool:
        listing = self._target.voted(txn)
        try:
            return listing is not None and self._show(self._target.folder(txn), listing)
        except (Damaged, FileNotFoundError):
            return False

    def _show(self, folder: str, listing: EpochFiles) -> bool:
        return self._target.show(folder, listing, self._layout.success_names(listing))

    def _tidy(self, txn: Txn, created: bool) -> None:
        """Take away what `txn` left, and the files whose places its own have taken, if the epoch is published as this
        manifest; any other marker is for a person."""
        shown = self._target.shown(txn.epoch)
        if shown and shown.manifest_hash[:12] == txn.manifest:
            self._target.take_away_replaced(txn, shown)
            self._target.discard(txn, just_shown=created)

    def write_again(self, epoch: SinkEpoch, wal: Iterable[Batches]) -> bool:
        txn = self._target.owner.transaction(epoch)
        with self._storage():
            self._target.require()
            folder = self._target.scratch(txn)
            try:
                listing = self._write_listed(folder, epoch, wal)
                self._target.refuse_strays(self._prefix(epoch.id), listing)
                created = self._show(folder, listing)
            except (Damaged, FileNotFoundError) as error:
                if self._target.shown(epoch.id) is None:
                    raise SinkUnavailable(
                        f"sink {self.name}: {folder} of {self._target.place} was taken away while it was written"
                    ) from error
                created = False
            self._tidy(txn, created)
            return created

    def _write_listed(self, folder: str, epoch: SinkEpoch, wal: Iterable[Batches]) -> EpochFiles:
        facts: tuple[PublishedFile, ...] | None = None
        for batches in wal:
            facts = self._write_files(folder, epoch, batches)
        listing = self._listing(epoch, facts, decided=True)
        self._target.vote(folder, listing)
        return listing

    # --- recovery and verification ---

    def pending(self) -> list[Txn]:
        with self._storage():
            found = map(self._target.owner.parse, self._target.handles())
        return [txn for txn in found if txn is not None]

    def abort(self, txn: Txn) -> None:
        """Take away the pending files of `txn`; what is published stays."""
        if self._target.owner.parse(txn.handle) != txn:
            raise LedgerConflict(f"sink {self.name}: {txn.handle} is no handle of this sink")
        with self._storage():
            self._target.discard(txn)

    def find_marker(self, epoch: int) -> Marker | None:
        with self._storage():
            shown = self._target.shown(epoch)
        return shown.marker if shown else None

    def find_marker_of_span(self, span: str) -> Marker | None:
        with self._storage():
            shown = self._target.shown_span(span)
        return shown.marker if shown else None

    def newest_markers(self) -> list[Marker]:
        with self._storage():
            last = max(self._target.epochs(), default=None)
        found = self.find_marker(last) if last is not None else None
        return [found] if found else []

    def markers(self) -> Iterator[Marker]:
        with self._storage():
            epochs = sorted(self._target.epochs())
        yield from filter(None, map(self.find_marker, epochs))

    def target_id(self) -> str:
        with self._storage():
            return self._target.require()

    def read(self, epoch: int, output: str, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """The rows of the files that the epoch's marker lists; of an epoch that was replaced none. Raises
        `TargetChanged` if one is gone or unreadable."""
        if output != self.sink.output:
            raise InvalidPipeline(f"sink {self.name} takes the output {self.sink.output!r}, not {output!r}")
        with self._storage():
            shown = self._target.shown(epoch)
            replaced = shown is not None and self._target.replaced_by(epoch) is not None
        for fact in shown.files if shown and not replaced else ():
            path = f"{self._target.place}/{fact.name}"
            try:
                with closing(self._target.open(fact.name)) as file:
                    yield from self._layout.read(file, fact, schema)
            except (FileNotFoundError, ValueError, pa.ArrowException) as error:
                raise TargetChanged(
                    f"sink {self.name}: {path}, which was published, is gone or damaged: {error}"
                ) from error
            except OSError as error:
                raise self._unavailable(error) from error

    def cut(self, epochs: EpochCut) -> list[ReadCut]:
        with self._storage():
            shown = [self._target.shown(epoch) for epoch in sorted(self._target.epochs()) if epoch in epochs]
        files = tuple(f"{self._target.place}/{name}" for name in names_of(filter(None, shown)))
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
        """Those whose places the epoch takes, and theirs: who lists markers while some are made may miss one of them.

        Raises `LedgerConflict` if one isn't shown as it was decided; of a decided epoch see `_taken_away`."""
        found: Sequence[tuple[Replaced, Marker | None]]
        if not decided:
            found = [(one, self._require_shown(one, self.find_marker(one.id), epoch)) for one in epoch.replaced]
        if decided or epoch.lacking:
            found = self._taken_away(epoch, self.find_marker)
        return tuple(sorted({id for one, marker in found for id in (one.id, *(marker.replaced if marker else ()))}))

    # --- names ---

    def _prefix(self, epoch: int) -> str:
        return f"{self.name}{self._target.suffix}-epoch={epoch}-"

    # --- errors ---

    @contextmanager
    def _storage(self, undo: Callable[[], None] | None = None) -> Iterator[None]:
        """What the file system refuses becomes `SinkUnavailable`, after `undo`, which gives room back."""
        try:
            yield
        except OSError as error:
            if undo is not None:
                with suppress(OSError):  # then the sweeper does it
                    undo()
            raise self._unavailable(error) from error

    def _unavailable(self, error: OSError) -> LockstepError:
        if isinstance(error, UnreadableKey):  # it is for a person to move: no try of ours gets past it
            return TargetChanged(f"sink {self.name}: {self._target.place} can't be listed: {error.strerror}")
        return SinkUnavailable(f"sink {self.name}: {self._target.place} can't be read or written now: {error}")
