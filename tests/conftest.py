"""Real servers for every test that wants them: two PostgreSQL servers, started when first asked for."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest
from hypothesis import HealthCheck, settings

from stack.hdfs import HDFS, HdfsServer
from stack.kafka import BROKER, KafkaBroker
from stack.mariadb import MISSING, MariaDbServer, mariadbd
from stack.postgres import PostgresServer
from stack.processes import Processes
from stack.s3 import MISSING as NO_S3
from stack.s3 import S3Server, weed
from stack.spark import ConnectServer

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: each Java program lives for seconds, or compiles what it runs once: the second compiler never earns what it costs
os.environ.setdefault("JDK_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1")

#: how long an example takes says nothing of what is tested, and one of a former run isn't this commit's
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow], database=None)
settings.load_profile("untimed")

MEMORY, ROOM = Path("/dev/shm"), 4 * 2**30

pytest_plugins = ["tests.suite", "tests.sessions"]
_numbers = count(1)


@pytest.fixture(scope="session")
def servers_folder() -> Iterator[Path]:
    """A folder that the servers' system user can enter; pytest's own are closed to it.

    In memory where there is room: a killed process or server leaves the same there as on a disk, and nothing waits.
    """
    in_memory = os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free > ROOM
    folder = Path(tempfile.mkdtemp(prefix="lockstep-tests-", dir=MEMORY if in_memory else None))
    folder.chmod(0o711)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def passfile(servers_folder: Path) -> Iterator[Path]:
    """The one file with both servers' logins; PGPASSFILE names it for this process and its children."""
    path = servers_folder / "pgpass"
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("PGPASSFILE", str(path))
        yield path


@pytest.fixture(scope="session")
def server_template(servers_folder: Path) -> PostgresServer:
    """Never started: servers of tests copy its data folder, which is quicker than initdb."""
    template = PostgresServer(servers_folder / "template")
    template.init()
    return template


@pytest.fixture(scope="session")
def ledger_server(servers_folder: Path, passfile: Path, server_template: PostgresServer) -> Iterator[PostgresServer]:
    """The server that ledgers live on, with fsync on. A test that stops it starts it again."""
    server = PostgresServer(servers_folder / "ledger", passfile=passfile, template=server_template)
    with server.for_a_while():
        yield server


@pytest.fixture(scope="session")
def warehouse_server(servers_folder: Path, passfile: Path, server_template: PostgresServer) -> Iterator[PostgresServer]:
    """The server that sinks write to: another one than the ledger's, with fsync on."""
    with PostgresServer(
        servers_folder / "warehouse", passfile=passfile, template=server_template
    ).for_a_while() as server:
        yield server


@pytest.fixture(scope="session")
def memory_folder(servers_folder: Path) -> Path:
    """`servers_folder`, for what has to be in memory and isn't there only where a machine has no room."""
    return servers_folder


@pytest.fixture
def memory(memory_folder: Path) -> Iterator[Path]:
    """A test's own part of `memory_folder`: a killed process leaves the same there as on a disk, only sooner."""
    folder = Path(tempfile.mkdtemp(dir=memory_folder))
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(scope="session")
def mariadb_server(memory_folder: Path) -> Iterator[MariaDbServer]:
    """A MariaDB server in memory, durable as it is by default. A test that stops it starts it again."""
    if mariadbd() is None:
        pytest.skip(MISSING)
    with MariaDbServer(memory_folder / "mariadb").for_a_while() as server:
        yield server


@pytest.fixture
def mariadb_dsn(mariadb_server: MariaDbServer) -> Iterator[str]:
    """DSN of a fresh, empty database on the MariaDB server."""
    mariadb_server.start()
    name = f"test_{next(_numbers)}"
    yield mariadb_server.create_database(name)
    mariadb_server.start()
    mariadb_server.drop_database(name)


@pytest.fixture(scope="session")
def kafka_jars() -> None:
    """For whoever starts a broker: skips without what it is made of."""
    if not BROKER.present:
        pytest.skip("Kafka's jars are not here: `make kafka` fetches them")


