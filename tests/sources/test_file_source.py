"""What a file source plans: which files an epoch gets, and what it notices about them afterwards. No Spark needed."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from lockstep.epoch import Interval
from lockstep.errors import BadRecords, InvalidPipeline, SourceChanged, SourceNotReady, SourceRefused
from lockstep.sources import FileSource, Source, SourceContext
from lockstep.sources.files import _watched_folder as watched_module
from lockstep.sources.files.file_systems import LocalFiles
from lockstep.sources.files.open_source import OpenFileSource
from lockstep.sources.files.paths import each_file, pattern_of

DAY = Interval(datetime(2013, 1, 2, tzinfo=UTC), datetime(2013, 1, 3, tzinfo=UTC))
SCHEMA = "id BIGINT, name STRING"


def opened(source: FileSource) -> OpenFileSource:
    return source.open(SourceContext("pipeline", "source", lambda paths: set()))


def daily(folder: Path, **arguments: Any) -> OpenFileSource:
    return opened(FileSource(f"{folder}/{{interval_start:%Y-%m-%d}}.csv", schema=SCHEMA, **arguments))


def watched(folder: Path | str, taken: Iterable[str] = (), **arguments: Any) -> OpenFileSource:
    source = FileSource(str(folder), schema=SCHEMA, **arguments)
    return source.open(SourceContext("pipeline", "source", lambda paths: set(paths) & set(taken)))


def land(path: Path, text: str = "id,name\n1,x\n", *, age: int = 0) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    moment = 1_700_000_000_000_000_000 - age * 1_000_000_000
    os.utime(path, ns=(moment, moment))
    return path


def names(position: Any) -> list[str]:
    return [Path(file["path"]).name for file in position["files"]]


def test_a_template_may_hold_wildcards_and_both_ends(tmp_path: Path) -> None:
    for name in ("b.csv", "a.csv", "c.csv.tmp", "_d.csv", ".e.csv", "f.csv.inprogress", "g.csv._COPYING_"):
        land(tmp_path / "2013-01-02" / "2013-01-03" / name)
    template = f"{tmp_path}/{{interval_start:%Y-%m-%d}}/{{interval_end:%Y-%m-%d}}"
    for path in (f"{template}/*.csv*", template):
        assert names(opened(FileSource(path, schema=SCHEMA)).latest(None, DAY)) == ["a.csv", "b.csv"]


@pytest.mark.fault("Q6")
@pytest.mark.parametrize(
    ("form", "name"), [("%Y-%m-%d", "0001-01-01"), ("%F", "0001-01-01"), ("%G%V", "000101"), ("%%Y%y", "%Y01")]
)
def test_a_year_of_a_path_has_four_digits(tmp_path: Path, form: str, name: str) -> None:
    land(tmp_path / f"{name}.csv")
    year_one = Interval(datetime(1, 1, 1, tzinfo=UTC), datetime(1, 1, 2, tzinfo=UTC))
    source = FileSource(f"{tmp_path}/{{interval_start:{form}}}.csv", schema=SCHEMA)
    assert names(opened(source).latest(None, year_one)) == [f"{name}.csv"]


@pytest.mark.fault("W4")
def test_what_is_still_being_written_in_a_hidden_folder_is_no_data(tmp_path: Path) -> None:
    for name in ("_temporary/0/_temporary/a/part.csv", ".hidden/part.csv", "x/_tmp/part.csv"):
        land(tmp_path / name)
    for name in ("x/y/good.csv", "_year=2013/x/good.csv"):
        land(tmp_path / name)
    for pattern, files in (("**", 2), ("**/*.csv", 2), ("*/*/*.csv", 2), ("*/*", 2), ("*", 0), ("*/0/**/*.csv", 0)):
        assert names(watched(tmp_path / pattern).latest(None, None)) == ["good.csv"] * files, pattern
    assert names(watched(tmp_path / "_temporary" / "**").latest(None, None)) == []
    assert names(watched(tmp_path / "_temporary/0/_temporary/*").latest(None, None)) == ["part.csv"], "said by name"


@pytest.mark.fault("W5")
def test_a_template_is_written_as_clocks_of_its_zone_show_the_interval(tmp_path: Path) -> None:
    for day in ("2026-10-24", "2026-10-25", "2026-10-26"):
        land(tmp_path / f"{day}.csv")
    longest = Interval(datetime(2026, 10, 24, 23, tzinfo=UTC), datetime(2026, 10, 26, tzinfo=UTC))  # of 25 hours
    assert names(daily(tmp_path, timezone="Europe/London").latest(None, longest)) == ["2026-10-25.csv"]
    for path, zone in (("{interval_start}", "Europe/Lodnon"), ("{interval_start}", "../x"), ("watched", "Europe/Rome")):
        with pytest.raises(InvalidPipeline, match="timezone"):
            FileSource(path, schema=SCHEMA, timezone=zone)


def test_relative_paths_start_at_the_home_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    landed = land(tmp_path / "landing" / "2013-01-02.csv")
    monkeypatch.setenv("LOCKSTEP_HOME", str(tmp_path))
    source = opened(FileSource("landing/{interval_start:%Y-%m-%d}.csv", schema=SCHEMA))
    assert [claim.path for claim in source.claims(None, source.latest(None, DAY))] == [str(landed)]


@pytest.mark.fault("R2")
@pytest.mark.parametrize(
    "name, fits, spans",
    [
        ("{interval_start:%Y-%m-%d}.csv", timedelta(days=1), timedelta(hours=25)),
        ("{interval_start:%Y-%m-%d-%p}.csv", timedelta(hours=12), timedelta(days=1)),
        ("{interval_start:%Y%m%d%s}.csv", timedelta(seconds=1), timedelta(days=1)),
        ("{interval_end:%d}.csv", timedelta(days=1), timedelta(days=2)),
        ("{interval_start:%F}/{interval_start:%-H}.csv", timedelta(hours=1), timedelta(hours=6)),
        ("{interval_start:%Y-%m-%dT%H-%M}.csv", timedelta(minutes=1), timedelta(minutes=15)),
        ("{interval_start}.csv", timedelta(seconds=1), timedelta(days=1)),
        ("{interval_start:%G-W%V}.csv", timedelta(days=7), timedelta(days=14)),
        ("{interval_start:%Y/%m}.csv", timedelta(days=31), timedelta(days=92)),
        ("{interval_start:%Y}/{interval_end:%F}.csv", timedelta(days=1), timedelta(days=7)),
    ],
)
def test_an_interval_is_refused_that_the_path_has_one_name_of_many_for(
    tmp_path: Path, name: str, fits: timedelta, spans: timedelta
) -> None:
    fitting, long = (Interval(DAY.start, DAY.start + length) for length in (fits, spans))
    for missing in ("error", "empty"):
        source = FileSource(f"{tmp_path}/{name}", schema=SCHEMA, missing=missing)
        with pytest.raises(SourceRefused, match=r"longer than.*would be read, and later files.*spans="):
            opened(source).latest(None, long)
    assert not opened(source).latest(None, fitting)["files"]
    weekly = replace(source, spans=spans)
    assert not opened(weekly).latest(None, long)["files"]
    assert Source.from_spec(weekly.spec() or {}).open(SourceContext("p", "s", lambda paths: set())).latest(None, long)
    with pytest.raises(SourceRefused):
        opened(weekly).latest(None, Interval(DAY.start, long.end + timedelta(seconds=1)))
    both = replace(source, path=f"{tmp_path}/{{interval_start:%d}}-{{interval_end:%d}}.csv", spans=fits)
    assert not opened(both).latest(None, long)["files"]


@pytest.mark.fault("R2")
def test_a_day_and_a_week_are_as_long_as_clocks_of_the_zone_show_them(tmp_path: Path) -> None:
    start = datetime(2026, 10, 24, 23, tzinfo=UTC)
    day, week = (Interval(start, start + timedelta(days=days, hours=1)) for days in (1, 7))
    path = f"{tmp_path}/{{interval_start:%Y-%m-%d}}.csv"
    london = FileSource(path, schema=SCHEMA, timezone="Europe/London", missing="empty")
    assert not opened(london).latest(None, day)["files"]
    assert not opened(replace(london, spans=timedelta(days=7))).latest(None, week)["files"]
    for interval, source in ((day, replace(london, timezone="UTC")), (week, london)):
        with pytest.raises(SourceRefused, match="timezone="):
            opened(source).latest(None, interval)


@pytest.mark.fault("W14")
@pytest.mark.parametrize(
    ("zone", "form", "field", "start", "skipped"),
    [
        *(
            ("America/New_York", "%Y-%m-%d", f"interval_{end}", "2026-03-08T04:00", "2026-03-08")
            for end in ("start", "end")
        ),
        ("Europe/London", "%F", "interval_start", "2026-03-28T23:30", "2026-03-29"),
        ("UTC", "%Y", "interval_start", "2022-12-31T12:00", "2023"),
    ],
)
def test_no_file_lies_between_the_names_of_two_intervals(
    tmp_path: Path, zone: str, form: str, field: str, start: str, skipped: str
) -> None:
    """Of a schedule that goes by other clocks than the files' names."""
    first = datetime.fromisoformat(f"{start}Z")
    length = timedelta(days=366 if form == "%Y" else 1)
    path = f"{tmp_path}/{{{field}:{form}}}.csv"
    source = opened(FileSource(path, schema=SCHEMA, timezone=zone, missing="empty"))
    with pytest.raises(SourceRefused, match=rf"no interval has the name .*{skipped}\.csv"):
        source.latest(None, Interval(first, first + length))
    for other in (first - length, first + length, first + length / 3):
        assert not source.latest(None, Interval(other, other + length))["files"]


