"""MariaDbSink when connections break, servers are killed, processes stand still, and others have names like its own."""

from __future__ import annotations

import socket
import traceback
from collections.abc import Iterator
from contextlib import closing

import pytest

from lockstep.crash import CrashPoint
from lockstep.errors import SINK_ERRORS, InvalidPipeline, LockstepError, SinkUnavailable
from lockstep.mariadb.connection import Database
from lockstep.mariadb.dsn import parse_dsn
from lockstep.sinks.handles import SinkName
from lockstep.sinks.mariadb import MariaDbSink
from lockstep.sinks.mariadb._branches import BranchName, xid
from lockstep.sinks.tables.sink import ProtocolName
from lockstep.sinks.values import Publication, SinkContext
from lockstep.testing._sealed_rows import OUTPUT, SCHEMA, sealed
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
from stack.mariadb import MariaDbServer
from stack.postgres import HOST
from tests.proxy import CuttingProxy
from tests.sinks.mariadb_target import MariaDbUnderTest, execute
from tests.sinks.one_sink import once, stopped_at

ROWS = 3000
SECRET = "hunter2-s3cr3t"


@pytest.fixture
def target(mariadb_dsn: str) -> MariaDbUnderTest:
    target = MariaDbUnderTest(mariadb_dsn, "", "two_phase")
    with opened(target) as sink:
        sink.preflight({OUTPUT: SCHEMA})
    return target


@pytest.fixture
def proxy(mariadb_server: MariaDbServer, mariadb_dsn: str) -> Iterator[CuttingProxy]:
    with CuttingProxy(HOST, mariadb_server.port) as proxy:
        yield proxy


def behind(proxy: CuttingProxy, server: MariaDbServer, dsn: str, protocol: ProtocolName) -> MariaDbUnderTest:
    """A sink whose connection goes through the proxy; its reader's doesn't."""
    target = MariaDbUnderTest(dsn, "", protocol)
    passing = f"{dsn.replace(f':{server.port}/', f':{proxy.port}/')}?ssl_disabled=true"
    target.connections = lambda: {"warehouse": passing}  # type: ignore[method-assign]
    return target


# --- lost connections ------------------------------------------------------------------------------------------------


@pytest.mark.fault("E3")
@pytest.mark.parametrize(("lost", "told"), [("after", Publication.FOUND), ("before", Publication.COMMITTED)])
def test_a_connection_lost_in_xa_commit_is_settled_by_branch_and_marker(
    proxy: CuttingProxy, mariadb_server: MariaDbServer, mariadb_dsn: str, lost: str, told: Publication
) -> None:
    target, wal = behind(proxy, mariadb_server, mariadb_dsn, "two_phase"), sealed(ROWS)
    vote = prepare(target, epoch(), wal)
    proxy.cut(**{lost: b"XA COMMIT"})  # type: ignore[arg-type]
    assert once(target, vote, wal) is told
    assert proxy.cuts == 1
    expect_rows(target, wal)


def test_a_lost_answer_to_xa_prepare_is_looked_up(
    proxy: CuttingProxy, mariadb_server: MariaDbServer, mariadb_dsn: str
) -> None:
    target, wal = behind(proxy, mariadb_server, mariadb_dsn, "two_phase"), sealed(ROWS)
    proxy.cut(after=b"XA PREPARE")
    vote = prepare(target, epoch(), wal)
    assert proxy.cuts == 1
    publish(target, epoch(), vote, wal)
    expect_rows(target, wal)


@pytest.mark.parametrize("cut", [{"before": b"XA PREPARE"}, {"after_bytes": 60_000}], ids=["prepare", "load"])
def test_a_connection_lost_before_the_vote_leaves_nothing(
    proxy: CuttingProxy, mariadb_server: MariaDbServer, mariadb_dsn: str, cut: dict[str, bytes]
) -> None:
    target, wal = behind(proxy, mariadb_server, mariadb_dsn, "two_phase"), sealed(ROWS)
    proxy.cut(**cut)  # type: ignore[arg-type]
    with pytest.raises(SinkUnavailable):
        prepare(target, epoch(), wal)
    assert proxy.cuts == 1
    later = epoch(token=20)
    publish(target, later, prepare(target, later, wal), wal)
    expect_rows(target, wal)
    expect_settled(target)


# --- a killed server -------------------------------------------------------------------------------------------------


