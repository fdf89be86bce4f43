"""Keyed state as a transform sees it: the rows that the epoch before left."""

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

from lockstep.compute._computing_once import compute_once
from lockstep.compute._key_hash import buckets_of, can_hash
from lockstep.compute._key_matching import among
from lockstep.compute._local_rows import arrow_schema, collect_few, frame_of, most_rows
from lockstep.definition.keyed_state import DELETED, KeyedState
from lockstep.errors import InvalidPipeline, PlanMismatch
from lockstep.spark.ddl import struct_of
from lockstep.spark.session import require_ansi
from lockstep.wal.manifest import StateFile, StateVersion
from lockstep.wal.request import JobFiles, StateRequest
from lockstep.wal.state_staging import BUCKET

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

TIMES = "lockstep_times"  #: how many rows of a key a transform returned
_OWN = (DELETED, BUCKET, TIMES)
_COLUMN = re.compile(r"[A-Za-z_]\w*")
_SMALL = 8 << 20  #: bytes of a state that is sooner read than asked which parts of it matter
_SENT = 20_000  #: rows of a state that are sooner sent to Spark than read by it
_SENT_BYTES = 8 << 20  #: of Arrow that may be sent there
_SWEPT = 16  #: an epoch sweeps one bucket in so many of what has expired
_FEW = 32  #: files of such a state: to open each of many costs more than to ask


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
        store: JobFiles | None = None,
        now: datetime | None = None,
    ) -> None:
        require_ansi(spark, f"state {name}")
        self.spark, self.name, self.declared = spark, name, declared
        self.schema = _schema_of(name, declared)
        self._before = _require_readable(name, declared, self.schema, before)
        self._expired_by = now if declared.self_expiring else None  #: whatever expires by then nobody sees
        #: of the version before, each with its URI
        self.files = list(zip(before.files, uris, strict=True)) if before else []
        self._frame: DataFrame | None = None
        self._local: DataFrame | None = None  #: all rows, where they are few
        self.store = store if store is not None and all(store.holds(uri) for uri in uris) else None
        self.read: set[int] = set()  #: buckets of the version before that somebody asked for
        self._tables: dict[StateFile, pa.Table] = {}  #: what this process has read

    @classmethod
    def of_frame(cls, spark: SparkSession, declared: KeyedState, frame: DataFrame, name: str = "state") -> Self:
        """State that holds the rows of `frame`, for tests of a transform."""
        made = cls(spark, name, declared)
        made._frame = frame.select(made.schema.names)
        return made

    def rows(self) -> DataFrame:
        """Every row."""
        if self._local is None and self._frame is None and sum(file.rows for file, _ in self.files) <= _SENT:
            table = self.few()
            self._local = frame_of(self.spark, table) if table is not None else None
        return self.read_files(self.files) if self._local is None else self._local

    def of(self, keys: DataFrame) -> DataFrame:
        """The rows whose key is among `keys`, a frame with at least the key's columns (where the state is declared with
        `found_by`: with those); repeated ones do no harm.

        Of a large state only the buckets of these keys are read. To learn which, a small job on `keys` runs at once.
        Where `keys` is an aggregation with few rows it is computed at once, for all that reads it.
        """
        self._require_columns(keys)
        if (held := compute_once(keys)) is not None and (matching := self._matching(held)) is not None:
            return frame_of(self.spark, matching)
        types = {field.name: field.dataType for field in self.schema.fields}
        # as they are declared: another type has another hash
        wanted = keys.select(*(F.col(column).cast(types[column]).alias(column) for column in self.declared.found_by))
        found = self._holding(wanted)
        if found is self._local:  # a semi-join would sort both: it sends the keys around, never the few rows
            found = wanted.distinct().join(F.broadcast(found), list(self.declared.found_by))
            return found.select(*self.schema.names)
        return found.join(wanted, list(self.declared.found_by), "left_semi").select(*self.schema.names)

    def _holding(self, wanted: DataFrame) -> DataFrame:
        """Every row whose key is wanted, and others."""
        if self._before is None or self.moves or (self._before.bytes <= _SMALL and len(self.files) <= _FEW):
            return self.rows()
        number = bucket_of(self.declared.found_by, self._before.buckets).alias(BUCKET)
        buckets = {row[BUCKET] for row in wanted.select(number).distinct().collect()}
        return self.read_files([(file, uri) for file, uri in self.files if file.bucket in buckets])

    def _matching(self, held: pa.Table) -> pa.Table | None:
        """The rows whose key is among those of `held`; None where Spark has to find them."""
        key, schema = self.declared.found_by, arrow_schema(self.schema)
        found = {name: held[name].type for name in key if name in held.column_names}
        if found != {name: schema.field(name).type for name in key} or not all(map(can_hash, found.values())):
            return None
        if self._before is None or self.moves:
            old = self.few()
        else:
            old = self.few(set(map(int, np.unique(buckets_of(held, key, self._before.buckets)))))
        if old is None:
            return None
        rows = old.filter(among(old, held, key))
        return rows if rows.nbytes <= _SENT_BYTES else None

    def few(self, buckets: Collection[int] | None = None, due: datetime | None = None) -> pa.Table | None:
        """The rows of some buckets (None: of all), and of those that hold some that expire by `due`, as Arrow.

        None if they are more than this process takes, or if it can't read them. Raises `WalCorrupt` for a file that
        isn't as it was sealed.
        """
        if self._frame is not None:
            return collect_few(self._frame.select(*self.schema.names))
        found = self.few_by_bucket(buckets, due)
        return None if found is None else pa.concat_tables([arrow_schema(self.schema).empty_table(), *found.values()])

    def few_by_bucket(
        self, buckets: Collection[int] | None = None, due: datetime | None = None
    ) -> dict[int, pa.Table] | None:
        """As `few`, of a state that has files, each bucket's rows by its number; one without rows isn't there."""
        column = self.declared.expires
        wanted = [
            (file, uri)
            for file, uri in self.files
            if buckets is None
            or file.bucket in buckets
            or (due is not None and column is not None and not _is_later(file, column, self._before, due))
        ]
        if sum(file.rows for file, _ in wanted) > most_rows() or most_rows() == 0:
            return None
        if not wanted:
            return {}
        if self.store is None:
            return None
        self.read.update(file.bucket for file, _ in wanted)
        missing = [(file, uri) for file, uri in wanted if file not in self._tables]
        tables = self.store.read_state(missing, arrow_schema(self.schema))
        self._tables.update((file, table) for (file, _), table in zip(missing, tables, strict=True))
        found: dict[int, list[pa.Table]] = {}
        for file, _ in wanted:
            found.setdefault(file.bucket, []).append(self._tables[file])
        return {bucket: self._standing(pa.concat_tables(tables)) for bucket, tables in found.items()}

    def _standing(self, table: pa.Table) -> pa.Table:
        """The rows that haven't expired."""
        if self._expired_by is None:
            return table
        gone = pc.less_equal(table[self.declared.expires], pa.scalar(self._expired_by, pa.timestamp("us", "UTC")))
        return table.filter(pc.invert(pc.fill_null(gone, False)))

    def due_buckets(self) -> frozenset[int]:
        """Those that this epoch should write anew because rows of them have expired, and for nothing else: the ones
        that wait longest, one in `_SWEPT` of all."""
        bound, column = self._expired_by, self.declared.expires
        if bound is None or column is None or self._before is None or self.moves:
            return frozenset()
        waiting: dict[int, str] = {}
        for file, _ in self.files:
            if file.earliest is not None and not _is_later(file, column, self._before, bound):
                waiting[file.bucket] = min(file.earliest, waiting.get(file.bucket, file.earliest))
        most = -(-self._before.buckets // _SWEPT)
        return frozenset(sorted(waiting, key=lambda bucket: (datetime.fromisoformat(waiting[bucket]), bucket))[:most])

    def until(self, bound: datetime) -> DataFrame:
        """The rows whose `expires` is at or before `bound`, an aware time; parts that have none aren't read."""
        column = self.declared.expires
        if column is None:
            raise InvalidPipeline(f"state {self.name} has no column by which its rows expire: declare expires=")
        if bound.tzinfo is None:
            raise InvalidPipeline(f"state {self.name}: the bound {bound.isoformat()} has no time zone")
        due = [(file, uri) for file, uri in self.files if not _is_later(file, column, self._before, bound)]
        return self.read_files(due).where(F.col(column) <= F.lit(bound))

    @property
    def moves(self) -> bool:
        """Whether the next version is written anew, all of it: it is cut, or looked through, otherwise than before."""
        before, declared = self._before, self.declared
        cut = (declared.buckets, declared.expires, declared.found_by)
        return before is not None and (before.buckets, before.expires, before.found_by) != cut

    def read_files(self, files: list[tuple[StateFile, str]]) -> DataFrame:
        """The rows of some files, noted as read."""
        if self._frame is not None:
            return self._frame
        if not files:
            return self.spark.createDataFrame([], self.schema)
        self.read.update(file.bucket for file, _ in files)
        frame = self.spark.read.schema(self.schema).parquet(*(_literal(uri) for _, uri in files))
        if self._expired_by is None:
            return frame
        return frame.where(F.coalesce(F.col(str(self.declared.expires)) > F.lit(self._expired_by), F.lit(True)))

    def _require_columns(self, frame: DataFrame) -> None:
        if missing := [column for column in self.declared.found_by if column not in frame.columns]:
            raise InvalidPipeline(f"state {self.name}: the frame lacks the columns {missing} of its key")


def states_of(
    spark: SparkSession,
    declared: Mapping[str, KeyedState],
    request: StateRequest | None,
    store: JobFiles | None = None,
    now: datetime | None = None,
) -> dict[str, StateRows]:
    """The states that a transform gets, by name. `store`: by which this process reads their files. `now`: when the
    epoch was planned."""
    before = request.before if request else {}
    uris = request.uris if request else {}
    return {
        name: StateRows(spark, name, one, before.get(name), uris.get(name, ()), store, now)
        for name, one in declared.items()
    }


def bucket_of(key: Collection[str], buckets: int) -> Column:
    """The bucket of a row: Spark's xxhash64 of the key's columns, modulo their number."""
    return F.expr(bucket_sql(key, buckets))


def bucket_sql(key: Collection[str], buckets: int) -> str:
    """`bucket_of` as SQL."""
    return f"CAST(pmod(xxhash64({', '.join(map(quoted, key))}), {buckets}L) AS INT)"


def quoted(column: str) -> str:
    """A column's name as SQL takes it, also if it is a word of SQL."""
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


def _is_later(file: StateFile, column: str, before: StateVersion | None, bound: datetime) -> bool:
    """Whether the file is known to have no row that expires by `bound`."""
    if before is None or before.expires != column:
        return False
    return file.earliest is None or datetime.fromisoformat(file.earliest) > bound


def _literal(uri: str) -> str:
    """The URI with what Hadoop would take for a pattern escaped."""
    return "".join(f"\\{character}" if character in "*?[]{}\\" else character for character in uri)
