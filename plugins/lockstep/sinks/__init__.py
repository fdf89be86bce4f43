"""Sinks: the targets of a pipeline. Write your own with `lockstep.sdk`.

The libraries that a sink needs are imported when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lockstep.distribution import import_lazily

if TYPE_CHECKING:
    from lockstep.sinks.append_only.function import FunctionSink as FunctionSink
    from lockstep.sinks.append_only.http import HttpSink as HttpSink
    from lockstep.sinks.append_only.lines import StdoutSink as StdoutSink
    from lockstep.sinks.append_only.lines import TcpSink as TcpSink
    from lockstep.sinks.delta import DeltaSink as DeltaSink
    from lockstep.sinks.files import FileSink as FileSink
    from lockstep.sinks.files.buckets import ByColumns as ByColumns
    from lockstep.sinks.files.buckets import ByFunction as ByFunction
    from lockstep.sinks.files.buckets import ByTime as ByTime
    from lockstep.sinks.iceberg import IcebergSink as IcebergSink
    from lockstep.sinks.kafka import KafkaSink as KafkaSink
    from lockstep.sinks.mariadb import MariaDbSink as MariaDbSink
    from lockstep.sinks.postgres import PostgresSink as PostgresSink

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
    "PostgresSink": "lockstep.sinks.postgres",
    "StdoutSink": "lockstep.sinks.append_only.lines",
    "TcpSink": "lockstep.sinks.append_only.lines",
}
__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    return import_lazily(__name__, _HOMES, name)
