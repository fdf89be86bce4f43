"""Rows that audits send to quarantine: by Spark the same as DuckDB finds, each in one place, and counted."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

from lockstep import Pipeline, rows_of, run_epoch
from lockstep.audits import Audit, accepted_values, in_range, none_where, not_null, row_count
from lockstep.audits.audit import Query
from lockstep.compute._local_rows import VARIABLE
from lockstep.errors import InvalidPipeline, StageFailed, Unbalanced
from lockstep.features.assembly import runtime_for
from lockstep.ledger import Ledger
from lockstep.operations.quarantine import find_quarantine, open_quarantined
from lockstep.operations.verify import verify
from lockstep.sinks import FileSink
from lockstep.wal.request import QuarantineCount
from lockstep.wal.staging import Staging
from tests.audits.test_evaluate import ANSWERS, ORDERS
from tests.spark.pipelines import pipeline_of
from tests.spark.staged import DAY, Staged, csv, rows_in, stage

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Frames = Mapping[str, "DataFrame"]
LINES = "id,name\n1,x\n2,\n3,y\n4,\n5,z\n"
NAMED = not_null("rows", "name", quarantine=True)
SMALL = in_range("rows", "id", at_most=3, quarantine=True)


@pytest.fixture(params=["200000", "0"], ids=["by the task", "by Spark"])
def writer(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who writes the outputs."""
    monkeypatch.setenv(VARIABLE, request.param)


def auditing(folder: Path, transform: Callable[[Frames], Frames], *audits: Audit, **more: Any) -> Pipeline:
    source = csv(folder, LINES, schema="id BIGINT, name STRING")
    return replace(pipeline_of(source, transform), audits=audits, **more)


def unchanged(inputs: Frames) -> Frames:
    return {"rows": inputs["input"]}


def away(staged: Staged, output: str = "rows") -> list[dict[str, Any]]:
    return rows_in(staged.folder / "quarantine" / f"output={output}")


def test_spark_sends_away_the_rows_that_duckdb_finds(session: SparkSession, tmp_path: Path) -> None:
    pq.write_table(ORDERS, tmp_path / "orders.parquet")

    def orders(inputs: Frames) -> Frames:
        one = inputs["input"].where("id = 1").select()
        return {"orders": one.crossJoin(session.read.parquet(str(tmp_path / "orders.parquet")))}

    judged = [(one, n) for one, n in ANSWERS if isinstance(one, Query) and one.rule is not None]
    audits = [replace(one, name=f"a{at}", blocking=False, quarantine=True) for at, (one, _) in enumerate(judged)]
    sound = csv(tmp_path, LINES, schema="id BIGINT, name STRING")
    pipeline = replace(pipeline_of(sound, orders, ("orders",)), audits=audits)
    staged = stage(session, tmp_path, pipeline)
    counts = staged.result.quarantined["orders"]
    assert counts.audits == {one.name: n for one, (_, n) in zip(audits, judged, strict=True)}
    assert len(audits) > 12 and counts.rows == 5 and staged.rows("orders") == []
    named = {row["a.b"]: set(row.pop("lockstep_audits").split(", ")) for row in away(staged, "orders")}
    assert {name: sum(name in names for names in named.values()) for name in counts.audits} == counts.audits


@pytest.mark.usefixtures("writer")
def test_each_row_is_in_its_output_or_in_quarantine(session: SparkSession, tmp_path: Path) -> None:
    staged = stage(session, tmp_path, auditing(tmp_path, unchanged, NAMED, SMALL))
    assert sorted(row["id"] for row in staged.rows()) == [1, 3]
    assert staged.result.rows == {"rows": 2} and staged.result.sources["input"].rows == 5
    assert staged.result.quarantined == {"rows": QuarantineCount(3, {NAMED.name: 2, SMALL.name: 2})}
    found = {row["id"]: row["lockstep_audits"] for row in away(staged)}
    assert found == {2: NAMED.name, 4: f"{NAMED.name}, {SMALL.name}", 5: SMALL.name}


