"""Sinks of tables when connections break, roles change, processes stand still; of whichever database."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pytest

from lockstep.crash import CrashPoint
from lockstep.errors import InvalidPipeline, LockstepError, PublishBlocked, SinkUnavailable
from lockstep.sinks.mariadb import MariaDbSink
from lockstep.sinks.postgres import PostgresSink
from lockstep.sinks.tables.sink import ProtocolName, TableSink
from lockstep.sinks.values import Publication, SinkContext
from lockstep.sinks.write_ahead import WriteAheadSink
from lockstep.testing._sealed_rows import OUTPUT, SCHEMA, sealed
from lockstep.testing._under_test import (
    DEPLOYMENT,
    epoch,
    expect_proof,
    expect_rows,
    expect_settled,
    opened,
    pending,
    prepare,
    publish,
)
from stack.postgres import HOST, PostgresServer
from tests.proxy import CuttingProxy
from tests.sinks.kinds import table_under_test
from tests.sinks.one_sink import once, stopped_at
from tests.sinks.postgres_target import PostgresUnderTest, TableUnderTest, execute

ROWS = 3000
SECRET = "hunter2-s3cr3t"
IN_BOTH = pytest.mark.parametrize("database", ["postgres", "mariadb"])


# --- lost connections ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Wire:
    """A target whose sink connects through a proxy; its reader doesn't. `preparing`, `committing`: of its branches."""

    target: TableUnderTest
    proxy: CuttingProxy
    preparing: bytes
    committing: bytes


@contextmanager
def wired(request: pytest.FixtureRequest, database: str, protocol: ProtocolName) -> Iterator[Wire]:
    target = table_under_test(request, f"{database} {protocol}")
    in_postgres = database == "postgres"
    server = request.getfixturevalue("warehouse_server" if in_postgres else "mariadb_server")
    with CuttingProxy(HOST, server.port) as proxy:
        if in_postgres:
            words = (b"PREPARE TRANSACTION", b"COMMIT PREPARED")
            password = server.passfile.read_text().splitlines()[-1].rsplit(":", 1)[1]
            passing = f"postgresql://postgres:{password}@{HOST}:{proxy.port}/{target.dsn.rsplit('/', 1)[1]}"
        else:
            words = (b"XA PREPARE", b"XA COMMIT")
            passing = f"{target.dsn.replace(f':{server.port}/', f':{proxy.port}/')}?ssl_disabled=true"
        target.connections = lambda: {"warehouse": passing}  # type: ignore[method-assign]
        yield Wire(target, proxy, *words)


@pytest.fixture
def wire(request: pytest.FixtureRequest, database: str) -> Iterator[Wire]:
    with wired(request, database, "two_phase") as found:
        yield found


@pytest.mark.fault("E3")
@IN_BOTH
@pytest.mark.parametrize(("lost", "told"), [("after", Publication.FOUND), ("before", Publication.COMMITTED)])
def test_a_connection_lost_in_the_second_phase_is_settled_by_branch_and_marker(
    wire: Wire, lost: str, told: Publication
) -> None:
    target, wal = wire.target, sealed(ROWS)
    vote = prepare(target, epoch(), wal)
    wire.proxy.cut_around(lost, wire.committing.decode())
    assert once(target, vote, wal) is told
    assert wire.proxy.cuts == 1
    expect_rows(target, wal)


@pytest.mark.fault("C4", "C21")
@IN_BOTH
def test_a_lost_answer_to_prepare_is_looked_up(wire: Wire) -> None:
    target, wal = wire.target, sealed(ROWS)
    wire.proxy.cut(after=wire.preparing)
    vote = prepare(target, epoch(), wal)
    assert wire.proxy.cuts == 1
    publish(target, epoch(), vote, wal)
    expect_rows(target, wal)


@pytest.mark.fault("C2", "C10")
@IN_BOTH
@pytest.mark.parametrize("moment", ["preparing", "sending"])
def test_a_connection_lost_before_the_vote_leaves_nothing(wire: Wire, moment: str) -> None:
    target, wal = wire.target, sealed(ROWS)
    if moment == "preparing":
        wire.proxy.cut(before=wire.preparing)
    else:
        wire.proxy.cut(after_bytes=60_000)
    with pytest.raises(SinkUnavailable) as raised:
        prepare(target, epoch(), wal)
    assert wire.proxy.cuts == 1 and "password" not in str(raised.value)
    later = epoch(token=20)
    publish(target, later, prepare(target, later, wal), wal)
    expect_rows(target, wal)
    expect_settled(target)


@pytest.mark.parametrize("lost", ["before", "after"])
def test_a_broken_commit_of_a_write_ahead_publish_is_settled_by_the_next_try(
    request: pytest.FixtureRequest, lost: str
) -> None:
    wal, at = sealed(ROWS), epoch(token=30)
    with wired(request, "postgres", "write_ahead") as wire:
        target = wire.target
        vote = prepare(target, epoch(), wal)
        with pytest.raises(SinkUnavailable), opened(target) as sink:
            assert isinstance(sink, WriteAheadSink)
            with sink.committer.session(at) as session:
                sink.send_values(wal[0], at, at.timestamp, session)
                wire.proxy.cut_around(lost, "COMMIT")
        wanted = Publication.SENT if lost == "before" else Publication.FOUND
        assert publish(target, epoch(token=31), vote, wal) is wanted
        expect_rows(target, wal)
        expect_proof(target, epoch(), wal)


