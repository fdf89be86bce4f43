"""FileSink: publishes an epoch as files in a folder, whole or not at all for who asks `files`.

Before the decision the files are written and fsynced in a hidden pending folder; publishing links them to their final
names, which carry sink, epoch, output and a number but no attempt, so that two publishers meet on one name instead of
doubling rows; the marker, created exclusively and last, lists them. The idea of pending files that are renamed at
commit is Flink's FileSink.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Self

import pyarrow as pa

from lockstep.epoch import Json, Vote, require_name
from lockstep.errors import (
    InvalidPipeline,
    LedgerConflict,
    PreflightRefused,
    SinkRejected,
    SinkUnavailable,
    TargetChanged,
)
from lockstep.home import absolute
from lockstep.sinks.base import Batches, Guarantee, Marker, Sink, SinkContext, SinkEpoch, Txn
from lockstep.sinks.durable_file import Damaged
from lockstep.sinks.files.buckets import Buckets
from lockstep.sinks.files.format import FileFormat
from lockstep.sinks.files.layout import MAX_BUCKETS, layout_of
from lockstep.sinks.files.listing import FileFact, Listing, read_marker
from lockstep.sinks.files.target import STATE, FileTarget
from lockstep.sinks.files.writer import BYTES_PER_FILE, ROWS_PER_FILE, Rolling
from lockstep.sinks.handles import SinkName
from lockstep.sinks.two_phase import TwoPhaseCommitSink


def files(path: str) -> list[str]:
    """The published files of the folder `path`, by epoch: of each epoch all or none.

    Reads the markers alone, so that a file that is shown before its epoch's marker stands isn't listed. An empty list
    if nothing has been published. Raises `OutcomeUnknown` if a marker is damaged.
    """
    root = Path(absolute(path))
    state = root / STATE
    markers = (*state.glob("epoch=*.json"), *state.glob("shared/*/*/*/epoch=*.json"))
    found = sorted(filter(None, map(read_marker, markers)), key=lambda one: (one.epoch, one.pipeline, one.sink))
    return [str(root / fact.name) for listing in found for fact in listing.files]


class FileSink(Sink, TwoPhaseCommitSink):
    """Files of one output in one folder, exactly once.

    `path`: a folder of a file system with hard links, used by this sink alone unless every sink in it says
    `shared=True`. `format`: "parquet", "csv", "json" (lines) or "text"; all but Parquet take only what they can give
    back. `bucket`: puts rows into folders below `path` (`ByTime`, `ByColumns`, `ByFunction`); an epoch with more than
    `max_buckets` is refused. A file is closed at `max_rows_per_file`, or once it has `max_bytes_per_file`. `success`: a
    name that is created in every bucket that an epoch has rows in (without buckets: in `path`), once all its files can
    be seen; it starts with `_`, and `{epoch}` in it stands for the epoch.

    A reader of the bare folder sees an epoch's files arrive one by one; `lockstep.files(path)` gives all or nothing.
    Raises `InvalidPipeline`.
    """

    guarantee = Guarantee.EXACTLY_ONCE

    def __init__(
        self,
        name: str,
        *,
        output: str,
        path: str,
        format: str = "parquet",
        bucket: Buckets | Mapping[str, Json] | None = None,
        max_buckets: int = MAX_BUCKETS,
        max_rows_per_file: int = ROWS_PER_FILE,
        max_bytes_per_file: int = BYTES_PER_FILE,
        success: str | None = None,
        shared: bool = False,
    ) -> None:
        super().__init__(name)
        self.output = require_name("output", output)
        if "://" in path:
            raise InvalidPipeline(
                f"sink {name}: {path} is no local path; FileSink needs names that appear at once and are never "
                "replaced, which object stores don't give: mount a POSIX file system, or write to a table"
            )
        self.path = absolute(path)
        self.layout = layout_of(format, bucket, max_buckets, Rolling(max_rows_per_file, max_bytes_per_file), success)
        self.shared = shared
        self._context: SinkContext | None = None
        self._written: dict[int, tuple[SinkEpoch, tuple[FileFact, ...] | None]] = {}

    # --- identity and life cycle ---

    @property
    def outputs(self) -> tuple[str, ...]:
        return (self.output,)

    def arguments(self) -> dict[str, Json]:
        return {
            "name": self.name,
            "output": self.output,
            "path": self.path,
            "format": str(self.layout.format),
            "shared": self.shared,
            **self.layout.arguments(),
        }

    def writes_to(self) -> frozenset[str]:
        return frozenset({f"folder {self.path}"})

    def open(self, context: SinkContext) -> Self:
        self._context = context
        return self

    def close(self) -> None:
        self._context = None
        self._written.clear()

    def preflight(self, schemas: Mapping[str, pa.Schema] | None) -> None:
        with self._storage():
            self._target.claim()
        if schemas is None:
            return
        if self.output not in schemas:
            raise PreflightRefused(f"sink {self.name}: no output {self.output!r} among {list(schemas)}")
        format = self.layout.format
        if refused := self.layout.unkept(schemas[self.output]):
            raise PreflightRefused(
                f"sink {self.name}: {format} files can't give back {'; '.join(refused)}: cast it in the transform"
                + ("" if format is FileFormat.PARQUET else ", or use format='parquet'")
            )
        if unfit := self.layout.unfit(schemas[self.output]):
            raise PreflightRefused(f"sink {self.name}: rows can't be put into buckets: {'; '.join(unfit)}")

    def disclaim(self) -> None:
        with self._storage():
            self._target.disclaim()

    # --- prepare ---

    def begin_transaction(self, epoch: SinkEpoch) -> Txn:
        """Make the pending folder. Raises `LedgerConflict` if the epoch's marker stands already."""
        txn = self._txn(epoch)
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
        listing = self._listing(epoch, facts)
        with self._storage(lambda: self._target.discard(txn)):
            self._target.vote(self._target.folder(txn), listing)
            target_id = self._target.require()
        return Vote(txn.token, txn.handle, target_id, {self.output: sum(fact.rows for fact in listing.files)})

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
            self._tidy(txn)
            return created

    def _show_pending(self, txn: Txn) -> bool:
        listing = self._target.voted(txn)
        try:
            return listing is not None and self._show(self._target.folder(txn), listing)
        except (Damaged, FileNotFoundError):
            return False

    def _show(self, folder: Path, listing: Listing) -> bool:
        return self._target.show(folder, listing, self.layout.success_names(listing))

    def _tidy(self, txn: Txn) -> None:
        """Take away what `txn` left, if the epoch is published as this manifest; any other marker is for a person."""
        shown = self._target.shown(txn.epoch)
        if shown and shown.manifest_hash[:12] == txn.manifest:
            self._target.discard(txn)

    def write_again(self, epoch: SinkEpoch, wal: Iterable[Batches]) -> bool:
        txn = self._txn(epoch)
        with self._storage():
            self._target.require()
            folder = self._target.scratch(txn)
            try:
                listing = self._write_listed(folder, epoch, wal)
                self._target.refuse_strays(self._prefix(epoch.id), listing)
                created = self._show(folder, listing)
            except (Damaged, FileNotFoundError) as error:
                if self._target.shown(epoch.id) is None:
                    raise SinkUnavailable(f"sink {self.name}: {folder} was taken away while it was written") from error
                created = False
            self._tidy(txn)
            return created

    def _write_listed(self, folder: Path, epoch: SinkEpoch, wal: Iterable[Batches]) -> Listing:
        facts: tuple[FileFact, ...] | None = None
        for batches in wal:
            facts = self._write_files(folder, epoch, batches)
        listing = self._listing(epoch, facts)
        self._target.vote(folder, listing)
        return listing

    # --- recovery and verification ---

    def pending(self) -> list[Txn]:
        with self._storage():
            found = map(self._name.parse, self._target.handles())
        return [txn for txn in found if txn is not None]

    def abort(self, txn: Txn) -> None:
        """Take away the pending files of `txn`; what is published stays."""
        if self._name.parse(txn.handle) != txn:
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
        """The rows of the files that the epoch's marker lists. Raises `TargetChanged` if one is gone or unreadable."""
        if output != self.output:
            raise InvalidPipeline(f"sink {self.name} takes the output {self.output!r}, not {output!r}")
        with self._storage():
            shown = self._target.shown(epoch)
        for fact in shown.files if shown else ():
            path = self._target.root / fact.name
            try:
                yield from self.layout.read(self._target.root, fact, schema)
            except (FileNotFoundError, ValueError, pa.ArrowException) as error:
                raise TargetChanged(
                    f"sink {self.name}: {path}, which was published, is gone or damaged: {error}"
                ) from error
            except OSError as error:
                raise self._unavailable(error) from error

    # --- writing ---

    def _write_files(self, folder: Path, epoch: SinkEpoch, batches: Batches) -> tuple[FileFact, ...]:
        if batches.output != self.output:
            raise InvalidPipeline(f"sink {self.name} takes the output {self.output!r}, not {batches.output!r}")
        return self.layout.write(folder, self._prefix(epoch.id), epoch, batches)

    def _listing(self, epoch: SinkEpoch, facts: tuple[FileFact, ...] | None) -> Listing:
        if facts is None:
            raise SinkRejected(f"sink {self.name}: the WAL of epoch {epoch.id} has no output {self.output!r}")
        name = self._name
        owner = (name.deployment, name.pipeline, name.sink)
        return Listing(*owner, epoch.id, epoch.token, epoch.manifest_hash, facts, epoch.span)

    # --- names ---

    def _prefix(self, epoch: int) -> str:
        return f"{self.name}{self._target.suffix}-epoch={epoch}-"

    def _txn(self, epoch: SinkEpoch) -> Txn:
        return Txn(self.name, epoch.id, epoch.token, epoch.manifest_hash[:12], self._name.handle(epoch))

    @property
    def _name(self) -> SinkName:
        if self._context is None:
            raise InvalidPipeline(f"sink {self.name} is used before it is opened")
        return SinkName.of(self._context, self.name)

    @property
    def _target(self) -> FileTarget:
        return FileTarget(self.path, self._name, self.shared)

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

    def _unavailable(self, error: OSError) -> SinkUnavailable:
        return SinkUnavailable(f"sink {self.name}: {self.path} can't be read or written now: {error}")
