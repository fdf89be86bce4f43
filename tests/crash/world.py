"""A small world for crash tests: a ledger on one server, a warehouse on another, staging and files in one folder.

The staging job is a plain pyarrow writer that leaves what Spark leaves; the real Spark has its own kill tests in
tests/spark and tests/e2e. Everything after it is the production code.
"""

from __future__ import annotations

import json
import os
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

import psycopg2
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lockstep.audits.audit import Rule, rules_by_output
from lockstep.connections.object_store.address import from_hadoop
from lockstep.connections.object_store.store import ObjectStore
from lockstep.epoch import Epoch, Interval, KeyedBy, Position, RunKey
from lockstep.errors import StageFailed
from lockstep.features.assembly import runtime_for
from lockstep.ledger import Ledger, migrate
from lockstep.pipeline import Pipeline
from lockstep.protocol.abort import abort
from lockstep.protocol.audit import audit
from lockstep.protocol.begin import begin
from lockstep.protocol.cleanup import cleanup
from lockstep.protocol.commit import commit
from lockstep.protocol.prepare import prepare
from lockstep.protocol.publish import publish
from lockstep.protocol.recover import RecoveryReport, recover
from lockstep.protocol.restage import restage
from lockstep.protocol.runtime import Runtime
from lockstep.protocol.stage import stage
from lockstep.protocol.stage_job import Launch
from lockstep.sinks.files import FileSink, files
from lockstep.sinks.postgres import PostgresSink
from lockstep.sinks.tables.sink import ProtocolName
from lockstep.sources import OpenSource, Source, SourceContext
from lockstep.wal.manifest import SourceCount
from lockstep.wal.request import RESULT, QuarantineCount, StageRequest, StageResult
from lockstep.wal.sealing import quarantine_of
from lockstep.wal.staging import Staging

ROWS = 20
AUDITS = "lockstep_audits"  #: the column that rows in quarantine have beside an output's
FIRST_DAY = datetime(2013, 1, 1, tzinfo=UTC)
Row = tuple[int, int, str]
Rows = Counter[Row]


class Numbers(Source):
    """ROWS rows a day, the same whenever they are read."""

    identity = KeyedBy.INTERVAL

    def open(self, context: SourceContext) -> OpenSource:
        return OpenNumbers()


class OpenNumbers(OpenSource):
    def latest(self, start: Position | None, interval: Interval | None) -> Position:
        assert interval is not None
        return {"day": (interval.start - FIRST_DAY).days}

    def read(self, spark: Any, start: Position | None, end: Position) -> Any:
        raise AssertionError("the crash suite stages without Spark")


class Tens(Source):
    """A cursor source: ten positions an epoch."""

    identity = KeyedBy.CURSOR

    def open(self, context: SourceContext) -> OpenSource:
        return OpenTens()


class OpenTens(OpenSource):
    def latest(self, start: Position | None, interval: Interval | None) -> Position:
        return (start or 0) + 10

    def read(self, spark: Any, start: Position | None, end: Position) -> Any:
        raise AssertionError("nothing is read here")


def rows_of_day(day: int) -> list[tuple[int, int, str]]:
    """The rows that day's epoch must show, once each; two are equal on purpose."""
    rows = [(day, number, f"row {number} of day {day}") for number in range(ROWS - 1)]
    return [*rows, rows[0]]


def rows_in(paths: Iterable[Path]) -> Rows:
    rows: Rows = Counter()
    for path in paths:
        table = pq.ParquetFile(path).read()
        rows.update(zip(*(table[c].to_pylist() for c in ("day", "number", "label")), strict=True))
    return rows


def _by_day(rows: Rows) -> dict[int, Rows]:
    found: dict[int, Rows] = defaultdict(Counter)
    for row, times in rows.items():
        found[row[0]][row] = times
    return found


def untouched(inputs: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"numbers": inputs["numbers"]}


def write_parquet(request_uri: str) -> None:
    """Do what the Spark job does. Raises `StageFailed` when its folder is swept meanwhile."""
    with failing_as_spark_does():
        _write_parquet(Path(request_uri.removeprefix("file://")).parent)


@contextmanager
def failing_as_spark_does() -> Iterator[None]:
    """A folder that is swept meanwhile is a job that failed."""
    try:
        yield
    except FileNotFoundError as error:
        raise StageFailed(f"the job's folder is gone: {error}") from error


