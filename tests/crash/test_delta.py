"""Epochs into a Delta table and Postgres by one decision: wherever a process dies, both have each row once, or neither.

What asks the table does so in a process apart: deltalake does not live on in children of a process that has used it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import timedelta
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest

from lockstep.epoch import RunKey
from lockstep.errors import LedgerConflict
from lockstep.operations.doctor import Severity, Surroundings, examine
from lockstep.operations.renumber import renumber
from lockstep.operations.verify import Verification, verify
from lockstep.protocol.recover import RecoveryReport, recover
from lockstep.protocol.stage_job import Launch
from lockstep.sinks.delta import DeltaSink
from stack.postgres import PostgresServer
from tests.apart import apart
from tests.crash.adopting_world import OUTPUT, SINK, AdoptingWorld, Table, make_adopting_world
from tests.crash.test_kill_and_zombie import hits, strike_each
from tests.crash.victims import Action, in_turn
from tests.sampling import Sampling
from tests.sinks.delta_target import Log, on_table

ROWS = pa.schema([("day", pa.int64()), ("number", pa.int32()), ("label", pa.string())])


class DeltaWorld(AdoptingWorld):
    def run_task(self, task: str, run: RunKey, day: int, job: Launch | None = None) -> None:
        apart(partial(super().run_task, task, run, day, job))

    def recover(self) -> RecoveryReport:
        return apart(lambda: recover(self.runtime(), recovery_grace=timedelta(0)))

    def verify(self, day: int) -> list[Verification]:
        return apart(lambda: verify(self.runtime(), self.epoch_of(day)))


@pytest.fixture(scope="module")
def world(
    ledger_server: PostgresServer, warehouse_server: PostgresServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[DeltaWorld]:
    folder = tmp_path_factory.mktemp("delta")
    name = f"delta_{folder.parent.name.replace('-', '_')}"
    ledger_server.create_database(name)
    warehouse_server.create_database(name)
    yield make_delta_world(ledger_server.dsn(name), warehouse_server.dsn(name), folder)


def make_delta_world(ledger_dsn: str, warehouse_dsn: str, folder: Path) -> DeltaWorld:
    log = Log(folder / "table")
    sink = DeltaSink(SINK, output=OUTPUT, path=str(log.root), create=True)
    table = Table(sink, log.root, lambda: log.rows(ROWS), lambda: log.files)
    made = make_adopting_world(ledger_dsn, warehouse_dsn, folder, table)
    return DeltaWorld(ledger_dsn, warehouse_dsn, folder, made.pipeline, made.staging_folder, table=table)


def _run(day: int) -> RunKey:
    return RunKey("delta", f"run {day}")


SWEEPS: list[tuple[Action, str]] = [("kill", "retry"), ("kill", "recovery"), ("hang", "retry"), ("hang", "recovery")]


def test_every_row_is_shown_once_wherever_a_process(
    world: DeltaWorld,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    subtests: pytest.Subtests,
    sampling: Sampling,
) -> None:
    """… is killed, or hangs and is released after another one has finished the epoch."""
    reached = apart(lambda: hits(world, monkeypatch))
    next(world.days)  # the dry run's, which only its process has counted
    its_own = [hit for hit in reached if SINK in hit.task or hit.task in ("stage", "cleanup")]
    strike_each(world, in_turn(sampling, its_own, SWEEPS, every=8), tmp_path, subtests)


def replace_last_entry(world: DeltaWorld, meanwhile: Callable[[], object] = lambda: None) -> Callable[[], object]:
    """As Delta for Spark does, which looked for the entry before it was there, and renames its own to that name."""
    entry = max((world.lake.root / "_delta_log").glob("*.json"))
    meanwhile()
    text, told = (
        entry.read_text(),
        {"timestamp": 0, "operation": "WRITE", "engineInfo": "Apache-Spark/4.2.0 Delta-Lake/4.4.0"},
    )
    entry.write_text(json.dumps({"commitInfo": told}) + "\n")
    return lambda: entry.write_text(text)


@pytest.mark.fault("S4")
def test_a_commit_that_spark_has_replaced_comes_back_by_cleanup_and_is_told_later(world: DeltaWorld) -> None:
    day, said = next(world.days), "commit is gone"

    def examined() -> list[str]:
        surroundings = Surroundings(world.ledger_dsn, str(world.staging_folder), None, world.runtime().connections)
        found = apart(lambda: list(examine(surroundings, world.pipeline.name)))
        return [finding.says for finding in found if finding.severity is not Severity.FINE]

    world.run_until(_run(day), day, world.tasks()[-2])
    replace_last_entry(world)
    assert not world.shown_in_files(day)
    world.run(_run(day), day, start="cleanup")
    world.require_exactly_once(day)
    told = examined()
    assert any("Spark has written" in says for says in told) and not any(said in says for says in told)
    put_back = replace_last_entry(world)
    assert any(said in says for says in examined())
    put_back()


@pytest.mark.fault("S4")
def test_a_lost_commit_is_not_published_again_over_its_rows_or_a_persons_word(world: DeltaWorld) -> None:
    before, day, last = next(world.days), next(world.days), next(world.days)
    world.run(_run(before), before)
    world.run_until(_run(day), day, world.tasks()[-2])
    put_back = replace_last_entry(world, lambda: on_table(world.lake.root, lambda table: table.optimize.compact()))
    assert world.shown_in_files(day).total() == 20
    with pytest.raises(LedgerConflict, match="still shows 20 rows of it"):
        world.run(_run(day), day, start="cleanup")
    assert world.shown_in_files(day).total() == 20
    put_back()
    world.run(_run(day), day, start="cleanup")
    world.require_exactly_once(day)
    world.run_until(_run(last), last, world.tasks()[-2])
    replace_last_entry(world)
    apart(lambda: renumber(world.runtime(), "it stays away", lacking=[SINK]))
    world.run(_run(last), last, start="cleanup")
    assert not world.shown_in_files(last)


def test_an_epoch_goes_into_both_and_verifies_until_it_is_rolled_back(world: DeltaWorld) -> None:
    day = next(world.days)
    world.run_until(_run(day), day, "commit")
    assert not world.shown_in_files(day) and not world.shown_in_warehouse(day)
    world.run(_run(day), day, start="publish.warehouse")
    world.require_exactly_once(day)
    assert all(one.agrees and one.compared for one in world.verify(day))

    def compact(found: object) -> None:
        found.optimize.compact()  # type: ignore[attr-defined]
        found.vacuum(0, dry_run=False, enforce_retention_duration=False, full=True)  # type: ignore[attr-defined]

    on_table(world.lake.root, compact)
    world.require_exactly_once(day)
    assert all(one.agrees and one.compared for one in world.verify(day)), "compacted files show the same rows"
    on_table(world.lake.root, lambda found: found.delete(f"day = {day}"))
    problems = {one.sink: one.problem for one in world.verify(day)}
    assert problems["warehouse"] is None and "nothing is written again" in str(problems[SINK])
    world.run(_run(day), day, start="publish.warehouse")
    assert not world.shown_in_files(day), "what somebody took away isn't brought back"
