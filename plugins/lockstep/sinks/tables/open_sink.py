"""A sink of tables that is connected, by two-phase commit and by write-ahead.

By two-phase commit the rows wait in a prepared transaction for the decision. The exception is an epoch that adds
columns to a table, where those come in the transaction of the rows: prepared, it would lock every reader out until it
is finished. Its rows are tried before the vote, which has no handle, and written after the decision, as by write-ahead.

By write-ahead the rows go in after the decision, in one transaction with the marker.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

import pyarrow as pa

from lockstep.connections.names import Relation
from lockstep.crash import CrashPoint, reach
from lockstep.epoch import Vote
from lockstep.errors import KeysHeld, PreflightRefused, PublishBlocked, PublishBusy, SinkRejected, SinkUnavailable
from lockstep.sinks.base import Sink
from lockstep.sinks.open_sink import OpenSink
from lockstep.sinks.tables.dialect import Cursor, UniqueKey
from lockstep.sinks.tables.own_tables import Owner
from lockstep.sinks.tables.target import MarkerCommitter, MarkerTransaction, OpenTarget
from lockstep.sinks.two_phase import EarlyTransaction, TwoPhaseCommitSink
from lockstep.sinks.values import Batches, EpochCut, Marker, Publication, ReadCut, RowStatus, SinkEpoch, Txn
from lockstep.sinks.write_ahead import Session, WriteAheadSink


class OpenTableSink(OpenSink):
    """Tables of one database, all of which show an epoch in the same transaction."""

    serves_many = True

    def __init__(self, sink: Sink, target: OpenTarget, *, create: bool, shared: bool) -> None:
        super().__init__(sink)
        self._target, self._create, self._shared = target, create, shared
        self._database = target.dialect.database
        self._markers = MarkerCommitter(target)
        self._adds_columns = False  #: with the rows of the epoch of the last preflight

    def close(self) -> None:
        self._database.close()

    def preflight(self, schemas: Mapping[str, pa.Schema] | None) -> None:
        dialect, outputs = self._target.dialect, self._target.outputs
        relations = {output: table.relation for output, table in outputs.items()}
        with dialect.set_up() as cursor:
            self._require_room(cursor)
            dialect.require_rights(cursor, list(relations.values()), create=self._create)
            dialect.create_own_tables(cursor)
            adding = [table.preflight(cursor, schemas, create=self._create) for table in outputs.values()]
            self._adds_columns = any(adding)
            self._target.own.claim(cursor, relations, shared=self._shared)

    def require_replaceable(self) -> None:
        if self._shared:
            raise PreflightRefused(
                f"sink {self.name}: its rows can't be replaced: other sinks may write to its tables (shared=True), and "
                "epochs of two pipelines have the same numbers"
            )
        reading = self._database.transaction("looking at what is to be replaced", rejected=PreflightRefused)
        with reading as cursor:
            for table in self._target.outputs.values():
                table.require_replaceable(cursor)

    def _require_room(self, cursor: Cursor) -> None:
        """Refuse a server without room for one more prepared branch."""

    # --- rows that are only written after the decision ---

    def _try(self, epoch: SinkEpoch, wal: Iterable[Batches]) -> Vote:
        """Vote for an epoch without leaving anything in the target: compare types and counts, write the rows that the
        tables could refuse, and roll back."""
        try:
            return self._try_once(epoch, wal)
        except SinkUnavailable as error:
            if not self._database.is_locked_out(error):
                raise
            # a stopped execution of a lower token held the keys; its session was ended
            return self._try_once(epoch, wal)

    def _try_once(self, epoch: SinkEpoch, wal: Iterable[Batches]) -> Vote:
        transaction = self._target.begin_trial(epoch)
        try:
            self._target.remove_replaced(transaction, CrashPoint.PREPARE_AFTER_REMOVAL)
            for batches in wal:
                self._target.try_rows(transaction, batches)
                reach(CrashPoint.PREPARE_AFTER_WRITE)
                self._target.settle_replaced(transaction, batches.output, CrashPoint.PREPARE_AFTER_REMOVAL)
            self._target.check_trial(transaction)
        finally:
            transaction.close()
        return Vote(epoch.token, None, transaction.target_id, dict(transaction.rows))

    def _begin_to_send(self, transaction: MarkerTransaction) -> None:
        self._target.remove_replaced(transaction, CrashPoint.PUBLISH_AFTER_REMOVAL, decided=True)

    def _send_output(self, transaction: MarkerTransaction, batches: Batches) -> None:
        """Send one output's rows of a decided epoch, in the transaction that shows them."""
        self._target.load(transaction, batches, PublishBlocked)
        reach(CrashPoint.PUBLISH_AFTER_WRITE)
        self._target.settle_replaced(transaction, batches.output, CrashPoint.PUBLISH_AFTER_REMOVAL, decided=True)

    def disclaim(self) -> None:
        with self._database.transaction("disowning the tables") as cursor:
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
        with self._database.transaction("listing the markers of other sinks") as cursor:
            return [(sink, marker) for sink in own.other_sinks(cursor) for marker in own.markers(cursor, sink)]

    def target_id(self) -> str:
        with self._database.transaction("reading the target's id") as cursor:
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
        with self._database.transaction(f"counting the keys of {relation}") as cursor:
            return self._target.own.missing_keys(cursor, relation)


