"""MariaDB as a target."""

from lockstep.sinks.mariadb.sink import MariaDbSink

__all__ = ["MariaDbSink"]
