"""A world with keyed state for crash tests: each epoch adds ten numbers to totals by key, and shows the totals.

As in `tests.crash.world` the staging job is a plain pyarrow writer that leaves what Spark leaves.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from lockstep import KeyedState, Pipeline
from lockstep.epoch import Epoch, Interval, KeyedBy, Position, RunKey
from lockstep.features.assembly import runtime_for
from lockstep.ledger import Ledger, migrate
from lockstep.protocol.recover import RecoveryReport, recover
from lockstep.protocol.runtime import Runtime
from lockstep.protocol.stage_job import Launch
from lockstep.sinks.files import FileSink, files
from lockstep.sources import OpenSource, Source, SourceContext
from lockstep.wal.manifest import SourceCount
from lockstep.wal.request import RESULT, StageRequest, StageResult
from lockstep.wal.staging import Staging
from lockstep.wal.state_staging import BUCKET, WrittenState
from tests.crash.world import World, failing_as_spark_does, perform

ROWS, KEYS, BUCKETS = 10, 4, 3
Totals = dict[int, int]


class Counted(Source):
    """ROWS numbers an epoch, from 0 on."""

    identity = KeyedBy.CURSOR

    def open(self, context: SourceContext) -> OpenSource:
        return OpenCounted()


class OpenCounted(OpenSource):
    def latest(self, start: Position | None, interval: Interval | None) -> Position:
        return (start or 0) + ROWS

    def join(self, ends: Sequence[Position]) -> Position:
        return ends[-1]

    def read(self, spark: Any, start: Position | None, end: Position) -> Any:
        raise AssertionError("the crash suite stages without Spark")


def untouched(inputs: Mapping[str, Any], state: Mapping[str, Any]) -> Any:
    raise AssertionError("the crash suite stages without Spark")


def totals_after(end: int) -> Totals:
    """What the state must be once the numbers below `end` are folded, one key changing more than the others."""
    found: Counter[int] = Counter()
    for value in range(end):
        found[_key(value)] += value
    return dict(found)


def _key(value: int) -> int:
    return (value // ROWS) % KEYS  # an epoch touches one key: the other buckets are carried over


def add_up(request_uri: str) -> None:
    """Do what the Spark job does. Raises `StageFailed` when its folder is swept meanwhile."""
    with failing_as_spark_does():
        _add_up(Path(request_uri.removeprefix("file://")).parent)


def add_doubled(request_uri: str) -> None:
    """The same by a transform that counts each number twice."""
    with failing_as_spark_does():
        _add_up(Path(request_uri.removeprefix("file://")).parent, times=2)


def _add_up(folder: Path, times: int = 1) -> None:
    """Write the output, the buckets that changed, and the result."""
    request = StageRequest.from_json(json.loads((folder / "_request.json").read_text()))
    assert request.state is not None
    found = request.sources["numbers"]
    added = Counter[int]()
    for value in range(found.start or 0, found.end):
        added[_key(value)] += times * value
    touched = frozenset(key % BUCKETS for key in added)
    rows: Totals = {}
    before = request.state.before.get("totals")
    for file, uri in zip(before.files if before else (), request.state.uris.get("totals", ()), strict=True):
        if file.bucket in touched:
            rows |= {row["k"]: row["total"] for row in pq.ParquetFile(uri.removeprefix("file://")).read().to_pylist()}
    rows |= {key: rows.get(key, 0) + more for key, more in added.items()}
    _write(folder / "totals", {key: rows[key] for key in added})
    for bucket in touched:
        part = {key: total for key, total in rows.items() if key % BUCKETS == bucket}
        _write(Path(request.state.folder.removeprefix("file://")) / "totals" / f"{BUCKET}={bucket}", part)
    wrote = WrittenState(STATE.schema, tuple(STATE.key), BUCKETS, None, rewritten=touched, read=touched, rows=len(rows))
    counted = {"numbers": SourceCount(found.end - (found.start or 0), 0)}
    result = StageResult({"totals": len(added)}, counted, "test", {"totals": wrote})
    (folder / RESULT).write_text(json.dumps(result.to_json()))


def write_without_state(request_uri: str) -> None:
    """What a job of a pipeline leaves that declares none."""
    folder = Path(request_uri.removeprefix("file://")).parent
    _write(folder / "totals", {0: 0})
    (folder / RESULT).write_text(
        json.dumps(StageResult({"totals": 1}, {"numbers": SourceCount(1, 0)}, "test").to_json())
    )


def _write(folder: Path, totals: Totals) -> None:
    folder.mkdir(parents=True)
    columns = {"k": pa.array(totals.keys(), pa.int64()), "total": pa.array(totals.values(), pa.int64())}
    pq.write_table(pa.table(columns), folder / "part-00000.parquet")


STATE = KeyedState("k BIGINT, total BIGINT", key=["k"], buckets=BUCKETS)


@dataclass(frozen=True)
class StateWorld:
    """Picklable by fork: every process makes its own connections."""

    ledger_dsn: str
    folder: Path
    pipeline: Pipeline

    @classmethod
    def make(cls, ledger_dsn: str, folder: Path) -> StateWorld:
        migrate(ledger_dsn)
        sinks = [FileSink("files", output="totals", path=str(folder / "out"), format="parquet")]
        pipeline = Pipeline(
            "adding", {"numbers": Counted()}, untouched, sinks, state={"totals": STATE}, keep_state=2, max_in_flight=3
        )
        return cls(ledger_dsn, folder, pipeline)

    def runtime(self) -> Runtime:
        return runtime_for(self.pipeline, Ledger(self.ledger_dsn), Staging(str(self.folder / "staging")), {})

    def tasks(self) -> tuple[str, ...]:
        audits = ["audit"] if self.pipeline.audits else []
        return ("begin", "stage", *audits, "prepare", "commit", "publish", "cleanup")

    def run_task(self, task: str, run: RunKey, job: Launch = add_up) -> None:
        """One task as Airflow runs it; `prepare` and `publish` alone are those of `files`."""
        runtime = self.runtime()
        perform(runtime, f"{task}.files" if task in ("prepare", "publish") else task, run, job)
        runtime.ledger.close()

    def run(self, run: RunKey, start: str = "begin") -> None:
        """Every task of one DAG run from `start` on."""
        for task in self.tasks()[self.tasks().index(start) :]:
            self.run_task(task, run)

    def recover(self) -> RecoveryReport:
        """One round that regards every unleased attempt as dead."""
        return recover(self.runtime(), recovery_grace=timedelta(0))

    def expire_leases(self) -> None:
        """What waiting for 30 s does; no safety rests on it."""
        World.execute(
            self.ledger_dsn,
            "UPDATE lockstep.epoch SET lease_until = now() WHERE lease_until IS NOT NULL; "
            "UPDATE lockstep.epoch SET attempted_at = now() - interval '1 second'",
        )

    def last(self) -> Epoch | None:
        ledger = Ledger(self.ledger_dsn)
        found = ledger.last_epoch("adding")
        ledger.close()
        return found

    # --- what must be true afterwards ---

    def require_state_and_sink_agree(self, epoch: int) -> None:
        """Epoch `epoch` left the state of all numbers up to its end, and the sink shows that total, once."""
        runtime = self.runtime()
        found = runtime.ledger.epoch("adding", epoch)
        runtime.ledger.close()
        end = found.plan.sources["numbers"].end
        assert end == epoch * ROWS
        assert self.state_of(found) == totals_after(end)
        assert list(self.shown()[epoch].values()) == [totals_after(end)[_key(end - 1)]]

    def state_of(self, epoch: Epoch) -> Totals:
        """What it has left, each file as it was sealed."""
        runtime = self.runtime()
        state = runtime.staging.manifest(epoch.wal or "", epoch.manifest_hash or "").state
        assert state is not None
        states, totals = runtime.states(), Counter[int]()
        for file in state.versions["totals"].files:
            states.check("totals", [file])
            path = self.folder / "staging" / states.path_of("totals", file)
            totals.update({row["k"]: row["total"] for row in pq.ParquetFile(path).read().to_pylist()})
        runtime.ledger.close()
        return dict(totals)

    def shown(self) -> dict[int, Totals]:
        """What readers see, by epoch."""
        found: dict[int, Totals] = {}
        for path in files(str(self.folder / "out")):
            number = int(Path(path).name.partition("epoch=")[2].partition("-")[0])
            rows = pq.ParquetFile(path).read().to_pylist()
            found.setdefault(number, {}).update({row["k"]: row["total"] for row in rows})
        return found

    def require_tidy(self) -> None:
        """Of staging only the state that is kept is left."""
        runtime = self.runtime()
        last = self.last()
        assert last is not None
        states = runtime.states()
        kept = runtime.ledger.sealed_epochs("adding", last.id - 1)
        live = set()
        for epoch in kept:
            sealed = runtime.staging.manifest(epoch.wal or "", epoch.manifest_hash or "").state
            assert sealed is not None
            live |= {states.path_of(name, file) for name, file in sealed.files()}
        root = self.folder / "staging"
        assert {str(path.relative_to(root)) for path in root.glob("*/*/state/**/*.parquet")} == live
        assert not list(root.glob("*/*/epoch=*/*"))
        runtime.ledger.close()
