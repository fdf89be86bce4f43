"""The ledger comes back as it was before some epochs were published: restored, or a standby that lagged is promoted."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import NoReturn

import pytest

from lockstep.epoch import RunKey
from lockstep.errors import (
    EpochBusy,
    IllegalTransition,
    InvalidPipeline,
    LedgerConflict,
    LockstepError,
    PreflightRefused,
    SinkUnavailable,
)
from lockstep.operations.doctor import Surroundings, examine
from lockstep.operations.renumber import Renumbering, renumber
from lockstep.operations.replan import void
from lockstep.protocol.abort import abort, abort_epoch
from lockstep.protocol.begin import begin
from lockstep.protocol.recover import forget
from lockstep.sinks.files import FileSink
from lockstep.sinks.postgres import PostgresSink
from lockstep.sinks.tables.sink import ProtocolName
from lockstep.states import Role
from stack.postgres import PostgresServer
from tests.crash.originals import Copies, Original, Originals, copied
from tests.crash.test_as_of import cut, expect
from tests.crash.world import World, interval_of, make_world, rows_of_day, write_others

_numbers = count(1)
FORGOTTEN = (2, 3, 4)  #: days that are published after the copy was taken


def _run(day: int) -> RunKey:
    return RunKey("restored", f"{day} {next(_numbers)}")


@pytest.fixture(scope="module")
def copies(ledger_server: PostgresServer) -> Copies:
    return Copies(ledger_server)


def _published(server: PostgresServer, folder: Path, protocol: ProtocolName) -> World:
    """Days 0 and 1 are."""
    ledger, warehouse = (
        server.create_database(f"restored_{kind}_{next(_numbers)}") for kind in ("ledger", "warehouse")
    )
    made = make_world(ledger, warehouse, folder, protocol)
    for _ in range(2):
        made.run(_run(day := next(made.days)), day)
    return made


@pytest.fixture(scope="module")
def originals(copies: Copies, tmp_path_factory: pytest.TempPathFactory) -> Originals[World]:
    return Originals(
        copies.server,
        lambda protocol: _published(copies.server, tmp_path_factory.mktemp("restored"), protocol),  # type: ignore[arg-type]
    )


@pytest.fixture
def world(request: pytest.FixtureRequest, originals: Originals[World]) -> World:
    return originals.copy(getattr(request, "param", "two_phase"))


@pytest.fixture(scope="module")
def forgotten(copies: Copies, tmp_path_factory: pytest.TempPathFactory) -> tuple[Original[World], str]:
    """The days FORGOTTEN are published, too; and the ledger as it was before."""
    world = _published(copies.server, tmp_path_factory.mktemp("forgotten"), "two_phase")
    before = copies.of(world).ledger_dsn
    for day in FORGOTTEN:
        world.run(_run(day), day)
    return Original.of(copies.server, world), before


@pytest.fixture
def restored(forgotten: tuple[Original[World], str], copies: Copies) -> World:
    """The ledger of a moment before the days FORGOTTEN were published."""
    original, before = forgotten
    return replace(original.copy(), ledger_dsn=copied(copies.server, before))


def _require_nothing_twice(world: World, *days: int) -> None:
    for place, by_day in world.shown().items():
        for day in days:
            assert by_day.get(day, Counter()) in (Counter(), Counter(rows_of_day(day))), f"day {day} in {place}"


def _renumbered(world: World, *, unprotected: bool = False) -> Renumbering:
    return renumber(world.runtime(), "the disk of the ledger was lost", unprotected=unprotected)


@pytest.mark.fault("L3")
def test_a_ledger_that_is_older_than_its_sinks_plans_nothing(restored: World) -> None:
    for day in (FORGOTTEN[0], 5):
        said = r"the ledger is older than its sinks.*lockstep renumber numbers --reason"
        with pytest.raises(LedgerConflict, match=said):
            begin(restored.runtime(), _run(day), interval_of(day))
        assert restored.state_of(day) is None, day


@pytest.mark.fault("L3")
def test_after_a_person_has_looked_new_days_go_on_and_what_is_shown_stays_refused_until_it_is_given_up(
    restored: World,
) -> None:
    found = _renumbered(restored)
    assert {(one.sink, one.epoch) for one in found.shown} == {(s, e) for s in ("warehouse", "files") for e in (3, 4, 5)}
    assert all(one.span for one in found.shown) and found.left == ()
    restored.run(_run(5), 5)
    assert restored.epoch_of(5).id == found.epoch + 1 == 6
    assert restored.epoch_of(5).attempt > found.token
    restored.require_exactly_once(5)
    for day in FORGOTTEN:
        with pytest.raises(LedgerConflict, match=rf"can't be taken, the target shows epoch {day + 1} .*lockstep void"):
            restored.run(_run(day), day)
        void(restored.runtime(), restored.epoch_of(day).id, "it is shown by the ledger that was lost")
    _require_nothing_twice(restored, *range(6))
    assert all(restored.shown()["warehouse"][day] for day in FORGOTTEN)
    assert restored.recover().problems == []


@pytest.mark.fault("L18")
def test_what_a_lost_ledger_has_half_shown_is_read_in_no_sink_until_it_stands_in_all(
    world: World, copies: Copies
) -> None:
    """Day 3 stands everywhere; day 2 in the warehouse alone, and may be finished by who still has the old ledger."""
    restored, run = copies.of(world), _run(2)
    world.run_until(run, 2, "publish.warehouse")
    world.run(_run(3), 3)
    _renumbered(restored)
    with pytest.raises(LedgerConflict, match="can't be taken, the target shows epoch 3"):
        restored.run(_run(2), 2)
    restored.run(_run(5), 5)
    assert restored.epoch_of(2).id == 5
    for epoch in (None, 6):
        found = cut(restored, epoch)
        assert found.epochs.without == (3, 5)
        expect(restored, found, 0, 1, 3, 5)
    expect(restored, cut(restored, 2), 0, 1)
    world.run(run, 2, "publish.files")
    _renumbered(restored)
    assert cut(restored).epochs.without == (5,)
    expect(restored, cut(restored), 0, 1, 2, 3, 5)


@pytest.mark.fault("L18")
def test_what_was_shown_before_a_sink_joined_is_read_in_the_others(world: World, copies: Copies) -> None:
    """Day 2 by two sinks, day 3 by a third one, too, in the time that the restored ledger knows nothing of."""
    third = FileSink("later", output="numbers", path=str(world.folder / "later"))
    more = replace(world, pipeline=replace(world.pipeline, sinks=[*world.pipeline.sinks, third]))
    restored = copies.of(more)
    world.run(_run(2), 2)
    more.run(_run(3), 3)
    for day in (5, 6):  # the second time later plans have the sink, too
        _renumbered(restored)
        restored.run(_run(day), day)
        assert cut(restored).epochs.without == ()
    expect(restored, cut(restored), 0, 1, 2, 3, 5, 6)


@pytest.mark.fault("P14")
def test_a_sink_that_is_gone_from_every_plan_in_force_is_named_and_holds_nothing_up(restored: World) -> None:
    gone = replace(restored, pipeline=replace(restored.pipeline, sinks=restored.pipeline.sinks[1:]))
    restored.execute(restored.warehouse_dsn, "DROP TABLE public.numbers")
    with pytest.raises(PreflightRefused, match=r"sink warehouse: table public\.numbers is missing"):
        _renumbered(restored)
    found = _renumbered(gone)
    assert [one.partition(":")[0] for one in found.unasked] == ["warehouse"] and {*found.since} == {"files"}
    gone.run(_run(5), 5)
    assert gone.epoch_of(5).id == 6


def _restating(why: str) -> RunKey:
    return RunKey("restored", f"1 {next(_numbers)}", restate=why)


@pytest.mark.fault("P5")
@pytest.mark.sample(1)
@pytest.mark.parametrize("world", ["two_phase", "write_ahead"], indirect=True)
@pytest.mark.parametrize("copied_at", ["before", "begin", "stage"])
@pytest.mark.parametrize("until", ["publish.warehouse", "cleanup"])
def test_a_range_that_was_restated_in_the_lost_time_is_restated_once_more(
    world: World, copies: Copies, copied_at: str, until: str
) -> None:
    """Day 1 was, twice: the second time maybe in the warehouse alone. The copy may know the first one as undecided."""
    first, second = _restating("a file was corrected"), _restating("it was corrected again")
    if copied_at != "before":
        world.run_until(first, 1, copied_at, write_others)
    restored = copies.of(world)
    restored.expire_leases()
    world.run(first, 1, job=write_others)
    world.run_until(second, 1, until, write_others)
    refused = EpochBusy if copied_at == "stage" else LedgerConflict
    with pytest.raises(refused, match="(a file was corrected)" if copied_at == "stage" else "the ledger is older than"):
        begin(restored.runtime(), _restating("once more"), interval_of(1))
    _renumbered(restored)
    if copied_at != "before":
        with pytest.raises(refused):
            restored.run(_restating("once more"), 1)
        void(restored.runtime(), 3, "it was decided in the lost time")
    for why in ("once more", "and again"):
        restored.run(_restating(why), 1)
        restored.require_exactly_once(1)
        expect(restored, cut(restored), 0, 1)
    assert until != "cleanup" or restored.recover().problems == []


@pytest.mark.fault("P11")
@pytest.mark.parametrize("until", ["publish.warehouse", "cleanup"])
def test_a_range_that_is_restated_is_read_alike_in_every_sink(world: World, copies: Copies, until: str) -> None:
    """Day 1 is, twice, with a ledger that gets lost: the second time maybe in the warehouse alone."""
    restored, shown = copies.of(world), [0] if until == "publish.warehouse" else [0, 1]
    world.run(_restating("a file was corrected"), 1)
    world.run_until(_restating("it was corrected again"), 1, until)
    expect(world, cut(world), *shown)
    assert {*cut(restored).unreadable} == {"warehouse", "files"}
    _renumbered(restored)
    assert cut(restored).epochs.without == (2,)
    expect(restored, cut(restored), 0)
    restored.run(_run(5), 5)
    assert cut(restored).epochs.without == ((2, 3, 4) if until == "publish.warehouse" else (2, 3))
    expect(restored, cut(restored), *shown, 5)


@pytest.mark.fault("L3")
def test_every_sink_refuses_a_range_that_it_shows_before_any_vote(restored: World) -> None:
    _renumbered(restored)
    for sink in ("warehouse", "files"):
        run = _run(2)
        restored.expire_leases()
        restored.run_until(run, 2, "stage")
        with pytest.raises(LedgerConflict, match=f"sink {sink}: .* can't be taken, the target shows epoch 3"):
            restored.run_task(f"prepare.{sink}", run, 2)
    assert all(
        vote.vote is None for vote in restored._looking.participants("numbers", restored.epoch_of(2).id).values()
    )
    assert restored.prepared() == []


@pytest.mark.fault("L3")
def test_days_that_a_lagging_standby_knows_as_undecided_are_not_shown_twice(world: World, copies: Copies) -> None:
    """A backfill in parallel: some days are planned, staged or voted for when the copy is taken, in no order."""
    runs = {day: _run(day) for day in FORGOTTEN}
    for day, last in zip(FORGOTTEN, ("begin", "stage", "prepare.files"), strict=True):
        world.run_until(runs[day], day, last)
    standby = copies.of(world)
    for day in reversed(FORGOTTEN):
        world.expire_leases()
        world.run(_run(day), day)
    standby.expire_leases()
    for day in FORGOTTEN:
        with pytest.raises(LedgerConflict):
            standby.run(_run(day), day)
    _renumbered(standby)
    for day in FORGOTTEN:
        with suppress(LedgerConflict):
            standby.run(_run(day), day)
    _require_nothing_twice(standby, *range(5))


@pytest.mark.fault("Q9")
@pytest.mark.parametrize("world", ["two_phase", "write_ahead"], indirect=True)
def test_what_a_lost_ledger_has_shown_under_a_sinks_former_name_is_shown_once(world: World, copies: Copies) -> None:
    told = world.pipeline.sinks[0].arguments()
    named = ([PostgresSink(**{**told, "name": name})] for name in ("former", "renamed"))
    former, renamed = (replace(world, pipeline=replace(world.pipeline, sinks=sinks)) for sinks in named)
    renamed.run(_run(2), 2)  # nothing is wrong with another name
    former.run(_run(3), 3)
    restored = copies.of(renamed)
    former.run(_run(4), 4)
    with pytest.raises(LedgerConflict, match=r"sink renamed shows epoch 5 .*the ledger is older than its sinks"):
        begin(restored.runtime(), _run(4), interval_of(4))
    found = _renumbered(restored)
    assert [(one.sink, one.epoch) for one in found.shown] == [("former", 5)]
    with pytest.raises(LedgerConflict, match=r"sink renamed: epoch 6 .* can't be taken, the target shows epoch 5 of"):
        restored.run(_run(4), 4)
    void(restored.runtime(), 6, "it is shown by the ledger that was lost")
    restored.run(_run(5), 5)
    assert all(restored.shown_in_warehouse(day) == Counter(rows_of_day(day)) for day in range(6))


@pytest.mark.fault("L3")
@pytest.mark.parametrize("world", ["two_phase", "write_ahead"], indirect=True)
def test_two_ledgers_that_both_decide_a_range_show_it_once(world: World, copies: Copies) -> None:
    """The old primary lives on beside the promoted standby: then only the targets can arbitrate."""
    standby, run = copies.of(world), _run(2)
    world.run_until(run, 2, "commit")
    _renumbered(standby)
    with suppress(LedgerConflict, SinkUnavailable):
        standby.run(_run(2), 2)
    with suppress(LedgerConflict):
        world.run(run, 2, start="publish.warehouse")
    with suppress(LedgerConflict):
        world.run(run, 2, start="publish.files")
    _require_nothing_twice(world, 2)
    assert world.shown()["warehouse"][2]


@pytest.mark.fault("L3")
def test_markers_without_a_range_are_counted_and_need_a_word_of_their_own(restored: World) -> None:
    restored.execute(restored.warehouse_dsn, "DELETE FROM lockstep_range")
    with pytest.raises(IllegalTransition, match=r"3 of the 6 epochs .* carry no range.*--unprotected"):
        _renumbered(restored)
    with pytest.raises(LedgerConflict):
        begin(restored.runtime(), _run(5), interval_of(5))
    _renumbered(restored, unprotected=True)
    restored.run(_run(5), 5)
    restored.require_exactly_once(5)


@pytest.mark.fault("L3")
def test_what_a_forgotten_attempt_has_prepared_is_told_and_left_alone(world: World, copies: Copies) -> None:
    restored = copies.of(world)
    world.run_until(_run(2), 2, "prepare.warehouse")
    [gid] = world.prepared()
    found = _renumbered(restored)
    assert f"warehouse: {gid}" in [one.name for one in found.left]
    assert restored.prepared() == [gid]
    restored.run(_run(5), 5)
    assert restored.epoch_of(5).id == 4 and restored.prepared() == [gid]


@pytest.mark.fault("Q2")
@pytest.mark.parametrize("known", [False, True], ids=["epoch unknown", "epoch planned"])
def test_what_a_lost_time_has_prepared_stays_an_alarm_however_often_its_epoch_is_begun(
    world: World, copies: Copies, known: bool
) -> None:
    run = _run(2)
    if known:
        world.run_task("begin", run, 2)
    restored = copies.of(world)
    world.run_until(run, 2, "prepare.files")
    left = restored.prepared(), restored.left_in_sink(), restored.left_in_staging()
    assert all(left)
    for _ in range(9):  # so many tokens as were issued in the lost time, and more
        restored.expire_leases()
        with pytest.raises(
            LedgerConflict, match=r"(never issued token|has no epoch 3).* go on with: lockstep renumber"
        ):
            begin(restored.runtime(), run, interval_of(2))
        restored.fall_silent()
        assert any("was the ledger restored" in one for one in restored.recover().problems)
        with suppress(LedgerConflict):
            abort(restored.runtime(), run)
        with suppress(LockstepError):
            abort_epoch(restored.runtime(), 3, Role.OPERATOR)
    assert (restored.prepared(), restored.left_in_sink(), restored.left_in_staging()) == left
    assert restored.state_of(2) == ("planned" if known else None), "nothing was planned"
    world.run(run, 2, "commit")
    world.require_exactly_once(2)


@pytest.mark.fault("L3")
@pytest.mark.parametrize("world", ["two_phase", "write_ahead"], indirect=True)
def test_nothing_is_taken_from_an_epoch_that_a_forgotten_decision_has_half_shown(world: World, copies: Copies) -> None:
    """The copy knows its votes, and not that it was decided, and shown in one sink since."""
    run = _run(2)
    world.run_until(run, 2, "prepare.files")
    restored = copies.of(world)
    for task in ("commit", "publish.files"):
        world.run_task(task, run, 2)
    restored.expire_leases()
    left = restored.prepared(), restored.left_in_staging()
    assert len(left[0]) == (1 if world.protocol == "two_phase" else 0) and left[1]
    around = Surroundings(
        restored.ledger_dsn, str(restored.staging_folder), None, {"warehouse": restored.warehouse_dsn}
    )
    assert any("which this ledger hasn't decided: it is older" in one.says for one in examine(around, "numbers"))
    restored.recover()
    with pytest.raises(LedgerConflict):
        begin(restored.runtime(), _run(2), interval_of(2))
    with pytest.raises(LedgerConflict, match=r"sink files shows numbers epoch 3 .* which this ledger hasn't decided"):
        void(restored.runtime(), 3, "nobody needs it")
    assert any("sink files shows numbers epoch 3" in one for one in restored.recover().problems)
    assert (restored.prepared(), restored.left_in_staging()) == left
    world.run(run, 2, "publish.warehouse")
    world.require_exactly_once(2)


@pytest.mark.parametrize(
    ("error", "way"),
    [
        (SinkUnavailable, "it is back"),
        (InvalidPipeline, "a person gives the range up"),
        (SinkUnavailable, "nobody plans it any more"),
    ],
)
def test_a_sink_that_can_not_be_asked_holds_back_its_own_epochs_and_not_for_ever(
    world: World, error: type[LockstepError], way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may be down, or its connection was taken away; the other's prepared transactions hold locks and vacuum."""
    alone = replace(world, pipeline=replace(world.pipeline, sinks=world.pipeline.sinks[:1]))
    world.run_until(_run(2), 2, "prepare.warehouse")
    alone.run_until(_run(3), 3, "prepare.warehouse")
    held, other = world.epoch_of(2), world.epoch_of(3)
    assert len(world.prepared()) == 2

    def down(sink: FileSink, context: object) -> NoReturn:
        raise error("nobody is there")

    with monkeypatch.context() as patched:
        patched.setattr(FileSink, "open", down)
        with pytest.raises(
            SinkUnavailable, match=f"epoch {held.id}: nothing is rolled back .* sink files .*lockstep void"
        ):
            abort_epoch(world.runtime(), held.id, Role.ABORT)
        world.expire_leases()
        for _ in range(2):
            problems = world.recover().problems
            assert any(f"epoch {held.id}: nothing is rolled back" in one for one in problems), problems
            assert world.epoch_of(3).attempt > other.attempt
            [left] = world.prepared()
        if way == "a person gives the range up":
            with pytest.raises(error):
                void(world.runtime(), held.id, "the folder was taken away")
            assert world.prepared() == []
        elif way == "nobody plans it any more":
            world.execute(
                world.ledger_dsn,
                "UPDATE lockstep.planned_sink SET planned_at = now() - interval '8 days' WHERE sink = 'files'",
            )
            world.recover()
            assert world.prepared() == []
    if way == "it is back":
        assert world.recover().problems == []
    assert world.prepared() == [], left


