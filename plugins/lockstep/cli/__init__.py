"""The command line, `lockstep`. Importing the modules of commands adds them to `app`."""

from lockstep.cli import _commands as _commands
from lockstep.cli import _range_commands as _range_commands
from lockstep.cli import _wal_commands as _wal_commands
from lockstep.cli._app import app

__all__ = ["app"]
