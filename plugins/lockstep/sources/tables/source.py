"""A database's table as a source: each epoch takes the rows that came since the last one, in the order of a column.

What makes it exact is where an epoch may end. A column that only grows isn't enough: a row with a smaller number can be
committed after one with a larger number, and who reads up to the largest number never sees it. So an epoch ends where
nothing can come any more: below the oldest running transaction, if the rows carry their transaction's number, else at
rows that are older than the longest transaction is said to last.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import pairwise
from typing import TYPE_CHECKING, ClassVar, Protocol

import pyarrow as pa

from lockstep.epoch import Interval, Json, KeyedBy, Position
from lockstep.errors import InvalidPipeline, SourceChanged, SourceRefused
from lockstep.sources.base import Source, SourceContext
from lockstep.sources.open_source import OpenSource

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_log = logging.getLogger(__name__)
_MOST_PARTITIONS = 256
_ROW_BYTES = 200  #: of a row whose size nobody knows
HELD_BY = "held_by"  #: key of a position: who kept rows from being read when it was planned


@dataclass(frozen=True)
class Span:
    """A range of the column, as the server writes its values; None: open at that end, or a table without rows."""

    after: str | None
    upto: str | None

    @property
    def is_empty(self) -> bool:
        return self.after == self.upto


def youth(settle: timedelta, order_by: str, settled_by: str) -> timedelta:
    """Up to which age of a row those below it may be uncommitted, if no transaction lasts longer than `settle`.

    A moment may be that of its transaction's start, and a number that the transaction took later, up to one `settle`
    later, says no more than that those below it were taken before: they have one `settle` more to be committed.
    """
    return settle if order_by == settled_by else 2 * settle


def why_restarted(column: str, after: str, largest: str | None, following: int | None) -> str | None:
    """Why numbers up to `after` may be given again: the table has none so large any more, nor does the server give
    larger ones next, where that can be asked (`following`). Rows that were read may have been deleted."""
    if largest is not None and int(largest) >= int(after):
        return None
    if following is not None:
        return f"the next {column} that the server gives is {following}" if following <= int(after) else None
    return f"its largest {column} is {largest}" if largest is not None else None


class TableSession(Protocol):
    """One connection to the table's server, in one transaction that sees one state of it."""

    def server(self) -> str:
        """Which server, database and table this is: the same text as long as positions mean the same."""

    def schema(self) -> pa.Schema:
        """The types of the rows. Raises `SourceRefused` naming every column whose values would not come out exactly."""

    def restarted(self, after: str) -> str | None:
        """Why rows that come now may have numbers up to `after`, which epochs have read; None if nothing says so."""

    def upto(self, after: str | None) -> str | None:
        """Where an epoch that starts at `after` ends; `after` if nothing has come that may be read."""

    def held_by(self, after: str | None) -> str | None:
        """What keeps rows behind `after` from being read for long, if that can be known."""

    def count(self, span: Span) -> int:
        """The rows of the span."""

    def split(self, span: Span, parts: int) -> list[Span]:
        """The span in at most `parts` pieces of about as many rows."""

    def query(self, span: Span) -> str:
        """What the workers ask for, of `schema()`'s columns in their order."""

    def reader(self, schema: pa.Schema) -> Callable[[str], Iterator[pa.RecordBatch]]:
        """Runs a query on a Spark worker. It goes there by value, with the login inside."""


@dataclass(frozen=True, eq=False, kw_only=True)
class TableSource(Source):
    """What `PostgresTableSource` and `MariaDbTableSource` share; the settings are explained there.

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
        """Values of `order_by`, of the rows that `accept` names."""
        prefix = f"{self.order_by} "
        return [text.removeprefix(prefix) for text in self.accept or () if text.startswith(prefix)]

    def describe_unsettled(self, row: str, value: str | None, now: str) -> str:
        """What `held_by` reports of a row that no time lets settle."""
        by = self.settled_by or self.order_by
        return (
            f"the row with {self.order_by} {row}: its {by} is {value or 'NULL'}, by the server's clock it is {now}, so "
            f"neither it nor any row above it is read; UPDATE its {by}, or say accept={f'{self.order_by} {row}'!r} in "
            "the source to take it for settled"
        )

    def refuse_ahead(self, where: str, row: str, now: str) -> SourceRefused:
        """The error for a row whose value of `order_by` the server's clock has yet to reach."""
        return SourceRefused(
            f"{where}: the row with {self.order_by} {row} is ahead of the server's clock ({now}): an epoch that ended "
            f"there would leave every later row with a smaller {self.order_by} unread; correct its {self.order_by}, or "
            f"say accept={f'{self.order_by} {row}'!r} in the source: rows ahead wait until the clock has reached them"
        )


