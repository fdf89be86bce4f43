"""The command line: `lockstep status`, `verify`, `recover` and whatever else a person may ask of a pipeline."""

from lockstep.cli._commands import app

__all__ = ["app"]
