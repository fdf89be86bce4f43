"""Targets of a pipeline. A sink's own libraries are imported when the sink is first used."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lockstep.extras import import_lazily

if TYPE_CHECKING:
    from lockstep.sinks.append_only import AppendOnlySink
    from lockstep.sinks.append_only.http import HttpSink
    from lockstep.sinks.append_only.stdout import StdoutSink
    from lockstep.sinks.append_only.tcp import TcpSink
    from lockstep.sinks.committers import FileCommitter, PostgresCommitter
    from lockstep.sinks.files import FileSink
    from lockstep.sinks.files.buckets import ByColumns, ByFunction, ByTime
    from lockstep.sinks.kafka import KafkaSink
    from lockstep.sinks.mariadb import MariaDbSink
    from lockstep.sinks.mariadb import MySqlSink as MySqlSink  # as it was called at first
    from lockstep.sinks.postgres import PostgresSink
    from lockstep.sinks.two_phase import TwoPhaseCommitSink
    from lockstep.sinks.write_ahead import CheckpointCommitter, WriteAheadSink

__all__ = [
    "AppendOnlySink",
    "ByColumns",
    "ByFunction",
    "ByTime",
    "CheckpointCommitter",
    "FileCommitter",
    "FileSink",
    "HttpSink",
    "KafkaSink",
    "MariaDbSink",
    "PostgresCommitter",
    "PostgresSink",
    "StdoutSink",
    "TcpSink",
    "TwoPhaseCommitSink",
    "WriteAheadSink",
]

_HOMES = {
    "AppendOnlySink": "lockstep.sinks.append_only",
    "ByColumns": "lockstep.sinks.files.buckets",
    "ByFunction": "lockstep.sinks.files.buckets",
    "ByTime": "lockstep.sinks.files.buckets",
    "CheckpointCommitter": "lockstep.sinks.write_ahead",
    "FileCommitter": "lockstep.sinks.committers",
    "FileSink": "lockstep.sinks.files",
    "HttpSink": "lockstep.sinks.append_only.http",
    "KafkaSink": "lockstep.sinks.kafka",
    "MariaDbSink": "lockstep.sinks.mariadb",
    "MySqlSink": "lockstep.sinks.mariadb",
    "PostgresCommitter": "lockstep.sinks.committers",
    "PostgresSink": "lockstep.sinks.postgres",
    "StdoutSink": "lockstep.sinks.append_only.stdout",
    "TcpSink": "lockstep.sinks.append_only.tcp",
    "TwoPhaseCommitSink": "lockstep.sinks.two_phase",
    "WriteAheadSink": "lockstep.sinks.write_ahead",
}


def __getattr__(name: str) -> Any:
    return import_lazily(__name__, _HOMES, name)
