"""What stands in CSV, JSON, growing files and Kafka's records is read as it is, or its record is malformed."""

from __future__ import annotations

import json
import math
import re
from datetime import UTC, date, datetime, timedelta
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, Literal

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from lockstep.errors import BadRecords, InvalidPipeline
from lockstep.sources import FileSource, KafkaSource
from lockstep.sources._checked_schema import BAD
from lockstep.sources.files._lines import read_ranges
from lockstep.sources.files.frozen import FileRange
from lockstep.sources.kafka._decoding import Decoding
from lockstep.sources.records import FrozenFiles, SourceRecords
from tests.spark.pipelines import pipeline_of
from tests.spark.staged import csv, stage

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TYPES = {
    "t": "TINYINT",
    "n": "INT",
    "b": "BIGINT",
    "d": "DECIMAL(10,2)",
    "w": "DECIMAL(38,4)",
    "f": "FLOAT",
    "x": "DOUBLE",
    "o": "BOOLEAN",
    "day": "DATE",
    "at": "TIMESTAMP",
    "ntz": "TIMESTAMP_NTZ",
    "v": "VARCHAR(3)",
    "s": "STRING",
}
SCHEMA = ", ".join(["id BIGINT NOT NULL", *(f"{name} {type}" for name, type in TYPES.items())])
Kind = Literal["csv", "json"]
BAD_ONE = object()


def strictly(kind: Kind, type: str, text: str) -> Any:
    """What the text says, or BAD_ONE."""
    size = {"TINYINT": 7, "INT": 31, "BIGINT": 63}.get(type)
    clock = r"(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,6}0*)?)?%s)?" % (
        r"(?:Z|[-+]\d\d:?\d\d)?" if type == "TIMESTAMP" else ""
    )
    number = r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?"
    value: Any
    try:
        if size is not None:
            return int(text) if re.fullmatch(r"[-+]?\d+", text) and -(2**size) <= int(text) < 2**size else BAD_ONE
        if type.startswith("DECIMAL"):
            scale = int(type[:-1].rpartition(",")[2])
            value = Decimal(text) if re.fullmatch(number, text) and not re.search(r"[eE][-+]?\d{4}", text) else None
            if kind == "json" and value is not None:  # behind these decimals Spark has no digits to read by
                value = value.quantize(Decimal(1).scaleb(-(28 + scale)), ROUND_HALF_UP, Context(prec=99, Emin=-99999))
            places = int(value.normalize(Context(prec=99)).as_tuple().exponent) if value is not None else -99
            return value if value is not None and places >= -scale else BAD_ONE
        if type in ("FLOAT", "DOUBLE"):
            if re.fullmatch(r"NaN|nan|[-+]?[Ii]nf(inity)?", text):
                return float(text)
            double = float(text) if re.fullmatch(number, text, re.ASCII) else math.inf
            lost = kind == "csv" and double == 0 and re.search("[1-9]", text.lower().partition("e")[0])
            return BAD_ONE if math.isinf(double) or lost else double
        if type == "BOOLEAN":
            return {"true": True, "false": False}.get(text.lower(), BAD_ONE)
        if type == "DATE":
            return date.fromisoformat(text) if re.fullmatch(r"\d{4}-\d\d-\d\d", text, re.ASCII) else BAD_ONE
        if type.startswith("TIMESTAMP"):
            if type == "TIMESTAMP" and re.fullmatch(r"1\d{9}", text, re.ASCII):  # in JSON: seconds
                return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=int(text))
            if not re.fullmatch(r"\d{4}-\d\d-\d\d" + clock, text, re.ASCII):
                return BAD_ONE
            moment = datetime.fromisoformat(re.sub(r"(\.\d{6})0+", r"\1", text))
            return moment if moment.tzinfo or type != "TIMESTAMP" else moment.replace(tzinfo=UTC)
    except (ValueError, InvalidOperation, OverflowError):
        return BAD_ONE
    return BAD_ONE if type == "VARCHAR(3)" and len(text) > 3 else text


