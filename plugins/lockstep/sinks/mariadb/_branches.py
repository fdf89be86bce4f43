"""Prepared XA branches of a sink, and what lower tokens left in the way of an epoch's marker.

A branch that is gone proves nothing by itself: committed, rolled back and never prepared all answer XAER_NOTA. So does
one whose preparing connection still lives. Only the marker, read in a new transaction, tells (see
`TwoPhaseCommitSink.publish`).

XA names take 64 bytes and 64 bytes, too little for ours in full. The first part carries the owner (deployment,
pipeline, sink, database) as 32 hex digits of its sha256 and the epoch, the second token, manifest, and for people the
start of the pipeline's and the sink's names. A name is ours only if it is the very one that we would make of its parts.

A session holds a lock that is named after owner, epoch and token: it tells which connection works for which token, as
Postgres' application_name does, and it ends with the connection.
"""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Callable
from dataclasses import dataclass

import pymysql
from pymysql.constants import ER

from lockstep.connections.mariadb.connection import Database
from lockstep.connections.mariadb.errors import LOCKED, code_of, is_lost, quotes_row
from lockstep.connections.mariadb.wire import Cursor
from lockstep.errors import LockstepError, PreflightRefused, PublishBlocked, SinkUnavailable
from lockstep.observability.redaction import cause
from lockstep.sinks.handles import SinkName
from lockstep.sinks.mariadb._own_tables import MariaDbOwnTables
from lockstep.sinks.tables.branches import TableBranches, TryAgain
from lockstep.sinks.values import SinkEpoch, Txn

_HANDLE = re.compile(r"lockstep:[0-9a-f]{32}:(?P<epoch>[0-9]+):(?P<token>[0-9]+):(?P<manifest>[0-9a-f]{12}):[!-~]+")
_GONE = frozenset({ER.XAER_NOTA, ER.XA_RBROLLBACK})
_BUSY = LOCKED | {ER.XAER_RMFAIL}
_FORMAT = 1  #: what XA START takes when it isn't told another
_NO_SUCH_THREAD, _NOT_OWNER = ER.NO_SUCH_THREAD, ER.KILL_DENIED_ERROR


@dataclass(frozen=True)
class BranchName:
    """How the sink `owner` names branches and sessions in `database`."""

    owner: SinkName
    database: str

    @property
    def _digest(self) -> str:
        key = f"{self.owner.deployment}:{self.owner.pipeline}:{self.owner.sink}@{self.database}"
        return hashlib.sha256(key.encode()).hexdigest()[:32]

    def handle(self, epoch: int, token: int, manifest: str) -> str:
        """Both parts, joined by a colon: at most 61 and 64 bytes."""
        people = f"{self.owner.pipeline}.{self.owner.sink}"[:31]
        return f"lockstep:{self._digest}:{epoch}:{token}:{manifest[:12]}:{people}"

    def parse(self, handle: str) -> Txn | None:
        """The transaction that `handle` names, or None if it isn't of this owner."""
        match = _HANDLE.fullmatch(handle)
        if match is None:
            return None
        epoch, token, manifest = int(match["epoch"]), int(match["token"]), match["manifest"]
        if handle != self.handle(epoch, token, manifest):
            return None
        return Txn(self.owner.sink, epoch, token, manifest, handle)

    def session(self, epoch: int, token: int) -> str:
        """The name of a session's lock: at most 64 characters."""
        return f"lockstep:{self._digest[:16]}:{epoch:x}:{token:x}"


def xid(handle: str) -> tuple[str, str]:
    """The two parts of a branch's name, for XA statements."""
    parts = handle.split(":")
    return ":".join(parts[:3]), ":".join(parts[3:])


@dataclass(frozen=True)
class Holder:
    """Who has inserted a marker: its token, its connection (None: it has none), and how far that has come."""

    token: int
    connection: int | None
    query: int | None = None
    works: bool = False  #: the server is at work for it, and doesn't wait for it


