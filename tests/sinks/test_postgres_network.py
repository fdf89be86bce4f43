"""PostgresSink when connections break, roles change, servers crash, and what its messages must not tell."""

from __future__ import annotations

import traceback
from collections.abc import Iterator

import pytest

from lockstep.errors import InvalidPipeline, LockstepError, PublishBlocked, SinkUnavailable
from lockstep.sinks.postgres import PostgresSink
from lockstep.sinks.tables.sink import ProtocolName
from lockstep.sinks.values import Publication, SinkContext
from lockstep.sinks.write_ahead import WriteAheadSink
from lockstep.testing._sealed_rows import OUTPUT, sealed
from lockstep.testing._under_test import (
    DEPLOYMENT,
    epoch,
    expect_proof,
    expect_rows,
    expect_settled,
    opened,
    prepare,
    publish,
)
from stack.postgres import HOST, PostgresServer
from tests.proxy import CuttingProxy
from tests.sinks.one_sink import once
from tests.sinks.postgres_target import PostgresUnderTest, execute

ROWS = 3000
SECRET = "hunter2-s3cr3t"


@pytest.fixture
def proxy(warehouse_server: PostgresServer, warehouse_dsn: str) -> Iterator[CuttingProxy]:
    with CuttingProxy(HOST, warehouse_server.port) as proxy:
        yield proxy


def behind(proxy: CuttingProxy, server: PostgresServer, dsn: str, protocol: ProtocolName) -> PostgresUnderTest:
    """A sink whose connection goes through the proxy; its reader's doesn't."""
    target = PostgresUnderTest(dsn, "", protocol)
    password = server.passfile.read_text().splitlines()[-1].rsplit(":", 1)[1]
    passing = f"postgresql://postgres:{password}@{HOST}:{proxy.port}/{dsn.rsplit('/', 1)[1]}"
    target.connections = lambda: {"warehouse": passing}  # type: ignore[method-assign]
    return target


@pytest.mark.fault("E3")
def test_a_lost_answer_to_commit_prepared_is_proven_by_the_marker(
    proxy: CuttingProxy, warehouse_server: PostgresServer, warehouse_dsn: str
) -> None:
    target, wal = behind(proxy, warehouse_server, warehouse_dsn, "two_phase"), sealed(ROWS)
    vote = prepare(target, epoch(), wal)
    proxy.cut(after=b"COMMIT PREPARED")
    assert once(target, vote, wal) is Publication.FOUND
    assert proxy.cuts == 1
    expect_rows(target, wal)


@pytest.mark.fault("E3")
def test_a_commit_prepared_that_never_arrived_is_sent_again(
    proxy: CuttingProxy, warehouse_server: PostgresServer, warehouse_dsn: str
) -> None:
    target, wal = behind(proxy, warehouse_server, warehouse_dsn, "two_phase"), sealed(ROWS)
    vote = prepare(target, epoch(), wal)
    proxy.cut(before=b"COMMIT PREPARED")
    assert once(target, vote, wal) is Publication.COMMITTED
    assert proxy.cuts == 1
    expect_rows(target, wal)


@pytest.mark.fault("C4", "C21")
def test_a_lost_answer_to_prepare_is_looked_up(
    proxy: CuttingProxy, warehouse_server: PostgresServer, warehouse_dsn: str
) -> None:
    target, wal = behind(proxy, warehouse_server, warehouse_dsn, "two_phase"), sealed(ROWS)
    proxy.cut(after=b"PREPARE TRANSACTION")
    vote = prepare(target, epoch(), wal)
    assert proxy.cuts == 1
    publish(target, epoch(), vote, wal)
    expect_rows(target, wal)


@pytest.mark.fault("C2", "C10")
@pytest.mark.parametrize("cut", [{"before": b"PREPARE TRANSACTION"}, {"after_bytes": 60_000}], ids=["prepare", "copy"])
def test_a_connection_lost_before_the_vote_leaves_nothing(
    proxy: CuttingProxy, warehouse_server: PostgresServer, warehouse_dsn: str, cut: dict[str, bytes]
) -> None:
    target, wal = behind(proxy, warehouse_server, warehouse_dsn, "two_phase"), sealed(ROWS)
    proxy.cut(**cut)  # type: ignore[arg-type]
    with pytest.raises(SinkUnavailable) as raised:
        prepare(target, epoch(), wal)
    assert proxy.cuts == 1 and "password" not in str(raised.value)
    later = epoch(token=20)
    publish(target, later, prepare(target, later, wal), wal)
    expect_rows(target, wal)
    expect_settled(target)


@pytest.mark.parametrize("lost", ["before", "after"])
def test_a_broken_commit_of_a_write_ahead_publish_is_settled_by_the_next_try(
    proxy: CuttingProxy, warehouse_server: PostgresServer, warehouse_dsn: str, lost: str
) -> None:
    target, wal = behind(proxy, warehouse_server, warehouse_dsn, "write_ahead"), sealed(ROWS)
    vote = prepare(target, epoch(), wal)
    at = epoch(token=30)
    with pytest.raises(SinkUnavailable), opened(target) as sink:
        assert isinstance(sink, WriteAheadSink)
        with sink.committer.session(at) as session:
            sink.send_values(wal[0], at, at.timestamp, session)
            proxy.cut(**{lost: b"COMMIT"})  # type: ignore[arg-type]
    wanted = Publication.SENT if lost == "before" else Publication.FOUND
    assert publish(target, epoch(token=31), vote, wal) is wanted
    expect_rows(target, wal)
    expect_proof(target, epoch(), wal)


@pytest.mark.fault("C12")
def test_rows_of_a_role_without_synchronous_commit_survive_a_crash(
    warehouse_server: PostgresServer, warehouse_dsn: str
) -> None:
    execute(warehouse_dsn, f"ALTER DATABASE {warehouse_dsn.rsplit('/', 1)[1]} SET synchronous_commit = off")
    target = PostgresUnderTest(warehouse_dsn, "", "write_ahead")
    wals = []
    for number in range(1, 4):
        wals.append(sealed(50, start=100 * number))
        vote = prepare(target, epoch(number), wals[-1])
        publish(target, epoch(number), vote, wals[-1])
        warehouse_server.stop("immediate")
        warehouse_server.start()
        expect_rows(target, *wals)


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


def test_a_missing_connection_is_named_and_the_others_are_not_told() -> None:
    sink = PostgresSink("s", tables={OUTPUT: "public.rows"}, connection="warehouse")
    with pytest.raises(InvalidPipeline, match="'warehouse'") as raised:
        sink.open(SinkContext(DEPLOYMENT, "pipe", {"lake": f"postgresql://u:{SECRET}@h/d"}))
    assert SECRET not in str(raised.value)


TELLING = [
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
]


def test_no_message_tells_a_password(warehouse_dsn: str, subtests: pytest.Subtests) -> None:
    target = PostgresSink("s", tables={OUTPUT: "public.rows"}, connection="warehouse")
    for dsn in TELLING:
        with subtests.test(dsn):
            given = dsn.format(secret=SECRET, address=warehouse_dsn.split("@", 1)[1])
            context = SinkContext(DEPLOYMENT, "pipe", {"warehouse": given})
            with pytest.raises(LockstepError) as raised, target.opened(context) as live:
                live.preflight(None)
            told = "".join(traceback.format_exception(raised.value)) + repr(target.__dict__)
            assert SECRET not in told.replace(given, ""), told
            assert "warehouse" in str(raised.value)
