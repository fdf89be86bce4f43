"""The demo: it lands real rows, one file a day, whole or not there; it judges what readers saw of a restated day."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from io import BytesIO
from pathlib import Path

import pytest

from stack import landing
from stack.landing import SOURCES, Landed, day_file, demo_days, land, open_data
from stack.restatement import agreement, swapped

FIRST_TWO = demo_days(2)


def facts(folder: Path) -> dict[Path, tuple[int, int, int]]:
    """What a frozen plan, or a reader, could notice of each file."""
    found = {path: path.stat() for path in folder.rglob("*") if path.is_file()}
    return {path: (fact.st_ino, fact.st_size, fact.st_mtime_ns) for path, fact in found.items()}


@pytest.fixture(scope="module")
def few_lines() -> dict[str, bytes]:
    """By source: what the wheel has of the first days and of the last one."""
    days = {(day.year, day.month, day.day) for day in (*demo_days(3), date(2013, 12, 31))}
    return {
        source: b"".join([header, *(row for row in rows if day_of(row) in days)]) for source, (header, rows) in data()
    }


def data() -> Iterator[tuple[str, tuple[bytes, list[bytes]]]]:
    for source in SOURCES:
        with open_data(source) as lines:
            header, *rows = lines
        yield source, (header, rows)


def day_of(row: bytes) -> tuple[int, ...]:
    """Year, month and day are the first columns, but for the airport of a row of weather."""
    fields = row.split(b",", 4)
    return tuple(map(int, fields[:3] if fields[0].isdigit() else fields[1:4]))


@pytest.fixture
def small(few_lines: dict[str, bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    """The wheel's files hold a few days only: the whole year takes a second to read."""
    monkeypatch.setattr(landing, "open_data", lambda source: BytesIO(few_lines[source]))


@pytest.mark.usefixtures("small")
def test_a_file_holds_the_rows_of_its_day_alone_and_all_of_them(tmp_path: Path, few_lines: dict[str, bytes]) -> None:
    days = [*demo_days(2), date(2013, 12, 31)]
    land(tmp_path, days)
    for source in SOURCES:
        rows = few_lines[source].splitlines(keepends=True)[1:]
        for day in days:
            found = day_file(tmp_path, source, day).read_bytes().splitlines(keepends=True)[1:]
            assert found == [row for row in rows if day_of(row) == (day.year, day.month, day.day)]
            assert bool(found) == ((source, day.month) != ("weather", 12)), "nobody measured weather then"


@pytest.mark.usefixtures("small")
def test_landing_again_leaves_the_files_that_are_there_and_mends_the_one_that_somebody_cut(tmp_path: Path) -> None:
    land(tmp_path, FIRST_TWO)
    before = facts(tmp_path)
    assert land(tmp_path, FIRST_TWO) == Landed(files=4, written=0)
    assert land(tmp_path, demo_days(3)) == Landed(files=6, written=2)
    assert before.items() <= facts(tmp_path).items()
    cut = day_file(tmp_path, "flights", FIRST_TWO[1])
    whole = cut.read_bytes()
    cut.write_bytes(whole[: len(whole) // 2])
    assert land(tmp_path, FIRST_TWO) == Landed(files=4, written=1)
    assert cut.read_bytes() == whole


@pytest.mark.usefixtures("small")
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


def test_a_day_is_swapped_where_readers_saw_the_old_rows_and_then_the_new_ones() -> None:
    old, new, nothing = {1: 677}, {15: 842}, dict[int, int]()
    assert swapped("table", [(old, 40), (new, 2)], (old, new)).agrees
    for seen in ([(old, 1), (nothing, 1), (new, 1)], [(old, 1), (new, 1), (old, 1), (new, 1)], [(old, 9)], [(new, 9)]):
        assert not swapped("table", seen, (old, new)).agrees, seen
    both, order = (nothing, nothing), ((old, old), (new, new))
    assert swapped("cut", [((old, old), 5), (both, 1), ((new, new), 5)], order, between=both).agrees
    assert not swapped("cut", [((old, old), 5), ((old, new), 1), ((new, new), 5)], order, between=both).agrees
    assert all(check.agrees for check in agreement("after", new, new, new))
    assert not any(check.agrees for check in agreement("after", old, old, new))
