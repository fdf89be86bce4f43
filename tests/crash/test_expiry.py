"""What a table consisted of once is deleted when no reader can have a version with it, and never what anybody needs."""

from __future__ import annotations

import os
import time
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from lockstep.crash import CrashPoint
from lockstep.epoch import RunKey
from lockstep.errors import ExpiryRefused, LedgerConflict
from lockstep.operations.compact import compact
from lockstep.operations.verify import verify
from lockstep.protocol.runtime import Runtime
from lockstep.sinks.compacting import Expiry
from lockstep.sinks.iceberg import IcebergSink
from lockstep.sinks.values import Presence
from stack.postgres import PostgresServer
from tests.apart import apart
from tests.crash.adopting_world import AdoptingWorld
from tests.crash.test_compaction import compacted, lake_world, lose_links, publish, require_whole, verified
from tests.crash.test_iceberg_epochs import loaded_table
from tests.crash.victims import Action, Hit, overtake, sacrifice
from tests.sinks.delta_target import on_table

#: Which of the two kinds of table a test is about goes by the commit's number: they differ in `tests/sinks`.
pytestmark = pytest.mark.sample(1)
WEEK = timedelta(days=7)
UNTIL_NOW = timedelta(0)


@pytest.fixture(params=["delta", "iceberg"])
def world(request: pytest.FixtureRequest, ledger_server: PostgresServer, memory_folder: Path) -> AdoptingWorld:
    return lake_world(request.param, ledger_server, memory_folder)


def expired(world: AdoptingWorld, retention: timedelta, *, dry_run: bool = False) -> Expiry:
    """By a compaction that finds nothing to compact."""

    def work() -> Expiry:
        runtime = world.runtime()
        with closing(runtime.ledger):
            done = compact(runtime, world.lake.sink.name, min_files=10_000, expire=retention, dry_run=dry_run)
        assert done.files_after == 0 and done.expired is not None
        return done.expired

    return apart(work)


def is_iceberg(world: AdoptingWorld) -> bool:
    return isinstance(world.lake.sink, IcebergSink)


def let_a_week_pass(world: AdoptingWorld) -> timedelta:
    """After which nobody reads older versions; what `--expire` is told then."""
    if is_iceberg(world):
        with loaded_table(world.warehouse_dsn) as table:
            assert table is not None
            head = table.current_snapshot()
            old = [one.snapshot_id for one in table.snapshots() if head and one.snapshot_id != head.snapshot_id]
            if old:
                table.maintenance.expire_snapshots().by_ids(old).commit()
        return UNTIL_NOW  # snapshots can't be made older
    for entry in (world.lake.root / "_delta_log").glob("*.json"):
        then = entry.stat().st_mtime - timedelta(days=8).total_seconds()
        os.utime(entry, (then, then))
    return WEEK


def compact_by_others(world: AdoptingWorld) -> None:
    """Every file becomes another one, which isn't Lockstep's."""
    if is_iceberg(world):
        with loaded_table(world.warehouse_dsn) as table:
            assert table is not None
            table.overwrite(table.scan().to_arrow())
        return

    def act(found: Any) -> None:
        found.optimize.compact()

    on_table(world.lake.root, act)


def test_what_compaction_replaced_goes_once_no_reader_has_a_version_with_it(world: AdoptingWorld) -> None:
    days = publish(world, 3)
    small = set(world.lake.files())
    assert compacted(world).files_after == 1
    found = expired(world, WEEK)
    assert (found.files, found.kept) == (0, {}) and small <= set(world.staged_at_home())
    now = let_a_week_pass(world)
    planned = expired(world, now, dry_run=True)
    assert (planned.files, planned.kept) == (6, {}) and planned.bytes > 0 and small <= set(world.staged_at_home())
    done = expired(world, now)
    assert (done.files, done.bytes) == (planned.files, planned.bytes)
    assert world.left_in_sink() == [] and expired(world, now).files == 0
    folders = [path for path in world.lake.root.glob("_lockstep/*/*/*/*") if path.is_dir()]
    assert len(folders) == 1, "no folder is left empty"
    days = publish(world, 2)
    assert compacted(world).files_before == 5, "what was compacted is compacted again"
    assert expired(world, let_a_week_pass(world)).files == 5
    assert world.left_in_sink() == [] and world.recover().problems == []
    require_whole(world, days)
    assert all(one.agrees and one.compared for day in days for one in verified(world, day))


