"""What staging is told of a table's partitions."""

from __future__ import annotations

from typing import Any

from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table.metadata import new_table_metadata
from pyiceberg.table.sorting import UNSORTED_SORT_ORDER
from pyiceberg.transforms import DayTransform, IdentityTransform, Transform, VoidTransform
from pyiceberg.types import LongType, NestedField, StringType, StructType, TimestamptzType

from lockstep.sinks.iceberg._partitioning import texts_of


def test_columns_are_told_with_their_times_and_parts_of_columns_are_not() -> None:
    place = StructType(NestedField(4, "city", StringType()))
    columns = (
        NestedField(1, "origin", StringType()),
        NestedField(2, "at", TimestamptzType()),
        NestedField(3, "place", place),
        NestedField(5, "old", LongType()),
    )
    transforms: list[tuple[int, Transform[Any, Any]]] = [
        (1, IdentityTransform()),
        (2, DayTransform()),
        (4, IdentityTransform()),
        (5, VoidTransform()),
    ]
    fields = [PartitionField(id, 1000 + id, one, f"field_{id}") for id, one in transforms]
    metadata = new_table_metadata(Schema(*columns), PartitionSpec(*fields), UNSORTED_SORT_ORDER, "file:///table")
    assert texts_of(metadata) == ("origin", "day(at)")
