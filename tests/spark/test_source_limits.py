"""What Spark takes for a good record and is none, as docs/sources.md tells, and the way out that stands there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from lockstep.sources import FileSource, SourceContext

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PAGE = Path(__file__).parents[2] / "docs" / "sources.md"


def read(spark: SparkSession, path: Path, **arguments: Any) -> tuple[list[tuple[Any, ...]], int]:
    """The good rows, and how many are malformed."""
    source = FileSource(str(path), **arguments).open(SourceContext.for_reading("test", "input", {}))
    position = {"files": [{"path": str(path), "size": 0, "mtime_ns": 0}]}
    records = source.read_records(spark, None, position)
    return [tuple(row) for row in records.good().collect()], records.bad().count()


def documented(spark: SparkSession, path: Path) -> list[tuple[Any, ...]]:
    """The rows that the page's own check lets through."""
    [check] = re.findall(r"```python\n(def one_object_a_line.*?)```", PAGE.read_text(), re.S)
    found: dict[str, Any] = {}
    exec(check, found)
    return [tuple(row) for row in found["one_object_a_line"](spark.read.text(f"file://{path}")).collect()]


TRAILING = ['{"id": 2} {"id": 3}', '{"id": 2}, {"id": 3}', '{"id": 2} rest', '{"id": 2}}', '{"id": 2}] [{"id": 3}']


@pytest.mark.fault("J4")
def test_text_behind_the_first_json_object_of_a_line_is_seen_by_the_documented_check_only(
    spark: SparkSession, tmp_path: Path, subtests: pytest.Subtests
) -> None:
    for line in TRAILING:
        with subtests.test(line=line):
            path = tmp_path / "a.json"
            path.write_text(f'{{"id": 1}}\n{line}\n')
            assert read(spark, path, format="json", schema="id BIGINT") == ([(1,), (2,)], 0)
            with pytest.raises(Exception, match=r"MALFORMED_RECORD_IN_PARSING|more than one object"):
                documented(spark, path)


def test_the_documented_check_lets_whole_objects_through(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text('{"id": 1}\n\n {"id": 2} \n{"id": 3, "more": ["}", {}]}\n')
    assert documented(spark, path) == [(1,), (2,), (3,)]


@pytest.mark.fault("J4")
def test_a_quote_that_is_not_closed_is_seen_in_every_column_but_the_last(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text('id,name,note\n1,a,"open\n2,"b,x\n')
    schema = "id BIGINT, name STRING, note STRING"
    assert read(spark, path, schema=schema) == ([(1, "a", "open")], 1)


def test_a_quote_that_is_not_closed_takes_the_lines_after_it_where_values_may_have_many(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = tmp_path / "a.csv"
    path.write_text('id,note\n1,"open\n2,x\n')
    assert read(spark, path, schema="id BIGINT, note STRING", options={"multiLine": "true"}) == (
        [(1, "open\n2,x\n")],
        0,
    )
