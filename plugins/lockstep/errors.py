"""One exception class per cause that a caller can act on.

`Retryable`: the same call may succeed later, nothing was lost. `Terminal`: a retry can't help; the message says what
was found, what was expected and what to do. Messages never contain secrets.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum, auto
from typing import NamedTuple


class LockstepError(Exception):
    """Root of every error that Lockstep raises on purpose."""


class Retryable(LockstepError):
    """Try again later: nothing was lost and nothing was shown."""


class Terminal(LockstepError):
    """Trying again can't help: a person, or another attempt, has to act."""


# --- retryable -------------------------------------------------------------------------------------------------------


class EpochBusy(Retryable):
    """Another run holds the epoch's lease."""


class SourceNotReady(Retryable):
    """Input that the interval expects hasn't arrived. `places`: absolute paths or patterns whose files are worth
    waiting for; empty if unknown."""

    def __init__(self, message: str, places: Iterable[str] = ()) -> None:
        super().__init__(message)
        self.places = tuple(places)


class JobAtWork(Retryable):
    """A job that `stage` has left to itself hasn't ended yet. `places`: the address of its request, beside which it
    leaves its last word."""

    def __init__(self, message: str, places: Iterable[str] = ()) -> None:
        super().__init__(message)
        self.places = tuple(places)


class SourceUnavailable(Retryable):
    """A source can't be reached, or stays locked for too long."""


class TooManyInFlight(Retryable):
    """A cursor pipeline already has `max_in_flight` unpublished epochs."""


class OutOfOrder(Retryable):
    """An earlier epoch of this cursor pipeline must be decided or published first."""


class LedgerUnavailable(Retryable):
    """The ledger can't be reached, or the connection was lost in mid-statement."""


class SinkUnavailable(Retryable):
    """A sink can't be reached, or stays locked for too long."""


class LoginUnavailable(LedgerUnavailable, SinkUnavailable, SourceUnavailable):
    """The provider of a login, such as a token service, can't be reached."""


class KeysHeld(SinkUnavailable):
    """An epoch that is not yet published holds keys that this one has, or may have, until it is shown or aborted."""


class TargetFull(Retryable):
    """A target has no room for another epoch at this moment: prepared transactions are all taken, or the disk is."""


class StagingUnavailable(Retryable):
    """Staging storage can't be read or written now (no space, no permission, no answer)."""


class StageFailed(Retryable):
    """The Spark job failed, or what it wrote is not what it counted; this execution's folder is rubbish."""


class Unbalanced(StageFailed):
    """Rows that went in are not those that were accounted for; nothing was sealed."""


class SparkUnavailable(Retryable):
    """Spark can't be reached, or doesn't start now."""


class PublishBlocked(Retryable):
    """A decided epoch can't be published yet: it stays committed and is tried again."""


class RecoveryIncomplete(Retryable):
    """A round of recovery left problems; the message lists them, the next round tries again."""


class EventsUnread(Retryable):
    """Airflow's asset events can't be read; the ledger keeps the pending ones."""


class PublishBusy(PublishBlocked):
    """Another process is publishing the epoch."""


class CompactionBusy(Retryable):
    """Another process is compacting the table."""


class CompactionOvertaken(Retryable):
    """Others have changed the files that a compaction was to replace; the table is as they left it."""


class PackUnfinished(Retryable):
    """Some epochs of a pack didn't get to the end, and trying again may help; the message names each with its cause."""


class EpochsStuck(Retryable):
    """Epochs don't move by themselves; the message has a sentence a pipeline, with what moves the first of them."""


# --- terminal --------------------------------------------------------------------------------------------------------


class Fenced(Terminal):
    """A younger attempt or execution has taken over; what this one does counts for nothing."""


class PackFailed(Terminal):
    """Some epochs of a pack didn't get to the end, and trying again helps none of them; the others did."""


class AlreadyDecided(Terminal):
    """The decision was taken meanwhile; `stage` and `prepare` take it for success."""


class IllegalTransition(Terminal):
    """The state machine has no such arrow from the state that was found."""


class NotPrepared(Terminal):
    """The ledger lacks a vote of this attempt for a sink of the plan, regardless of Airflow's task state."""


class NotAudited(NotPrepared):
    """The plan has audits and the sealed WAL has no verdict yet: no sink may vote, and nothing may be decided."""


class EpochHeld(NotAudited):
    """Rows of the sealed WAL offend an audit: a person releases the epoch, replans it or gives it up."""


class AuditFailed(Terminal):
    """An audit can't be asked: its SQL doesn't fit the output, or gives no number where one is compared; its function
    fails, gives no rows of the output, or is another one than was planned."""


class PlanMismatch(Terminal):
    """The pipeline's definition differs from the frozen plan; `lockstep replan` takes the new one."""


class IntervalOverlap(Terminal):
    """The interval overlaps another epoch's without being equal to it."""


class IntervalMissing(Terminal):
    """An interval pipeline was run without a data interval."""