@pytest.mark.fault("W12")
@pytest.mark.parametrize(("form", "minutes"), [("%Y-%m-%dT%H", 60), ("%FT%H%M", 15), ("%FT%H%M", 60)])
def test_of_an_hour_that_comes_twice_neither_is_read_by_a_name_of_both(tmp_path: Path, form: str, minutes: int) -> None:
    length, spans = timedelta(minutes=minutes), timedelta(hours=1)
    hours = [datetime(2026, 10, 25, hour, tzinfo=UTC) for hour in range(4)]
    for field, shift in (("interval_start", timedelta()), ("interval_end", length)):
        source = FileSource(
            f"{tmp_path}/{{{field}:{form}}}.csv", schema=SCHEMA, missing="empty", timezone="Europe/London", spans=spans
        )
        for start in hours:
            interval = Interval(start - shift, start - shift + length)
            zoned = replace(source, path=source.path.replace(".csv", f"{{{field}:%z}}"))
            assert not opened(zoned).latest(None, interval)["files"]
            if start.hour in (0, 1):
                with pytest.raises(SourceRefused, match=r"set back.*%z"):
                    opened(source).latest(None, interval)
            else:
                assert not opened(source).latest(None, interval)["files"]


@pytest.mark.fault("W13")
@pytest.mark.parametrize("content", [b"", b"PAR1", b"id,name\n1,x\n"])
def test_a_frozen_file_that_is_no_parquet_is_refused_by_name(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "2013-01-02.parquet").write_bytes(content)
    path = f"{tmp_path}/{{interval_start:%Y-%m-%d}}.parquet"
    source = opened(FileSource(path, format="parquet", schema=SCHEMA))
    with pytest.raises(BadRecords, match=r"2013-01-02.parquet is no complete Parquet file.*replan"):
        source.rows_held(None, source.latest(None, DAY))


