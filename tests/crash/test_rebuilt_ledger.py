"""The ledger is lost for good: what sinks and staging prove goes into an empty one, and nothing is doubled or lost."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import cache, partial
from itertools import count
from pathlib import Path

import pytest

from lockstep.crash import CrashPoint
from lockstep.epoch import RunKey
from lockstep.errors import IllegalTransition, LedgerConflict, LedgerRefused, PreflightRefused, RestateRefused, WalGone
from lockstep.ledger import Ledger, migrate, rebuilding
from lockstep.operations.rebuild import Rebuilding, look, rebuild
from lockstep.operations.renumber import redefine, renumber
from lockstep.operations.verify import verify
from lockstep.protocol.begin import begin
from lockstep.sinks.files import FileSink, files
from lockstep.sinks.files._sink import OpenFileSink
from lockstep.sinks.postgres import PostgresSink
from lockstep.sinks.two_phase import TwoPhaseCommitSink
from lockstep.sinks.values import SinkEpoch
from lockstep.wal.staging import Staging
from stack.postgres import PostgresServer
from tests.apart import apart
from tests.crash.originals import Originals, copied
from tests.crash.state_world import StateWorld, add_up
from tests.crash.test_delta import make_delta_world
from tests.crash.victims import Hit, sacrifice
from tests.crash.world import World, flip_a_bit, interval_of, make_world, perform, write_others
from tests.sampling import Sampling

REASON = "the disk of the ledger was lost"
_numbers = count(1)


def _run(day: int) -> RunKey:
    return RunKey("rebuilt", f"{day} {next(_numbers)}")


@cache
def _empty(server: PostgresServer) -> str:
    """An empty ledger, to be copied."""
    migrate(dsn := server.create_database("rebuilt_empty"))
    return dsn


@dataclass(frozen=True)
class Databases:
    """Empty ones, on a server of this process; `folder` for whatever else there is."""

    server: PostgresServer
    folder: Path

    def make(self, kind: str) -> str:
        return self.server.create_database(f"{kind}_{self.folder.name.lower()}_{next(_numbers)}")

    def ledger(self) -> str:
        return copied(self.server, _empty(self.server))


@pytest.fixture(autouse=True)
def several_statements(monkeypatch: pytest.MonkeyPatch) -> None:
    """As for a pipeline of many epochs."""
    monkeypatch.setattr(rebuilding, "_AT_ONCE", 2)


@pytest.fixture
def databases(ledger_server: PostgresServer, memory_folder: Path) -> Databases:
    return Databases(ledger_server, Path(tempfile.mkdtemp(dir=memory_folder)))


@pytest.fixture(scope="module")
def originals(ledger_server: PostgresServer, memory_folder: Path) -> Originals[World]:
    """Two days are published."""

    def make(protocol: str) -> World:
        databases = Databases(ledger_server, Path(tempfile.mkdtemp(dir=memory_folder)))
        dsns = databases.make("lost"), databases.make("warehouse")
        found = make_world(*dsns, databases.folder, protocol)  # type: ignore[arg-type]
        for _ in range(2):
            day = next(found.days)
            found.run(_run(day), day)
        return found

    return Originals(ledger_server, make)


@pytest.fixture
def world(request: pytest.FixtureRequest, originals: Originals[World]) -> World:
    return originals.copy(getattr(request, "param", "two_phase"))


BOTH = pytest.mark.parametrize("world", ["two_phase", "write_ahead"], indirect=True)


def lost(world: World, databases: Databases) -> World:
    """The same world with an empty ledger. Links to the old one are dead, as its processes are."""
    return replace(world, ledger_dsn=databases.ledger())


def looked(world: World) -> Rebuilding:
    runtime = world.runtime()
    with closing(runtime.ledger):
        return look(runtime)


def rebuilt(world: World) -> Rebuilding:
    runtime = world.runtime()
    with closing(runtime.ledger):
        return rebuild(runtime, REASON)


def require_held(world: World) -> None:
    """Nobody agreed: nothing is planned, and nothing is in the ledger."""
    with pytest.raises((LedgerConflict, PreflightRefused)):
        begin(world.runtime(), _run(50), interval_of(50))
    assert world.execute(world.ledger_dsn, "SELECT count(*) FROM lockstep.epoch") == [(0,)]


def require_agreeing(world: World) -> None:
    runtime = world.runtime()
    with closing(runtime.ledger):
        for [number] in world.execute(world.ledger_dsn, "SELECT id FROM lockstep.epoch ORDER BY id"):
            assert all(one.agrees for one in verify(runtime, runtime.ledger.epoch("numbers", number)))


def roll_back(world: World) -> None:
    """What a person does by hand to what is left of epochs that nobody shows."""
    for gid in world.prepared():
        world.roll_back(gid)
    for folder in world.left_in_staging():
        shutil.rmtree(world.staging_folder / folder)
    for name in world.left_in_sink():
        shutil.rmtree(world.folder / "out" / ".lockstep" / name)


def test_a_pipeline_goes_on_and_no_row_is_doubled_or_lost(world: World, databases: Databases) -> None:
    world = lost(world, databases)
    require_held(world)
    found = looked(world)
    assert found.refused == () and [one.id for one in found.epochs] == [1, 2]
    require_held(world)
    assert rebuilt(world).epochs == found.epochs
    kept = "SELECT change, reason, details FROM lockstep.pipeline_change"
    assert world.execute(world.ledger_dsn, kept) == [("rebuilt", REASON, found.to_json())]
    assert any("late" in one for one in found.unproven)
    moves = "SELECT target_state, reason FROM lockstep.transition WHERE epoch = 1 AND sink IS NULL ORDER BY id"
    states = ("planned", "staged", "committed", "published", "cleaned")
    assert world.execute(world.ledger_dsn, moves) == [(state, REASON) for state in states]
    days = (0, 1, *(next(world.days) for _ in range(2)))
    for day in days:
        world.run(_run(day), day)
        world.require_exactly_once(day)
    assert [world.epoch_of(day).id for day in days] == [1, 2, 3, 4]
    assert world.epoch_of(days[2]).attempt > found.token
    assert world.recover().problems == []
    require_agreeing(world)
    world.require_tidy()


@BOTH
def test_an_epoch_that_was_half_published_is_completed_from_its_wal(world: World, databases: Databases) -> None:
    days = {first: next(world.days) for first in ("warehouse", "files")}
    for first, day in days.items():
        world.run_until(_run(day), day, "commit")
        world.run_task(f"publish.{first}", _run_of(world, day), day)
    world = lost(world, databases)
    found = rebuilt(world)
    assert [(one.id, one.published) for one in found.epochs] == [(1, True), (2, True), (3, False), (4, False)]
    assert {world.state_of(day) for day in days.values()} == {"committed"}
    assert world.recover().problems == []
    for day in days.values():
        world.require_exactly_once(day)
        world.run(_run(day), day)
        world.require_exactly_once(day)
    require_agreeing(world)
    world.require_tidy()


def _run_of(world: World, day: int) -> RunKey:
    [(dag_id, run_id)] = world.execute(
        world.ledger_dsn, "SELECT dag_id, run_id FROM lockstep.run WHERE epoch = %s", (world.epoch_of(day).id,)
    )
    return RunKey(dag_id, run_id)


def _without_wal(world: World) -> None:
    for folder in world.left_in_staging():
        shutil.rmtree(world.staging_folder / folder)


def _with_a_flipped_bit(world: World) -> None:
    [path] = world.staging_folder.glob("*/*/epoch=3/*/numbers/part-00000.parquet")
    flip_a_bit(path)


@pytest.mark.parametrize("damage", [_without_wal, _with_a_flipped_bit])
def test_what_can_not_be_completed_is_refused_and_nothing_is_written(
    world: World, databases: Databases, damage: Callable[[World], None]
) -> None:
    day = next(world.days)
    world.run_until(_run(day), day, "publish.warehouse")
    damage(world)
    world = lost(world, databases)
    [why] = looked(world).refused
    assert "epoch 3 is not shown by files, and others show it; it can't be completed" in why
    with pytest.raises(IllegalTransition, match="can't be rebuilt: epoch 3 is not shown by files"):
        rebuilt(world)
    require_held(world)


def test_what_no_sink_shows_counts_as_never_decided_and_is_named_until_a_person_took_it_away(
    world: World, databases: Databases
) -> None:
    day = next(world.days)
    world.run_until(_run(day), day, "commit")
    world = lost(world, databases)
    [gid] = world.prepared()
    found = rebuilt(world)
    assert [one.id for one in found.epochs] == [1, 2]
    assert any(gid in one for one in found.left) and any(gid in one for one in found.unproven)
    assert world.prepared() == [gid]
    assert any("was the ledger restored" in one for one in world.recover().problems)
    roll_back(world)
    world.run(_run(day), day)
    world.require_exactly_once(day)
    assert world.epoch_of(day).id == found.beyond + 1 == 4
    assert world.recover().problems == []


STRUCK = [
    ("begin", CrashPoint.BEGIN_AFTER_OPEN, 1),
    ("stage", CrashPoint.STAGE_AFTER_MANIFEST, 1),
    ("stage", CrashPoint.STAGE_AFTER_SEAL, 1),
    ("prepare.warehouse", CrashPoint.PREPARE_AFTER_PRE_COMMIT, 1),
    ("prepare.files", CrashPoint.PREPARE_AFTER_VOTE, 1),
    ("commit", CrashPoint.COMMIT_AFTER_DECISION, 1),
    ("publish.warehouse", CrashPoint.PUBLISH_BEFORE_SINK, 1),
    ("publish.warehouse", CrashPoint.PUBLISH_BEFORE_RECORD, 1),
    ("publish.files", CrashPoint.PUBLISH_BEFORE_SINK, 1),
    ("publish.files", CrashPoint.PUBLISH_AFTER_RENAME, 1),
    ("publish.files", CrashPoint.PUBLISH_BEFORE_FILE_MARKER, 1),
    ("publish.files", CrashPoint.PUBLISH_AFTER_FILE_MARKER, 1),
    ("publish.files", CrashPoint.PUBLISH_AFTER_RECORD, 1),
    ("cleanup", CrashPoint.CLEANUP_AFTER_ARCHIVE, 1),
    ("cleanup", CrashPoint.CLEANUP_AFTER_DELETE, 1),
    ("cleanup", CrashPoint.CLEANUP_AFTER_DELETE, 3),
    ("cleanup", CrashPoint.CLEANUP_BEFORE_RECORD, 1),
]


@pytest.mark.tier("all")
def test_wherever_a_run_dies_with_the_ledger_its_rows_are_shown_once(
    world: World, databases: Databases, tmp_path: Path, subtests: pytest.Subtests, sampling: Sampling
) -> None:
    for task, point, nth in sampling.sample(STRUCK, 3):
        with subtests.test(f"{task}@{point}#{nth}"):
            day = next(world.days)
            run = _run(day)
            tasks = [(one, lambda one=one: world.run_task(one, run, day)) for one in world.tasks()]  # noqa: B023
            victim = sacrifice(tasks, Hit(task, point, nth), "kill", tmp_path / "log")
            assert victim.killed
            end_sessions(world)
            world = lost(world, databases)
            found = rebuilt(world)
            assert found.refused == ()
            world.recover()
            if found.left:
                roll_back(world)
            world.run(_run(day), day)
            assert world.recover().problems == []
            for known in range(day + 1):
                world.require_exactly_once(known)
            world.require_tidy()


def end_sessions(world: World) -> None:
    """Of a process that was killed: its server notices."""
    World.execute(
        world.warehouse_dsn,
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() "
        "AND pid <> pg_backend_pid()",
    )


@pytest.mark.tier("all")
def test_wherever_rebuilding_dies_it_is_done_again(
    world: World, databases: Databases, tmp_path: Path, subtests: pytest.Subtests
) -> None:
    for point in (point for point in CrashPoint if point.startswith("rebuild.")):
        with subtests.test(str(point)):
            world = lost(world, databases)
            work = [("rebuild", partial(rebuilt, world))]
            assert sacrifice(work, Hit("rebuild", point, 1), "kill", tmp_path / "log").killed
            if point is CrashPoint.REBUILD_AFTER_RECORD:
                with pytest.raises(IllegalTransition, match="only an empty one is rebuilt"):
                    rebuilt(world)
            else:
                require_held(world)
                rebuilt(world)
            for day in (0, 1):
                world.run(_run(day), day)
                world.require_exactly_once(day)
            assert world.recover().problems == []
    world.run(_run(2), 2)
    world.require_exactly_once(2)


def test_two_who_rebuild_at_once_write_it_once(
    world: World, databases: Databases, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = lost(world, databases)
    real = Ledger.rebuild_pipeline

    def overtaken(ledger: Ledger, *of: object) -> None:
        monkeypatch.setattr(Ledger, "rebuild_pipeline", real)
        rebuilt(world)
        real(ledger, *of)  # type: ignore[arg-type]

    monkeypatch.setattr(Ledger, "rebuild_pipeline", overtaken)
    rebuilt(world)  # the same was found: as good as done by this one
    assert world.execute(world.ledger_dsn, "SELECT count(*) FROM lockstep.epoch") == [(2,)]


def others(world: World) -> World:
    """Another pipeline of the same ledger, whose first day is published."""
    sink = FileSink("files", output="numbers", path=str(world.folder / "others"))
    other = replace(world, pipeline=replace(world.pipeline, name="others", sinks=[sink]))
    other.run(_run(0), 0)
    return other


def test_a_ledger_that_ran_epochs_under_another_id_is_not_rebuilt_into(world: World, databases: Databases) -> None:
    world = lost(world, databases)
    others(world)
    with pytest.raises(IllegalTransition, match="already has epochs"):
        rebuilt(world)


@pytest.mark.tier("all")
def test_pipelines_come_in_one_after_the_other(world: World, databases: Databases) -> None:
    other = others(world)
    for day in (2, 3):
        world.run(_run(day), day)
    empty = databases.ledger()
    other, world = replace(other, ledger_dsn=empty), replace(world, ledger_dsn=empty)
    rebuilt(other)
    with pytest.raises(LedgerConflict):
        begin(world.runtime(), _run(50), interval_of(50))
    rebuilt(world)
    for day in range(6):
        world.run(_run(day), day)
        world.require_exactly_once(day)
    assert world.recover().problems == [] == other.recover().problems


def test_markers_that_contradict_each_other_are_refused(world: World, databases: Databases) -> None:
    world.execute(world.warehouse_dsn, "UPDATE lockstep_marker SET manifest_hash = %s WHERE epoch = 2", ("0" * 64,))
    world.execute(world.warehouse_dsn, "DELETE FROM lockstep_range WHERE epoch = 1")
    world = lost(world, databases)
    assert any("different manifests" in one for one in looked(world).refused)
    require_held(world)


@pytest.mark.parametrize("gone", ["what is pending", "a sender's numbers"])
def test_a_sink_of_which_nobody_knows_how_far_it_came_is_refused(
    world: World, databases: Databases, monkeypatch: pytest.MonkeyPatch, gone: str
) -> None:
    day = next(world.days)
    world.run_until(_run(day), day, "publish.warehouse")
    world = lost(world, databases)
    if gone == "what is pending":
        for name in world.left_in_sink():
            shutil.rmtree(world.folder / "out" / ".lockstep" / name)
    else:
        monkeypatch.setattr(FileSink, "numbers_rows", True)
    [why] = looked(world).refused
    assert ("neither shows nor holds it" if gone == "what is pending" else "what files has sent") in why
    require_held(world)


def test_a_sink_that_votes_for_new_columns_without_a_handle_is_completed_unless_it_holds_another_life(
    databases: Databases,
) -> None:
    """The first day's rows bring a column that the table lacks. They are in the folder, and in the table not yet."""
    made = make_world(databases.make("lost"), databases.make("warehouse"), databases.folder, "two_phase")
    made.execute(made.warehouse_dsn, "ALTER TABLE public.numbers DROP COLUMN label")
    tables, [_, folder] = {"numbers": "public.numbers"}, made.pipeline.sinks
    warehouse = PostgresSink("warehouse", tables=tables, connection="warehouse", on_new_columns="add", lock_timeout=0.3)
    made = replace(made, pipeline=replace(made.pipeline, sinks=[warehouse, folder]))
    made.run_until(_run(0), 0, "commit")
    assert made.prepared() == []
    made.run_task("publish.files", _run_of(made, 0), 0)
    other = SinkEpoch(1, made.epoch_of(0).attempt, "0" * 64, interval_of(0).start, interval_of(0))
    with closing((runtime := made.runtime()).ledger), runtime.opened(made.pipeline.sinks[0]) as sink:
        assert isinstance(sink, TwoPhaseCommitSink)
        sink.pre_commit(sink.begin_transaction(other))
    [gid] = made.prepared()
    world = lost(made, databases)
    [why] = looked(world).refused
    assert f"warehouse holds {gid}" in why
    require_held(world)
    world.roll_back(gid)
    [found] = rebuilt(world).epochs
    assert (set(found.votes) - found.shown, found.votes["warehouse"].handle) == ({"warehouse"}, None)
    assert world.recover().problems == []
    world.require_exactly_once(0)
    require_agreeing(world)


