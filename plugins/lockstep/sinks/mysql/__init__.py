"""MariaDB as a target."""

from lockstep.sinks.mysql.sink import MySqlSink

__all__ = ["MySqlSink"]