def test_seconds_in_a_path_count_in_utc_on_any_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for zone in ("UTC", "America/New_York"):
        monkeypatch.setenv("TZ", zone)
        time.tzset()
        assert pattern_of("{interval_start:%s}", DAY, "Asia/Tokyo") == str(int(DAY.start.timestamp()))
    monkeypatch.undo()
    time.tzset()


@pytest.mark.fault("J12")
def test_hours_of_one_daily_file_claim_the_same_file(tmp_path: Path) -> None:
    land(tmp_path / "2013-01-02.csv")
    source = daily(tmp_path)
    hours = [Interval(DAY.start + timedelta(hours=h), DAY.start + timedelta(hours=h + 1)) for h in (0, 1)]
    first, second = (source.claims(None, source.latest(None, hour)) for hour in hours)
    assert first == second  # the ledger gives a file to one epoch only


@pytest.mark.fault("A7")
def test_an_epoch_of_a_watched_folder_stays_below_its_caps(tmp_path: Path) -> None:
    for age in range(5):
        land(tmp_path / f"{age}.csv", age=age)
    assert names(watched(tmp_path, max_files_per_epoch=2).latest(None, None)) == ["4.csv", "3.csv"]
    assert names(watched(tmp_path, max_bytes_per_epoch=30).latest(None, None)) == ["4.csv", "3.csv"]
    assert names(watched(tmp_path, max_bytes_per_epoch=1).latest(None, None)) == ["4.csv"]