def test_sinks_that_came_later_and_manifests_that_are_gone_are_told_and_no_obstacle(
    world: World, databases: Databases
) -> None:
    [manifest] = world.staging_folder.glob("*/*/manifests/epoch=1.json")
    later = FileSink("later", output="numbers", path=str(world.folder / "later"))
    known, world = world.pipeline, lost(world, databases)
    world = replace(world, pipeline=replace(world.pipeline, sinks=[*world.pipeline.sinks, later]))
    assert [one for one in looked(world).unproven if "epochs 1, 2: was cleaned up, and later shows none" in one]
    manifest.unlink()
    assert any("epoch 1 is not shown by later" in one for one in looked(world).refused)
    without = replace(world, pipeline=known)
    assert [one for one in looked(without).unproven if "epoch 1: has no kept manifest" in one]
    rebuilt(without)
    day = next(without.days)
    without.run(_run(day), day)
    assert without.recover().problems == []
    for day in range(3):
        without.require_exactly_once(day)


@pytest.mark.fault("P19")
def test_an_empty_ledger_holds_what_staging_has_of_another_one(world: World, databases: Databases) -> None:
    world = lost(world, databases)
    with pytest.raises(LedgerConflict, match=r"staging has the pipeline of ledger .*lockstep rebuild numbers --plan"):
        begin(world.runtime(), _run(50), interval_of(50))
    redefine(world.runtime(), "both use this staging")
    with pytest.raises(PreflightRefused, match="belongs to"):
        begin(world.runtime(), _run(50), interval_of(50))