def write_backwards(request_uri: str) -> None:
    """The same rows in another order."""
    with failing_as_spark_does():
        _write_parquet(Path(request_uri.removeprefix("file://")).parent, lambda rows: rows[::-1])


def write_others(request_uri: str) -> None:
    """As many rows, one of them another one."""
    with failing_as_spark_does():
        _write_parquet(Path(request_uri.removeprefix("file://")).parent, lambda rows: [(*rows[0][:2], "!"), *rows[1:]])


def _write_parquet(folder: Path, changed: Callable[[list[Row]], list[Row]] = list) -> None:
    """Each output's files and the result."""
    request = StageRequest.from_json(json.loads((folder / "_request.json").read_text()))
    day = request.sources["numbers"].end["day"]
    columns = list(zip(*changed(rows_of_day(day)), strict=True))
    table = pa.table(
        {"day": pa.array(columns[0], pa.int64()), "number": pa.array(columns[1], pa.int32()), "label": columns[2]}
    )
    away = {output: _split(rules, table) for output, rules in rules_by_output(request.quarantine).items()}
    for output in request.outputs:
        if output in away:
            _write_halves(str(folder / output), away[output][0], parents=False)
            if len(away[output][1]):
                _write_halves(str(folder / quarantine_of(output)), away[output][1], parents=True)
        elif home := request.homes.get(output):
            rows = table.append_column(home.home.epoch_column, pa.array([request.epoch] * ROWS, pa.int64()))
            _write_halves(f"{home.folder}/{output}", rows, parents=True)
        else:
            _write_halves(str(folder / output), table, parents=False)
    rows = {output: len(away[output][0]) if output in away else ROWS for output in request.outputs}
    counts = {
        output: QuarantineCount(len(gone), dict.fromkeys(rules_by_output(request.quarantine)[output], len(gone)))
        for output, (_, gone) in away.items()
    }
    result = StageResult(rows, {"numbers": SourceCount(ROWS, 0)}, "test", quarantined=counts)
    (folder / RESULT).write_text(json.dumps(result.to_json()))


def _split(rules: Mapping[str, Rule], table: pa.Table) -> tuple[pa.Table, pa.Table]:
    """What stays and what goes by one `in_range`, or by a condition that no row meets."""
    [(name, rule)] = rules.items()
    goes = pc.greater(table[rule.column], rule.at_most) if rule.column else pa.array([False] * len(table))
    away = table.filter(goes)
    return table.filter(pc.invert(goes)), away.append_column(AUDITS, pa.array([name] * len(away)))


def _write_halves(folder: str, rows: pa.Table, parents: bool) -> None:
    half = len(rows) // 2
    halves = {"part-00000.parquet": rows.slice(0, half), "part-00001.parquet": rows.slice(half)}
    if folder.startswith("s3a://"):
        store = ObjectStore.at(from_hadoop(folder, ""))
        for name, half in halves.items():
            pq.write_table(half, buffer := pa.BufferOutputStream())
            store.replace(name, buffer.getvalue().to_pybytes())
        return
    place = Path(folder.removeprefix("file://"))
    place.mkdir(parents=parents)
    for name, half in halves.items():
        pq.write_table(half, place / name)


def perform(runtime: Runtime, task: str, run: RunKey, job: Launch, interval: Interval | None = None) -> None:
    """A task by its name in a DAG: its role, and its sink after a dot."""
    role, _, sink = task.partition(".")
    match role:
        case "begin":
            begin(runtime, run, interval)
        case "stage":
            stage(runtime, run, job)
        case "audit":
            audit(runtime, run)
        case "prepare":
            prepare(runtime, run, sink)
        case "commit":
            commit(runtime, run)
        case "publish":
            publish(runtime, run, sink)
        case "cleanup":
            cleanup(runtime, run)
        case "abort":
            abort(runtime, run, "a test")
        case "recover":
            recover(runtime, recovery_grace=timedelta(0))


@cache
def _ledger(dsn: str, process: int) -> Ledger:
    return Ledger(dsn, "checks")


