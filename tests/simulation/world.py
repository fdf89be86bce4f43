"""What simulated processes work with: a real ledger on a link that fails, real staging, sources, the Spark job."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Self, TypeVar

import psycopg2
import pyarrow as pa
import pyarrow.parquet as pq

from lockstep.epoch import Epoch, Interval, KeyedBy, Position, SourceRange
from lockstep.errors import LedgerUnavailable, StageFailed
from lockstep.features.assembly import runtime_for
from lockstep.ledger import Ledger
from lockstep.ledger._connection import LedgerConnection, Transaction
from lockstep.pipeline import Pipeline
from lockstep.protocol.runtime import Runtime
from lockstep.sinks.files import FileSink
from lockstep.sources import OpenSource, Source, SourceContext
from lockstep.states import Role
from lockstep.wal.manifest import SourceCount
from lockstep.wal.request import RESULT, StageRequest, StageResult
from lockstep.wal.staging import Staging
from tests.ledger.epochs import OF_EPOCHS
from tests.simulation.baton import Order, stand
from tests.simulation.sinks import OUTPUT, RedoSink, VotingSink

T = TypeVar("T")
PIPELINE = "simulated"
ROWS = 5
FIRST_DAY = datetime(2013, 1, 1, tzinfo=UTC)


def day(number: int) -> Interval:
    start = FIRST_DAY + timedelta(days=number)
    return Interval(start, start + timedelta(days=1))


class Days(Source):
    """ROWS positions a day, the same whenever they are asked for."""

    identity = KeyedBy.INTERVAL

    def open(self, context: SourceContext) -> OpenSource:
        return OpenDays()


class OpenDays(OpenSource):
    def latest(self, start: Position | None, interval: Interval | None) -> Position:
        assert interval is not None
        number = (interval.start - FIRST_DAY).days
        return [number * ROWS, (number + 1) * ROWS]

    def read(self, spark: Any, start: Position | None, end: Position) -> Any:
        raise AssertionError("the simulator stages without Spark")


class Counting(Source):
    """Goes on for ever: an epoch takes ROWS positions, or more when there is more by the time it is planned."""

    identity = KeyedBy.CURSOR

    def __init__(self) -> None:
        self.extra = 0  #: what has arrived since

    def open(self, context: SourceContext) -> OpenSource:
        return OpenCounting(self)


class OpenCounting(OpenDays):
    def __init__(self, source: Counting) -> None:
        self.source = source

    def latest(self, start: Position | None, interval: Interval | None) -> Position:
        first = start[1] if start else 0
        return [first, first + ROWS + self.source.extra]

    def join(self, ends: Sequence[Position]) -> Position:
        return [ends[0][0], ends[-1][1]]


def positions(found: SourceRange) -> range:
    """What an epoch of this range must show, once each."""
    return range(*found.end)


def spark_job(request_uri: str) -> None:
    """Do what the Spark job does. Raises `StageFailed` when its folder is swept meanwhile."""
    try:
        _stage(Path(request_uri.removeprefix("file://")).parent)
    except FileNotFoundError as error:
        raise StageFailed(f"the job's folder is gone: {error}") from error


def _stage(folder: Path) -> None:
    """Two files; every row tells which execution wrote it."""
    request = StageRequest.from_json(json.loads((folder / "_request.json").read_text()))
    wanted = list(positions(request.sources["source"]))
    (folder / OUTPUT).mkdir()
    for number, part in enumerate((wanted[::2], wanted[1::2])):
        stand("spark: write a file")
        table = pa.table({"position": pa.array(part, pa.int64()), "written_by": [request.token] * len(part)})
        pq.write_table(table, folder / OUTPUT / f"part-{number}.parquet")
    stand("spark: tell what was counted")
    result = StageResult({OUTPUT: len(wanted)}, {"source": SourceCount(len(wanted), 0)}, "test")
    (folder / RESULT).write_text(json.dumps(result.to_json()))


class SharedConnection(LedgerConnection):
    """One real connection for all processes of a simulation: only one at a time is in a transaction.

    `FAIL` loses the link before the transaction; `LOSE` in its commit, and the work is run again, as production does.
    """

    def run(self, role: Role, work: Callable[[Transaction], T], reason: str | None = None) -> T:
        order = stand(f"ledger: {_name_of(work)}", faulty=True)
        if order is Order.FAIL:
            raise LedgerUnavailable("the ledger does not answer")
        result = super().run(role, work, reason)
        return super().run(role, work, reason) if order is Order.LOSE else result


def _name_of(work: Callable[..., object]) -> str:
    return work.__qualname__.split(".")[1].removeprefix("_")


class SimulatedLedger(Ledger):
    """The production ledger on a shared connection."""

    def __init__(self, connection: LedgerConnection) -> None:
        self._connection = connection
        self._deployment: str | None = None

    def clone(self) -> Self:
        return type(self)(self._connection)

    def close(self) -> None:
        """Others go on."""


class WatchedStaging(Staging):
    """Tells of every folder before it is deleted."""

    def __init__(self, uri: str, on_discard: Callable[[str], None]) -> None:
        super().__init__(uri)
        self._on_discard = on_discard

    def discard(self, folder: str, **points: Any) -> None:
        self._on_discard(folder)
        super().discard(folder, **points)


@dataclass
class World:
    """One simulation's ledger, staging and pipeline. `looking` is for checks: it never stands still."""

    dsn: str
    folder: Path
    pipeline: Pipeline
    shared: SharedConnection
    looking: Ledger
    on_discard: Callable[[str], None] = lambda folder: None

    def runtime(self) -> Runtime:
        """As a fresh process makes it."""
        staging = WatchedStaging(str(self.folder / "staging"), self.on_discard)
        return runtime_for(self.pipeline, SimulatedLedger(self.shared), staging, {})

    @property
    def source(self) -> Source:
        return self.pipeline.sources["source"]

    @property
    def sink_names(self) -> list[str]:
        return [sink.name for sink in self.pipeline.sinks]

    def epochs(self) -> list[Epoch]:
        if not self.sql("SELECT 1 FROM lockstep.pipeline"):
            return []
        last = self.looking.last_epoch(PIPELINE)
        return [self.looking.epoch(PIPELINE, number + 1) for number in range(last.id)] if last else []

    def expire_leases(self) -> None:
        """A clock that jumps, or 30 s: no safety rests on it."""
        self.sql("UPDATE lockstep.epoch SET lease_until = now() WHERE lease_until IS NOT NULL")
        self.sql("UPDATE lockstep.epoch SET attempted_at = now() - interval '1 second'")

    def sql(self, statement: str) -> list[Any]:
        return _sql(self.dsn, statement)

    def close(self) -> None:
        self.shared.close()
        self.looking.close()


