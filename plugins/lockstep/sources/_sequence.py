"""A counter, the classic of checkpointed sources: a data source of Spark's, read through the adapter."""

from __future__ import annotations

from typing import ClassVar

from lockstep.epoch import Json
from lockstep.sources._data_source import DataSourceSource


class SequenceSource(DataSourceSource):
    """The numbers from `first` up to, but not with, `last`, in a column `value BIGINT`; `rows_per_epoch` an epoch."""

    operational: ClassVar[frozenset[str]] = frozenset({"rows_per_epoch", "partitions"})

    def __init__(self, rows_per_epoch: int, *, first: int = 0, last: int | None = None, partitions: int = 2) -> None:
        options = {"first": str(first), "partitions": str(partitions)}
        super().__init__(
            "lockstep.compute.sequence:SequenceDataSource",
            options=options if last is None else {**options, "last": str(last)},
            max_rows_per_epoch=rows_per_epoch,
        )

    def arguments(self) -> dict[str, Json]:
        numbers = {name: int(value) for name, value in self.options.items()}
        return {"rows_per_epoch": self.max_rows_per_epoch, **numbers}
