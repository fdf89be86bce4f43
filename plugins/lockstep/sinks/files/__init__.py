"""Folders of files as a target."""

from lockstep.sinks.files.sink import FileSink, files

__all__ = ["FileSink", "files"]
