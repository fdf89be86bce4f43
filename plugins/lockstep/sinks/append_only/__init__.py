"""Targets without transactions: records that carry their own keys."""

from lockstep.sinks.append_only.sink import AppendOnlySink

__all__ = ["AppendOnlySink"]
