"""Files that a table adopts: wherever a process dies, a table never loses one, and what no table has is taken away."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from lockstep.crash import CrashPoint
from lockstep.epoch import RunKey
from lockstep.errors import LockstepError
from lockstep.features.table_staging import discard_homes, is_shown_otherwise, may_be_adopted
from lockstep.operations.replan import void
from lockstep.operations.verify import verify
from lockstep.protocol.abort import abort_epoch
from lockstep.protocol.sweep import sweep_folders
from lockstep.sinks.values import SinkContext
from lockstep.states import EpochState, Role
from stack.postgres import PostgresServer
from tests.crash.adopting_world import OUTPUT, SINK, AdoptingWorld, Table, make_adopting_world
from tests.crash.originals import Copies
from tests.crash.test_kill_and_zombie import hits, strike_each
from tests.crash.victims import Action, Hit, in_turn, sacrifice
from tests.crash.world import write_backwards
from tests.sampling import Sampling
from tests.sinks.folder_table import FolderTable, OpenFolderTable

LOOKING = SinkContext("looking", "checks", {})


def _folder_table(folder: Path) -> Table:
    sink = FolderTable(SINK, OUTPUT, str(folder / "table"))
    looking = OpenFolderTable(sink, LOOKING)

    def rows() -> pa.Table:
        empty = pa.table({"day": [], "number": [], "label": []})
        return looking.rows() if looking.log.is_dir() and looking.load_head().files else empty

    return Table(sink, folder / "table", rows, lambda: looking.load_head().files)


@pytest.fixture(scope="module")
def world(
    ledger_server: PostgresServer, warehouse_server: PostgresServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[AdoptingWorld]:
    folder = tmp_path_factory.mktemp("adopting")
    name = f"adopting_{folder.parent.name.replace('-', '_')}"
    ledger_server.create_database(name)
    warehouse_server.create_database(name)
    yield make_adopting_world(ledger_server.dsn(name), warehouse_server.dsn(name), folder, _folder_table(folder))


def _run(day: int) -> RunKey:
    return RunKey("adoption", f"run {day}")


def _files_of(world: AdoptingWorld, day: int) -> list[str]:
    epoch = world.epoch_of(day)
    return [path for path in world.staged_at_home() if path.split("/")[3] == str(epoch.id)]


SWEEPS: list[tuple[Action, str]] = [
    ("kill", "retry"),
    ("kill", "recovery"),
    ("hang", "retry"),
    ("hang", "new run"),
    ("hang", "recovery"),
]


def test_every_row_is_shown_once_wherever_a_process(
    world: AdoptingWorld,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    subtests: pytest.Subtests,
    sampling: Sampling,
) -> None:
    """… is killed, or hangs and is released after another one has finished the epoch."""
    shares = [hit for hit in hits(world, monkeypatch) if "warehouse" not in hit.task]
    strike_each(world, in_turn(sampling, shares, SWEEPS, every=5), tmp_path, subtests)


def test_an_epoch_that_was_cleaned_up_keeps_its_files_and_verifies(world: AdoptingWorld) -> None:
    day = next(world.days)
    world.run(_run(day), day)
    kept = _files_of(world, day)
    assert len(kept) == 2 and set(kept) <= set(world.lake.files())
    assert world.left_in_staging() == []
    for _ in range(2):
        assert world.recover().problems == []
    assert _files_of(world, day) == kept
    assert all(one.agrees and one.compared for one in verify(world.runtime(), world.epoch_of(day)))
    world.require_exactly_once(day)


def test_files_of_a_stage_that_never_sealed_are_swept(world: AdoptingWorld, tmp_path: Path) -> None:
    """… and those that a zombie stages after the sweep go with the cleanup."""
    day = next(world.days)
    run = _run(day)
    world.run_task("begin", run, day)
    tasks = [("stage", lambda: world.run_task("stage", run, day))]
    sacrifice(tasks, Hit("stage", CrashPoint.STAGE_BEFORE_MANIFEST, 1), "kill", tmp_path / "log")
    files = _files_of(world, day)
    [dead] = {str(Path(path).parent) for path in files}
    assert len(files) == 2
    shutil.copytree(world.lake.root / dead, tmp_path / "copy")
    world.expire_leases()
    again = RunKey("adoption", f"again {day}")
    world.run_until(again, day, "publish.lake")
    assert not set(files) & set(world.staged_at_home())
    shutil.copytree(tmp_path / "copy", world.lake.root / dead)
    world.run_task("cleanup", again, day)
    assert world.left_in_sink() == []
    world.require_exactly_once(day)


def test_a_restaged_epoch_is_adopted_from_where_it_was_staged_again(world: AdoptingWorld) -> None:
    day = next(world.days)
    world.run_until(_run(day), day, "commit")
    damaged = _files_of(world, day)
    (world.lake.root / damaged[0]).write_bytes(b"bad disk")
    world.run_task("restage", _run(day), day, write_backwards)
    world.run(_run(day), day, start="publish.warehouse")
    world.require_exactly_once(day)
    assert not set(damaged) & set(world.lake.files())
    assert set(_files_of(world, day)) - set(damaged) <= set(world.lake.files())
    assert all(one.agrees for one in verify(world.runtime(), world.epoch_of(day)))


def test_which_executions_a_table_may_have_follows_from_the_ledger(world: AdoptingWorld) -> None:
    day = next(world.days)
    runtime = world.runtime()
    world.run_until(_run(day), day, "prepare.lake")
    staged = world.epoch_of(day)
    sealed = int((staged.wal or "").rpartition("/")[2])
    assert may_be_adopted(runtime, staged, sealed)
    assert may_be_adopted(runtime, replace(staged, attempt=sealed + 1), sealed), "an older attempt's WAL is kept"
    assert not may_be_adopted(runtime, staged, staged.attempt - 1)
    world.run(_run(day), day, start="commit")
    cleaned = world.epoch_of(day)
    votes = [one.vote.token for one in runtime.ledger.participants("numbers", cleaned.id).values() if one.vote]
    assert may_be_adopted(runtime, cleaned, sealed)
    assert not may_be_adopted(runtime, cleaned, sealed - 1)
    assert may_be_adopted(runtime, cleaned, max(votes) + 1), "what was staged in its place came after the votes"
    assert sweep_folders(runtime) == 0


def test_a_table_that_is_missing_may_show_what_was_staged_for_it(
    world: AdoptingWorld, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Some sinks find no marker where there is no table."""
    day = next(world.days)
    world.run_until(_run(day), day, "prepare.lake")
    runtime, epoch = world.runtime(), world.epoch_of(day)
    assert not is_shown_otherwise(runtime, epoch)
    monkeypatch.setattr(OpenFolderTable, "find_marker", lambda self, epoch: None)
    shutil.move(world.lake.root / "log", tmp_path / "log")
    try:
        assert is_shown_otherwise(runtime, epoch)
    finally:
        shutil.move(tmp_path / "log", world.lake.root / "log")
    monkeypatch.undo()
    world.run(_run(day), day, start="commit")
    world.require_exactly_once(day)


