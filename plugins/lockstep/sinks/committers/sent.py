"""Rows in a transaction of the target, the record elsewhere and afterwards, or nowhere: at least once, or none."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol

from lockstep.errors import InvalidPipeline
from lockstep.sinks.committers import OutsideCommitter, check_committer
from lockstep.sinks.values import Guarantee, Marker, SinkEpoch
from lockstep.sinks.write_ahead import CheckpointCommitter, Session


class Unmarked(Session, Protocol):
    """A transaction of the target that takes no marker with it."""

    claimed: bool


class SentCommitter(CheckpointCommitter):
    """`open_transaction` is entered for sending, `commit` makes it durable; `elsewhere`, open already, records it."""

    def __init__(
        self,
        elsewhere: OutsideCommitter,
        open_transaction: Callable[[SinkEpoch], AbstractContextManager[Unmarked]],
        commit: Callable[[Session], None],
    ) -> None:
        self._elsewhere, self._open_transaction, self._commit = elsewhere, open_transaction, commit
        self.guarantee = elsewhere.guarantee  # type: ignore[misc]

    def create_resource(self) -> None:
        self._elsewhere.create_resource()

    def close(self) -> None:
        self._elsewhere.close()

    @contextmanager
    def session(self, epoch: SinkEpoch) -> Iterator[Session]:
        with self._open_transaction(epoch) as claim:
            if claim.claimed and self.is_checkpoint_committed(epoch.id):
                claim.claimed = False  # whoever was at it before has recorded it
            yield claim

    def is_checkpoint_committed(self, epoch: int) -> Marker | None:
        return self._elsewhere.is_checkpoint_committed(epoch)

    def find_span(self, span: str) -> Marker | None:
        return self._elsewhere.find_span(span)

    def newest(self) -> list[Marker]:
        return self._elsewhere.newest()

    def all(self) -> Iterable[Marker]:
        return self._elsewhere.all()

    def commit_checkpoint(self, epoch: SinkEpoch, session: Session) -> None:
        self._commit(session)
        self._elsewhere.commit_checkpoint(epoch, session)


def check_guarantee(sink: str, guarantee: str, committer: str | None) -> tuple[Guarantee, str | None]:
    """What a write-ahead sink with transactions promises, and the committer as a plan has it.

    Raises `InvalidPipeline`.
    """
    kept = [one for one in Guarantee if one is not Guarantee.AT_MOST_ONCE]  # whoever has transactions keeps more
    if guarantee not in kept:
        raise InvalidPipeline(f"sink {sink}: guarantee={guarantee!r} is none of {', '.join(kept)}")
    if (guarantee == Guarantee.AT_LEAST_ONCE) != (committer is not None):
        raise InvalidPipeline(
            f"sink {sink}: guarantee='at_least_once' needs a committer ('postgres:<connection id>' or a folder), and "
            f"nothing else takes one; guarantee is {guarantee!r}, committer {committer!r}"
        )
    return Guarantee(guarantee), check_committer(sink, committer)
