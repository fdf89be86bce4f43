"""Arrow batches into a table: made into the text that LOAD DATA LOCAL reads, and sent from memory.

One statement a batch: its rows and warnings are counted at once, and whoever waits for the marker sees progress. LOCAL
makes warnings of errors and skips duplicates, so the server's count has to be the batch's, without a warning.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lockstep.connections.mariadb.connection import Database
from lockstep.connections.mariadb.refusals import without_values
from lockstep.connections.mariadb.sql import compose, identifier
from lockstep.connections.mariadb.wire import Cursor, Loader
from lockstep.connections.names import Relation
from lockstep.errors import PreflightRefused, SinkRejected
from lockstep.observability.redaction import rows_shown, with_hint
from lockstep.sinks.mariadb._tables import Table, find_table
from lockstep.sinks.mariadb._types import MariaDbType, Unfit, mariadb_type
from lockstep.sinks.tables.load import TableLoad
from lockstep.sinks.values import Batches

_ROWS = 16_384
_NULL = pa.scalar("\\N", pa.large_string())
_TAB = pa.scalar("\t", pa.large_string())

Piece: TypeAlias = tuple[memoryview, int]  #: the text and how many rows it has


@dataclass(frozen=True)
class Load(TableLoad[Cursor, "LoadText"]):
    """One output's way into one table for one epoch."""

    database: Database

    def send(self, cursor: Cursor, encoding: LoadText, into: Relation, batches: Batches) -> int:
        total, statement = 0, encoding.statement(into)
        with closing(_ahead(encoding.pieces(batches))) as pieces:
            for piece in pieces:
                total += self._load(cursor, statement, piece)
        self.require_whole(total, batches)
        return total

    def _load(self, cursor: Cursor, statement: str, piece: Piece) -> int:
        data, rows = piece
        done = loader_of(cursor).load(statement, [data])
        if done.warnings or done.rows != rows:
            raise self.rejection(
                f"the server took {done.rows} of {rows} rows with {done.warnings} warnings: {_warnings(cursor)}"
            )
        return rows

    def _compare(self, cursor: Cursor, schema: pa.Schema) -> LoadText:
        table = find_table(cursor, self.relation, self.database.where)
        if table is None:
            raise PreflightRefused(f"{self.database.where}: table {self.relation} is gone: create it again")
        table.require_fit(f"{self.database.where}: output {self.output}", schema, self.epoch_column)
        return LoadText.of(table, schema, self.epoch, self.epoch_column, f"{self.database.where}: {self.what}")


@dataclass(frozen=True)
class LoadText:
    """How an output's batches become lines: by name, in the order of `fields`, the epoch last."""

    by_text: ClassVar[bool] = False
    fields: tuple[tuple[str, MariaDbType], ...]
    epoch_column: str | None
    epoch: int
    where: str

    @classmethod
    def of(cls, table: Table, schema: pa.Schema, epoch: int, epoch_column: str | None, where: str) -> LoadText:
        kinds = [(field.name, mariadb_type(field.type)) for field in schema]
        fields = tuple((name, kind) for name, kind in kinds if kind is not None)
        return cls(fields, table.epoch_column(epoch_column), epoch, where)

    @property
    def names(self) -> list[str]:
        return [name for name, _ in self.fields] + ([self.epoch_column] if self.epoch_column else [])

    def statement(self, relation: Relation) -> str:
        """LOAD DATA without parameters."""
        given, made = [], []
        for index, (name, kind) in enumerate(self.fields):
            plain = kind.load == "{}"
            given.append(identifier(name) if plain else f"@lockstep_{index}")
            made += [] if plain else [f"{identifier(name)} = {kind.load.format(f'@lockstep_{index}')}"]
        if self.epoch_column:
            made.append(f"{identifier(self.epoch_column)} = {self.epoch:d}")
        template = (
            "LOAD DATA LOCAL INFILE 'lockstep' INTO TABLE {table} CHARACTER SET utf8mb4 "
            "FIELDS TERMINATED BY '\\t' ESCAPED BY '\\\\' LINES TERMINATED BY '\\n' "
        )
        lists = f"({', '.join(given)})" + (f" SET {', '.join(made)}" if made else "")
        return compose(template, table=relation.names) + lists

    def pieces(self, batches: Batches) -> Iterator[Piece]:
        """Raises `SinkRejected` for values that MariaDB would change."""
        for batch in batches:
            for start in range(0, batch.num_rows, _ROWS):
                piece = batch.slice(start, _ROWS)
                yield self.lines(piece), piece.num_rows

    def check(self, batches: Batches) -> int:
        return sum(rows for _, rows in self.pieces(batches))

    def lines(self, batch: pa.RecordBatch) -> memoryview:
        columns = [self._column(batch, name, kind) for name, kind in self.fields]
        columns[-1] = pc.binary_join_element_wise(columns[-1], pa.scalar("\n", pa.large_string()), _EMPTY)
        joined = pc.binary_join_element_wise(*columns, _TAB)
        offsets = np.frombuffer(joined.buffers()[1], np.int64, len(joined) + 1, joined.offset * 8)
        return memoryview(joined.buffers()[2])[offsets[0] : offsets[-1]]

    def _column(self, batch: pa.RecordBatch, name: str, kind: MariaDbType) -> pa.Array:
        try:
            text = kind.text(batch.column(name))
        except Unfit as unfit:
            raise SinkRejected(f"{self.where}: column {name} has {unfit}") from None
        return text.fill_null(_NULL) if text.null_count else text


_EMPTY = pa.scalar("", pa.large_string())


def loader_of(cursor: Cursor) -> Loader:
    """The cursor's connection, which feeds LOAD DATA."""
    assert isinstance(cursor.connection, Loader)
    return cursor.connection


def _ahead(pieces: Iterator[Piece]) -> Generator[Piece, None, None]:
    """The same pieces, each made by a thread while the server takes in the one before."""
    with ThreadPoolExecutor(1, thread_name_prefix="lockstep-encoder") as encoder:
        coming = encoder.submit(next, pieces, None)
        while (piece := coming.result()) is not None:
            coming = encoder.submit(next, pieces, None)
            yield piece


def _warnings(cursor: Cursor) -> str:
    """What the server warned of, once each; a duplicate key stands there, too."""
    cursor.execute("SHOW WARNINGS LIMIT 5")
    found = [(int(code), str(message)) for _, code, message in cursor.fetchall()]
    if rows_shown() or not found:
        return "; ".join(dict.fromkeys(message for _, message in found)) or "a row was left out"
    return with_hint("; ".join(dict.fromkeys(without_values(code, message) for code, message in found)))