@pytest.mark.fault("P21")
def test_what_a_renamed_sink_has_shown_before_stays_a_part_of_its_epochs(world: World, databases: Databases) -> None:
    [warehouse, *others] = world.pipeline.sinks
    renamed = replace(world.pipeline, sinks=[PostgresSink(**{**warehouse.arguments(), "name": "renamed"}), *others])
    day = next(world.days)
    replace(world, pipeline=renamed).run(_run(day), day)
    world = lost(replace(world, pipeline=renamed), databases)
    assert [sorted(one.votes) for one in rebuilt(world).epochs] == [["files", "warehouse"]] * 2 + [["files", "renamed"]]
    for pipeline in (renamed, replace(renamed, sinks=others)):
        with pytest.raises(RestateRefused, match=r"published with other sinks .*warehouse"):
            replace(world, pipeline=pipeline).run(replace(_run(0), restate="wrong"), 0, job=write_others)
    world.run(_run(0), 0)
    world.require_exactly_once(0)


@pytest.mark.fault("P21")
def test_a_day_that_one_sink_has_lost_with_the_ledger_is_written_there_again(
    world: World, databases: Databases
) -> None:
    past, day = copied(databases.server, world.warehouse_dsn), next(world.days)
    world.run(_run(day), day)
    world = replace(lost(world, databases), warehouse_dsn=past)
    assert any("warehouse shows none of it" in one for one in rebuilt(world).unproven)
    with pytest.raises(LedgerConflict, match="no marker"):
        world.run(_run(day), day)
    renumber(world.runtime(), "it is lost", lacking=["warehouse"])
    world.run(replace(_run(day), restate="it is lost"), day)
    world.require_exactly_once(day)


