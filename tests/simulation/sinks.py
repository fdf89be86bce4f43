"""Sinks of the two templates that talk to simulated servers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime

import pyarrow as pa

from lockstep.epoch import Json, Vote
from lockstep.errors import LedgerConflict, SinkUnavailable
from lockstep.sinks.base import Sink
from lockstep.sinks.handles import SinkName
from lockstep.sinks.open_sink import OpenSink
from lockstep.sinks.two_phase import TwoPhaseCommitSink
from lockstep.sinks.values import Batches, Guarantee, Marker, SinkContext, SinkEpoch, Txn
from lockstep.sinks.write_ahead import CheckpointCommitter, WriteAheadSink
from tests.simulation.servers import Row, Server, Session

OUTPUT = "numbers"
SERVERS: dict[str, Server] = {}  #: of the simulation that runs; a sink finds its own by name


@dataclass(frozen=True)
class VotingSink(Sink):
    name: str
    output: str = OUTPUT

    def arguments(self) -> dict[str, Json]:
        return {"name": self.name}

    def open(self, context: SinkContext) -> OpenSink:
        return OpenVotingSink(self, context)


class RedoSink(VotingSink):
    def open(self, context: SinkContext) -> OpenSink:
        return OpenRedoSink(self, context)


class _Simulated(OpenSink):
    """What both share: one output, one server."""

    def __init__(self, sink: Sink, context: SinkContext) -> None:
        super().__init__(sink)
        self.server = SERVERS[self.name]
        self.owner = SinkName.of(context, self.name)
        self.sessions: dict[str, Session] = {}

    def close(self) -> None:
        for session in self.sessions.values():
            self.server.drop(session)

    def preflight(self, schemas: Mapping[str, pa.Schema] | None) -> None:
        """Its server takes everything."""

    def require_replaceable(self) -> None:
        """And gives it back."""

    def target_id(self) -> str:
        return self.server.target_id

    def read(self, epoch: int, output: str, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        for shown in self.server.shown:
            if shown.epoch == epoch:
                columns = zip(*shown.rows, strict=True)
                yield pa.RecordBatch.from_arrays([pa.array(column, pa.int64()) for column in columns], schema=schema)


class OpenVotingSink(_Simulated, TwoPhaseCommitSink):
    """Its rows wait in a prepared transaction for the decision."""

    def begin_transaction(self, epoch: SinkEpoch) -> Txn:
        session = self._claimed(epoch)
        if not session.claimed:
            raise LedgerConflict(f"{self.name}: epoch {epoch.id} is published already")
        txn = self.owner.transaction(epoch)
        self.sessions[txn.handle] = session
        return txn

    def write(self, txn: Txn, batches: Batches) -> None:
        self.server.write(self.sessions[txn.handle], rows_of(batches))

    def pre_commit(self, txn: Txn) -> Vote:
        session = self.sessions[txn.handle]
        self.server.prepare(session, txn.handle)
        if not self.is_pending(txn):
            raise SinkUnavailable(f"{self.name}: {txn.handle} isn't prepared")
        return Vote(txn.token, txn.handle, self.target_id(), {OUTPUT: len(session.rows)})

    def is_pending(self, txn: Txn) -> bool:
        return txn.handle in self.server.handles()

    def commit(self, txn: Txn) -> None:
        self.server.commit_prepared(txn.handle)

    def recover_and_commit(self, txn: Txn) -> bool:
        return self.is_pending(txn) and self.server.commit_prepared(txn.handle)

    def write_again(self, epoch: SinkEpoch, wal: Iterable[Batches]) -> bool:
        session = self._claimed(epoch)
        try:
            if session.claimed:
                for batches in wal:
                    self.server.write(session, rows_of(batches))
                self.server.commit(session)
            return session.claimed
        finally:
            self.server.drop(session)

    def abort(self, txn: Txn) -> None:
        self.server.roll_back_prepared(txn.handle)

    def pending(self) -> list[Txn]:
        return [txn for txn in map(self.owner.parse, self.server.handles()) if txn is not None]

    def find_marker(self, epoch: int) -> Marker | None:
        return self.server.find_marker(epoch)

    def _claimed(self, epoch: SinkEpoch) -> Session:
        session = self.server.open(epoch)
        try:
            self.server.claim(session)
            if session.claimed and epoch.replaced:
                self.server.delete(session)
        except BaseException:
            self.server.drop(session)
            raise
        return session


class ServerCommitter(CheckpointCommitter):
    """The marker and the rows in one transaction of the server."""

    guarantee = Guarantee.EXACTLY_ONCE

    def __init__(self, server: Server) -> None:
        self.server = server

    def create_resource(self) -> None: ...

    def open(self) -> None: ...

    def close(self) -> None: ...

    @contextmanager
    def session(self, epoch: SinkEpoch) -> Iterator[Session]:
        session = self.server.open(epoch)
        try:
            self.server.claim(session)
            if session.claimed and epoch.replaced:
                self.server.delete(session)
            yield session
            if session.claimed:
                self.server.commit(session)
        finally:
            self.server.drop(session)

    def is_checkpoint_committed(self, epoch: int) -> Marker | None:
        return self.server.find_marker(epoch)

    def commit_checkpoint(self, epoch: SinkEpoch, session: object) -> None:
        """The marker went in first."""


class OpenRedoSink(_Simulated, WriteAheadSink):
    """Its rows go in after the decision."""

    def __init__(self, sink: Sink, context: SinkContext) -> None:
        super().__init__(sink, context)
        self.committer = ServerCommitter(self.server)

    def validate(self, epoch: SinkEpoch, wal: Iterable[Batches]) -> Vote:
        rows = {batches.output: len(rows_of(batches)) for batches in wal}
        return Vote(epoch.token, None, self.target_id(), rows)

    def send_values(self, batches: Batches, epoch: SinkEpoch, timestamp: datetime, session: object) -> bool:
        assert isinstance(session, Session)
        self.server.write(session, rows_of(batches))
        return True


def rows_of(batches: Iterable[pa.RecordBatch]) -> list[Row]:
    return [row for batch in batches for row in zip(*(column.to_pylist() for column in batch), strict=True)]
