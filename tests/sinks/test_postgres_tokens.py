"""Who gives way at the marker: lower tokens, at once before the decision; live publishers are waited for."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

import pyarrow as pa
import pytest
from psycopg2 import sql
from psycopg2.extensions import connection as Connection

from lockstep.crash import CrashPoint
from lockstep.errors import LedgerConflict, PublishBlocked, SinkUnavailable
from lockstep.sinks.handles import SinkName
from lockstep.sinks.values import Publication
from lockstep.testing._sealed_rows import OUTPUT, SCHEMA, SealedRows, sealed, table
from lockstep.testing._under_test import (
    DEPLOYMENT,
    epoch,
    expect_rows,
    expect_settled,
    opened,
    pending,
    prepare,
    publish,
    sweep,
)
from stack.postgres import PostgresServer
from tests.sinks.one_sink import once, stopped_at
from tests.sinks.postgres_target import LOCK_TIMEOUT, PostgresUnderTest, connected, execute, system_setting

PREPARED = "SELECT gid FROM pg_prepared_xacts WHERE database = current_database() ORDER BY gid"


@pytest.fixture
def target(warehouse_dsn: str) -> PostgresUnderTest:
    target = PostgresUnderTest(warehouse_dsn, "", "two_phase")
    with opened(target) as sink:
        sink.preflight({OUTPUT: SCHEMA})
    return target


@pytest.fixture
def redo(warehouse_dsn: str) -> PostgresUnderTest:
    target = PostgresUnderTest(warehouse_dsn, "", "write_ahead")
    with opened(target) as sink:
        sink.preflight({OUTPUT: SCHEMA})
    return target


def test_only_this_epochs_branches_of_lower_tokens_are_rolled_back(target: PostgresUnderTest) -> None:
    prepare(target, epoch(2, token=5), sealed(10))
    prepare(target, epoch(1, token=10), sealed(10))
    with pytest.raises(SinkUnavailable, match="held by: prepared lockstep:"):
        prepare(target, epoch(1, token=9), sealed(10))
    prepare(target, epoch(1, token=11), sealed(10))
    assert sorted((txn.epoch, txn.token) for txn in pending(target)) == [(1, 11), (2, 5)]


def test_the_attempts_own_session_is_not_named_as_in_the_way(
    target: PostgresUnderTest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server lists it until its process has gone."""
    prepare(target, epoch(1, token=10), sealed(10))
    closed: list[Connection] = []
    monkeypatch.setattr("lockstep.sinks.postgres.dialect.close_quietly", closed.append)
    with pytest.raises(SinkUnavailable, match="held by: prepared lockstep:"):
        prepare(target, epoch(1, token=9), sealed(10))
    assert closed
    for connection in closed:
        connection.close()


@pytest.mark.fault("Q4")
@pytest.mark.tier("all")
@pytest.mark.parametrize(
    ("held", "prepared"),
    [("LOCK TABLE lockstep_marker IN EXCLUSIVE MODE", True), ("INSERT INTO lockstep_marker VALUES {}", False)],
)
def test_what_holds_the_marker_is_named_whoever_it_is(target: PostgresUnderTest, held: str, prepared: bool) -> None:
    held = held.format(f"('{DEPLOYMENT}', 'pipe', 'warehouse', 1, 9, 'by hand')")
    execute(target.dsn, f"BEGIN; {held}; PREPARE TRANSACTION 'by hand'")
    name = "prepared by hand"
    with connected(target.dsn) as cursor:
        if not prepared:
            execute(target.dsn, "ROLLBACK PREPARED 'by hand'")
            cursor.execute(f"BEGIN; {held}")
            name = rf"session {cursor.connection.info.backend_pid} \("
        with pytest.raises(SinkUnavailable, match=f"held by: {name}"):
            prepare(target, epoch(1, token=10), sealed(10))
    if prepared:
        execute(target.dsn, "ROLLBACK PREPARED 'by hand'")
    prepare(target, epoch(1, token=11), sealed(10))


def test_names_that_only_look_alike_are_never_touched(target: PostgresUnderTest) -> None:
    ours = SinkName(DEPLOYMENT, "pipe", "warehouse").handle(epoch(token=3))
    alike = [
        ours + "0",
        ours[:-1],
        ours.replace(":pipe:", ":pipe2:"),
        ours.replace(":warehouse:", ":warehouse2:"),
        ours.replace("lockstep", "Lockstep"),
        ours.replace(":3:", ":-3:"),
        ours.replace(DEPLOYMENT, "0" * 36),
        "lockstep",
        f" {ours}",
    ]
    for number, gid in enumerate(alike):
        prepared = sql.SQL("BEGIN; CREATE TABLE {} (); PREPARE TRANSACTION {}")
        execute(target.dsn, prepared.format(sql.Identifier(f"alike_{number}"), sql.Literal(gid)))
    assert pending(target) == [] and sweep(target) == []
    prepare(target, epoch(token=10), sealed(5))
    publish(target, epoch(token=12), prepare(target, epoch(token=11), sealed(5)), sealed(5))
    assert [gid for (gid,) in execute(target.dsn, PREPARED)] == sorted(alike)


