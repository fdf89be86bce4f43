"""A `TableSink` by write-ahead: the rows go in after the decision, in one transaction with the marker."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime
from typing import Self

import pyarrow as pa

from lockstep.crash import CrashPoint, reach
from lockstep.epoch import Json, Vote
from lockstep.errors import PreflightRefused, PublishBlocked, SinkRejected, SinkUnavailable
from lockstep.sinks.base import Batches, Guarantee, Marker, SinkContext, SinkEpoch
from lockstep.sinks.committers.sent import SentCommitter, promised
from lockstep.sinks.tables.claim import AnyClaim, TableClaim
from lockstep.sinks.tables.output import UniqueKey
from lockstep.sinks.tables.server import Output
from lockstep.sinks.tables.sink import TableSink
from lockstep.sinks.write_ahead import CheckpointCommitter, Session, WriteAheadSink


def _named(owners: Sequence[tuple[str, str, str, bool]]) -> str:
    return f" ({', '.join(f'{pipeline}.{sink}' for _, pipeline, sink, _ in owners)})" if owners else ""


class MarkerCommitter(CheckpointCommitter):
    """Remembers epochs by the marker, in the transaction that sends their rows: exactly once."""

    guarantee = Guarantee.EXACTLY_ONCE

    def __init__(self, sink: TableWriteAheadSink) -> None:
        self._sink = sink

    def create_resource(self) -> None:
        with self._sink._setting_up() as cursor:
            self._sink._own.create(cursor)

    def open(self) -> None:
        """The sink's connection is this one's too."""

    def close(self) -> None:
        """See `open`."""

    @contextmanager
    def session(self, epoch: SinkEpoch) -> Iterator[Session]:
        with self._sink._publishing(epoch) as claim:
            yield claim

    def is_checkpoint_committed(self, epoch: int) -> Marker | None:
        return TableSink.find_marker(self._sink, epoch)

    def find_span(self, span: str) -> Marker | None:
        return TableSink.find_marker_of_span(self._sink, span)

    def newest(self) -> list[Marker]:
        return TableSink.newest_markers(self._sink)

    def all(self) -> Iterable[Marker]:
        return TableSink.markers(self._sink)

    def commit_checkpoint(self, epoch: SinkEpoch, session: Session) -> None:
        assert isinstance(session, TableClaim)
        with self._sink._database.naming(f"publishing epoch {epoch.id}", PublishBlocked):
            self._sink._own.record_rows(session.cursor, epoch, session.rows)


class TableWriteAheadSink(TableSink, WriteAheadSink):
    """One transaction an epoch for all tables of the sink. Stands before the database's class among the bases."""

    protocol = "write_ahead"
    _needs_turn = False

    # --- what each database does in its own way ---

    @abstractmethod
    def _trying(self, epoch: SinkEpoch) -> AnyClaim:
        """Open a transaction before the decision, in which rows are tried and never committed."""

    def _check_tried(self, claim: AnyClaim) -> None:
        """Check what the database would only check at the commit."""

    @abstractmethod
    def _try_encoding(self, claim: AnyClaim, batches: Batches) -> int:
        """For validate="schema": compare types, values and counts, and send nothing; returns how many rows."""

    @abstractmethod
    def _sending(self, epoch: SinkEpoch) -> AbstractContextManager[AnyClaim]:
        """For a record elsewhere: a transaction that leaves no marker behind."""

    @abstractmethod
    def _commit_sent(self, session: Session) -> None:
        """Commit what `_sending` has opened."""

    # --- what is the same ---

    def _promise(self, guarantee: str, committer: str | None) -> None:
        self.guarantee, self._elsewhere = promised(self.name, guarantee, committer)

    def arguments(self) -> dict[str, Json]:
        odd = {} if self.guarantee is Guarantee.EXACTLY_ONCE else {"guarantee": self.guarantee.value}
        given = self._elsewhere.setting()
        return super().arguments() | odd | ({"committer": given} if given is not None else {})

    def open(self, context: SinkContext) -> Self:
        super().open(context)
        self.committer = self._committer(context)
        self.committer.set_job_id(f"{context.deployment}:{context.pipeline}")
        self.committer.set_operator_id(self.name)
        self.committer.open()
        return self

    def _committer(self, context: SinkContext) -> CheckpointCommitter:
        if self.guarantee is Guarantee.EXACTLY_ONCE:
            return MarkerCommitter(self)
        committer = SentCommitter(self._elsewhere, self._sending, self._commit_sent)
        committer.connect(context, self.name)
        return committer

    def close(self) -> None:
        if hasattr(self, "committer"):
            self.committer.close()
        super().close()

    # --- rows that another epoch's could make the table refuse, after both were decided ---

    @property
    def needs_turn(self) -> bool:
        return self._needs_turn

    def _look_at_keys(self, schemas: Mapping[str, pa.Schema]) -> None:
        """A key that tells epochs apart asks for no turn. Raises `PreflightRefused` where no turn would help."""
        with self._database.transaction("looking for unique keys", rejected=PreflightRefused) as cursor:
            for output, table in self._tables.items():
                keys = table.unique_keys(cursor, schemas[output])
                self._require_sole_writer(table, keys, self._own.other_owners(cursor, table.relation))
                self._needs_turn |= any(not key.by_epoch for key in keys)

    def _require_sole_writer(
        self, table: Output, keys: Sequence[UniqueKey], others: Sequence[tuple[str, str, str, bool]]
    ) -> None:
        if not keys:
            return
        found = f"{table.relation} has the unique key {keys[0].name}, which could refuse rows after the decision"
        if self._shared or others:
            raise PreflightRefused(
                f"sink {self.name}: {found}, as other sinks write there too{_named(others)}: say protocol='two_phase' "
                "in all of them, let one sink have the table, or drop the key"
            )
        if self._validate == "schema" and not all(key.by_epoch for key in keys):
            raise PreflightRefused(
                f"sink {self.name}: {found}, as validate='schema' doesn't look whether it has the rows' keys: say "
                "validate='load' or protocol='two_phase', or drop the key"
            )
        if self.guarantee is not Guarantee.EXACTLY_ONCE:
            raise PreflightRefused(
                f"sink {self.name}: {found}, as guarantee={self.guarantee.value!r} sends rows again after a crash: say "
                "guarantee='exactly_once', or drop the key"
            )

    def preflight(self, schemas: Mapping[str, pa.Schema] | None) -> None:
        super().preflight(schemas)
        if schemas is not None and not self.replaces:
            self._look_at_keys(schemas)
        if self.guarantee is not Guarantee.EXACTLY_ONCE:
            self.committer.create_resource()

    # wherever this sink keeps its records
    find_marker = WriteAheadSink.find_marker
    find_marker_of_span = WriteAheadSink.find_marker_of_span
    newest_markers = WriteAheadSink.newest_markers
    markers = WriteAheadSink.markers

    def validate(self, epoch: SinkEpoch, wal: Iterable[Batches]) -> Vote:
        """ "load" writes as many rows as the epoch has, and rolls back."""
        try:
            return self._tried(epoch, wal)
        except SinkUnavailable as error:
            if not self._database.is_locked_out(error):
                raise
            return self._tried(epoch, wal)  # a stopped execution of a lower token had the keys; its session was ended

    def _tried(self, epoch: SinkEpoch, wal: Iterable[Batches]) -> Vote:
        claim = self._trying(epoch)
        try:
            for batches in wal:
                self._validate_output(claim, batches)
            self._check_tried(claim)
        finally:
            claim.close()
        return Vote(epoch.token, None, claim.target_id, dict(claim.rows))

    def _validate_output(self, claim: AnyClaim, batches: Batches) -> None:
        if self._validate == "load":
            self._load(claim, batches, SinkRejected)
            reach(CrashPoint.PREPARE_AFTER_WRITE)
        else:
            claim.rows[batches.output] = self._try_encoding(claim, batches)

    def send_values(self, batches: Batches, epoch: SinkEpoch, timestamp: datetime, session: Session) -> bool:
        assert isinstance(session, TableClaim)
        self._load(session, batches, PublishBlocked)
        reach(CrashPoint.PUBLISH_AFTER_WRITE)
        return True
