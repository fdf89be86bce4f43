"""Upserts, in every database: the table has one row a key, the newest one.

Rows are ordered by the pair (order, epoch), two integers. The pair doesn't depend on when a row is published, so epochs
may be published in any order, again, or at once, and the table is the same. A delete is a row too (a tombstone): older
rows that come later don't bring the key back.

Besides the output's columns a table has the epoch column (bigint), `lockstep_order` (bigint) and, where the output has
a column of deletes, `lockstep_deleted` (boolean) in place of that column.

An epoch that replaces another one has its order, and a larger number. So its rows replace that epoch's rows, and none
that an epoch of a later range has written meanwhile. `OnMissing` says what happens to keys that it lacks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import TypeAlias

import pyarrow as pa
from pyarrow import types

from lockstep.epoch import Json
from lockstep.errors import InvalidPipeline, SinkRejected
from lockstep.observability.redaction import rows_shown, with_hint
from lockstep.sinks.tables.arrow_values import int64s
from lockstep.sinks.values import Batches, SinkEpoch

ORDER_COLUMN = "lockstep_order"
DELETED_COLUMN = "lockstep_deleted"
#: instruction for a new owner: rows of the old one's larger epochs would count as newer
AS_OLD_ROWS = (
    "; then set the table's epoch column to 0 in all rows (where that is the order, lockstep_order too), or empty it"
)

Keys: TypeAlias = "Sequence[str] | Mapping[str, Sequence[str]]"  #: one for all outputs, or one for each

_COLUMN = "column:"
_BEGINNING = datetime(1970, 1, 1, tzinfo=UTC)


class Mode(StrEnum):
    """Treatment of a row whose key the table has."""

    APPEND = "append"  #: the sink ignores keys: every row is a new one
    UPSERT = "upsert"  #: the newer of the two stays


class Order(StrEnum):
    """Origin of a row's order, which is compared before the epoch's number."""

    INTERVAL_END = "interval_end"  #: microseconds since 1970; a backfill of an old day is old, whenever it runs
    EPOCH = "epoch"  #: the epoch's number
    COLUMN = "column"  #: a column of the output: an integer, a date (days) or a timestamp (microseconds)


class OnMissing(StrEnum):
    """Treatment of a row whose epoch is replaced by one without its key. The key's row before the replaced epoch is
    lost, so it can't be restored."""

    REFUSE = "refuse"  #: the replacing epoch isn't decided
    DELETE = "delete"  #: it becomes a tombstone; where the table has none, it is deleted
    KEEP = "keep"  #: it stays as it is


