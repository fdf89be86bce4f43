"""One file is one file, by whatever links, mounts and folders it is reached; names that Spark can't read are told."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from lockstep.epoch import Interval
from lockstep.errors import SourceChanged, SourceRefused
from lockstep.sources import FileSource
from tests.sources.folder_world import FolderWorld, Make
from tests.sources.test_file_source import DAY, SCHEMA, daily, land, names, opened, watched


def watch(world: FolderWorld, pattern: Path | str, **settings: Any) -> None:
    """Deploy the pipeline with another path, and other settings."""
    world.deploy(path=str(pattern), **settings)


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


# --- links ---


@pytest.mark.fault("L4")
@pytest.mark.sample(1)
@pytest.mark.parametrize(("grow", "cap"), [(False, 1), (True, None)])
def test_a_file_is_read_once_though_links_lead_to_it(make: Make, grow: bool, cap: int | None) -> None:
    world = make(grow=grow, max_files_per_epoch=cap)
    write(world.landing / "a" / "1.txt", "1\n")
    outside = write(world.folder / "outside" / "2.txt", "2\n")
    (world.landing / "b").symlink_to(world.landing / "a")
    (world.landing / "a" / "up").symlink_to(world.landing)
    (world.landing / "a" / "again.txt").symlink_to(world.landing / "a" / "1.txt")
    (world.landing / "out").symlink_to(outside.parent)
    watch(world, f"{world.landing}/**/*.txt")
    for run in range(3):
        world.run(str(run))
    assert world.shown() == Counter("12")


def test_a_link_whose_target_changes_is_the_file_that_it_leads_to(make: Make) -> None:
    world = make()
    watch(world, f"{world.landing}/current.txt")
    for day in "123":
        target = write(world.folder / "days" / f"{day}.txt", f"{day}\n")
        (world.landing / "current.txt").unlink(missing_ok=True)
        (world.landing / "current.txt").symlink_to(target)
        world.run(day)
        world.run(f"{day} again")
    assert world.shown() == Counter("123")


@pytest.mark.sample(1)
@pytest.mark.parametrize("grow", [False, True])
def test_the_folder_that_a_path_begins_with_may_be_a_link_that_each_machine_has_otherwise(
    make: Make, grow: bool
) -> None:
    world = make(grow=grow)
    write(world.folder / "here" / "1.txt", "1\n")
    (world.folder / "data").symlink_to("here")
    watch(world, f"{world.folder}/data/*.txt")
    world.run("here")
    shutil.move(world.folder / "here", world.folder / "there")
    (world.folder / "data").unlink()
    (world.folder / "data").symlink_to("there")
    world.run("there")
    assert world.shown() == Counter("1")


def test_an_interval_takes_a_linked_file_once_and_not_that_of_another_interval(tmp_path: Path) -> None:
    for day in ("2013-01-02", "2013-01-03"):
        land(tmp_path / day / "a.csv")
    (tmp_path / "2013-01-02" / "b.csv").symlink_to("a.csv")
    (tmp_path / "2013-01-02" / "c.csv").symlink_to("../2013-01-03/a.csv")
    source = opened(FileSource(f"{tmp_path}/{{interval_start:%Y-%m-%d}}/*.csv", schema=SCHEMA))
    found = [[claim.path for claim in source.claims(None, source.latest(None, day))] for day in (DAY, _after(DAY))]
    assert found == [[f"{tmp_path}/2013-01-02/a.csv", f"{tmp_path}/2013-01-03/a.csv"], [f"{tmp_path}/2013-01-03/a.csv"]]


def _after(day: Interval) -> Interval:
    return Interval(day.end, day.end + (day.end - day.start))


# --- hard links and mounts ---


@pytest.mark.fault("L4")
@pytest.mark.sample(1)
@pytest.mark.parametrize("grow", [False, True])
def test_a_hard_link_is_refused_by_both_names(make: Make, grow: bool) -> None:
    world = make(grow=grow, max_files_per_epoch=1)
    first = land(world.landing / "a.txt", "1\n")
    world.run("first")
    first.open("a").write("more\n")
    (world.landing / "b.txt").hardlink_to(first)
    with pytest.raises(SourceRefused, match=r"are one file under two names, by a hard link") as refused:
        world.run("second")
    assert {"a.txt", "b.txt"} <= set(re.findall(r"\w\.txt", str(refused.value)))
    (world.landing / "b.txt").unlink()
    world.run("second")
    assert world.shown() == Counter(["1", *(["more"] if grow else [])])


def test_a_hard_link_to_a_file_of_another_interval_is_refused_by_both_names(tmp_path: Path) -> None:
    first = land(tmp_path / "2013-01-02.csv")
    (tmp_path / "2013-01-03.csv").hardlink_to(first)
    with pytest.raises(SourceRefused, match=r"2013-01-02\.csv and .*2013-01-03\.csv are one file"):
        daily(tmp_path).latest(None, DAY)


@pytest.mark.fault("L4")
def test_a_folder_that_is_mounted_twice_is_refused_by_both_names(tmp_path: Path) -> None:
    land(tmp_path / "a" / "1.csv")
    (tmp_path / "b").mkdir()
    mounted = subprocess.run(["mount", "--bind", tmp_path / "a", tmp_path / "b"], capture_output=True, text=True)
    if mounted.returncode:
        pytest.skip(f"a folder can't be mounted here: {mounted.stderr.strip()}")
    try:
        with pytest.raises(SourceRefused, match=r"folders .*/[ab] and .*/[ab] are one folder under two names"):
            watched(f"{tmp_path}/*/*.csv").latest(None, None)
    finally:
        subprocess.run(["umount", tmp_path / "b"], check=True)


# --- a folder under another path ---


@pytest.mark.fault("L4")
@pytest.mark.sample(1)
@pytest.mark.parametrize("grow", [False, True])
def test_a_watched_folder_that_moved_is_named_and_read_on_where_a_person_says_so(make: Make, grow: bool) -> None:
    world = make(grow=grow)
    land(world.landing / "1.txt", "1\n")
    world.run("first")
    moved = world.folder / "moved"
    watch(world, f"{moved}/*.txt")
    world.run("before it is mounted")
    shutil.copytree(world.landing, moved)
    shutil.rmtree(world.landing)
    with pytest.raises(
        SourceChanged, match=r"read below .*/landing, and .*/moved has 1 .*say formerly=\('.*/landing',\)"
    ):
        world.run("second")
    watch(world, f"{moved}/*.txt", formerly=(str(world.landing),))
    land(moved / "2.txt", "2\n")
    if grow:
        (moved / "1.txt").open("a").write("more\n")
    world.run("second")
    world.run("third")
    assert world.shown() == Counter(["1", "2", *(["more"] if grow else [])])


# --- names ---


@pytest.mark.fault("L4")
def test_a_name_that_spark_can_not_read_is_refused_by_name(
    tmp_path_factory: pytest.TempPathFactory, subtests: pytest.Subtests
) -> None:
    for name in ["a:b.csv", "a:b/x[1].csv"]:
        with subtests.test(name=name):
            tmp_path = tmp_path_factory.mktemp("case")
            land(tmp_path / name)
            for source in (
                watched(f"{tmp_path}/**"),
                opened(FileSource(f"{tmp_path}/**/{{interval_start:*}}", schema=SCHEMA)),
            ):
                with pytest.raises(SourceRefused, match=r"colon in it.*rename it"):
                    source.latest(None, DAY)


def test_a_colon_in_a_folder_or_in_a_growing_file_is_no_hindrance(tmp_path: Path) -> None:
    land(tmp_path / "a:b" / "x.csv")
    assert names(watched(f"{tmp_path}/a:b").latest(None, None)) == ["x.csv"]
    land(tmp_path / "log:1.csv")
    assert names(watched(f"{tmp_path}/*.csv", grow=True).latest(None, None)) == ["log:1.csv"]
