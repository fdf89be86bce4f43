"""All that a sink of one's own is written with: see docs/writing-a-sink.md. Its tests take `lockstep.testing`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lockstep.extras import import_lazily

if TYPE_CHECKING:
    from lockstep.epoch import Vote
    from lockstep.errors import (
        InvalidPipeline,
        LedgerConflict,
        OutcomeUnknown,
        PreflightRefused,
        PublishBlocked,
        PublishBusy,
        Retryable,
        SinkRejected,
        SinkUnavailable,
        TargetChanged,
        TargetFull,
        TargetOwned,
        TargetUnreadable,
        Terminal,
    )
    from lockstep.home import absolute
    from lockstep.output_home import OutputHome
    from lockstep.sinks.adopting import AdoptingSink, Answer
    from lockstep.sinks.append_only.open_sink import OpenRecordSink
    from lockstep.sinks.append_only.records import Origin, Record
    from lockstep.sinks.append_only.sink import AppendOnlySink
    from lockstep.sinks.base import Sink
    from lockstep.sinks.committers import FileCommitter, PostgresCommitter
    from lockstep.sinks.committers.begun import BegunCommitter
    from lockstep.sinks.durable_file import (
        Damaged,
        create_whole,
        from_checked,
        link_new,
        sha256_of,
        sync_folder,
        sync_folders,
        to_checked,
        write_new,
    )
    from lockstep.sinks.handles import SinkName
    from lockstep.sinks.open_sink import OpenSink
    from lockstep.sinks.two_phase import TwoPhaseCommitSink
    from lockstep.sinks.values import (
        Adoptable,
        AdoptableFile,
        Batches,
        Guarantee,
        Marker,
        Publication,
        Replaced,
        SinkContext,
        SinkEpoch,
        Standing,
        Txn,
    )
    from lockstep.sinks.write_ahead import CheckpointCommitter, NothingSent, Session, WriteAheadSink

__all__ = [
    "Adoptable",
    "AdoptableFile",
    "AdoptingSink",
    "Answer",
    "AppendOnlySink",
    "Batches",
    "BegunCommitter",
    "CheckpointCommitter",
    "Damaged",
    "FileCommitter",
    "Guarantee",
    "InvalidPipeline",
    "LedgerConflict",
    "Marker",
    "NothingSent",
    "OpenRecordSink",
    "OpenSink",
    "Origin",
    "OutcomeUnknown",
    "OutputHome",
    "PostgresCommitter",
    "PreflightRefused",
    "Publication",
    "PublishBlocked",
    "PublishBusy",
    "Record",
    "Replaced",
    "Retryable",
    "Session",
    "Sink",
    "SinkContext",
    "SinkEpoch",
    "SinkName",
    "SinkRejected",
    "SinkUnavailable",
    "Standing",
    "TargetChanged",
    "TargetFull",
    "TargetOwned",
    "TargetUnreadable",
    "Terminal",
    "TwoPhaseCommitSink",
    "Txn",
    "Vote",
    "WriteAheadSink",
    "absolute",
    "create_whole",
    "from_checked",
    "link_new",
    "sha256_of",
    "sync_folder",
    "sync_folders",
    "to_checked",
    "write_new",
]

_HOMES = {
    "Adoptable": "lockstep.sinks.values",
    "AdoptableFile": "lockstep.sinks.values",
    "AdoptingSink": "lockstep.sinks.adopting",
    "Answer": "lockstep.sinks.adopting",
    "AppendOnlySink": "lockstep.sinks.append_only.sink",
    "Batches": "lockstep.sinks.values",
    "BegunCommitter": "lockstep.sinks.committers.begun",
    "CheckpointCommitter": "lockstep.sinks.write_ahead",
    "Damaged": "lockstep.sinks.durable_file",
    "FileCommitter": "lockstep.sinks.committers",
    "Guarantee": "lockstep.sinks.values",
    "InvalidPipeline": "lockstep.errors",
    "LedgerConflict": "lockstep.errors",
    "Marker": "lockstep.sinks.values",
    "NothingSent": "lockstep.sinks.write_ahead",
    "OpenRecordSink": "lockstep.sinks.append_only.open_sink",
    "OpenSink": "lockstep.sinks.open_sink",
    "Origin": "lockstep.sinks.append_only.records",
    "OutcomeUnknown": "lockstep.errors",
    "OutputHome": "lockstep.output_home",
    "PostgresCommitter": "lockstep.sinks.committers",
    "PreflightRefused": "lockstep.errors",
    "Publication": "lockstep.sinks.values",
    "PublishBlocked": "lockstep.errors",
    "PublishBusy": "lockstep.errors",
    "Record": "lockstep.sinks.append_only.records",
    "Replaced": "lockstep.sinks.values",
    "Retryable": "lockstep.errors",
    "Session": "lockstep.sinks.write_ahead",
    "Sink": "lockstep.sinks.base",
    "SinkContext": "lockstep.sinks.values",
    "SinkEpoch": "lockstep.sinks.values",
    "SinkName": "lockstep.sinks.handles",
    "SinkRejected": "lockstep.errors",
    "SinkUnavailable": "lockstep.errors",
    "Standing": "lockstep.sinks.values",
    "TargetChanged": "lockstep.errors",
    "TargetFull": "lockstep.errors",
    "TargetOwned": "lockstep.errors",
    "TargetUnreadable": "lockstep.errors",
    "Terminal": "lockstep.errors",
    "TwoPhaseCommitSink": "lockstep.sinks.two_phase",
    "Txn": "lockstep.sinks.values",
    "Vote": "lockstep.epoch",
    "WriteAheadSink": "lockstep.sinks.write_ahead",
    "absolute": "lockstep.home",
    "create_whole": "lockstep.sinks.durable_file",
    "from_checked": "lockstep.sinks.durable_file",
    "link_new": "lockstep.sinks.durable_file",
    "sha256_of": "lockstep.sinks.durable_file",
    "sync_folder": "lockstep.sinks.durable_file",
    "sync_folders": "lockstep.sinks.durable_file",
    "to_checked": "lockstep.sinks.durable_file",
    "write_new": "lockstep.sinks.durable_file",
}


def __getattr__(name: str) -> Any:
    return import_lazily(__name__, _HOMES, name)
