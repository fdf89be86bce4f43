"""Writes the next version of keyed state: all rows of the buckets in which a key changed."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    IntegralType,
    NullType,
    ShortType,
    TimestampType,
)

from lockstep.compute._counting import CountedFrame, ObservedFrame
from lockstep.compute._key_hash import among, buckets_of, can_hash
from lockstep.compute._local_rows import arrow_schema, collect_few, most_rows, note_written, remember, rows_in
from lockstep.compute._reading_once import note_read
from lockstep.compute.state import TIMES, StateRows, bucket_of, bucket_sql
from lockstep.definition.ddl import quote_name
from lockstep.definition.keyed_state import DELETED
from lockstep.errors import InvalidPipeline, SparkRefused, StateRejected
from lockstep.spark.session import require_ansi
from lockstep.wal.state_staging import BUCKET, WrittenState

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_THREADS = 4


class StateWriter:
    """Makes the next version from the version `before` and a transform's changes."""

    def __init__(self, before: StateRows) -> None:
        self._before, self._declared, self._schema, self._name = before, before.declared, before.schema, before.name

    def write(self, changes: DataFrame | None, folder: str, options: Mapping[str, str]) -> WrittenState:
        """Write the buckets that `changes` touches, or that have expired rows, to `folder`, with all of their rows;
        return the written version.

        Raises `StateRejected` for two rows of a key or a null in one, `InvalidPipeline` for other columns.
        """
        require_ansi(self._before.spark, f"state {self._name}")  # again, as a transform may have set it
        needs_rewrite = self._before.needs_rewrite
        due = self._before.due_buckets()
        if changes is None and not needs_rewrite and not due:
            return self._result(frozenset(), 0)
        if changes is None and due:
            changes = remember(self._before.read_files([]), arrow_schema(self._schema).empty_table())
        if changes is not None and (written := self._write_few(changes, folder, due)) is not None:
            return written
        checkpoint, touched = self._checkpoint(self._typed(self._before.read_files([]) if changes is None else changes))
        touched |= due
        if needs_rewrite:
            touched = frozenset(range(self._declared.buckets))
        if not touched:
            return self._result(frozenset(), 0)
        hashed = None if needs_rewrite else self._rows_with_misplaced(touched)
        if hashed:
            old = hashed.frame.select(*self._schema.names)
        else:
            old = self._before.read_files(self._before.files if needs_rewrite else [])
        unchanged = old.join(checkpoint, list(self._declared.key), "left_anti").select(*self._schema.names)
        counted = CountedFrame.of(self._by_key(checkpoint), most=f"max({TIMES})", nulls=f"count_if({self._null})")
        changed = counted.frame.where(f"NOT {DELETED}").select(*self._schema.names)
        observed = CountedFrame.of(unchanged.unionByName(changed), rows="count(1)")
        cut = observed.frame.withColumn(BUCKET, bucket_of(self._declared.found_by, self._declared.buckets))
        cut.repartition(F.col(BUCKET)).write.mode("error").options(**options).partitionBy(BUCKET).parquet(
            f"{folder}/{self._name}"
        )
        totals = counted.counts()
        if (totals["most"] or 0) > 1 or totals["nulls"]:
            wrong = self._by_key(checkpoint).where(f"{TIMES} > 1 OR {self._null}").limit(3).collect()
            raise self._refused([([row[column] for column in self._declared.key], row[TIMES]) for row in wrong])
        if hashed and hashed.counts()["misplaced"]:
            raise self._hash_differs()
        return self._result(touched, observed.counts()["rows"])

    def _rows_with_misplaced(self, buckets: Collection[int]) -> CountedFrame | None:
        """The rows of some buckets, with a count of those that this Spark puts into another bucket; None if empty."""
        files = [entry for entry in self._before.files if entry[0].bucket in buckets]
        if not files:
            return None
        here = bucket_sql(self._declared.found_by, self._declared.buckets)
        there = f"CAST(regexp_extract(_metadata.file_path, '{BUCKET}=([0-9]+)/', 1) AS INT)"
        frame = self._before.read_files(files).withColumn(TIMES, F.expr(f"{here} <> {there}"))
        return CountedFrame.of(frame, misplaced=f"count_if({TIMES})")

    def collect(self, changes: DataFrame) -> None:
        """Collect the rows of changes that are also an output in this process, if they are few: one job serves both."""
        if rows_in(changes) is not None or not self._hashes():
            return
        declared = {field.name: field.dataType for field in self._schema.fields}
        self._typed(changes)  # refuses what doesn't fit
        if {field.name: field.dataType for field in changes.schema.fields} == declared:
            table = collect_few(changes)
            if table is not None:
                note_read(changes)
                remember(changes, table)

    def _hashes(self) -> bool:
        """True if this process may write, and can hash keys of these types."""
        arrow = arrow_schema(self._schema)
        hashable = all(can_hash(arrow.field(name).type) for name in self._declared.key)
        return self._before.store is not None and most_rows() > 0 and hashable

    def _write_few(self, changes: DataFrame, folder: str, due: frozenset[int]) -> WrittenState | None:
        """As `write`, in this process; None if the changes or the buckets that they touch are too many for it."""
        store = self._before.store
        if store is None or not self._hashes():
            return None
        table = rows_in(changes)
        if table is None:
            table = collect_few(self._typed(changes))
        if table is None:
            return None
        if DELETED not in table.column_names:
            table = table.append_column(DELETED, pa.array([False] * len(table), pa.bool_()))
        self._require_one_each(table)
        needs_rewrite = self._before.needs_rewrite
        changed = dict(_cut(table, self._buckets(table)))
        touched = frozenset(range(self._declared.buckets) if needs_rewrite else {*changed, *due})
        if not touched:
            return self._result(frozenset(), 0)
        old: Mapping[int, pa.Table] | None
        if needs_rewrite:
            table_before = self._before.local_rows()
            old = None if table_before is None else dict(_cut(table_before, self._buckets(table_before)))
        else:
            old = self._before.local_rows_by_bucket(touched)
        if old is None:
            return None
        none = table.schema.empty_table()
        target = f"{folder}/{self._name}"
        store.create_folder(target)

        def write(bucket: int) -> int:
            rows = self._after(bucket, old.get(bucket), changed.get(bucket, none))
            if len(rows):
                store.write(f"{target}/{BUCKET}={bucket}", rows)
            return len(rows)

        with ThreadPoolExecutor(_THREADS, "state") as pool:
            rows = sum(pool.map(write, sorted(touched)))
        note_written(changes)
        return self._result(touched, rows)

    def _after(self, bucket: int, old: pa.Table | None, changed: pa.Table) -> pa.Table:
        """The rows of one bucket with `changed` applied. Raises `SparkRefused`."""
        key = self._declared.key
        new = changed.filter(pc.invert(changed[DELETED])).select(self._schema.names)
        if old is None:
            return new
        if not self._before.needs_rewrite and set(map(int, np.unique(self._buckets(old)))) - {bucket}:
            raise self._hash_differs()
        return pa.concat_tables([old.filter(pc.invert(among(old, changed, key))), new])

    def _buckets(self, table: pa.Table) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        return buckets_of(table, self._declared.found_by, self._declared.buckets)

    def _require_one_each(self, table: pa.Table) -> None:
        """Raise `StateRejected` for two rows of a key, or a null in a key."""
        key = list(self._declared.key)
        groups = table.group_by(key).aggregate([([], "count_all")])
        wrong = pc.greater(groups["count_all"], 1)
        for name in key:
            wrong = pc.or_(wrong, pc.is_null(groups[name]))
        refused = groups.filter(wrong).slice(0, 3).to_pylist()
        if refused:
            raise self._refused([([row[name] for name in key], row["count_all"]) for row in refused])

    def _typed(self, changes: DataFrame) -> DataFrame:
        """The changes cast to the declared types."""
        names = {*self._schema.names, DELETED}
        wrong, missing = set(changes.columns) - names, set(self._schema.names) - set(changes.columns)
        if wrong or missing:
            raise InvalidPipeline(
                f"state {self._name}: its changes have the columns {changes.columns}, expected {self._schema.names} "
                f"and, if need be, {DELETED}"
            )
        for field in self._schema.fields:
            actual = changes.schema[field.name].dataType
            if _loses(actual, field.dataType):
                raise InvalidPipeline(
                    f"state {self._name}: its changes have {field.name} as {actual.simpleString()}, declared is "
                    f"{field.dataType.simpleString()}, which can't hold that: cast it in the transform, or declare it"
                )
        deleted = F.coalesce(F.col(DELETED), F.lit(False)) if DELETED in changes.columns else F.lit(False)
        return changes.select(
            *(F.col(field.name).cast(field.dataType).alias(field.name) for field in self._schema.fields),
            deleted.alias(DELETED),
        )

    def _checkpoint(self, typed: DataFrame) -> tuple[DataFrame, frozenset[int]]:
        """Compute typed changes once; return them and the buckets that they touch."""
        bucket = bucket_sql(self._declared.found_by, self._declared.buckets)
        # as text: Spark 4.0 can't return an observed array to a client
        observed = ObservedFrame.of(typed, buckets=f"concat_ws(' ', collect_set(CAST({bucket} AS STRING)))")
        checkpoint = observed.checkpoint()
        buckets: Any = observed.counts().get("buckets")
        if buckets is not None:
            return checkpoint, frozenset(map(int, buckets.split()))
        bucket_column = bucket_of(self._declared.found_by, self._declared.buckets).alias(
            BUCKET
        )  # Spark reported no metrics
        return checkpoint, frozenset(row[BUCKET] for row in checkpoint.select(bucket_column).distinct().collect())

    def _by_key(self, changes: DataFrame) -> DataFrame:
        """One row per key, with the number of its rows: more than one is refused afterwards."""
        columns = [name for name in (*self._schema.names, DELETED) if name not in self._declared.key]
        return changes.groupBy(*self._declared.key).agg(
            *(F.first(name).alias(name) for name in columns), F.count(F.lit(1)).alias(TIMES)
        )

    @property
    def _null(self) -> str:
        return " OR ".join(f"{quote_name(column)} IS NULL" for column in self._declared.key)

    def _hash_differs(self) -> SparkRefused:
        return SparkRefused(
            f"state {self._name}: this Spark hashes keys differently from the one that wrote the epochs before: use "
            "that one, or change the number of buckets, so that all of the state is rewritten"
        )

    def _refused(self, wrong: list[tuple[list[Any], int]]) -> StateRejected:
        keys = "; ".join(f"{key} ({times} rows)" for key, times in wrong)
        return StateRejected(
            f"state {self._name}: changes need one row per key, and keys without nulls; found {keys}; aggregate by "
            f"{', '.join(self._declared.key)} in the transform"
        )

    def _result(self, rewritten: frozenset[int], rows: int) -> WrittenState:
        declared = self._declared
        return WrittenState(
            declared.schema,
            tuple(declared.key),
            declared.buckets,
            declared.expires,
            rewritten,
            frozenset(self._before.read),
            rows,
            tuple(declared.found_by),
            declared.self_expiring,
        )


def _cut(table: pa.Table, buckets: np.ndarray[tuple[int], np.dtype[np.int64]]) -> Iterator[tuple[int, pa.Table]]:
    """The rows by bucket, without empty buckets."""
    order = np.argsort(buckets, kind="stable")
    rows, numbers = table.take(pa.array(order)), buckets[order]
    for bucket in np.unique(numbers):
        start, end = np.searchsorted(numbers, [bucket, bucket + 1])
        yield int(bucket), rows.slice(start, end - start)


def _loses(actual: DataType, declared: DataType) -> bool:
    """True if a cast could change a value without an error. An overflow is an error in Spark."""
    match actual, declared:
        case (NullType(), _):
            return False
        case (
            (IntegralType(), IntegralType() | DecimalType())
            | (FloatType(), DoubleType())
            | (DateType(), TimestampType())
        ):
            return False
        case (ByteType() | ShortType() | IntegerType(), DoubleType()):
            return False
        case (DecimalType(), DecimalType()):
            return actual.scale > declared.scale
        case _:
            return actual.simpleString() != declared.simpleString()