def test_an_epoch_whose_markers_are_gone_though_every_sink_showed_it_is_refused(
    world: World, databases: Databases
) -> None:
    world.execute(world.warehouse_dsn, "DELETE FROM lockstep_range; DELETE FROM lockstep_marker")
    (world.folder / "out" / ".lockstep" / "epoch=2.json").unlink()
    world = lost(world, databases)
    assert any("no sink shows epoch 2, and every one did" in one for one in looked(world).refused)


def test_kept_wals_are_kept_again(world: World, databases: Databases) -> None:
    keeping = replace(world, pipeline=replace(world.pipeline, keep_wal=timedelta(days=9)))
    day = next(keeping.days)
    keeping.run(_run(day), day)
    world = lost(keeping, databases)
    rebuilt(world)
    assert world.recover().problems == []
    ledger = Ledger(world.ledger_dsn)
    [kept] = ledger.kept_wals("numbers")
    ledger.close()
    assert world.left_in_staging() == [kept.wal]
    world.require_exactly_once(day)


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    "struck", [("cleanup", CrashPoint.CLEANUP_BEFORE_ARCHIVE), ("publish.lake", CrashPoint.PUBLISH_BEFORE_SINK)]
)
def test_files_that_a_table_has_adopted_stay_its_own(
    databases: Databases, struck: tuple[str, CrashPoint], tmp_path: Path
) -> None:
    made = make_delta_world(databases.make("lost"), databases.make("warehouse"), databases.folder)
    apart(lambda: made.run(_run(0), 0))
    run = _run(1)
    tasks = [(one, lambda one=one: made.run_task(one, run, 1)) for one in made.tasks()]
    assert sacrifice(tasks, Hit(*struck, 1), "kill", tmp_path / "log").killed
    world = replace(made, ledger_dsn=databases.ledger())
    found = apart(lambda: rebuilt(world))
    assert [one.published for one in found.epochs] == [True, struck[0] == "cleanup"]
    assert apart(lambda: world.recover()).problems == []
    apart(lambda: world.run(_run(2), 2))
    for day in range(3):
        world.require_exactly_once(day)
    assert world.lake.files() == world.staged_at_home()