def test_what_another_sink_has_yet_to_publish_from_stays_whoever_compacted_it(world: AdoptingWorld) -> None:
    days, late = publish(world), next(world.days)
    run = RunKey("expiry", "late")
    world.run_until(run, late, "commit")
    world.run_task("publish.lake", run, late)
    compact_by_others(world)
    found = expired(world, let_a_week_pass(world))
    assert (found.files, found.kept) == (2, {"of epochs that aren't cleaned up": 2})
    world.run(run, late, start="publish.warehouse")
    for day in (*days, late):
        world.require_exactly_once(day)
    assert expired(world, let_a_week_pass(world)).files == 2 and world.left_in_sink() == []
    for day in (*days, late):
        world.require_exactly_once(day)


def test_an_undecided_epoch_and_a_wal_that_is_kept_keep_their_files(world: AdoptingWorld) -> None:
    keeping = replace(world, pipeline=replace(world.pipeline, keep_wal=1))
    publish(keeping, 2)
    compacted(keeping)
    late, run = next(world.days), RunKey("expiry", "undecided")
    world.run_until(run, late, "prepare.lake")
    found = expired(keeping, let_a_week_pass(world))
    assert (found.files, found.kept) == (2, {"of WALs that are kept": 2, "of epochs that aren't cleaned up": 2})
    world.run(run, late, start="prepare.warehouse")
    world.require_exactly_once(late)


def test_a_ledger_of_another_life_takes_no_file(world: AdoptingWorld) -> None:
    publish(world, 3)
    compacted(world)
    now = let_a_week_pass(world)
    sql = "SET session_replication_role = replica; UPDATE lockstep.epoch SET manifest_hash = repeat('0', 64) WHERE id"
    world.execute(world.ledger_dsn, f"{sql} = 1")
    found = expired(world, now, dry_run=True)
    assert (found.files, sum(found.kept.values())) == (4, 2)
    assert list(found.kept) == ["of epochs that the table shows by another word than the ledger's, or doesn't show"]
    world.execute(world.ledger_dsn, f"{sql} = 3")
    with pytest.raises(LedgerConflict, match="ledger calls published"):
        expired(world, now)


@pytest.mark.parametrize("world", ["iceberg"], indirect=True)
def test_a_table_whose_files_others_may_have_loses_nothing(world: AdoptingWorld) -> None:
    """Delta's clones leave no word in the table that they were made of."""
    publish(world)
    with loaded_table(world.warehouse_dsn) as table:
        assert table is not None
        with table.transaction() as change:
            change.set_properties({"gc.enabled": "false"})
    with pytest.raises(ExpiryRefused, match=r"gc\.enabled=false"):
        expired(world, UNTIL_NOW)


def test_a_table_that_can_not_tell_what_readers_need_loses_nothing(world: AdoptingWorld) -> None:
    publish(world, 2)
    compacted(world)
    before = world.staged_at_home()
    if is_iceberg(world):
        let_a_week_pass(world)  # snapshots of this very moment are expired
    else:
        on_table(world.lake.root, lambda found: found.create_checkpoint())
        for entry in sorted((world.lake.root / "_delta_log").glob("*.json"))[:-1]:
            entry.unlink()
    with pytest.raises(ExpiryRefused, match="are unknown: give --expire"):
        expired(world, WEEK)
    assert world.staged_at_home() == before


