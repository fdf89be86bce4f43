"""The template of targets that take records and forget: no transactions, nothing to look up, nothing to take back.

At least once: a crash between a delivery and its record sends the epoch again. Every record carries a key that is the
same each time, so a receiver that drops keys it has seen has every row once.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any

import pyarrow as pa

from lockstep.crash import CrashPoint, reach
from lockstep.epoch import Json, Vote
from lockstep.errors import InvalidPipeline, PreflightRefused, SinkRejected
from lockstep.sinks.append_records import Record, records_of
from lockstep.sinks.base import Batches, Guarantee, SinkContext, SinkEpoch
from lockstep.sinks.committers import FileCommitter, PostgresCommitter
from lockstep.sinks.write_ahead import CheckpointCommitter, Session, WriteAheadSink

_POSTGRES = "postgres:"


class AppendOnlySink(WriteAheadSink):
    """One output, as JSON records, to a target without transactions.

    `committer`: what remembers the epochs that were sent: a folder, or "postgres:<connection id>" for table
    `lockstep_sent` of that database. `max_record_bytes`: a longer record is refused before the decision; afterwards it
    would block the pipeline.
    """

    guarantee = Guarantee.AT_LEAST_ONCE

    def __init__(self, name: str, *, output: str, committer: str, max_record_bytes: int = 1 << 20) -> None:
        super().__init__(name)
        if max_record_bytes <= 0:
            raise InvalidPipeline(f"sink {name}: max_record_bytes is {max_record_bytes}, has to be above 0")
        self._output, self._remembers, self._max_record_bytes = output, committer, max_record_bytes

    @abstractmethod
    def deliver(self, records: Iterator[Record], epoch: SinkEpoch) -> None:
        """Send every record; return when the target has said that it has them all. Raises `SinkUnavailable`,
        `PublishBlocked`."""

    @property
    def outputs(self) -> tuple[str, ...]:
        return (self._output,)

    def arguments(self) -> dict[str, Json]:
        return {
            "name": self.name,
            "output": self._output,
            "committer": self._remembers,
            "max_record_bytes": self._max_record_bytes,
        }

    def open(self, context: SinkContext) -> None:
        self._pipeline = context.pipeline
        self.committer = self._committer(context)
        self.committer.set_job_id(f"{context.deployment}:{context.pipeline}")
        self.committer.set_operator_id(self.name)
        self.committer.open()

    def _committer(self, context: SinkContext) -> CheckpointCommitter:
        if not self._remembers.startswith(_POSTGRES):
            return FileCommitter(self._remembers)
        connection = self._remembers.removeprefix(_POSTGRES)
        return PostgresCommitter(connection, context.dsn(connection, self.name))

    def close(self) -> None:
        if hasattr(self, "committer"):
            self.committer.close()

    def preflight(self, schemas: Mapping[str, pa.Schema] | None) -> None:
        self.committer.create_resource()
        if schemas is not None and self._output not in schemas:
            raise PreflightRefused(
                f"sink {self.name}: the transform gave no output {self._output}, but {sorted(schemas)}"
            )

    def target_id(self) -> str:
        """Of what remembers: the target itself can't be asked who it is."""
        return self.committer.resource_id()

    def validate(self, epoch: SinkEpoch, wal: Iterable[Batches]) -> Vote:
        """Make every record once: whatever JSON or the target can't take is refused while it still can be."""
        rows = {batches.output: sum(1 for _ in self._records(batches, epoch)) for batches in wal}
        return Vote(epoch.token, None, self.target_id(), rows)

    def send_values(self, batches: Batches, epoch: SinkEpoch, timestamp: datetime, session: Session) -> bool:
        self.deliver(self._records(batches, epoch), epoch)
        reach(CrashPoint.PUBLISH_AFTER_WRITE)
        return True

    def read(self, epoch: int, output: str, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        raise PreflightRefused(f"sink {self.name}: what was sent can't be read back")

    def _records(self, batches: Batches, epoch: SinkEpoch) -> Iterator[Record]:
        for record in records_of(batches, self._pipeline, epoch.id):
            if len(record.line) > self._max_record_bytes:
                raise SinkRejected(
                    f"sink {self.name}: record {record.key} has {len(record.line)} bytes, max_record_bytes is "
                    f"{self._max_record_bytes}"
                )
            yield record


def chunks(records: Iterable[Record], size: int) -> Iterator[list[Record]]:
    """Lists of `size` records, the last one shorter."""
    chunk: list[Record] = []
    for record in records:
        chunk.append(record)
        if len(chunk) == size:
            yield chunk
            chunk = []
    if chunk:
        yield chunk


def reason_of(error: Any) -> str:
    """What went wrong, on one line, with no address in it that may hold a login."""
    return f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