class RunMismatch(Terminal):
    """The run id belongs to another pipeline's epoch, or to another interval."""


class NameTaken(Terminal):
    """Another pipeline has this name: the definition shares no source and no sink with it."""


class EpochVoid(Terminal):
    """The epoch's range was given up by a person."""


class UnknownEpoch(Terminal):
    """No such epoch, pipeline or run in the ledger."""


class LedgerConflict(Terminal):
    """A sink has a marker of another decision or a token that this ledger never issued, or it lacks the marker of an
    epoch that this ledger calls published."""


class LedgerRefused(Terminal):
    """The ledger can't keep its promise (replica, fsync off, full_page_writes off, unknown format)."""


class OutcomeUnknown(Terminal):
    """The outcome of a decided transaction can't be proven; `lockstep resolve` records a person's answer."""


class WalCorrupt(Terminal):
    """The sealed WAL is not what its manifest and the ledger say it is."""


class WalGone(Terminal):
    """The sealed WAL of a finished epoch isn't kept, or no longer."""


class QueryRefused(Terminal):
    """A filter or a comparison of rows that can't be made; the message names the column, the type or the place."""


class RestateRefused(Terminal):
    """Published rows can't be replaced; nothing was planned."""


class RestageRefused(Terminal):
    """A decided epoch can't go on from rows that were staged again: others came out, or their order counts."""


class FormatUnknown(Terminal):
    """The data was written by another version of Lockstep. It may be intact, but this version can't tell."""


class StoreRefused(Terminal):
    """An object store's or HDFS's address or login can't be used, or it can't do what Lockstep needs of it."""


class StagingRefused(Terminal):
    """A path of staging storage leads where it must not (symlink, parent folder, foreign file)."""


class SourceChanged(Terminal):
    """A frozen input can't be read as it was when the epoch was planned."""


class OffsetsExpired(SourceChanged):
    """Records of a topic that an epoch has to read are older than what the brokers keep."""


class LogTruncated(SourceChanged):
    """A partition ends before offsets that epochs have read or planned."""


class TopicRecreated(SourceChanged):
    """A topic was deleted, or is another one of the same name."""


class SourceClaimed(Terminal):
    """A file of this range already belongs to another epoch."""


class SourceRefused(Terminal):
    """The source can't keep the guarantee that is asked of it; the message names the setting or the column."""


class BadRecords(Terminal):
    """Input has records that don't parse; the message names file, line, column and type, never the value."""


class PreflightRefused(Terminal):
    """The target can't keep the guarantee that is asked of it; the message names the setting or the column."""


class TargetOwned(PreflightRefused):
    """The target belongs to another pipeline or deployment and not both say shared=True."""


class TargetUnreadable(PreflightRefused):
    """The target only takes records: what it holds can't be read back and compared."""


class TargetChanged(Terminal):
    """The connection leads to another server or folder than the one that voted, or that showed the epochs before."""


class SinkRejected(Terminal):
    """A sink refuses the epoch's rows (constraint, type, value); nothing of it is shown."""


class CompactionRefused(Terminal):
    """The compaction's rows differ from its input; the table is unchanged."""


class ExpiryRefused(Terminal):
    """The files that readers may still need can't be determined; none was deleted."""


class StateRejected(Terminal):
    """A transform's changes can't become state: two rows of one key, or a null in it."""


class SparkRefused(Terminal):
    """Spark can't be used as it is: its versions disagree, its address or an option has no meaning, it lacks a jar or
    a Java."""


class InvalidPipeline(Terminal):
    """The pipeline's definition is wrong; found before anything ran."""


class WaitedInVain(Terminal):
    """A task has waited for something all the time that it was given; the message says for what."""


class NotConfigured(Terminal):
    """A connection or setting isn't defined; the message names it and where to put it."""


# --- what a database's errors are called ---------------------------------------------------------------------------


class Failure(Enum):
    """The meaning of a database driver's error for the caller."""

    LOST = auto()  #: the connection broke: what the last statement did is not known
    PASSING = auto()  #: resources, locks, an operator: the same may go well later
    FULL = auto()  #: no room on the server
    DENIED = auto()  #: a right is missing
    REFUSED = auto()  #: the statement, or a row, for its content


class ErrorClasses(NamedTuple):
    """The names that those errors get, by the part of Lockstep that asked."""

    unavailable: type[LockstepError]  #: LOST, PASSING
    full: type[LockstepError]
    denied: type[LockstepError]
    refused: type[LockstepError]

    def of(self, failure: Failure) -> type[LockstepError]:
        match failure:
            case Failure.LOST | Failure.PASSING:
                return self.unavailable
            case Failure.FULL:
                return self.full
            case Failure.DENIED:
                return self.denied
            case Failure.REFUSED:
                return self.refused


SINK_ERRORS = ErrorClasses(SinkUnavailable, TargetFull, PreflightRefused, SinkRejected)
SOURCE_ERRORS = ErrorClasses(SourceUnavailable, SourceUnavailable, SourceRefused, SourceRefused)
