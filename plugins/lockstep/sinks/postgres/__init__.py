"""PostgreSQL as a target."""

from lockstep.sinks.postgres._sink import PostgresSink

__all__ = ["PostgresSink"]