# --- roles and settings ----------------------------------------------------------------------------------------------


@pytest.mark.fault("E11")
def test_another_role_than_prepared_is_told_so(warehouse_server: PostgresServer, warehouse_dsn: str) -> None:
    target, wal = PostgresUnderTest(warehouse_dsn, "", "two_phase"), sealed(10)
    vote = prepare(target, epoch(), wal)
    execute(warehouse_dsn, f"CREATE ROLE other_{warehouse_server.port} LOGIN PASSWORD '{SECRET}'")
    try:
        execute(warehouse_dsn, f"GRANT SELECT ON ALL TABLES IN SCHEMA public TO other_{warehouse_server.port}")
        address = warehouse_dsn.split("@", 1)[1]
        target.connections = lambda: {"warehouse": f"postgresql://other_{warehouse_server.port}:{SECRET}@{address}"}  # type: ignore[method-assign]
        with pytest.raises(PublishBlocked, match="only the role that prepared it"):
            once(target, vote, wal)
    finally:
        del target.connections
        assert once(target, vote, wal) is Publication.COMMITTED
        execute(warehouse_dsn, f"DROP OWNED BY other_{warehouse_server.port}; DROP ROLE other_{warehouse_server.port}")
    expect_rows(target, wal)


# --- processes that stand still --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("database", "told"),
    [
        ("postgres", r"held by: session lockstep:\w+:1:20"),
        ("mariadb", "held by: token 20 in connection|with the same token 20"),
    ],
)
def test_a_stopped_client_that_holds_the_marker_gives_way_to_a_younger_one_only(
    request: pytest.FixtureRequest, database: str, told: str
) -> None:
    target, wal = table_under_test(request, f"{database} two_phase"), sealed(500)
    with opened(target) as sink:
        sink.preflight({OUTPUT: SCHEMA})
    with stopped_at(CrashPoint.PREPARE_AFTER_MARKER, lambda: prepare(target, epoch(token=20), wal)) as old:
        for token in (10, 20):
            with pytest.raises(SinkUnavailable, match=told):
                prepare(target, epoch(token=token), wal)
        at = epoch(token=30)
        vote = prepare(target, at, wal)
        old.release()
        assert old.wait() == 1, "the one that was ended has to fail"
        assert [txn.token for txn in pending(target)] == [30]
        publish(target, at, vote, wal)
    expect_rows(target, wal)
    expect_settled(target)


# --- secrets ---------------------------------------------------------------------------------------------------------


def test_a_missing_connection_is_named_and_the_others_are_not_told() -> None:
    sink = PostgresSink("s", tables={OUTPUT: "public.rows"}, connection="warehouse")
    with pytest.raises(InvalidPipeline, match="'warehouse'") as raised:
        sink.open(SinkContext(DEPLOYMENT, "pipe", {"lake": f"postgresql://u:{SECRET}@h/d"}))
    assert SECRET not in str(raised.value)


TELLING: dict[str, tuple[type[TableSink], list[str]]] = {
    "postgres": (
        PostgresSink,
        [
            "postgresql://postgres:{secret}@{address}",
            "host=127.0.0.1 port=1 password={secret}",
            "host=127.0.0.1 pasword={secret}",
            "postgresql://u:{secret}%zz@localhost/x",
            "postgresql://u:a/{secret}@localhost/x",
            "postgresql://u:a@{secret}@localhost/x",
            "postgresql://u:{secret}:b@localhost/x",
            "{secret}",
            "mysql://u:{secret}@localhost/x",
            "postgresql://u:{secret}@localhost:99999/x",
            "postgresql://u@localhost:1/x?passwd={secret}",
        ],
    ),
    "mariadb": (
        MariaDbSink,
        [
            "mysql://lockstep:{secret}@{address}",
            "mysql://lockstep:{secret}@127.0.0.1:1/x",
            "mysql://u:a/{secret}@localhost/x",
            "mysql://u:a@{secret}@localhost/x",
            "mysql://u:{secret}@localhost:99999/x",
            "mysql://u:{secret}@localhost:1",
            "mysql://u@localhost:1/x?passwd={secret}",
            "mysql://u:{secret}@localhost:1/x?ssl=%7B",
            "mysql://u:{secret}@localhost:1/x?ssl_ca=/no/such/file",
            "postgresql://u:{secret}@localhost/x",
            "{secret}",
        ],
    ),
}


@IN_BOTH
def test_no_message_tells_a_password(request: pytest.FixtureRequest, database: str, subtests: pytest.Subtests) -> None:
    address = table_under_test(request, f"{database} two_phase").dsn.split("@", 1)[1]
    kind, telling = TELLING[database]
    sink = kind("s", tables={OUTPUT: "rows"}, connection="warehouse")
    for dsn in telling:
        with subtests.test(dsn):
            given = dsn.format(secret=SECRET, address=address)
            context = SinkContext(DEPLOYMENT, "pipe", {"warehouse": given})
            with pytest.raises(LockstepError) as raised, sink.opened(context) as live:
                live.preflight(None)
            told = "".join(traceback.format_exception(raised.value)) + repr(sink.__dict__)
            assert SECRET not in told.replace(given, ""), told
            assert "warehouse" in str(raised.value)
