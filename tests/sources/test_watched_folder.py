"""A watched folder with a real ledger: each file, or each range of a growing one, belongs to exactly one epoch."""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Callable
from contextlib import closing, suppress
from functools import partial
from multiprocessing import Barrier
from pathlib import Path
from typing import Any

import pytest

from lockstep.epoch import Epoch
from lockstep.errors import EpochBusy, InvalidPipeline, SourceChanged, TooManyInFlight
from lockstep.ledger.report import Report
from lockstep.testing._crash_sweep import fork
from tests.sources.folder_world import FolderWorld, Make, lines_of, warnings


def land(world: FolderWorld, name: str, text: str, *, age: int = 0) -> Path:
    path = world.landing / f"{name}.txt"
    path.write_text(text)
    moment = 1_700_000_000_000_000_000 - age * 1_000_000_000
    os.utime(path, ns=(moment, moment))
    return path


def append(path: Path, text: str) -> None:
    with path.open("a") as file:
        file.write(text)


def taken(epoch: Epoch) -> list[str]:
    return lines_of(epoch.plan.sources["landing"].end)


# --- whole files ---


@pytest.mark.fault("A16")
def test_a_file_that_comes_late_with_an_old_time_is_found(make: Make) -> None:
    world = make()
    land(world, "new", "1\n", age=0)
    world.run("first")
    land(world, "old", "2\n", age=10_000_000)
    world.run("second")
    world.run("third")
    assert world.shown() == Counter(["1", "2"])
    assert [len(epoch.plan.sources["landing"].end["files"]) for epoch in world.epochs()] == [1, 1, 0]


@pytest.mark.fault("A17")
def test_two_beginners_never_take_the_same_file(make: Make) -> None:
    world, rounds = make(max_files_per_epoch=2), 2
    for number in range(rounds * 4):
        land(world, str(number), f"{number}\n", age=number)
    for turn in range(rounds):
        barrier = Barrier(2)

        def beginner(run: str, barrier: Any = barrier) -> None:
            barrier.wait(60)
            with suppress(EpochBusy, TooManyInFlight):
                world.begin(run)

        children = [fork(partial(beginner, f"{name} {turn}")) for name in ("left", "right")]
        assert [child.wait() for child in children] == [0, 0]
        for number in range(1, len(world.epochs()) + 1):
            world.run(_run_of(world, number), "stage")
    found = [line for epoch in world.epochs() for line in taken(epoch)]
    assert len(found) == len(set(found)) == len(world.epochs()) * 2
    assert world.shown() == Counter(found)


def _run_of(world: FolderWorld, epoch: int) -> str:
    with closing(Report(world.ledger_dsn)) as report:
        found = report.pipeline("watch")
        assert found is not None
        [run] = [one.run for one in found.epochs if one.epoch.id == epoch]
        return str(run).removesuffix(" of watch")


@pytest.mark.fault("A18")
def test_a_consumed_file_that_changed_is_told_and_not_read_again(make: Make, caplog: pytest.LogCaptureFixture) -> None:
    world = make()
    rewritten, archived = land(world, "a", "1\n"), land(world, "b", "2\n")
    world.run("first")
    assert world.told("changed") == {1: []}
    assert warnings(world, caplog, "second") == []
    rewritten.write_text("1\n3\n")
    archived.unlink()
    [found] = world.told("changed")[1]
    assert found["path"] == str(rewritten)
    assert "size was 2, is 4" in found["difference"]
    assert f"after epoch 1 had read it: {rewritten} (size was 2, is 4" in world.status()
    [said] = warnings(world, caplog, "third")
    assert f"{rewritten} (size was 2, is 4" in said
    assert world.shown() == Counter(["1", "2"])


# --- files that grow ---


def test_each_epoch_takes_the_complete_lines_that_came_since(make: Make) -> None:
    world = make(grow=True)
    log = land(world, "log", "1\n2\nhal")
    world.run("first")
    append(log, "f\n3\n")
    other = land(world, "other", "a\n")
    world.run("second")
    append(log, "no end")
    append(other, "b\n")
    world.run("third")
    world.run("fourth")
    assert [sorted(taken(epoch)) for epoch in world.epochs()] == [["1", "2"], ["3", "a", "half"], ["b"], []]
    assert world.shown() == Counter(["1", "2", "half", "3", "a", "b"])
    assert world.told("changed") == {1: [], 2: [], 3: [], 4: []}


def test_caps_cut_a_growing_file_between_lines(make: Make) -> None:
    world = make(grow=True, max_bytes_per_epoch=10)
    lines = [f"{number:03}" for number in range(8)]
    land(world, "log", "".join(f"{line}\n" for line in lines) + "x" * 30 + "\n", age=2)
    land(world, "other", "last\n", age=1)
    for turn in range(7):
        world.run(str(turn))
    expected = [*(lines[start : start + 2] for start in range(0, 8, 2)), ["x" * 30], ["last"], []]
    assert [taken(epoch) for epoch in world.epochs()] == expected


@pytest.mark.fault("A19")
def test_a_growing_file_that_is_another_one_stops_the_pipeline(make: Make, subtests: pytest.Subtests) -> None:
    world = make(grow=True)
    log = land(world, "log", "1\n2\n")
    world.run("first")
    others = [("1\n", "truncated or replaced"), ("x\n2\n3\n", "with other bytes"), ("1\nx\n3\n", "with other bytes")]
    for text, told in others:
        with subtests.test(text=text):
            log.write_text(text)
            with pytest.raises(SourceChanged, match=f"log.txt was taken up to byte 4.*{told}"):
                world.begin("second")
            [found] = world.told("changed")[1]
            assert told in found["difference"]
    log.rename(world.landing / "of-another-name.txt")
    world.run("second")
    assert world.shown() == Counter([*"12", *"1x3"])