def test_nothing_is_deleted_below_a_table_that_the_plan_names_no_longer(world: AdoptingWorld, tmp_path: Path) -> None:
    day = next(world.days)
    world.run_until(_run(day), day, "prepare.lake")
    runtime, epoch = world.runtime(), world.epoch_of(day)
    other = FolderTable(SINK, OUTPUT, str(tmp_path / "other"))
    OpenFolderTable(other, LOOKING).preflight(None)
    plan = replace(epoch.plan, sinks={**epoch.plan.sinks, SINK: other.spec()})
    staged = _files_of(world, day)
    folder = str(epoch.wal)
    moved = replace(epoch, plan=plan, state=EpochState.VOID)
    discard_homes(runtime, moved, int(folder.rpartition("/")[2]), folder)
    assert _files_of(world, day) == staged != []
    world.run(_run(day), day, start="commit")
    world.require_exactly_once(day)


@pytest.mark.parametrize("backup", ["begin", "stage", "prepare.lake", "commit"])
def test_a_ledger_that_was_restored_deletes_nothing_that_the_table_has_adopted(
    ledger_server: PostgresServer, warehouse_dsn: str, backup: str, tmp_path: Path, subtests: pytest.Subtests
) -> None:
    """It is as it was at `backup`; what was decided since stands in the table alone."""
    copies, name = Copies(ledger_server), f"adopted_{tmp_path.parent.name.replace('-', '_')}_{backup.replace('.', '_')}"
    world = make_adopting_world(ledger_server.create_database(name), warehouse_dsn, tmp_path, _folder_table(tmp_path))
    run = _run(1)
    world.run_until(run, 1, backup)
    restored = {answer: copies.of(world) for answer in ANSWERS}
    world.run(run, 1, start=world.tasks()[world.tasks().index(backup) + 1])
    adopted = world.lake.files()
    assert adopted
    for answer, act in ANSWERS.items():
        with subtests.test(answer):
            old = restored[answer]
            old.expire_leases()
            with suppress(LockstepError):
                act(old)
            with suppress(LockstepError):
                old.recover()
            assert world.lake.files() == adopted
            assert set(adopted) <= set(world.staged_at_home())
            world.require_exactly_once(1)


ANSWERS: dict[str, Callable[[AdoptingWorld], object]] = {
    "run again": lambda old: old.run(RunKey("adoption", "again"), 1),
    "recovery": lambda old: old.recover(),
    "abort": lambda old: abort_epoch(old.runtime(), old.epoch_of(1).id, Role.OPERATOR, reason="a test"),
    "void": lambda old: void(old.runtime(), old.epoch_of(1).id, "it is shown by the ledger that was lost"),
}