@pytest.mark.fault("T9")
@pytest.mark.parametrize("world", ["iceberg"], indirect=True)
def test_what_was_the_newest_minutes_ago_stays_though_somebody_took_the_table_back_and_expired_it(
    world: AdoptingWorld,
) -> None:
    publish(world, 2)
    with loaded_table(world.warehouse_dsn) as table:
        assert table is not None
        newest = table.current_snapshot()
        now = round(time.time() * 1000)
        assert newest is not None and newest.parent_snapshot_id is not None
        table.manage_snapshots().rollback_to_snapshot(newest.parent_snapshot_id).commit()
        table.maintenance.expire_snapshots().by_ids([newest.snapshot_id]).commit()
    before = world.staged_at_home()
    with pytest.raises(ExpiryRefused, match=r"sequence number \d is expired"):
        expired(world, WEEK)
    assert world.staged_at_home() == before
    publish(world)
    with pytest.raises(ExpiryRefused, match=r"sequence number \d is expired"):
        expired(world, timedelta(milliseconds=time.time() * 1000 - now))
    assert expired(world, UNTIL_NOW).files == 2 and len(world.staged_at_home()) == len(before)


@pytest.mark.fault("T2")
def test_a_folder_above_the_table_may_be_called_as_the_one_below_it(
    ledger_server: PostgresServer, memory_folder: Path
) -> None:
    world = lake_world("iceberg", ledger_server, memory_folder, "_lockstep/of/tables")
    publish(world, 2)
    compacted(world)
    days = publish(world)
    assert expired(world, let_a_week_pass(world)).files == 4
    require_whole(world, days)


@pytest.mark.fault("T2")
def test_what_the_newest_version_has_by_another_path_is_never_deleted(
    world: AdoptingWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(world, 2)
    before = world.staged_at_home()
    monkeypatch.setattr("lockstep.features.compactions._below", lambda own, paths: set())
    with pytest.raises(ExpiryRefused, match="the newest version consists of"):
        expired(world, let_a_week_pass(world))
    assert world.staged_at_home() == before


@dataclass(frozen=True)
class TwoCatalogs(AdoptingWorld):
    """Its second catalog is in the same database, by another name."""

    def runtime(self) -> Runtime:
        found = super().runtime()
        return replace(found, connections={**found.connections, "second": self.warehouse_dsn})


@pytest.mark.fault("T1")
@pytest.mark.tier("all")
@pytest.mark.parametrize("world", ["iceberg"], indirect=True)
def test_files_of_a_table_that_another_catalog_has_at_the_same_place_stay(world: AdoptingWorld) -> None:
    days = publish(world, 2)
    compacted(world)
    sink = world.lake.sink
    assert isinstance(sink, IcebergSink)
    location = f"file://{world.lake.root}"
    second = replace(sink, catalog="second", table="db.others", location=location)
    pipeline = replace(world.pipeline, sinks=[world.pipeline.sinks[0], second])
    moved = TwoCatalogs(**{**vars(world), "pipeline": pipeline})
    moved.run(RunKey("expiry", "second"), next(world.days))
    assert moved.recover().problems == [] and expired(moved, UNTIL_NOW).files == 0
    require_whole(world, days)


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("point", "action"), [(CrashPoint.COMPACT_BEFORE_EXPIRE, "hang"), (CrashPoint.COMPACT_AFTER_EXPIRE, "kill")]
)
def test_a_deletion_that_is_struck_is_gone_on_with(
    world: AdoptingWorld, point: CrashPoint, action: Action, tmp_path: Path
) -> None:
    days = publish(world, 2)
    compacted(world)
    now = let_a_week_pass(world)
    tasks = [("compact", lambda: expired(world, now))]
    victim = sacrifice(tasks, Hit("compact", point, 2), action, tmp_path / "victim.log")

    def resumed() -> None:
        lose_links(world)
        publish(world)
        expired(world, now)
        assert world.left_in_sink() == []

    overtake(victim, resumed, lambda: require_whole(world, days))
    assert compacted(world).files_after == 1
    require_whole(world, days)


