"""Ranges of lines read by Spark: the same records, and the same bad ones, as of whole files; over every driver."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from lockstep.epoch import Claim, SourceRange
from lockstep.errors import BadRecords
from lockstep.sources import FileSource, SourceContext
from lockstep.sources.files.line_pieces import FILE, VALUE, Header, reader_of, tasks_of
from lockstep.wal.manifest import SourceCount
from tests.spark.pipelines import pipeline_of
from tests.spark.staged import Staged, stage

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA = "id BIGINT, name STRING, `a 'b'` DOUBLE"
HEADER = "id,name,a 'b'\n"


class Grower:
    """Stages epoch after epoch of one file, as a ledger would cut them."""

    def __init__(self, spark: SparkSession, folder: Path, name: str = "in.csv", **arguments: Any) -> None:
        arguments = {"schema": SCHEMA, **arguments}
        self.path, self._spark, self._folder = folder / "landing" / name, spark, folder
        self.path.parent.mkdir()
        self.source = FileSource(f"{folder}/landing", grow=True, **arguments)
        self.pipeline = pipeline_of(self.source)
        self._claims: dict[str, Claim] = {}

    def append(self, text: str | bytes) -> None:
        with self.path.open("ab") as file:
            file.write(text.encode() if isinstance(text, str) else text)

    def stage(self) -> Staged:
        context = SourceContext("test", "input", lambda paths: set(), claims=lambda paths: self._claims)
        source = self.pipeline.sources["input"].open(context)
        end = source.latest(None, None)
        staged = stage(self._spark, self._folder, self.pipeline, {"input": SourceRange(None, end)})
        self._claims |= {claim.path: claim for claim in source.claims(None, end) if isinstance(claim, Claim)}
        return staged


def test_each_epoch_reads_its_lines_and_only_the_first_one_a_header(session: SparkSession, tmp_path: Path) -> None:
    grower = Grower(session, tmp_path)
    grower.append("\ufeff" + HEADER + '1,x,0.5\r\n\n2,"y, ""z""",\n3,half')
    first = grower.stage()
    assert [tuple(row.values()) for row in first.rows()] == [(1, "x", 0.5), (2, 'y, "z"', None)]
    assert first.result.sources == {"input": SourceCount(2)}
    grower.append(" a line,1\n")
    assert [row["name"] for row in grower.stage().rows()] == ["half a line"]
    assert grower.stage().result.sources == {"input": SourceCount(0)}


def test_bad_lines_fail_the_epoch_by_file_and_line_or_go_to_quarantine(session: SparkSession, tmp_path: Path) -> None:
    grower = Grower(session, tmp_path)
    grower.append(HEADER + "1,x,1\n")
    grower.stage()
    grower.append("2,x,1\ntwo,x,1\n3\n")
    with pytest.raises(
        BadRecords, match=r"(?s)2 of 3 records.*in\.csv:4: column id is no BIGINT\n.*in\.csv:5: another number"
    ):
        grower.stage()
    keeping = replace(grower.source, on_bad_records="quarantine")
    grower.pipeline = pipeline_of(keeping)
    staged = grower.stage()
    assert staged.result.sources == {"input": SourceCount(3, 2)}
    assert [row["id"] for row in staged.rows()] == [2]


def test_lines_of_json_and_of_text_grow_too(session: SparkSession, tmp_path: Path) -> None:
    grower = Grower(session, tmp_path, "in.json", format="json", schema="id BIGINT, tags ARRAY<STRING>")
    grower.append('{"id": 1, "tags": ["a", "b"]}\n \t\n{"id": 2}\n')
    grower.stage()
    grower.append('{"id": 3, "tags": []}\n{"id": "no"}\n')
    with pytest.raises(BadRecords, match=r"(?s)1 of 2 .*json:5: column id is no BIGINT$"):
        grower.stage()
    (tmp_path / "text").mkdir()
    text = Grower(session, tmp_path / "text", "in.txt", format="text", schema=None)
    text.append("a\n\n b \n")
    assert [row["value"] for row in text.stage().rows()] == ["a", "", " b "]


def test_a_whole_file_and_its_ranges_give_the_same_records(session: SparkSession, tmp_path: Path) -> None:
    lines = [f'{n},"name, {n % 7}",{n / 3}\n' for n in range(3000)]
    grower = Grower(session, tmp_path)
    grower.append(HEADER)
    found = []
    for start in range(0, 3000, 1000):
        grower.append("".join(lines[start : start + 1000]))
        found += grower.stage().rows()
    whole = pipeline_of(FileSource(f"{tmp_path}/landing", schema=SCHEMA))
    assert sorted(map(str, found)) == sorted(map(str, stage(session, tmp_path, whole).rows()))


def test_pieces_of_a_range_cut_no_line_and_lose_none(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    lines = ["x" * (n % 5) for n in range(200)] + ["ü" * 40, "", "\r", "end"]
    data = "".join(f"{line}\n" for line in lines).encode()
    path.write_bytes(b"before\n" + data + b"after")
    for size in (1, 2, 3, 7, 64, 10_000):
        tasks = tasks_of([(str(path), 7, 7 + len(data))], size)
        numbers = [_numbers(range(len(tasks)))]
        batches = list(reader_of(tasks, None)(numbers))
        assert [line for batch in batches for line in batch.column(VALUE).to_pylist()] == [
            line.removesuffix("\r") for line in lines
        ]
        assert {line for batch in batches for line in batch.column(FILE).to_pylist()} == {str(path)}


def test_bytes_that_are_no_utf_8_are_read_as_java_reads_them(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    path.write_bytes(b"a\xffb\nc\r\r\n")
    [batch] = reader_of(tasks_of([(str(path), 0, 8)]), None)([_numbers([0])])
    assert batch.column(VALUE).to_pylist() == ["a\ufffdb", "c\r"]


def _numbers(found: Any) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"id": list(found)})


def test_headers_are_read_as_the_options_say(tmp_path: Path, subtests: pytest.Subtests) -> None:
    for text, separator, quote in [
        ('"a",b', ",", '"'),
        ("a\tB", "\t", '"'),
        ("'a'||b", "||", "'"),
        ("a;b", ";", ""),
        ("a||b", "||", ""),
    ]:
        with subtests.test(text=text):
            path = tmp_path / "lines"
            path.write_text(f"{text}\nx\n")
            tasks = tasks_of([(str(path), 0, path.stat().st_size)])
            [batch] = reader_of(tasks, Header(("A", "b"), separator, quote))([_numbers([0])])
            assert batch.column(VALUE).to_pylist() == ["x"]
            with pytest.raises(BadRecords, match=r"CSV header does not conform.*Header: a, \? Schema: c, A"):
                list(reader_of(tasks, Header(("c", "A"), separator, quote))([_numbers([0])]))