def test_once_takes_what_is_there_at_the_first_begin_and_nothing_later(tmp_path: Path) -> None:
    taken = str(land(tmp_path / "a.csv"))
    first = watched(tmp_path, once=True).latest(None, None)
    assert names(first) == ["a.csv"]
    land(tmp_path / "b.csv")
    assert names(watched(tmp_path, {taken}, once=True).latest(first, None)) == []


def test_a_folder_that_can_not_be_looked_into_is_not_an_empty_one(tmp_path: Path, subtests: pytest.Subtests) -> None:
    (tmp_path / "a").symlink_to(tmp_path / "a")  # permissions don't stop root
    land(tmp_path / "b" / "1.csv")
    assert names(watched(f"{tmp_path}/*/1.csv").latest(None, None)) == ["1.csv"]
    for below in ("1.csv", "*.csv", "*/1.csv", "*/x/*.csv", "**", "**/1.csv", "**/*.csv"):
        daily = FileSource(f"{tmp_path}/a/{{interval_start:%Y}}/{below}", schema=SCHEMA, missing="empty")
        for source in (watched(f"{tmp_path}/a/{below}"), opened(daily)):
            with (
                subtests.test(below=below, source=source),
                pytest.raises(SourceNotReady, match=r"can't be listed.*Too many levels of symbolic links"),
            ):
                source.latest(None, DAY)


def test_a_folder_that_goes_away_during_a_look_hides_no_other(tmp_path: Path) -> None:
    for number in range(5):
        land(tmp_path / str(number) / f"{number}.csv")
    listed = [entry.name for entry in os.scandir(tmp_path)]
    found = each_file(LocalFiles(), f"{tmp_path}/*")
    names = [Path(next(found)).parent.name]
    shutil.rmtree(tmp_path / listed[1])
    names += [Path(path).parent.name for path in found]
    assert names == [listed[0], *listed[2:]]


def test_the_ledger_is_asked_for_a_few_names_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watched_module, "CHUNK", 3)
    taken = {str(land(tmp_path / f"{number}.csv")) for number in range(10)}
    new = [land(tmp_path / f"new-{number}.csv", age=number).name for number in range(5)]
    asked: list[list[str]] = []

    def claimed(paths: Iterable[str]) -> set[str]:
        asked.append(list(paths))
        return taken & set(asked[-1])

    source = FileSource(f"{tmp_path}/*.csv", schema=SCHEMA, max_files_per_epoch=4)
    live = source.open(SourceContext("pipeline", "source", claimed))
    assert names(live.latest(None, None)) == new[:0:-1]
    assert [len(paths) for paths in asked] == [3] * 5


def test_a_name_that_is_no_text_is_named(tmp_path: Path) -> None:
    (tmp_path / os.fsdecode(b"caf\xe9.csv")).touch()
    with pytest.raises(SourceNotReady, match=r"caf.*rename"):
        watched(tmp_path).latest(None, None)


