"""The committers that a sink can be given by name, for targets that can't keep the record with the rows."""

from __future__ import annotations

from lockstep.errors import InvalidPipeline
from lockstep.sinks.committers._folder import FileCommitter
from lockstep.sinks.committers._table import POSTGRES, PostgresCommitter
from lockstep.sinks.committers.outside import NoCommitter, NoTransaction, OutsideCommitter
from lockstep.sinks.values import SinkContext

__all__ = [
    "FileCommitter",
    "NoCommitter",
    "NoTransaction",
    "OutsideCommitter",
    "PostgresCommitter",
    "check_committer",
    "open_committer",
]


def check_committer(sink: str, setting: str | None) -> str | None:
    """A sink's setting as a plan has it: "postgres:<connection id>", or a folder, absolute; None remembers nothing.

    Raises `InvalidPipeline`.
    """
    return _make(sink, setting).setting()


def open_committer(sink: str, setting: str | None, context: SinkContext) -> OutsideCommitter:
    """What remembers the epochs of this sink. Raises `InvalidPipeline`; the first look connects."""
    committer = _make(sink, setting)
    committer.set_job_id(f"{context.deployment}:{context.pipeline}")
    committer.set_operator_id(sink)
    committer.connect(context)
    return committer


def _make(sink: str, setting: str | None) -> OutsideCommitter:
    if setting is None:
        return NoCommitter()
    if setting.startswith(POSTGRES):
        return PostgresCommitter(setting.removeprefix(POSTGRES))
    if not setting or "://" in setting:
        raise InvalidPipeline(f"sink {sink}: committer {setting!r} is neither a folder nor 'postgres:<connection id>'")
    return FileCommitter(setting)
