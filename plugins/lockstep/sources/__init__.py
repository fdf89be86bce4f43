"""Resettable inputs. Importing this package needs no Spark."""

from lockstep.sources.base import Source, SourceContext
from lockstep.sources.files import FileSource

__all__ = ["FileSource", "Source", "SourceContext"]
