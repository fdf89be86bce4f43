"""The connected side of sinks without transactions: a committer elsewhere remembers which epochs were sent."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from typing import TypeAlias

import pyarrow as pa

from lockstep.crash import CrashPoint, reach
from lockstep.definition.user_code import import_function
from lockstep.epoch import Vote
from lockstep.errors import InvalidPipeline, PreflightRefused, PublishBlocked, SinkRejected, TargetUnreadable
from lockstep.sinks.append_only.records import ENVELOPE, Origin, Record, Records, check_records, refused_columns
from lockstep.sinks.append_only.sink import AppendOnlySink, OnRestate, Validator
from lockstep.sinks.base import Sink
from lockstep.sinks.committers import open_committer
from lockstep.sinks.committers.begun import BegunCommitter
from lockstep.sinks.values import Batches, Guarantee, SinkContext, SinkEpoch
from lockstep.sinks.write_ahead import Session, WriteAheadSink

#: Sends every record; returns when the target has said that it has them all. With guarantee "none" it tries once and
#: doesn't mind the answers. Raises `SinkUnavailable`, `PublishBlocked`. A function that takes them one after the other
#: may say `Iterator[Record]`.
Deliver: TypeAlias = Callable[[Records, Origin], None]


class OpenAppendOnlySink(WriteAheadSink):
    """Connected to `committer`: a folder, "postgres:<connection id>", or None, which remembers nothing."""

    def __init__(self, sink: Sink, context: SinkContext, committer: str | None) -> None:
        super().__init__(sink)
        elsewhere = open_committer(sink.name, committer, context)
        beforehand = self.guarantee is Guarantee.AT_MOST_ONCE
        self.committer = BegunCommitter(elsewhere) if beforehand else elsewhere

    @abstractmethod
    def check(self, batches: Batches, epoch: SinkEpoch) -> int:
        """Count the rows of one output, before the decision; raises `SinkRejected` for what can't be sent."""

    @abstractmethod
    def send(self, batches: Batches, epoch: SinkEpoch) -> None:
        """Send the rows of one output; return when the target has them all."""

    def close(self) -> None:
        self.committer.close()

    def preflight(self, schemas: Mapping[str, pa.Schema] | None) -> None:
        self.committer.create_resource()
        if schemas is not None and self.sink.output not in schemas:
            raise PreflightRefused(
                f"sink {self.name}: the transform gave no output {self.sink.output}, but {sorted(schemas)}"
            )

    def require_replaceable(self) -> None:
        if getattr(self.sink, "on_restate", OnRestate.REFUSE) != OnRestate.SEND:
            raise PreflightRefused(
                f"sink {self.name}: what was sent can't be taken back: say on_restate='send' in the sink, and its "
                "receiver gets the epoch that takes another's place after that one, whose number it is told"
            )
        if self.guarantee is Guarantee.NONE:
            raise PreflightRefused(
                f"sink {self.name}: with guarantee='none' nobody knows which epochs were sent, and so whose place one "
                "would take: say guarantee='at_least_once' with a committer"
            )

    def target_id(self) -> str:
        """Of what remembers: the target itself can't be asked who it is."""
        return self.committer.resource_id()

    def validate(self, epoch: SinkEpoch, wal: Iterable[Batches]) -> Vote:
        for replaced in epoch.replaced:
            self._require_shown(replaced, self.find_marker(replaced.id), epoch)
        rows = {batches.output: self.check(batches, epoch) for batches in wal}
        return Vote(epoch.token, None, self.target_id(), rows)

    def send_values(self, batches: Batches, epoch: SinkEpoch, timestamp: datetime, session: Session) -> bool:
        try:
            self.send(batches, epoch)
        except SinkRejected as error:  # by another version of this code than the one that voted
            raise PublishBlocked(f"{error}; it was decided, so it has to be sent") from error
        reach(CrashPoint.PUBLISH_AFTER_WRITE)
        return True

    def read(self, epoch: int, output: str, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        raise TargetUnreadable(f"sink {self.name}: what was sent can't be read back")


class OpenRecordSink(OpenAppendOnlySink):
    """Each row as a JSON record with a key, given to `deliver`; `release` lets go of what that holds."""

    sink: AppendOnlySink

    def __init__(
        self, sink: AppendOnlySink, context: SinkContext, deliver: Deliver, release: Callable[[], None] | None = None
    ) -> None:
        super().__init__(sink, context, sink.committer)
        self._context, self._deliver, self._release = context, deliver, release

    def close(self) -> None:
        if self._release is not None:
            self._release()
        super().close()

    def preflight(self, schemas: Mapping[str, pa.Schema] | None) -> None:
        self._import_validator()
        super().preflight(schemas)
        if schemas is not None and (problem := refused_columns(schemas[self.sink.output])):
            raise PreflightRefused(f"sink {self.name}: output {self.sink.output}: {problem}")

    def check(self, batches: Batches, epoch: SinkEpoch) -> int:
        """Whatever JSON or the target can't take is refused while it still can be."""
        origin, why_not = self._origin(batches, epoch), self._import_validator()
        if why_not is None:
            return check_records(batches, origin, self.sink.max_record_bytes)
        rows = 0
        for record in self._records(batches, origin):
            self._require_taken(record, why_not)
            rows += 1
        return rows

    def send(self, batches: Batches, epoch: SinkEpoch) -> None:
        origin = self._origin(batches, epoch)
        self._deliver(self._records(batches, origin), origin)

    def _origin(self, batches: Batches, epoch: SinkEpoch) -> Origin:
        replaced = tuple(one.id for one in epoch.replaced)
        return Origin(self._context.deployment, self._context.pipeline, batches.output, epoch.id, replaced)

    def _records(self, batches: Batches, origin: Origin) -> Records:
        return Records(batches, origin, self.sink.max_record_bytes)

    def _import_validator(self) -> Validator | None:
        if self.sink.validator is None:
            return None
        try:
            return import_function(self.sink.validator)
        except InvalidPipeline as error:
            raise InvalidPipeline(f"sink {self.name}: validator {error}") from error

    def _require_taken(self, record: Record, why_not: Validator) -> None:
        content = json.loads(record.line)
        del content[ENVELOPE]
        if (reason := why_not(content)) is not None:
            raise SinkRejected(f"sink {self.name}: {self.sink.validator} refuses record {record.key}: {reason}")


def reason_of(error: BaseException) -> str:
    """What went wrong, on one line."""
    return f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"
