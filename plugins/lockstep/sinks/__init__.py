"""Targets of a pipeline; sinks of one's own are written with `lockstep.sdk`.

A sink's own libraries are imported when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lockstep.extras import import_lazily

if TYPE_CHECKING:
    from lockstep.sinks.append_only.function import FunctionSink
    from lockstep.sinks.append_only.http import HttpSink
    from lockstep.sinks.append_only.stdout import StdoutSink
    from lockstep.sinks.append_only.tcp import TcpSink
    from lockstep.sinks.delta import DeltaSink
    from lockstep.sinks.files import FileSink
    from lockstep.sinks.files.buckets import ByColumns, ByFunction, ByTime
    from lockstep.sinks.iceberg import IcebergSink
    from lockstep.sinks.kafka import KafkaSink
    from lockstep.sinks.mariadb import MariaDbSink
    from lockstep.sinks.mariadb import MySqlSink as MySqlSink  # as it was called at first
    from lockstep.sinks.postgres import PostgresSink

__all__ = [
    "ByColumns",
    "ByFunction",
    "ByTime",
    "DeltaSink",
    "FileSink",
    "FunctionSink",
    "HttpSink",
    "IcebergSink",
    "KafkaSink",
    "MariaDbSink",
    "PostgresSink",
    "StdoutSink",
    "TcpSink",
]

_HOMES = {
    "ByColumns": "lockstep.sinks.files.buckets",
    "ByFunction": "lockstep.sinks.files.buckets",
    "ByTime": "lockstep.sinks.files.buckets",
    "DeltaSink": "lockstep.sinks.delta",
    "FileSink": "lockstep.sinks.files",
    "FunctionSink": "lockstep.sinks.append_only.function",
    "HttpSink": "lockstep.sinks.append_only.http",
    "IcebergSink": "lockstep.sinks.iceberg",
    "KafkaSink": "lockstep.sinks.kafka",
    "MariaDbSink": "lockstep.sinks.mariadb",
    "MySqlSink": "lockstep.sinks.mariadb",
    "PostgresSink": "lockstep.sinks.postgres",
    "StdoutSink": "lockstep.sinks.append_only.stdout",
    "TcpSink": "lockstep.sinks.append_only.tcp",
}


def __getattr__(name: str) -> Any:
    return import_lazily(__name__, _HOMES, name)
