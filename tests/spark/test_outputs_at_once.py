"""The outputs of an epoch are written at once, and a failing one ends the others."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from lockstep.errors import StageFailed
from tests.spark.pipelines import pipeline_of
from tests.spark.staged import csv, stage
from tests.spark.test_drivers import GOOD

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def touching(mine: str, theirs: str, seconds: float) -> Callable[[int], int]:
    """Says where it has come to, and waits until the other one has."""

    def wait(value: int) -> int:
        Path(mine).touch()
        deadline = time.monotonic() + seconds
        while not Path(theirs).exists():
            if time.monotonic() > deadline:
                raise TimeoutError(f"{theirs} isn't there")
            time.sleep(0.01)
        return value

    return wait


def meeting(home: Path, first: float, second: float) -> Callable[[Mapping[str, DataFrame]], Mapping[str, DataFrame]]:
    here, there = str(home / "here"), str(home / "there")

    def transform(inputs: Mapping[str, DataFrame]) -> Mapping[str, DataFrame]:
        from pyspark.sql import functions as F

        frame = inputs["input"]
        return {
            "rows": frame.withColumn("id", F.udf(touching(here, there, first), "bigint")("id")),
            "others": frame.withColumn("id", F.udf(touching(there, here, second), "bigint")("id")),
        }

    return transform


def test_two_outputs_are_written_at_once(session: SparkSession, tmp_path: Path) -> None:
    found = stage(session, tmp_path, pipeline_of(csv(tmp_path, GOOD), meeting(tmp_path, 60, 60), ("rows", "others")))
    assert found.result.rows == {"rows": 2, "others": 2}
    assert found.result.sources["input"].rows == 2
    assert found.rows("others") == found.rows("rows")


def failing(inputs: Mapping[str, DataFrame]) -> Mapping[str, DataFrame]:
    from pyspark.sql import functions as F

    def fail(value: int) -> int:
        raise ValueError("not this one")

    def wait(value: int) -> int:
        time.sleep(200)
        return value

    frame = inputs["input"]
    return {
        "rows": frame.withColumn("id", F.udf(wait, "bigint")("id")),
        "others": frame.withColumn("id", F.udf(fail, "bigint")("id")),
    }


@pytest.mark.timeout(120)
def test_an_output_that_fails_ends_the_others(session: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(StageFailed, match=r"ValueError \(.*test_outputs_at_once\.py.* in fail"):
        stage(session, tmp_path, pipeline_of(csv(tmp_path, GOOD), failing, ("rows", "others")))
