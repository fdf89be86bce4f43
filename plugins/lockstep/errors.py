"""What can go wrong, one class per cause that a caller can act on.

`Retryable`: the same call may succeed later, nothing was lost. `Terminal`: repeating it can't help; the message says
what was found, what was expected and what to do. Neither ever carries a secret.
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
    """Input that the interval expects is not there yet. `places`: absolute paths, or patterns of them, where a file
    makes it worth while to look again; none where nobody can tell."""

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
    """A source can't be reached, or is locked by somebody else for too long."""


class TooManyInFlight(Retryable):
    """A cursor pipeline already has `max_in_flight` unpublished epochs."""


class OutOfOrder(Retryable):
    """An earlier epoch of this cursor pipeline must be decided or published first."""


class LedgerUnavailable(Retryable):
    """The ledger can't be reached, or the connection was lost in mid-statement."""


class SinkUnavailable(Retryable):
    """A sink can't be reached, or is locked by somebody else for too long."""


class LoginUnavailable(LedgerUnavailable, SinkUnavailable, SourceUnavailable):
    """Whoever gives the login away, a token service say, can't be asked now: so what it is for can't be reached."""


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
    """What Airflow's assets know can't be read now: nobody is told, and the ledger keeps what is untold."""


class PublishBusy(PublishBlocked):
    """Somebody else is publishing the epoch at this moment."""


class CompactionBusy(Retryable):
    """Somebody else compacts the table at this moment."""


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
    """The ledger lacks a vote of this attempt for a sink of the plan, whatever Airflow's task state says."""


class NotAudited(NotPrepared):
    """The plan has audits, and the sealed WAL has no verdict of theirs yet: no sink may vote, nobody may decide."""


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
    """A run id stands for another pipeline's epoch, or for another interval, than it is asked for now."""


class NameTaken(Terminal):
    """Another pipeline lives under this name: the definition shares no source and no sink with it."""


class EpochVoid(Terminal):
    """The epoch's range was given up by a person."""


class UnknownEpoch(Terminal):
    """No such epoch, pipeline or run in the ledger."""


class LedgerConflict(Terminal):
    """A sink knows something that this ledger doesn't, another life's marker, or a token it never issued; or it has no
    marker of what this ledger calls published."""


class LedgerRefused(Terminal):
    """The ledger can't keep its promise (replica, fsync off, full_page_writes off, unknown format)."""


class OutcomeUnknown(Terminal):
    """Nobody can prove what became of a decided transaction; `lockstep resolve` takes a person's word."""


class WalCorrupt(Terminal):
    """The sealed WAL is not what its manifest and the ledger say it is."""


class WalGone(Terminal):
    """The sealed WAL of a finished epoch isn't kept, or no longer."""


class QueryRefused(Terminal):
    """A filter or a comparison of rows that can't be made; the message names the column, the type or the place."""


class RestateRefused(Terminal):
    """What is published can't be replaced; nothing was planned."""


class RestageRefused(Terminal):
    """A decided epoch can't go on from rows that were staged again: others came out, or their order counts."""


class FormatUnknown(Terminal):
    """Something was written by another version of Lockstep; it may be sound, this one can't tell."""


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
    """What a compaction has written isn't what it read; the table is as it was."""


class ExpiryRefused(Terminal):
    """Nobody can tell any more which files of a table readers may still need; none was deleted."""


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
    """What an error of a database's driver means for whoever asked."""

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
