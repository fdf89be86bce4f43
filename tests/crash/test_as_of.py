"""A join over two sinks of a pipeline never sees two sets of epochs, whatever is published at that moment."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import lockstep
from lockstep.epoch import RunKey
from lockstep.errors import OutOfOrder, UnknownEpoch
from lockstep.operations.as_of import PipelineCut
from lockstep.operations.replan import void
from tests.crash.world import Rows, World, rows_of_day


def cut(world: World, epoch: int | None = None) -> PipelineCut:
    return lockstep.as_of("numbers", epoch, ledger=world.ledger_dsn, connections={"warehouse": world.warehouse_dsn})


def in_warehouse(world: World, found: PipelineCut) -> Rows:
    told = found.sinks["warehouse"]["numbers"]
    asked = f"SELECT day, number, label FROM {told.target} WHERE {told.predicate}"
    return Counter(world.execute(world.warehouse_dsn, asked))


def in_files(found: PipelineCut) -> Rows:
    rows: Rows = Counter()
    for path in map(Path, found.sinks["files"]["numbers"].files or ()):
        table = pq.ParquetFile(path).read()
        rows.update(zip(*(table[name].to_pylist() for name in ("day", "number", "label")), strict=True))
    return rows


def expect(world: World, found: PipelineCut, *days: int) -> None:
    """Both sinks show these days, each whole, and no other."""
    rows = Counter(row for day in days for row in rows_of_day(day))
    assert in_warehouse(world, found) == rows
    assert in_files(found) == rows


@pytest.mark.parametrize("world", ["two_phase"], indirect=True)
def test_at_every_step_of_two_runs_both_sinks_show_the_same_epochs(world: World) -> None:
    first, second, third = (next(world.days) for _ in range(3))
    world.run(RunKey("as of", "first"), first)
    behind, ahead = RunKey("as of", "behind"), RunKey("as of", "ahead")
    held = cut(world)
    expect(world, held, first)
    world.run_task("begin", behind, second)
    shown = [first]
    for task in world.tasks():
        world.run_task(task, ahead, third)
        if task == "publish.files":  # the last sink of all
            shown.append(third)
        found = cut(world)
        expect(world, found, *shown)
    assert found.epochs.without == (2,)
    for task in world.tasks()[1:]:
        world.run_task(task, behind, second)
        expect(world, found, first, third)  # what was cut before stays as it was
    expect(world, cut(world), first, second, third)
    expect(world, held, first)
    expect(world, cut(world, 1), first)
    expect(world, cut(world, 2), first, second)


@pytest.mark.parametrize("world", ["write_ahead"], indirect=True)
def test_what_is_not_shown_everywhere_cannot_be_asked_for(world: World) -> None:
    day, given_up = next(world.days), next(world.days)
    with pytest.raises(UnknownEpoch, match="no epoch of pipeline numbers that every sink shows"):
        cut(world)
    world.run_until(RunKey("as of", "half"), day, "publish.warehouse")
    with pytest.raises(OutOfOrder, match="is committed: not every sink shows it yet"):
        cut(world, 1)
    world.run_until(RunKey("as of", "void"), given_up, "begin")
    void(world.runtime(), 2, "a test")
    with pytest.raises(UnknownEpoch, match="is void"):
        cut(world, 2)
    world.recover()
    expect(world, cut(world), day)
    with pytest.raises(UnknownEpoch):
        cut(world, 7)


@pytest.mark.fault("P22")
def test_a_range_that_is_restated_again_is_hidden_with_all_its_lives(world: World) -> None:
    first, second = (next(world.days) for _ in range(2))
    world.run(RunKey("as of", "shown"), first)
    world.run(RunKey("as of", "restated", restate="wrong"), first)
    world.run(RunKey("as of", "second"), second)
    world.run_until(RunKey("as of", "again", restate="wrong again"), first, "commit")
    assert cut(world).epochs.without == (1, 2)
    expect(world, cut(world), second)
