"""How far event time has come: what earlier epochs have seen, and what this one adds to it. It never goes back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import functions as F

from lockstep.definition.windows import WindowDefinition, micros
from lockstep.errors import BadRecords, PlanMismatch

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

    from lockstep.compute.state import StateRows

BEGINNING = -(1 << 61)  #: before every event; Spark's arithmetic around it doesn't overflow
WHOLE = ""  #: the one partition of windows that have no partition=
_NULL, _VALUE = "null", "="  # how partitions are called: a value has the prefix, so it is neither WHOLE nor null
_SEEN = "partition STRING, seen BIGINT, idle INT, watermark BIGINT, forgotten BIGINT, definition STRING"
_TIMES = ("seen", "watermark", "forgotten")
_ARROW = pa.schema(
    [
        ("partition", pa.string()),
        ("seen", pa.timestamp("us", "UTC")),
        ("idle", pa.int32()),
        ("watermark", pa.timestamp("us", "UTC")),
        ("forgotten", pa.timestamp("us", "UTC")),
        ("definition", pa.string()),
    ]
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
#: µs since 1970 UTC: the first and the last time that Python has
FIRST, LAST = (micros(limit.replace(tzinfo=UTC) - _EPOCH) for limit in (datetime.min, datetime.max))


def partition_name(partition: str) -> Column:
    """What the state calls the partition that this SQL expression gives."""
    return F.coalesce(F.concat(F.lit(_VALUE), F.expr(partition).cast("string")), F.lit(_NULL))


@dataclass(frozen=True)
class PartitionTime:
    """Of a partition: its greatest event time (µs since 1970 UTC), and how many epochs have gone by without it."""

    greatest: int
    idle: int = 0


@dataclass(frozen=True)
class Watermark:
    """A window that ends at or before `bound` (µs since 1970 UTC) is closed, by `forgotten` forgotten.

    `forgotten` is kept, for a lateness that is raised would bring back windows that were emitted and deleted.
    """

    bound: int = BEGINNING
    partitions: Mapping[str, PartitionTime] | None = None
    forgotten: int = BEGINNING

    @classmethod
    def read(cls, windows: WindowDefinition, state: StateRows) -> Watermark:
        """As the epoch before left it. Raises `PlanMismatch` if its windows were others."""
        rows = _read_rows(state)
        if foreign := {row["definition"] for row in rows} - {windows.definition()}:
            raise PlanMismatch(
                f"windows {windows.name}: the state holds windows of [{foreign.pop()}], the pipeline says "
                f"[{windows.definition()}]: give the new windows another name, or take the change back"
            )
        whole = windows.partition is None  # a definition that changed in this begins with new partitions
        seen = {
            row["partition"]: PartitionTime(row["seen"], row["idle"])
            for row in rows
            if (row["partition"] == WHOLE) == whole
        }
        bound, forgotten = (max((row[name] for row in rows), default=BEGINNING) for name in ("at", "forgotten"))
        return cls(bound, seen, forgotten)

    @property
    def at(self) -> datetime | None:
        """`bound` as a time; None before the first event. Raises `BadRecords` if Python has no such time."""
        if self.bound == BEGINNING:
            return None
        try:
            return _EPOCH + timedelta(microseconds=self.bound)
        except OverflowError as error:
            raise BadRecords(
                f"the watermark would lie {self.bound} µs from 1970, before the year 1: leave such old events out by "
                "where=, or lower out_of_order"
            ) from error

    def advance(self, windows: WindowDefinition, greatest: Mapping[str, int]) -> Watermark:
        """After an epoch in which these partitions had rows, up to these event times."""
        if not greatest:
            return self.forgetting(windows)
        before = self.partitions or {}
        missed = {name: replace(seen, idle=seen.idle + 1) for name, seen in before.items() if name not in greatest}
        came = {
            name: PartitionTime(max(time, before[name].greatest) if name in before else time)
            for name, time in greatest.items()
        }
        limit = windows.idle_epochs
        active = [*came.values(), *(seen for seen in missed.values() if limit is None or seen.idle < limit)]
        slowest = min(seen.greatest for seen in active) - micros(windows.out_of_order)
        return Watermark(max(self.bound, slowest), {**missed, **came}, self.forgotten).forgetting(windows)

    def forgetting(self, windows: WindowDefinition) -> Watermark:
        """With what these windows' lateness forgets by now; what was forgotten once stays so."""
        return replace(self, forgotten=max(self.forgotten, self.bound - micros(windows.lateness)))

    def rows(self, spark: SparkSession, windows: WindowDefinition) -> DataFrame:
        """The state's rows of it."""
        values = self._told(windows)
        return spark.createDataFrame(values, _SEEN).select(
            "partition",
            F.timestamp_micros("seen").alias("seen"),
            "idle",
            F.timestamp_micros("watermark").alias("watermark"),
            F.timestamp_micros("forgotten").alias("forgotten"),
            "definition",
        )

    def table(self, windows: WindowDefinition) -> pa.Table:
        """`rows` as Arrow."""
        arrays = []
        for place, field in enumerate(_ARROW):
            values = [row[place] for row in self._told(windows)]
            kind = pa.int64() if pa.types.is_timestamp(field.type) else field.type
            arrays.append(pa.array(values, kind).cast(field.type))
        return pa.table(arrays, _ARROW)

    def _told(self, windows: WindowDefinition) -> list[tuple[str, int, int, int, int | None, str]]:
        """Before the year 1 no window can have been forgotten."""
        forgotten = self.forgotten if self.forgotten >= FIRST else None
        return [
            (name, seen.greatest, seen.idle, self.bound, forgotten, windows.definition())
            for name, seen in sorted((self.partitions or {}).items())
        ]


def _read_rows(state: StateRows) -> list[dict[str, Any]]:
    """The state's rows, times in µs."""
    table = state.few()
    if table is None:
        frame = state.rows()
        times = [F.unix_micros(name).alias(name) for name in _TIMES]
        read = [row.asDict() for row in frame.select("partition", "idle", "definition", *times).collect()]
    else:
        columns = table.select(["partition", "idle", "definition"])
        for name in _TIMES:
            columns = columns.append_column(name, table[name].cast(pa.int64()))
        read = columns.to_pylist()
    return [
        {**row, "at": row["watermark"], "forgotten": BEGINNING if row["forgotten"] is None else row["forgotten"]}
        for row in read
    ]
