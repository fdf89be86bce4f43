"""PostgreSQL as a target."""

from lockstep.sinks.postgres.sink import PostgresSink

__all__ = ["PostgresSink"]
