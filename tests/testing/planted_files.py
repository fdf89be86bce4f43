"""The two-phase sink of docs/writing-a-sink.md with one bug each."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from lockstep.sdk import Batches, OpenSink, SinkContext, SinkEpoch, SinkName, Txn, Vote
from tests.sinks.documented import module_of

#: their classes are made when the page is read: no base classes for mypy
TransactionalFileSink: Any = module_of("transactional_file_sink").TransactionalFileSink
OpenTransactionalFileSink: Any = module_of("transactional_file_sink").OpenTransactionalFileSink


class ShowsTooEarly(TransactionalFileSink):  # type: ignore[misc]
    def open(self, context: SinkContext) -> OpenSink:
        return OpenShowsTooEarly(self, SinkName.of(context, self.name))


class OpenShowsTooEarly(OpenTransactionalFileSink):  # type: ignore[misc]
    """Commits when it votes: an attempt that isn't decided stands in the next one's way."""

    def pre_commit(self, txn: Txn) -> Vote:
        vote: Vote = super().pre_commit(txn)
        self.commit(txn)
        return vote


class KeyWithTheToken(TransactionalFileSink):  # type: ignore[misc]
    def open(self, context: SinkContext) -> OpenSink:
        return OpenKeyWithTheToken(self, SinkName.of(context, self.name))


class OpenKeyWithTheToken(OpenTransactionalFileSink):  # type: ignore[misc]
    """Two repairs have a marker each: the file that is its own marker is named by its execution."""

    again = ""

    def write_again(self, epoch: SinkEpoch, wal: Iterable[Batches]) -> bool:
        self.again = f".again-{epoch.token}"
        try:
            return bool(super().write_again(epoch, wal))
        finally:
            self.again = ""

    def _final(self, epoch: int) -> Path:
        final: Path = super()._final(epoch)
        if self.again:
            return final.with_suffix(f"{self.again}.arrow")
        return next(self.root.glob(f"{final.stem}.again-*.arrow"), final)