@pytest.mark.fault("C11")
@pytest.mark.parametrize("protocol", ["two_phase", "write_ahead"])
def test_a_vote_outlives_a_killed_server_and_so_do_the_rows(
    mariadb_server: MariaDbServer, mariadb_dsn: str, protocol: ProtocolName
) -> None:
    target, wal = MariaDbUnderTest(mariadb_dsn, "", protocol), sealed(ROWS)
    vote = prepare(target, epoch(), wal)
    mariadb_server.kill()
    with pytest.raises(SinkUnavailable):
        once(target, vote, wal)
    mariadb_server.start()
    expect_rows(target)
    assert once(target, vote, wal) in (Publication.COMMITTED, Publication.SENT)
    mariadb_server.kill()
    mariadb_server.start()
    expect_rows(target, wal)
    assert once(target, vote, wal) is Publication.FOUND


# --- processes that stand still --------------------------------------------------------------------------------------


def test_a_stopped_client_that_holds_the_marker_gives_way_to_a_younger_one(target: MariaDbUnderTest) -> None:
    wal = sealed(500)
    with stopped_at(CrashPoint.PREPARE_AFTER_MARKER, lambda: prepare(target, epoch(token=10), wal)) as old:
        at = epoch(token=20)
        vote = prepare(target, at, wal)
        old.release()
        assert old.wait() == 1, "the one that was ended has to fail"
        publish(target, at, vote, wal)
    expect_rows(target, wal)
    expect_settled(target)


def test_a_stopped_client_of_a_higher_token_is_left_alone(target: MariaDbUnderTest) -> None:
    wal = sealed(500)
    with stopped_at(CrashPoint.PREPARE_AFTER_MARKER, lambda: prepare(target, epoch(token=30), wal)) as younger:
        with pytest.raises(SinkUnavailable, match="in the way: token 30 in connection"):
            prepare(target, epoch(token=20), wal)
        younger.release()
        assert younger.wait() == 0
    assert [txn.token for txn in pending(target)] == [30]


@pytest.mark.fault("E7")
def test_a_branch_whose_preparing_session_still_lives_is_finished_by_ending_that_session(
    target: MariaDbUnderTest, mariadb_server: MariaDbServer
) -> None:
    names = BranchName(SinkName(DEPLOYMENT, "pipe", "warehouse"), parse_dsn("by hand", target.dsn)["database"])
    handle = names.handle(1, 10, "a" * 12)
    with closing(mariadb_server.connect(names.database)) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT GET_LOCK(%s, 1)", (names.session(1, 10),))
        cursor.execute("XA START %s, %s", xid(handle))
        cursor.execute("INSERT INTO `rows` (id, lockstep_epoch) VALUES (1, 1)")
        cursor.execute("XA END %s, %s", xid(handle))
        cursor.execute("XA PREPARE %s, %s", xid(handle))
        assert [txn.handle for txn in sweep(target)] == [handle]
    assert pending(target) == []
    expect_rows(target)


# --- names -----------------------------------------------------------------------------------------------------------


def test_names_that_only_look_alike_are_never_touched(target: MariaDbUnderTest, mariadb_server: MariaDbServer) -> None:
    database = parse_dsn("by hand", target.dsn)["database"]
    ours = BranchName(SinkName(DEPLOYMENT, "pipe", "warehouse"), database)
    other = [
        BranchName(SinkName(DEPLOYMENT, "pipe2", "warehouse"), database),
        BranchName(SinkName(DEPLOYMENT, "pipe", "warehouse"), f"{database}2"),
    ]
    mine = ours.handle(1, 3, "c" * 12)
    alike = [name.handle(1, 3, "c" * 12) for name in other]
    alike += [f"{mine}0", mine[:-1], mine.replace(":3:", ":03:"), mine.replace("lockstep", "Lockstep")]
    alike += [mine.replace(".warehouse", ".ware")]
    named = [xid(handle) for handle in alike] + [(mine.rpartition(":")[0], mine.rpartition(":")[2])]
    for number, name in enumerate(named):
        with closing(mariadb_server.connect(database)) as connection, connection.cursor() as cursor:
            cursor.execute(f"CREATE TABLE alike_{number} (id int) ENGINE = InnoDB")
            cursor.execute("XA START %s, %s", name)
            cursor.execute(f"INSERT INTO alike_{number} VALUES (1)")
            cursor.execute("XA END %s, %s", name)
            cursor.execute("XA PREPARE %s, %s", name)
    assert pending(target) == [] and sweep(target) == []
    publish(target, epoch(token=11), prepare(target, epoch(token=11), sealed(5)), sealed(5))
    left = mariadb_server.execute("XA RECOVER")
    assert sorted((row[3][: row[1]].decode(), row[3][row[1] :].decode()) for row in left) == sorted(named)


