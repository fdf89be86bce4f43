"""Targets of a pipeline. A sink's own libraries are imported when the sink is first used."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lockstep.sinks.files import FileSink
    from lockstep.sinks.postgres import PostgresSink
    from lockstep.sinks.two_phase import TwoPhaseCommitSink
    from lockstep.sinks.write_ahead import CheckpointCommitter, WriteAheadSink

__all__ = ["CheckpointCommitter", "FileSink", "PostgresSink", "TwoPhaseCommitSink", "WriteAheadSink"]

_HOMES = {
    "CheckpointCommitter": "lockstep.sinks.write_ahead",
    "FileSink": "lockstep.sinks.files",
    "PostgresSink": "lockstep.sinks.postgres",
    "TwoPhaseCommitSink": "lockstep.sinks.two_phase",
    "WriteAheadSink": "lockstep.sinks.write_ahead",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'lockstep.sinks' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)
