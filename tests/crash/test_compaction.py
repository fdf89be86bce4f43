"""A compaction dies, or hangs, anywhere: the table shows every row once, and what it left is taken away."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import cast

import pytest

from lockstep.crash import CrashPoint
from lockstep.epoch import RunKey
from lockstep.errors import CompactionBusy, LedgerConflict
from lockstep.features.compactions import compacting_table
from lockstep.operations.compact import compact
from lockstep.operations.verify import Verification, verify
from lockstep.sinks.adopting import AdoptingSink
from lockstep.sinks.compacting import Compaction
from stack.postgres import PostgresServer
from tests.apart import apart
from tests.crash.adopting_world import AdoptingWorld, make_adopting_world
from tests.crash.test_delta import make_delta_world
from tests.crash.test_iceberg_epochs import iceberg_table
from tests.crash.victims import Action, Hit, overtake, sacrifice
from tests.crash.world import rows_of_day

#: Which of the two kinds of table a test is about goes by the commit's number: they differ in `tests/sinks`.
pytestmark = pytest.mark.sample(1)
WRITING = (
    CrashPoint.COMPACT_BEFORE_WRITE,
    CrashPoint.COMPACT_AFTER_WRITE,
    CrashPoint.COMPACT_BEFORE_SINK_COMMIT,
    CrashPoint.COMPACT_AFTER_SINK_COMMIT,
)
SWEEPING = (
    CrashPoint.COMPACT_BEFORE_FENCE,
    CrashPoint.COMPACT_AFTER_FENCE,
    CrashPoint.COMPACT_BEFORE_DELETE,
    CrashPoint.COMPACT_AFTER_DELETE,
)


def lake_world(kind: str, server: PostgresServer, memory_folder: Path, below: str = "") -> AdoptingWorld:
    """`kind`: delta or iceberg; `below`: a folder of its own that all is in."""
    folder = Path(tempfile.mkdtemp(dir=memory_folder))
    ledger, warehouse = (server.create_database(f"{name}_{folder.name.lower()}") for name in ("ledger", "warehouse"))
    (folder := folder / below).mkdir(parents=True, exist_ok=True)
    if kind == "delta":
        return make_delta_world(ledger, warehouse, folder)
    return make_adopting_world(ledger, warehouse, folder, iceberg_table(warehouse, folder))


@pytest.fixture(scope="module", params=["delta", "iceberg"])
def world(request: pytest.FixtureRequest, ledger_server: PostgresServer, memory_folder: Path) -> AdoptingWorld:
    """What one test leaves is the next one's: its small files, and a compacted one."""
    return lake_world(request.param, ledger_server, memory_folder)


def publish(world: AdoptingWorld, days: int = 1) -> list[int]:
    """Publish some more days; all that there are."""
    for _ in range(days):
        day = next(world.days)
        world.run(RunKey("compaction", f"run {day}"), day)
    return list(world.shown()["warehouse"])


def compacted(world: AdoptingWorld, sink: str | None = None) -> Compaction:
    def work() -> Compaction:
        runtime = world.runtime()
        with closing(runtime.ledger):
            return compact(runtime, sink or world.lake.sink.name, min_files=2)

    return apart(work)


def dead(world: AdoptingWorld) -> list[int]:
    """Compactions whose files stand below the table, which it doesn't know."""

    def look() -> list[int]:
        runtime = world.runtime()
        with closing(runtime.ledger), runtime.opened(world.lake.sink) as opened:
            table = compacting_table(cast(AdoptingSink[object], opened))
            assert table is not None
            head = table.load_head()
            names = {path.parent.name for path in world.lake.root.glob("_lockstep/*/*/compacted/*/*")}
            return [int(name) for name in sorted(names) if not table.knows(head, int(name))]

    return apart(look)


def require_whole(world: AdoptingWorld, days: list[int]) -> None:
    """Every row once, in files that are there."""
    shown = world.shown()["table"]
    for day in days:
        assert shown[day] == Counter(rows_of_day(day))
    assert set(world.lake.files()) <= set(world.staged_at_home())


RESUMES: dict[str, Callable[[AdoptingWorld], object]] = {
    "another compaction": compacted,
    "recovery": lambda world: world.recover(),
}


