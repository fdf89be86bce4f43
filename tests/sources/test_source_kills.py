"""Writers commit out of order while epochs are planned and staged by processes that are killed: at the end every
committed row stands in the sink once.

Staging is done here by pyarrow instead of Spark, from what each of Spark's tasks would read; the rest is the production
code. Sources are read by a real Spark in tests/spark.
"""

from __future__ import annotations

import json
import os
import random
import signal
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, Literal

import psycopg2
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lockstep import Pipeline, files
from lockstep.crash import observe
from lockstep.epoch import RunKey
from lockstep.features.assembly import runtime_for
from lockstep.ledger import Ledger, migrate
from lockstep.protocol.begin import begin
from lockstep.protocol.cleanup import cleanup
from lockstep.protocol.commit import commit
from lockstep.protocol.prepare import prepare
from lockstep.protocol.publish import publish
from lockstep.protocol.recover import finish_decided
from lockstep.protocol.runtime import Runtime
from lockstep.protocol.stage import stage
from lockstep.sinks import FileSink
from lockstep.sources import (
    PostgresTableSource,
    SourceContext,
)
from lockstep.sources.tables.source import OpenTableSource
from lockstep.wal.manifest import SourceCount
from lockstep.wal.request import RESULT, StageRequest, StageResult
from lockstep.wal.staging import Staging
from stack.postgres import PostgresServer
from tests.sources.reading import rows_of

WRITERS = 3
TRANSACTIONS = 15  #: of each writer
LAG = timedelta(seconds=2.5)
LONGEST = 0.5  #: seconds that a transaction may take; one that took longer is rolled back
SEED = int(os.environ.get("LOCKSTEP_SEED", "20130101"))
numbers = count()


@dataclass(frozen=True)
class World:
    """What every process knows: where things are."""

    pipeline: Pipeline
    ledger: str
    folder: Path
    connections: dict[str, str]

    def runtime(self) -> Runtime:
        return runtime_for(self.pipeline, Ledger(self.ledger), Staging(str(self.folder / "staging")), self.connections)

    def epoch(self, run: RunKey) -> int:
        """Everything that a DAG run does; returns how many rows it moved."""
        with closing((runtime := self.runtime()).ledger):
            finish_decided(runtime)
            begin(runtime, run)
            stage(runtime, run, self.write_parquet)
            prepare(runtime, run, "files")
            commit(runtime, run)
            publish(runtime, run, "files")
            return int(cleanup(runtime, run).summary["outputs"]["rows"]["rows"])

    def write_parquet(self, request_uri: str) -> None:
        """What the Spark job does."""
        folder = Path(request_uri.removeprefix("file://")).parent
        request = StageRequest.from_json(json.loads((folder / "_request.json").read_text()))
        context = SourceContext.for_reading(self.pipeline.name, "rows", self.connections)
        source = self.pipeline.sources["rows"].open(context)
        assert isinstance(source, OpenTableSource)
        rows = [row["name"] for row in rows_of(source, request.sources["rows"].end, parts=2)]
        (folder / "rows").mkdir()
        table = pa.table({"name": pa.array(rows, pa.string())})
        pq.write_table(table, folder / "rows" / "part-00000.parquet")
        result = StageResult({"rows": len(rows)}, {"rows": SourceCount(len(rows))}, "test")
        (folder / RESULT).write_text(json.dumps(result.to_json()))

    def expire_leases(self) -> None:
        """What waiting for 30 s does; no safety rests on it."""
        execute(self.ledger, "UPDATE lockstep.epoch SET lease_until = now() WHERE lease_until IS NOT NULL")

    def shown(self) -> Counter[str]:
        found = files(str(self.folder / "out"))
        return Counter(name for path in found for name in pq.ParquetFile(path).read()["name"].to_pylist())


def execute(dsn: str, statement: str) -> list[Any]:
    with closing(psycopg2.connect(dsn)) as connection, connection, connection.cursor() as cursor:
        cursor.execute(statement)
        return cursor.fetchall() if cursor.description else []


# --- processes -------------------------------------------------------------------------------------------------------


def forked(work: Callable[[], object], log: Path) -> int:
    """Run `work` in a child; returns its process id."""
    if (pid := os.fork()) == 0:
        status = 1
        try:
            signal.signal(signal.SIGALRM, signal.SIG_DFL)  # pytest's own would only raise
            work()
            status = 0
        except BaseException:
            log.write_text(traceback.format_exc())
        finally:
            os._exit(status)
    return pid


