"""The committers that a sink can be given by name, for targets that can't keep the record with the rows."""

from __future__ import annotations

from lockstep.errors import InvalidPipeline
from lockstep.sinks.committers.folder import FileCommitter
from lockstep.sinks.committers.outside import NoCommitter, NoTransaction, OutsideCommitter
from lockstep.sinks.committers.table import POSTGRES, PostgresCommitter

__all__ = ["FileCommitter", "NoCommitter", "NoTransaction", "OutsideCommitter", "PostgresCommitter", "committer_of"]


def committer_of(sink: str, setting: str | None) -> OutsideCommitter:
    """ "postgres:<connection id>", or a folder; None remembers nothing. Raises `InvalidPipeline`."""
    if setting is None:
        return NoCommitter()
    if setting.startswith(POSTGRES):
        return PostgresCommitter(setting.removeprefix(POSTGRES))
    if not setting or "://" in setting:
        raise InvalidPipeline(f"sink {sink}: committer {setting!r} is neither a folder nor 'postgres:<connection id>'")
    return FileCommitter(setting)
