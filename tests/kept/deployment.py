"""A deployment of several pipelines: what makes the kept one, and what goes on with it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import psycopg2

from lockstep.epoch import Epoch, Interval, RunKey
from lockstep.features.assembly import runtime_for
from lockstep.ledger import Ledger
from lockstep.pipeline import Pipeline
from lockstep.protocol.begin import begin
from lockstep.protocol.cleanup import cleanup
from lockstep.protocol.commit import commit
from lockstep.protocol.prepare import prepare
from lockstep.protocol.publish import publish
from lockstep.protocol.runtime import Runtime, open_wal
from lockstep.protocol.stage import stage
from lockstep.protocol.stage_job import Launch
from lockstep.wal.staging import Staging

FIRST_DAY = datetime(2013, 1, 1, tzinfo=UTC)
_MOMENT = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d.*")
Row = dict[str, str | None]  #: a column's value as `text_of` tells it


@dataclass
class Deployment:
    """`home` holds staging, targets and what is read; `connections` leads to the rest."""

    home: Path
    ledger_dsn: str
    connections: dict[str, str]
    pipelines: Mapping[str, Pipeline]

    @property
    def staging(self) -> str:
        return str(self.home / "staging")

    @contextmanager
    def runtime(self, name: str) -> Iterator[Runtime]:
        with closing(Ledger(self.ledger_dsn, "kept")) as ledger:
            yield runtime_for(self.pipelines[name], ledger, Staging(self.staging), self.connections)

    def move(self, name: str, number: int, *tasks: str, job: Launch | None = None) -> Epoch:
        """Run these tasks of the pipeline's run `number`, which of an interval pipeline is the day's."""
        day = interval_of(number) if name == "orders" else None
        run = RunKey("kept", f"{name}-{number}", day)
        with self.runtime(name) as runtime:
            for task in tasks:
                role, _, sink = task.partition(".")
                match role:
                    case "begin":
                        begin(runtime, run, day)
                    case "stage":
                        assert job is not None
                        stage(runtime, run, job)
                    case "prepare":
                        for one in [sink] if sink else [sink.name for sink in self.pipelines[name].sinks]:
                            prepare(runtime, run, one)
                    case "commit":
                        commit(runtime, run)
                    case "publish":
                        for one in [sink] if sink else [sink.name for sink in self.pipelines[name].sinks]:
                            publish(runtime, run, one)
                    case "cleanup":
                        cleanup(runtime, run)
                    case _:
                        raise AssertionError(task)
            return runtime.epoch_of(runtime.attempt_of(run))

    def epochs(self, name: str) -> dict[int, Epoch]:
        """Every epoch of the pipeline, by number."""
        with self.runtime(name) as runtime:
            last = runtime.ledger.last_epoch(name)
            return {id: runtime.ledger.epoch(name, id) for id in range(1, last.id + 1)} if last else {}

    def sealed_rows(self, name: str, epoch: Epoch) -> dict[str, list[Row]]:
        """What the epoch's WAL holds, by output."""
        with self.runtime(name) as runtime:
            wal = open_wal(runtime.staging, epoch)
            return {
                one.output: [told(row) for batch in one for row in batch.to_pylist()]
                for one in wal.outputs(list(wal.manifest.outputs))
            }


def execute(dsn: str, statements: str) -> None:
    with closing(psycopg2.connect(dsn)) as connection, connection, connection.cursor() as cursor:
        cursor.execute(statements)


def interval_of(day: int) -> Interval:
    start = FIRST_DAY + timedelta(days=day)
    return Interval(start, start + timedelta(days=1))


def told(row: Mapping[str, object]) -> Row:
    """As JSON, databases and files tell it alike."""
    return {name: text_of(value) for name, value in row.items()}


def counted(rows: Iterable[Row]) -> Counter[str]:
    """A multiset that shows which rows are too few or too many."""
    return Counter(", ".join(f"{name}={row[name]}" for name in sorted(row)) for row in rows)


def text_of(value: object) -> str | None:
    match value:
        case None:
            return None
        case bool():
            return str(int(value))
        case datetime():
            return (value.astimezone(UTC) if value.tzinfo else value).replace(tzinfo=None).isoformat()
        case date():
            return value.isoformat()
        case str() if _MOMENT.fullmatch(value):
            return text_of(datetime.fromisoformat(value))
        case _:
            return str(value)
