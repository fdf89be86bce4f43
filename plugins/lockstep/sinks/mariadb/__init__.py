"""MariaDB as a target."""

from lockstep.sinks.mariadb._sink import MariaDbSink

MySqlSink = MariaDbSink  #: as it was called at first

__all__ = ["MariaDbSink", "MySqlSink"]
