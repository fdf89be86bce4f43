"""MariaDB as a target."""

from lockstep.sinks.mariadb._sink import MariaDbSink

__all__ = ["MariaDbSink"]
