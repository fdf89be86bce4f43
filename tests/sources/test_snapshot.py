"""A source that each epoch reads whole: frozen at its begin, the same in every attempt, used up by none."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lockstep.epoch import Epoch, Input, Interval, RunKey
from lockstep.errors import (
    IllegalTransition,
    InvalidPipeline,
    NameTaken,
    RestateRefused,
    SourceChanged,
    SourceNotReady,
)
from lockstep.features.assembly import runtime_for
from lockstep.ledger import Ledger, migrate
from lockstep.operations.rebuild import look
from lockstep.pipeline import Pipeline
from lockstep.protocol.begin import begin, begin_unless_idle
from lockstep.protocol.stage import stage
from lockstep.sinks import FileSink
from lockstep.sources import (
    FileSource,
    KafkaSource,
    MariaDbTableSource,
    PostgresTableSource,
    SequenceSource,
    Snapshot,
    Source,
)
from lockstep.sources.base import planned_source
from lockstep.wal.manifest import SourceCount
from lockstep.wal.request import RESULT, StageRequest, StageResult
from lockstep.wal.staging import Staging
from stack.postgres import PostgresServer
from tests.crash.victims import sacrifice
from tests.sampling import Sampling
from tests.sources.folder_world import FolderWorld, Make, hits_of, key_of, lines_of, tasks_while, unchanged

EVENTS = SequenceSource(10)
DAYS = [Interval(datetime(2013, 1, day, tzinfo=UTC), datetime(2013, 1, day + 1, tzinfo=UTC)) for day in (1, 2, 3)]


def joined(request_uri: str) -> None:
    """What the Spark job would do: each landed line beside all names that the snapshot has."""
    folder = Path(request_uri.removeprefix("file://")).parent
    request = StageRequest.from_json(json.loads((folder / "_request.json").read_text()))
    names = "".join(sorted(lines_of(request.sources["names"].end)))
    found = [f"{line} {names}" for line in lines_of(request.sources["landing"].end)]
    (folder / "lines").mkdir()
    pq.write_table(pa.table({"value": pa.array(found, pa.string())}), folder / "lines" / "part-00000.parquet")
    sources = {name: SourceCount(len(lines_of(one.end)), 0) for name, one in request.sources.items()}
    (folder / RESULT).write_text(json.dumps(StageResult({"lines": len(found)}, sources, "test").to_json()))


class JoiningWorld(FolderWorld):
    """A watched folder beside a folder that is read whole."""

    @property
    def names(self) -> Path:
        return self.folder / "names"

    def name(self, file: str, *lines: str) -> None:
        """Put a file of the snapshot, whole, in the place of the one that is there."""
        (self.names / f".{file}").write_text("".join(f"{line}\n" for line in lines))
        (self.names / f".{file}").rename(self.names / f"{file}.txt")

    def land(self, *lines: str) -> None:
        for line in lines:
            (self.landing / f"{line}.txt").write_text(f"{line}\n")

    def task(self, name: str, run: str | RunKey, interval: Interval | None = None) -> None:
        if name != "stage":
            super().task(name, run, interval)
            return
        with closing((runtime := self.runtime()).ledger):
            stage(runtime, key_of(run), joined)

    def with_names(self, source: Source, **others: Any) -> None:
        """The pipeline as it is defined from now on."""
        sources = {**self.pipeline.sources, "names": source}
        self.pipeline = replace(self.pipeline, sources=sources, **{"max_in_flight": 5, **others})

    def restate(self, run: str, epoch: int, reads: Input | None = None) -> Epoch:
        key = RunKey("watch", run, restate="the names were wrong", epoch=epoch, input=reads)
        with closing((runtime := self.runtime()).ledger):
            return begin(runtime, key)


@pytest.fixture
def world(make: Make) -> JoiningWorld:
    made = make()
    world = JoiningWorld(made.ledger_dsn, made.folder, made.pipeline)
    world.names.mkdir()
    world.with_names(Snapshot(FileSource(f"{world.names}/*.txt", format="text")))
    world.name("first", "a")
    return world


def names_of(epoch: Epoch) -> list[str]:
    return lines_of(epoch.plan.sources["names"].end)


# --- epochs of a cursor ----------------------------------------------------------------------------------------------


def test_each_epoch_has_all_of_a_snapshot_as_it_was_at_its_first_begin(world: JoiningWorld) -> None:
    world.land("1")
    first = world.begin("one")
    world.name("second", "b")
    world.land("2")
    assert world.begin("one").plan == first.plan
    second = world.begin("two")
    assert (names_of(first), names_of(second)) == (["a"], ["a", "b"])
    assert second.plan.sources["names"].start is None
    with closing(Ledger(world.ledger_dsn)) as ledger:  # nobody owns the files of a snapshot
        paths = [file["path"] for found in first.plan.sources.values() for file in found.end["files"]]
        assert {Path(path).name for path in ledger.find_claimed_paths("watch", "landing", paths)} == {"1.txt"}
        assert ledger.find_claimed_paths("watch", "names", paths) == set()
    world.run("one", "stage")
    world.run("two", "stage")
    assert world.shown() == {"1 a": 1, "2 ab": 1}
    world.name("first", "long")
    assert world.told("changed") == {1: [], 2: []}  # what changes in a folder that every epoch reads is no news


def test_a_snapshot_alone_is_nothing_new(world: JoiningWorld) -> None:
    world.land("1")
    world.run("one")
    world.name("second", "b")
    with closing((runtime := world.runtime()).ledger):
        assert begin_unless_idle(runtime, RunKey("watch", "two")) is None


@pytest.mark.fault("A26")
def test_a_snapshot_that_changed_is_told_and_replanned(world: JoiningWorld) -> None:
    world.land("1")
    world.begin("one")
    world.name("first", "A")
    with pytest.raises(SourceChanged, match=r"first\.txt.*replan"):
        world.task("stage", "one")
    found = world.replan(1)
    assert names_of(found) == ["A"]
    world.run("two")
    assert world.shown() == {"1 A": 1}


@pytest.mark.fault("A26")
def test_an_epoch_that_others_follow_gets_another_snapshot_and_keeps_its_range(world: JoiningWorld) -> None:
    world.land("1")
    first = world.begin("one")
    world.land("2")
    second = world.begin("two")
    world.name("first", "A")
    found = world.replan(1)
    assert found.plan.sources["landing"] == first.plan.sources["landing"]
    assert names_of(found) == ["A"]
    with closing(Ledger(world.ledger_dsn)) as ledger:
        assert ledger.epoch("watch", 2).plan == second.plan
    world.replan(2)
    world.run("three")
    world.run("four")
    assert world.shown() == {"1 A": 1, "2 A": 1}


def test_an_epoch_that_others_follow_is_not_replanned_without_a_snapshot(world: JoiningWorld) -> None:
    world.pipeline = replace(world.pipeline, sources={"landing": world.pipeline.sources["landing"]})
    world.begin("one")
    world.begin("two")
    with pytest.raises(IllegalTransition, match="epoch 2 starts where it ends"):
        world.replan(1)


def test_a_snapshot_without_a_file_is_waited_for(world: JoiningWorld) -> None:
    (world.names / "first.txt").unlink()
    with pytest.raises(SourceNotReady) as refused:
        world.begin("one")
    assert refused.value.places == (f"{world.names}/*.txt",)
    world.with_names(Snapshot(FileSource(f"{world.names}/*.txt", format="text", missing="empty")))
    assert names_of(world.begin("one")) == []


# --- one name, once a snapshot and once not --------------------------------------------------------------------------


@pytest.mark.fault("A26")
def test_a_cursor_never_goes_on_where_a_snapshot_ended(world: JoiningWorld) -> None:
    files = FileSource(f"{world.names}/*.txt", format="text")
    world.run("snapshot")
    world.with_names(files)
    found = world.begin("one")
    assert (names_of(found), found.plan.sources["names"].start) == (["a"], None), "what was a snapshot is a new one"
    world.run("one", "stage")
    world.with_names(Snapshot(files))
    world.name("second", "b")
    world.land("2")
    world.run("two")
    world.with_names(files)
    world.name("third", "c")
    found = world.begin("three")
    assert names_of(found) == ["b", "c"]
    _, first, _, third = (epoch.plan.sources["names"] for epoch in world.epochs())
    assert (third.start, third.snapshot) == (first.end, False)


# --- restating -------------------------------------------------------------------------------------------------------


def test_an_epoch_is_restated_with_its_range_and_the_snapshot_of_now(world: JoiningWorld) -> None:
    world.land("1")
    world.run("one")
    world.land("2")
    world.run("two")
    world.name("first", "A")
    assert names_of(world.restate("again", 1)) == ["A"]
    world.run("again", "stage")
    assert world.shown() == {"1 A": 1, "2 a": 1}


def test_a_frozen_snapshot_is_read_again_or_refused(world: JoiningWorld) -> None:
    world.land("1")
    world.run("one")
    world.name("second", "b")
    assert names_of(world.restate("frozen", 1, Input.FROZEN)) == ["a"]
    world.run("frozen", "stage")
    assert world.shown() == {"1 a": 1}
    world.name("first", "A")
    with pytest.raises(RestateRefused, match=r"first\.txt"):
        world.restate("frozen again", 1, Input.FROZEN)


def test_a_restatement_is_replanned_as_it_was_asked_for(world: JoiningWorld) -> None:
    world.land("1")
    world.run("one")
    world.name("second", "b")
    fresh = world.restate("afresh", 1)
    with pytest.raises(RestateRefused, match="begun to read afresh"):
        world.restate("frozen", 1, Input.FROZEN)
    world.name("third", "c")
    assert names_of(world.replan(fresh.id)) == ["a", "b", "c"]
    world.restate("afresh", 1)
    world.run("afresh", "stage")
    frozen = world.restate("frozen", 1, Input.FROZEN)
    world.name("fourth", "d")
    assert names_of(world.replan(frozen.id)) == ["a", "b", "c"]


# --- by interval -----------------------------------------------------------------------------------------------------


def daily(world: JoiningWorld, names: Source) -> None:
    landing = FileSource(f"{world.landing}/{{interval_start:%Y-%m-%d}}.txt", format="text")
    world.pipeline = replace(world.pipeline, sources={"landing": landing, "names": names})
    for day in DAYS:
        (world.landing / f"{day.start:%Y-%m-%d}.txt").write_text(f"{day.start:%d}\n")


def begin_day(world: JoiningWorld, day: Interval, **asked: Any) -> Epoch:
    name = f"{day.start:%d}{''.join(sorted(asked))}{asked.get('input', '')}"
    with closing((runtime := world.runtime()).ledger):
        return begin(runtime, RunKey("watch", name, **asked), day)


def test_intervals_run_in_any_order_beside_a_snapshot(world: JoiningWorld) -> None:
    daily(world, Snapshot(FileSource(f"{world.names}/*.txt", format="text")))
    for day in reversed(DAYS):
        begin_day(world, day)
    for day in DAYS:
        world.run(f"{day.start:%d}", "stage")
    assert world.shown() == {"01 a": 1, "02 a": 1, "03 a": 1}
    world.name("second", "b")
    assert names_of(begin_day(world, DAYS[0], restate="more names")) == ["a", "b"]
    assert names_of(begin_day(world, DAYS[1], restate="a bug", input=Input.FROZEN)) == ["a"]
    world.name("first", "A")
    with pytest.raises(RestateRefused, match=r"first\.txt"):
        begin_day(world, DAYS[2], restate="a bug", input=Input.FROZEN)


def test_a_day_s_snapshot_that_changed_is_told_and_a_folder_s_is_not(world: JoiningWorld) -> None:
    daily(world, Snapshot(FileSource(f"{world.names}/{{interval_start:%Y-%m-%d}}*.txt", format="text")))
    world.name("2013-01-01", "x")
    begin_day(world, DAYS[0])
    world.run("01", "stage")
    assert (world.told("late"), world.told("changed")) == ({1: []}, {1: []})
    world.name("2013-01-01", "long")
    world.name("2013-01-01-more", "y")
    [late], [changed] = world.told("late").values(), world.told("changed").values()
    assert [Path(path).name for path in late] == ["2013-01-01-more.txt"]
    assert "2013-01-01.txt" in str(changed)


# --- what else looks at ranges ---------------------------------------------------------------------------------------


def test_two_pipelines_that_share_no_more_than_a_snapshot_are_two(world: JoiningWorld) -> None:
    world.run("one")
    (world.folder / "elsewhere").mkdir()
    sources = {
        "landing": FileSource(f"{world.folder}/elsewhere", format="text"),
        "names": world.pipeline.sources["names"],
    }
    sink = FileSink("out", output="lines", path=str(world.folder / "other"), format="parquet")
    world.pipeline = replace(world.pipeline, sources=sources, sinks=[sink])
    with pytest.raises(NameTaken):
        world.begin("two")


def test_a_lost_ledger_is_rebuilt_whatever_a_snapshot_was(world: JoiningWorld, ledger_server: PostgresServer) -> None:
    for number in (1, 2):
        world.land(str(number))
        world.name(f"more {number}", "b")
        world.run(f"run {number}")
    dsn = ledger_server.create_database("snapshot_rebuilt")
    migrate(dsn)
    with closing(Ledger(world.ledger_dsn)) as lost, closing(Ledger(dsn)) as empty:
        staging = Staging(str(world.folder / "staging"))
        found = look(runtime_for(world.pipeline, empty, staging, {}), lost.deployment())
    assert not found.refused
    assert [one.plan.sources["names"].snapshot for one in found.epochs] == [True, True]


# --- what is refused, and what a plan says ---------------------------------------------------------------------------

TABLE = partial(PostgresTableSource, "public.t", connection="shop", order_by="id")


def test_what_can_not_be_read_whole_is_refused_where_it_is_defined(subtests: pytest.Subtests) -> None:
    cases: list[tuple[Any, ...]] = [
        (partial(KafkaSource, "a", connection="kafka"), "older records go"),
        (partial(MariaDbTableSource, "t", connection="shop", order_by="id"), "MariaDB"),
        (partial(SequenceSource, 10), "open_snapshot"),
        (partial(TABLE, max_rows_per_epoch=3), "max_rows_per_epoch"),
        (partial(TABLE, verify_count=False), "verify_count"),
        (partial(FileSource, "in", format="text", max_files_per_epoch=3), "caps"),
        (partial(FileSource, "in", format="text", once=True), "once"),
        (lambda: Snapshot(TABLE()), "one already"),
    ]
    for source, reason in cases:
        told = f"a snapshot of .* can't be taken: .*{reason}"
        with subtests.test(reason=reason), pytest.raises(InvalidPipeline, match=told):
            Snapshot(source())


def pipeline(sources: Mapping[str, Source]) -> Pipeline:
    return Pipeline("p", sources, unchanged, [FileSink("out", output="lines", path="out")])


def test_a_pipeline_that_nothing_names_the_epochs_of_is_refused(subtests: pytest.Subtests) -> None:
    cases: list[tuple[Any, ...]] = [
        ({"names": Snapshot(TABLE())}, "nothing says what an epoch is"),
        ({"names": Snapshot(FileSource("{interval_start}.txt", format="text")), "events": EVENTS}, "no placeholder"),
        (
            {"days": FileSource("{interval_start}.txt", format="text"), "events": EVENTS},
            r"mix intervals \(days\) and cursors \(events\).*Snapshot",
        ),
    ]
    for sources, reason in cases:
        with subtests.test(reason=reason), pytest.raises(InvalidPipeline, match=reason):
            pipeline(sources)


def test_a_snapshot_is_the_same_again_by_what_a_plan_freezes_of_it() -> None:
    taken = Snapshot(TABLE(columns=("id",)))
    spec = json.loads(json.dumps(taken.spec()))
    assert spec["type"] == "lockstep.sources:Snapshot"
    again = Source.from_spec(spec)
    assert isinstance(again, Snapshot)
    assert again.spec() == spec
    corrected = Snapshot(TABLE(columns=("id", "name")))
    assert planned_source("names", spec, corrected) is corrected
    moved = planned_source("names", spec, Snapshot(replace(TABLE(columns=("id", "name")), table="public.other")))
    assert isinstance(moved, Snapshot)
    assert isinstance(moved.source, PostgresTableSource)
    assert (moved.source.table, moved.source.columns) == ("public.t", ("id", "name"))
    other = planned_source("names", spec, Snapshot(FileSource("in", format="text")))
    assert other.spec() == spec
    assert planned_source("names", spec, TABLE()).spec() == spec


# --- crashes ---------------------------------------------------------------------------------------------------------


@pytest.mark.fault("A26")
def test_what_was_frozen_is_joined_whole_wherever_a_process_is_killed(
    world: JoiningWorld, monkeypatch: pytest.MonkeyPatch, subtests: pytest.Subtests, sampling: Sampling
) -> None:
    """… while the snapshot gets another file at each point: a retry has the one of the first begin."""
    world.land("dry")
    first = {hit.point: hit for hit in reversed(hits_of(world, monkeypatch))}  # time that each point is reached
    hits, expected = sampling.sample(list(first.values()), 6), world.shown()

    def grow() -> None:
        world.name(f"file {len(list(world.names.iterdir()))}", "n")

    for number, hit in enumerate(hits):
        run = f"run {number}"
        with subtests.test(f"{hit.task} {hit.point} {hit.nth}"):
            world.land(str(number))
            victim = sacrifice(tasks_while(world, grow, run), hit, "kill", world.folder / "log")
            assert victim.killed, victim.log.read_text()
            world.run(run, hit.task)
            [*_, epoch] = world.epochs()
            expected[f"{number} {''.join(sorted(names_of(epoch)))}"] += 1
            assert world.shown() == expected
