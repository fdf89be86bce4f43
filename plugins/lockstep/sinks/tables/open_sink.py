"""A sink of tables that is connected: what is the same under both protocols."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Generic, TypeVar

import pyarrow as pa

from lockstep.crash import CrashPoint, reach
from lockstep.epoch import Vote
from lockstep.errors import PreflightRefused, PublishBlocked, SinkUnavailable
from lockstep.sinks.base import Sink
from lockstep.sinks.open_sink import OpenSink
from lockstep.sinks.tables._markers import MarkerCommitter
from lockstep.sinks.tables.target import TableClaim, TableTarget
from lockstep.sinks.values import Batches, EpochCut, Marker, ReadCut, RowStatus, SinkEpoch

Cursor = TypeVar("Cursor")


class OpenTableSink(OpenSink, Generic[Cursor]):
    """Tables of one database, all of which show an epoch together."""

    serves_many = True

    def __init__(self, sink: Sink, target: TableTarget[Cursor], *, create: bool, shared: bool) -> None:
        super().__init__(sink)
        self._target, self._create, self._shared = target, create, shared
        self._markers = MarkerCommitter(target)
        self._adds_columns = False  #: with the rows of the epoch that the last preflight was of

    def close(self) -> None:
        self._target.database.close()

    def preflight(self, schemas: Mapping[str, pa.Schema] | None) -> None:
        target = self._target
        with target.set_up() as cursor:
            self._require_room(cursor)
            target.require_rights(cursor, create=self._create)
            target.own.create(cursor)
            found = [table.preflight(cursor, schemas, create=self._create) for table in target.outputs.values()]
            self._adds_columns = any(found)
            relations = {output: table.relation for output, table in target.outputs.items()}
            target.own.claim(cursor, relations, shared=self._shared)

    def require_replaceable(self) -> None:
        if self._shared:
            raise PreflightRefused(
                f"sink {self.name}: what it has shown can't be replaced: others may write to its tables (shared=True), "
                "and epochs of two pipelines have the same numbers"
            )
        reading = self._target.database.transaction("looking at what is to be replaced", rejected=PreflightRefused)
        with reading as cursor:
            for table in self._target.outputs.values():
                table.require_replaceable(cursor)

    def _require_room(self, cursor: Cursor) -> None:
        """Refuse a server that has no place for what this protocol leaves there."""

    # --- rows that are only written after the decision ---

    def _try(self, epoch: SinkEpoch, wal: Iterable[Batches]) -> Vote:
        """Vote for an epoch of which nothing stays in the target: types and counts are compared, and the rows that the
        tables could refuse are written and rolled back."""
        try:
            return self._try_once(epoch, wal)
        except SinkUnavailable as error:
            if not self._target.database.is_locked_out(error):
                raise
            # a stopped execution of a lower token had the keys; its session was ended
            return self._try_once(epoch, wal)

    def _try_once(self, epoch: SinkEpoch, wal: Iterable[Batches]) -> Vote:
        claim = self._target.begin_trial(epoch)
        try:
            self._target.remove_replaced(claim, CrashPoint.PREPARE_AFTER_REMOVAL)
            for batches in wal:
                self._target.try_rows(claim, batches)
                reach(CrashPoint.PREPARE_AFTER_WRITE)
                self._target.settle_replaced(claim, batches.output, CrashPoint.PREPARE_AFTER_REMOVAL)
            self._target.check_trial(claim)
        finally:
            claim.close()
        return Vote(epoch.token, None, claim.target_id, dict(claim.rows))

    def _begin_to_send(self, claim: TableClaim[Cursor]) -> None:
        self._target.remove_replaced(claim, CrashPoint.PUBLISH_AFTER_REMOVAL, decided=True)

    def _send_output(self, claim: TableClaim[Cursor], batches: Batches) -> None:
        """Send one output's rows of a decided epoch, in the transaction that shows them."""
        self._target.load(claim, batches, PublishBlocked)
        reach(CrashPoint.PUBLISH_AFTER_WRITE)
        self._target.settle_replaced(claim, batches.output, CrashPoint.PUBLISH_AFTER_REMOVAL, decided=True)

    def disclaim(self) -> None:
        with self._target.database.transaction("letting the tables go") as cursor:
            self._target.own.disclaim(cursor)

    # --- proof and verification ---

    def find_marker(self, epoch: int) -> Marker | None:
        return self._markers.is_checkpoint_committed(epoch)

    def find_marker_of_span(self, span: str) -> Marker | None:
        return self._markers.find_span(span)

    def newest_markers(self) -> list[Marker]:
        return self._markers.newest()

    def markers(self) -> Iterable[Marker]:
        return self._markers.all()

    def markers_of_other_sinks(self) -> list[tuple[str, Marker]]:
        own = self._target.own
        with self._target.database.transaction("listing the markers of other sinks") as cursor:
            return [(sink, marker) for sink in own.sinks_beside(cursor) for marker in own.markers(cursor, sink)]

    def target_id(self) -> str:
        with self._target.database.transaction("reading the target's id") as cursor:
            return self._target.own.target_id(cursor)

    def read(self, epoch: int, output: str, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        return self._target.outputs[output].read(epoch, schema)

    def read_remaining(self, epoch: int, output: str, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        return self._target.outputs[output].read_remaining(epoch, schema)

    @property
    def keeps_replaced(self) -> bool:
        return any(table.keeps_replaced for table in self._target.outputs.values())

    def cut(self, epochs: EpochCut) -> list[ReadCut]:
        return [output.cut(epochs) for output in self._target.outputs.values()]

    def standing(self, epoch: SinkEpoch, sealed: Batches) -> RowStatus:
        return self._target.outputs[sealed.output].standing(epoch, sealed)

    def missing_keys(self, output: str) -> int | None:
        if not self.replaces:
            return None
        relation = self._target.outputs[output].relation
        with self._target.database.transaction(f"counting the keys of {relation}") as cursor:
            return self._target.own.missing_keys(cursor, relation)