@pytest.mark.sample(2)
@pytest.mark.parametrize(("action", "resume"), [("kill", "recovery"), ("hang", "another compaction")])
@pytest.mark.parametrize("point", WRITING)
def test_a_compaction_that_is_struck_loses_and_doubles_nothing(
    world: AdoptingWorld, point: CrashPoint, resume: str, action: Action, tmp_path: Path
) -> None:
    days = publish(world)
    tasks = [("compact", lambda: compacted(world))]
    victim = sacrifice(tasks, Hit("compact", point, 1), action, tmp_path / "victim.log")

    def resumed() -> None:
        lose_links(world)  # of one that hangs: nobody waits for it
        RESUMES[resume](world)
        assert dead(world) == []

    overtake(victim, resumed, lambda: require_whole(world, days))
    assert world.recover().problems == []
    assert dead(world) == []
    days = publish(world)
    compacted(world)
    require_whole(world, days)
    assert len(world.lake.files()) == 1
    assert all(one.agrees and one.compared for day in days[-2:] for one in verified(world, day))


def verified(world: AdoptingWorld, day: int) -> list[Verification]:
    return apart(lambda: verify(world.runtime(), world.epoch_of(day)))


def lose_links(world: AdoptingWorld) -> None:
    """Every session of the ledger ends that holds a lock for compaction."""
    world.execute(
        world.ledger_dsn,
        "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND pid <> pg_backend_pid()",
    )


@pytest.mark.sample(2)
@pytest.mark.parametrize(("point", "action"), list(zip(SWEEPING, ("hang", "kill", "hang", "kill"), strict=True)))
def test_a_sweep_that_is_struck_is_done_again(
    world: AdoptingWorld, point: CrashPoint, action: Action, tmp_path: Path
) -> None:
    days = publish(world, 2)
    struck = Hit("compact", CrashPoint.COMPACT_BEFORE_SINK_COMMIT, 1)
    sacrifice([("compact", lambda: compacted(world))], struck, "kill", tmp_path / "first.log")
    assert len(dead(world)) == 1
    victim = sacrifice([("recover", world.recover)], Hit("recover", point, 1), action, tmp_path / "victim.log")

    def resumed() -> None:
        lose_links(world)
        assert world.recover().problems == []
        assert dead(world) == []

    overtake(victim, resumed, lambda: require_whole(world, days))
    assert compacted(world).files_after == 1
    require_whole(world, days)


@pytest.mark.fault("T1")
@pytest.mark.parametrize("world", ["iceberg"], indirect=True)
def test_where_the_table_is_an_older_copy_for_a_moment_nothing_is_swept_compacted_or_expired(
    world: AdoptingWorld,
) -> None:
    look, change = "SELECT metadata_location FROM iceberg_tables", "UPDATE iceberg_tables SET metadata_location = %s"
    publish(world, 2)
    [past] = world.execute(world.warehouse_dsn, look)
    days = publish(world)
    compacted(world)
    [now], before = world.execute(world.warehouse_dsn, look), world.staged_at_home()
    world.execute(world.warehouse_dsn, change, past)
    world.recover()
    with pytest.raises(LedgerConflict, match="ledger calls published"):
        compacted(world)
    assert world.execute(world.warehouse_dsn, look) == [past], "a fence was committed into the copy"
    world.execute(world.warehouse_dsn, change, now)
    assert world.staged_at_home() == before
    require_whole(world, days)


def test_recovery_leaves_a_compaction_alone_that_is_under_way(world: AdoptingWorld, tmp_path: Path) -> None:
    days = publish(world)
    hit = Hit("compact", CrashPoint.COMPACT_BEFORE_SINK_COMMIT, 1)
    victim = sacrifice([("compact", lambda: compacted(world))], hit, "hang", tmp_path / "victim.log")
    try:
        with pytest.raises(CompactionBusy):
            compacted(world)
        assert world.recover().problems == [] and len(dead(world)) == 1
        victim.release()
        assert victim.alarm is None and dead(world) == []
    finally:
        victim.kill()
    assert len(world.lake.files()) == 1
    require_whole(world, days)
