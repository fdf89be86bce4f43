"""Targets without transactions: records that carry their own keys."""

from lockstep.sinks.append_only.base import AppendOnlySink

__all__ = ["AppendOnlySink"]
