"""A database table as a source: each epoch reads the rows that came since the last one, in the order of a column.

Exactness depends on where an epoch may end. A growing column isn't enough: a row with a smaller number may be committed
after one with a larger number, and a reader up to the largest number would never see it. So an epoch ends where no row
can come any more: below the oldest running transaction, if rows carry their transaction's number, else at rows older
than the declared longest transaction.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import pairwise
from typing import TYPE_CHECKING, ClassVar, Protocol, TypeVar

import pyarrow as pa

from lockstep.epoch import Interval, Json, KeyedBy, Position
from lockstep.errors import InvalidPipeline, SourceChanged, SourceRefused
from lockstep.sources.base import OpenSource, Source, SourceContext

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_log = logging.getLogger(__name__)
_MAX_PARTITIONS = 256
_ROW_BYTES = 200  #: assumed size of a row
HELD_BY = "held_by"  #: key of a position: what kept rows from being read when it was planned


@dataclass(frozen=True)
class Span:
    """A range of the column, as the server writes its values; None: open at that end, or a table without rows."""

    after: str | None
    upto: str | None

    @property
    def is_empty(self) -> bool:
        return self.after == self.upto


def youth(settle: timedelta, order_by: str, settled_by: str) -> timedelta:
    """Return the age up to which rows below a row may be uncommitted, if no transaction takes longer than `settle`.

    A time may be that of its transaction's start. If another column orders the rows, the transaction may have taken its
    number up to one `settle` later, and transactions with smaller numbers have one more `settle` to commit.
    """
    return settle if order_by == settled_by else 2 * settle


def why_restarted(column: str, after: str, largest: str | None, following: int | None) -> str | None:
    """Return why numbers up to `after` may be given again: neither the table nor the server's next number is above it.

    `following`: the next number, None if unknown. Rows that were read may have been deleted since.
    """
    if largest is not None and int(largest) >= int(after):
        return None
    if following is not None:
        return f"the next {column} that the server gives is {following}" if following <= int(after) else None
    return f"its largest {column} is {largest}" if largest is not None else None


class TableColumn(Protocol):
    """A column of a database table. `type_text`: its declared type."""

    @property
    def name(self) -> str: ...

    @property
    def type_text(self) -> str: ...

    @property
    def arrow(self) -> pa.DataType | None: ...


AnyColumn = TypeVar("AnyColumn", bound=TableColumn)


def select_columns(where: str, names: Sequence[str], columns: Mapping[str, AnyColumn]) -> list[AnyColumn]:
    """Return the named columns, all if `names` is empty. Raises `SourceRefused` for names that the table lacks."""
    if missing := [name for name in names if name not in columns]:
        raise SourceRefused(f"{where}: it has no columns {missing}; it has {list(columns)}")
    return [columns[name] for name in names or columns]


def schema_of(where: str, columns: Sequence[TableColumn]) -> pa.Schema:
    """Return the columns' types. Raises `SourceRefused` naming the columns that Spark can't hold."""
    if unfit := [f"{column.name} ({column.type_text})" for column in columns if column.arrow is None]:
        raise SourceRefused(
            f"{where}: no type of Spark holds every value of {', '.join(unfit)}: name the columns to read in "
            "columns=, or read a view that casts them"
        )
    return pa.schema([(column.name, column.arrow) for column in columns])


class TableSession(Protocol):
    """One connection to the table's server, in one transaction that sees one state."""

    def server(self) -> str:
        """Return the server, database and table: the same text as long as positions keep their meaning."""

    def schema(self) -> pa.Schema:
        """Return the rows' types. Raises `SourceRefused` naming the columns that can't be read exactly."""

    def restarted(self, after: str) -> str | None:
        """Return why new rows may have numbers up to `after`, which epochs have read; None if nothing indicates it."""

    def upto(self, after: str | None) -> str | None:
        """Return where an epoch that starts at `after` ends; `after` if no readable rows have come."""

    def held_by(self, after: str | None) -> str | None:
        """Return what has long kept rows above `after` from being read, if known."""

    def count(self, span: Span) -> int:
        """Return the number of rows in the span."""

    def split(self, span: Span, parts: int) -> list[Span]:
        """Split the span into at most `parts` pieces with about equally many rows."""

    def query(self, span: Span) -> str:
        """Return the workers' query for `schema()`'s columns in their order."""

    def reader(self, schema: pa.Schema) -> Callable[[str], Iterator[pa.RecordBatch]]:
        """Return a function that runs a query on a Spark worker. It is shipped by value and contains the login."""


