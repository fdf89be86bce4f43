"""The template of targets that take records and forget: no transactions, nothing to look up, nothing to take back.

At least once: a crash between a delivery and its record sends the epoch again. Every record carries a key that is the
same each time, so a receiver that drops keys it has seen has every row once.
"""

from __future__ import annotations

import importlib
import json
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, Self, TypeAlias

import pyarrow as pa

from lockstep.crash import CrashPoint, reach
from lockstep.epoch import Json, Vote, require_name
from lockstep.errors import InvalidPipeline, PreflightRefused, PublishBlocked, SinkRejected, TargetUnreadable
from lockstep.sinks.append_only.records import ENVELOPE, Origin, Record, records_of, refused_columns
from lockstep.sinks.base import Batches, Guarantee, Sink, SinkContext, SinkEpoch
from lockstep.sinks.committers import OutsideCommitter, committer_of
from lockstep.sinks.write_ahead import Session, WriteAheadSink

MAX_RECORD_BYTES = 1 << 20

#: gets a record as the receiver will parse it, without its key; returns why the receiver would refuse it, or None
Validator: TypeAlias = Callable[[Mapping[str, Any]], str | None]


class AppendOnlySink(Sink, WriteAheadSink):
    """One output, as JSON records, to a target without transactions.

    `committer`: what remembers the epochs that were sent: a folder, or "postgres:<connection id>" for table
    `lockstep_sent` of that database. `max_record_bytes`: a longer record is refused before the decision; afterwards it
    would block the pipeline. `validator`: "module:function", a `Validator` that is asked about each record before the
    decision. `guarantee`: "none" does without a committer and without the target's answers.
    """

    committer: OutsideCommitter

    def __init__(
        self,
        name: str,
        *,
        output: str,
        committer: str | None = None,
        guarantee: str = Guarantee.AT_LEAST_ONCE,
        max_record_bytes: int = MAX_RECORD_BYTES,
        validator: str | None = None,
    ) -> None:
        super().__init__(name)
        if max_record_bytes <= 0:
            raise InvalidPipeline(f"sink {name}: max_record_bytes is {max_record_bytes}, has to be above 0")
        self.guarantee = _guarantee(name, guarantee, committer)
        self._output, self._max_record_bytes = require_name("output", output), max_record_bytes
        self.committer = committer_of(name, committer)
        self._validator = validator

    @abstractmethod
    def deliver(self, records: Iterator[Record], origin: Origin) -> None:
        """Send every record; return when the target has said that it has them all. With guarantee "none" try once and
        don't mind its answers. Raises `SinkUnavailable`, `PublishBlocked`."""

    @property
    def outputs(self) -> tuple[str, ...]:
        return (self._output,)

    def arguments(self) -> dict[str, Json]:
        optional = {
            "committer": self.committer.setting(),
            "guarantee": None if self.guarantee is Guarantee.AT_LEAST_ONCE else self.guarantee.value,
            "max_record_bytes": None if self._max_record_bytes == MAX_RECORD_BYTES else self._max_record_bytes,
            "validator": self._validator,
        }
        given = {name: value for name, value in optional.items() if value is not None}
        return {"name": self.name, "output": self._output, **given}

    def open(self, context: SinkContext) -> Self:
        self._context = context
        self.committer.set_job_id(f"{context.deployment}:{context.pipeline}")
        self.committer.set_operator_id(self.name)
        self.committer.connect(context)
        self.committer.open()
        return self

    def close(self) -> None:
        self.committer.close()

    def preflight(self, schemas: Mapping[str, pa.Schema] | None) -> None:
        self._why_not()
        self.committer.create_resource()
        if schemas is None:
            return
        if self._output not in schemas:
            raise PreflightRefused(
                f"sink {self.name}: the transform gave no output {self._output}, but {sorted(schemas)}"
            )
        if problem := refused_columns(schemas[self._output]):
            raise PreflightRefused(f"sink {self.name}: output {self._output}: {problem}")

    def target_id(self) -> str:
        """Of what remembers: the target itself can't be asked who it is."""
        return self.committer.resource_id()

    def validate(self, epoch: SinkEpoch, wal: Iterable[Batches]) -> Vote:
        """Make every record once: whatever JSON or the target can't take is refused while it still can be."""
        why_not = self._why_not()
        rows: dict[str, int] = {}
        for batches in wal:
            rows[batches.output] = 0
            for record in self._records(batches, epoch):
                self._require_taken(record, why_not)
                rows[batches.output] += 1
        return Vote(epoch.token, None, self.target_id(), rows)

    def send_values(self, batches: Batches, epoch: SinkEpoch, timestamp: datetime, session: Session) -> bool:
        try:
            self.deliver(self._records(batches, epoch), self._origin(batches, epoch))
        except SinkRejected as error:  # by another version of this code than the one that voted
            raise PublishBlocked(f"{error}; it was decided, so it has to be sent") from error
        reach(CrashPoint.PUBLISH_AFTER_WRITE)
        return True

    def read(self, epoch: int, output: str, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        raise TargetUnreadable(f"sink {self.name}: what was sent can't be read back")

    def _origin(self, batches: Batches, epoch: SinkEpoch) -> Origin:
        return Origin(self._context.deployment, self._context.pipeline, batches.output, epoch.id)

    def _records(self, batches: Batches, epoch: SinkEpoch) -> Iterator[Record]:
        for record in records_of(batches, self._origin(batches, epoch)):
            if len(record.line) > self._max_record_bytes:
                raise SinkRejected(
                    f"sink {self.name}: record {record.key} has {len(record.line)} bytes, max_record_bytes is "
                    f"{self._max_record_bytes}"
                )
            yield record

    def _why_not(self) -> Validator | None:
        """The user's validator. Raises `InvalidPipeline`."""
        if self._validator is None:
            return None
        module, _, function = self._validator.partition(":")
        try:
            found: Validator = getattr(importlib.import_module(module), function)
        except (ImportError, AttributeError, ValueError) as error:
            raise InvalidPipeline(
                f"sink {self.name}: validator {self._validator} can't be imported: {error}; give module:function"
            ) from error
        return found

    def _require_taken(self, record: Record, why_not: Validator | None) -> None:
        if why_not is None:
            return
        content = json.loads(record.line)
        del content[ENVELOPE]
        if (reason := why_not(content)) is not None:
            raise SinkRejected(f"sink {self.name}: {self._validator} refuses record {record.key}: {reason}")


def _guarantee(name: str, given: str, committer: str | None) -> Guarantee:
    """Raises `InvalidPipeline` for what a target without transactions can't keep."""
    if given not in (Guarantee.AT_LEAST_ONCE, Guarantee.NONE):
        raise InvalidPipeline(
            f"sink {name}: guarantee is {given!r}, this target has no transactions: 'at_least_once' (the records' keys "
            "let the receiver drop repeats) or 'none'"
        )
    guarantee = Guarantee(given)
    if guarantee is Guarantee.NONE and committer is not None:
        raise InvalidPipeline(f"sink {name}: guarantee 'none' remembers nothing, so it takes no committer")
    if guarantee is Guarantee.AT_LEAST_ONCE and committer is None:
        raise InvalidPipeline(
            f"sink {name}: committer is missing: give a folder, or 'postgres:<connection id>', that remembers which "
            "epochs were sent"
        )
    return guarantee


def reason_of(error: BaseException) -> str:
    """What went wrong, on one line."""
    return f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"