@pytest.fixture(scope="session")
def kafka_broker(memory_folder: Path, kafka_jars: None) -> Iterator[KafkaBroker]:
    """One broker on loopback. A test that stops it starts it again."""
    with KafkaBroker(memory_folder / "kafka").for_a_while() as broker:
        yield broker


@pytest.fixture(scope="session")
def s3_server(servers_folder: Path) -> Iterator[S3Server]:
    """A real S3 server with its data on disk. A test that stops it starts it again."""
    if weed() is None:
        pytest.skip(NO_S3)
    with S3Server(servers_folder / "s3").for_a_while() as server:
        server.create_bucket("tests")
        yield server


@pytest.fixture
def s3_environment(s3_server: S3Server, monkeypatch: pytest.MonkeyPatch) -> S3Server:
    """The server, and the login and endpoint by which every client in this process finds it."""
    s3_server.start()
    for name, value in s3_server.environment.items():
        monkeypatch.setenv(name, value)
    return s3_server


@pytest.fixture(scope="session")
def hdfs_server(memory_folder: Path) -> Iterator[HdfsServer]:
    """An HDFS of one node on loopback. A test that stops it starts it again."""
    if not HDFS.present:
        pytest.skip("HDFS is not here: `make hdfs` fetches it")
    with HdfsServer(memory_folder / "hdfs").for_a_while() as server:
        yield server


@pytest.fixture
def hdfs_uri(hdfs_server: HdfsServer) -> str:
    """Where nothing is yet, `hdfs://…`."""
    hdfs_server.start()
    return f"{hdfs_server.uri}/tests/{next(_numbers)}"


@pytest.fixture
def s3_uri(s3_environment: S3Server) -> str:
    """Where nothing is yet, `s3://…`."""
    return f"s3://tests/{next(_numbers)}"


@pytest.fixture
def empty_dsn(ledger_server: PostgresServer) -> Iterator[str]:
    """DSN of a database without anything in it on the ledger's server."""
    yield from _fresh_database(ledger_server)


@pytest.fixture(scope="session")
def migrated(ledger_server: PostgresServer) -> str:
    """Name of a database with an empty ledger, to copy."""
    from lockstep.ledger import migrate
    from tests.sessions import POOL

    migrate(ledger_server.create_database(name := "migrated"))
    POOL.drain()  # a database that has sessions can't be copied
    return name


@pytest.fixture
def ledger_dsn(ledger_server: PostgresServer, migrated: str) -> Iterator[str]:
    """DSN of a ledger without epochs: a copy of a migrated database, which takes a quarter of a migration's time."""
    from tests.worlds import as_another_deployment

    yield from map(as_another_deployment, _fresh_database(ledger_server, migrated))


@pytest.fixture
def warehouse_dsn(warehouse_server: PostgresServer) -> Iterator[str]:
    """DSN of a fresh, empty database on the warehouse's server."""
    yield from _fresh_database(warehouse_server)


@pytest.fixture(scope="session")
def spark_connect(servers_folder: Path) -> Iterator[str]:
    """URL (`sc://…`) of a warm Spark Connect server whose Python workers can import `lockstep` and `spark_apps`."""
    processes = Processes(servers_folder / "spark" / "stack.json")
    server = ConnectServer(processes, servers_folder / "spark")
    try:
        server.wait(server.launch())
        yield server.url
    finally:
        processes.stop()


@pytest.fixture(scope="session")
def spark(spark_connect: str) -> Iterator[SparkSession]:
    """One Connect session for all tests that only read and transform."""
    from pyspark.sql.connect.session import SparkSession as ConnectSession

    session = ConnectSession.builder.remote(spark_connect).create()
    yield cast("SparkSession", session)  # all that tests call is there too
    session.stop()


def _fresh_database(server: PostgresServer, template: str = "template1") -> Iterator[str]:
    server.start()  # a test before this one may have left it stopped
    name = f"test_{next(_numbers)}"
    yield server.create_database(name, template)
    server.start()
    server.drop_database(name)
