"""What a sweep of compactions deletes is never a file of the table, whatever became of the table's memory of them."""

from __future__ import annotations

import json
import shutil
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path

import pytest

from lockstep.crash import CrashPoint
from lockstep.errors import LockstepError
from lockstep.sinks.delta import DeltaSink
from lockstep.sinks.iceberg import IcebergSink
from stack.postgres import PostgresServer
from tests.apart import apart
from tests.crash.adopting_world import SINK, AdoptingWorld
from tests.crash.originals import Copies
from tests.crash.test_compaction import compacted, dead, lake_world, lose_links, publish, require_whole
from tests.crash.test_iceberg_epochs import loaded_table
from tests.crash.victims import Hit, overtake, sacrifice

#: Which of the two kinds of table a test is about goes by the commit's number: they differ in `tests/sinks`.
pytestmark = [pytest.mark.sample(1), pytest.mark.tier("all")]
RENAMED = "lake2"


@pytest.fixture
def copies(ledger_server: PostgresServer) -> Copies:
    return Copies(ledger_server)


@pytest.fixture(params=["delta", "iceberg"])
def world(request: pytest.FixtureRequest, ledger_server: PostgresServer, memory_folder: Path) -> AdoptingWorld:
    return lake_world(request.param, ledger_server, memory_folder)


def named(world: AdoptingWorld, name: str) -> AdoptingWorld:
    """The same pipeline and table; the sink is called so."""
    assert isinstance(world.lake.sink, DeltaSink | IcebergSink)
    sink = replace(world.lake.sink, name=name)
    others = [one for one in world.pipeline.sinks if one.name != world.lake.sink.name]
    return replace(world, pipeline=replace(world.pipeline, sinks=[*others, sink]), table=replace(world.lake, sink=sink))


def let_go(world: AdoptingWorld) -> None:
    """The table belongs to nobody."""

    def act() -> None:
        runtime = world.runtime()
        with closing(runtime.ledger), runtime.opened(world.lake.sink) as opened:
            opened.disclaim()

    apart(act)


def renamed(world: AdoptingWorld, name: str = RENAMED) -> AdoptingWorld:
    """Once an epoch of the sink by its new name has claimed the table."""
    let_go(world)
    found = named(world, name)
    publish(found)
    return found


def forget_compactions(world: AdoptingWorld) -> None:
    """By hand; and as a table is whose compactions are known by another sink's name alone."""
    if isinstance(world.lake.sink, IcebergSink):
        with loaded_table(world.warehouse_dsn) as table:
            assert table is not None
            known = [name for name in table.properties if name.startswith("lockstep.compaction.")]
            with table.transaction() as change:
                change.remove_properties(*known)
        return
    for entry in (world.lake.root / "_delta_log").glob("*.json"):
        lines = entry.read_text().splitlines()
        kept = [line for line in lines if ":compaction" not in json.loads(line).get("txn", {}).get("appId", "")]
        entry.write_text("".join(f"{line}\n" for line in kept))


def require_kept(world: AdoptingWorld, days: list[int]) -> None:
    """Recovery and the next compaction leave every row."""
    for act in (lambda: world.recover(), lambda: compacted(world), lambda: world.recover()):
        act()
        require_whole(world, days)


@pytest.mark.fault("F9")
def test_a_sink_that_was_renamed_keeps_what_it_compacted_before(world: AdoptingWorld) -> None:
    days = publish(world)
    compacted(world)
    [large] = world.lake.files()
    now = renamed(world)
    require_kept(now, [*days, *publish(now)])
    assert dead(now) == [], "the table knows compactions by whichever name"
    assert (world.lake.root / large).exists(), "older versions of the table consist of it"


@pytest.mark.fault("F9")
@pytest.mark.tier("test")
@pytest.mark.parametrize("name", [SINK, RENAMED])
def test_files_of_a_table_that_has_forgotten_its_compactions_stay(world: AdoptingWorld, name: str) -> None:
    days = publish(world)
    compacted(world)
    forget_compactions(world)
    [number] = dead(world)
    now = renamed(world, name)
    assert dead(now) == [number]
    now.recover()
    require_whole(now, [*days, *publish(now)])
    assert now.recover().swept == 0


@pytest.mark.fault("F9")
@pytest.mark.parametrize("name", [SINK, RENAMED])
def test_a_restored_ledger_takes_no_file_of_a_compaction_that_it_does_not_remember(
    world: AdoptingWorld, copies: Copies, name: str
) -> None:
    days = publish(world)
    restored = copies.of(world)
    now = world if name == SINK else named(world, name)
    if name != SINK:
        let_go(world)
        days = publish(now)
    compacted(now)
    restored.recover()
    require_whole(restored, days)
    let_go(now)
    apart(lambda: preflight(restored))
    require_kept(restored, days)


def preflight(world: AdoptingWorld) -> None:
    runtime = world.runtime()
    with closing(runtime.ledger), runtime.opened(world.lake.sink) as opened:
        opened.preflight(None)


@pytest.mark.fault("F9")
def test_a_zombie_commits_nothing_that_was_deleted_while_its_sink_had_another_name(
    world: AdoptingWorld, tmp_path: Path
) -> None:
    days = publish(world)
    struck = Hit("compact", CrashPoint.COMPACT_BEFORE_SINK_COMMIT, 1)
    victim = sacrifice([("compact", lambda: compacted(world))], struck, "hang", tmp_path / "victim.log")

    def resumed() -> None:
        now = renamed(world)
        lose_links(world)
        now.recover()
        assert dead(now) == []
        let_go(now)
        apart(lambda: preflight(world))

    overtake(victim, resumed, lambda: require_whole(world, days))
    require_kept(world, days)


@pytest.mark.fault("S9")
@pytest.mark.parametrize("world", ["delta"], indirect=True)
def test_a_log_that_is_restored_to_before_a_compaction_loses_no_row(world: AdoptingWorld) -> None:
    """Where what was compacted is deleted by then, the compacted file is the only one with its rows."""
    days, log, past = publish(world, 2), world.lake.root / "_delta_log", world.folder / "past"
    shutil.copytree(log, past)
    small = [world.lake.root / path for path in world.lake.files()]
    compacted(world)
    [large] = world.lake.files()
    shutil.rmtree(log)
    past.rename(log)
    for path in small:
        path.rename(path.with_suffix(".away"))
    for act in (lambda: world.recover(), lambda: compacted(world)):
        with suppress(LockstepError):
            act()
        assert (world.lake.root / large).exists()
    for path in small:
        path.with_suffix(".away").rename(path)
    require_kept(world, [*days, *publish(world)])
    assert dead(world) == []
