"""Tables by write-ahead: the rows go in after the decision, in one transaction with the marker."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import TypeVar

import pyarrow as pa

from lockstep.connections.names import Relation
from lockstep.epoch import Vote
from lockstep.errors import PreflightRefused
from lockstep.sinks.base import Sink
from lockstep.sinks.tables.open_sink import OpenTableSink
from lockstep.sinks.tables.output import UniqueKey
from lockstep.sinks.tables.own_tables import Owner
from lockstep.sinks.tables.target import TableClaim, TableTarget
from lockstep.sinks.values import Batches, SinkEpoch
from lockstep.sinks.write_ahead import Session, WriteAheadSink

Cursor = TypeVar("Cursor")


class WriteAheadTableSink(WriteAheadSink, OpenTableSink[Cursor]):
    """One transaction an epoch for all tables of the sink."""

    def __init__(self, sink: Sink, target: TableTarget[Cursor], *, create: bool, shared: bool) -> None:
        super().__init__(sink, target, create=create, shared=shared)
        self._needs_turn = False
        self.committer = self._markers

    # --- rows that another epoch's could make the table refuse, after both were decided ---

    @property
    def needs_turn(self) -> bool:
        """Also where the table is to get columns: the next epoch may have such a one with another type."""
        return self._needs_turn or self._adds_columns

    def preflight(self, schemas: Mapping[str, pa.Schema] | None) -> None:
        super().preflight(schemas)
        if schemas is not None and not self.replaces:
            self._look_at_keys(schemas)

    def _look_at_keys(self, schemas: Mapping[str, pa.Schema]) -> None:
        """A key that tells epochs apart asks for no turn. Raises `PreflightRefused` where no turn would help."""
        with self._target.database.transaction("looking for unique keys", rejected=PreflightRefused) as cursor:
            for output, table in self._target.outputs.items():
                keys = table.unique_keys(cursor, schemas[output])
                self._require_sole_writer(table.relation, keys, self._target.own.other_owners(cursor, table.relation))
                self._needs_turn |= any(not key.by_epoch for key in keys)

    def _require_sole_writer(self, relation: Relation, keys: Sequence[UniqueKey], others: Sequence[Owner]) -> None:
        if not keys:
            return
        found = f"{relation} has the unique key {keys[0].name}, which could refuse rows after the decision"
        if self._shared or others:
            named = f" ({', '.join(f'{other.pipeline}.{other.sink}' for other in others)})" if others else ""
            raise PreflightRefused(
                f"sink {self.name}: {found}, as other sinks write there too{named}: say protocol='two_phase' in all of "
                "them, let one sink have the table, or drop the key"
            )

    # --- rows ---

    def validate(self, epoch: SinkEpoch, wal: Iterable[Batches]) -> Vote:
        """Write the rows that the tables could refuse, and roll back."""
        return self._try(epoch, wal)

    def _send(self, epoch: SinkEpoch, wal: Iterable[Batches], session: Session) -> None:
        assert isinstance(session, TableClaim)
        self._begin_to_send(session)
        super()._send(epoch, wal, session)

    def send_values(self, batches: Batches, epoch: SinkEpoch, timestamp: datetime, session: Session) -> bool:
        assert isinstance(session, TableClaim)
        self._send_output(session, batches)
        return True
