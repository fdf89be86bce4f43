"""Where the files of an output live that a table adopts: below the table, and not in staging."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from lockstep.epoch import Json


@dataclass(frozen=True)
class TableStaging:
    """The home of one output. `table`: URI or absolute path of the table's folder, free of secrets, as staging takes
    one; each file has `epoch_column` as its last column, with the epoch's number in every row, and rows of one
    partition only. `partition_by`: columns, and `year(column)`, `month(…)`, `day(…)`, `hour(…)`, which are of UTC.
    `field_ids`: the table's, by column; empty of one that is yet to be made, and will number them in their order; None:
    files have none."""

    table: str
    epoch_column: str
    partition_by: tuple[str, ...] = ()
    field_ids: Mapping[str, int] | None = None

    def to_json(self) -> Json:
        parts = {"partition_by": list(self.partition_by)} if self.partition_by else {}
        ids = {"field_ids": dict(self.field_ids)} if self.field_ids is not None else {}
        return {"table": self.table, "epoch_column": self.epoch_column, **parts, **ids}

    @classmethod
    def from_json(cls, value: Json) -> TableStaging:
        """Raises KeyError, TypeError for anything that `to_json` doesn't make."""
        table, column, parts = value["table"], value["epoch_column"], value.get("partition_by", [])
        if not (isinstance(table, str) and isinstance(column, str) and isinstance(parts, list)):
            raise TypeError(f"expected two texts and a list, found {value!r}")
        if not all(isinstance(part, str) for part in parts):
            raise TypeError(f"expected columns, found {parts!r}")
        return cls(table, column, tuple(parts), value.get("field_ids"))

    def ids_of(self, columns: Sequence[str]) -> Mapping[str, int]:
        """Field ids of a file's columns; none if the table doesn't know each of them: then readers go by names."""
        if self.field_ids == {}:
            return {name: number for number, name in enumerate(columns, 1)}
        known = self.field_ids or {}
        return {name: known[name] for name in columns} if set(columns) <= set(known) else {}

    def uri_of(self, path: str) -> str:
        """Absolute URI of `path`, relative to the table's folder; neither is percent-encoded."""
        table = self.table.partition("?")[0].rstrip("/")
        return f"{table if '://' in table else f'file://{table}'}/{path}"


def with_field_ids(schema: pa.Schema, ids: Mapping[str, int]) -> pa.Schema:
    """`schema` with these ids, if it has no nested columns, whose parts would need some, too."""
    if not ids or any(map(pa.types.is_nested, schema.types)):
        return schema
    return pa.schema([field.with_metadata({"PARQUET:field_id": str(ids[field.name])}) for field in schema])
