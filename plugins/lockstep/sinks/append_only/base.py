"""Base of sinks whose targets only take records: no transactions, no lookup, no removal.

At least once: a crash between a delivery and its record in the committer sends the epoch again. Every record carries a
key that is the same at each attempt, so a receiver that drops known keys has every row once. At most once: the
committer records first; rows that a crash cuts off are never sent, and this is reported.
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
from lockstep.sinks.append_only.records import ENVELOPE, JsonRecords, Origin, check_records, refused_columns
from lockstep.sinks.base import Sink
from lockstep.sinks.committers import check_committer, open_committer
from lockstep.sinks.committers.external import BegunCommitter
from lockstep.sinks.values import Batches, Guarantee, SinkContext, SinkEpoch
from lockstep.sinks.write_ahead import Session, WriteAheadSink

MAX_RECORD_BYTES = 1 << 20

#: gets a record as the receiver will parse it, without its key; returns why the receiver would refuse it, or None
Validator: TypeAlias = Callable[[Mapping[str, Any]], str | None]


class OnRestate(StrEnum):
    """What to do with an epoch that replaces one that was sent."""

    REFUSE = "refuse"
    SEND = "send"  #: send it after that one and name that one in each record; readers drop what it replaces


@dataclass(frozen=True, kw_only=True)
class AppendOnlySink(Sink):
    """Sends one output as JSON records to a target without transactions; `open` returns an `OpenRecordSink`.

    `committer`: where sent epochs are recorded: a folder, or "postgres:<connection id>" for table `lockstep_sent` of
    that database. `max_record_bytes`: longer records are refused before the decision; afterwards they would block the
    pipeline. `validator`: "module:function", a `Validator` that is called for each record before the decision.
    `guarantee`: with "at_most_once" the committer records an epoch before its first record is sent, and no record is
    sent again; "none" uses no committer and ignores the target's answers. `on_restate`: "send" sends an epoch that
    replaces another one after that one, whose number each record names; "refuse" refuses it.
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
    """Return the value as `OnRestate`. Raises `InvalidPipeline`."""
    if value not in tuple(OnRestate):
        raise InvalidPipeline(f"sink {name}: on_restate={value!r} is neither 'refuse' nor 'send'")
    return OnRestate(value)


def require_guarantee(name: str, value: str, committer: str | None) -> Guarantee:
    """Return the value as `Guarantee`. Raises `InvalidPipeline` for one that needs transactions."""
    if value not in (Guarantee.AT_LEAST_ONCE, Guarantee.AT_MOST_ONCE, Guarantee.NONE):
        raise InvalidPipeline(
            f"sink {name}: guarantee is {value!r}, this target has no transactions: 'at_least_once' (the records' keys "
            "let the receiver drop repeats), 'at_most_once' (what a crash cuts off is never sent) or 'none'"
        )
    guarantee = Guarantee(value)
    if guarantee is Guarantee.NONE and committer is not None:
        raise InvalidPipeline(f"sink {name}: guarantee 'none' records nothing, so it takes no committer")
    if guarantee is not Guarantee.NONE and committer is None:
        raise InvalidPipeline(
            f"sink {name}: committer is missing: give a folder, or 'postgres:<connection id>', that remembers which "
            "epochs were sent"
        )
    return guarantee


def what_follows(guarantee: str) -> str:
    """Return what happens to an epoch that was sent in part, for messages."""
    if guarantee == Guarantee.AT_MOST_ONCE:
        return "what has not arrived is not sent, since the sink sends at most once"
    return "the epoch will be sent again"


#: Sends every record and returns once the target has confirmed all of them. With guarantee "none" it tries once and
#: ignores answers. Raises `SinkUnavailable`, `PublishBlocked`. A function that takes one record at a time may declare
#: `Iterator[Record]`.
Deliver: TypeAlias = Callable[[JsonRecords, Origin], None]


class OpenAppendOnlySink(WriteAheadSink):
    """An open sink with a committer: a folder, "postgres:<connection id>", or None for no record."""

    def __init__(self, sink: Sink, context: SinkContext, committer: str | None) -> None:
        super().__init__(sink)
        records = open_committer(sink.name, committer, context)
        self.committer = BegunCommitter(records) if self.guarantee is Guarantee.AT_MOST_ONCE else records

    @abstractmethod
    def check(self, batches: Batches, epoch: SinkEpoch) -> int:
        """Count the rows of one output. Called before the decision; raises `SinkRejected` for rows that can't be
        sent."""

    @abstractmethod
    def send(self, batches: Batches, epoch: SinkEpoch) -> None:
        """Send the rows of one output; return once the target has all of them. Called after the decision."""

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
                f"sink {self.name}: what was sent can't be taken back: set on_restate='send' in the sink, and the "
                "replacing epoch is sent after the replaced one, whose number each record names"
            )
        if self.guarantee is Guarantee.NONE:
            raise PreflightRefused(
                f"sink {self.name}: with guarantee='none' it isn't recorded which epochs were sent, so none can be "
                "replaced: set guarantee='at_least_once' with a committer"
            )

    def target_id(self) -> str:
        """Return the id of the committer's records: the target itself has none."""
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
    """Passes each row as a JSON record with a key to `deliver`; `release` closes what that function holds."""

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
        """Refuse rows that JSON or the target can't take."""
        origin, validator = self._origin(batches, epoch), self._import_validator()
        if validator is None:
            return check_records(batches, origin, self.sink.max_record_bytes)
        rows = 0
        for record in self._records(batches, origin):
            content = json.loads(record.line)
            del content[ENVELOPE]
            if (reason := validator(content)) is not None:
                raise SinkRejected(f"sink {self.name}: {self.sink.validator} refuses record {record.key}: {reason}")
            rows += 1
        return rows

    def send(self, batches: Batches, epoch: SinkEpoch) -> None:
        origin = self._origin(batches, epoch)
        self._deliver(self._records(batches, origin), origin)

    def _origin(self, batches: Batches, epoch: SinkEpoch) -> Origin:
        replaced = tuple(replaced.id for replaced in epoch.replaced)
        return Origin(self._context.deployment, self._context.pipeline, batches.output, epoch.id, replaced)

    def _records(self, batches: Batches, origin: Origin) -> JsonRecords:
        return JsonRecords(batches, origin, self.sink.max_record_bytes)

    def _import_validator(self) -> Validator | None:
        if self.sink.validator is None:
            return None
        try:
            return import_function(self.sink.validator)
        except InvalidPipeline as error:
            raise InvalidPipeline(f"sink {self.name}: validator {error}") from error


def reason_of(error: BaseException) -> str:
    """Return type and first line of an error."""
    return f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"
