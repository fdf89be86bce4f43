"""Keyed state as a transform sees it: the rows that the epoch before left; and how the next version is written."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, Self

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
    StructType,
    TimestampType,
)

from lockstep.compute.ddl import struct_of
from lockstep.compute.inputs import Observed
from lockstep.errors import InvalidPipeline, PlanMismatch, SparkRefused, StageFailed, StateRejected
from lockstep.keyed_state import DELETED, KeyedState
from lockstep.wal.request import StateRequest
from lockstep.wal.state_manifest import StateFile, StateVersion
from lockstep.wal.state_staging import BUCKET, WrittenState

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

_TIMES = "lockstep_times"  #: how many rows of a key a transform returned
_OWN = (DELETED, BUCKET, _TIMES)
_COLUMN = re.compile(r"[A-Za-z_]\w*")
_SMALL = 8 << 20  #: bytes of a state that is sooner read than asked which parts of it matter


class StateRows:
    """One declared state as the epoch before left it: empty in the first epoch.

    Every call reads files that never change, so a transform that runs again sees the same rows. What was read is
    compared with the manifest before the epoch is sealed.
    """

    def __init__(
        self,
        spark: SparkSession,
        name: str,
        declared: KeyedState,
        before: StateVersion | None = None,
        uris: tuple[str, ...] = (),
    ) -> None:
        self.spark, self.name, self.declared = spark, name, declared
        self.schema = _schema_of(name, declared)
        self._before = _require_readable(name, declared, self.schema, before)
        self._files = list(zip(before.files, uris, strict=True)) if before else []
        self._frame: DataFrame | None = None
        self.read: set[int] = set()  #: buckets of the version before that somebody asked for

    @classmethod
    def of_frame(cls, spark: SparkSession, declared: KeyedState, frame: DataFrame, name: str = "state") -> Self:
        """State that holds the rows of `frame`, for tests of a transform."""
        made = cls(spark, name, declared)
        made._frame = frame.select(made.schema.names)
        return made

    def rows(self) -> DataFrame:
        """Every row."""
        return self._rows(self._files)

    def of(self, keys: DataFrame) -> DataFrame:
        """The rows whose key is among `keys`, a frame with at least the key's columns; repeated ones do no harm.

        Of a large state only the buckets of these keys are read. To learn which, a small job on `keys` runs at once.
        """
        self._require_columns(keys)
        types = {field.name: field.dataType for field in self.schema.fields}
        # as they are declared: another type has another hash
        wanted = keys.select(*(F.col(column).cast(types[column]).alias(column) for column in self.declared.key))
        found = self._holding(wanted)
        return found.join(wanted, list(self.declared.key), "left_semi").select(*self.schema.names)

    def _holding(self, wanted: DataFrame) -> DataFrame:
        """Every row whose key is wanted, and others."""
        if self._before is None or self._before.bytes <= _SMALL:
            return self.rows()
        numbers = wanted.select(bucket_of(self.declared.key, self._before.buckets).alias(BUCKET)).distinct().collect()
        return self.in_buckets({row[BUCKET] for row in numbers})

    def until(self, bound: datetime) -> DataFrame:
        """The rows whose `expires` is at or before `bound`, an aware time; parts that have none aren't read."""
        column = self.declared.expires
        if column is None:
            raise InvalidPipeline(f"state {self.name} has no column by which its rows expire: declare expires=")
        if bound.tzinfo is None:
            raise InvalidPipeline(f"state {self.name}: the bound {bound.isoformat()} has no time zone")
        due = [(file, uri) for file, uri in self._files if not _is_later(file, column, self._before, bound)]
        return self._rows(due).where(F.col(column) <= F.lit(bound))

    def in_buckets(self, buckets: Collection[int]) -> DataFrame:
        """The rows of some buckets of the version before."""
        return self._rows([(file, uri) for file, uri in self._files if file.bucket in buckets])

    def _rows(self, files: list[tuple[StateFile, str]]) -> DataFrame:
        if self._frame is not None:
            return self._frame
        if not files:
            return self.spark.createDataFrame([], self.schema)
        self.read.update(file.bucket for file, _ in files)
        return self.spark.read.schema(self.schema).parquet(*(_literal(uri) for _, uri in files))

    def _require_columns(self, frame: DataFrame) -> None:
        if missing := [column for column in self.declared.key if column not in frame.columns]:
            raise InvalidPipeline(f"state {self.name}: the frame lacks its key's columns {missing}")

    # --- the next version ---

    def write(self, changes: DataFrame | None, folder: str, options: Mapping[str, str]) -> WrittenState:
        """Write the buckets that `changes` touches to `folder`, whole; what became of this state.

        Raises `StateRejected` for two rows of a key or a null in one, `InvalidPipeline` for other columns.
        """
        before, declared = self._before, self.declared
        moved = before is not None and (before.buckets, before.expires) != (declared.buckets, declared.expires)
        if changes is None and not moved:
            return self._written(frozenset(), 0)
        kept, touched = self._kept(changes if changes is not None else self.spark.createDataFrame([], self.schema))
        if moved:
            touched = frozenset(range(self.declared.buckets))
        if not touched:
            return self._written(frozenset(), 0)
        hashed = None if moved else self._hashed_alike(touched)
        old = hashed.frame.select(*self.schema.names) if hashed else self._rows(self._files if moved else [])
        standing = old.join(kept, list(self.declared.key), "left_anti").select(*self.schema.names)
        counted = Observed.of(self._by_key(kept), most=f"max({_TIMES})", nulls=f"count_if({self._null})")
        changed = counted.frame.where(f"NOT {DELETED}").select(*self.schema.names)
        observed = Observed.of(standing.unionByName(changed), rows="count(1)")
        cut = observed.frame.withColumn(BUCKET, bucket_of(self.declared.key, self.declared.buckets))
        cut.repartition(F.col(BUCKET)).write.mode("error").options(**options).partitionBy(BUCKET).parquet(
            f"{folder}/{self.name}"
        )
        found = _told(self.name, counted)
        if (found["most"] or 0) > 1 or found["nulls"]:
            self._refuse(kept)
        if hashed and _told(self.name, hashed)["strange"]:
            raise SparkRefused(
                f"state {self.name}: this Spark hashes keys otherwise than the one that wrote the epochs before: take "
                "that one, or change the number of buckets, so that all of the state is written anew"
            )
        return self._written(touched, _told(self.name, observed)["rows"])

    def _hashed_alike(self, buckets: Collection[int]) -> Observed | None:
        """The rows of some buckets, with a count of those that this Spark would have put elsewhere; None if empty."""
        files = [one for one in self._files if one[0].bucket in buckets]
        if not files:
            return None
        key = ", ".join(map(_quoted, self.declared.key))
        here = _bucket_sql(key, self.declared.buckets)
        there = f"CAST(regexp_extract(_metadata.file_path, '{BUCKET}=([0-9]+)/', 1) AS INT)"
        frame = self._rows(files).withColumn(_TIMES, F.expr(f"{here} <> {there}"))
        return Observed.of(frame, strange=f"count_if({_TIMES})")

    def _kept(self, changes: DataFrame) -> tuple[DataFrame, frozenset[int]]:
        """The changes under the declared types, computed once; and the buckets that they touch."""
        names = {*self.schema.names, DELETED}
        wrong, missing = set(changes.columns) - names, set(self.schema.names) - set(changes.columns)
        if wrong or missing:
            raise InvalidPipeline(
                f"state {self.name}: its changes have the columns {changes.columns}, expected {self.schema.names} and, "
                f"if need be, {DELETED}"
            )
        for field in self.schema.fields:
            found = changes.schema[field.name].dataType
            if _loses(found, field.dataType):
                raise InvalidPipeline(
                    f"state {self.name}: its changes have {field.name} as {found.simpleString()}, declared is "
                    f"{field.dataType.simpleString()}, which can't hold that: cast it in the transform, or declare it"
                )
        deleted = F.coalesce(F.col(DELETED), F.lit(False)) if DELETED in changes.columns else F.lit(False)
        typed = changes.select(
            *(F.col(field.name).cast(field.dataType).alias(field.name) for field in self.schema.fields),
            deleted.alias(DELETED),
        )
        key = ", ".join(_quoted(column) for column in self.declared.key)
        observed = Observed.of(typed, buckets=f"collect_set({_bucket_sql(key, self.declared.buckets)})")
        kept = observed.checkpointed()
        touched: Any = observed.counts().get("buckets")
        if touched is None:  # Spark didn't say
            rows = kept.select(bucket_of(self.declared.key, self.declared.buckets).alias(BUCKET)).distinct().collect()
            touched = [row[BUCKET] for row in rows]
        return kept, frozenset(touched)

    def _by_key(self, kept: DataFrame) -> DataFrame:
        """One row a key, with the number `n` of those that there were: more than one is refused afterwards."""
        others = [name for name in (*self.schema.names, DELETED) if name not in self.declared.key]
        return kept.groupBy(*self.declared.key).agg(
            *(F.first(name).alias(name) for name in others), F.count(F.lit(1)).alias(_TIMES)
        )

    @property
    def _null(self) -> str:
        return " OR ".join(f"{_quoted(column)} IS NULL" for column in self.declared.key)

    def _refuse(self, kept: DataFrame) -> None:
        wrong = self._by_key(kept).where(f"{_TIMES} > 1 OR {self._null}").limit(3).collect()
        shown = "; ".join(f"{[row[column] for column in self.declared.key]} ({row[_TIMES]} rows)" for row in wrong)
        raise StateRejected(
            f"state {self.name}: a change is one row a key, and its key has no null; found {shown}; aggregate by "
            f"{', '.join(self.declared.key)} in the transform"
        )

    def _written(self, rewritten: frozenset[int], rows: int) -> WrittenState:
        declared = self.declared
        return WrittenState(
            declared.schema,
            tuple(declared.key),
            declared.buckets,
            declared.expires,
            rewritten,
            frozenset(self.read),
            rows,
        )


