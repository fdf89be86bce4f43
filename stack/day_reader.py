"""`python -m stack.day_reader <day>`: count one day's flights in both sinks of `flights`, over and over.

A process of its own, which neither knows of nor waits for whoever restates that day. It says "reading" behind its first
look; once its input ends it looks for the last time, and prints what it saw. Where everything is stands in its
environment.
"""

from __future__ import annotations

import json
import os
import re
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import asdict, dataclass, field
from datetime import date, datetime, time, timedelta
from itertools import count
from pathlib import Path
from typing import TypeVar
from zoneinfo import ZoneInfo

import psycopg2
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from psycopg2 import sql

from lockstep import as_of, files
from lockstep.errors import UnknownEpoch

PIPELINE = "flights"
LOCAL = ZoneInfo("America/New_York")  #: a flight's day is the day there
PAUSE_SECONDS = 0.05  #: leaves the processors to those who are watched
ASKED = 100  #: times, before a file that is listed and isn't there is an error

Look = TypeVar("Look")
Sight = Mapping[int, int]  #: flights of the day by the epoch that brought them


@dataclass
class Watched:
    """What a reader saw, in order: consecutive looks that saw the same are one, with how many they were."""

    table: list[tuple[Sight, int]] = field(default_factory=list)
    files: list[tuple[Sight, int]] = field(default_factory=list)
    #: of the table and of the files, as of one epoch
    cut: list[tuple[tuple[Sight, Sight], int]] = field(default_factory=list)
    apart: int = 0  #: rounds in which the table, and the files a moment later, were of different epochs
    ended: int = 0  #: cuts that ended while they were read: a day in them was restated, and they were asked for anew

    @classmethod
    def from_json(cls, text: str) -> Watched:
        found = json.loads(text)
        return cls(
            [(_sight(seen), times) for seen, times in found["table"]],
            [(_sight(seen), times) for seen, times in found["files"]],
            [((_sight(table), _sight(folder)), times) for (table, folder), times in found["cut"]],
            found["apart"],
            found["ended"],
        )


@dataclass(frozen=True)
class DayReader:
    """`ledger`, `warehouse`: DSNs. `out`: the folder of the sink `delays`."""

    day: date
    ledger: str
    warehouse: str
    out: Path
    _others: set[str] = field(default_factory=set)  #: files without a flight of the day: read once

    def table(self) -> Sight:
        """By SQL, in one statement."""
        return self._count(sql.SQL("public.flights"), sql.SQL("true"))

    def files(self) -> Sight:
        """By `lockstep.files`. Those of an epoch that was replaced are deleted once nobody is told of them any more: a
        reader who still was asks anew."""
        for _ in range(ASKED):
            with suppress(FileNotFoundError):
                return self._sum(files(str(self.out)))
        return self._sum(files(str(self.out)))

    def cut(self) -> tuple[Sight, Sight] | None:
        """Both by `lockstep.as_of`. Nothing holds a cut: None if one of its days was restated before both were read."""
        connections = {"warehouse": self.warehouse}
        try:
            cut = as_of(PIPELINE, ledger=self.ledger, connections=connections)
        except UnknownEpoch:  # there is no other day, and some sinks show this one's old rows, others its new ones
            return {}, {}
        table, folder = cut.sinks["warehouse"]["flights"], cut.sinks["delays"]["delays"]
        try:
            found = (
                self._count(sql.SQL(table.target), sql.SQL(table.predicate or "true")),
                self._sum(folder.files or ()),
            )
            again = as_of(PIPELINE, cut.epoch, ledger=self.ledger, connections=connections)
        except (FileNotFoundError, UnknownEpoch):
            return None
        return found if again.epochs == cut.epochs else None

    def _count(self, table: sql.Composable, predicate: sql.Composable) -> Sight:
        with closing(psycopg2.connect(self.warehouse)) as connection, connection.cursor() as cursor:
            cursor.execute(_COUNT.format(table, predicate), [self.day])
            return dict(cursor.fetchall())

    def _sum(self, paths: Iterable[str]) -> Sight:
        found: Counter[int] = Counter()
        for path in paths:
            if path in self._others:
                continue
            rows = pq.read_table(path, columns=["time_hour", "flights"])
            if not (own := rows.filter(_is_on(self.day, rows["time_hour"]))).num_rows:
                self._others.add(path)
                continue
            found[_epoch_of(path)] += pc.sum(own["flights"]).as_py()
        return dict(found)


_COUNT = sql.SQL("""
    SELECT lockstep_epoch, count(*) FROM {} WHERE make_date(year, month, day) = %s AND ({}) GROUP BY lockstep_epoch
""")


def watch(reader: DayReader, ended: threading.Event, begun: Callable[[], None]) -> Watched:
    """Look until `ended`, and once more; `begun` is called behind the first look."""
    seen = Watched()
    for number in count():
        is_last = ended.is_set()
        table, folder, cut = reader.table(), reader.files(), reader.cut()
        _add(seen.table, table)
        _add(seen.files, folder)
        seen.apart += table.keys() != folder.keys()
        if cut is None:
            seen.ended += 1
        else:
            _add(seen.cut, cut)
        if is_last and cut is not None:
            break
        if number == 0:
            begun()
        ended.wait(PAUSE_SECONDS)
    return seen


def _add(seen: list[tuple[Look, int]], look: Look) -> None:
    if seen and seen[-1][0] == look:
        seen[-1] = (look, seen[-1][1] + 1)
    else:
        seen.append((look, 1))


def _is_on(day: date, moments: pa.ChunkedArray) -> pa.ChunkedArray:
    start, end = (datetime.combine(one, time(), LOCAL) for one in (day, day + timedelta(days=1)))
    first, last = (pa.scalar(one, type=moments.type) for one in (start, end))
    return pc.and_(pc.greater_equal(moments, first), pc.less(moments, last))


def _epoch_of(path: str) -> int:
    named = re.search(r"-epoch=(\d+)-", Path(path).name)
    assert named is not None, f"a file sink's files name their epoch: {path}"
    return int(named[1])


def _sight(told: Mapping[str, int]) -> Sight:
    return {int(epoch): flights for epoch, flights in told.items()}


def main(asked: Sequence[str]) -> None:
    ended = threading.Event()

    def await_end() -> None:
        sys.stdin.read()
        ended.set()

    threading.Thread(target=await_end, daemon=True).start()
    places = os.environ["LOCKSTEP_LEDGER"], os.environ["LOCKSTEP_WAREHOUSE"], Path(os.environ["LOCKSTEP_OUT"])
    reader = DayReader(date.fromisoformat(asked[0]), *places[:2], places[2] / "delays")
    seen = watch(reader, ended, lambda: print("reading", flush=True))
    print(json.dumps(asdict(seen)), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