def write(dsn: str, writer: int) -> None:
    """Transactions of one to four rows: many overlap, and end in another order than they began; a sixth roll back."""
    chance = random.Random(SEED + writer)
    with closing(psycopg2.connect(dsn)) as connection:
        for transaction in range(TRANSACTIONS):
            started = time.monotonic()
            with connection.cursor() as cursor:
                for row in range(chance.randint(1, 4)):
                    cursor.execute("INSERT INTO events (name) VALUES (%s)", (f"{writer}-{transaction}-{row}",))
                    time.sleep(chance.random() * 0.02)  # others commit meanwhile
                if chance.random() < 0.3:
                    time.sleep(chance.random() * 0.4)  # and whole epochs are planned and staged
            late = time.monotonic() - started > LONGEST
            (connection.rollback if late or chance.random() < 0.15 else connection.commit)()


def run_until_struck(world: World, chance: random.Random) -> None:
    """Move epochs until the process dies, by SIGKILL at a crash point or by an alarm between any two instructions."""
    os.environ["LOCKSTEP_TESTING"] = "1"
    if chance.random() < 0.7:
        left = count(chance.randint(1, 160), -1)
        observe(lambda point: os.kill(os.getpid(), signal.SIGKILL) if next(left) == 0 else None)
    else:
        signal.setitimer(signal.ITIMER_REAL, 0.05 + chance.random() * 0.8)
    for turn in range(20):
        world.epoch(RunKey("kills", f"{os.getpid()}-{turn}"))


@contextmanager
def writing(dsn: str, folder: Path) -> Iterator[Callable[[], bool]]:
    """Writers at work; what it gives tells whether one still is."""
    pids = {forked(partial(write, dsn, n), folder / f"writer-{n}.log") for n in range(WRITERS)}

    def alive() -> bool:
        for pid in list(pids):
            done, status = os.waitpid(pid, os.WNOHANG)
            if done:
                assert status == 0, "a writer failed"
                pids.discard(pid)
        return bool(pids)

    try:
        yield alive
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


def sacrifice(world: World, while_: Callable[[], bool], least: int) -> int:
    """Kill one process after the other, `least` at the least; returns how many died."""
    chance, died = random.Random(SEED), 0
    for victim in count():
        if died >= least and not while_():
            return died
        assert victim < 200
        log = world.folder / f"victim-{victim}.log"
        _, status = os.waitpid(forked(partial(run_until_struck, world, random.Random(chance.random())), log), 0)
        died += os.WIFSIGNALED(status)
        assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0, log.read_text()
        world.expire_leases()
    raise AssertionError


def settle_down(world: World, expected: Callable[[], Counter[str]]) -> None:
    """Run epochs that nobody kills until all has been moved, and one more."""
    deadline = time.monotonic() + 60
    runs = (RunKey("kills", f"last-{number}") for number in count())
    while world.shown() != expected() and time.monotonic() < deadline:
        if world.epoch(next(runs)) == 0:
            time.sleep(0.1)  # rows younger than the lag
    world.epoch(next(runs))
    shown, wanted = world.shown(), expected()
    assert shown - wanted == Counter(), "rows twice, or that were never committed"
    assert wanted - shown == Counter(), "rows lost"


POSTGRES = """
    CREATE TABLE events (id bigserial PRIMARY KEY, name text NOT NULL,
                         at timestamptz NOT NULL DEFAULT clock_timestamp(),
                         xid xid8 NOT NULL DEFAULT pg_current_xact_id());
    CREATE INDEX ON events (xid); CREATE INDEX ON events (at)
"""


@pytest.mark.fault("A15", "A28")
@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("arguments", "on_stuck"),
    [
        pytest.param({"order_by": "xid", "max_rows_per_epoch": 25}, "resume", id="commit order"),
        pytest.param({"order_by": "xid", "max_rows_per_epoch": 25}, "merge", id="commit order, merged"),
        pytest.param({"order_by": "id", "settle": LAG, "settled_by": "at"}, "resume", id="lag"),
    ],
)
def test_postgres_rows_arrive_once(
    arguments: dict[str, Any], on_stuck: Literal["resume", "merge"], ledger_server: PostgresServer, memory: Path
) -> None:
    dsn, ledger = (ledger_server.create_database(f"kills_{kind}_{next(numbers)}") for kind in ("shop", "ledger"))
    execute(dsn, POSTGRES)
    migrate(ledger)
    source = PostgresTableSource("public.events", connection="shop", columns=("name",), **arguments)
    sink = FileSink("files", output="rows", path=str(memory / "out"), format="parquet")
    pipeline = Pipeline("kills", {"rows": source}, dict, [sink], on_stuck=on_stuck)
    world = World(pipeline, ledger, memory, {"shop": dsn})
    with writing(dsn, memory) as alive:
        assert sacrifice(world, alive, 4) >= 4
    settle_down(world, lambda: Counter(name for (name,) in execute(dsn, "SELECT name FROM events")))