@pytest.mark.fault("A4", "A5")
def test_a_frozen_file_that_changed_is_named_with_what_changed(
    tmp_path_factory: pytest.TempPathFactory, subtests: pytest.Subtests
) -> None:
    cases: list[tuple[Any, ...]] = [
        (lambda path: land(path, "id,name\n1,xx\n"), "size was 12, is 13"),
        (lambda path: os.utime(path), "time of change"),
        (lambda path: path.unlink(), "No such file"),
    ]
    for change, told in cases:
        with subtests.test(told=told):
            tmp_path = tmp_path_factory.mktemp("case")
            landed = land(tmp_path / "2013-01-02.csv")
            source = daily(tmp_path)
            position = source.latest(None, DAY)
            source.check(None, position)
            change(landed)
            with pytest.raises(SourceChanged, match=f"{landed}.*{told}"):
                source.check(None, position)


def test_only_a_hash_finds_the_writer_that_cheats(tmp_path: Path) -> None:
    landed = land(tmp_path / "2013-01-02.csv")
    plain, hashed = daily(tmp_path), daily(tmp_path, hash=True)
    before, sealed = plain.latest(None, DAY), hashed.latest(None, DAY)
    land(landed, "id,name\n1,y\n")
    plain.check(None, before)
    with pytest.raises(SourceChanged, match="sha256"):
        hashed.check(None, sealed)


def test_a_definition_that_would_lose_rows_is_refused(subtests: pytest.Subtests) -> None:
    cases: list[tuple[Any, ...]] = [
        ("ftp://host/x.csv", {}, "s3://"),
        ("s3://bucket/a?.csv", {}, "option"),
        ("s3://bucket/a//b.csv", {}, "without a name"),
        ("s3://b*/x.csv", {}, "wildcard"),
        ("s3://bucket/x", {"grow": True}, "replaced"),
        ("hdfs://name/x", {"grow": True}, "mounted"),
        ("hdfs://na*e/x", {}, "no cluster"),
        ("{other}.csv", {}, "interval_start"),
        ("{interval_start.__class__}.csv", {}, "interval_start"),
        ("{interval_start", {}, "template"),
        ("{interval_start:%Y}.csv", {"watch": True}, "watched"),
        ("{interval_start:%Y}.csv", {"max_files_per_epoch": 1}, "caps"),
        ("x", {"max_files_per_epoch": 0}, "at least 1"),
        ("x", {"schema": None}, "schema"),
        ("x", {"format": "parquet", "schema": None}, "schema"),
        ("x", {"format": "text"}, "value STRING"),
        ("x", {"format": "orc"}, "format"),
        ("x", {"options": {"MODE": "DROPMALFORMED"}}, "rows would be lost"),
        ("x", {"options": {"pathGlobFilter": "*.csv"}}, "rows would be lost"),
        ("x", {"missing": "ignore"}, "missing"),
        ("{interval_start:%Y}.csv", {"once": True}, "not for intervals"),
        ("{interval_start:%Y}.csv", {"spans": timedelta()}, "length of an interval"),
        ("landing", {"spans": timedelta(days=1)}, "length of an interval"),
        ("{interval_start:%Y}.csv", {"grow": True}, "not for intervals"),
        ("x", {"once": True, "max_files_per_epoch": 5}, "don't set caps"),
        ("{interval_start:%Y}.csv", {"formerly": "old"}, "not for intervals"),
        ("x", {"grow": True, "format": "parquet"}, "csv, json, text"),
        ("x", {"grow": True, "options": {"multiLine": "true"}}, "by lines"),
    ]
    for path, arguments, told in cases:
        with subtests.test(path=path, arguments=arguments), pytest.raises(InvalidPipeline, match=told):
            FileSource(path, **{"schema": SCHEMA, **arguments})


def test_a_path_with_a_login_is_refused_and_not_repeated(subtests: pytest.Subtests) -> None:
    for path in [
        "s3://AKIA1:hidden@bucket/x",
        "s3://bucket/x?secret_key=hidden",
        "s3://bucket/{other}@hidden",
        "s3://[hidden/x",
        "hdfs://a:hidden@b/x",
    ]:
        with subtests.test(path=path):
            for arguments in ({"path": path}, {"path": "in", "formerly": path}):
                with pytest.raises(InvalidPipeline) as refusal:
                    FileSource(schema=SCHEMA, **arguments)  # type: ignore[arg-type]
                assert "hidden" not in str(refusal.value)
