"""Keyed state: what one epoch leaves is what the next one finds, whatever was killed, retried or swept in between."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg2
import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as F

from lockstep import KeyedState, Pipeline, run_epoch
from lockstep.compute._local_rows import VARIABLE
from lockstep.compute.state import StateRows
from lockstep.epoch import Interval, KeyedBy, Position, RunKey
from lockstep.errors import (
    IllegalTransition,
    InvalidPipeline,
    LedgerConflict,
    OutOfOrder,
    PlanMismatch,
    SparkRefused,
    StagingRefused,
    StateRejected,
    WalCorrupt,
)
from lockstep.features.assembly import runtime_for
from lockstep.ledger import Ledger, migrate
from lockstep.operations.savepoint import export, start
from lockstep.protocol.begin import begin
from lockstep.protocol.commit import commit
from lockstep.protocol.prepare import prepare
from lockstep.protocol.recover import recover
from lockstep.protocol.runtime import Runtime
from lockstep.protocol.stage import stage
from lockstep.run import in_process
from lockstep.sinks import FileSink
from lockstep.sources import FileSource, OpenSource, Source, SourceContext
from lockstep.wal.manifest import StateVersion
from lockstep.wal.staging import Staging

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ROWS, KEYS = 100, 7
TOTALS = KeyedState("k BIGINT, n BIGINT, total BIGINT", key=["k"], buckets=4)


def summed(
    inputs: Mapping[str, DataFrame], state: Mapping[str, StateRows]
) -> tuple[Mapping[str, DataFrame], Mapping[str, DataFrame]]:
    """Totals by key, over all epochs; each epoch gives out those that it changed."""
    new = (
        inputs["numbers"]
        .groupBy((F.col("value") % KEYS).alias("k"))
        .agg(F.count("*").alias("n"), F.sum("value").alias("total"))
    )
    old = state["totals"].of(new)
    after = old.unionByName(new).groupBy("k").agg(F.sum("n").alias("n"), F.sum("total").alias("total"))
    return {"totals": after}, {"totals": after}


class Numbers(Source):
    """ROWS numbers an epoch, from 0 on."""

    identity = KeyedBy.CURSOR

    def open(self, context: SourceContext) -> OpenSource:
        return OpenNumbers()


class OpenNumbers(OpenSource):
    def latest(self, start: Position | None, interval: Interval | None) -> Position:
        return (start or 0) + ROWS

    def read(self, spark: SparkSession, start: Position | None, end: Position) -> DataFrame:
        return spark.range(start or 0, end).withColumnRenamed("id", "value")


class Summing:
    """A pipeline with state, its ledger and its folders."""

    def __init__(self, spark: SparkSession, ledger: str, folder: Path, **arguments: Any) -> None:
        migrate(ledger)
        self.spark, self.ledger, self.folder, self.staging = spark, ledger, folder, folder / "staging"
        self.pipeline = Pipeline(
            **{
                "name": "summing",
                "sources": {"numbers": Numbers()},
                "transform": summed,
                "sinks": [FileSink("out", output="totals", path=str(folder / "out"))],
                "state": {"totals": TOTALS},
                **arguments,
            }
        )

    def change(self, **arguments: Any) -> None:
        self.pipeline = replace(self.pipeline, **arguments)

    def run(self, times: int = 1) -> None:
        for _ in range(times):
            run_epoch(self.pipeline, spark=self.spark, ledger=self.ledger, staging=str(self.staging), connections={})

    def runtime(self) -> Runtime:
        return runtime_for(self.pipeline, Ledger(self.ledger), Staging(str(self.staging)), {})

    def staged(self, name: str) -> RunKey:
        run = RunKey("test", name)
        begin(self.runtime(), run)
        stage(self.runtime(), run, in_process(self.pipeline, self.spark))
        return run

    def decide(self, run: RunKey) -> None:
        prepare(self.runtime(), run, "out")
        commit(self.runtime(), run)

    def state(self, epoch: int) -> dict[int, tuple[int, int]]:
        """What the manifest of `epoch` says that the state is, by key."""
        runtime = self.runtime()
        found = runtime.ledger.epoch(self.pipeline.name, epoch)
        version = self.version(epoch)
        rows = [
            row
            for file in version.files
            for row in pq.read_table(
                self.staging / runtime.states().path_of("totals", file), partitioning=None
            ).to_pylist()
        ]
        assert found.summary["state"]["totals"]["rows"] == len(rows)
        assert len({row["k"] for row in rows}) == len(rows)
        return {row["k"]: (row["n"], row["total"]) for row in rows}

    def version(self, epoch: int) -> StateVersion:
        runtime = self.runtime()
        found = runtime.ledger.epoch(self.pipeline.name, epoch)
        assert found.wal is not None and found.manifest_hash is not None
        sealed = runtime.staging.manifest(found.wal, found.manifest_hash).state
        assert sealed is not None
        return sealed.versions["totals"]

    def folders(self) -> dict[int, list[int]]:
        found: dict[int, list[int]] = {}
        for execution in self.runtime().states().executions():
            found.setdefault(execution.epoch, []).append(execution.token)
        return found


def expected(epochs: int, keys: int = KEYS) -> dict[int, tuple[int, int]]:
    values = range(ROWS * epochs)
    counts = Counter(value % keys for value in values)
    return {k: (n, sum(value for value in values if value % keys == k)) for k, n in counts.items()}


@pytest.fixture
def summing(session: SparkSession, ledger_dsn: str, tmp_path: Path) -> Summing:
    return Summing(session, ledger_dsn, tmp_path)


def few(
    inputs: Mapping[str, DataFrame], state: Mapping[str, StateRows]
) -> tuple[Mapping[str, DataFrame], Mapping[str, DataFrame]]:
    """One key an epoch: the first epoch makes all of them."""
    rows = inputs["numbers"].where(f"value < {ROWS} OR value % {ROWS} = 0").selectExpr(f"value % {ROWS - 1} k")
    after = rows.selectExpr("k", "1L n", "2L total")
    return {"totals": after}, {"totals": after.dropDuplicates(["k"])}


def forgetting(
    inputs: Mapping[str, DataFrame], state: Mapping[str, StateRows]
) -> tuple[Mapping[str, DataFrame], Mapping[str, DataFrame]]:
    rows = inputs["numbers"].where("value < 10")
    gone = state["totals"].rows().where("k >= 3").selectExpr("k", "null n", "null total", "true _deleted")
    return {"totals": inputs["numbers"]}, {
        "totals": rows.selectExpr("value k", "1 n", "2 total", "false _deleted").unionByName(gone)
    }


def test_a_key_that_is_deleted_is_gone(summing: Summing) -> None:
    summing.change(transform=forgetting)
    summing.run(2)
    assert sorted(summing.state(1)) == list(range(10)) and sorted(summing.state(2)) == [0, 1, 2]


def doubled(
    inputs: Mapping[str, DataFrame], state: Mapping[str, StateRows]
) -> tuple[Mapping[str, DataFrame], Mapping[str, DataFrame]]:
    return {"totals": inputs["numbers"]}, {"totals": inputs["numbers"].selectExpr("value % 60 k", "1 n", "2 total")}


def nulls(
    inputs: Mapping[str, DataFrame], state: Mapping[str, StateRows]
) -> tuple[Mapping[str, DataFrame], Mapping[str, DataFrame]]:
    return {"totals": inputs["numbers"]}, {
        "totals": inputs["numbers"].selectExpr("nullif(value, 5) k", "1 n", "2 total")
    }


def unread(
    inputs: Mapping[str, DataFrame], state: Mapping[str, StateRows]
) -> tuple[Mapping[str, DataFrame], Mapping[str, DataFrame]]:
    return {"totals": state["totals"].rows()}, {}


@pytest.mark.fault("K6")
def test_what_cannot_become_state_fails_the_epoch_before_it_is_sealed(
    summing: Summing, subtests: pytest.Subtests
) -> None:
    for transform, error, message in [
        (doubled, StateRejected, r"\(2 rows\)"),
        (nulls, StateRejected, r"\[None\] \(1 rows\)"),
        (unread, InvalidPipeline, r"no output reads the sources \['numbers'\]"),
        (lambda inputs, state: ({"totals": inputs["numbers"]}, {"others": None}), InvalidPipeline, "'others'"),
        (
            lambda inputs, state: ({"totals": inputs["numbers"]}, {"totals": inputs["numbers"]}),
            InvalidPipeline,
            r"columns \['value'\], expected \['k', 'n', 'total'\]",
        ),
        (
            lambda inputs, state: (
                {"totals": inputs["numbers"]},
                {"totals": inputs["numbers"].selectExpr("value k", "1.5D n", "2 total")},
            ),
            InvalidPipeline,
            "n as double, declared is bigint",
        ),
    ]:
        with subtests.test(message=message):
            summing.change(transform=transform)
            with pytest.raises(error, match=message):
                summing.run()
            assert summing.runtime().ledger.epoch("summing", 1).wal is None and summing.folders() == {}


@pytest.mark.fault("K11")
@pytest.mark.parametrize("when", ["before", "by the transform"])
def test_a_session_in_which_a_value_that_does_not_fit_wraps_is_refused(summing: Summing, when: str) -> None:
    def narrow(inputs: Any, state: Any) -> Any:
        if when == "by the transform":
            summing.spark.conf.set("spark.sql.ansi.enabled", "false")
        wide = inputs["numbers"].selectExpr("value + 4294967296 AS k", "1L AS n", "value AS total")
        return {"totals": wide}, {"totals": wide}

    few = KeyedState("k INT, n BIGINT, total BIGINT", key=["k"], buckets=4)
    summing.change(transform=narrow, state={"totals": few})
    if when == "before":
        summing.spark.conf.set("spark.sql.ansi.enabled", "false")
    try:
        with pytest.raises(SparkRefused, match=r"state totals: spark\.sql\.ansi\.enabled is off"):
            summing.run()
    finally:
        summing.spark.conf.set("spark.sql.ansi.enabled", "true")
    assert summing.runtime().ledger.epoch("summing", 1).wal is None


@pytest.mark.fault("K2")
def test_stage_waits_until_the_epoch_before_is_decided(summing: Summing) -> None:
    first = summing.staged("first")
    second = RunKey("test", "second")
    begin(summing.runtime(), second)
    with pytest.raises(OutOfOrder, match="epoch 1 is staged"):
        stage(summing.runtime(), second, in_process(summing.pipeline, summing.spark))
    summing.decide(first)
    found = stage(summing.runtime(), second, in_process(summing.pipeline, summing.spark))
    assert found.based_on == summing.runtime().ledger.epoch("summing", 1).manifest_hash
    assert summing.state(2) == expected(2)


@pytest.mark.fault("K2")
def test_an_aborted_or_voided_epoch_leaves_no_trace_in_the_state(summing: Summing) -> None:
    summing.run()
    first = summing.staged("dead")
    token = summing.folders()[2]
    begin(summing.runtime(), first)  # a new attempt keeps the seal
    assert summing.folders()[2] == token
    summing.runtime().ledger.void_epoch("summing", 2, "test")
    recover(summing.runtime())
    assert 2 not in summing.folders()
    summing.run()
    assert summing.version(3).rows == KEYS  # of the rows of epoch 3; those of epoch 2 were given up
    assert sum(n for n, _ in summing.state(3).values()) == 2 * ROWS


@pytest.mark.fault("K7")
def test_a_version_goes_once_enough_epochs_are_published_and_files_still_named_stay(summing: Summing) -> None:
    summing.change(transform=few, state={"totals": replace(TOTALS, buckets=8)}, keep_state=2)
    summing.run(5)
    live = {(file.epoch, file.bucket) for epoch in (4, 5) for file in summing.version(epoch).files}
    present = {
        (int(path.parts[-5].partition("=")[2]), int(path.parent.name.partition("=")[2]))
        for path in (summing.staging).rglob("state/**/*.parquet")
    }
    assert present == live and any(epoch == 1 for epoch, _ in live), "a bucket without a changed key is carried over"
    assert Counter(file.epoch == 5 for file in summing.version(5).files) == {False: 7, True: 1}
    assert set(summing.folders()) == {epoch for epoch, _ in live}
    assert sum(1 for _ in summing.state(5)) == ROWS - 1


@pytest.mark.fault("K4")
def test_state_that_was_damaged_is_noticed_before_anything_is_sealed_on_it(summing: Summing) -> None:
    summing.run()
    damaged = next(summing.staging.rglob("state/**/*.parquet"))
    with damaged.open("r+b") as file:
        file.seek(40)
        found = file.read(1)
        file.seek(40)
        file.write(bytes([found[0] ^ 1]))
    (damaged.parent / f".{damaged.name}.crc").unlink(missing_ok=True)  # as on a file system without Hadoop's sums
    with pytest.raises(WalCorrupt, match="state/epoch=1/"):
        summing.run()
    assert summing.runtime().ledger.epoch("summing", 2).wal is None
    damaged.unlink()
    with pytest.raises(WalCorrupt, match="state/epoch=1/"):
        summing.run()


@pytest.mark.fault("K4")
def test_a_seal_whose_state_was_damaged_is_made_anew_by_the_next_attempt(summing: Summing) -> None:
    first = summing.staged("first")
    next(summing.staging.rglob("state/**/*.parquet")).unlink()
    summing.staged("first")
    summing.decide(first)
    assert summing.state(1) == expected(1)


@pytest.mark.fault("K3")
def test_commit_refuses_state_that_was_not_made_from_the_epoch_before(summing: Summing) -> None:
    first = summing.staged("first")
    with psycopg2.connect(summing.ledger) as tx, tx.cursor() as cursor:
        cursor.execute("ALTER TABLE lockstep.epoch DISABLE TRIGGER guard_state")
        cursor.execute("UPDATE lockstep.epoch SET based_on = %s", ("f" * 64,))
        cursor.execute("ALTER TABLE lockstep.epoch ENABLE TRIGGER guard_state")
    with pytest.raises(LedgerConflict, match="its state is based on ffff"):
        summing.decide(first)
    with (
        pytest.raises(psycopg2.Error, match="is not based on that of the preceding epoch"),
        psycopg2.connect(summing.ledger) as tx,
        tx.cursor() as cursor,
    ):
        cursor.execute("SET lockstep.role = 'commit'")
        cursor.execute("UPDATE lockstep.epoch SET state = 'committed'")


@pytest.mark.fault("K5")
def test_state_that_would_be_lost_or_misread_is_refused_and_columns_and_buckets_may_change(summing: Summing) -> None:
    summing.run()
    for state in (
        {"others": TOTALS},
        {"totals": replace(TOTALS, key=["k", "n"])},
        {"totals": replace(TOTALS, schema="k BIGINT, n INT, total BIGINT")},
    ):
        summing.change(state=state)
        with pytest.raises(PlanMismatch, match=r"totals"):
            summing.run()
    wider = replace(TOTALS, schema="k BIGINT, n BIGINT, total BIGINT, note STRING", buckets=3)
    summing.change(
        state={"totals": wider},
        transform=lambda inputs, state: (
            {"totals": inputs["numbers"]},
            {"totals": state["totals"].rows().where("k = 0").withColumn("note", F.lit("seen"))},
        ),
    )
    summing.run()
    assert summing.version(2).buckets == 3 and summing.version(2).rows == KEYS
    assert {file.epoch for file in summing.version(2).files} == {2}
    summing.change(state={}, drop_state=["totals"], transform=lambda inputs: {"totals": inputs["numbers"]})
    summing.run()
    found = summing.runtime().ledger.epoch("summing", 3)
    assert found.based_on == summing.runtime().ledger.epoch("summing", 2).manifest_hash
    assert found.summary["state"] == {}


def with_int_keys(
    inputs: Mapping[str, DataFrame], state: Mapping[str, StateRows]
) -> tuple[Mapping[str, DataFrame], Mapping[str, DataFrame]]:
    new = inputs["numbers"].selectExpr(f"CAST(value % {KEYS} AS INT) k", "value").groupBy("k")
    counted = new.agg(F.count("*").alias("n"), F.sum("value").alias("total"))
    both = state["totals"].of(counted).unionByName(counted)
    after = both.groupBy("k").agg(F.sum("n").alias("n"), F.sum("total").alias("total"))
    return {"totals": after}, {"totals": after}


def test_keys_of_another_type_find_their_rows_in_a_state_that_is_read_by_bucket(
    summing: Summing, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lockstep.compute.state._SMALL", 0)
    summing.change(transform=with_int_keys)
    summing.run(2)
    assert summing.state(2) == expected(2)


VISITS = KeyedState("k BIGINT, began BIGINT, n BIGINT", key=["k", "began"], buckets=4, found_by=["k"])


def visiting(
    inputs: Mapping[str, DataFrame], state: Mapping[str, StateRows]
) -> tuple[Mapping[str, DataFrame], Mapping[str, DataFrame]]:
    """An epoch adds a row of each of three keys, and shows those of key 1 that were there; by all of the key: of the
    epoch before."""
    numbers = inputs["numbers"].where(f"value % {ROWS} < 3")
    new = numbers.selectExpr(f"value % {ROWS} k", "value began", "1 n")
    asked = numbers.where(f"value % {ROWS} = 1").selectExpr(f"value % {ROWS} k", f"value - {ROWS} began")
    return {"totals": state["totals"].of(asked).unionByName(new)}, {"totals": new}


@pytest.mark.sample(1)
@pytest.mark.parametrize("rows", ["200000", "0"], ids=["in process", "in Spark"])
def test_rows_are_found_by_a_part_of_their_key_which_may_change(
    summing: Summing, monkeypatch: pytest.MonkeyPatch, rows: str
) -> None:
    monkeypatch.setenv(VARIABLE, rows)
    monkeypatch.setattr("lockstep.compute.state._SMALL", 0)  # whatever is found is found by its bucket
    summing.change(state={"totals": VISITS}, transform=visiting)
    shown = []
    for found_by in (["k"], ["k"], ["k"], [], ["k"], ["k"]):
        summing.change(state={"totals": replace(VISITS, found_by=found_by)})
        summing.run()
        last = summing.runtime().ledger.last_epoch("summing")
        assert last is not None
        shown.append(last.summary["outputs"]["totals"]["rows"] - 3)
    assert shown == [0, 1, 2, 1, 4, 5]
    assert [summing.version(number).rows for number in range(1, 7)] == [3, 6, 9, 12, 15, 18]
    assert len({file.bucket for file in summing.version(6).files}) <= 3, "rows of a key stand in several buckets"


EXPIRING = "k BIGINT, n BIGINT, total BIGINT, due TIMESTAMP, gone TIMESTAMP"


def leaving(
    inputs: Mapping[str, DataFrame], state: Mapping[str, StateRows]
) -> tuple[Mapping[str, DataFrame], Mapping[str, DataFrame]]:
    """The first epoch makes twelve rows, every other one with a time that has passed; the others show what is left."""
    due = "CASE WHEN value % 2 = 0 THEN TIMESTAMP '2020-01-01' WHEN value % 4 = 1 THEN TIMESTAMP '9000-01-01' END due"
    none = "CAST(NULL AS TIMESTAMP) gone"
    made = inputs["numbers"].where("value < 12").selectExpr("value k", "1 n", "2 total", due, none)
    found = state["totals"]
    shown = found.rows().unionByName(found.of(inputs["numbers"].selectExpr("value % 12 k"))).unionByName(made)
    return {"totals": shown}, {} if found.files else {"totals": made}


@pytest.mark.sample(1)
@pytest.mark.parametrize("rows", ["200000", "0"], ids=["in process", "in Spark"])
def test_rows_that_expire_by_themselves_are_seen_no_more_and_swept_a_few_buckets_at_a_time(
    summing: Summing, monkeypatch: pytest.MonkeyPatch, rows: str
) -> None:
    monkeypatch.setenv(VARIABLE, rows)
    state = KeyedState(EXPIRING, key=["k"], buckets=32, expires="due", self_expiring=True)
    summing.change(state={"totals": state}, transform=leaving, keep_state=100)
    summing.run()
    assert set(summing.state(1)) == set(range(12))
    swept: list[int] = []
    while summing.version(epoch := len(swept) + 1).rows > 6:
        assert epoch < 8, "the space is never freed"
        summing.run()
        last = summing.runtime().ledger.last_epoch("summing")
        assert last is not None and last.summary["outputs"]["totals"]["rows"] == 2 * 6, "somebody saw what has expired"
        before, after = (
            {(file.bucket, file.epoch) for file in summing.version(number).files} for number in (epoch, epoch + 1)
        )
        swept.append(len({bucket for bucket, _ in before ^ after}))
    assert len(swept) > 1 and max(swept) == 2, "more than its share was written anew"
    assert set(summing.state(len(swept) + 1)) == {1, 3, 5, 7, 9, 11}
    summing.run()
    assert summing.version(len(swept) + 2).files == summing.version(len(swept) + 1).files


@pytest.mark.fault("K9")
def test_a_driver_with_other_code_than_the_task_seals_nothing(summing: Summing) -> None:
    summing.run()
    stateless = replace(summing.pipeline, state={}, transform=lambda inputs: {"totals": inputs["numbers"]})
    run = RunKey("test", "other code")
    begin(summing.runtime(), run)
    with pytest.raises(PlanMismatch, match="declares another state"):
        stage(summing.runtime(), run, in_process(stateless, summing.spark))
    assert summing.runtime().ledger.epoch("summing", 2).wal is None


def test_columns_that_spark_would_confuse_and_intervals_are_refused(
    summing: Summing, subtests: pytest.Subtests
) -> None:
    source = FileSource(f"{summing.folder}/{{interval_start:%Y}}.csv", schema="k BIGINT")
    with pytest.raises(InvalidPipeline, match="its epochs are intervals"):
        replace(summing.pipeline, sources={"numbers": source})
    for column in ["a.b", "lockstep_times", "K", "_Deleted"]:
        with subtests.test(column=column):
            summing.change(state={"totals": replace(TOTALS, schema=f"{TOTALS.schema}, `{column}` INT")})
            with pytest.raises(InvalidPipeline, match="state totals"):
                summing.run()


def test_a_savepoint_starts_another_pipeline_where_its_epoch_ended(summing: Summing) -> None:
    summing.run(2)
    saved = export(summing.runtime(), f"{summing.folder}/saved")
    summing.run()
    other = Summing(summing.spark, summing.ledger, summing.folder / "other", name="summing-again")
    for _ in range(2):  # it may be repeated
        assert start(other.runtime(), f"{summing.folder}/saved").hash == saved.hash
    other.run()
    assert other.state(1) == summing.state(3) == expected(3)
    manifest = json.loads(next(other.staging.rglob("manifests/epoch=1.json")).read_text())
    assert (manifest["state"]["based_on"], manifest["state"]["savepoint"]) == ("", saved.hash)
    recover(other.runtime())
    other.run()
    assert other.state(2) == expected(4)
    with pytest.raises(StagingRefused, match="contains a savepoint already"):
        export(summing.runtime(), f"{summing.folder}/saved")
    export(summing.runtime(), f"{summing.folder}/second", 1)
    with pytest.raises(IllegalTransition, match="started from another savepoint"):
        start(other.runtime(), f"{summing.folder}/second")
    summing.change(keep_state=1)
    summing.run(2)
    with pytest.raises(IllegalTransition, match="can't be saved whole"):
        export(summing.runtime(), f"{summing.folder}/third", 1)
    with pytest.raises(IllegalTransition, match="has 5 epochs"):
        start(summing.runtime(), f"{summing.folder}/saved")


@pytest.mark.fault("K8")
def test_a_damaged_or_unfinished_savepoint_starts_nothing(summing: Summing) -> None:
    summing.run()
    export(summing.runtime(), f"{summing.folder}/saved")
    damaged = next((summing.folder / "saved").rglob("*.parquet"))
    damaged.write_bytes(damaged.read_bytes()[:-1])
    other = Summing(summing.spark, summing.ledger, summing.folder / "other", name="summing-again")
    with pytest.raises(WalCorrupt, match="bytes found"):
        start(other.runtime(), f"{summing.folder}/saved")
    with pytest.raises(StagingRefused, match="no savepoint"):
        start(other.runtime(), f"{summing.folder}/out")
    other.run()
    assert other.state(1) == expected(1)