@dataclass(frozen=True)
class Upserts:
    """Keys and order of a sink's rows. `order` None: the interval's end, or the epoch's number where it has none."""

    sink: str
    keys: Mapping[str, tuple[str, ...]]  #: by output
    order: Order | None = None
    order_column: str | None = None
    deleted: str | None = None  #: the output's boolean column
    on_missing: OnMissing = OnMissing.REFUSE

    # --- the definition ---

    @classmethod
    def of(
        cls,
        sink: str,
        outputs: Iterable[str],
        mode: str,
        key: Keys | None,
        order: str | None,
        deleted: str | None,
        on_missing: str = OnMissing.REFUSE,
    ) -> Upserts | None:
        """Upserts from the arguments of a sink; None for mode "append". Raises `InvalidPipeline`."""
        if mode not in tuple(Mode):
            raise InvalidPipeline(f"sink {sink}: mode={mode!r} is neither 'append' nor 'upsert'")
        if on_missing not in tuple(OnMissing):
            raise InvalidPipeline(f"sink {sink}: on_missing={on_missing!r} is neither 'refuse', 'delete' nor 'keep'")
        if mode == Mode.APPEND:
            if key is not None or order is not None or deleted is not None or on_missing != OnMissing.REFUSE:
                raise InvalidPipeline(f"sink {sink}: key, order, deleted and on_missing need mode='upsert'")
            return None
        by, column = None, None
        if order is not None and order.startswith(_COLUMN) and order != _COLUMN:
            by, column = Order.COLUMN, order.removeprefix(_COLUMN)
        elif order in (Order.INTERVAL_END, Order.EPOCH):
            by = Order(order)
        elif order is not None:
            raise InvalidPipeline(
                f"sink {sink}: order={order!r} is neither 'interval_end', 'epoch' nor 'column:<name>'"
            )
        if not key or isinstance(key, str):
            raise InvalidPipeline(f"sink {sink}: mode='upsert' needs key=[columns], or a mapping of output to columns")
        outputs = list(outputs)
        keys = key if isinstance(key, Mapping) else dict.fromkeys(outputs, key)
        if set(keys) != set(outputs):
            raise InvalidPipeline(f"sink {sink}: key is given for {sorted(keys)}, the outputs are {sorted(outputs)}")
        for output in outputs:
            columns = keys[output]
            if not columns or len(set(columns)) != len(columns):
                raise InvalidPipeline(f"sink {sink}: key of {output} is {list(columns)}: name each column once")
            if excluded := {column, deleted, ORDER_COLUMN, DELETED_COLUMN} & set(columns):
                raise InvalidPipeline(f"sink {sink}: {sorted(map(str, excluded))} can't be part of the key of {output}")
        if deleted is not None and deleted == column:
            raise InvalidPipeline(f"sink {sink}: {deleted} can't be order and deleted at once")
        by_output = {output: tuple(keys[output]) for output in outputs}
        return cls(sink, by_output, by, column, deleted, OnMissing(on_missing))

    def arguments(self) -> dict[str, Json]:
        """The constructor's arguments that this was made of; JSON."""
        arguments: dict[str, Json] = {
            "mode": Mode.UPSERT.value,
            "key": {output: list(key) for output, key in self.keys.items()},
            "on_missing": self.on_missing.value,
        }
        if self.order is not None:
            arguments["order"] = f"{_COLUMN}{self.order_column}" if self.order is Order.COLUMN else self.order.value
        return arguments | ({"deleted": self.deleted} if self.deleted is not None else {})

    # --- schemas ---

    def faults(self, output: str, schema: pa.Schema) -> list[str]:
        """Reasons why `schema` can't be upserted, one text a column."""
        columns = {field.name: field.type for field in schema}
        needed = [*self.keys[output], *(name for name in (self.order_column, self.deleted) if name is not None)]
        faults = [f"column {name}: the output lacks it" for name in needed if name not in columns]
        faults += [
            f"column {name}: {columns[name]} can't be a key: take an integer, text, bytes, a date or a time"
            for name in self.keys[output]
            if name in columns and not _is_key(columns[name])
        ]
        if self.order_column in columns and not _is_order(columns[self.order_column]):
            faults.append(
                f"column {self.order_column}: {columns[self.order_column]} can't be the order: take an integer of at "
                "most 64 bits with sign, a date or a timestamp"
            )
        if self.deleted in columns and not types.is_boolean(columns[self.deleted]):
            faults.append(f"column {self.deleted}: {columns[self.deleted]} can't say what is deleted: take a boolean")
        reserved = {ORDER_COLUMN, DELETED_COLUMN} & (set(columns) - {self.deleted})
        return faults + [f"column {name}: the sink fills it; rename the output's" for name in sorted(reserved)]

    def rename(self, schema: pa.Schema) -> pa.Schema:
        """`schema` with the table's names: the column of deletes is called `lockstep_deleted` there."""
        return pa.schema(
            [field.with_name(DELETED_COLUMN if field.name == self.deleted else field.name) for field in schema]
        )

    def stored_schema(self, schema: pa.Schema) -> pa.Schema:
        """The columns of the table, all but the epoch's."""
        return self.rename(schema).append(pa.field(ORDER_COLUMN, pa.int64(), nullable=False))

    # --- rows ---

    def order_of(self, epoch: SinkEpoch) -> int | None:
        """The order of all rows of an epoch, which is that of its range; None where each row has its own.

        Raises `InvalidPipeline` for order="interval_end" and an epoch of a cursor.
        """
        match self.order:
            case Order.COLUMN:
                return None
            case Order.EPOCH:
                return epoch.id if epoch.root is None else epoch.root
            case None if epoch.interval is None:
                return epoch.id if epoch.root is None else epoch.root
        if epoch.interval is None:
            raise InvalidPipeline(
                f"sink {self.sink}: order='interval_end', but epoch {epoch.id} has no interval; say order='epoch'"
            )
        return (epoch.interval.end - _BEGINNING) // timedelta(microseconds=1)

    def stored(self, batches: Batches, epoch: SinkEpoch) -> StoredBatches:
        """The rows with the table's columns."""
        return StoredBatches(self, batches, self.order_of(epoch))

    def stored_batch(self, batch: pa.RecordBatch, output: str, order: int | None) -> pa.RecordBatch:
        """A batch as the table has it. Raises `SinkRejected` for nulls in key, order or the column of deletes."""
        for name in (*self.keys[output], self.order_column, self.deleted):
            if name is not None and batch.column(name).null_count:
                raise SinkRejected(
                    f"sink {self.sink}: output {output}: column {name} has {batch.column(name).null_count} nulls in a "
                    "batch: a row needs its key, its order and whether it is deleted"
                )
        orders = int64s(order, batch.num_rows) if order is not None else _as_int64(batch.column(self.order_column))
        return pa.RecordBatch.from_arrays([*batch.columns, orders], schema=self.stored_schema(batch.schema))

    def duplicates(self, output: str, values: Sequence[object]) -> str:
        """Error text for keys (with the order, where it is a column) that one epoch has more than once."""
        twice = "with the same order " if self.order is Order.COLUMN else ""
        key = f"key {', '.join(self.keys[output])}"
        keys = f"{', '.join(map(str, values))} ({key})" if rows_shown() else with_hint(f"a {key}")
        return (
            f"sink {self.sink}: output {output}: {keys} occurs more than once {twice}in this epoch, so it is "
            f"undefined which row stays: let the transform choose{'' if twice else ', or give order=column:<name>'}"
        )