@pytest.mark.fault("L3")
def test_no_number_is_given_out_twice_and_the_history_says_who_lifted_them(restored: World) -> None:
    found = _renumbered(restored)
    again = _renumbered(restored)
    assert (again.epoch, again.token) == (found.epoch, found.token)
    kept = restored.execute(
        restored.ledger_dsn,
        "SELECT change, reason, (details ->> 'token')::int FROM lockstep.pipeline_change ORDER BY id",
    )
    assert kept == [("renumbered", "the disk of the ledger was lost", found.token)] * 2
    [(taken,)] = restored.execute(restored.ledger_dsn, "SELECT max(token) FROM lockstep.execution")
    assert taken > found.token


@pytest.mark.fault("P20")
@pytest.mark.parametrize("kind", ["table", "folder"])
def test_what_was_restated_in_the_lost_time_is_named_until_all_of_it_is_taken_away(
    world: World, copies: Copies, kind: str
) -> None:
    world = replace(world, pipeline=replace(world.pipeline, sinks=[world.pipeline.sinks[kind == "folder"]]))
    old, day = replace(world, ledger_dsn=copied(copies.server, world.ledger_dsn)), next(world.days)
    world.run(_run(day), day)
    world.run(replace(_run(day), restate="corrected"), day, job=write_others)
    _renumbered(old)
    run = _run(day)
    for number in (4, 3):  # the youngest first
        with pytest.raises(LedgerConflict, match=rf"target shows epoch {number} .*\.lockstep/span=….json"):
            old.run(run, day)
        for name in ("public.numbers WHERE lockstep_", "lockstep_marker WHERE ", "lockstep_range WHERE "):
            old.execute(old.warehouse_dsn, f"DELETE FROM {name}epoch = {number}")
        span = f"span=2013-01-03*{'_1' if number == 4 else '0000'}.json"
        for name in (f"files-epoch={number}-*", f".lockstep/epoch={number}.json", f".lockstep/{span}"):
            for path in old.folder.glob(f"out/{name}"):
                path.unlink()
        old.expire_leases()
    old.run(run, day)
    assert old.shown()["warehouse" if kind == "table" else "files"][day] == Counter(rows_of_day(day))


@pytest.mark.fault("P23")
def test_a_pipeline_of_which_sinks_show_decided_epochs_is_not_forgotten(world: World, copies: Copies) -> None:
    folder = FileSink("files", output="numbers", path=str(world.folder / "other"))
    other = replace(world, pipeline=replace(world.pipeline, name="other", sinks=[folder]))
    run, day = _run(0), next(world.days)
    other.run_until(run, day, "stage")
    old = replace(other, ledger_dsn=copied(copies.server, other.ledger_dsn))
    other.run(run, day, "prepare.files")
    with pytest.raises(LedgerConflict, match="which this ledger hasn't decided so"):
        forget(old.runtime(), "mistyped")
