"""What the project wants to reach, each by figures of one run: as a ratio, or in seconds and rows of this machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from statistics import median
from typing import Any

#: What every part prints with --json: group, way, rows, seconds by round.
Measured = Mapping[str, Any]


class Kind(Enum):
    """How a figure comes from what was measured; the value says how it is written."""

    TIME = "{:.2f}x the time"  #: of another way's, at most
    BYTES = "{:.3f}x the bytes"  #: of another way's, at most
    SPEED = "{:.0%} of the speed"  #: of another way's, at least
    SECONDS = "{:.2f} s"  #: on this machine, at most
    RATE = "{:,.0f} rows/s"  #: on this machine, at least
    LATER = "{:.1f} ms later"  #: of the slowest one in a hundred, than another way's, at most

    @property
    def is_least(self) -> bool:
        return self in (Kind.SPEED, Kind.RATE)


@dataclass(frozen=True)
class Aim:
    """`part`: whose run; `way`, `of`: ways of `group`; `bound`: what the figure of this kind is to reach."""

    part: str
    group: str
    way: str
    kind: Kind
    bound: float
    of: str = ""

    @property
    def name(self) -> str:
        told = f"{self.group}: {self.way}"
        return f"{told}, of {self.of}" if self.of else told

    def figure(self, measured: Sequence[Measured]) -> float | None:
        """None where a way of it wasn't measured, or failed."""
        mine, other = self._find(self.way, measured), self._find(self.of, measured)
        if mine is None or (other is None and self.of):
            return None
        seconds = float(median(mine["seconds"]))
        match self.kind:
            case Kind.LATER:
                return (
                    1000 * (percentile(mine["seconds"], 0.99) - percentile(other["seconds"], 0.99)) if other else None
                )
            case Kind.SECONDS:
                return seconds
            case Kind.RATE:
                return float(mine["rows"] / seconds)
            case Kind.TIME:
                return seconds / float(median(other["seconds"])) if other else None
            case Kind.BYTES:
                return float(median(mine["bytes"])) / float(median(other["bytes"])) if other else None
            case Kind.SPEED:
                return float(median(other["seconds"])) / seconds if other else None

    def is_met(self, figure: float) -> bool:
        return figure >= self.bound if self.kind.is_least else figure <= self.bound

    def write(self, figure: float) -> str:
        return self.kind.value.format(figure)

    @property
    def wanted(self) -> str:
        return f"at {'least' if self.kind.is_least else 'most'} {self.write(self.bound)}"

    def _find(self, way: str, measured: Sequence[Measured]) -> Measured | None:
        found = (one for one in measured if (one["group"], one["way"]) == (self.group, way) and one["seconds"])
        return next(found, None)


def percentile(values: Sequence[float], share: float) -> float:
    """The value that this share of `values` doesn't exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


_COPY, _LOAD = "COPY of a ready file", "LOAD DATA of a ready file"
AIMS = (
    Aim("epochs", "epochs", "one 100k epoch", Kind.SECONDS, 0.5),
    Aim("epochs", "epochs", "30 epochs of 100k, packed", Kind.SECONDS, 6.0),
    Aim("epochs", "epochs", "whole epoch", Kind.SPEED, 1.6, "Spark JDBC append"),
    Aim("epochs", "epochs", "whole epoch, Parquet", Kind.SPEED, 2.5, "Spark JDBC append"),
    Aim("epochs", "epochs", "whole epoch", Kind.TIME, 1.15, "bare Spark + COPY"),
    Aim("epochs", "epochs", "whole epoch, Parquet", Kind.TIME, 1.15, "bare Spark + COPY, Parquet"),
    Aim("epochs", "DAG runs", "epoch", Kind.TIME, 1.3, "empty"),
    Aim("year", "demo", "365 days, packed", Kind.SECONDS, 180.0),
    Aim("sinks", "PostgreSQL", "two_phase", Kind.SPEED, 0.75, _COPY),
    Aim("sinks", "PostgreSQL", "write_ahead", Kind.SPEED, 0.75, _COPY),
    Aim("sinks", "PostgreSQL", "upsert", Kind.SPEED, 0.40, _COPY),
    Aim("sinks", "MariaDB", "upsert", Kind.SPEED, 0.60, _LOAD),
    Aim("sinks", "stdout", "StdoutSink", Kind.RATE, 200_000),
    Aim("sinks", "TCP", "TcpSink", Kind.RATE, 200_000),
    Aim("sinks", "HTTP", "HttpSink", Kind.RATE, 200_000),
    Aim("lake", "whole epochs", "DeltaSink", Kind.TIME, 1.0, "Spark's Delta append"),
    Aim("lake", "whole epochs", "IcebergSink", Kind.TIME, 1.0, "Spark's Delta append"),
    Aim("lake", "the bytes of whole epochs", "DeltaSink", Kind.BYTES, 1.02, "Spark's Delta append"),
    Aim("lake", "the bytes of whole epochs", "IcebergSink", Kind.BYTES, 1.02, "Spark's Delta append"),
    Aim("lake", "100 files of 30,000 rows", "DeltaSink, publish", Kind.SECONDS, 0.3),
    Aim("lake", "100 files of 30,000 rows", "IcebergSink, publish", Kind.SECONDS, 0.3),
    Aim("audits", "whole epochs", "2 of what the seal counts", Kind.TIME, 1.05, "no audits"),
    Aim("audits", "whole epochs", "5 ready ones, of 3 columns", Kind.TIME, 1.1, "no audits"),
    Aim("audits", "whole epochs", "3 that send to quarantine, none goes", Kind.TIME, 1.1, "no audits"),
    Aim("windows", "cut in 1", "Lockstep, 1 epochs", Kind.TIME, 1.0, "Structured Streaming, 1 batches"),
    Aim("windows", "cut in 10", "Lockstep, 10 epochs", Kind.TIME, 1.2, "Structured Streaming, 10 batches"),
    Aim("windows", "cut in 1", "Lockstep, 1 epochs", Kind.TIME, 2.0, "Flink 2.2.0, exactly once"),
    Aim("kafka", "KafkaSink", "exactly_once", Kind.SPEED, 0.90, "at_least_once"),
    Aim("kafka", "KafkaSink", "exactly_once, JSON", Kind.SPEED, 0.95, "at_least_once, JSON"),
    Aim("kafka", "bytes", "KafkaSource, stage job", Kind.SPEED, 1.0, "Spark alone"),
    Aim("kafka", "JSON", "KafkaSource, stage job", Kind.SPEED, 1.0, "Spark alone"),
    Aim("state", "1,000 keys touched", "a state of 1,000 keys, 16 buckets", Kind.TIME, 1.5, "no state"),
    Aim("state", "10 keys touched", "a state of 100 keys, 256 buckets", Kind.TIME, 1.5, "no state"),
    Aim("ledger", "ledger", "begin, large", Kind.LATER, 5.0, "begin, small"),
    Aim("ledger", "ledger", "commit, large", Kind.LATER, 5.0, "commit, small"),
    Aim("ledger", "ledger", "status of a pipeline, large", Kind.LATER, 5.0, "status of a pipeline, small"),
    Aim("ledger", "ledger", "status of all, large", Kind.SECONDS, 2.0),
    Aim("ledger", "load", "an epoch, begun each second", Kind.SECONDS, 1.0),
    *(
        Aim("pages", "pages", f"{page}, {size}", Kind.SECONDS, 0.3)
        for page in ("pipelines", "a pipeline, newest 50", "a pipeline, newest 200", "an epoch")
        for size in ("small", "large")
    ),
)