def test_the_longest_names_fit_and_are_read_back() -> None:
    names = BranchName(SinkName(DEPLOYMENT, "p" * 40, "s" * 40), "d" * 64)
    last = (1 << 63) - 1
    handle = names.handle(last, last, "f" * 64)
    assert all(len(part) <= 64 for part in xid(handle)) and len(names.session(last, last)) <= 64
    txn = names.parse(handle)
    assert txn is not None and (txn.epoch, txn.token, txn.manifest) == (last, last, "f" * 12)


# --- secrets ---------------------------------------------------------------------------------------------------------


TELLING = [
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
]


def test_no_message_tells_a_password(mariadb_dsn: str, subtests: pytest.Subtests) -> None:
    sink = MariaDbSink("s", tables={OUTPUT: "rows"}, connection="warehouse")
    for dsn in TELLING:
        with subtests.test(dsn):
            given = dsn.format(secret=SECRET, address=mariadb_dsn.split("@", 1)[1])
            context = SinkContext(DEPLOYMENT, "pipe", {"warehouse": given})
            with pytest.raises(LockstepError) as raised, sink.opened(context) as live:
                live.preflight(None)
            told = "".join(traceback.format_exception(raised.value)) + repr(sink.__dict__)
            assert SECRET not in told.replace(given, ""), told
            assert "warehouse" in str(raised.value)


def test_airflows_own_uris_are_read() -> None:
    packed = "mysql://u:p%40ss@db.example:3307/d?ssl=%7B%22ca%22%3A+%22%2Fca.pem%22%7D&charset=utf8mb4&local_infile=1"
    found = parse_dsn("warehouse", packed)
    assert (found["user"], found["password"], found["host"], found["port"]) == ("u", "p@ss", "db.example", 3307)
    assert found["ssl_ca"] == "/ca.pem" and found["ssl_verify_cert"] and found["ssl_verify_identity"]
    extra = parse_dsn("warehouse", "mysql://u@h/d?__extra__=%7B%22unix_socket%22%3A+%22%2Fs.sock%22%7D")
    assert extra["unix_socket"] == "/s.sock"
    with pytest.raises(InvalidPipeline, match="ssl_mode"):
        parse_dsn("warehouse", "mysql://u@h/d?ssl_mode=VERIFY_IDENTITY")


@pytest.mark.timeout(30)
def test_a_server_that_takes_a_connection_and_says_nothing_is_given_up(mariadb_dsn: str) -> None:
    with socket.create_server((HOST, 0)) as silent:
        dsn = f"mysql://u:p@{HOST}:{silent.getsockname()[1]}/d?connect_timeout=1"
        with pytest.raises(SinkUnavailable, match="timed out"):
            Database("sink s", "warehouse", dsn, 1.0, SINK_ERRORS).connect()
    later = f"{mariadb_dsn}?connect_timeout=1"
    database = Database("sink s", "warehouse", later, 1.0, SINK_ERRORS)
    with closing(database.connect()) as connection, connection.cursor() as cursor:
        assert cursor.execute("SELECT SLEEP(1.2)") == 1, "an answer may take longer than the greeting"


def test_the_server_gets_no_file_that_it_asks_for(mariadb_dsn: str) -> None:
    execute(mariadb_dsn, "CREATE TABLE stolen (line text)")
    sink = MariaDbSink("s", tables={OUTPUT: "rows"}, connection="warehouse")
    with sink.opened(SinkContext(DEPLOYMENT, "pipe", {"warehouse": mariadb_dsn})) as live:
        database = live._target.database  # type: ignore[attr-defined]
        with pytest.raises(RuntimeError, match="local_infile"), database.outside_transaction() as cursor:
            cursor.execute("LOAD DATA LOCAL INFILE '/etc/hostname' INTO TABLE stolen")
    assert execute(mariadb_dsn, "SELECT count(*) FROM stolen") == [(0,)]
