"""A sink whose library doesn't outlive a fork: each of its calls is made in a process of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from typing import TypeVar

import pyarrow as pa

from lockstep.epoch import Vote
from lockstep.sinks.base import Sink
from lockstep.sinks.open_sink import OpenSink
from lockstep.sinks.values import Batches, Marker, Publication, SinkEpoch, Txn
from lockstep.testing import _behaviour
from lockstep.testing._behaviour import CRASHES, Behaviour
from lockstep.testing._under_test import SinkUnderTest
from tests.apart import apart

T = TypeVar("T")
#: whose children are forked, where libraries have threads that don't live on
FORKING = (
    *CRASHES,
    _behaviour.processes_that_publish_at_once_show_the_rows_once,
    _behaviour.processes_that_replace_at_once_show_the_rows_once,
    _behaviour.a_reader_sees_the_old_rows_or_the_new_throughout,
)


class OpenApart(OpenSink):
    """`open_sink`: called in each of those processes."""

    def __init__(self, sink: Sink, open_sink: Callable[[], OpenSink]) -> None:
        super().__init__(sink)
        self._open_sink = open_sink

    def _apart(self, call: Callable[[OpenSink], T]) -> T:
        def run() -> T:
            with closing(self._open_sink()) as found:
                return call(found)

        return apart(run)

    def preflight(self, schemas: Mapping[str, pa.Schema] | None) -> None:
        self._apart(lambda sink: sink.preflight(schemas))

    def require_replaceable(self) -> None:
        self._apart(lambda sink: sink.require_replaceable())

    def disclaim(self) -> None:
        self._apart(lambda sink: sink.disclaim())

    def prepare(self, epoch: SinkEpoch, wal: Iterable[Batches]) -> Vote:
        return self._apart(lambda sink: sink.prepare(epoch, wal))

    def publish(self, epoch: SinkEpoch, vote: Vote, wal: Iterable[Batches]) -> Publication:
        return self._apart(lambda sink: sink.publish(epoch, vote, wal))

    def pending(self) -> list[Txn]:
        return self._apart(lambda sink: sink.pending())

    def abort(self, txn: Txn) -> None:
        self._apart(lambda sink: sink.abort(txn))

    def find_marker(self, epoch: int) -> Marker | None:
        return self._apart(lambda sink: sink.find_marker(epoch))

    def find_marker_of_span(self, span: str) -> Marker | None:
        return self._apart(lambda sink: sink.find_marker_of_span(span))

    def newest_markers(self) -> list[Marker]:
        return self._apart(lambda sink: sink.newest_markers())

    def markers(self) -> list[Marker]:
        return self._apart(lambda sink: list(sink.markers()))

    def target_id(self) -> str:
        return self._apart(lambda sink: sink.target_id())

    def read(self, epoch: int, output: str, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        yield from self._apart(lambda sink: list(sink.read(epoch, output, schema)))


def behave(behaviour: Behaviour, target: SinkUnderTest) -> None:
    """In one child, unless it forks by itself."""
    behaviour(target) if behaviour in FORKING else apart(lambda: behaviour(target))