def states_of(
    spark: SparkSession, declared: Mapping[str, KeyedState], request: StateRequest | None
) -> dict[str, StateRows]:
    """The states that a transform gets, by name."""
    before = request.before if request else {}
    uris = request.uris if request else {}
    return {name: StateRows(spark, name, one, before.get(name), uris.get(name, ())) for name, one in declared.items()}


def bucket_of(key: Collection[str], buckets: int) -> Column:
    """The bucket of a row: Spark's xxhash64 of the key's columns, modulo their number."""
    return F.expr(_bucket_sql(", ".join(map(_quoted, key)), buckets))


def _bucket_sql(key: str, buckets: int) -> str:
    return f"CAST(pmod(xxhash64({key}), {buckets}L) AS INT)"


def _quoted(column: str) -> str:
    return "`" + column.replace("`", "``") + "`"


def _schema_of(name: str, declared: KeyedState) -> StructType:
    schema = struct_of(declared.schema)
    named = {field.name: field.dataType for field in schema.fields}
    if odd := [column for column in named if not _COLUMN.fullmatch(column) or column.lower() in _OWN]:
        raise InvalidPipeline(
            f"state {name}: no column may be called {odd}: letters, digits and _, and none of {', '.join(_OWN)}"
        )
    if len({column.lower() for column in named}) < len(schema.fields):
        raise InvalidPipeline(f"state {name}: a column stands twice in {declared.schema!r}")
    if missing := [column for column in declared.key if column not in named]:
        raise InvalidPipeline(f"state {name}: its key's columns {missing} don't stand in {declared.schema!r}")
    if declared.expires is not None and not isinstance(named.get(declared.expires), TimestampType):
        raise InvalidPipeline(f"state {name}: expires={declared.expires!r} must be a column of type TIMESTAMP")
    return schema


