"""A sink of tables that is connected: what is the same under both protocols."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Generic, TypeVar

import pyarrow as pa

from lockstep.errors import PreflightRefused
from lockstep.sinks.base import Sink
from lockstep.sinks.open_sink import OpenSink
from lockstep.sinks.tables._markers import MarkerCommitter
from lockstep.sinks.tables.target import TableTarget
from lockstep.sinks.values import Batches, EpochCut, Guarantee, Marker, ReadCut, SinkEpoch, Standing

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
        if self.replaces:
            raise PreflightRefused(
                f"sink {self.name}: what it has shown can't be replaced: in its tables newer rows replace older ones "
                "by key (mode='upsert'), and what a key had before is gone"
            )
        if self.guarantee is not Guarantee.EXACTLY_ONCE:
            raise PreflightRefused(
                f"sink {self.name}: what it has shown can't be replaced: with guarantee={self.guarantee.value!r} "
                "nothing in its tables proves which epochs they show"
            )
        if self._shared:
            raise PreflightRefused(
                f"sink {self.name}: what it has shown can't be replaced: others may write to its tables (shared=True), "
                "and epochs of two pipelines have the same numbers"
            )
        reading = self._target.database.transaction("looking at what is to be replaced", rejected=PreflightRefused)
        with reading as cursor:
            for table in self._target.outputs.values():
                table.require_deletable(cursor)

    def _require_room(self, cursor: Cursor) -> None:
        """Refuse a server that has no place for what this protocol leaves there."""

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

    def target_id(self) -> str:
        with self._target.database.transaction("reading the target's id") as cursor:
            return self._target.own.target_id(cursor)

    def read(self, epoch: int, output: str, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        return self._target.outputs[output].read(epoch, schema)

    def cut(self, epochs: EpochCut) -> list[ReadCut]:
        return [output.cut(epochs) for output in self._target.outputs.values()]

    def standing(self, epoch: SinkEpoch, sealed: Batches) -> Standing:
        return self._target.outputs[sealed.output].standing(epoch, sealed)

    def missing_keys(self, output: str) -> int | None:
        if not self.replaces:
            return None
        relation = self._target.outputs[output].relation
        with self._target.database.transaction(f"counting the keys of {relation}") as cursor:
            return self._target.own.missing_keys(cursor, relation)
