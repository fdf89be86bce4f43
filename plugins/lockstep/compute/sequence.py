"""A counter as a streaming data source, the smallest example of one. It is sent to Spark's workers by value."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

if TYPE_CHECKING:
    from lockstep.spark._pyspark import ReadLimit

_BATCH = 65_536  #: rows


@dataclass
class Numbers(InputPartition):
    """The numbers first, …, last - 1."""

    first: int
    last: int


class SequenceDataSource(DataSource):
    """Options: `first`, `last` (exclusive; without it the counter never ends), `partitions` of each range."""

    @classmethod
    def name(cls) -> str:
        return "sequence"

    def schema(self) -> str:
        return "value BIGINT"

    def streamReader(self, schema: StructType) -> SequenceReader:
        last = self.options.get("last")
        first, partitions = int(self.options.get("first", "0")), int(self.options.get("partitions", "2"))
        return SequenceReader(first, int(last) if last is not None else None, partitions)


class SequenceReader(DataSourceStreamReader):
    """An offset is the next number: {"next": n}."""

    def __init__(self, first: int, last: int | None, partitions: int) -> None:
        self._first, self._last, self._partitions = first, last, partitions

    def initialOffset(self) -> dict[str, int]:
        return {"next": self._first}

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:
        if (max_rows := getattr(limit, "max_rows", None)) is not None:  # older Sparks lack the class
            end = start["next"] + max_rows
            return {"next": end if self._last is None else min(end, max(self._last, start["next"]))}
        if vars(limit) or self._last is None:
            raise ValueError("a sequence without a last number is read by a number of rows at a time")
        return {"next": max(self._last, start["next"])}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        size = -(-(end["next"] - start["next"]) // self._partitions) or 1
        return [Numbers(n, min(n + size, end["next"])) for n in range(start["next"], end["next"], size)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, Numbers)
        for n in range(partition.first, partition.last, _BATCH):
            values = pa.array(range(n, min(n + _BATCH, partition.last)), pa.int64())
            yield pa.RecordBatch.from_arrays([values], ["value"])
