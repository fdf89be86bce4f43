"""An epoch of a cursor is read again and replaced: where the next one goes on doesn't move, wherever a process dies."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass
from pathlib import Path

import pytest

from lockstep.epoch import Epoch, Input, Interval, KeyedBy, Position, RunKey
from lockstep.errors import EpochVoid, RestateRefused, RunMismatch, SourceChanged, UnknownEpoch
from lockstep.features.assembly import runtime_for
from lockstep.ledger import Ledger, migrate
from lockstep.ledger.report import Report
from lockstep.operations.rebuild import look
from lockstep.operations.renumber import renumber
from lockstep.operations.replan import replan_for, void
from lockstep.operations.verify import verify
from lockstep.sources import OpenSource, SourceContext
from lockstep.states import DECIDED
from lockstep.wal.staging import Staging
from stack.postgres import PostgresServer
from tests.crash.originals import copied
from tests.crash.restating_world import RestatingWorld, make_restating_world
from tests.crash.test_adoption import SWEEPS
from tests.crash.test_kill_and_zombie import hits, strike_each
from tests.crash.victims import in_turn
from tests.crash.world import Numbers, OpenNumbers
from tests.sampling import Sampling


class Following(Numbers):
    """The same numbers, a day an epoch, one after the other."""

    identity = KeyedBy.CURSOR

    def open(self, context: SourceContext) -> OpenSource:
        return OpenFollowing()


class OpenFollowing(OpenNumbers):
    def latest(self, start: Position | None, interval: Interval | None) -> Position:
        return {"day": start["day"] + 1 if start else 0}


@dataclass(frozen=True)
class CursorWorld(RestatingWorld):
    """`days` are given out in the order in which epochs are begun."""

    def interval_of_run(self, day: int) -> None:
        return None

    def require_undecided(self, day: int) -> None:
        """While the next epoch goes its way."""
        super().require_undecided(day)
        self.go_on()

    def original_of(self, day: int) -> Epoch:
        asked = (
            "SELECT id FROM lockstep.epoch WHERE generation = 0 AND (plan #>> '{sources,numbers,end,day}')::int = %s"
        )
        [(number,)] = self.execute(self.ledger_dsn, asked, (day,))
        return self._looking.epoch(self.pipeline.name, number)

    def epoch_of(self, day: int) -> Epoch:
        original = self.original_of(day)
        return [original, *(one for one in self._looking.generations(original) if one.state in DECIDED)][-1]

    def restating_run(self, day: int, name: str = "right") -> RunKey:
        return dataclasses.replace(super().restating_run(day, name), epoch=self.original_of(day).id)

    def go_on(self) -> int:
        """The next epoch, all the way."""
        day = next(self.days)
        self.run(RunKey("restating", f"next {day}"), day)
        return day


@pytest.fixture(scope="module")
def world(ledger_server: PostgresServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[CursorWorld]:
    folder = tmp_path_factory.mktemp("restated_cursors")
    dsns = [ledger_server.create_database(f"restated_cursors_{name}") for name in ("ledger", "warehouse")]
    made = make_restating_world(dsns[0], dsns[1], folder, Following())
    yield CursorWorld(**{one.name: getattr(made, one.name) for one in dataclasses.fields(made)})


@pytest.fixture
def day(world: CursorWorld) -> int:
    """One that shows wrong rows."""
    day = next(world.days)
    world.publish_wrong(day)
    return day


def test_one_decision_swaps_an_epoch_and_the_end_stays(world: CursorWorld, day: int) -> None:
    later = world.go_on()
    world.restate(day)
    assert world.lives(day) == ["replaced", "cleaned"]
    old, new = world.original_of(day), world.epoch_of(day)
    assert (new.plan.sources, new.root, new.in_order) == (old.plan.sources, old.id, False)
    for one in (day, later, world.go_on()):
        world.require_exactly_once(one)
    world.require_tidy()
    assert all(one.agrees for epoch in (old, new) for one in verify(world.runtime(), epoch))
    world.restate(day)
    assert world.lives(day) == ["replaced", "cleaned"], "a run restates once"


def test_later_epochs_go_on_beside_it(world: CursorWorld, day: int) -> None:
    """Also where only one may be in flight, and whatever the restatement has come to."""
    narrow = dataclasses.replace(world, pipeline=dataclasses.replace(world.pipeline, max_in_flight=1))
    for task in world.tasks():
        world.run_task(task, world.restating_run(day), day)
        if task in ("begin", "prepare.archive", "publish.numbers"):
            narrow.require_exactly_once(narrow.go_on())
        world.expire_leases()  # nobody who doesn't ask for it takes it over
    world.require_exactly_once(day)
    assert world.lives(day) == ["replaced", "cleaned"]
    found = Report(world.ledger_dsn).pipeline("numbers")
    assert found is not None and found.stuck == ()


def test_a_run_that_is_to_replan_it_finds_it_beside_later_epochs_and_moves_it(world: CursorWorld, day: int) -> None:
    world.run_until(world.restating_run(day), day, "stage")
    world.expire_leases()
    later = world.go_on()
    [old, new] = world._looking.generations(world.original_of(day))
    run = RunKey("restating", f"replanning {day}", restate="the label was wrong", epoch=old.id)
    replanned = replan_for(world.runtime(), run, "planned anew", new.id)
    assert replanned is not None and replanned.id == new.id
    world.run(run, day)
    assert world.lives(day) == ["replaced", "cleaned"]
    for one in (day, later):
        world.require_exactly_once(one)


# --- refused before anything is planned ------------------------------------------------------------------------------


def _refused(world: CursorWorld, run: RunKey, kind: type[Exception], said: str) -> None:
    before = world._looking.last_epoch("numbers")
    with pytest.raises(kind, match=said):
        world.run_task("begin", run, 0)
    assert world._looking.last_epoch("numbers") == before


def test_what_can_not_be_meant_is_refused(world: CursorWorld, day: int) -> None:
    run = world.restating_run(day)
    _refused(world, dataclasses.replace(run, epoch=None), RestateRefused, "are numbers, say which one")
    _refused(world, dataclasses.replace(run, input=Input.FRESH), RestateRefused, "can't read epoch .* afresh")
    _refused(world, dataclasses.replace(run, epoch=10_000), UnknownEpoch, "10000")
    _refused(world, dataclasses.replace(run, restore=1), RestateRefused, "can't show the rows of epoch 1 again")
    other = world.go_on()
    world.restate(day)
    elsewhere = dataclasses.replace(run, epoch=world.original_of(other).id)
    _refused(world, elsewhere, RunMismatch, "give it another id")


def test_an_epoch_that_nothing_shows_yet_is_refused(world: CursorWorld) -> None:
    later = next(world.days)
    own = RunKey("restating", f"own {later}")
    world.run_until(own, later, "stage")
    world.expire_leases()
    _refused(world, world.restating_run(later), RestateRefused, "nothing shows it that could be replaced")
    void(world.runtime(), world.original_of(later).id, "a test")
    _refused(world, world.restating_run(later), EpochVoid, "given up")


def test_a_source_that_can_not_give_the_range_again_is_named(
    world: CursorWorld, day: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(self: object, start: Position | None, end: Position) -> None:
        raise SourceChanged(f"{end['day']} is gone; bring it back, or `lockstep replan`")

    monkeypatch.setattr(OpenFollowing, "check", gone)
    _refused(world, world.restating_run(day), RestateRefused, r"from what was read: .* is gone; .* leave what is shown")


def test_with_state_it_is_refused(world: CursorWorld, day: int, monkeypatch: pytest.MonkeyPatch) -> None:
    begun = next(world.days)
    world.publish_wrong(begun)
    world.run_until(world.restating_run(begun), begun, "begin")
    with monkeypatch.context() as patched:
        patched.setattr(Ledger, "has_keyed_state", lambda self, pipeline: True)
        _refused(world, world.restating_run(day), RestateRefused, "has state")
        with pytest.raises(RestateRefused, match="give it up"):
            world.run_task("stage", world.restating_run(begun), begun)
    world.restate(begun, "stage")


def test_a_lost_ledger_is_not_rebuilt_past_it(world: CursorWorld, day: int, ledger_server: PostgresServer) -> None:
    """Which life is in force, and so where the cursor ended, isn't found again."""
    world.restate(day)
    dsn = ledger_server.create_database("restated_cursors_rebuilt")
    migrate(dsn)
    staging = Staging(str(world.staging_folder))
    runtime = runtime_for(world.pipeline, Ledger(dsn), staging, {"warehouse": world.warehouse_dsn})
    refused = look(runtime).refused
    assert any(f"epoch {world.epoch_of(day).id} is a restatement" in why for why in refused), refused