def same(kind: Kind, type: str, value: Any, expected: Any) -> bool:
    if kind == "json" and type == "DECIMAL(38,4)":
        return True  # Spark has no more digits to read a number by, so it rounds
    if type == "TIMESTAMP":
        value = value.astimezone(UTC) if value.tzinfo else value.replace(tzinfo=UTC)
    if isinstance(expected, float) and type == "FLOAT":
        return math.isclose(value, expected, rel_tol=1e-6, abs_tol=1e-44) or (
            math.isnan(value) and math.isnan(expected)
        )
    return bool(value == expected or (value != value and expected != expected))


def read(spark: SparkSession, path: Path, kind: Kind, way: str, schema: str = SCHEMA, **options: str) -> SourceRecords:
    if way == "kafka":
        part = Decoding.of("test", "value", "json", schema)
        frame = spark.createDataFrame([(bytearray(line),) for line in path.read_bytes().splitlines()], "value BINARY")
        frame = frame.selectExpr("*", f"{part.decode_sql} AS one")
        good = frame.where(f"NOT {part.fault_sql('one')}").selectExpr(f"{part.cast_sql('one')} AS one").select("one.*")
        return SourceRecords(good.drop(BAD), ())
    source = FileSource(str(path), format=kind, schema=schema, options=options, grow=way == "growing")
    if way == "growing":
        size = path.stat().st_size
        return read_ranges(spark, source.reading, [FileRange(str(path), 0, size, "", size, 0)])
    listing = FrozenFiles({path.as_uri(): {"size": path.stat().st_size}})
    if way == "sound":
        found = source.reading.read_sound(spark, listing)
        assert found is not None
        return found
    return source.reading.read(spark, listing)


def write(path: Path, kind: Kind, values: list[tuple[str, str]], *, quoted: bool = True) -> None:
    lines = [",".join(["id", *TYPES])] if kind == "csv" else []
    for id, (name, text) in enumerate(values):
        if kind == "csv":
            field = '"' + text.replace('"', '""') + '"'
            lines.append(",".join([str(id), *(field if name == column else "" for column in TYPES)]))
        else:
            lines.append(f'{{"id": {id}, "{name}": {json.dumps(text) if quoted else text}}}')
    path.write_bytes(("\n".join(lines) + "\n").encode())


def pairs(lines: str) -> list[tuple[str, str]]:
    """A column and a text for each; of several lines, each with its column first, and `_` for a blank."""
    return [(name, text.replace("_", " ")) for name, *texts in map(str.split, lines.splitlines()) for text in texts]


GOOD = pairs("""t -128
n 2147483647
b -9223372036854775808
d 1234.50 -0.1000 1e3
w 9999999999999999999999999999999999.1234
f 1.5
x -1.5e300 NaN
o true
day 0001-01-01 2024-02-29
at 2026-01-05T10:30Z 2026-01-05_10:30-02:00 2026-01-05T10:30:00.123456+02:00 2026-01-05 9999-12-31T23:59:59Z
ntz 2026-01-05_10:30
v xyz
s 5\u00e9""")
GOOD.append(("s", ""))
WRONG = pairs("""t 200 128
n 1.0
b 1e3
d 1,50 1234,5 1.005 0.00000000001 1e-40
w 0.12345
f 1e39
d 1E10000000 -1e-9999999
x 1e400 1d 0x1p3 _1 1e-400
o 1
day 20260105 202601 5 2026-01-05_junk 2026-1-5 2026-02-30 0000-01-01 2026-01-5T 2026-01-5_ +12026-01-05
day 2026-01-05T00:00:00
at 10:30:00 T10:30 2026 20260105 1767225600000 9223372036854775 2026-01-05_10:30:00.1234567 2026-01-05T10
at 2026-01-05T25:00Z
ntz 2026-01-05T10:30:00Z 10:30:00
v wxyz""")
WRONG.append(("at", "2026-01-05\n"))
NUMBERS = [(name, text) for name, text in GOOD + WRONG if re.fullmatch(r"-?\d+(\.\d+)?([eE][-+]?\d+)?", text)]
NUMBERS = [(name, text) for name, text in NUMBERS if not re.match(r"-?0\d", text) and name not in ("s", "v")]
CSV: Kind = "csv"
JSON: Kind = "json"
WAYS = [(CSV, "whole"), (CSV, "growing"), (JSON, "whole"), (JSON, "growing"), (JSON, "kafka")]


