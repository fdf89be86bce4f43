"""Landing: real rows, one file a day, whole or not there, and nothing changes the second time."""

from __future__ import annotations

import os
from collections import Counter
from datetime import date
from pathlib import Path

import pytest
from pyarrow import csv

from lockstep.sources.files._paths import is_finished
from stack.landing import SOURCES, Landed, day_file, demo_days, land, open_data

FIRST_TWO = demo_days(2)


def facts(folder: Path) -> dict[Path, tuple[int, int, int]]:
    """What a frozen plan, or a reader, could notice of each file."""
    found = {path: path.stat() for path in folder.rglob("*") if path.is_file()}
    return {path: (fact.st_ino, fact.st_size, fact.st_mtime_ns) for path, fact in found.items()}


@pytest.fixture(scope="module")
def landed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("landing")
    assert land(folder, demo_days(365)) == Landed(files=730, written=730)
    return folder


def test_the_demo_days_start_with_the_year_and_can_cover_all_of_it() -> None:
    assert demo_days(365)[0] == date(2013, 1, 1)
    assert demo_days(365)[-1] == date(2013, 12, 31)


@pytest.mark.parametrize("source", SOURCES)
def test_the_files_of_a_year_hold_the_lines_of_the_wheel_each_once(landed: Path, source: str) -> None:
    with open_data(source) as lines:
        header, *rows = lines
    found = [day_file(landed, source, day).read_bytes().splitlines(keepends=True) for day in demo_days(365)]
    assert {file[0] for file in found} == {header}
    assert Counter(line for file in found for line in file[1:]) == Counter(rows)


@pytest.mark.parametrize("source", SOURCES)
def test_a_file_holds_the_rows_of_its_day_alone(landed: Path, source: str) -> None:
    for day in demo_days(20):
        rows = csv.read_csv(day_file(landed, source, day))
        dates = {tuple(row.values()) for row in rows.select(["year", "month", "day"]).to_pylist()}
        assert dates == {(day.year, day.month, day.day)}


def test_a_day_that_was_not_measured_is_a_file_with_a_header_only(landed: Path) -> None:
    assert csv.read_csv(day_file(landed, "weather", date(2013, 12, 31))).num_rows == 0


def test_landing_again_changes_no_file(tmp_path: Path) -> None:
    land(tmp_path, FIRST_TWO)
    before = facts(tmp_path)
    assert land(tmp_path, FIRST_TWO) == Landed(files=4, written=0)
    assert facts(tmp_path) == before


def test_landing_more_days_leaves_those_that_are_there(tmp_path: Path) -> None:
    land(tmp_path, FIRST_TWO)
    before = facts(tmp_path)
    assert land(tmp_path, demo_days(3)) == Landed(files=6, written=2)
    assert before.items() <= facts(tmp_path).items()


def test_a_file_that_somebody_cut_is_landed_again(tmp_path: Path) -> None:
    land(tmp_path, FIRST_TWO)
    cut = day_file(tmp_path, "flights", FIRST_TWO[1])
    whole = cut.read_bytes()
    cut.write_bytes(whole[: len(whole) // 2])
    assert land(tmp_path, FIRST_TWO) == Landed(files=4, written=1)
    assert cut.read_bytes() == whole


def test_flights_that_come_late_are_all_that_lacks_and_come_with_the_next_landing(tmp_path: Path) -> None:
    land(tmp_path, FIRST_TWO, {FIRST_TWO[0]: "UA"})
    file = day_file(tmp_path, "flights", FIRST_TWO[0])
    early = file.read_bytes().splitlines()
    assert land(tmp_path, FIRST_TWO, {FIRST_TWO[0]: "UA"}) == Landed(files=4, written=0)
    assert land(tmp_path, FIRST_TWO) == Landed(files=4, written=1)
    whole = file.read_bytes().splitlines()
    assert (len(early), len(whole)) == (1 + 677, 1 + 842)
    assert [line for line in whole if b",UA," not in line] == early
    assert land(tmp_path, FIRST_TWO, {FIRST_TWO[0]: "UA"}) == Landed(files=4, written=0), "a whole file stays whole"


def test_a_landing_that_dies_while_it_writes_leaves_no_file_that_a_source_would_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def die(descriptor: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", die)
    with pytest.raises(KeyboardInterrupt):
        land(tmp_path, FIRST_TWO)
    assert [path for path in tmp_path.rglob("*") if path.is_file() and is_finished(str(path))] == []
    monkeypatch.undo()
    assert land(tmp_path, FIRST_TWO) == Landed(files=4, written=4)
    assert {path.suffix for path in tmp_path.rglob("*") if path.is_file()} == {".csv"}