@dataclass(frozen=True, eq=False, kw_only=True)
class TableSource(Source):
    """Common part of `PostgresTableSource` and `MariaDbTableSource`, which document the arguments.

    Positions are `{"server", "order_by", "after", "upto"[, "rows"][, "held_by"]}`.
    """

    table: str = field(kw_only=False)
    connection: str
    order_by: str
    settle: timedelta | None = None
    settled_by: str | None = None
    columns: tuple[str, ...] = ()
    max_rows_per_epoch: int | None = None
    rows_per_partition: int = 200_000
    verify_count: bool = True
    accept: str | Sequence[str] | None = None
    identity: KeyedBy = field(init=False, default=KeyedBy.CURSOR)
    operational: ClassVar[frozenset[str]] = frozenset(
        {
            *("settle", "settled_by", "columns", "max_rows_per_epoch", "rows_per_partition", "verify_count", "accept"),
        }
    )

    def __post_init__(self) -> None:
        accept = (self.accept,) if isinstance(self.accept, str) else tuple(self.accept or ())
        object.__setattr__(self, "accept", accept)
        object.__setattr__(self, "columns", tuple(self.columns))
        if isinstance(self.settle, int | float):  # seconds, as plans have it
            object.__setattr__(self, "settle", timedelta(seconds=self.settle))
        if self.settle is not None and self.settle < timedelta(0):
            raise InvalidPipeline(f"source {self.table}: settle must not be negative, is {self.settle}")
        if any(number is not None and number < 1 for number in (self.max_rows_per_epoch, self.rows_per_partition)):
            raise InvalidPipeline(f"source {self.table}: max_rows_per_epoch and rows_per_partition must be at least 1")

    def reads_from(self) -> str:
        return f"table {self.table} of connection {self.connection}"

    @property
    def connections(self) -> tuple[str, ...]:
        return (self.connection,)

    @property
    def accepted_rows(self) -> list[str]:
        """The values of `order_by` of the rows that `accept` names."""
        prefix = f"{self.order_by} "
        return [text.removeprefix(prefix) for text in self.accept or () if text.startswith(prefix)]

    def describe_unsettled(self, row: str, value: str | None, now: str) -> str:
        """Describe, for `held_by`, a row that never settles by waiting."""
        by = self.settled_by or self.order_by
        return (
            f"the row with {self.order_by} {row}: its {by} is {value or 'NULL'}, by the server's clock it is {now}, so "
            f"neither it nor any row above it is read; UPDATE its {by}, or give accept={f'{self.order_by} {row}'!r} in "
            "the source to consider it settled"
        )

    def refuse_ahead(self, where: str, row: str, now: str) -> SourceRefused:
        """Return the error for a row with an `order_by` ahead of the server's clock."""
        return SourceRefused(
            f"{where}: the row with {self.order_by} {row} is ahead of the server's clock ({now}): an epoch that ended "
            f"there would leave every later row with a smaller {self.order_by} unread; correct its {self.order_by}, or "
            f"set accept={f'{self.order_by} {row}'!r} in the source: rows ahead wait until the clock has reached them"
        )


class Connect(Protocol):
    """Opens a session with one transaction. `durable`: what it has seen survives a crash of the server.

    Raises `SourceUnavailable`, `SourceRefused`.
    """

    def __call__(self, *, durable: bool = False) -> AbstractContextManager[TableSession]: ...