def test_where_no_row_offends_there_is_no_second_job_and_no_quarantine(session: SparkSession, tmp_path: Path) -> None:
    staged = stage(session, tmp_path, auditing(tmp_path, unchanged, not_null("rows", "id", quarantine=True)))
    assert len(staged.rows()) == 5 and not (staged.folder / "quarantine").exists()
    assert staged.result.quarantined == {"rows": QuarantineCount(0, {"not_null_rows_id": 0})}


@pytest.mark.sample(1)
@pytest.mark.usefixtures("writer")
def test_rows_that_come_out_otherwise_the_second_time_stop_the_epoch(session: SparkSession, tmp_path: Path) -> None:
    def marked(inputs: Frames) -> Frames:
        return {"rows": inputs["input"].selectExpr("*", "uuid() AS mark")}

    with pytest.raises(StageFailed, match=r"2 rows offend audits, and computed again .* Is the transform"):
        stage(session, tmp_path, auditing(tmp_path, marked, NAMED))


@pytest.mark.sample(1)
@pytest.mark.usefixtures("writer")
def test_conservation_counts_what_went_to_quarantine(session: SparkSession, tmp_path: Path) -> None:
    said = [rows_of("input").into("rows")]
    staged = stage(session, tmp_path, auditing(tmp_path, unchanged, NAMED, conservation=said))
    assert staged.result.balances == {"input into rows": {"in": 5, "rows": 3, "quarantined": 2}}

    def losing(inputs: Frames) -> Frames:
        return {"rows": inputs["input"].where("id < 5")}

    with pytest.raises(Unbalanced, match=r"in must be rows \+ quarantined, found 5 in, 2 rows, 2 quarantined, 1 lost"):
        stage(session, tmp_path, auditing(tmp_path, losing, NAMED, conservation=said))


def test_a_rule_of_a_column_that_is_not_there_stops_the_epoch(
    session: SparkSession, tmp_path: Path, subtests: pytest.Subtests
) -> None:
    for audit, told in [
        (not_null("rows", "nope", quarantine=True), "looks at column nope, and the output has 0 of that name"),
        (none_where("rows", "nope > 3", quarantine=True, name="own"), "nope"),
    ]:
        with subtests.test(told=told), pytest.raises(InvalidPipeline, match=told):
            stage(session, tmp_path, auditing(tmp_path, unchanged, audit))


def test_an_epoch_with_rows_in_quarantine_is_published_without_them_and_they_stay(
    session: SparkSession, ledger_dsn: str, tmp_path: Path
) -> None:
    """A source and an output of one name, both with something in quarantine."""
    source = csv(tmp_path, f"{LINES}x,bad\n", schema="id BIGINT, name STRING", on_bad_records="quarantine")
    out = tmp_path / "out"
    own = none_where("rows", "name RLIKE '^[z]'", name="no_z", quarantine=True)
    listed = accepted_values("rows", "name", ["x", "y", "z", 'it\'s \\ "so"'], quarantine=True)
    pipeline = Pipeline(
        "away",
        {"rows": source},
        lambda inputs: {"rows": inputs["rows"]},
        [FileSink("files", output="rows", path=str(out), format="parquet")],
        audits=[NAMED, own, listed, row_count("rows", 2, 2)],
    )
    staging = str(tmp_path / "staging")
    report = run_epoch(
        pipeline, interval=(DAY.start, DAY.end), ledger=ledger_dsn, staging=staging, spark=session, connections={}
    )
    assert (report.rows, report.quarantined) == ({"rows": 2}, {"rows": 3})
    assert report.sources == {"rows": {"rows": 6, "quarantined": 1}}
    assert report.verdict is not None
    assert [str(one) for one in report.verdict.warnings] == [
        "not_null_rows_name (2 rows in quarantine)",
        "no_z (1 row in quarantine)",
    ]
    with closing(Ledger(ledger_dsn)) as ledger:
        runtime = runtime_for(pipeline, ledger, Staging(staging), {})
        assert all(one.agrees for one in verify(runtime, ledger.epoch("away", report.epoch)))
        found = find_quarantine(runtime, report.epoch)
        assert (found.outputs["rows"]["rows"], found.sources) == (3, {"rows": 1})
        rows = open_quarantined(runtime, report.epoch, "rows")
        assert rows is not None
        assert sorted(row["id"] for batch in rows for row in batch.to_pylist()) == [2, 4, 5]
