"""Rows in quarantine are their epoch's as those that are shown: once, wherever a process dies, and restated with it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from lockstep.audits import in_range, row_count
from lockstep.crash import CrashPoint
from lockstep.epoch import RunKey
from lockstep.errors import RestageRefused, StageFailed, WalCorrupt, WalGone
from lockstep.operations.quarantine import find_quarantine, open_quarantined
from lockstep.operations.replan import replan, void
from lockstep.protocol.restage import restage
from lockstep.protocol.stage import stage
from tests.crash.test_kill_and_zombie import hits, strike_each
from tests.crash.victims import Action, Hit, in_turn, overtake, sacrifice
from tests.crash.world import ROWS, Rows, World, flip_a_bit, rows_of_day, write_backwards, write_parquet
from tests.sampling import Sampling

pytestmark = pytest.mark.parametrize("world", ["two_phase"], indirect=True)  # no sink knows of quarantine
MOST = 14
AUDITS = (in_range("numbers", "number", at_most=MOST, name="small", quarantine=True), row_count("numbers", 1, ROWS - 1))


@dataclass(frozen=True)
class QuarantiningWorld(World):
    """Of each day's rows the sinks show the small ones, and the others stand in quarantine."""

    def expected(self, day: int) -> Rows:
        return Counter(row for row in rows_of_day(day) if row[1] <= MOST)

    def require_exactly_once(self, day: int) -> None:
        super().require_exactly_once(day)
        assert self.quarantined(day) == self.gone(day)

    def gone(self, day: int) -> Rows:
        return Counter(rows_of_day(day)) - self.expected(day)

    def quarantined(self, day: int) -> Rows:
        found = open_quarantined(self.runtime(), self.epoch_of(day).id, "numbers")
        rows: Rows = Counter()
        for batch in found or ():
            told = batch.to_pydict()
            assert set(told.pop("lockstep_audits")) == {"small"}
            rows.update(zip(*told.values(), strict=True))
        return rows


def run_of(day: int) -> RunKey:
    return RunKey("quarantine", f"day {day}")


@pytest.fixture
def quarantining(world: World) -> Iterator[QuarantiningWorld]:
    found = QuarantiningWorld(**vars(world))
    yield replace(found, pipeline=replace(world.pipeline, audits=AUDITS))


WAYS: list[tuple[Action, str]] = [("kill", "retry"), ("kill", "recovery"), ("hang", "new run")]


@pytest.mark.tier("all")
@pytest.mark.fault("N10")
def test_every_row_is_shown_or_in_quarantine_once_wherever_a_process(
    quarantining: QuarantiningWorld,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    subtests: pytest.Subtests,
    sampling: Sampling,
) -> None:
    """… is killed, or hangs and is released after another one has finished the epoch."""
    world, tasks = quarantining, ("stage", "audit", "commit", "cleanup")
    reached = [hit for hit in hits(world, monkeypatch) if hit.task in tasks]
    for day in strike_each(world, in_turn(sampling, reached, WAYS, every=6), tmp_path, subtests):
        world.require_exactly_once(day)


LATE: list[tuple[CrashPoint, Action]] = [
    (point, action) for point in CrashPoint if point.startswith("audit.") for action in ("kill", "hang")
]


@pytest.mark.fault("N10")
def test_a_late_auditor_leaves_quarantine_as_it_was_decided(
    quarantining: QuarantiningWorld, tmp_path: Path, subtests: pytest.Subtests, sampling: Sampling
) -> None:
    """… killed, or hung and released after the epoch was planned anew with another quarantine, and published."""
    for point, action in sampling.sample(LATE, 2):
        with subtests.test(f"{action} {point}"):
            _overtake_auditor(quarantining, point, action, tmp_path)


def _overtake_auditor(world: QuarantiningWorld, point: CrashPoint, action: Action, folder: Path) -> None:
    day = next(world.days)
    looser = in_range("numbers", "number", at_most=MOST + 1, name="small", quarantine=True)
    before = replace(world, pipeline=replace(world.pipeline, audits=(looser, row_count("numbers"))))
    before.run_until(run_of(day), day, "stage")
    assert world.quarantined(day) != world.gone(day)
    work = [("audit", partial(before.run_task, "audit", run_of(day), day))]
    victim = sacrifice(work, Hit("audit", point, 1), action, folder / "log")

    def resume() -> None:
        replan(world.runtime(), world.epoch_of(day).id, "the audit was too loose")
        world.run(RunKey("quarantine", f"planned anew {day}"), day)

    overtake(victim, resume, partial(world.require_exactly_once, day))
    world.require_tidy()


@pytest.mark.fault("N10")
def test_quarantine_can_be_read_at_every_state_and_goes_with_what_is_given_up(quarantining: QuarantiningWorld) -> None:
    world, day, other = quarantining, next(quarantining.days), next(quarantining.days)
    gone = world.gone(day)
    for task in world.tasks():
        world.run_task(task, run_of(day), day)
        if task != "begin":
            assert world.quarantined(day) == gone, task
    assert find_quarantine(world.runtime(), world.epoch_of(day).id).outputs["numbers"]["audits"] == {"small": len(gone)}
    world.run_until(run_of(other), other, "audit")
    void(world.runtime(), world.epoch_of(other).id, "given up")
    world.require_tidy()
    with pytest.raises(WalGone):
        world.quarantined(other)