@dataclass(frozen=True)
class World:
    """Picklable by fork: every process makes its own connections."""

    ledger_dsn: str
    warehouse_dsn: str
    folder: Path
    pipeline: Pipeline
    staging_folder: Path = Path()
    days: Iterator[int] = field(default_factory=count)  #: each scenario takes an interval of its own

    def runtime(self) -> Runtime:
        ledger = Ledger(self.ledger_dsn)
        return runtime_for(self.pipeline, ledger, Staging(str(self.staging_folder)), {"warehouse": self.warehouse_dsn})

    @property
    def _looking(self) -> Ledger:
        """For checks, which are many: one connection a process."""
        return _ledger(self.ledger_dsn, os.getpid())

    # --- what Airflow does ---

    def tasks(self) -> tuple[str, ...]:
        """The DAG's tasks in order."""
        sinks = [sink.name for sink in self.pipeline.sinks]
        return (
            "begin",
            "stage",
            *(["audit"] if self.pipeline.audits else []),
            *(f"prepare.{s}" for s in sinks),
            "commit",
            *(f"publish.{s}" for s in sinks),
            "cleanup",
        )

    @property
    def protocol(self) -> str:
        return str(self.pipeline.sinks[0].arguments()["protocol"])

    def launch(self, request_uri: str) -> None:
        """The job that a stage task starts, unless a test says another."""
        write_parquet(request_uri)

    def run_task(self, task: str, run: RunKey, day: int, job: Launch | None = None) -> None:
        """One task as Airflow runs it: in a fresh runtime, asking the ledger for its attempt."""
        runtime = self.runtime()
        if task == "restage":
            restage(runtime, self.epoch_of(day).id, job or self.launch, "a test")
        else:
            perform(runtime, task, run, job or self.launch, self.interval_of_run(day))
        runtime.ledger.close()

    def interval_of_run(self, day: int) -> Interval | None:
        return interval_of(day)

    def run(self, run: RunKey, day: int, start: str = "begin", job: Launch | None = None) -> None:
        """Every task of one DAG run from `start` on."""
        tasks = self.tasks()
        for task in tasks[tasks.index(start) :]:
            self.run_task(task, run, day, job)

    def recover(self) -> RecoveryReport:
        """One round that regards every unleased attempt as dead."""
        return recover(self.runtime(), recovery_grace=timedelta(0))

    def expire_leases(self) -> None:
        """What waiting for 30 s does; no safety rests on it."""
        self.execute(self.ledger_dsn, "UPDATE lockstep.epoch SET lease_until = now() WHERE lease_until IS NOT NULL")
        self.execute(self.ledger_dsn, "UPDATE lockstep.epoch SET attempted_at = now() - interval '1 second'")

    def fall_silent(self) -> None:
        """What a dead run looks like once people have waited for it."""
        self.execute(
            self.ledger_dsn,
            "UPDATE lockstep.epoch SET lease_until = now() - interval '1 hour' WHERE lease_until IS NOT NULL",
        )

    def run_until(self, run: RunKey, day: int, last: str, job: Launch | None = None) -> None:
        """The run's tasks up to and with `last`."""
        tasks = self.tasks()
        for task in tasks[: tasks.index(last) + 1]:
            self.run_task(task, run, day, job)

    def epoch_of(self, day: int) -> Epoch:
        found = self._looking.epoch_of_interval(self.pipeline.name, interval_of(day))
        assert found is not None
        return found

    # --- what a sweep strikes: see tests.crash.test_kill_and_zombie ---

    def struck_day(self) -> int:
        """A day of its own, as it is before the run that is struck."""
        return next(self.days)

    def run_of(self, day: int, name: str) -> RunKey:
        return RunKey("crash", f"{name} {day}")

    def require_undecided(self, day: int) -> None:
        self.require_nothing_shown(day)

    def is_moved(self, day: int) -> bool:
        return self.state_of(day) == "cleaned"

    def expected(self, day: int) -> Rows:
        """What every sink must show in the end."""
        return Counter(rows_of_day(day))

    # --- what must be true afterwards ---

    def shown_in_warehouse(self, day: int) -> Rows:
        rows = self.execute(self.warehouse_dsn, "SELECT day, number, label FROM public.numbers WHERE day = %s", (day,))
        return Counter(rows)

    def shown_in_files(self, day: int) -> Rows:
        """What the markers list."""
        return self._rows_of(map(Path, files(str(self.folder / "out"))), day)

    def bare_files(self, day: int) -> Rows:
        """What a reader sees who lists the folder and knows nothing of markers."""
        return self._rows_of((self.folder / "out").glob("*.parquet"), day)

    def _rows_of(self, paths: Iterable[Path], day: int) -> Rows:
        """The rows of the day's epoch; a file's name says whose it is, and its rows have to agree."""
        epoch = self._looking.epoch_of_interval(self.pipeline.name, interval_of(day))
        return rows_in(path for path in paths if epoch is not None and f"epoch={epoch.id}-" in path.name)

    def shown(self) -> dict[str, dict[int, Rows]]:
        """All that the warehouse, the markers and a listing of the folder show: place → day → rows."""
        out = self.folder / "out"
        places = {
            "warehouse": Counter(self.execute(self.warehouse_dsn, "SELECT day, number, label FROM public.numbers")),
            "files": rows_in(map(Path, files(str(out)))),
            "bare files": rows_in(out.glob("*.parquet")),
        }
        return {place: _by_day(rows) for place, rows in places.items()}

    def prepared(self) -> list[str]:
        return [
            gid
            for (gid,) in self.execute(
                self.warehouse_dsn, "SELECT gid FROM pg_prepared_xacts WHERE database = current_database()"
            )
        ]

    def roll_back(self, gid: str) -> None:
        """By hand."""
        connection = psycopg2.connect(self.warehouse_dsn)
        connection.autocommit = True
        with closing(connection), connection.cursor() as cursor:
            cursor.execute("ROLLBACK PREPARED %s", (gid,))

    def prepare_foreign(self, gid: str) -> None:
        """What another program prepares, or an old process that goes on."""
        with closing(psycopg2.connect(self.warehouse_dsn)) as connection, connection.cursor() as cursor:
            cursor.execute("INSERT INTO public.numbers VALUES (0, 0, 'a zombie', 0)")
            cursor.execute("PREPARE TRANSACTION %s", (gid,))

    def left_in_staging(self) -> list[str]:
        root = self.staging_folder
        return sorted(str(p.relative_to(root)) for p in root.glob("*/*/epoch=*/*"))

    def left_in_sink(self) -> list[str]:
        state = self.folder / "out" / ".lockstep"
        return sorted(p.name for p in state.iterdir() if p.is_dir()) if state.is_dir() else []

    def require_exactly_once(self, day: int) -> None:
        for place in (self.shown_in_warehouse, self.shown_in_files, self.bare_files):
            assert place(day) == self.expected(day), place.__name__

    def require_nothing_shown(self, day: int) -> None:
        assert not self.shown_in_warehouse(day)
        assert not self.shown_in_files(day)

    def require_tidy(self) -> None:
        assert self.prepared() == []
        assert self.left_in_staging() == []
        assert self.left_in_sink() == []

    def state_of(self, day: int) -> str | None:
        found = self._looking.epoch_of_interval(self.pipeline.name, interval_of(day))
        return found.state.value if found else None

    def publications(self, day: int) -> dict[str, str | None]:
        """How each sink came to show the day's epoch."""
        found = self._looking.participants(self.pipeline.name, self.epoch_of(day).id)
        return {name: participant.publication for name, participant in found.items()}

    @staticmethod
    def execute(dsn: str, sql: str, parameters: tuple[Any, ...] | dict[str, Any] = ()) -> list[Any]:
        connection = psycopg2.connect(dsn)
        try:
            with connection, connection.cursor() as cursor:
                cursor.execute(sql, parameters)
                return cursor.fetchall() if cursor.description else []
        finally:
            connection.close()


def flip_a_bit(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(data[:20] + bytes([data[20] ^ 1]) + data[21:])


def interval_of(day: int) -> Interval:
    start = FIRST_DAY + timedelta(days=day)
    return Interval(start, start + timedelta(days=1))


def make_world(ledger_dsn: str, warehouse_dsn: str, folder: Path, protocol: ProtocolName) -> World:
    """A world whose pipeline writes to Postgres by `protocol` and to files, decided together."""
    migrate(ledger_dsn)
    World.execute(
        warehouse_dsn,
        "CREATE TABLE IF NOT EXISTS public.numbers (day bigint, number int, label text, lockstep_epoch bigint)",
    )
    pipeline = Pipeline(
        name="numbers",
        sources={"numbers": Numbers()},
        transform=untouched,
        sinks=[
            PostgresSink(
                "warehouse",
                tables={"numbers": "public.numbers"},
                connection="warehouse",
                protocol=protocol,
                lock_timeout=0.3,
            ),
            FileSink("files", output="numbers", path=str(folder / "out"), format="parquet"),
        ],
    )
    return World(ledger_dsn, warehouse_dsn, folder, pipeline, folder / "staging")
