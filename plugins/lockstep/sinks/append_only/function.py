"""`FunctionSink`: passes rows to a function of the user, the smallest sink."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import ClassVar, TypeAlias

import pyarrow as pa

from lockstep.definition.user_code import import_function, reference_to
from lockstep.epoch import Vote, require_name
from lockstep.errors import InvalidPipeline, LockstepError, SinkRejected, SinkUnavailable
from lockstep.observability.redaction import cause, describe_error
from lockstep.sinks.append_only.base import (
    OnRestate,
    OpenAppendOnlySink,
    require_guarantee,
    require_on_restate,
    what_follows,
)
from lockstep.sinks.base import Sink
from lockstep.sinks.committers import check_committer
from lockstep.sinks.values import Batches, Guarantee, SinkContext, SinkEpoch
from lockstep.sinks.write_ahead import NothingSent, Session

#: gets decided rows; if it raises, the entire epoch is sent again, unless at most once
Send: TypeAlias = Callable[[pa.RecordBatch, SinkEpoch], None]


@dataclass(frozen=True, kw_only=True)
class FunctionSink(Sink):
    """Gives the rows of one output to a function `send(batch: pa.RecordBatch, epoch: SinkEpoch) -> None`.

    `function`: the function, or "module:function"; define it at the top of a module that every process can import. It
    is called after the decision, once per batch in the order of the WAL, and not for an epoch without rows. It has to
    raise if rows are lost; then the entire epoch is sent again. `guarantee`: "none", or with a `committer` ("postgres:
    <connection id>" or a folder) that records the sent epochs: "at_least_once", rows have to be durable when the
    function returns; "at_most_once", no batch is passed twice, and batches after a crash or an error are dropped.
    `on_restate`: "send" also calls the function for an epoch that replaces others, named in `epoch.replaced`; "refuse"
    refuses it. Raises `InvalidPipeline`.
    """

    name: str = field(kw_only=False)
    output: str
    function: str | Send
    guarantee: str = Guarantee.NONE  # type: ignore[assignment]  # given as text, it is one
    committer: str | None = None
    on_restate: str = OnRestate.REFUSE

    operational: ClassVar[frozenset[str]] = frozenset({"on_restate"})

    def __post_init__(self) -> None:
        super().__post_init__()
        require_name("output", self.output)
        object.__setattr__(self, "guarantee", require_guarantee(self.name, self.guarantee, self.committer))
        object.__setattr__(self, "committer", check_committer(self.name, self.committer))
        object.__setattr__(self, "on_restate", require_on_restate(self.name, self.on_restate))
        if not isinstance(self.function, str):
            object.__setattr__(self, "function", self._reference(self.function))

    def _reference(self, function: Send) -> str:
        try:
            return reference_to(function)
        except InvalidPipeline as error:
            raise InvalidPipeline(f"sink {self.name}: {error}") from error

    def writes_to(self) -> frozenset[str]:
        return frozenset({f"function {self.function}"})

    def open(self, context: SinkContext) -> OpenFunctionSink:
        return OpenFunctionSink(self, context, self.committer)


class OpenFunctionSink(OpenAppendOnlySink):
    """Connects to the committer only; the function opens its own connections."""

    sink: FunctionSink

    def preflight(self, schemas: Mapping[str, pa.Schema] | None) -> None:
        self._import_function()
        super().preflight(schemas)

    def check(self, batches: Batches, epoch: SinkEpoch) -> int:
        rows: int = sum(batch.num_rows for batch in batches)
        if rows != batches.rows:
            raise SinkRejected(f"output {batches.output}: the WAL gave {rows} rows, {batches.rows} are sealed")
        return rows

    def _session(self, epoch: SinkEpoch, vote: Vote) -> AbstractContextManager[Session]:
        self._import_function()  # before the epoch counts as begun
        return super()._session(epoch, vote)

    def send(self, batches: Batches, epoch: SinkEpoch) -> None:
        function, sent = self._import_function(), 0
        for batch in batches:
            try:
                if batch.num_rows:
                    function(batch, epoch)
            except NothingSent as error:
                if sent:  # of this batch, and the ones before it have left
                    raise SinkUnavailable(str(error)) from error
                raise
            except LockstepError:
                raise
            except Exception as error:  # it is the user's
                raise SinkUnavailable(
                    f"sink {self.name}: {self.sink.function} failed with the rows from {sent} on: "
                    f"{describe_error(error)}; {what_follows(self.guarantee)}"
                ) from cause(error, quotes=True)
            sent += batch.num_rows

    def _import_function(self) -> Send:
        try:
            return import_function(str(self.sink.function))
        except InvalidPipeline as error:
            raise InvalidPipeline(f"sink {self.name}: function {error}") from error