@pytest.mark.parametrize("damaged", [False, True], ids=["sealed", "staged again"])
def test_quarantine_can_be_read_while_cleanup_has_moved_it_and_not_said_so(
    quarantining: QuarantiningWorld, damaged: bool
) -> None:
    world, day = quarantining, next(quarantining.days)
    gone = world.gone(day)
    world.run_until(run_of(day), day, "commit")
    if damaged:
        [file, *_] = sorted((world.staging_folder / (world.epoch_of(day).wal or "")).glob("numbers/*.parquet"))
        file.write_bytes(file.read_bytes()[:-1])
        restage(world.runtime(), world.epoch_of(day).id, write_backwards, "a bad disk")
    for task in world.tasks()[world.tasks().index("commit") + 1 : -1]:
        world.run_task(task, run_of(day), day)
    epoch, staging = world.epoch_of(day), world.runtime().staging
    rows = epoch.restaged.wal if epoch.restaged else epoch.wal
    staging.archive(epoch.wal or "", world._looking.deployment(), epoch.pipeline, epoch.id, rows)
    assert world.quarantined(day) == gone
    assert (world.staging_folder / find_quarantine(world.runtime(), epoch.id).folder / "output=numbers").is_dir()
    world.run_task("cleanup", run_of(day), day)
    assert world.quarantined(day) == gone


def test_a_range_that_is_restated_has_the_quarantine_of_now(quarantining: QuarantiningWorld) -> None:
    world, day = quarantining, next(quarantining.days)
    world.run(run_of(day), day)
    first = world.epoch_of(day)
    stricter = in_range("numbers", "number", at_most=9, name="small", quarantine=True)
    now = replace(world, pipeline=replace(world.pipeline, audits=(stricter,)))
    again = RunKey("quarantine", f"again {day}", restate="more of them are wrong")
    now.run(again, day)
    assert now.quarantined(day) == Counter(row for row in rows_of_day(day) if row[1] > 9)
    assert now.shown_in_warehouse(day) == Counter(row for row in rows_of_day(day) if row[1] <= 9)
    rows = open_quarantined(now.runtime(), first.id, "numbers")
    assert rows is not None and rows.rows == sum((world.gone(day)).values())


@pytest.mark.fault("N10")
def test_what_is_staged_in_a_damaged_wals_place_has_the_quarantine_that_was_sealed(
    quarantining: QuarantiningWorld,
) -> None:
    world, day = quarantining, next(quarantining.days)
    world.run_until(run_of(day), day, "commit")
    epoch = world.epoch_of(day)
    [file, *_] = sorted((world.staging_folder / (epoch.wal or "")).glob("numbers/*.parquet"))
    file.write_bytes(file.read_bytes()[:-1])
    with pytest.raises(RestageRefused, match=r"numbers in quarantine: 4 rows with digest"):
        restage(world.runtime(), epoch.id, _other_quarantine, "a bad disk")
    restage(world.runtime(), epoch.id, write_backwards, "a bad disk")
    for task in world.tasks()[world.tasks().index("commit") + 1 :]:
        assert world.quarantined(day) == world.gone(day)
        world.run_task(task, run_of(day), day)
    world.require_exactly_once(day)


def _other_quarantine(request_uri: str) -> None:
    """The same rows in the output, another one in quarantine."""
    write_parquet(request_uri)
    folder = Path(request_uri.removeprefix("file://")).parent / "quarantine" / "output=numbers"
    [first, *_] = sorted(folder.glob("*.parquet"))
    table = pq.read_table(first)
    pq.write_table(table.set_column(2, "label", [["!"] * len(table)]), first)


def test_a_job_that_has_not_asked_seals_nothing(quarantining: QuarantiningWorld) -> None:
    """As a driver with a Lockstep from before quarantine does."""
    world, day = quarantining, next(quarantining.days)

    def silent(request_uri: str) -> None:
        request = Path(request_uri.removeprefix("file://"))
        told = request.read_text()
        request.write_text(json.dumps({k: v for k, v in json.loads(told).items() if k != "quarantine"}))
        write_parquet(request_uri)

    world.run_until(run_of(day), day, "begin")
    with pytest.raises(StageFailed, match="hasn't asked the audits"):
        stage(world.runtime(), run_of(day), silent)
    world.run(run_of(day), day, start="stage")
    world.require_exactly_once(day)


@pytest.mark.parametrize("last", ["stage", "cleanup"])
def test_a_damaged_row_in_quarantine_is_told_and_never_shown(quarantining: QuarantiningWorld, last: str) -> None:
    world, day = quarantining, next(quarantining.days)
    world.run_until(run_of(day), day, last)
    place = find_quarantine(world.runtime(), world.epoch_of(day).id).folder
    for file in (world.staging_folder / place).rglob("*.parquet"):
        flip_a_bit(file)
    with pytest.raises(WalCorrupt):
        world.quarantined(day)
    if last == "stage":
        world.run(run_of(day), day, start="audit")