@pytest.mark.fault("V1")
@pytest.mark.sample(2)
@pytest.mark.parametrize(("kind", "way"), WAYS)
def test_known_texts_are_what_they_say_or_bad(session: SparkSession, tmp_path: Path, kind: Kind, way: str) -> None:
    """JSON numbers and texts both."""
    texts = [(name, text) for name, text in GOOD + WRONG if "\n" not in text or kind == "json"]
    for quoted in (True, False) if kind == "json" else (True,):
        values = texts if quoted else NUMBERS
        write(tmp_path / f"{quoted}", kind, values, quoted=quoted)
        rows = {row["id"]: row.asDict() for row in read(session, tmp_path / f"{quoted}", kind, way).good().collect()}
        for id, (name, text) in enumerate(values):
            only_numbers = kind == "json" and quoted and name in "tnbo"
            strange = kind == "json" and quoted and (name == "f" or (name == "x" and text != "NaN") or text == "1e3")
            if (name, text) in GOOD and not only_numbers and not strange:
                assert id in rows, (name, text, quoted)
            if id in rows:
                assert same(kind, TYPES[name], rows[id][name], strictly(kind, TYPES[name], text)), (
                    name,
                    text,
                    rows[id][name],
                )


PARTS = [
    *("", "0", "5", "-", "+", ".", ",", "e", "E", "T", ":", "Z", " ", "NaN", "d", "f", "0x", "true", "\u0665", "\ufffd")
]
PARTS += ["2026", "-01", "-05", "10:30", ".5", "00", "999999", '"', "'", "\\", "{", "]", "\u00e9", "\U0001f600"]


def drawn(random: Random) -> str:
    """A text that is nothing, or nearly a value, or one."""
    near = [text for _, text in GOOD + WRONG if "\n" not in text]
    whole = random.choice([random.choice(near), str(random.randrange(-(10**20), 10**20)), repr(random.gauss(0, 1e9))])
    place = random.randrange(len(whole) + 1)
    changed = whole[:place] + random.choice(PARTS) + whole[place + random.randrange(2) :]
    text = random.choice([whole, changed, "".join(random.choices(PARTS, k=random.randrange(6)))])
    return f"{random.randrange(-9, 9)}e{random.randrange(-(10**9), 10**9)}" if random.random() < 0.02 else text


@pytest.mark.fault("V1")
@settings(
    max_examples=2, phases=[Phase.generate], deadline=None, suppress_health_check=list(HealthCheck), database=None
)
@given(st.integers(0, 2**32))
def test_any_text_is_what_it_says_or_bad(session: SparkSession, tmp_path_factory: Any, seed: int) -> None:
    """Many records for each reader at once, as Spark takes a moment for each; nothing could be made smaller."""
    folder, random = tmp_path_factory.mktemp("drawn"), Random(seed)
    values = [(random.choice(list(TYPES)), drawn(random)) for _ in range(1500)]
    for kind, way in WAYS:
        write(folder / f"{kind}{way}", kind, values)
        rows = {row["id"]: row.asDict() for row in read(session, folder / f"{kind}{way}", kind, way).good().collect()}
        assert kind == "json" or len(rows) > len(values) / 10
        for id, row in rows.items():
            name, text = values[id]
            assert same(kind, TYPES[name], row[name], strictly(kind, TYPES[name], text)), (
                kind,
                way,
                name,
                text,
                row[name],
            )


