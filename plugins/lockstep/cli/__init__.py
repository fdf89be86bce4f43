"""The command line: `lockstep status`, `verify`, `recover` and whatever else a person may ask of a pipeline."""

from lockstep.cli import _exporter_command as _exporter_command  # adds it
from lockstep.cli import _restate_command as _restate_command  # adds it
from lockstep.cli import _restore_command as _restore_command  # adds it
from lockstep.cli import _wal_commands as _wal_commands  # adds them
from lockstep.cli._commands import app

__all__ = ["app"]
