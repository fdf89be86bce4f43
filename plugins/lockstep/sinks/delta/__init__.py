"""Delta tables: the sealed files become the table's, in one log entry with the marker in it."""

from lockstep.sinks.delta._sink import DeltaSink

__all__ = ["DeltaSink"]