def _require_readable(
    name: str, declared: KeyedState, schema: StructType, before: StateVersion | None
) -> StateVersion | None:
    """Columns may be added; whatever else differs would be read as something it isn't."""
    if before is None:
        return None
    was, now = struct_of(before.schema), {field.name: field.dataType for field in schema.fields}
    changed = [field.name for field in was.fields if now.get(field.name) != field.dataType]
    if tuple(declared.key) != before.key or changed:
        raise PlanMismatch(
            f"state {name} was sealed with the key {list(before.key)} and the schema {before.schema!r}; the pipeline "
            f"declares {list(declared.key)} and {declared.schema!r} (differs: {changed or 'the key'}): columns may be "
            "added, for anything else give the state another name and fill it from this one"
        )
    return before


def _loses(found: DataType, declared: DataType) -> bool:
    """Whether a cast could change a value without an error; one that overflows is an error to Spark."""
    match found, declared:
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
            return found.scale > declared.scale
        case _:
            return found.simpleString() != declared.simpleString()


def _told(name: str, observed: Observed) -> dict[str, int]:
    """What was counted while the state was written. Raises `StageFailed` if Spark doesn't say: nothing is assumed."""
    if not (counts := observed.counts()):
        raise StageFailed(f"Spark wrote state {name} and didn't say what it counted")
    return counts


def _is_later(file: StateFile, column: str, before: StateVersion | None, bound: datetime) -> bool:
    """Whether the file is known to have no row that expires by `bound`."""
    if before is None or before.expires != column:
        return False
    return file.earliest is None or datetime.fromisoformat(file.earliest) > bound


def _literal(uri: str) -> str:
    """The URI with what Hadoop would take for a pattern escaped."""
    return "".join(f"\\{character}" if character in "*?[]{}\\" else character for character in uri)
