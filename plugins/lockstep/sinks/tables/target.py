"""One database as both protocols use it: sessions claim markers there, send rows, and commit or prepare."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial

from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_exponential

from lockstep.crash import CrashPoint, reach
from lockstep.errors import KeysHeld, LedgerConflict, LockstepError, PublishBlocked, SinkRejected, SinkUnavailable
from lockstep.sinks.tables.dialect import Cursor, Dialect, TryAgain
from lockstep.sinks.tables.output import OpenOutput
from lockstep.sinks.tables.own_tables import OwnTables
from lockstep.sinks.values import Batches, Guarantee, Marker, Replaced, SinkEpoch, Txn
from lockstep.sinks.write_ahead import CheckpointCommitter, Session

TRIES = 4  #: each lasts up to the lock timeout, and ends lower tokens' branches and sessions that hold the marker


@dataclass(frozen=True)
class Branches:
    """Prepared branches of a sink: finishes them, waiting while the server is busy or the connection breaks.

    A branch that is gone proves nothing: committed, rolled back and never prepared give the same error. Only the
    marker, read in a new transaction, decides.
    """

    dialect: Dialect

    def require_own(self, txn: Txn) -> None:
        """Raises `LedgerConflict` unless the handle is what this sink calls `txn`."""
        if self.dialect.parse(txn.handle) != txn:
            raise LedgerConflict(
                f"{self.dialect.where}: the vote's handle {txn.handle} isn't what this sink calls epoch {txn.epoch}, "
                f"token {txn.token}, manifest {txn.manifest} in this database: was the ledger altered? Nothing was "
                "committed"
            )

    def commit(self, handle: str) -> bool:
        """Returns when the branch is gone: True if surely by this call. Raises `SinkUnavailable` if it remains."""
        return self._finish(self.dialect.commit_verb, handle)

    def roll_back(self, handle: str) -> None:
        """Returns when the branch is gone. Raises `SinkUnavailable` if it remains."""
        reach(CrashPoint.ROLLBACK_BEFORE_SINK)
        self._finish(self.dialect.roll_back_verb, handle)
        reach(CrashPoint.ROLLBACK_AFTER_SINK)

    def _finish(self, verb: str, handle: str) -> bool:
        retrying = Retrying(
            retry=retry_if_exception_type(TryAgain),
            wait=wait_exponential(0.02, max=1),
            stop=stop_after_delay(3 * self.dialect.database.lock_timeout),
            reraise=True,
        )
        try:
            return retrying(self.dialect.finish, verb, handle)
        except TryAgain as busy:
            raise SinkUnavailable(f"{self.dialect.where}: {verb} {handle}: {busy}; try again") from busy

    def terminate_stale_sessions(self, epoch: SinkEpoch) -> None:
        """Roll back this epoch's branches and end its sessions of lower tokens; never of equal or higher ones."""
        for txn in self.dialect.pending():
            if txn.epoch == epoch.id and txn.token < epoch.token:
                self.roll_back(txn.handle)
        self.dialect.end_sessions(epoch)


@dataclass
class MarkerTransaction:
    """An open transaction of one execution. `claimed`: it has inserted the epoch's marker. A transaction that tried to
    and found another session's marker, or another publisher, is closed."""

    epoch: SinkEpoch
    cursor: Cursor
    target_id: str
    commit: Callable[[], None]
    close: Callable[[], None]  #: ends the transaction; rolls back what was neither committed nor prepared
    claimed: bool = False
    rows: dict[str, int] = field(default_factory=dict)
    replaced: list[Replaced] = field(default_factory=list)  #: epochs shown by the target whose rows are to be removed


