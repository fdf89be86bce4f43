"""A warm Connect session with Lockstep's settings."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from lockstep.spark.session import connect

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def session(spark_connect: str) -> Iterator[SparkSession]:
    opened = connect(spark_connect)
    yield opened
    opened.stop()
