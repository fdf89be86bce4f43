"""A pipeline whose rows go into buckets: through Spark, the WAL and FileSink, and back into Spark."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from lockstep import Pipeline, files, run_epoch
from lockstep.ledger import Ledger
from lockstep.operations.verify import verify
from lockstep.runtime import Runtime
from lockstep.sinks import ByColumns, ByTime, FileSink
from lockstep.sources import FileSource
from lockstep.wal.staging import Staging

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DAY = datetime(2013, 1, 1, tzinfo=UTC)
CODES = ["AA", "a/b", "x=y", "50%", "007", "ünï ✓", None]


def as_they_are(inputs: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"trips": inputs["trips"].repartition(5)}


@pytest.mark.sample(1)
@pytest.mark.parametrize("bucket", [ByColumns("carrier"), ByTime("at")], ids=["columns", "time"])
def test_spark_reads_back_what_it_gave_and_verify_agrees(
    spark_connect: str, session: SparkSession, ledger_dsn: str, tmp_path: Path, bucket: ByColumns | ByTime
) -> None:
    rows = [(n, code, DAY + timedelta(minutes=30 * n)) for n, code in enumerate(CODES)]
    (tmp_path / "landing").mkdir()
    lines = [f"{n},{code or ''},{at:%Y-%m-%d %H:%M:%S}" for n, code, at in rows]
    (tmp_path / "landing" / "2013-01-01.csv").write_text("\n".join(["n,carrier,at", *lines, ""]))
    source = FileSource(
        f"{tmp_path}/landing/{{interval_start:%Y-%m-%d}}.csv",
        format="csv",
        schema="n BIGINT, carrier STRING, at TIMESTAMP",
    )
    sink = FileSink("trips", output="trips", path=str(tmp_path / "out"), bucket=bucket, success="_SUCCESS")
    pipeline = Pipeline(name="trips", sources={"trips": source}, transform=as_they_are, sinks=[sink])
    staging = str(tmp_path / "staging")
    day = (DAY, DAY + timedelta(days=1))
    report = run_epoch(pipeline, interval=day, ledger=ledger_dsn, staging=staging, spark=spark_connect, connections={})

    with closing(Ledger(ledger_dsn)) as ledger:
        [found] = verify(Runtime("trips", ledger, Staging(staging), {}, pipeline), ledger.epoch("trips", report.epoch))
    assert found.agrees and found.rows_shown == len(rows), found
    schema = "n BIGINT, carrier STRING, at TIMESTAMP"
    for reader in (
        session.read.schema(schema).option("basePath", sink.path).parquet(*files(sink.path)),
        session.read.schema(schema).parquet(sink.path),
    ):
        back = sorted((row.n, row.carrier, row.at.astimezone(UTC)) for row in reader.collect())
        assert back == rows
