"""A reader that isn't ours, in a process of its own: `outside_reader.py polars|duckdb delta|iceberg <table> <file>`
reads a table whole, or the epoch that a fifth argument names, and writes what it finds as Arrow's IPC.

DuckDB's extensions come as wheels and are loaded from there: nothing is downloaded, and DuckDB checks whose they are.
"""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pyarrow as pa

EXTENSIONS = {"delta": ("delta",), "iceberg": ("avro", "iceberg")}


def by_polars(kind: str, table: str, epoch: str | None) -> Any:
    pl = import_module("polars")
    frame = pl.scan_delta(table) if kind == "delta" else pl.scan_iceberg(table)
    if epoch is not None:
        frame = frame.filter(pl.col("lockstep_epoch") == int(epoch))
    return frame.collect().to_arrow()


def by_duckdb(kind: str, table: str, epoch: str | None) -> pa.Table:
    import duckdb

    nothing_else: dict[str, Any] = {"autoinstall_known_extensions": "false", "autoload_known_extensions": "false"}
    with duckdb.connect(config=nothing_else) as connection:
        for name in EXTENSIONS[kind]:
            module = find_spec(f"duckdb_extension_{name}")
            assert module is not None and module.origin is not None
            [extension] = Path(module.origin).parent.rglob(f"{name}.duckdb_extension")
            connection.load_extension(str(extension))
        where = "" if epoch is None else f" WHERE lockstep_epoch = {int(epoch)}"
        return connection.sql(f"SELECT * FROM {kind}_scan('{table}'){where}").to_arrow_table()


if __name__ == "__main__":
    reader, kind, place, target, *rest = sys.argv[1:]
    found = {"polars": by_polars, "duckdb": by_duckdb}[reader](kind, place, rest[0] if rest else None)
    with pa.OSFile(target, "wb") as file, pa.ipc.new_file(file, found.schema) as writer:
        writer.write_table(found)
