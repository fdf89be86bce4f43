"""Where the files of an output live that a table adopts: below the table, and not in staging."""

from __future__ import annotations

from dataclasses import dataclass

from lockstep.epoch import Json


@dataclass(frozen=True)
class OutputHome:
    """The home of one output. `table`: URI or absolute path of the table's folder, free of secrets, as staging takes
    one; each file has `epoch_column` as its last column, with the epoch's number in every row."""

    table: str
    epoch_column: str

    def to_json(self) -> Json:
        return {"table": self.table, "epoch_column": self.epoch_column}

    @classmethod
    def from_json(cls, value: Json) -> OutputHome:
        """Raises KeyError, TypeError for anything that `to_json` doesn't make."""
        table, column = value["table"], value["epoch_column"]
        if not (isinstance(table, str) and isinstance(column, str)):
            raise TypeError(f"expected two texts, found {value!r}")
        return cls(table, column)

    def uri_of(self, path: str) -> str:
        """Absolute URI of `path`, relative to the table's folder; neither is percent-encoded."""
        table = self.table.partition("?")[0].rstrip("/")
        return f"{table if '://' in table else f'file://{table}'}/{path}"
