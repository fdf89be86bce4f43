"""Two sources in one epoch: each range frozen, joined, decided together."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

from lockstep import Pipeline, files, run_epoch
from lockstep.errors import SourceChanged
from lockstep.sinks import FileSink
from lockstep.sources import FileSource

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def joined(inputs: Mapping[str, DataFrame]) -> Mapping[str, DataFrame]:
    """Each order with its customer, if that came in the same epoch; and the customers."""
    return {
        "orders": inputs["orders"].join(inputs["customers"], on="customer", how="left"),
        "customers": inputs["customers"],
    }


def test_ranges_of_two_sources_are_frozen_and_decided_together(
    spark_connect: str, ledger_dsn: str, tmp_path: Path
) -> None:
    orders, customers = tmp_path / "orders", tmp_path / "customers.json"
    orders.mkdir()
    pipeline = Pipeline(
        "shop",
        {
            "orders": FileSource(str(orders), schema="id BIGINT, customer STRING"),
            "customers": FileSource(str(customers), format="json", schema="customer STRING, city STRING", grow=True),
        },
        joined,
        [FileSink(name, output=name, path=str(tmp_path / "out" / name)) for name in ("orders", "customers")],
    )

    def run(name: str) -> dict[str, Any]:
        places: dict[str, Any] = {"ledger": ledger_dsn, "staging": str(tmp_path / "staging"), "connections": {}}
        report = run_epoch(pipeline, spark=spark_connect, run_id=name, **places)
        return {source: count["rows"] for source, count in report.sources.items()}

    def shown(output: str) -> list[tuple[Any, ...]]:
        rows = [
            row for path in files(str(tmp_path / "out" / output)) for row in pq.ParquetFile(path).read().to_pylist()
        ]
        return sorted(tuple(value for name, value in row.items() if name != "lockstep_epoch") for row in rows)

    (orders / "1.csv").write_text("id,customer\n1,a\n2,b\n")
    customers.write_text('{"customer": "a", "city": "Oslo"}\n{"customer": "b", "ci')
    assert run("first") == {"orders": 2, "customers": 1}
    with customers.open("a") as file:
        file.write('ty": "Bari"}\n')
    assert run("second") == {"orders": 0, "customers": 1}
    (orders / "2.csv").write_text("id,customer\n3,b\n")
    customers.write_text("")
    with pytest.raises(SourceChanged, match=r"customers\.json was taken up to byte"):
        run("third")
    assert shown("orders") == [("a", 1, "Oslo"), ("b", 2, None)]
    customers.unlink()
    assert run("third") == {"orders": 1, "customers": 0}
    assert shown("orders") == [("a", 1, "Oslo"), ("b", 2, None), ("b", 3, None)]
    assert shown("customers") == [("a", "Oslo"), ("b", "Bari")]