class Connect(Protocol):
    """A connection with one transaction. `durable`: at its end, what it has seen outlives a crash of the server.

    Raises `SourceUnavailable`, `SourceRefused`.
    """

    def __call__(self, *, durable: bool = False) -> AbstractContextManager[TableSession]: ...


class OpenTableSource(OpenSource):
    """Asks the server, in one transaction a question."""

    def __init__(self, source: TableSource, context: SourceContext, session: Connect) -> None:
        self._source, self._name, self.session = source, context.source, session

    # --- planning ---

    def latest(self, start: Position | None, interval: Interval | None) -> Position:
        """Where this epoch ends. Raises `SourceRefused`, `SourceChanged`, `SourceUnavailable`."""
        after = start["upto"] if start else None
        if start is not None:
            self._require_same_column(start)
        with self.session(durable=True) as session:
            server = session.server()
            if start is not None:
                self._require_same(start["server"], server, session)
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
        """What a later look at the span is compared with, by key of the position."""
        return {"rows": session.count(span)} if self._source.verify_count else {}

    def _require_same(self, then: str, now: str, session: TableSession) -> None:
        if now in (then, *self._accepted):
            return
        raise SourceChanged(
            f"source {self._name}: positions are of {then}, connection {self._source.connection} now leads to {now}: "
            f"rows may be missing, or numbered anew; point it back, or if rows after the position are still those that "
            f"no epoch has read, say accept={now!r}"
        )

    def _require_not_restarted(self, after: str, server: str, session: TableSession) -> None:
        column = self._source.order_by
        why, accepted = session.restarted(after), f"{server}, below {column} {after}"
        if why is None or accepted in self._accepted:
            return
        raise SourceChanged(
            f"source {self._name}: epochs have read table {self._source.table} up to {column} {after}, and "
            f"{why}: it was restored or emptied, or its newest rows were deleted; new rows with numbers up to that "
            f"would never be read. Have the server go on above {after}, or give the source another name to read the "
            f"table anew; if all rows that are still to come get larger numbers, say accept={accepted!r}"
        )

    @property
    def _accepted(self) -> tuple[str, ...]:
        return tuple(self._source.accept or ())

    def _require_same_column(self, position: Position) -> None:
        """A position of a version that didn't tell the column is taken for one of the present column."""
        if (then := position.get("order_by", self._source.order_by)) != self._source.order_by:
            raise SourceChanged(
                f"source {self._name}: positions are of column {then}, order_by is now {self._source.order_by}, whose "
                f"values mean other rows: set order_by={then!r} again, or give the source another name: by "
                f"{self._source.order_by} it then starts anew, with all rows of the table"
            )

    # --- reading ---

    def check(self, start: Position | None, end: Position) -> None:
        """Raise `SourceChanged` if the range is of another server or column, or has more or fewer rows than planned."""
        self._require_same_column(end)
        with self.session() as session:
            self._require_same(end["server"], session.server(), session)
            self._require_same_rows(session, end)

    def _require_same_rows(self, session: TableSession, end: Position) -> None:
        if self._source.verify_count and (planned := end.get("rows")) is not None:
            self._require_rows(planned, session.count(span_of(end)))

    def _require_rows(self, planned: int, found: int) -> None:
        if found < planned:
            raise SourceChanged(
                f"source {self._name}: table {self._source.table} had {planned} rows of this range when the epoch was "
                f"planned, and has {found}: rows were deleted, or moved by an update; `lockstep replan` plans anew, "
                "verify_count=False in the source takes the epoch without them"
            )
        if found > planned:
            raise SourceChanged(
                f"source {self._name}: table {self._source.table} had {planned} rows of this range when the epoch was "
                f"planned, and has {found}: rows came late, with a smaller {self._source.order_by}; `lockstep replan`, "
                "or verify_count=False in the source, takes them; a larger settle waits for them"
            )

    def join(self, ends: Sequence[Position]) -> Position:
        for before, after in pairwise(ends):
            if (before["upto"], before["server"]) != (after["after"], after["server"]):
                raise SourceRefused(f"source {self._name}: the ranges don't join at {after['after']}")
        joined: Position = {**ends[-1], "after": ends[0]["after"]}
        counted = [one["rows"] for one in ends if "rows" in one]
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
        """The rows of the frozen range, read by as many Spark tasks as `rows_per_partition` makes of it."""
        from lockstep.spark.python_readers import frame_of

        self._require_same_column(end)
        with self.session() as session:
            schema, span = session.schema(), span_of(end)
            parts = min(-(-session.count(span) // self._source.rows_per_partition), _MOST_PARTITIONS)
            spans = session.split(span, parts) if parts > 1 else [span] * parts
            queries = [session.query(part) for part in spans]
            return frame_of(spark, schema, queries, session.reader(schema))


def span_of(end: Position) -> Span:
    """What a position has frozen."""
    return Span(end["after"], end["upto"])