# --- generations -----------------------------------------------------------------------------------------------------


def restate(world: World, day: int, last: str = "cleanup") -> RunKey:
    run = replace(_run(day), restate="it was wrong")
    world.run_until(run, day, last)
    return run


def lives(world: World, day: int) -> list[str]:
    return [one.state.value for one in world._looking.generations(world.epoch_of(day))]


def test_what_was_restated_is_found_again_with_what_it_has_replaced(world: World, databases: Databases) -> None:
    for day in (0, 1, 0):
        restate(world, day)
    told = [(one.id, one.generation) for day in (0, 1) for one in world._looking.generations(world.epoch_of(day))]
    world = lost(world, databases)
    found = rebuilt(world)
    assert any("epochs 3, 4, 5 took the place of others" in one for one in found.unproven)
    assert (lives(world, 0), lives(world, 1)) == (["replaced", "replaced", "cleaned"], ["replaced", "cleaned"])
    again = [one for day in (0, 1) for one in world._looking.generations(world.epoch_of(day))]
    assert [(one.id, one.generation and replace(one.generation, reason="")) for one in again] == [
        (id, generation and replace(generation, reason="")) for id, generation in told
    ]
    require_agreeing(world)
    world.run(_run(0), 0)
    assert lives(world, 0) == ["replaced", "replaced", "cleaned"]
    restate(world, 0)
    for day in (0, 1):
        world.require_exactly_once(day)
    assert world.recover().problems == []
    require_agreeing(world)
    world.require_tidy()


