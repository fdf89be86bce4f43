"""Delta tables on an S3 server as tests look at them, in a process of their own (`tests.clean_process`).

deltalake and obstore don't live on in children of a process that has used them: each call is made in a child.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pyarrow as pa

from lockstep.connections.object_store.store import ObjectStore
from lockstep.epoch import Vote
from lockstep.sinks.base import Sink
from lockstep.sinks.delta import DeltaSink
from lockstep.sinks.open_sink import OpenSink
from lockstep.sinks.values import Batches, Publication, SinkContext, SinkEpoch
from lockstep.testing._behaviour import behaviours
from lockstep.testing._sealed_rows import OUTPUT, SCHEMA, SealedRows, staged_below_table
from lockstep.testing._under_test import epoch, opened, prepare, publish
from lockstep.wal.table_staging import TableStaging
from tests.apart import apart
from tests.sinks import open_apart
from tests.sinks.delta_target import DeltaSinkApart, DeltaUnderTest, Log
from tests.sinks.open_apart import OpenApart


@dataclass(frozen=True, kw_only=True)
class DeltaSinkOnS3(DeltaSinkApart):
    def open(self, context: SinkContext) -> OpenSink:
        return _OpenOnS3(self, lambda: DeltaSink.open(self, context))


class _OpenOnS3(OpenApart):
    """Whoever is asked for the files opens them, so that no client is inherited."""

    def prepare(self, epoch: SinkEpoch, wal: Iterable[Batches]) -> Vote:
        return self._apart(lambda sink: sink.prepare(epoch, _opened(wal)))

    def publish(self, epoch: SinkEpoch, vote: Vote, wal: Iterable[Batches]) -> Publication:
        return self._apart(lambda sink: sink.publish(epoch, vote, _opened(wal)))


@dataclass(frozen=True)
class _Staged:
    rows: SealedRows
    home: TableStaging
    at: SinkEpoch
    deployment: str
    pipeline: str

    def open(self) -> Batches:
        return staged_below_table(self.rows, self.home, self.at, self.deployment, self.pipeline)


def _opened(wal: Iterable[Batches]) -> list[Batches]:
    return [cast(_Staged, one).open() if isinstance(one, _Staged) else one for one in wal]


class DeltaOnS3UnderTest(DeltaUnderTest):
    """`uri`: the table's, with options by which the sink reaches it; tests read it by `looked_at`, past any proxy."""

    def __init__(self, uri: str, **arguments: Any) -> None:
        self.uri, self.arguments = uri, {"create": True, **arguments}

    def sink(self, *, shared: bool = False) -> DeltaSinkOnS3:
        return self._sink(self.uri)

    def _sink(self, uri: str) -> DeltaSinkOnS3:
        return DeltaSinkOnS3("delta", output=OUTPUT, path=uri, **self.arguments)

    def elsewhere(self) -> tuple[Sink, SinkContext]:
        table, _, options = self.uri.partition("?")
        sink = self._sink(f"{table}-elsewhere?{options}" if options else f"{table}-elsewhere")
        with sink.opened(self.context()) as live:
            live.preflight({OUTPUT: SCHEMA})
        return sink, self.context()

    def staged(self, at: SinkEpoch, wal: Sequence[SealedRows]) -> Sequence[Batches]:
        home, context = self.sink().home(self.context()), self.context()
        return [cast(Batches, _Staged(one, home, at, context.deployment, context.pipeline)) for one in wal]

    def visible(self) -> pa.Table:
        return looked_at(self.uri, lambda log: log.rows())


def looked_at(uri: str, look: Callable[[Log], Any]) -> Any:
    """What `look` makes of a copy of the table."""

    def run() -> Any:
        store = ObjectStore.at(uri.partition("?")[0])
        with tempfile.TemporaryDirectory() as folder:
            for found in store.find_below(""):
                path = Path(folder, found.path)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(store.read(found.path))
            return look(Log(Path(folder)))

    return apart(run)


def behave(name: str, uri: str) -> None:
    [behaviour] = [one for one in behaviours(DeltaOnS3UnderTest) if one.__name__ == name]
    open_apart.behave(behaviour, DeltaOnS3UnderTest(uri))


def published(target: DeltaOnS3UnderTest, number: int, wal: Sequence[SealedRows]) -> Publication:
    at = epoch(number, token=10 * number, manifest=str(number))
    return publish(target, at, prepare(target, at, wal), wal)


def preflight(uri: str) -> None:
    target = DeltaOnS3UnderTest(uri)
    with opened(target) as sink:
        sink.preflight({OUTPUT: SCHEMA})
