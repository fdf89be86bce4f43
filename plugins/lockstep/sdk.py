"""All that a sink of one's own is written with: see docs/writing-a-sink.md. Its tests take `lockstep.testing`."""

from __future__ import annotations

from lockstep.connections.names import absolute
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
from lockstep.sinks.adopting import AdoptingSink, CommitOutcome
from lockstep.sinks.append_only.base import AppendOnlySink, OpenRecordSink
from lockstep.sinks.append_only.records import Origin, Record
from lockstep.sinks.base import Sink
from lockstep.sinks.committers import FileCommitter, PostgresCommitter
from lockstep.sinks.committers.external import BegunCommitter
from lockstep.sinks.durable_file import (
    Damaged,
    create_atomically,
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
    RowStatus,
    SinkContext,
    SinkEpoch,
    Txn,
)
from lockstep.sinks.write_ahead import CheckpointCommitter, NothingSent, Session, WriteAheadSink
from lockstep.wal.table_staging import TableStaging

__all__ = [
    "Adoptable",
    "AdoptableFile",
    "AdoptingSink",
    "AppendOnlySink",
    "Batches",
    "BegunCommitter",
    "CheckpointCommitter",
    "CommitOutcome",
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
    "PostgresCommitter",
    "PreflightRefused",
    "Publication",
    "PublishBlocked",
    "PublishBusy",
    "Record",
    "Replaced",
    "Retryable",
    "RowStatus",
    "Session",
    "Sink",
    "SinkContext",
    "SinkEpoch",
    "SinkName",
    "SinkRejected",
    "SinkUnavailable",
    "TableStaging",
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
    "create_atomically",
    "from_checked",
    "link_new",
    "sha256_of",
    "sync_folder",
    "sync_folders",
    "to_checked",
    "write_new",
]