def test_a_restatement_that_was_half_published_is_completed(world: World, databases: Databases) -> None:
    restate(world, 0)
    for day, first in enumerate(("warehouse", "files")):
        world.run_task(f"publish.{first}", restate(world, day, "commit"), day)
    world = lost(world, databases)
    found = rebuilt(world).epochs
    assert [(one.id, one.published) for one in found] == [*((done, True) for done in (1, 2, 3)), (4, False), (5, False)]
    assert [lives(world, day) for day in (0, 1)] == [["replaced", "replaced", "committed"], ["replaced", "committed"]]
    assert world.recover().problems == []
    for day in (0, 1):
        world.require_exactly_once(day)
    require_agreeing(world)
    world.require_tidy()


def test_a_generation_that_nobody_has_a_marker_of_is_refused(world: World, databases: Databases) -> None:
    for _ in range(2):
        restate(world, 0)
    world.execute(world.warehouse_dsn, "DELETE FROM lockstep_range WHERE epoch = 3")
    world.execute(world.warehouse_dsn, "DELETE FROM lockstep_marker WHERE epoch = 3")
    world = lost(world, databases)
    assert any("epoch 3: was cleaned up, and warehouse shows none of it" in one for one in looked(world).unproven)
    (world.folder / "out" / ".lockstep" / "epoch=3.json").unlink()
    refused = looked(world).refused
    assert any("epochs 1, 4 of " in one and "of its generation 1" in one for one in refused), refused
    require_held(world)


