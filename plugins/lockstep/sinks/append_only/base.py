"""What is said of targets that take records and forget: no transactions, nothing to look up, nothing to take back.

At least once: a crash between a delivery and its record sends the epoch again. Every record carries a key that is the
same each time, so a receiver that drops keys it has seen has every row once. At most once: the record goes first, and
what a crash cuts off is never sent, and told.
"""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime
from enum import StrEnum
from typing import Any, ClassVar, TypeAlias

import pyarrow as pa

from lockstep.crash import CrashPoint, reach
from lockstep.definition.user_code import import_function
from lockstep.epoch import Json, Vote, require_name
from lockstep.errors import InvalidPipeline, PreflightRefused, PublishBlocked, SinkRejected, TargetUnreadable
from lockstep.sinks.append_only.records import ENVELOPE, Origin, Record, Records, check_records, refused_columns
from lockstep.sinks.base import Sink
from lockstep.sinks.committers import check_committer, open_committer
from lockstep.sinks.committers.external import BegunCommitter
from lockstep.sinks.values import Batches, Guarantee, SinkContext, SinkEpoch
from lockstep.sinks.write_ahead import Session, WriteAheadSink

MAX_RECORD_BYTES = 1 << 20

#: gets a record as the receiver will parse it, without its key; returns why the receiver would refuse it, or None
Validator: TypeAlias = Callable[[Mapping[str, Any]], str | None]


class OnRestate(StrEnum):
    """What to do with an epoch that is to take the place of one that was sent."""

    REFUSE = "refuse"
    SEND = "send"  #: after it, and said so: who reads drops what it replaces


@dataclass(frozen=True, kw_only=True)
class AppendOnlySink(Sink):
    """One output, as JSON records, to a target without transactions; `open` gives an `OpenRecordSink`.

    `committer`: what remembers the epochs that were sent: a folder, or "postgres:<connection id>" for table
    `lockstep_sent` of that database. `max_record_bytes`: a longer record is refused before the decision; afterwards it
    would block the pipeline. `validator`: "module:function", a `Validator` that is asked about each record before the
    decision. `guarantee`: "at_most_once" has the committer remember an epoch before its first record goes out, and
    sends none again; "none" does without a committer and without the target's answers. `on_restate`: "send" sends an
    epoch that takes the place of another one after that one, whose number each of its records names; "refuse" has it
    refused.
    """

    name: str = field(kw_only=False)
    output: str
    committer: str | None = None
    guarantee: str = Guarantee.AT_LEAST_ONCE  # type: ignore[assignment]  # given as text, it is one
    max_record_bytes: int = MAX_RECORD_BYTES
    validator: str | None = None
    on_restate: str = OnRestate.REFUSE

    operational: ClassVar[frozenset[str]] = frozenset({"on_restate"})

    def __post_init__(self) -> None:
        super().__post_init__()
        require_name("output", self.output)
        if self.max_record_bytes <= 0:
            raise InvalidPipeline(f"sink {self.name}: max_record_bytes is {self.max_record_bytes}, has to be above 0")
        object.__setattr__(self, "guarantee", require_guarantee(self.name, self.guarantee, self.committer))
        object.__setattr__(self, "committer", check_committer(self.name, self.committer))
        object.__setattr__(self, "on_restate", require_on_restate(self.name, self.on_restate))

    def arguments(self) -> dict[str, Json]:
        defaults = {f.name: f.default for f in fields(AppendOnlySink)}
        arguments = super().arguments()
        return {name: value for name, value in arguments.items() if name not in defaults or value != defaults[name]}


def require_on_restate(name: str, value: str) -> OnRestate:
    """Raises `InvalidPipeline`."""
    if value not in tuple(OnRestate):
        raise InvalidPipeline(f"sink {name}: on_restate={value!r} is neither 'refuse' nor 'send'")
    return OnRestate(value)


def require_guarantee(name: str, value: str, committer: str | None) -> Guarantee:
    """Raises `InvalidPipeline` for what a target without transactions can't keep."""
    if value not in (Guarantee.AT_LEAST_ONCE, Guarantee.AT_MOST_ONCE, Guarantee.NONE):
        raise InvalidPipeline(
            f"sink {name}: guarantee is {value!r}, this target has no transactions: 'at_least_once' (the records' keys "
            "let the receiver drop repeats), 'at_most_once' (what a crash cuts off is never sent) or 'none'"
        )
    guarantee = Guarantee(value)
    if guarantee is Guarantee.NONE and committer is not None:
        raise InvalidPipeline(f"sink {name}: guarantee 'none' remembers nothing, so it takes no committer")
    if guarantee is not Guarantee.NONE and committer is None:
        raise InvalidPipeline(
            f"sink {name}: committer is missing: give a folder, or 'postgres:<connection id>', that remembers which "
            "epochs were sent"
        )
    return guarantee


def what_follows(guarantee: str) -> str:
    """Of an epoch that was sent in part, for messages."""
    if guarantee == Guarantee.AT_MOST_ONCE:
        return "what has not come is not sent again, since the sink sends at most once"
    return "the epoch will be sent again"


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
        replaced = tuple(epoch_replaced.id for epoch_replaced in epoch.replaced)
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
