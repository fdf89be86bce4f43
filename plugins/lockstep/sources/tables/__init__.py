"""Tables of databases as sources."""

from lockstep.sources.tables.source import TableSource

__all__ = ["TableSource"]