@pytest.mark.sample(1)
@pytest.mark.parametrize("replaced", ["before", "after"])
def test_what_shows_another_lifes_rows_is_not_shown_again_by_a_ledger_that_does_not_know_it_refers_to_them(
    world: World, databases: Databases, replaced: str
) -> None:
    keeping = replace(world, pipeline=replace(world.pipeline, keep_wal=timedelta(days=9)))
    day = next(keeping.days)
    wrong = _run(day)
    for task in keeping.tasks():
        keeping.run_task(task, wrong, day, write_others)
    first = keeping.epoch_of(day)
    restate(keeping, day)
    keeping.run(replace(_run(day), restate="it was right before", restore=first.id), day)
    shown = keeping.epoch_of(day)
    if replaced == "before":
        restate(keeping, day)
    world = lost(keeping, databases)
    rebuilt(world)
    assert world.recover().problems == []
    if replaced == "after":
        restate(world, day)
    kept = {one.epoch for one in world._looking.kept_wals("numbers")}
    assert first.id in kept and (shown.id in kept) == (replaced == "after")
    with pytest.raises(WalGone, match="rebuilt since" if replaced == "after" else "isn't kept"):
        begin(world.runtime(), replace(_run(day), restate="once more", restore=shown.id), interval_of(day))
    world.run(replace(_run(day), restate="once more", restore=first.id), day)


def test_a_ledger_of_several_is_named(world: World, databases: Databases) -> None:
    lost_id = world._looking.deployment()
    another = "0b2f9c1e-1111-4222-8333-444455556666"
    shutil.copytree(world.staging_folder / lost_id, world.staging_folder / another)
    world = lost(world, databases)
    with pytest.raises(LedgerRefused, match="--deployment"):
        looked(world)
    runtime = world.runtime()
    assert len(rebuild(runtime, REASON, lost_id).epochs) == 2
    assert runtime.ledger.deployment() == lost_id
    runtime.ledger.close()


# --- a pipeline whose epochs go on from each other --------------------------------------------------------------------


@pytest.fixture(scope="module")
def original_states(ledger_server: PostgresServer, memory_folder: Path) -> Originals[StateWorld]:
    """Three epochs are published, in two folders."""

    def make(_name: str) -> StateWorld:
        databases = Databases(ledger_server, Path(tempfile.mkdtemp(dir=memory_folder)))
        made = StateWorld.make(databases.make("lost"), databases.folder)
        second = FileSink("second", output="totals", path=str(databases.folder / "second"), format="parquet")
        made = replace(made, pipeline=replace(made.pipeline, sinks=[*made.pipeline.sinks, second]))
        for _ in range(3):
            run_state(made)
        return made

    return Originals(ledger_server, make)


@pytest.fixture
def states(original_states: Originals[StateWorld]) -> StateWorld:
    return original_states.copy()


def run_state(world: StateWorld, *, last: str = "cleanup") -> None:
    run, runtime = _run(0), world.runtime()
    sinks = ("files", "second")
    tasks = ["begin", "stage", *(f"prepare.{one}" for one in sinks), "commit", *(f"publish.{one}" for one in sinks)]
    with closing(runtime.ledger):
        for task in (*tasks, "cleanup"):
            perform(runtime, task, run, add_up)
            if task == last:
                break


def lost_state(world: StateWorld, databases: Databases) -> StateWorld:
    return replace(world, ledger_dsn=databases.ledger())


