"""An epoch's rows are read by the one job that folds them, and kept as soon as anything else reads them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

from lockstep import Pipeline, Windows, files, run_epoch
from lockstep.compute._inputs import Input
from lockstep.compute._local_rows import VARIABLE
from lockstep.sinks import FileSink
from lockstep.sources import SequenceSource

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ROWS = 1000
WINDOWS = Windows(
    schema="k BIGINT, n BIGINT, total BIGINT",
    key=["k"],
    time="at",
    size=timedelta(minutes=10),
    aggregates={"n": "count(*)", "total": "sum(value)"},
    out_of_order=timedelta(minutes=5),
    partition="k % 2",
)
Frames = Mapping[str, "DataFrame"]


def folded(inputs: Frames, state: Any) -> Any:
    # from the second epoch on, the last row of each hundred is of the very first window
    at = "IF(value >= 1000 AND value % 100 = 99, 0, value * 10)"
    rows = inputs["numbers"].selectExpr("value % 3 k", "value", f"timestamp_seconds({at}) at")
    return WINDOWS.fold(rows, state)


def plain(inputs: Frames, state: Any) -> Any:
    found = WINDOWS.fold(
        inputs["numbers"].selectExpr("value % 3 k", "value", "timestamp_seconds(value * 10) at"), state
    )
    return {"windows": found.results, "late": found.late}, found.state


def with_late_rows(inputs: Frames, state: Any) -> Any:
    found = folded(inputs, state)
    return {"windows": found.results, "late": found.late}, found.state


def with_a_second_reader(inputs: Frames, state: Any) -> Any:
    found = WINDOWS.fold(
        inputs["numbers"].selectExpr("value % 3 k", "value", "timestamp_seconds(value * 10) at"), state
    )
    late = found.late.select("value").unionByName(inputs["numbers"].select("value"))
    return {"windows": found.results, "late": late}, found.state


def with_a_job_of_its_own(inputs: Frames, state: Any) -> Any:
    assert not inputs["numbers"].isEmpty()
    return plain(inputs, state)


def with_results_that_it_changes(inputs: Frames, state: Any) -> Any:
    outputs, changes = plain(inputs, state)
    return {**outputs, "windows": outputs["windows"].selectExpr("*", "total * 2 AS twice")}, changes


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("transform", "kept"),
    [
        (plain, [0, 0]),
        (with_late_rows, [0, 1]),
        (with_a_second_reader, [1, 1]),
        (with_a_job_of_its_own, [1, 1]),
        (with_results_that_it_changes, [0, 0]),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_rows_are_kept_only_where_more_than_one_job_reads_them_and_come_out_alike(
    session: SparkSession,
    ledger_dsn: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    transform: Callable[..., Any],
    kept: list[int],
) -> None:
    materialized: list[str] = []
    real = Input.materialize

    def noting(self: Input) -> Input:
        materialized.append(self.name)
        return real(self)

    monkeypatch.setattr(Input, "materialize", noting)
    found, found_kept = [], []
    for rows in ("200000", "0"):
        monkeypatch.setenv(VARIABLE, rows)
        folder = tmp_path / rows
        pipeline = Pipeline(
            f"once-{rows}",
            {"numbers": SequenceSource(ROWS)},
            transform,
            [FileSink(f"{name}-{rows}", output=name, path=str(folder / name)) for name in ("windows", "late")],
            state=WINDOWS.state(),
            version="test",
        )
        for _ in range(2):
            before = len(materialized)
            run_epoch(pipeline, spark=session, ledger=ledger_dsn, staging=str(tmp_path / "staging"), connections={})
            found_kept.append(len(materialized) - before)
        found.append(
            {
                name: sorted(
                    tuple(sorted((column, str(value)) for column, value in row.items()))
                    for path in files(str(folder / name))
                    for row in pq.ParquetFile(path).read().to_pylist()
                )
                for name in ("windows", "late")
            }
        )
    assert found[0] == found[1] and found[0]["windows"]
    assert found_kept[:2] == kept and all(found_kept[2:])
