"""Crash points: one name for each boundary around a side effect.

In production `reach` is one dictionary look-up that finds nothing. With LOCKSTEP_TESTING=1 and
LOCKSTEP_CRASH=<point>[:kill|raise|hang] the process dies by SIGKILL, raises `CrashInjected`, or stops itself by SIGSTOP
(a zombie that SIGCONT releases) when it first reaches that point. Every point that is reached can be recorded, so that
the crash suite finds a side effect that no point separates from the one before.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from enum import StrEnum


class CrashPoint(StrEnum):
    """Named `<role>.<before|after>_<side effect>`; in the order in which a crash-free epoch reaches them."""

    BEGIN_BEFORE_PREFLIGHT = "begin.before_preflight"
    BEGIN_AFTER_PREFLIGHT = "begin.after_preflight"
    BEGIN_BEFORE_OPEN = "begin.before_open"  # the ledger's planned row, or a raised attempt
    BEGIN_AFTER_OPEN = "begin.after_open"
    BEGIN_AFTER_ROLLBACK = "begin.after_rollback"  # branches and folders of lower tokens
    STAGE_BEFORE_TOKEN = "stage.before_token"  # noqa: S105
    STAGE_AFTER_TOKEN = "stage.after_token"  # noqa: S105
    STAGE_BEFORE_FOLDER = "stage.before_folder"  # the lease is renewed
    STAGE_BEFORE_REQUEST = "stage.before_request"
    STAGE_BEFORE_SPARK = "stage.before_spark"
    STAGE_AFTER_LAUNCH = "stage.after_launch"  # only of a job that is left to itself
    STAGE_AFTER_NOTE = "stage.after_note"
    STAGE_AFTER_SPARK = "stage.after_spark"
    STAGE_BEFORE_COPY = "stage.before_copy"  # each file that a table is to adopt, where earlier rows are shown again
    STAGE_AFTER_COPY = "stage.after_copy"
    STAGE_BEFORE_FACTS = "stage.before_facts"  # only of an output that a table adopts
    STAGE_BEFORE_MANIFEST = "stage.before_manifest"
    STAGE_AFTER_MANIFEST = "stage.after_manifest"
    STAGE_BEFORE_SEAL = "stage.before_seal"
    STAGE_AFTER_SEAL = "stage.after_seal"
    AUDIT_BEFORE_SAMPLES = "audit.before_samples"  # only where the plan has audits; rows that offend, beside the WALs
    AUDIT_AFTER_SAMPLES = "audit.after_samples"
    AUDIT_AFTER_VERDICT = "audit.after_verdict"
    RESTAGE_BEFORE_TOKEN = "restage.before_token"  # noqa: S105  # only of a decided epoch whose WAL is damaged
    RESTAGE_AFTER_TOKEN = "restage.after_token"  # noqa: S105
    RESTAGE_BEFORE_RECORD = "restage.before_record"
    RESTAGE_AFTER_RECORD = "restage.after_record"
    PREPARE_BEFORE_TOKEN = "prepare.before_token"  # noqa: S105
    PREPARE_AFTER_TOKEN = "prepare.after_token"  # noqa: S105
    PREPARE_AFTER_PREFLIGHT = "prepare.after_preflight"
    PREPARE_AFTER_TURN = "prepare.after_turn"  # write-ahead into unique keys: no other epoch is validated from here on
    PREPARE_BEFORE_WRITE = "prepare.before_write"
    PREPARE_AFTER_MARKER = "prepare.after_marker"  # the marker row stands in the open branch
    PREPARE_AFTER_REMOVAL = "prepare.after_removal"  # tables: replaced rows are gone, or settled, in the open branch
    PREPARE_AFTER_WRITE = "prepare.after_write"  # Postgres: each output's rows stand in the open branch
    PREPARE_AFTER_MANIFEST = "prepare.after_manifest"  # loaded before the seal: the marker names the manifest now
    PREPARE_BEFORE_PRE_COMMIT = "prepare.before_pre_commit"
    PREPARE_AFTER_COUNTS = "prepare.after_counts"  # Postgres: the marker carries the rows of each output
    PREPARE_AFTER_PRE_COMMIT = "prepare.after_pre_commit"
    PREPARE_BEFORE_VOTE = "prepare.before_vote"
    PREPARE_AFTER_VOTE = "prepare.after_vote"
    COMMIT_BEFORE_DECISION = "commit.before_decision"
    COMMIT_AFTER_DECISION = "commit.after_decision"
    PUBLISH_BEFORE_SINK = "publish.before_sink"
    PUBLISH_AFTER_MARKER = "publish.after_marker"  # write-ahead: marker claimed, nothing durable yet
    PUBLISH_AFTER_REMOVAL = "publish.after_removal"  # tables: the same in the open transaction
    PUBLISH_AFTER_WRITE = "publish.after_write"  # Postgres: each output's rows stand in the open transaction
    PUBLISH_BEFORE_SINK_COMMIT = "publish.before_sink_commit"
    PUBLISH_AFTER_SINK_COMMIT = "publish.after_sink_commit"
    PUBLISH_BEFORE_RENAME = "publish.before_rename"  # file sink: each pending file
    PUBLISH_AFTER_RENAME = "publish.after_rename"
    PUBLISH_BEFORE_FILE_MARKER = "publish.before_file_marker"
    PUBLISH_AFTER_FILE_MARKER = "publish.after_file_marker"
    PUBLISH_BEFORE_TAKE_AWAY = "publish.before_take_away"  # file sink: each file of an epoch that was replaced
    PUBLISH_AFTER_TAKE_AWAY = "publish.after_take_away"
    PUBLISH_BEFORE_RECORD = "publish.before_record"
    PUBLISH_AFTER_RECORD = "publish.after_record"
    CLEANUP_BEFORE_ARCHIVE = "cleanup.before_archive"
    CLEANUP_AFTER_ARCHIVE = "cleanup.after_archive"
    CLEANUP_BEFORE_CHOICE = "cleanup.before_choice"  # the ledger's word on which WAL stays, if any
    CLEANUP_AFTER_CHOICE = "cleanup.after_choice"
    CLEANUP_BEFORE_DELETE = "cleanup.before_delete"  # each file
    CLEANUP_AFTER_DELETE = "cleanup.after_delete"
    CLEANUP_BEFORE_RECORD = "cleanup.before_record"
    CLEANUP_AFTER_RECORD = "cleanup.after_record"
    EXPIRE_BEFORE_MARK = "expire.before_mark"  # only where kept WALs are due
    EXPIRE_AFTER_MARK = "expire.after_mark"
    EXPIRE_BEFORE_DELETE = "expire.before_delete"  # each file
    EXPIRE_AFTER_DELETE = "expire.after_delete"
    EXPIRE_BEFORE_RECORD = "expire.before_record"  # each WAL
    EXPIRE_AFTER_RECORD = "expire.after_record"
    REBUILD_BEFORE_ADOPT = "rebuild.before_adopt"  # only of a ledger that was lost
    REBUILD_AFTER_ADOPT = "rebuild.after_adopt"
    REBUILD_BEFORE_RECORD = "rebuild.before_record"
    REBUILD_AFTER_RECORD = "rebuild.after_record"
    COMPACT_BEFORE_WRITE = "compact.before_write"  # each new file
    COMPACT_AFTER_WRITE = "compact.after_write"
    COMPACT_BEFORE_SINK_COMMIT = "compact.before_sink_commit"
    COMPACT_AFTER_SINK_COMMIT = "compact.after_sink_commit"
    COMPACT_BEFORE_FENCE = "compact.before_fence"  # of the table, against a compaction that is taken for dead
    COMPACT_AFTER_FENCE = "compact.after_fence"
    COMPACT_BEFORE_DELETE = "compact.before_delete"  # each file that a dead compaction left
    COMPACT_AFTER_DELETE = "compact.after_delete"
    COMPACT_BEFORE_EXPIRE = "compact.before_expire"  # each file that readers have no version of any more
    COMPACT_AFTER_EXPIRE = "compact.after_expire"
    ABORT_BEFORE_RAISE = "abort.before_raise"
    ABORT_AFTER_RAISE = "abort.after_raise"
    ABORT_AFTER_ROLLBACK = "abort.after_rollback"
    ROLLBACK_BEFORE_SINK = "rollback.before_sink"  # each branch or pending folder
    ROLLBACK_AFTER_SINK = "rollback.after_sink"
    ROLLBACK_BEFORE_FOLDER = "rollback.before_folder"  # each file of a stale WAL folder
    ROLLBACK_AFTER_FOLDER = "rollback.after_folder"


class CrashInjected(RuntimeError):
    """Raised at a crash point whose action is `raise`."""


_observers: list[Callable[[CrashPoint], object]] = []


def reach(point: CrashPoint) -> None:
    """Report that the process is at `point`. Does nothing unless LOCKSTEP_TESTING=1."""
    if os.environ.get("LOCKSTEP_TESTING") != "1":
        return
    for observer in _observers:
        observer(point)
    point_name, _, action = os.environ.get("LOCKSTEP_CRASH", "").partition(":")
    if point_name == point:
        _act(point, action or "kill")


def _act(point: CrashPoint, action: str) -> None:
    os.environ.pop("LOCKSTEP_CRASH", None)  # once: a released zombie goes on
    match action:
        case "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        case "hang":
            os.kill(os.getpid(), signal.SIGSTOP)
        case "raise":
            raise CrashInjected(point)
        case _:
            raise ValueError(f"LOCKSTEP_CRASH={point}:{action}: the action must be kill, raise or hang")


def observe(observer: Callable[[CrashPoint], object]) -> Callable[[], None]:
    """Call `observer` at every point reached from now on; returns a function that stops it. Tests only."""
    _observers.append(observer)
    return lambda: _observers.remove(observer)
