"""Files as a source."""

from lockstep.sources.files.source import FileSource

__all__ = ["FileSource"]
