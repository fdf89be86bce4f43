"""What older versions wrote of single things: sinks in plans, settings and overrides, and manifests."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from lockstep import sinks
from lockstep.sinks.base import Sink, current_type
from lockstep.wal._local_storage import LocalStorage
from lockstep.wal.manifest import Manifest
from lockstep.wal.reading import OutputBatches

TABLES: dict[str, Any] = {"tables": {"rows": "t"}, "connection": "db"}
FILES: dict[str, Any] = {"output": "rows", "path": "/out", "format": "parquet", "shared": True, "success": "_SUCCESS"}
FILES |= {"max_buckets": 9, "max_rows_per_file": 10, "max_bytes_per_file": 11}
FILES |= {"bucket": {"by": "time", "column": "at", "folders": "dt=%Y"}}
UPSERTS: dict[str, Any] = {**TABLES, "protocol": "write_ahead", "mode": "upsert", "key": {"rows": ["id"]}}
APPEND: dict[str, Any] = {"output": "rows", "committer": "/sent"}
RECEIVER: dict[str, Any] = {**APPEND, "connection": "there"}
RECORDS: dict[str, Any] = {**RECEIVER, "max_record_bytes": 9, "validator": "m:f", "key_header": "X-Key"}
OPERATIONAL = {"records_per_request": 5, "bytes_per_request": 6, "requests_at_once": 1, "tries": 2, "timeout": 3.0}

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


def test_what_an_older_version_froze_is_said_alike_today() -> None:
    """Or each epoch that was planned before an upgrade would be planned "with other sinks"."""
    for written, arguments, settings in (
        ("lockstep.sinks.files.sink:FileSink", FILES, {}),
        ("lockstep.sinks.append_only.http:HttpSink", RECORDS, OPERATIONAL),
    ):
        arguments = {"name": "it", **arguments}
        sink = Sink.from_spec({"type": written, "arguments": arguments}, settings)
        assert sink.spec() == {"type": f"lockstep.sinks:{written.partition(':')[2]}", "arguments": arguments}
        assert sink.settings() == settings


def test_the_table_has_every_name_that_a_kept_ledger_has() -> None:
    ledgers = [path.read_text() for path in Path(__file__).parent.glob("*/ledger.sql")]
    written = {name for text in ledgers for name in re.findall(r'"type": "([\w.]+:\w+)"', text)}
    assert written and written <= {name for name, _, _ in WRITTEN}


def test_facts_that_stand_in_the_manifest_are_read_there(tmp_path: Path) -> None:
    data = (Path(__file__).parent / "manifests" / "with_facts_at_955550c.json").read_bytes()
    manifest = Manifest.from_bytes(data)
    assert manifest.facts is None and manifest.to_bytes() == data
    found = OutputBatches(LocalStorage(tmp_path), "nothing is here", manifest.outputs["delays"])
    told = [(facts.rows, {one.path: (one.least, one.greatest) for one in facts.columns}) for _, facts in found.facts()]
    assert [rows for rows, _ in told] == [25, 15]
    assert [bounds["id"] for _, bounds in told] == [(0, 24), (25, 39)]
    assert told[0][1]["tail"] == ("N0", "Nfa8cfb85")
    assert {bounds["lockstep_epoch"] for _, bounds in told} == {(3, 3)}