@dataclass(frozen=True)
class StoredBatches:
    """An output's rows with the table's names and their order. Satisfies `Batches`."""

    upserts: Upserts
    batches: Batches
    order: int | None

    @property
    def output(self) -> str:
        return self.batches.output

    @property
    def schema(self) -> pa.Schema:
        return self.upserts.stored_schema(self.batches.schema)

    @property
    def rows(self) -> int:
        return self.batches.rows

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        for batch in self.batches:
            yield self.upserts.stored_batch(batch, self.output, self.order)


def _is_key(dtype: pa.DataType) -> bool:
    """True for types whose equality is the same in every database."""
    if types.is_dictionary(dtype):
        return _is_key(dtype.value_type)
    text = types.is_string(dtype) or types.is_large_string(dtype) or types.is_string_view(dtype)
    data = types.is_binary(dtype) or types.is_large_binary(dtype) or types.is_fixed_size_binary(dtype)
    moment = types.is_date32(dtype) or types.is_timestamp(dtype) or types.is_time(dtype)
    number = types.is_integer(dtype) or types.is_decimal(dtype) or types.is_boolean(dtype)
    return bool(text or data or moment or number)


def _is_order(dtype: pa.DataType) -> bool:
    if types.is_timestamp(dtype):
        return bool(dtype.unit != "ns")
    return types.is_date32(dtype) or (types.is_integer(dtype) and not types.is_uint64(dtype))


def _as_int64(array: pa.Array) -> pa.Array:
    if types.is_timestamp(array.type):
        return array.cast(pa.timestamp("us", array.type.tz)).view(pa.int64())
    return (array.view(pa.int32()) if types.is_date32(array.type) else array).cast(pa.int64())