# --- how `verify` calls what became of an epoch's rows ---


@pytest.mark.fault("T6")
@pytest.mark.parametrize("world", ["iceberg"], indirect=True)
def test_verify_gives_verdicts_on_a_table_that_lost_a_column_and_compares_the_rest(
    world: AdoptingWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    [day] = publish(world)
    with monkeypatch.context() as patched:
        patched.setattr("pyiceberg.table.DataScan.to_arrow_batch_reader", lambda *_: os.environ["A ROW"])
        unnamed = {one.sink: one.problem for one in verified(world, day)}
    with loaded_table(world.warehouse_dsn) as table:
        assert table is not None
        with table.update_schema() as change:
            change.delete_column("label")
    lost = {one.sink: one.problem for one in verified(world, day)}
    assert unnamed["warehouse"] is lost["warehouse"] is None
    assert "KeyError" in str(unnamed["lake"]) and "A ROW" not in str(unnamed["lake"])
    assert "has lost the column label" in str(lost["lake"])


LIVE, COMPACTED, ROLLED_BACK, DELETED = Presence


def presences(world: AdoptingWorld) -> dict[int, Presence | None]:
    """By epoch, in the table; no other sink has any."""

    def look() -> dict[int, Presence | None]:
        runtime = world.runtime()
        last = runtime.ledger.last_epoch("numbers")
        assert last is not None
        epochs = [runtime.ledger.epoch("numbers", number) for number in range(1, last.id + 1)]
        found = [one for epoch in epochs for one in verify(runtime, epoch)]
        runtime.ledger.close()
        assert {one.presence for one in found if one.sink != "lake"} == {None}
        assert all(one.agrees == (one.presence in (LIVE, COMPACTED)) for one in found if one.sink == "lake")
        return {one.epoch: one.presence for one in found if one.sink == "lake"}

    return apart(look)


def back_by(world: AdoptingWorld, commits: int) -> None:
    """Somebody takes the table back to what it was so many commits ago."""
    if not is_iceberg(world):
        on_table(world.lake.root, lambda found: found.restore(found.version() - commits) and None)
        return
    with loaded_table(world.warehouse_dsn) as table:
        assert table is not None
        snapshot = table.current_snapshot()
        for _ in range(commits):
            assert snapshot is not None and snapshot.parent_snapshot_id is not None
            snapshot = table.snapshot_by_id(snapshot.parent_snapshot_id)
        assert snapshot is not None
        table.manage_snapshots().rollback_to_snapshot(snapshot.snapshot_id).commit()


def delete(world: AdoptingWorld, day: int) -> None:
    """Somebody deletes half of a day's rows."""

    def act(found: Any) -> None:
        found.delete(f"day = {day} AND number < 10")

    if not is_iceberg(world):
        on_table(world.lake.root, act)
        return
    with loaded_table(world.warehouse_dsn) as table:
        assert table is not None
        table.delete(f"day = {day} and number < 10")


def test_what_is_compacted_rolled_back_or_deleted_is_told_from_what_is_live(world: AdoptingWorld) -> None:
    publish(world)
    compacted(world)
    days = publish(world, 2)
    compact_by_others(world)
    days = publish(world, 2)
    assert presences(world) == {1: COMPACTED, 2: COMPACTED, 3: COMPACTED, 4: LIVE, 5: LIVE}
    back_by(world, 1)
    assert presences(world) == {1: COMPACTED, 2: COMPACTED, 3: COMPACTED, 4: LIVE, 5: ROLLED_BACK}
    delete(world, days[3])
    publish(world)
    found = presences(world)
    assert (found[4], found[5], found[6]) == (DELETED, ROLLED_BACK, LIVE)