@pytest.mark.fault("V2")
def test_csv_tells_the_empty_text_from_nothing(session: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes(b'id,name,n\n1,"",\n2,,\n3,x,"5"\n4,NA,\n')
    schema = "id BIGINT, name STRING, n INT"
    for way in ("whole", "growing", "sound"):
        rows = read(session, tmp_path / "in", "csv", way, schema).good().collect()
        assert [tuple(row) for row in rows] == [(1, "", None), (2, None, None), (3, "x", 5), (4, "NA", None)]
        rows = read(session, tmp_path / "in", "csv", way, schema, nullvalue="NA", emptyValue="-").good().collect()
        assert [row["name"] for row in rows] == ["-", None, "x", None]


@pytest.mark.fault("V3")
def test_bytes_that_are_no_text_make_a_bad_record(session: SparkSession, tmp_path: Path) -> None:
    lines = {"csv": b"id,name\n1,Jos\xe9\n2,x\n", "json": b'{"id": 1, "name": "Jos\xe9"}\n{"id": 2, "name": "x"}\n'}
    for kind, way in WAYS:
        (tmp_path / kind).write_bytes(lines[kind])
        found = read(session, tmp_path / kind, kind, way, "id BIGINT, name STRING").good().collect()
        assert [row["id"] for row in found] == [2]
    (tmp_path / "2013-01-02.txt").write_bytes(b"Jos\xe9\nx\n")
    text = FileSource(f"{tmp_path}/{{interval_start:%Y-%m-%d}}.txt", format="text", on_bad_records="quarantine")
    staged = stage(session, tmp_path, pipeline_of(text))
    assert ([row["value"] for row in staged.rows()], staged.result.sources["input"].quarantined) == (["x"], 1)
    (tmp_path / "bytes").write_bytes(b"id,name\n1,Jos\xe9\x80\n2,\x81\n")
    for way in ("whole", "sound"):
        told = read(session, tmp_path / "bytes", "csv", way, "id BIGINT, name STRING", encoding="cp1252")
        if way == "whole":
            assert [tuple(row) for row in told.good().collect()] == [(1, "Jos\u00e9\u20ac")]
        else:
            with pytest.raises(Exception, match="MALFORMED_RECORD"):
                told.good().collect()


@pytest.mark.fault("V4")
@pytest.mark.parametrize(
    ("options", "schema", "told"),
    [
        *[({name: "x"}, "id INT", "options") for name in ("lineSep", "comment", "timeZone", "unescapedQuoteHandling")],
        ({"multiLine": "true", "escape": "/"}, "id INT", "escape must be the quote"),
        ({"timestampFormat": "yyyy-MM-dd HH:mm:ss.SSSSSSSSS"}, "id TIMESTAMP", "six digits of a second"),
        *[({"encoding": name}, "id INT", f"encoding '{name}' isn't supported for csv") for name in ("UTF-16", "nope")],
        ({}, "id INTERVAL DAY", "column id: a text of csv can't be checked as INTERVAL DAY"),
        ({"locale": "xx"}, "id DECIMAL(4,1)", "locale='xx'"),
        ({}, "id INT COMMENT 'unit=seconds'", "unit=seconds requires TIMESTAMP"),
        ({}, "id TIMESTAMP COMMENT 'unit=USD'", "unit=USD requires TIMESTAMP"),
    ],
)
def test_what_would_lose_rows_or_guess_is_refused(options: dict[str, str], schema: str, told: str) -> None:
    with pytest.raises(InvalidPipeline, match=told):
        FileSource("x", schema=schema, options=options)
    if told.startswith("column"):
        with pytest.raises(InvalidPipeline, match=told.replace("csv", "json")):
            KafkaSource("x", connection="c", value="json", value_schema=schema)


@pytest.mark.fault("V4")
def test_nothing_is_lost_behind_a_files_first_value(session: SparkSession, tmp_path: Path) -> None:
    good = [b'[{"id": 1},\n {"id": 2}]\n', b'\n{"id":\n 1}\n', b"\n"]
    bad = [b'{"id": 1}\n{"id": 2}\n', b'[{"id": 1}]\n[{"id": 2}]', b'{"id": 1} garbage', b'{"id": 1}{"id": 2}']
    for number, text in enumerate(good + bad):
        path = tmp_path / f"{number}"
        path.write_bytes(text)
        if text in good:
            found = read(session, path, "json", "whole", "id BIGINT", multiLine="true").good().collect()
            assert [row["id"] for row in found] == [[1, 2], [1], []][number]
            continue
        with pytest.raises(BadRecords, match="after its first JSON value"):
            read(session, path, "json", "whole", "id BIGINT", multiLine="true").good().collect()
        if b"\n[" not in text:
            rows = read(session, path, "json", "growing", "id BIGINT") if text.endswith(b"\n") else None
            assert rows is None or rows.good().count() == 2
    path.write_bytes(b'id,name\n1,"open\n2,x\n')
    with pytest.raises(BadRecords, match="odd number of quotes"):
        read(session, path, "csv", "whole", "id BIGINT, name STRING", multiLine="true")
    path.write_bytes(b'{"id": 1} {"id": 2}\n{"id": 3}\n')
    assert [row["id"] for row in read(session, path, "json", "growing", "id BIGINT").good().collect()] == [3]
    path.write_bytes(rb'{"id": 1, "p": "C:\\udev"}' + b"\n" + rb'{"id": 2, "p": "\\ud83d\ude00"}' + b"\n")
    for way in ("growing", "kafka"):
        texts = read(session, path, "json", way, "id BIGINT, p STRING").good().collect()
        assert [tuple(row) for row in texts] == [(1, "C:\\udev")]


@pytest.mark.fault("V5")
def test_nulls_nested_values_units_and_locales(session: SparkSession, tmp_path: Path) -> None:
    schema = "id BIGINT NOT NULL, a ARRAY<DATE>, m MAP<STRING, TIMESTAMP_NTZ>"
    schema = f"{schema}, s STRUCT<d: DECIMAL(4,1), t: TINYINT NOT NULL>"
    good = '{"id": 1, "a": ["2026-01-05", null], "m": {"k": "2026-01-05T01:00"}, "s": {"d": 1.5, "t": 1}}'
    bad = [
        '{"id": null}',
        '{"a": []}',
        '{"id": 2, "a": ["5"]}',
        '{"id": 3, "m": {"k": "5"}}',
        '{"id": 4, "s": {"t": 200}}',
    ]
    bad += ['{"id": 5, "s": {"d": "1,5", "t": 1}}', '{"id": 6, "s": {"d": 1.25, "t": 1}}', '{"id": 7, "s": {"d": 1.5}}']
    (tmp_path / "in").write_text("\n".join([good, *bad]) + "\n")
    for way in ("whole", "growing", "kafka"):
        [row] = read(session, tmp_path / "in", "json", way, schema).good().collect()
        assert (row["a"], row["m"]) == ([date(2026, 1, 5), None], {"k": datetime(2026, 1, 5, 1)})
        assert row["s"].asDict() == {"d": Decimal("1.5"), "t": 1}
    units = {"seconds": 10**0, "milliseconds": 10**3, "microseconds": 10**6, "nanoseconds": 10**9}
    schema = ", ".join(f"{name} TIMESTAMP COMMENT 'unit={name}'" for name in units)
    rows: list[dict[str, object]] = [{name: 1767225600 * parts for name, parts in units.items()}]
    rows += [{name: value} for name, parts in units.items() for value in (str(parts), 1.5)]
    rows += [{"seconds": 1767225600000}, {"milliseconds": 9223372036854775}, {"nanoseconds": 1}]
    (tmp_path / "in").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    [row] = read(session, tmp_path / "in", "json", "whole", schema).good().collect()
    assert {value.replace(tzinfo=None) for value in row} == {datetime(2026, 1, 1)}
    (tmp_path / "in").write_text(
        "d\n" + "".join(f'"{text}"\n' for text in ("1.234,50", "-1,5", "1.5E2", "1.5", "1,505"))
    )
    found = read(session, tmp_path / "in", "csv", "whole", "d DECIMAL(10,2)", locale="de-DE").good().collect()
    assert [str(row["d"]) for row in found] == ["1234.50", "-1.50"]
    (tmp_path / "in").write_text("d,at\n05.01.2026,05.01.26 10:30\n05.01.2026 x,\n31.02.2026,\n,2026-01-05\n")
    formats = {"dateFormat": "dd.MM.yyyy", "timestampFormat": "dd.MM.yy HH:mm"}
    [row] = read(session, tmp_path / "in", "csv", "whole", "d DATE, at TIMESTAMP", **formats).good().collect()
    assert (row["d"], row["at"].replace(tzinfo=None)) == (date(2026, 1, 5), datetime(2026, 1, 5, 10, 30))


@pytest.mark.fault("V6")
def test_a_header_that_gained_a_column_names_the_way_on(session: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(BadRecords, match="put the file into an epoch of its own"):
        stage(session, tmp_path, pipeline_of(csv(tmp_path, "id,name,more\n1,x,y\n", schema="id BIGINT, name STRING")))


@pytest.mark.fault("V8")
@pytest.mark.parametrize("way", ["whole", "growing", "kafka"])
def test_json_is_not_guessed_at_by_what_stands_beside_a_value(session: SparkSession, tmp_path: Path, way: str) -> None:
    """Numbers that Java expands for minutes, signs that group digits, infinities, keys."""
    records = [
        *('{"id": 0, "d": "2.5", "s": "3e12345"}', '{"id": 1, "d": 1e3, "s": "it\u20195", "x": 5}'),
        *('{"id": 2, "d": 1E1000000000}', '{"id": 3, "d": "1E1000000000"}', '{"d": "-1E-99999999", "id": 4, oops'),
        *('{"id": 5, "d": "1\u2019234"}', r'{"id": 6, "d": "1\u2019234"}', '{"id": 7, "n": {"a": [-1e-99999999]}}'),
        *(
            '{"id": 8, "x": 1e400, "s": "info inf"}',
            '{"id": 9, "n": {"a": ["1E99999999"]}}',
            '{"id": 10, "m": {"J\xff": 1}}',
        ),
        '{"id": 11, "d": 1, "d": 2}',
    ]
    lines = [record.encode().replace("\xff".encode(), b"\xff") for record in records]
    (tmp_path / "in").write_bytes(b"\n".join(lines if way != "whole" else lines[:-1]) + b"\n")
    schema = "id INT, d DECIMAL(10,2), s STRING, x DOUBLE, n STRUCT<a: ARRAY<DECIMAL(10,2)>>, m MAP<STRING, INT>"
    rows = read(session, tmp_path / "in", "json", way, schema).good().collect()
    assert [(row["id"], row["d"], row["s"]) for row in rows] == [
        (0, Decimal("2.5"), "3e12345"),
        (1, 1000, "it\u20195"),
    ]
    (tmp_path / "in").write_text('{"x": "Infinity"}\n{"x": "-INF"}\n')
    infinite = read(session, tmp_path / "in", "json", way, "x DOUBLE").good().collect()
    assert [row["x"] for row in infinite] == ([] if way == "whole" else [math.inf, -math.inf])
    if way == "whole":
        for text in ('{"d": 1E1000000000}', '{"d": "1E1000000000"}', '\ufeff{"id": 1}\n{"id": 2}'):
            (tmp_path / "in").write_text(text)
            with pytest.raises(BadRecords, match="after its first JSON value"):
                read(session, tmp_path / "in", "json", way, schema, multiLine="true")


@pytest.mark.fault("V9", "V10")
def test_csv_changes_no_line_end_and_drops_no_row(session: SparkSession, tmp_path: Path) -> None:
    schema, path = "id INT, name STRING", tmp_path / "in"
    for text, expected in {
        'id,name\n1,"a\r\nb"\n2,"a ""q"" b"\n3,""\n': ["a\r\nb", 'a "q" b', ""],
        'id,name\r\n1,"a\nb"\r\n': ["a\nb"],
        'id,name\r\n1,"a\r\nb"\r\n': None,
        'id,name\r1,"a\rb"\r': None,
        'id,name\n1,"open\n2,x\n3,"open\n4,y\n': None,
    }.items():
        path.write_bytes(text.encode())
        if expected is None:
            with pytest.raises(BadRecords, match="quotes"):
                read(session, path, "csv", "whole", schema, multiLine="true")
        else:
            rows = read(session, path, "csv", "whole", schema, multiLine="true").good().collect()
            assert [row["name"] for row in rows] == expected
    for text, blanks, separator in (
        *(("name\n  \nx\n", "  ", ","), ("name\tb\n\t\nx\ty\n", None, "\\t")),
        *(("name\n\x0c\nx\n", "\x0c", ","), ("name\x01b\n\x01\nx\x01y\n", None, "\x01")),
    ):
        path.write_text(text)
        columns = ", ".join(f"{name} STRING" for name in re.split("[\t\x01]", text.split("\n")[0]))
        rows = read(session, path, "csv", "growing", columns, sep=separator, header="true").good().collect()
        assert [row["name"] for row in rows] == [blanks, "x"]
        for way in ("whole", "sound"):
            with pytest.raises(BadRecords, match="line of blanks"):
                read(session, path, "csv", way, columns, sep=separator)
    path.write_text("d\n0E-18\n1.500E-9\n1E-19\n")  # as pyarrow, and so FileSink, writes them
    rows = read(session, path, "csv", "whole", "d DECIMAL(38,18)").good().collect()
    assert [row["d"] for row in rows] == [0, Decimal("1.5e-9")]