class TwoPhaseTableSink(TwoPhaseCommitSink, OpenTableSink):
    """One branch an epoch for all tables of the sink."""

    def __init__(self, sink: Sink, target: OpenTarget, *, create: bool, shared: bool) -> None:
        super().__init__(sink, target, create=create, shared=shared)
        self._dialect, self._branches = target.dialect, target.branches
        #: for rows that wait for the decision: their transaction adds no columns, even if the table has lost some
        outputs = {output: replace(table, holds_rows=True) for output, table in target.outputs.items()}
        self._holding = replace(target, outputs=outputs)
        self._open: dict[str, MarkerTransaction] = {}  #: by handle

    def close(self) -> None:
        for handle in list(self._open):
            self._open.pop(handle).close()
        super().close()

    def _require_room(self, cursor: Cursor) -> None:
        self.room = self._dialect.require_room(cursor)

    # --- an epoch with which a table gets columns ---

    @property
    def may_hold_none(self) -> bool:
        return any(table.adds_columns for table in self._target.outputs.values())

    @property
    def needs_turn(self) -> bool:
        """True where the table gets columns: the next epoch may have one of them with another type."""
        return self._adds_columns

    def preflight(self, schemas: Mapping[str, pa.Schema] | None) -> None:
        """Refuses also a unique key where columns are added: rows that are only tried don't hold their keys."""
        super().preflight(schemas)
        if schemas is None or not self._adds_columns or self.replaces:
            return
        with self._database.transaction("looking for unique keys", rejected=PreflightRefused) as cursor:
            for output, table in self._target.outputs.items():
                for key in table.unique_keys(cursor, schemas[output]):
                    if not key.by_epoch:
                        raise PreflightRefused(
                            f"sink {self.name}: {table.relation} has the unique key {key.name}: an epoch that brings "
                            "columns is written after the decision, when another one's rows may have its keys: add "
                            "the columns yourself, or say protocol='write_ahead'"
                        )

    def prepare(self, epoch: SinkEpoch, wal: Iterable[Batches]) -> Vote:
        if not self._adds_columns:
            return super().prepare(epoch, wal)
        reach(CrashPoint.PREPARE_BEFORE_PRE_COMMIT)
        vote = self._try(epoch, wal)
        reach(CrashPoint.PREPARE_AFTER_PRE_COMMIT)
        return vote

    def publish(self, epoch: SinkEpoch, vote: Vote, wal: Iterable[Batches]) -> Publication:
        if vote.handle is not None:
            return super().publish(epoch, vote, wal)
        self._require_target(vote)
        if self._proof(epoch):
            return Publication.FOUND
        try:
            if self.write_again(epoch, wal):
                return Publication.SENT
        except SinkUnavailable as error:
            if isinstance(error, KeysHeld) or self._database.is_locked_out(error):
                self._roll_back_others(epoch, later=False)  # they hold the table, and may wait for this epoch
            raise
        if self._proof(epoch):
            return Publication.FOUND
        raise PublishBusy(f"sink {self.name}: another process is publishing epoch {epoch.id}; try again")

    # --- before the decision ---

    def begin_transaction(self, epoch: SinkEpoch) -> Txn:
        txn = self._txn(epoch)
        transaction = self._holding.claim_to_vote(epoch, txn.handle)
        try:
            self._holding.remove_replaced(transaction, CrashPoint.PREPARE_AFTER_REMOVAL)
        except BaseException:
            transaction.close()
            raise
        self._open[txn.handle] = transaction
        return txn

    def _txn(self, epoch: SinkEpoch) -> Txn:
        return Txn(self.name, epoch.id, epoch.token, epoch.manifest_hash[:12], self._dialect.handle(epoch))

    def begin_early(self, epoch: SinkEpoch, schemas: Mapping[str, pa.Schema]) -> EarlyTransaction | None:
        """Returns None where other transactions would wait for the uncommitted rows as long as the job takes."""
        if self._adds_columns:
            return None
        with self._database.transaction("looking for keys and triggers") as cursor:
            blocking = [table.blocks_others(cursor, schemas[name]) for name, table in self._target.outputs.items()]
        return None if any(blocking) else _EarlyBranch(self, self._holding.claim_to_vote(epoch))

    def adopt(self, transaction: MarkerTransaction, epoch: SinkEpoch) -> Txn:
        """Continue a transaction whose rows were loaded before the manifest was known."""
        self._holding.name_manifest(transaction, epoch)
        txn = self._txn(epoch)
        self._open[txn.handle] = transaction
        return txn

    def write(self, txn: Txn, batches: Batches) -> None:
        transaction = self._open[txn.handle]
        try:
            self._holding.load(transaction, batches, SinkRejected)
            reach(CrashPoint.PREPARE_AFTER_WRITE)
            self._holding.settle_replaced(transaction, batches.output, CrashPoint.PREPARE_AFTER_REMOVAL)
        except BaseException:
            self._open.pop(txn.handle).close()
            raise

    def pre_commit(self, txn: Txn) -> Vote:
        transaction = self._open.pop(txn.handle)
        try:
            self._holding.record_rows(transaction, f"preparing epoch {txn.epoch}")
            reach(CrashPoint.PREPARE_AFTER_COUNTS)
            self._dialect.prepare(transaction.cursor, txn)
        finally:
            transaction.close()  # a branch can't be finished while its own session lives
        self._dialect.await_release(txn)
        if not self._dialect.is_pending(txn.handle):
            raise SinkUnavailable(f"sink {self.name}: {txn.handle} is not {self._dialect.prepared_list}; prepare again")
        return Vote(txn.token, txn.handle, transaction.target_id, dict(transaction.rows))

    # --- after the decision ---

    def txn_of(self, epoch: SinkEpoch, vote: Vote) -> Txn:
        txn = super().txn_of(epoch, vote)
        self._branches.require_own(txn)
        return txn

    def recover_and_commit(self, txn: Txn) -> bool:
        """False also when another process finished it at the same moment: then only the marker says how."""
        return self.is_pending(txn) and self._commit(txn)

    def commit(self, txn: Txn) -> None:
        self._commit(txn)

    def _commit(self, txn: Txn) -> bool:
        reach(CrashPoint.PUBLISH_BEFORE_SINK_COMMIT)
        done = self._branches.commit(txn.handle)
        reach(CrashPoint.PUBLISH_AFTER_SINK_COMMIT)
        return done

    def abort(self, txn: Txn) -> None:
        if transaction := self._open.pop(txn.handle, None):
            transaction.close()
        self._branches.roll_back(txn.handle)

    def is_pending(self, txn: Txn) -> bool:
        return self._dialect.is_pending(txn.handle)

    def pending(self) -> list[Txn]:
        return self._dialect.pending()

    def write_again(self, epoch: SinkEpoch, wal: Iterable[Batches]) -> bool:
        try:
            with self._markers.session(epoch) as transaction:
                if not transaction.claimed:
                    return False
                reach(CrashPoint.PUBLISH_AFTER_MARKER)
                self._begin_to_send(transaction)
                for batches in wal:
                    self._send_output(transaction, batches)
                self._markers.commit_checkpoint(epoch, transaction)
            return True
        except KeysHeld:
            if epoch.interval is None:  # later epochs of a cursor wait for this one, which waits for their keys
                self._roll_back_others(epoch, later=True)
            raise

    def _roll_back_others(self, epoch: SinkEpoch, *, later: bool) -> None:
        """Roll back prepared epochs, or only `later` ones: their rows are in the WAL, and are written again."""
        for txn in self.pending():
            other = txn.epoch > epoch.id if later else txn.epoch != epoch.id
            if other:
                self._branches.roll_back(txn.handle)


