"""A pipeline whose epochs go to receivers, moved by the real roles over a real ledger; no Spark, no Airflow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from lockstep.epoch import Interval, KeyedBy, Position, RunKey
from lockstep.features.assembly import runtime_for
from lockstep.ledger import Ledger, migrate
from lockstep.operations.verify import Verification, verify
from lockstep.pipeline import Pipeline
from lockstep.protocol.begin import begin
from lockstep.protocol.cleanup import cleanup
from lockstep.protocol.commit import commit
from lockstep.protocol.pack import Member, move_pack
from lockstep.protocol.prepare import prepare
from lockstep.protocol.publish import publish
from lockstep.protocol.recover import RecoveryReport, recover
from lockstep.protocol.runtime import Runtime
from lockstep.protocol.stage import stage
from lockstep.protocol.stage_job import Launch
from lockstep.sinks.base import Sink
from lockstep.sources import OpenSource, Source, SourceContext
from lockstep.wal.staging import Staging
from tests.crash.world import Numbers, OpenNumbers, interval_of, untouched, write_parquet


class Days(Source):
    """A day an epoch, one after the other, for a cursor pipeline."""

    identity = KeyedBy.CURSOR

    def open(self, context: SourceContext) -> OpenSource:
        return OpenDays()


class OpenDays(OpenNumbers):
    def latest(self, start: Position | None, interval: Interval | None) -> Position:
        return {"day": start["day"] + 1 if start else 0}


@dataclass
class Feed:
    """`run` names the DAG run; of an interval pipeline it is the day's number, too."""

    ledger_dsn: str
    folder: Path
    pipeline: Pipeline
    connections: dict[str, str]

    @classmethod
    def of(
        cls, ledger_dsn: str, folder: Path, sinks: Sequence[Sink], connections: dict[str, str], *, cursor: bool = False
    ) -> Feed:
        migrate(ledger_dsn)
        source = Days() if cursor else Numbers()
        pipeline = Pipeline("numbers", {"numbers": source}, untouched, sinks, max_in_flight=4)
        return cls(ledger_dsn, folder, pipeline, connections)

    @contextmanager
    def runtime(self) -> Iterator[Runtime]:
        with closing(Ledger(self.ledger_dsn)) as ledger:
            yield runtime_for(self.pipeline, ledger, Staging(str(self.folder / "staging")), self.connections)

    def decide(self, run: int, job: Launch = write_parquet) -> None:
        """Everything up to the decision."""
        key = RunKey("feed", str(run))
        with self.runtime() as runtime:
            begin(runtime, key, interval_of(run) if self.pipeline.identity is KeyedBy.INTERVAL else None)
            stage(runtime, key, job)
            for sink in self.pipeline.sinks:
                prepare(runtime, key, sink.name)
            commit(runtime, key)

    def publish(self, run: int, sink: str) -> None:
        with self.runtime() as runtime:
            publish(runtime, RunKey("feed", str(run)), sink)

    def finish(self, run: int) -> None:
        """Everything after the decision."""
        for sink in self.pipeline.sinks:
            self.publish(run, sink.name)
        with self.runtime() as runtime:
            cleanup(runtime, RunKey("feed", str(run)))

    def move(self, runs: Sequence[int], job: Launch = write_parquet) -> list[Member]:
        """All of them by one pack, the same whenever it is called."""
        cursor = self.pipeline.identity is KeyedBy.CURSOR
        members = [RunKey("feed", "pack").member(None if cursor else interval_of(run), run) for run in runs]
        with self.runtime() as runtime:
            return move_pack(runtime, members, job, jobs=2)

    def recover(self) -> RecoveryReport:
        with self.runtime() as runtime:
            return recover(runtime, timedelta(0))

    def state(self, epoch: int) -> str:
        with self.runtime() as runtime:
            return runtime.ledger.epoch("numbers", epoch).state.value

    def verify(self, epoch: int) -> dict[str, Verification]:
        with self.runtime() as runtime:
            return {one.sink: one for one in verify(runtime, runtime.ledger.epoch("numbers", epoch))}
