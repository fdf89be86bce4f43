"""Parquet files by pyarrow without bounds of floats. pyarrow leaves NaN out of those, and readers that hold NaN larger
than every number pass over row groups by them. How many values of a float column are null stands in the metadata."""

from __future__ import annotations

import io
import json
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from lockstep.wal.file_facts import NULLS


def columns_with_statistics(schema: pa.Schema) -> list[str] | bool:
    """What pyarrow takes as `write_statistics`: the paths of all columns but floats, nested ones too."""
    pq.ParquetWriter(empty := io.BytesIO(), schema).close()
    footer = pq.read_metadata(empty).schema
    columns = [footer.column(number) for number in range(len(footer))]
    kinds = {column.path: {column.physical_type, column.logical_type.type} for column in columns}
    floats = {path for path, kind in kinds.items() if kind & {"FLOAT", "DOUBLE", "FLOAT16"}}
    return [path for path in kinds if path not in floats] if floats else True


class ParquetWriter(pq.ParquetWriter):  # type: ignore[misc]  # pyarrow has no types
    """As pyarrow's own, with statistics of every column but floats."""

    def __init__(self, target: Any, schema: pa.Schema, **options: Any) -> None:
        self._nulls = {field.name: 0 for field in schema if pa.types.is_floating(field.type)}
        super().__init__(target, schema, write_statistics=columns_with_statistics(schema), **options)

    def write_table(self, table: pa.Table, row_group_size: int | None = None) -> None:
        for name in self._nulls:
            self._nulls[name] += table[name].null_count
        super().write_table(table, row_group_size)

    def close(self) -> None:
        if self.is_open and self._nulls:
            self.add_key_value_metadata({NULLS: json.dumps(self._nulls)})
        super().close()