class OpenTableSource(OpenSource):
    """Queries the server in one transaction per call."""

    def __init__(self, source: TableSource, context: SourceContext, session: Connect) -> None:
        self._source, self._name, self.session = source, context.source, session

    # --- planning ---

    def latest(self, start: Position | None, interval: Interval | None) -> Position:
        """Return where this epoch ends. Raises `SourceRefused`, `SourceChanged`, `SourceUnavailable`."""
        after = start["upto"] if start else None
        if start is not None:
            self._require_same_column(start)
        with self.session(durable=True) as session:
            server = session.server()
            if start is not None:
                self._require_same(start["server"], server)
            session.schema()
            if after is not None:
                self._require_not_restarted(after, server, session)
            span = Span(after, session.upto(after))
            position: Position = {
                "server": server,
                "order_by": self._source.order_by,
                "after": span.after,
                "upto": span.upto,
            }
            position |= self._facts(session, span)
            if (holder := session.held_by(span.upto)) is not None:
                _log.warning("source %s: rows wait for %s", self._name, holder)
                position[HELD_BY] = holder
            return position

    def _facts(self, session: TableSession, span: Span) -> dict[str, Json]:
        """Return facts about the span, by key of the position, that later checks compare."""
        return {"rows": session.count(span)} if self._source.verify_count else {}

    def _require_same(self, then: str, now: str) -> None:
        if now in (then, *self._accepted):
            return
        raise SourceChanged(
            f"source {self._name}: positions are of {then}, connection {self._source.connection} now leads to {now}: "
            f"rows may be missing, or renumbered; restore the connection, or if rows after the position are still "
            f"those that no epoch has read, set accept={now!r}"
        )

    def _require_not_restarted(self, after: str, server: str, session: TableSession) -> None:
        column = self._source.order_by
        why, accepted = session.restarted(after), f"{server}, below {column} {after}"
        if why is None or accepted in self._accepted:
            return
        raise SourceChanged(
            f"source {self._name}: epochs have read table {self._source.table} up to {column} {after}, and "
            f"{why}: it was restored or emptied, or its newest rows were deleted; new rows with numbers up to that "
            f"would never be read. Have the server continue above {after}, or give the source another name to read the "
            f"table again; if all future rows get larger numbers, set accept={accepted!r}"
        )

    @property
    def _accepted(self) -> tuple[str, ...]:
        return tuple(self._source.accept or ())

    def _require_same_column(self, position: Position) -> None:
        """Raise `SourceChanged` if the position is of another column. Old positions don't have it."""
        if (then := position.get("order_by", self._source.order_by)) != self._source.order_by:
            raise SourceChanged(
                f"source {self._name}: positions are of column {then}, order_by is now {self._source.order_by}, whose "
                f"values mean other rows: set order_by={then!r} again, or give the source another name: by "
                f"{self._source.order_by} it then starts again, with all rows of the table"
            )

    # --- reading ---

    def check(self, start: Position | None, end: Position) -> None:
        """Raise `SourceChanged` if the range is of another server or column, or its number of rows has changed."""
        self._require_same_column(end)
        with self.session() as session:
            self._require_same(end["server"], session.server())
            self._require_same_rows(session, end)

    def _require_same_rows(self, session: TableSession, end: Position) -> None:
        planned = end.get("rows")
        if not self._source.verify_count or planned is None:
            return
        current = session.count(span_of(end))
        if current < planned:
            raise SourceChanged(
                f"source {self._name}: table {self._source.table} had {planned} rows of this range when the epoch was "
                f"planned, and has {current}: rows were deleted, or moved by an update; `lockstep replan` plans again, "
                "verify_count=False in the source reads the epoch without them"
            )
        if current > planned:
            raise SourceChanged(
                f"source {self._name}: table {self._source.table} had {planned} rows of this range when the epoch was "
                f"planned, and has {current}: rows came late, with a smaller {self._source.order_by}; `lockstep "
                "replan`, or verify_count=False in the source, reads them; a larger settle waits for them"
            )

    def join(self, ends: Sequence[Position]) -> Position:
        for before, after in pairwise(ends):
            if (before["upto"], before["server"]) != (after["after"], after["server"]):
                raise SourceRefused(f"source {self._name}: the ranges don't join at {after['after']}")
        joined: Position = {**ends[-1], "after": ends[0]["after"]}
        counted = [end["rows"] for end in ends if "rows" in end]
        joined.pop("rows", None)
        return joined if len(counted) < len(ends) else {**joined, "rows": sum(counted)}

    def rows_planned(self, start: Position | None, end: Position) -> int | None:
        planned: int | None = end.get("rows")
        return planned if self._source.verify_count else None

    def bytes_planned(self, start: Position | None, end: Position) -> int | None:
        return None if (rows := end.get("rows")) is None else _ROW_BYTES * int(rows)

    def held_back_by(self, start: Position | None, end: Position) -> str | None:
        holder: str | None = end.get(HELD_BY)
        return holder

    def is_empty(self, start: Position | None, end: Position) -> bool:
        return span_of(end).is_empty or (self._source.verify_count and end.get("rows") == 0)

    def read(self, spark: SparkSession, start: Position | None, end: Position) -> DataFrame:
        """Read the rows of the frozen range with one Spark task per `rows_per_partition` rows."""
        from lockstep.spark.python_readers import frame_of

        self._require_same_column(end)
        with self.session() as session:
            schema, span = session.schema(), span_of(end)
            parts = min(-(-session.count(span) // self._source.rows_per_partition), _MAX_PARTITIONS)
            spans = session.split(span, parts) if parts > 1 else [span] * parts
            queries = [session.query(part) for part in spans]
            return frame_of(spark, schema, queries, session.reader(schema))


def span_of(end: Position) -> Span:
    """Return the span that a position froze."""
    return Span(end["after"], end["upto"])
