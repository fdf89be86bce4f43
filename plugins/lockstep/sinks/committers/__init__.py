"""Committers that a sink's `committer` argument selects, for targets that can't keep the record with the rows."""

from __future__ import annotations

from lockstep.errors import InvalidPipeline
from lockstep.sinks.committers._folder import FileCommitter
from lockstep.sinks.committers._table import POSTGRES, PostgresCommitter
from lockstep.sinks.committers.external import ExternalCommitter, NoCommitter, NoTransaction
from lockstep.sinks.values import SinkContext

__all__ = [
    "ExternalCommitter",
    "FileCommitter",
    "NoCommitter",
    "NoTransaction",
    "PostgresCommitter",
    "check_committer",
    "open_committer",
]


def check_committer(sink: str, setting: str | None) -> str | None:
    """Return the setting as plans have it: "postgres:<connection id>", an absolute folder, or None for no record.

    Raises `InvalidPipeline`.
    """
    return _make(sink, setting).setting()


def open_committer(sink: str, setting: str | None, context: SinkContext) -> ExternalCommitter:
    """Return the committer of this sink; it connects at first use. Raises `InvalidPipeline`."""
    committer = _make(sink, setting)
    committer.set_job_id(f"{context.deployment}:{context.pipeline}")
    committer.set_operator_id(sink)
    committer.connect(context)
    return committer


def _make(sink: str, setting: str | None) -> ExternalCommitter:
    if setting is None:
        return NoCommitter()
    if setting.startswith(POSTGRES):
        return PostgresCommitter(setting.removeprefix(POSTGRES))
    if not setting or "://" in setting:
        raise InvalidPipeline(f"sink {sink}: committer {setting!r} is neither a folder nor 'postgres:<connection id>'")
    return FileCommitter(setting)