_connections: dict[str, Any] = {}


def _sql(dsn: str, *statements: str) -> list[Any]:
    if dsn not in _connections:
        _connections[dsn] = psycopg2.connect(dsn)
    connection = _connections[dsn]
    with connection, connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)
        return cursor.fetchall() if cursor.description else []


def make_world(
    dsn: str, folder: Path, identity: KeyedBy, *, files: bool, keep_wal: int | None = None, merges: bool = False
) -> World:
    """An empty ledger whose tokens start at 1: the same seed gives the same names."""
    _wipe(dsn)
    sinks: list[Any] = [VotingSink("voting"), RedoSink("redoing")]
    if files:
        sinks.append(FileSink("files", output=OUTPUT, path=str(folder / "out")))
    source = Days() if identity is KeyedBy.INTERVAL else Counting()
    pipeline = Pipeline(
        PIPELINE,
        {"source": source},
        _untouched,
        sinks,
        version="simulated",
        keep_wal=keep_wal,
        on_stuck="merge" if merges else "resume",
    )
    return World(dsn, folder, pipeline, SharedConnection(dsn, "simulation"), Ledger(dsn, "checks"))


def _untouched(inputs: Mapping[str, Any]) -> Mapping[str, Any]:
    return inputs


def _wipe(dsn: str) -> None:
    _sql(
        dsn,
        "SET session_replication_role = replica",  # the ledger's triggers keep what is recorded
        *(f"DELETE FROM lockstep.{table}" for table in (*OF_EPOCHS, "pipeline")),
        "ALTER SEQUENCE lockstep.token RESTART",
        "SET session_replication_role = DEFAULT",
    )