def rebuilt_state(world: StateWorld) -> Rebuilding:
    runtime = world.runtime()
    with closing(runtime.ledger):
        return rebuild(runtime, REASON)


def require_totals(world: StateWorld, epochs: int) -> None:
    """State and sinks are those of so many epochs, each shown once."""
    last = world.last()
    assert last is not None and last.id == epochs
    world.require_state_and_sink_agree(epochs)
    world.require_tidy()
    for place in ("out", "second"):
        names = " ".join(files(str(world.folder / place)))
        assert sorted(map(int, re.findall(r"epoch=(\d+)-", names))) == list(range(1, epochs + 1))


def test_a_cursor_goes_on_where_the_last_epoch_ended_with_its_state(states: StateWorld, databases: Databases) -> None:
    world = lost_state(states, databases)
    found = rebuilt_state(world)
    assert [one.id for one in found.epochs] == [1, 2, 3]
    for _ in range(4):
        run_state(world)
    require_totals(world, 7)
    assert world.recover().problems == []


def test_a_half_published_epoch_of_a_cursor_is_completed_before_the_next(
    states: StateWorld, databases: Databases
) -> None:
    run_state(states, last="publish.files")
    world = lost_state(states, databases)
    found = rebuilt_state(world)
    assert [(one.id, one.published) for one in found.epochs][-1] == (4, False)
    assert world.recover().problems == []
    run_state(world)
    require_totals(world, 5)


def test_where_the_last_range_ended_has_to_be_known(states: StateWorld, databases: Databases) -> None:
    [plan] = (states.folder / "staging").glob("*/adding/manifests/epoch=3.plan.json")
    plan.unlink()
    world = lost_state(states, databases)
    with pytest.raises(IllegalTransition, match="where epoch 3 ended isn't known"):
        rebuilt_state(world)


def test_a_range_that_is_missing_in_between_is_refused(states: StateWorld, databases: Databases) -> None:
    for path in states.folder.glob("*/.lockstep/epoch=2.json"):
        path.unlink()
    for path in (states.folder / "staging").glob("*/adding/manifests/epoch=2*.json"):
        path.unlink()
    world = lost_state(states, databases)
    with pytest.raises(IllegalTransition, match="an epoch between 1 and 3 is lost"):
        rebuilt_state(world)


def test_what_could_still_be_finished_keeps_a_cursor_from_reading_it_again(
    states: StateWorld, databases: Databases
) -> None:
    run_state(states, last="prepare.second")
    world = lost_state(states, databases)
    with pytest.raises(IllegalTransition, match="roll back, or delete"):
        rebuilt_state(world)
    for folder in ("out", "second"):
        for pending in (world.folder / folder / ".lockstep").iterdir():
            if pending.is_dir():
                shutil.rmtree(pending)
    for state in (world.folder / "staging").glob("*/adding/state/epoch=4"):
        shutil.rmtree(state)
    for wal in (world.folder / "staging").glob("*/adding/epoch=4"):
        shutil.rmtree(wal)
    rebuilt_state(world)
    run_state(world)
    require_totals(world, 4)
    assert Staging(str(world.folder / "staging")).kept_epochs(_id(world), "adding") == [1, 2, 3, 4]


def _id(world: StateWorld) -> str:
    with closing(Ledger(world.ledger_dsn)) as ledger:
        return ledger.deployment()


def test_what_is_shown_in_part_is_refused(world: World, databases: Databases, monkeypatch: pytest.MonkeyPatch) -> None:
    """As Kafka shows an epoch of which some shards are committed: a marker is listed, the whole isn't found."""
    day = next(world.days)
    world.run_until(_run(day), day, "publish.files")
    real, runtime = OpenFileSink.find_marker, world.runtime()
    [files] = [sink for sink in world.pipeline.sinks if sink.name == "files"]
    with closing(runtime.ledger), runtime.opened(files) as opened:
        real_markers = list(opened.markers())
    world = lost(world, databases)
    monkeypatch.setattr(OpenFileSink, "find_marker", lambda sink, epoch: real(sink, epoch) if epoch < 3 else None)
    monkeypatch.setattr(OpenFileSink, "markers", lambda sink: real_markers)
    assert "files shows epoch 3 in part" in " ".join(looked(world).refused)