def test_sessions_whose_names_only_look_alike_are_never_ended(target: PostgresUnderTest) -> None:
    prefix = SinkName(DEPLOYMENT, "pipe", "warehouse").session_prefix(1)
    names = [f"{prefix}9x", f"{prefix}", f"x{prefix}9", f"{prefix}999", "lockstep:1:9", f"{prefix[:-2]}11:9"]
    with opened(target) as sink:
        for name in names:
            with connected(f"{target.dsn}?application_name={name}") as cursor:
                sink._target.dialect.end_sessions(epoch(token=10))  # type: ignore[attr-defined]
                cursor.execute("SELECT 1")
        with connected(f"{target.dsn}?application_name={prefix}9") as cursor:
            sink._target.dialect.end_sessions(epoch(token=10))  # type: ignore[attr-defined]
            with pytest.raises(Exception, match="terminat"):
                cursor.execute("SELECT 1")


def test_a_zombie_that_begins_after_publication_writes_nothing(target: PostgresUnderTest) -> None:
    wal = sealed(100)
    publish(target, epoch(token=11), prepare(target, epoch(token=10), wal), wal)
    for manifest in ("a", "b"):
        with pytest.raises(LedgerConflict, match=r"is published already, by manifest .*, token 10"):
            prepare(target, epoch(token=20, manifest=manifest), wal)
    assert pending(target) == []
    expect_rows(target, wal)


def test_a_handle_that_another_session_is_finishing_is_waited_for(
    target: PostgresUnderTest, warehouse_server: PostgresServer
) -> None:
    wal = sealed(10)
    vote = prepare(target, epoch(), wal)
    told: list[Publication] = []
    first = threading.Thread(target=lambda: told.append(publish(target, epoch(token=20), vote, wal)))
    with system_setting(warehouse_server, "synchronous_standby_names", "nobody"):  # done, but not answered
        first.start()
        while not execute(target.dsn, "SELECT 1 FROM pg_stat_activity WHERE wait_event = 'SyncRep'"):
            pass
        with opened(target) as sink, pytest.raises(SinkUnavailable, match="another session is finishing it"):
            sink.publish(epoch(token=30), vote, wal)
    assert publish(target, epoch(token=31), vote, wal) is Publication.FOUND
    first.join()
    assert told == [Publication.COMMITTED]
    expect_rows(target, wal)


@dataclass(frozen=True)
class SlowRows(SealedRows):
    """Rows that take their time, as a WAL on far storage does."""

    started: threading.Event = field(default_factory=threading.Event)

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        for batch in super().__iter__():
            self.started.set()
            time.sleep(LOCK_TIMEOUT / 10)
            yield batch


def test_a_publisher_that_makes_progress_is_left_to_it(redo: PostgresUnderTest) -> None:
    slow = SlowRows(table(150_000), batch_rows=5_000)  # 30 batches, three lock timeouts
    vote = prepare(redo, epoch(), [SealedRows(slow.table)])
    told: list[Publication] = []
    first = threading.Thread(target=lambda: told.append(publish(redo, epoch(token=20), vote, [slow])))
    first.start()
    assert slow.started.wait(30)
    with opened(redo) as sink, pytest.raises(PublishBlocked, match="another process is publishing"):
        sink.publish(epoch(token=30), vote, [slow])
    assert publish(redo, epoch(token=31), vote, [slow]) is Publication.FOUND
    first.join()
    assert told == [Publication.SENT]
    expect_rows(redo, [slow])


def test_a_publisher_that_stands_still_is_ended_by_a_younger_one(redo: PostgresUnderTest) -> None:
    wal = sealed(500)
    vote = prepare(redo, epoch(), wal)
    with stopped_at(CrashPoint.PUBLISH_AFTER_MARKER, lambda: once(redo, vote, wal, token=20)) as old:
        with opened(redo) as sink, pytest.raises(PublishBlocked):
            sink.publish(epoch(token=19), vote, wal)  # an older one doesn't end a younger one
        assert publish(redo, epoch(token=30), vote, wal) is Publication.SENT
        old.release()
        assert old.wait() == 1
    expect_rows(redo, wal)
    expect_settled(redo)


def test_a_stopped_validation_that_holds_unique_keys_gives_way(redo: PostgresUnderTest) -> None:
    wal = sealed(500)
    execute(redo.dsn, "ALTER TABLE rows ADD PRIMARY KEY (id)")
    with stopped_at(CrashPoint.PREPARE_AFTER_WRITE, lambda: prepare(redo, epoch(token=10), wal)) as old:
        vote = prepare(redo, epoch(token=20), wal)
        publish(redo, epoch(token=21), vote, wal)
        old.release()
        assert old.wait() == 1
    expect_rows(redo, wal)
    expect_settled(redo)
