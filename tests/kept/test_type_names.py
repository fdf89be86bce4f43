"""Every name by which an older version's plan, settings or override may call a sink leads to today's class."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from lockstep import sinks
from lockstep.sinks.base import Sink, current_type

TABLES: dict[str, Any] = {"tables": {"rows": "t"}, "connection": "db"}
UPSERTS: dict[str, Any] = {**TABLES, "protocol": "write_ahead", "mode": "upsert", "key": {"rows": ["id"]}}
APPEND: dict[str, Any] = {"output": "rows", "committer": "/sent"}
RECEIVER: dict[str, Any] = {**APPEND, "connection": "there"}

#: as it was written, the name in `lockstep.sinks` of today, arguments that were written with it
WRITTEN = [
    ("lockstep.sinks.postgres.sink:PostgresSink", "PostgresSink", {**TABLES, "protocol": "two_phase"}),
    ("lockstep.sinks.postgres.sink:PostgresSink", "PostgresSink", UPSERTS),
    ("lockstep.sinks.postgres:PostgresSink", "PostgresSink", TABLES),
    ("lockstep.sinks.mysql.sink:MySqlSink", "MariaDbSink", {**TABLES, "protocol": "two_phase"}),
    ("lockstep.sinks.mysql.sink:MySqlSink", "MariaDbSink", UPSERTS),
    ("lockstep.sinks.mysql:MySqlSink", "MariaDbSink", TABLES),
    ("lockstep.sinks.files.sink:FileSink", "FileSink", {"output": "rows", "path": "/out", "format": "csv"}),
    ("lockstep.sinks.files:FileSink", "FileSink", {"output": "rows", "path": "/out"}),
    ("lockstep.sinks.kafka.sink:KafkaSink", "KafkaSink", {"output": "rows", "topic": "t", "connection": "kafka"}),
    ("lockstep.sinks.kafka:KafkaSink", "KafkaSink", {"output": "rows", "topic": "t", "connection": "kafka"}),
    ("lockstep.sinks.append_only.http:HttpSink", "HttpSink", RECEIVER),
    ("lockstep.sinks.append_only.tcp:TcpSink", "TcpSink", RECEIVER),
    ("lockstep.sinks.append_only.stdout:StdoutSink", "StdoutSink", APPEND),
    ("lockstep.sinks.http:HttpSink", "HttpSink", RECEIVER),
    ("lockstep.sinks.tcp:TcpSink", "TcpSink", RECEIVER),
    ("lockstep.sinks.stdout:StdoutSink", "StdoutSink", APPEND),
]


def test_a_name_of_then_leads_to_the_class_of_today(subtests: pytest.Subtests) -> None:
    for written, name, arguments in WRITTEN:
        with subtests.test(written=written, name=name, arguments=arguments):
            sink = Sink.from_spec({"type": written, "arguments": {"name": "it", **arguments}})
            assert isinstance(sink, getattr(sinks, name))
            assert current_type(written) == sink.spec()["type"], (
                "settings that were written with it would count for nothing"
            )
            again = Sink.from_spec(sink.spec())
            assert type(again) is type(sink) and again.spec() == sink.spec()


def test_the_table_has_every_name_that_a_kept_ledger_has() -> None:
    ledgers = [path.read_text() for path in Path(__file__).parent.glob("*/ledger.sql")]
    written = {name for text in ledgers for name in re.findall(r'"type": "([\w.]+:\w+)"', text)}
    assert written and written <= {name for name, _, _ in WRITTEN}