@dataclass
class _EarlyBranch:
    """Implements `EarlyTransaction`."""

    sink: TwoPhaseTableSink
    transaction: MarkerTransaction

    def write(self, batches: Batches) -> None:
        self.sink._holding.load_more(self.transaction, batches, SinkRejected)
        reach(CrashPoint.PREPARE_AFTER_WRITE)

    def keep_alive(self) -> None:
        self.sink._holding.keep_alive(self.transaction)

    def name_manifest(self, epoch: SinkEpoch) -> Txn:
        txn = self.sink.adopt(self.transaction, epoch)
        reach(CrashPoint.PREPARE_AFTER_MANIFEST)
        return txn

    def close(self) -> None:
        self.transaction.close()


class WriteAheadTableSink(WriteAheadSink, OpenTableSink):
    """One transaction an epoch for all tables of the sink."""

    def __init__(self, sink: Sink, target: OpenTarget, *, create: bool, shared: bool) -> None:
        super().__init__(sink, target, create=create, shared=shared)
        self._needs_turn = False
        self.committer = self._markers

    # --- unique keys, by which rows of two decided epochs could exclude each other ---

    @property
    def needs_turn(self) -> bool:
        """True also where the table gets columns: the next epoch may have one of them with another type."""
        return self._needs_turn or self._adds_columns

    def preflight(self, schemas: Mapping[str, pa.Schema] | None) -> None:
        super().preflight(schemas)
        if schemas is not None and not self.replaces:
            self._check_keys(schemas)

    def _check_keys(self, schemas: Mapping[str, pa.Schema]) -> None:
        """A key that contains the epoch needs no turn. Raises `PreflightRefused` where a turn wouldn't help."""
        with self._database.transaction("looking for unique keys", rejected=PreflightRefused) as cursor:
            for output, table in self._target.outputs.items():
                keys = table.unique_keys(cursor, schemas[output])
                self._require_sole_writer(table.relation, keys, self._target.own.other_owners(cursor, table.relation))
                self._needs_turn |= any(not key.by_epoch for key in keys)

    def _require_sole_writer(self, relation: Relation, keys: Sequence[UniqueKey], owners: Sequence[Owner]) -> None:
        if keys and (self._shared or owners):
            names = f" ({', '.join(f'{owner.pipeline}.{owner.sink}' for owner in owners)})" if owners else ""
            raise PreflightRefused(
                f"sink {self.name}: {relation} has the unique key {keys[0].name}, which could refuse rows after the "
                f"decision, as other sinks write there too{names}: say protocol='two_phase' in all of them, let one "
                "sink have the table, or drop the key"
            )

    # --- rows ---

    def validate(self, epoch: SinkEpoch, wal: Iterable[Batches]) -> Vote:
        """Write the rows that the tables could refuse, and roll back."""
        return self._try(epoch, wal)

    def _send(self, epoch: SinkEpoch, wal: Iterable[Batches], session: Session) -> None:
        assert isinstance(session, MarkerTransaction)
        self._begin_to_send(session)
        super()._send(epoch, wal, session)

    def send_values(self, batches: Batches, epoch: SinkEpoch, timestamp: datetime, session: Session) -> bool:
        assert isinstance(session, MarkerTransaction)
        self._send_output(session, batches)
        return True
