"""Keyed state as a transform sees it: the rows after the epoch before."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F
from pyspark.sql.types import StructType, TimestampType

from lockstep.compute._key_hash import among, buckets_of, can_hash
from lockstep.compute._local_rows import arrow_schema, collect_few, frame_of, most_rows
from lockstep.compute._reading_once import compute_once
from lockstep.definition.ddl import quote_name
from lockstep.definition.keyed_state import DELETED, KeyedState
from lockstep.errors import InvalidPipeline, PlanMismatch
from lockstep.spark.ddl import struct_of
from lockstep.spark.session import require_ansi
from lockstep.wal.manifest import StateFile, StateVersion
from lockstep.wal.request import JobFiles, StateRequest
from lockstep.wal.state_staging import BUCKET

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

TIMES = "lockstep_times"  #: number of rows that a transform returned for a key
_OWN = (DELETED, BUCKET, TIMES)
_COLUMN = re.compile(r"[A-Za-z_]\w*")
_SMALL = 8 << 20  #: bytes of a state that is faster to read than to find the needed parts
_SENT_ROWS = 20_000  #: of a state that are faster to send to Spark than to read there
_SENT_BYTES = 8 << 20  #: of Arrow that may be sent to Spark
_SWEPT = 16  #: an epoch frees expired rows of one bucket in so many
_FEW_FILES = 32  #: of such a state: opening each of many costs more than finding the needed ones


class StateRows:
    """One declared state after the epoch before; empty in the first epoch.

    Every call reads files that never change, so a transform that runs again sees the same rows. The files that were
    read are compared with the manifest before the epoch is sealed.
    """

    def __init__(
        self,
        spark: SparkSession,
        name: str,
        declared: KeyedState,
        before: StateVersion | None = None,
        uris: tuple[str, ...] = (),
        store: JobFiles | None = None,
        now: datetime | None = None,
    ) -> None:
        require_ansi(spark, f"state {name}")
        self.spark, self.name, self.declared = spark, name, declared
        self.schema = _schema_of(name, declared)
        self._before = _require_readable(name, declared, self.schema, before)
        self._expired_by = now if declared.self_expiring else None  #: rows that expire by then are invisible
        #: of the version before, each with its URI
        self.files = list(zip(before.files, uris, strict=True)) if before else []
        self._frame: DataFrame | None = None
        self._local: DataFrame | None = None  #: all rows, where they are few
        self.store = store if store is not None and all(store.holds(uri) for uri in uris) else None
        self.read: set[int] = set()  #: buckets of the version before that were read
        self._tables: dict[StateFile, pa.Table] = {}  #: files that this process has read

    @classmethod
    def of_frame(cls, spark: SparkSession, declared: KeyedState, frame: DataFrame, name: str = "state") -> Self:
        """A state with the rows of `frame`, for tests of a transform."""
        state = cls(spark, name, declared)
        state._frame = frame.select(state.schema.names)
        return state

    def rows(self) -> DataFrame:
        """Every row."""
        if self._local is None and self._frame is None and sum(file.rows for file, _ in self.files) <= _SENT_ROWS:
            table = self.local_rows()
            self._local = frame_of(self.spark, table) if table is not None else None
        return self.read_files(self.files) if self._local is None else self._local

    def of(self, keys: DataFrame) -> DataFrame:
        """The rows with a key among `keys`, a frame with at least the key's columns (those of `found_by` if
        declared). Keys may repeat.

        Of a large state only the buckets of these keys are read; a small job on `keys` runs at once to find them. If
        `keys` is an aggregation with few rows, it is computed at once, and every other read of it gets these rows.
        """
        if missing := [column for column in self.declared.found_by if column not in keys.columns]:
            raise InvalidPipeline(f"state {self.name}: the frame lacks the columns {missing} of its key")
        if (local_keys := compute_once(keys)) is not None and (matching := self._matching(local_keys)) is not None:
            return frame_of(self.spark, matching)
        types = {field.name: field.dataType for field in self.schema.fields}
        # cast to the declared types, as another type has another hash
        lookup = keys.select(*(F.col(column).cast(types[column]).alias(column) for column in self.declared.found_by))
        candidates = self._holding(lookup)
        if candidates is self._local:  # a semi-join would sort both and shuffle the keys, not the few rows
            candidates = lookup.distinct().join(F.broadcast(candidates), list(self.declared.found_by))
            return candidates.select(*self.schema.names)
        return candidates.join(lookup, list(self.declared.found_by), "left_semi").select(*self.schema.names)

    def _holding(self, lookup: DataFrame) -> DataFrame:
        """A superset of the rows with a key in `lookup`."""
        if (
            self._before is None
            or self.needs_rewrite
            or (self._before.bytes <= _SMALL and len(self.files) <= _FEW_FILES)
        ):
            return self.rows()
        number = bucket_of(self.declared.found_by, self._before.buckets).alias(BUCKET)
        buckets = {row[BUCKET] for row in lookup.select(number).distinct().collect()}
        return self.read_files([(file, uri) for file, uri in self.files if file.bucket in buckets])

    def _matching(self, local_keys: pa.Table) -> pa.Table | None:
        """The rows with a key among those of `local_keys`; None if Spark has to find them."""
        key, schema = self.declared.found_by, arrow_schema(self.schema)
        types = {name: local_keys[name].type for name in key if name in local_keys.column_names}
        if types != {name: schema.field(name).type for name in key} or not all(map(can_hash, types.values())):
            return None
        if self._before is None or self.needs_rewrite:
            old = self.local_rows()
        else:
            old = self.local_rows(set(map(int, np.unique(buckets_of(local_keys, key, self._before.buckets)))))
        if old is None:
            return None
        rows = old.filter(among(old, local_keys, key))
        return rows if rows.nbytes <= _SENT_BYTES else None

    def local_rows(self, buckets: Collection[int] | None = None, due: datetime | None = None) -> pa.Table | None:
        """The rows of some buckets (None: of all), and of buckets with rows that expire by `due`, as Arrow.

        None if they are more than this process takes, or if it can't read them. Raises `WalCorrupt` for a file that
        differs from its sealed version.
        """
        if self._frame is not None:
            return collect_few(self._frame.select(*self.schema.names))
        tables = self.local_rows_by_bucket(buckets, due)
        return None if tables is None else pa.concat_tables([arrow_schema(self.schema).empty_table(), *tables.values()])

    def local_rows_by_bucket(
        self, buckets: Collection[int] | None = None, due: datetime | None = None
    ) -> dict[int, pa.Table] | None:
        """As `local_rows`, for a state with files: the rows by bucket, without empty buckets."""
        column = self.declared.expires
        files = [
            (file, uri)
            for file, uri in self.files
            if buckets is None
            or file.bucket in buckets
            or (due is not None and column is not None and not _is_later(file, column, self._before, due))
        ]
        if sum(file.rows for file, _ in files) > most_rows() or most_rows() == 0:
            return None
        if not files:
            return {}
        if self.store is None:
            return None
        self.read.update(file.bucket for file, _ in files)
        missing = [(file, uri) for file, uri in files if file not in self._tables]
        tables = self.store.read_state(missing, arrow_schema(self.schema))
        self._tables.update((file, table) for (file, _), table in zip(missing, tables, strict=True))
        by_bucket: dict[int, list[pa.Table]] = {}
        for file, _ in files:
            by_bucket.setdefault(file.bucket, []).append(self._tables[file])
        return {bucket: self._unexpired(pa.concat_tables(tables)) for bucket, tables in by_bucket.items()}

    def _unexpired(self, table: pa.Table) -> pa.Table:
        """The rows of `table` that haven't expired."""
        if self._expired_by is None:
            return table
        expired = pc.less_equal(table[self.declared.expires], pa.scalar(self._expired_by, pa.timestamp("us", "UTC")))
        return table.filter(pc.invert(pc.fill_null(expired, False)))

    def due_buckets(self) -> frozenset[int]:
        """Buckets to rewrite only to free expired rows: up to one in `_SWEPT`, those with the earliest expiry."""
        bound, column = self._expired_by, self.declared.expires
        if bound is None or column is None or self._before is None or self.needs_rewrite:
            return frozenset()
        waiting: dict[int, str] = {}
        for file, _ in self.files:
            if file.earliest is not None and not _is_later(file, column, self._before, bound):
                waiting[file.bucket] = min(file.earliest, waiting.get(file.bucket, file.earliest))
        max_buckets = -(-self._before.buckets // _SWEPT)
        return frozenset(
            sorted(waiting, key=lambda bucket: (datetime.fromisoformat(waiting[bucket]), bucket))[:max_buckets]
        )

    def until(self, bound: datetime) -> DataFrame:
        """The rows with `expires` at or before `bound`, an aware time. Parts without such rows aren't read."""
        column = self.declared.expires
        if column is None:
            raise InvalidPipeline(f"state {self.name} has no column by which its rows expire: declare expires=")
        if bound.tzinfo is None:
            raise InvalidPipeline(f"state {self.name}: the bound {bound.isoformat()} has no time zone")
        due = [(file, uri) for file, uri in self.files if not _is_later(file, column, self._before, bound)]
        return self.read_files(due).where(F.col(column) <= F.lit(bound))

    @property
    def needs_rewrite(self) -> bool:
        """True if the next version is rewritten completely, because buckets, `expires` or `found_by` changed."""
        before, declared = self._before, self.declared
        cut = (declared.buckets, declared.expires, declared.found_by)
        return before is not None and (before.buckets, before.expires, before.found_by) != cut

    def read_files(self, files: list[tuple[StateFile, str]]) -> DataFrame:
        """The rows of some files; records their buckets as read."""
        if self._frame is not None:
            return self._frame
        if not files:
            return self.spark.createDataFrame([], self.schema)
        self.read.update(file.bucket for file, _ in files)
        frame = self.spark.read.schema(self.schema).parquet(*(_literal(uri) for _, uri in files))
        if self._expired_by is None:
            return frame
        return frame.where(F.coalesce(F.col(str(self.declared.expires)) > F.lit(self._expired_by), F.lit(True)))


def states_of(
    spark: SparkSession,
    declared: Mapping[str, KeyedState],
    request: StateRequest | None,
    store: JobFiles | None = None,
    now: datetime | None = None,
) -> dict[str, StateRows]:
    """The states that a transform gets, by name. `store`: reads their files in this process. `now`: time when the epoch
    was planned."""
    before = request.before if request else {}
    uris = request.uris if request else {}
    return {
        name: StateRows(spark, name, state, before.get(name), uris.get(name, ()), store, now)
        for name, state in declared.items()
    }


def bucket_of(key: Collection[str], buckets: int) -> Column:
    """The bucket of a row: Spark's xxhash64 of the key's columns, modulo `buckets`."""
    return F.expr(bucket_sql(key, buckets))


def bucket_sql(key: Collection[str], buckets: int) -> str:
    """`bucket_of` as SQL."""
    return f"CAST(pmod(xxhash64({', '.join(map(quote_name, key))}), {buckets}L) AS INT)"


def _schema_of(name: str, declared: KeyedState) -> StructType:
    schema = struct_of(declared.schema)
    types = {field.name: field.dataType for field in schema.fields}
    if odd := [column for column in types if not _COLUMN.fullmatch(column) or column.lower() in _OWN]:
        raise InvalidPipeline(
            f"state {name}: no column may be called {odd}: letters, digits and _, and none of {', '.join(_OWN)}"
        )
    if len({column.lower() for column in types}) < len(schema.fields):
        raise InvalidPipeline(f"state {name}: a column is declared twice in {declared.schema!r}")
    if missing := [column for column in declared.key if column not in types]:
        raise InvalidPipeline(f"state {name}: its key's columns {missing} aren't in {declared.schema!r}")
    if declared.expires is not None and not isinstance(types.get(declared.expires), TimestampType):
        raise InvalidPipeline(f"state {name}: expires={declared.expires!r} must be a column of type TIMESTAMP")
    return schema


def _require_readable(
    name: str, declared: KeyedState, schema: StructType, before: StateVersion | None
) -> StateVersion | None:
    """Return `before`. Raises `PlanMismatch` if more differs from its schema than added columns."""
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


def _is_later(file: StateFile, column: str, before: StateVersion | None, bound: datetime) -> bool:
    """True if the file is known to have no row that expires by `bound`."""
    if before is None or before.expires != column:
        return False
    return file.earliest is None or datetime.fromisoformat(file.earliest) > bound


def _literal(uri: str) -> str:
    """The URI with Hadoop's pattern characters escaped."""
    return "".join(f"\\{character}" if character in "*?[]{}\\" else character for character in uri)