@pytest.mark.sample(1)
@pytest.mark.parametrize("how", [Path.rename, shutil.copyfile])
def test_a_growing_file_is_not_read_twice_under_two_names(make: Make, how: Callable[[Path, Path], object]) -> None:
    world = make(grow=True)
    log = land(world, "log", "".join(f"line {number}\n" for number in range(100)))
    world.run("first")
    append(log, "more\n")
    how(log, world.landing / "log-1.txt")
    other = [f"line {number}" for number in range(60)] + ["another line"] * 60
    land(world, "begins-alike", "".join(f"{line}\n" for line in other))
    log.unlink(missing_ok=True)
    with pytest.raises(SourceChanged, match=r"log-1\.txt is .*log\.txt under another name, of which 790 bytes"):
        world.begin("second")
    (world.landing / "log-1.txt").rename(log)
    world.run("second")
    assert world.shown() == Counter([*(f"line {number}" for number in range(100)), "more", *other])


def test_two_names_of_one_growing_file_are_not_read_by_one_epoch(make: Make, subtests: pytest.Subtests) -> None:
    world = make(grow=True)
    for lines, copies in ((1, False), (99, False), (99, True), (900, True)):
        with subtests.test(lines=lines, copies=copies):
            written = [f"line {number}" for number in range(lines)]
            log, current = land(world, "log", "".join(f"{line}\n" for line in written)), world.landing / "current.txt"
            if copies:
                shutil.copyfile(log, current)
            else:
                current.hardlink_to(log)
            append(log, "more\n")
            with pytest.raises(SourceChanged, match=r"current\.txt.* one file under two names"):
                world.begin("first")
            current.unlink()
    world.run("first")
    assert world.shown() == Counter([*written, "more"])


@pytest.mark.sample(1)
@pytest.mark.parametrize("same", [1000, 10_000])
def test_growing_files_that_only_begin_alike_are_all_read(make: Make, same: int) -> None:
    world = make(grow=True)
    header = "x" * same
    for run in (range(2), range(2, 4)):
        for number in run:
            land(world, str(number), f"{header}\n{number}\n" + "y\n" * number)
        world.run(str(run))
    assert world.shown() == Counter({header: 4, "0": 1, "1": 1, "2": 1, "3": 1, "y": 6})


@pytest.mark.sample(1)
@pytest.mark.parametrize("same", [300, 5000])
def test_a_growing_file_of_which_only_the_header_was_read_is_no_copy_of_later_ones(make: Make, same: int) -> None:
    world = make(grow=True, format="csv", schema="x STRING")
    header = "x" * same
    land(world, "empty", f"{header}\n")
    world.run("first")
    land(world, "full", f"{header}\n1\n")
    world.run("second")
    land(world, "copy", f"{header}\n1\n2\n")
    with pytest.raises(SourceChanged, match=r"copy.* is .*full.* under another name"):
        world.run("third")
    assert world.shown() == Counter({header: 2, "1": 1})


def test_the_rest_of_a_growing_file_is_not_dropped_when_grow_is_taken_back(make: Make) -> None:
    world = make(grow=True)
    log, other = land(world, "log", "1\n"), land(world, "other", "a\n")
    world.run("first")
    world.deploy(grow=False)
    world.run("second")
    append(log, "2\n")
    land(world, "whole", "w\n")
    with pytest.raises(SourceChanged, match=r"log\.txt \(from byte 2\); set grow=True"):
        world.begin("third")
    world.deploy(grow=True)
    world.run("third")
    world.deploy(grow=False)
    other.unlink()
    world.run("fourth")
    assert world.shown() == Counter("1a2w")


@pytest.mark.fault("A19")
def test_a_range_that_can_not_be_read_again_fails_the_epoch(make: Make) -> None:
    world = make(grow=True, hash=True)
    middle = "".join(f"{number:09}\n" for number in range(2000))
    log = land(world, "log", middle)
    world.begin("first")
    append(log, "later\n")
    facts = log.read_text()
    log.write_text(facts.replace("000001000", "000001xxx"))
    with pytest.raises(SourceChanged, match="differ from the planned ones"):
        world.task("stage", "first")
    log.write_text(facts)
    world.run("first", "stage")
    assert sum(world.shown().values()) == 2000


def test_a_replanned_epoch_takes_its_own_ranges_again(make: Make) -> None:
    world = make(grow=True)
    log = land(world, "log", "1\n")
    world.run("first")
    append(log, "2\n")
    world.begin("second")
    append(log, "3\n")
    assert taken(world.replan(2)) == ["2", "3"]
    world.run("second")
    world.run("third")
    assert world.shown() == Counter("123")


def test_a_compressed_file_does_not_grow(make: Make) -> None:
    world = make(grow=True)
    land(world, "log", "1\n").rename(world.landing / "log.gz.txt")
    world.run("first")
    world.deploy(path=f"{world.landing}/*")
    (world.landing / "log.gz").write_bytes(b"\x1f\x8b")
    with pytest.raises(InvalidPipeline, match=r"log\.gz: a compressed file"):
        world.begin("second")
