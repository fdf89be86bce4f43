"""Small files of published epochs become few by one commit: rows, markers and what others wrote stay."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date

import pyarrow as pa
import pytest

from lockstep.errors import InvalidPipeline
from lockstep.sinks.compacting import Goal
from lockstep.sinks.values import Publication
from lockstep.testing._sealed_rows import SealedRows, sealed, table
from lockstep.testing._under_test import epoch, expect_proof, opened, prepare, publish
from tests.sinks.compaction.lakes import ROWS, Lake

pytestmark = pytest.mark.apart


def test_many_epochs_become_one_file_and_read_as_before(lake: Lake) -> None:
    wals = lake.fill(*range(1, 7))
    before, shown = lake.rows(), list(lake.files())
    done = lake.compact()
    assert (done.files_before, done.files_after, done.rows) == (12, 1, 6 * ROWS)
    assert list(lake.files().values()) == [6 * ROWS] and not set(shown) & set(lake.files())
    assert lake.rows() == before
    assert lake.rows_before(1) == 6 * ROWS, "who reads the table as it was does so until its files are removed"
    assert set(shown) <= set(lake.below()), "that is up to the table's own retention"
    for number, wal in wals.items():
        at = epoch(number, token=10 * number, manifest=str(number))
        expect_proof(lake.target, at, wal)
        assert publish(lake.target, at, prepare(lake.target, at, wal), wal) is Publication.FOUND
    assert lake.rows() == before, "no epoch comes again"
    lake.publish(7)
    assert sum(lake.files().values()) == 7 * ROWS


def test_what_was_compacted_is_compacted_again_with_newer_epochs_until_it_is_large(lake: Lake) -> None:
    lake.fill(1, 2)
    lake.compact()
    lake.fill(3, 4)
    before = lake.rows()
    done = lake.compact()
    assert (done.files_before, done.files_after) == (5, 1)
    size = lake.plan().bytes_before
    [only] = lake.files()
    assert "/compacted/" in only and size == 0, "one file alone is left as it is"
    assert lake.rows() == before
    lake.publish(5)
    large = Goal(lambda epoch: True, target_bytes=100, min_files=2)
    assert lake.compact(large).files_before == 0, "and so are those that are large enough"


def test_a_plan_writes_nothing_and_few_files_and_those_that_some_sink_does_not_show_stay(lake: Lake) -> None:
    lake.publish(1)
    before = lake.files()
    done = lake.compact(Goal(lambda epoch: True, min_files=3))
    assert (done.number, done.files_before, dict(done.kept)) == (None, 0, {"too few of a partition": 2})
    assert lake.files() == before
    lake.fill(2, 3)
    before, below = lake.files(), lake.below()
    planned = lake.plan()
    assert (planned.files_before, planned.files_after, planned.rows, planned.number) == (6, 1, 3 * ROWS, None)
    assert lake.files() == before and lake.below() == below
    kept = [path for path in lake.files() if "/2/" in path.partition("/pipe")[2]]
    done = lake.compact(Goal(lambda epoch: epoch != 2, min_files=2))
    assert (done.files_before, done.files_after) == (4, 1)
    assert len(kept) == 2 and set(kept) <= set(lake.files())


def test_what_others_wrote_stays_where_it_is(lake: Lake) -> None:
    lake.fill(1, 2)
    mine = set(lake.files())
    lake.foreign_append()
    theirs = set(lake.files()) - mine
    before = lake.rows()
    done = lake.compact()
    assert theirs and theirs <= set(lake.files()) and lake.rows() == before
    assert sum(n for why, n in done.kept.items() if "others" in why) == len(theirs)


def test_an_epoch_that_is_decided_and_not_published_keeps_its_files_and_is_published_afterwards(lake: Lake) -> None:
    lake.fill(1, 2)
    wal, at = sealed(ROWS, start=9000), epoch(3, token=30, manifest="3")
    vote = prepare(lake.target, at, wal)
    staged = set(lake.below()) - set(lake.files())
    lake.compact()
    assert staged and staged <= set(lake.below())
    assert publish(lake.target, at, vote, wal) is Publication.SENT
    assert sum(lake.files().values()) == 3 * ROWS


def test_no_rows_no_files(lake: Lake) -> None:
    lake.publish(1, sealed(0))
    assert lake.compact().number is None
    lake.fill(2, 3)
    lake.publish(4, sealed(0))
    assert lake.compact().files_after == 1
    with opened(lake.target) as sink:
        assert sink.find_marker(4) is not None


def _of_day(day: date | None, start: int) -> list[SealedRows]:
    found = table(ROWS, start)
    return [SealedRows(found.set_column(4, "day", pa.array([day] * ROWS, pa.date32())))]


def test_each_partition_is_compacted_by_itself(make_lake: Callable[..., Lake]) -> None:
    lake = make_lake(partition_by=["day"])
    days = [date(2013, 1, 1), date(2013, 1, 1), date(2013, 1, 2), date(2013, 1, 2), None, None]
    wals = {number: lake.publish(number, _of_day(day, 1000 * number)) for number, day in enumerate(days, 1)}
    before = lake.rows()
    done = lake.compact(Goal(lambda epoch: True, min_files=3))
    assert (done.files_before, done.files_after) == (12, 3)
    assert sorted(lake.files().values()) == [2 * ROWS] * 3 and lake.rows() == before
    for number, wal in wals.items():
        expect_proof(lake.target, epoch(number, token=1, manifest=str(number)), wal)


def test_files_that_lack_columns_become_another_file(make_lake: Callable[..., Lake]) -> None:
    lake = make_lake(on_new_columns="add")
    lake.fill(1, 2)
    more = {
        number: lake.publish(
            number, [SealedRows(table(ROWS, 1000 * number).append_column("extra", pa.array(range(ROWS), pa.int64())))]
        )
        for number in (3, 4)
    }
    before = lake.rows()
    done = lake.compact()
    assert (done.files_before, done.files_after) == (8, 2) and lake.rows() == before
    for number, wal in more.items():
        expect_proof(lake.target, epoch(number, token=1, manifest=str(number)), wal)


def test_bundles_have_about_the_size_that_is_asked_for(lake: Lake) -> None:
    with pytest.raises(InvalidPipeline, match="makes no sense"):
        Goal(lambda epoch: True, target_bytes=0)
    with pytest.raises(InvalidPipeline, match="makes no sense"):
        Goal(lambda epoch: True, min_files=1)
    lake.fill(*range(1, 7))
    size = lake.plan().bytes_before
    planned = lake.plan(Goal(lambda epoch: True, target_bytes=size // 3 + 100, min_files=2))
    assert planned.files_after == 3
    before = lake.rows()
    assert lake.compact(Goal(lambda epoch: True, target_bytes=size // 3 + 100, min_files=2)).files_after == 3
    assert lake.rows() == before