@pytest.mark.fault("P8")
def test_one_backup_of_the_ledger_is_restored_twice(ledger_server: PostgresServer, tmp_path: Path) -> None:
    """The second time it doesn't know how the first loss was healed either."""
    dsns = [ledger_server.create_database(f"restored_cursors_{name}") for name in ("ledger", "warehouse")]
    made = make_restating_world(dsns[0], dsns[1], tmp_path, Following())
    world = CursorWorld(**{one.name: getattr(made, one.name) for one in dataclasses.fields(made)})
    day = next(world.days)
    world.publish_wrong(day)
    backup = copied(ledger_server, world.ledger_dsn)
    ledgers = [copied(ledger_server, backup) for _ in range(2)]
    world.restate(day)
    ledgers.append(copied(ledger_server, world.ledger_dsn))  # a younger one, which knows a part
    for dsn in ledgers:
        restored = dataclasses.replace(world, ledger_dsn=dsn)
        renumber(restored.runtime(), "the ledger was restored")
        for name in ("healed", "once more"):
            run = dataclasses.replace(restored.restating_run(day, f"{name} {dsn}"), restate=f"{name} {dsn[-9:]}")
            restored.run(run, day)
            restored.require_exactly_once(day)


# --- crashes and zombies ---------------------------------------------------------------------------------------------


@pytest.mark.tier("all")
@pytest.mark.fault("N1")
def test_an_epoch_is_swapped_once_wherever_a_process(
    world: CursorWorld,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    subtests: pytest.Subtests,
    sampling: Sampling,
) -> None:
    """… is killed, or hangs and is released after another one has finished the restatement, and the next epochs."""
    first = next(copy(world.days))
    strike_each(world, in_turn(sampling, hits(world, monkeypatch), SWEEPS, every=12), tmp_path, subtests)
    shown = world.shown().values()
    for day in range(first, next(copy(world.days))):
        assert all(days[day] == world.expected(day) for days in shown), day


def test_monitors_of_the_source_are_not_told_of_a_range_behind_them(
    world: CursorWorld, day: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[Position] = []
    monkeypatch.setattr(OpenFollowing, "report_published", lambda self, start, end: told.append(end))
    world.restate(day)
    assert told == []
    later = world.go_on()
    assert told == [{"day": later}]
