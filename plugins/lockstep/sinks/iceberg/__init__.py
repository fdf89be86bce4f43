"""Tables of Apache Iceberg."""

from lockstep.sinks.iceberg._sink import IcebergSink

__all__ = ["IcebergSink"]