@dataclass(frozen=True)
class OpenTarget:
    """The tables of a sink in one database. `outputs`: by output of the transform."""

    dialect: Dialect
    outputs: Mapping[str, OpenOutput]

    @property
    def own(self) -> OwnTables:
        return OwnTables(self.dialect)

    @property
    def branches(self) -> Branches:
        return Branches(self.dialect)

    # --- the marker ---

    def begin(self, epoch: SinkEpoch, handle: str | None = None) -> MarkerTransaction:
        """Open a session that carries the token, and a guarded transaction (to be prepared under `handle`), without the
        marker yet."""
        dialect = self.dialect
        connection = dialect.open_session(epoch)
        close = partial(dialect.close, connection)
        try:
            with dialect.database.naming("opening a transaction"):
                cursor = connection.cursor()
                dialect.database.guard(cursor)
                dialect.name_session(cursor, epoch)
                target_id = self.own.target_id(cursor)
                dialect.start(connection, cursor, handle)
        except BaseException:
            close()
            raise
        return MarkerTransaction(epoch, cursor, target_id, connection.commit, close)

    def claim_to_vote(self, epoch: SinkEpoch, handle: str | None = None) -> MarkerTransaction:
        """Claim the marker before the decision. Lower tokens were superseded in the ledger, so their sessions are ended
        at once. Raises `LedgerConflict` if the marker exists."""
        for _ in range(TRIES):
            transaction = self.begin(epoch, handle)
            if self._insert_marker(transaction):
                if transaction.claimed:
                    return transaction
                with self.dialect.database.transaction("looking for the marker") as cursor:
                    marker = self.own.find_marker(cursor, epoch.id)
                by = f"manifest {marker.manifest_hash[:12]}, token {marker.token}" if marker else "another execution"
                raise LedgerConflict(
                    f"{self.dialect.where}: epoch {epoch.id} is published already, by {by}, although this execution "
                    f"(manifest {epoch.manifest_hash[:12]}, token {epoch.token}) precedes the decision: either it was "
                    "superseded, or the ledger is older than the target"
                )
            self.branches.terminate_stale_sessions(epoch)
        raise self._marker_locked(epoch)

    def claim_to_publish(self, epoch: SinkEpoch) -> MarkerTransaction:
        """Claim the marker after the decision. A publisher of a lower token that makes progress may go on."""
        dialect = self.dialect
        for _ in range(TRIES):
            transaction = self.begin(epoch)
            try:
                with dialect.database.naming("waiting for another publisher"):
                    is_alone = dialect.lock_out_publishers(transaction.cursor, epoch)
                publisher = dialect.publisher(epoch) if is_alone else None
            except BaseException:
                transaction.close()
                raise
            if not is_alone:
                transaction.close()
                return transaction
            if self._insert_marker(transaction) or dialect.is_publishing(publisher, epoch):
                return transaction
            self.branches.terminate_stale_sessions(epoch)
        raise self._marker_locked(epoch)

    def begin_trial(self, epoch: SinkEpoch) -> MarkerTransaction:
        """A transaction before the decision, in which rows are tried and never committed."""
        return self.claim_to_vote(epoch) if self.dialect.marks_trials else self.begin(epoch)

    def check_trial(self, transaction: MarkerTransaction) -> None:
        with self.dialect.database.naming(f"checking the constraints of epoch {transaction.epoch.id}"):
            self.dialect.check_constraints(transaction.cursor)

    def _insert_marker(self, transaction: MarkerTransaction) -> bool:
        """Set `transaction.claimed`, and close the transaction if another session has the marker. Returns False after a
        lock timeout, with the transaction closed."""
        try:
            with self.dialect.database.naming("inserting the marker", SinkUnavailable):
                transaction.claimed = self.own.insert_marker(transaction.cursor, transaction.epoch)
        except BaseException as error:
            transaction.close()
            if isinstance(error, LockstepError) and self.dialect.database.is_locked_out(error):
                return False
            raise
        if not transaction.claimed:
            transaction.close()
        return True

    def _marker_locked(self, epoch: SinkEpoch) -> SinkUnavailable:
        return SinkUnavailable(
            f"{self.dialect.where}: token {epoch.token} can't lock the marker of epoch {epoch.id}; "
            f"held by: {self.dialect.lock_holders(epoch)}; try again"
        )

    # --- rows that are replaced ---

    def remove_replaced(self, transaction: MarkerTransaction, removed: CrashPoint, *, decided: bool = False) -> None:
        """Delete the rows of the epochs that this one replaces, in its transaction, and no others; of upserts only
        check them: `settle_replaced` follows the rows. Raises `LedgerConflict` where the target doesn't show them as
        they were decided, `SinkRejected` (`decided`: `PublishBlocked`), `SinkUnavailable`.

        A target that was restored to before the replaced epoch has neither its marker nor its rows. A decided epoch
        goes on: it only has to be the one that is shown. Such a target may show earlier generations again: their rows
        are removed, too. A marker is inserted for what it lacks, so that a session that was stopped since before the
        decision can't show its rows beside those that replace them.
        """
        are_shown = [self._remove(transaction, replaced, removed, decided) for replaced in transaction.epoch.replaced]
        for earlier in () if all(are_shown) else transaction.epoch.earlier:
            self._remove(transaction, earlier, removed, decided)

    def _remove(self, transaction: MarkerTransaction, replaced: Replaced, removed: CrashPoint, decided: bool) -> bool:
        """True if the target shows the epoch."""
        cursor = transaction.cursor
        is_shown = self._shows_replaced(transaction, replaced, decided)
        upserted = [table for table in self.outputs.values() if table.upserts is not None]
        # a marker that was deleted by hand leaves the rows, and the number of their keys
        has_rows = is_shown or any(self.own.has_brought(cursor, replaced.id, table.relation) for table in upserted)
        if has_rows:
            transaction.replaced.append(replaced)
        for table in self.outputs.values():
            if table.upserts is None:
                remove = partial(table.remove, cursor, replaced)
                self._take_rows_away(transaction, table, replaced, decided, remove)
                reach(removed)
            elif has_rows:
                check = partial(table.check_replaced, cursor, transaction.epoch, replaced)
                self._take_rows_away(transaction, table, replaced, decided, check)
        return is_shown

    def _shows_replaced(self, transaction: MarkerTransaction, replaced: Replaced, decided: bool) -> bool:
        """True if the target has the marker of the replaced epoch; False after inserting it, so that no session shows
        the epoch here later. The marker may be absent after the decision, and before it for `lacking` epochs."""
        cursor, epoch = transaction.cursor, transaction.epoch
        as_shown, may_be_absent = _as_shown(replaced, epoch), decided or replaced.id in epoch.lacking
        try:
            with self.dialect.database.naming(f"looking for the marker of epoch {replaced.id}", SinkUnavailable):
                marker = self.own.find_marker(cursor, replaced.id)
                if marker is None and may_be_absent:
                    if self.own.insert_marker(cursor, as_shown):
                        return False
                    marker = self.own.find_marker(cursor, replaced.id)  # inserted by another session meanwhile
        except SinkUnavailable as error:
            if decided and self.dialect.database.is_locked_out(error):
                transaction.close()
                self.branches.terminate_stale_sessions(as_shown)  # for the next try
            raise
        differs = not may_be_absent if marker is None else marker.manifest_hash != replaced.manifest_hash
        if differs:
            actual = f"manifest {marker.manifest_hash[:12]}" if marker else "no marker of it"
            raise LedgerConflict(
                f"{self.dialect.where}: epoch {epoch.id} replaces epoch {replaced.id}, manifest "
                f"{replaced.manifest_hash[:12]}; the target has {actual}: was it restored from a backup?"
            )
        return marker is not None

    def settle_replaced(
        self, transaction: MarkerTransaction, output: str, removed: CrashPoint, *, decided: bool = False
    ) -> None:
        """Treat rows of the replaced epochs whose keys the new rows of an upserted output don't have, as `OnMissing`
        says. Raises as `remove_replaced`."""
        table = self.outputs[output]
        for replaced in transaction.replaced if table.upserts is not None else ():
            settle = partial(table.settle, transaction.cursor, transaction.epoch, replaced)
            self._take_rows_away(transaction, table, replaced, decided, settle)
            reach(removed)

    def _take_rows_away(
        self,
        transaction: MarkerTransaction,
        table: OpenOutput,
        replaced: Replaced,
        decided: bool,
        remove: Callable[[], str],
    ) -> None:
        """Call `remove`, and raise the fault that it returns."""
        rejected = PublishBlocked if decided else SinkRejected
        doing = f"removing rows of epoch {replaced.id} from {table.relation}"
        with self._closing_on_failure(transaction), self.dialect.database.naming(doing, rejected):
            fault = remove()
        if fault:
            raise rejected(f"{table.where}: table {table.relation}: {fault}")

    # --- rows ---

    def load(self, transaction: MarkerTransaction, batches: Batches, rejected: type[LockstepError]) -> None:
        """Send an output's rows. Raises `rejected` for rows that the server refuses, `KeysHeld`, `SinkUnavailable`."""
        writer = self.outputs[batches.output].writer(transaction.epoch, rejected)
        with self._closing_on_failure(transaction):
            transaction.rows[batches.output] = writer.write(transaction.cursor, batches)

    def load_more(self, transaction: MarkerTransaction, batches: Batches, rejected: type[LockstepError]) -> None:
        """`load` a part of an output's rows."""
        before = transaction.rows.get(batches.output, 0)
        self.load(transaction, batches, rejected)
        transaction.rows[batches.output] += before

    def try_rows(self, transaction: MarkerTransaction, batches: Batches) -> None:
        """`load` into a transaction that is never committed: rows that the server surely accepts are not sent."""
        writer = self.outputs[batches.output].writer(transaction.epoch, SinkRejected)
        with self._closing_on_failure(transaction):
            transaction.rows[batches.output] = writer.try_rows(transaction.cursor, batches)

    @contextmanager
    def _closing_on_failure(self, transaction: MarkerTransaction) -> Iterator[None]:
        """Close the transaction on `SinkUnavailable`; after a lock timeout also end this epoch's stale sessions, and
        raise `KeysHeld` if prepared epochs hold the keys of these rows."""
        try:
            yield
        except SinkUnavailable as error:
            transaction.close()
            if self.dialect.database.is_locked_out(error):
                self.dialect.end_sessions(transaction.epoch)  # a stopped one may hold the same keys
                pending = self.dialect.pending() if self.dialect.upserts else []
                if holders := [txn for txn in pending if txn.epoch != transaction.epoch.id]:
                    names = ", ".join(f"epoch {txn.epoch} ({txn.handle})" for txn in holders)
                    raise KeysHeld(
                        f"{error}; keys of epoch {transaction.epoch.id} are held by what was prepared and not yet "
                        f"published: {names}; try again when that is published or aborted"
                    ) from error
            raise

    def keep_alive(self, transaction: MarkerTransaction) -> None:
        """Use the session, which the server would end if it were idle. Raises `SinkUnavailable`."""
        with self.dialect.database.naming("keeping a transaction open", SinkUnavailable):
            self.own.target_id(transaction.cursor)

    # --- the end of a transaction ---

    def name_manifest(self, transaction: MarkerTransaction, epoch: SinkEpoch) -> None:
        """Write the manifest of `epoch` into the marker, which was claimed before it was known."""
        with self.dialect.database.naming("naming the manifest in the marker", SinkUnavailable):
            self.own.name_manifest(transaction.cursor, epoch)
        transaction.epoch = epoch

    def record_rows(
        self, transaction: MarkerTransaction, doing: str, rejected: type[LockstepError] = SinkRejected
    ) -> None:
        """Write the number of rows sent per output into the marker."""
        with self.dialect.database.naming(doing, rejected):
            self.own.record_rows(transaction.cursor, transaction.epoch, transaction.rows)

    def commit(self, transaction: MarkerTransaction) -> None:
        """Commit a decided epoch. A refusal of the server raises `PublishBlocked`: it can't be rejected any more."""
        reach(CrashPoint.PUBLISH_BEFORE_SINK_COMMIT)
        # if the answer is lost, the next try finds the marker, or nothing
        with self.dialect.database.naming(f"committing epoch {transaction.epoch.id}", PublishBlocked):
            transaction.commit()
        reach(CrashPoint.PUBLISH_AFTER_SINK_COMMIT)


