"""Where the files of an output live that a table adopts: below the table, and not in staging."""

from __future__ import annotations

from dataclasses import dataclass

from lockstep.epoch import Json


@dataclass(frozen=True)
class OutputHome:
    """The home of one output. `table`: URI or absolute path of the table's folder, free of secrets, as staging takes
    one; each file has `epoch_column` as its last column, with the epoch's number in every row, and rows of one
    partition only. `partition_by`: columns, and `year(column)`, `month(…)`, `day(…)`, `hour(…)`, which are of UTC."""

    table: str
    epoch_column: str
    partition_by: tuple[str, ...] = ()

    def to_json(self) -> Json:
        parts = {"partition_by": list(self.partition_by)} if self.partition_by else {}
        return {"table": self.table, "epoch_column": self.epoch_column, **parts}

    @classmethod
    def from_json(cls, value: Json) -> OutputHome:
        """Raises KeyError, TypeError for anything that `to_json` doesn't make."""
        table, column, parts = value["table"], value["epoch_column"], value.get("partition_by", [])
        if not (isinstance(table, str) and isinstance(column, str) and isinstance(parts, list)):
            raise TypeError(f"expected two texts and a list, found {value!r}")
        if not all(isinstance(part, str) for part in parts):
            raise TypeError(f"expected columns, found {parts!r}")
        return cls(table, column, tuple(parts))

    def uri_of(self, path: str) -> str:
        """Absolute URI of `path`, relative to the table's folder; neither is percent-encoded."""
        table = self.table.partition("?")[0].rstrip("/")
        return f"{table if '://' in table else f'file://{table}'}/{path}"
