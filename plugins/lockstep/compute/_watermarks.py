"""The watermark of event time: from earlier epochs, advanced by this one. It never goes back."""

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
    from pyspark.sql import Column

    from lockstep.compute.state import StateRows

BEGINNING = -(1 << 61)  #: before every event; Spark's arithmetic around it doesn't overflow
WHOLE = ""  #: the one partition of windows that have no partition=
_NULL, _VALUE = "null", "="  # names of partitions: a value has the prefix, so it is neither WHOLE nor null
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
    """The state's name of the partition that this SQL expression returns."""
    return F.coalesce(F.concat(F.lit(_VALUE), F.expr(partition).cast("string")), F.lit(_NULL))


@dataclass(frozen=True)
class PartitionTime:
    """A partition's greatest event time (µs since 1970 UTC), and the number of epochs since it last had rows."""

    greatest: int
    idle: int = 0


@dataclass(frozen=True)
class Watermark:
    """A window that ends at or before `bound` (µs since 1970 UTC) is closed, by `forgotten` forgotten.

    `forgotten` is stored, as a raised lateness would otherwise bring back windows that were emitted and deleted.
    """

    bound: int = BEGINNING
    partitions: Mapping[str, PartitionTime] | None = None
    forgotten: int = BEGINNING

    @classmethod
    def read(cls, windows: WindowDefinition, state: StateRows) -> Watermark:
        """Read the watermark of the epoch before. Raises `PlanMismatch` if its windows had another definition."""
        rows = _read_rows(state)
        if foreign := {row["definition"] for row in rows} - {windows.definition()}:
            raise PlanMismatch(
                f"windows {windows.name}: the state holds windows of [{foreign.pop()}], the pipeline says "
                f"[{windows.definition()}]: give the new windows another name, or take the change back"
            )
        whole = windows.partition is None  # changing this begins with new partitions
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
        """The watermark after an epoch. `greatest`: the greatest event time of each partition that had rows."""
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
        """The watermark with `forgotten` advanced by the windows' lateness; it never goes back."""
        return replace(self, forgotten=max(self.forgotten, self.bound - micros(windows.lateness)))

    def table(self, windows: WindowDefinition) -> pa.Table:
        """The watermark as rows of the state."""
        forgotten = self.forgotten if self.forgotten >= FIRST else None  # before the year 1 none is forgotten
        rows = [
            (name, seen.greatest, seen.idle, self.bound, forgotten, windows.definition())
            for name, seen in sorted((self.partitions or {}).items())
        ]
        arrays = []
        for place, field in enumerate(_ARROW):
            kind = pa.int64() if pa.types.is_timestamp(field.type) else field.type
            arrays.append(pa.array([row[place] for row in rows], kind).cast(field.type))
        return pa.table(arrays, _ARROW)


def _read_rows(state: StateRows) -> list[dict[str, Any]]:
    """The state's rows, times in µs."""
    table = state.local_rows()
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