def _as_shown(replaced: Replaced, epoch: SinkEpoch) -> SinkEpoch:
    """The epoch that `epoch` replaces and the target lacks, for a marker: with its range and generation, or a rebuilt
    ledger would find a generation without a marker."""
    as_shown = SinkEpoch(replaced.id, epoch.token, replaced.manifest_hash, epoch.timestamp, epoch.interval)
    if epoch.interval is None:
        return as_shown
    return replace(as_shown, generation=epoch.generation - 1 - [*epoch.replaced, *epoch.earlier].index(replaced))


class MarkerCommitter(CheckpointCommitter):
    """Records epochs by the marker, in the transaction that sends their rows: exactly once."""

    guarantee = Guarantee.EXACTLY_ONCE

    def __init__(self, target: OpenTarget) -> None:
        self._target = target
        self._transaction = target.dialect.database.transaction

    def create_resource(self) -> None:
        with self._target.dialect.set_up() as cursor:
            self._target.dialect.create_own_tables(cursor)

    def open(self) -> None:
        """Uses the sink's connection."""

    def close(self) -> None:
        """Leaves the sink's connection open."""

    @contextmanager
    def session(self, epoch: SinkEpoch) -> Iterator[MarkerTransaction]:
        """Claim the marker; commit at the end."""
        transaction = self._target.claim_to_publish(epoch)
        try:
            yield transaction
            if transaction.claimed:
                self._target.commit(transaction)
        finally:
            transaction.close()

    def is_checkpoint_committed(self, epoch: int) -> Marker | None:
        with self._transaction("looking for the marker") as cursor:
            return self._target.own.find_marker(cursor, epoch)

    def find_span(self, span: str) -> Marker | None:
        with self._transaction("looking for the marker of a range") as cursor:
            return self._target.own.find_marker_of_span(cursor, span)

    def newest(self) -> list[Marker]:
        with self._transaction("looking for the newest markers") as cursor:
            return self._target.own.newest_markers(cursor)

    def all(self) -> Iterable[Marker]:
        with self._transaction("listing the markers") as cursor:
            return self._target.own.markers(cursor)

    def commit_checkpoint(self, epoch: SinkEpoch, session: Session) -> None:
        assert isinstance(session, MarkerTransaction)
        self._target.record_rows(session, f"publishing epoch {epoch.id}", PublishBlocked)
