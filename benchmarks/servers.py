"""The servers of a benchmark run: one PostgreSQL with fsync on, one warm Spark Connect server, both on loopback."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType

from benchmarks.paths import Place, jdbc_url
from lockstep.ledger import migrate
from lockstep.spark.session import connect
from stack.errors import StackError
from stack.postgres import PostgresServer
from stack.processes import Processes
from stack.spark import ConnectServer

JDBC_DRIVER = "org.postgresql:postgresql:42.7.7"
#: For every path alike: room enough that no checkpoint falls into a measurement by chance.
SETTINGS = {"shared_buffers": "1GB", "max_wal_size": "8GB", "checkpoint_timeout": "30min"}


@contextmanager
def running(
    folder: Path,
    *,
    jdbc: bool,
    spark_settings: Mapping[str, str] = MappingProxyType({}),
    postgres_settings: Mapping[str, str] = MappingProxyType({}),
) -> Iterator[Place]:
    """Start both servers below `folder`, and stop them at the end. Without the JDBC driver `Place.jdbc` is None."""
    folder.mkdir(parents=True, exist_ok=True)
    passfile = folder / "pgpass"
    os.environ["PGPASSFILE"] = str(passfile)
    postgres = PostgresServer(folder / "postgres", passfile=passfile, settings={**SETTINGS, **postgres_settings})
    processes = Processes(folder / "processes.json")
    try:
        postgres.start()
        ledger, warehouse = postgres.create_database("ledger"), postgres.create_database("warehouse")
        migrate(ledger)
        url, driver = _spark(processes, folder, jdbc, spark_settings)
        spark = connect(url)
        servers = {"spark": processes.started[-1].pid, "postgres": postgres.pid or 0}
        logs = {"spark": Path(processes.started[-1].log), "postgres": postgres.log}
        yield Place(ledger, warehouse, folder, url, spark, jdbc_url(warehouse) if driver else None, servers, logs)
        spark.stop()
    finally:
        processes.stop()
        postgres.remove()


def _spark(processes: Processes, folder: Path, jdbc: bool, settings: Mapping[str, str]) -> tuple[str, bool]:
    """The server's URL, and whether it has the JDBC driver: without the package registry it starts without."""
    server = ConnectServer(processes, folder / "spark")
    settings = {"spark.driver.memory": "3g", **settings}
    if jdbc:
        try:
            server.wait(server.launch({"spark.jars.packages": JDBC_DRIVER, **settings}))
            return server.url, True
        except StackError:
            processes.stop()
    server.wait(server.launch(settings))
    return server.url, False
