"""A sink of each kind, by its name in a test's parameter."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest

from lockstep.sinks.append_only.lines import StdoutSink
from lockstep.sinks.base import Sink
from lockstep.sinks.files import FileSink
from lockstep.sinks.kafka import KafkaSink
from lockstep.sinks.mariadb import MariaDbSink
from lockstep.sinks.postgres import PostgresSink
from lockstep.sinks.tables.sink import ProtocolName
from stack.postgres import PostgresServer
from tests.sinks.append.feed import Feed
from tests.sinks.kafka_target import KafkaUnderTest
from tests.sinks.mariadb_target import MariaDbUnderTest
from tests.sinks.postgres_target import PostgresUnderTest, TableUnderTest

#: each that proves what it shows, the two tables by a protocol each
EXACT = ["PostgresSink", "MariaDbSink, write-ahead", "FileSink", "KafkaSink, three shards"]


def sink_of(request: pytest.FixtureRequest, kind: str, folder: Path) -> tuple[Sink, dict[str, str]]:
    """It takes the output `numbers`; with its connections."""
    table: dict[str, Any] = {"tables": {"numbers": "numbers"}, "connection": "c", "create": True}
    if "write-ahead" in kind:
        table["protocol"] = "write_ahead"
    if kind.startswith("PostgresSink"):
        table["tables"] = {"numbers": "public.numbers"}
        return PostgresSink("rows", **table), {"c": request.getfixturevalue("warehouse_dsn")}
    if kind.startswith("MariaDbSink"):
        return MariaDbSink("rows", **table), {"c": request.getfixturevalue("mariadb_dsn")}
    if kind == "FileSink":
        return FileSink("rows", output="numbers", path=str(folder / "out")), {}
    if kind == "StdoutSink":
        return StdoutSink("rows", output="numbers", committer=str(folder / "sent")), {}
    target = KafkaUnderTest(request.getfixturevalue("kafka_broker"))
    sink = KafkaSink(
        "rows",
        output="numbers",
        topic=target.topic,
        marker_topic=target.markers,
        connection="c",
        shards=3 if "three" in kind else 1,
    )
    return sink, {"c": target.broker.bootstrap}


def feed_of(request: pytest.FixtureRequest, kind: str, folder: Path, *, cursor: bool = False) -> Feed:
    """A pipeline into one such sink."""
    server: PostgresServer = request.getfixturevalue("ledger_server")
    server.start()
    sink, connections = sink_of(request, kind, folder)
    return Feed.of(server.create_database(f"feed_{folder.name}"), folder, [sink], connections, cursor=cursor)


def table_under_test(request: pytest.FixtureRequest, place: str) -> TableUnderTest:
    """Of a database and a protocol, `postgres two_phase`."""
    database, protocol = place.split()
    if database == "postgres":
        return PostgresUnderTest(request.getfixturevalue("warehouse_dsn"), "", cast("ProtocolName", protocol))
    return MariaDbUnderTest(request.getfixturevalue("mariadb_dsn"), "", cast("ProtocolName", protocol))