@dataclass(frozen=True)
class MariaDbBranches(TableBranches[Cursor]):
    """The prepared branches that `names` calls its own."""

    commit_verb = "XA COMMIT"
    roll_back_verb = "XA ROLLBACK"
    listed = "among XA RECOVER"

    database: Database
    own: MariaDbOwnTables
    names: BranchName

    def handle(self, epoch: SinkEpoch) -> str:
        return self.names.handle(epoch.id, epoch.token, epoch.manifest_hash)

    def parse(self, handle: str) -> Txn | None:
        return self.names.parse(handle)

    def prepare(self, cursor: Cursor, txn: Txn) -> None:
        try:
            cursor.execute("XA END %s, %s", xid(txn.handle))
            cursor.execute("XA PREPARE %s, %s", xid(txn.handle))
        except pymysql.MySQLError as error:
            if is_lost(error):
                return  # the look into XA RECOVER tells
            named = self.database.named(error, f"XA PREPARE of epoch {txn.epoch}")
            raise named from cause(error, quotes_row(error))

    def await_release(self, txn: Txn) -> None:
        if not _wait(lambda: not self._is_alive(txn.epoch, txn.token), self.database.lock_timeout):
            self._end_session(txn.epoch, txn.token)

    def pending(self) -> list[Txn]:
        """Every branch of this owner on this server; names that only look alike are not ours."""
        with self.database.naming("listing prepared branches"), self.database.outside_transaction() as cursor:
            found = [self.parse(handle) for handle in _recoverable(cursor)]
        return [txn for txn in found if txn is not None]

    def is_pending(self, handle: str) -> bool:
        """Whether `handle` is prepared, looked up on the primary."""
        with self.database.naming("looking for a prepared branch"), self.database.outside_transaction() as cursor:
            return handle in _recoverable(cursor)

    def _finish_once(self, verb: str, handle: str) -> bool:
        try:
            with self.database.outside_transaction() as cursor:
                cursor.execute(f"{verb} %s, %s", xid(handle))
                return True
        except SinkUnavailable as error:
            raise TryAgain(str(error)) from error
        except pymysql.MySQLError as error:
            if code_of(error) in _GONE:
                self._look_who_has_it(handle)
                return False
            if code_of(error) in _BUSY:
                raise TryAgain(str(error)) from error
            if not is_lost(error):
                raise self._refused(error, verb, handle) from error
            self._look_again(handle, error)
            return False

    def _look_who_has_it(self, handle: str) -> None:
        """A branch whose preparing session lives can't be finished by anybody else: end that session."""
        txn = self.parse(handle)
        if txn is not None and self.is_pending(handle):
            self._end_session(txn.epoch, txn.token)
            raise TryAgain("another session holds it")

    def _refused(self, error: pymysql.MySQLError, verb: str, handle: str) -> LockstepError:
        kind = PublishBlocked if verb == "XA COMMIT" else SinkUnavailable
        return self.database.named(error, f"{verb} {handle}", kind)

    # --- what lower tokens left ---

    def end_sessions(self, epoch: SinkEpoch) -> None:
        """End the session that holds this epoch's marker, if its token is lower: a stopped client, most likely."""
        holder = self.holder(epoch.id)
        if holder is not None and holder.token < epoch.token:
            self._end_session(epoch.id, holder.token)

    def _end_session(self, epoch: int, token: int) -> None:
        """End the session of a token, if it lives, and wait until it has let go."""
        name = self.names.session(epoch, token)
        with self.database.naming("ending a session"), self.database.outside_transaction() as cursor:
            connection = _connection_of(cursor, name)
            if connection is None:
                return
            try:
                cursor.execute(f"KILL CONNECTION {connection:d}")  # numbers aren't used twice while the server runs
            except pymysql.MySQLError as error:
                if code_of(error) == _NOT_OWNER:
                    raise PreflightRefused(
                        f"sink {self.names.owner.sink}: connection {connection} of token {token} is in the way, and "
                        f"the user of connection {self.database.connection_id} may not end it: use one user for a "
                        "sink, or grant CONNECTION ADMIN"
                    ) from error
                if code_of(error) != _NO_SUCH_THREAD:
                    raise
            _wait(lambda: _connection_of(cursor, name) is None, self.database.lock_timeout)

    def _is_alive(self, epoch: int, token: int) -> bool:
        """Whether a session of this token is connected."""
        with self.database.naming("looking for a session"), self.database.outside_transaction() as cursor:
            return _connection_of(cursor, self.names.session(epoch, token)) is not None

    def holder(self, epoch: int) -> Holder | None:
        """Who has inserted the epoch's marker, committed or not; None if nobody has."""
        with self.database.naming("looking who is in the way"), self.database.outside_transaction() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL READ UNCOMMITTED")  # for the next transaction alone
            token = self.own.marker_holder(cursor, epoch)
            if token is None:
                return None
            connection = _connection_of(cursor, self.names.session(epoch, token))
            return Holder(token, connection, *_progress(cursor, connection))

    def lock_holders(self, epoch: SinkEpoch) -> str:
        """Who else works on this epoch, for a message."""
        holder = self.holder(epoch.id)
        names = [f"token {holder.token} in connection {holder.connection}"] if holder else []
        names += [f"prepared {txn.handle}" for txn in self.pending() if txn.epoch == epoch.id]
        return ", ".join(names) or "nobody that carries this sink's name: see SHOW ENGINE INNODB STATUS"


def _recoverable(cursor: Cursor) -> list[str]:
    """The names of all prepared branches that are cut in two where ours are; the others can't be ours."""
    cursor.execute("XA RECOVER")
    handles = []
    for form, first, _, data in cursor.fetchall():
        name = data if isinstance(data, str) else bytes(data).decode("latin-1")
        parts = name[:first], name[first:]
        if form == _FORMAT and xid(":".join(parts)) == parts:
            handles.append(":".join(parts))
    return handles


def _connection_of(cursor: Cursor, session: str) -> int | None:
    cursor.execute("SELECT IS_USED_LOCK(%s)", (session,))
    row = cursor.fetchone()
    return int(row[0]) if row and row[0] is not None else None


def _progress(cursor: Cursor, connection: int | None) -> tuple[int | None, bool]:
    cursor.execute(
        "SELECT query_id, command <> 'Sleep' AND state <> 'Reading from net' FROM information_schema.processlist "
        "WHERE id = %s",
        (connection,),
    )
    row = cursor.fetchone()
    return (int(row[0]), bool(row[1])) if row else (None, False)


def _wait(until: Callable[[], bool], seconds: float) -> bool:
    """Whether `until` comes true within `seconds`; asked again at growing intervals."""
    deadline, pause = time.monotonic() + seconds, 0.001
    while not until():
        if time.monotonic() > deadline:
            return False
        time.sleep(pause)
        pause = min(2 * pause, 0.1)
    return True
