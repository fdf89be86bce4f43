"""Folders of files as a target."""

from lockstep.sinks.files._sink import FileSink, files

__all__ = ["FileSink", "files"]
