"""FileSink, connected to its folder, or to its place on an object store.

Before the decision the files are written in a hidden pending folder; publishing links or copies them to their final
names, which carry sink, epoch, output and a number but no attempt, so that two publishers meet on one name instead of
doubling rows; the marker, created exclusively and last, lists them. The idea of pending files that are renamed at
commit is Flink's FileSink.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from functools import partial

import pyarrow as pa

from lockstep.connections.object_store.store import UnreadableKey
from lockstep.epoch import Vote
from lockstep.errors import (
    InvalidPipeline,
    LedgerConflict,
    LockstepError,
    PreflightRefused,
    SinkRejected,
    SinkUnavailable,
    TargetChanged,
)
from lockstep.sinks.base import Sink
from lockstep.sinks.durable_file import Damaged
from lockstep.sinks.files._format import FileFormat
from lockstep.sinks.files._layout import FileLayout
from lockstep.sinks.files._listing import FileFact, Listing, names_of
from lockstep.sinks.files._target import FileTarget
from lockstep.sinks.two_phase import TwoPhaseCommitSink
from lockstep.sinks.values import Batches, EpochCut, Marker, ReadCut, Replaced, SinkEpoch, Txn


class OpenFileSink(TwoPhaseCommitSink):
    """One process' view of `target`, whose files are laid out by `layout`."""

    def __init__(self, sink: Sink, target: FileTarget, layout: FileLayout) -> None:
        super().__init__(sink)
        self._target, self._layout = target, layout
        self._written: dict[int, tuple[SinkEpoch, tuple[FileFact, ...] | None]] = {}  # by token

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

    def _show(self, folder: str, listing: Listing) -> bool:
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

    def _write_listed(self, folder: str, epoch: SinkEpoch, wal: Iterable[Batches]) -> Listing:
        facts: tuple[FileFact, ...] | None = None
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

    def _write_files(self, folder: str, epoch: SinkEpoch, batches: Batches) -> tuple[FileFact, ...]:
        if batches.output != self.sink.output:
            raise InvalidPipeline(f"sink {self.name} takes the output {self.sink.output!r}, not {batches.output!r}")
        write = partial(self._layout.write, self._prefix(epoch.id), epoch, batches)
        return self._target.write(folder, write)

    def _listing(self, epoch: SinkEpoch, facts: tuple[FileFact, ...] | None, *, decided: bool) -> Listing:
        if facts is None:
            raise SinkRejected(f"sink {self.name}: the WAL of epoch {epoch.id} has no output {self.sink.output!r}")
        name = self._target.owner
        owner = (name.deployment, name.pipeline, name.sink)
        replaced = self._all_replaced(epoch, decided)
        return Listing(*owner, epoch.id, epoch.token, epoch.manifest_hash, facts, epoch.span, replaced)

    def _all_replaced(self, epoch: SinkEpoch, decided: bool) -> tuple[int, ...]:
        """Those whose places the epoch takes, and theirs: who lists markers while some are made may miss one of them.

        Raises `LedgerConflict` if one isn't shown as it was decided; of a decided epoch see `_removed_epochs`."""
        found: Sequence[tuple[Replaced, Marker | None]]
        if not decided:
            found = [(one, self._require_shown(one, self.find_marker(one.id), epoch)) for one in epoch.replaced]
        if decided or epoch.lacking:
            found = self._removed_epochs(epoch, self.find_marker)
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
