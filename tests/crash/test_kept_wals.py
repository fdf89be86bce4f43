"""Sealed WALs that stay after cleanup, until they are due; and whoever lets go of them dies, or stops, anywhere."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from lockstep.crash import CrashPoint
from lockstep.definition.wal_retention import WalRetention
from lockstep.epoch import Epoch, RunKey
from lockstep.errors import InvalidPipeline, WalCorrupt
from lockstep.ledger import Ledger
from lockstep.operations.wal_log import open_output
from lockstep.protocol.runtime import open_wal
from lockstep.protocol.stage import stage
from lockstep.protocol.sweep import sweep_folders
from lockstep.states import EpochState
from lockstep.wal.staging import Execution, Staging
from stack.postgres import PostgresServer
from tests.crash.recording import recorded
from tests.crash.test_delta import make_delta_world
from tests.crash.victims import Action, Hit, overtake, sacrifice
from tests.crash.world import World, make_world, rows_of_day, write_parquet
from tests.sampling import Sampling

DAY = timedelta(days=1)
EXPIRING = tuple(point for point in CrashPoint if point.startswith("expire."))


@pytest.fixture
def world(ledger_server: PostgresServer, memory_folder: Path) -> Iterator[World]:
    folder = Path(tempfile.mkdtemp(dir=memory_folder))
    names = [f"{kind}_{folder.name.lower()}" for kind in ("kept", "warehouse")]
    ledger, warehouse = (ledger_server.create_database(name) for name in names)
    yield make_world(ledger, warehouse, folder, "two_phase")
    for name in names:
        ledger_server.drop_database(name)


def keeping(world: World, keep_wal: timedelta | int | None) -> World:
    return replace(world, pipeline=replace(world.pipeline, keep_wal=keep_wal))


def ran(world: World, days: int = 1) -> list[Epoch]:
    found = []
    for _ in range(days):
        day = next(world.days)
        world.run(RunKey("kept", f"run {day}"), day)
        found.append(world.epoch_of(day))
    return found


def kept(world: World) -> list[int]:
    """The epochs whose WAL the ledger says is kept; it must be there whole, and nothing else may be there."""
    ledger = Ledger(world.ledger_dsn)
    wals = ledger.kept_wals("numbers")
    assert world.left_in_staging() == sorted(one.wal for one in wals)
    for one in wals:
        epoch = ledger.epoch("numbers", one.epoch)
        wal = open_wal(Staging(str(world.staging_folder)), epoch)
        [output] = wal.outputs(["numbers"])
        rows = Counter(tuple(row.values()) for batch in output for row in batch.to_pylist())
        assert epoch.interval is not None
        assert rows == Counter(rows_of_day(epoch.id - 1))
        assert one.bytes == sum(file.stat().st_size for file in world.staging_folder.glob(f"{one.wal}/numbers/*"))
    ledger.close()
    return [one.epoch for one in wals]


def pass_time(world: World, epoch: int, time: timedelta) -> None:
    world.execute(
        world.ledger_dsn,
        "UPDATE lockstep.retained_wal SET retained_at = retained_at - %s WHERE epoch = %s",
        (time, epoch),
    )


def test_cleanup_deletes_wals_but_so_many_as_the_pipeline_keeps_and_older_ones_go_with_later_epochs(
    world: World,
) -> None:
    ran(world)
    assert kept(world) == []
    for keeps, stay in ((2, [2]), (2, [2, 3]), (2, [3, 4]), (None, [])):
        ran(keeping(world, keeps))
        assert kept(world) == stay


def test_a_wal_stays_for_so_long_and_recovery_deletes_it_then(world: World) -> None:
    ran(keeping(world, 7 * DAY), 2)
    pass_time(world, 1, 6 * DAY)
    assert world.recover().problems == []
    assert kept(world) == [1, 2]
    pass_time(world, 1, 2 * DAY)
    assert world.recover().swept == 1
    assert kept(world) == [2]


def _write_and_fail(request_uri: str) -> None:
    write_parquet(request_uri)
    raise ZeroDivisionError


def test_only_the_sealed_folder_of_an_epoch_is_kept(world: World) -> None:
    world = keeping(world, DAY)
    day = next(world.days)
    run = RunKey("kept", "dies once")
    world.run_task("begin", run, day)
    with pytest.raises(ZeroDivisionError):
        stage(world.runtime(), run, _write_and_fail)
    assert len(world.left_in_staging()) == 1
    world.run(run, day, "stage")
    assert kept(world) == [1]


def test_what_a_cleanup_has_begun_to_delete_is_not_kept(world: World, tmp_path: Path) -> None:
    day = next(world.days)
    run = RunKey("kept", "half")
    world.run_until(run, day, world.tasks()[-2])
    hit = Hit("cleanup", CrashPoint.CLEANUP_AFTER_DELETE, 1)
    sacrifice([("cleanup", lambda: world.run_task("cleanup", run, day))], hit, "kill", tmp_path / "log")
    assert world.left_in_staging()
    keeping(world, DAY).run_task("begin", RunKey("kept", "deployed"), day)
    world.run_task("cleanup", run, day)
    assert world.state_of(day) == EpochState.CLEANED
    assert kept(world) == []


@pytest.mark.tier("all")
@pytest.mark.fault("N8")
@pytest.mark.parametrize("keeps", [None, DAY], ids=["lets go", "keeps"])
def test_wherever_a_cleanup_stands_still_it_deletes_nothing_that_another_definitions_cleanup_keeps(
    world: World, keeps: timedelta | None, tmp_path: Path, subtests: pytest.Subtests
) -> None:
    """It goes on when another one, of a definition that keeps WALs, or keeps none any more, has come and gone."""
    late, soon = keeping(world, keeps), keeping(world, DAY if keeps is None else None)
    for point in (point for point in CrashPoint if point.startswith("cleanup.")):
        if point is CrashPoint.CLEANUP_AFTER_RECORD or (keeps and point.endswith("_delete")):
            continue
        with subtests.test(f"{point}"):
            day = next(world.days)
            run = RunKey("kept", f"late {day}")
            late.run_until(run, day, world.tasks()[-2])
            hit = Hit("cleanup", point, 1)
            tasks = [("cleanup", lambda: late.run_task("cleanup", run, day))]  # noqa: B023
            victim = sacrifice(tasks, hit, "hang", tmp_path / "log")

            def resume(day: int = day, run: RunKey = run) -> None:
                soon.run_task("begin", RunKey("kept", f"deployed {day}"), day)
                soon.run_task("cleanup", run, day)
                assert world.state_of(day) == EpochState.CLEANED

            def check() -> None:
                kept(world)

            overtake(victim, resume, check)


def test_a_wal_that_is_kept_while_somebody_sweeps_stays(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world = keeping(world, DAY)
    day = next(world.days)
    run = RunKey("kept", "swept")
    world.run_until(run, day, world.tasks()[-2])
    real = Staging.executions

    def overtaken(staging: Staging, deployment: str, pipeline: str, **which: Any) -> list[Execution]:
        found = real(staging, deployment, pipeline, **which)
        monkeypatch.setattr(Staging, "executions", real)
        world.run_task("cleanup", run, day)
        return found

    monkeypatch.setattr(Staging, "executions", overtaken)
    runtime = world.runtime()
    assert sweep_folders(runtime) == 0
    runtime.ledger.close()
    assert kept(world) == [1]


@pytest.mark.tier("all")
@pytest.mark.parametrize(("action", "way"), [("kill", "recovery"), ("hang", "the next epoch")])
def test_wherever_letting_go_is_struck_what_is_due_goes_and_what_is_not_stays(
    world: World, action: Action, way: str, tmp_path: Path, subtests: pytest.Subtests, sampling: Sampling
) -> None:
    keeper = keeping(world, DAY)
    for point in sampling.sample(EXPIRING, 3):
        with subtests.test(f"{point}"):
            due, stays = ran(keeper, 2)
            pass_time(world, due.id, 2 * DAY)
            tasks = [("recover", lambda: world.run_task("recover", RunKey("kept", "recovery"), 0))]
            victim = sacrifice(tasks, Hit("recover", point, 1), action, tmp_path / "log")

            def resume() -> None:
                if way == "recovery":
                    assert world.recover().problems == []
                else:
                    ran(keeper)

            overtake(victim, resume, lambda: _require(world, due, stays))  # noqa: B023


def _require(world: World, due: Epoch, stays: Epoch) -> None:
    found = kept(world)
    assert due.id not in found
    assert stays.id in found
    for epoch in (due, stays):
        world.require_exactly_once(epoch.id - 1)


def test_no_two_side_effects_of_letting_go_fall_between_the_same_crash_points(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran(keeping(world, DAY), 2)
    for epoch in (1, 2):
        pass_time(world, epoch, 2 * DAY)
    with recorded(monkeypatch, world.folder) as recording:
        world.run_task("recover", RunKey("kept", "recovery"), 0)
    assert recording.unseparated() == []
    assert {what for kind, what in recording.events if kind == "point"} >= {point.value for point in EXPIRING}


@pytest.mark.sample(1)
@pytest.mark.parametrize("keep_wal", [None, DAY])
def test_of_an_output_that_a_table_has_adopted_the_tables_files_are_read_whatever_is_kept(
    ledger_server: PostgresServer, memory_folder: Path, keep_wal: timedelta | None
) -> None:
    folder = Path(tempfile.mkdtemp(dir=memory_folder))
    names = [f"{kind}_{folder.name.lower()}" for kind in ("kept", "warehouse")]
    ledger, warehouse = (ledger_server.create_database(name) for name in names)
    made = make_delta_world(ledger, warehouse, folder)
    world = replace(made, pipeline=replace(made.pipeline, keep_wal=keep_wal))
    day = next(world.days)
    world.run(RunKey("kept", "adopted"), day)
    runtime = world.runtime()
    number = world.epoch_of(day).id
    assert [(one.epoch, one.bytes) for one in runtime.ledger.kept_wals("numbers")] == (
        [(number, 0)] if keep_wal else []
    )
    rows = [tuple(row.values()) for batch in open_output(runtime, number, "numbers") for row in batch.to_pylist()]
    assert Counter(rows) == Counter(rows_of_day(day))
    pass_time(world, number, 2 * DAY)
    assert world.recover().problems == []
    assert runtime.ledger.kept_wals("numbers") == []
    assert world.lake.files() == world.staged_at_home()  # letting go takes nothing of the table's
    world.require_exactly_once(day)
    for file in world.staged_at_home():
        (world.lake.root / file).unlink()
    with pytest.raises(WalCorrupt, match="missing"):
        list(open_output(runtime, number, "numbers"))
    runtime.ledger.close()


def test_keep_wal_is_a_time_or_a_number_of_epochs() -> None:
    for wrong in (0, -1, timedelta(), -DAY, True, "7 days", 1 << 40):
        with pytest.raises(InvalidPipeline, match="keep_wal"):
            WalRetention.of("numbers", wrong)  # type: ignore[arg-type]
            pytest.fail(f"{wrong!r} is taken")
