"""A day that turned out wrong is replaced in every sink by one decision, wherever a process dies or stands still."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from lockstep import crash
from lockstep.crash import CrashPoint
from lockstep.epoch import Epoch, Input, Plan, RunKey
from lockstep.errors import (
    EpochBusy,
    EpochVoid,
    IllegalTransition,
    LedgerConflict,
    PreflightRefused,
    RestateRefused,
    Terminal,
)
from lockstep.ledger import Ledger
from lockstep.operations.as_of import as_of
from lockstep.operations.replan import replan, void
from lockstep.operations.verify import verify
from lockstep.protocol.begin import make_plan
from lockstep.sinks.base import Sink
from lockstep.sinks.postgres import PostgresSink
from stack.postgres import PostgresServer
from tests.crash.recording import recorded
from tests.crash.restating_world import (
    RestatingWorld,
    make_restating_world,
    with_sinks,
    wrong_rows,
)
from tests.crash.test_adoption import SWEEPS
from tests.crash.test_kill_and_zombie import hits, strike_each
from tests.crash.victims import Hit, in_turn, overtake, sacrifice
from tests.crash.world import OpenNumbers, rows_of_day, write_others, write_parquet
from tests.sampling import Sampling


@pytest.fixture(scope="module")
def world(ledger_server: PostgresServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RestatingWorld]:
    folder = tmp_path_factory.mktemp("restating")
    dsns = [ledger_server.create_database(f"restating_{name}") for name in ("ledger", "warehouse")]
    yield make_restating_world(dsns[0], dsns[1], folder)


@pytest.fixture
def day(world: RestatingWorld) -> int:
    """One that shows wrong rows."""
    day = next(world.days)
    world.publish_wrong(day)
    return day


def test_a_run_restates_once_however_often_it_is_cleared(world: RestatingWorld, day: int) -> None:
    world.restate(day)
    world.restate(day)
    assert world.lives(day) == ["replaced", "cleaned"]
    another = RunKey("restating", f"right {day}", restate="once more")
    world.run(another, day)
    assert world.lives(day) == ["replaced", "replaced", "cleaned"]
    world.require_exactly_once(day)


@pytest.mark.fault("N2")
def test_runs_with_one_reason_at_a_time_move_one_epoch(world: RestatingWorld, day: int) -> None:
    world.run_until(world.restating_run(day), day, "publish.numbers")
    beside = RunKey("restating", f"beside {day}", restate="the label was wrong")
    with pytest.raises(EpochBusy, match="it is committed"):
        world.run_task("begin", RunKey("restating", f"other {day}", restate="for another reason"), day)
    world.run(beside, day)
    world.restate(day, "publish.archive")
    assert world.lives(day) == ["replaced", "cleaned"]
    world.require_exactly_once(day)


@pytest.mark.sample(1)
@pytest.mark.parametrize("until", ["begin", "commit", "cleanup"])
def test_a_run_that_takes_over_what_another_has_begun_goes_on_with_it_and_restates_nothing_more(
    world: RestatingWorld, day: int, until: str
) -> None:
    first = RunKey("restating", f"first {day}", restate="the label was wrong")
    second = RunKey("restating", f"second {day}", restate="somebody else saw it, too")
    world.run_task("begin", first, day)
    world.expire_leases()
    world.run_until(second, day, until)
    world.run(second, day)  # it is cleared
    world.require_exactly_once(day)
    assert world.lives(day) == ["replaced", "cleaned"]
    world.run_task("begin", first, day)  # and so is the other one
    assert world.lives(day) == ["replaced", "cleaned"]


@pytest.mark.fault("Q3")
def test_a_run_with_another_reason_waits_for_rows_that_are_staged_and_reads_its_range_afresh(
    world: RestatingWorld, day: int
) -> None:
    first, second = (RunKey("restating", f"{why} {day}", restate=why) for why in ("a first look", "the label is wrong"))
    world.run_until(first, day, "stage", job=write_others)
    other = next(world.days)
    world.run_until(RunKey("restating", f"its own {other}"), other, "stage", job=write_others)
    world.expire_leases()
    for moved in (day, other):
        asking = dataclasses.replace(second, run_id=f"{second.run_id} {moved}")
        with pytest.raises(EpochBusy, match=r"is staged, with the rows of .* `lockstep replan numbers"):
            world.run_task("begin", asking, moved)
        replan(world.runtime(), world._looking.generations(world.epoch_of(moved))[-1].id, "what is staged is old")
        world.run(asking, moved)
        world.require_exactly_once(moved)
    assert world.lives(day) == ["replaced", "cleaned"]


@pytest.mark.fault("Q3")
@pytest.mark.tier("all")
def test_rows_that_are_staged_for_another_reason_are_published_and_then_replaced(
    world: RestatingWorld, day: int
) -> None:
    first, second = (RunKey("restating", f"{why} {day}", restate=why) for why in ("a first look", "the label is wrong"))
    world.run_until(first, day, "prepare.archive", job=write_others)
    world.expire_leases()
    with pytest.raises(EpochBusy, match="a first look"):
        world.run_task("begin", second, day)
    world.run(first, day, job=write_others)
    world.run(second, day)
    assert world.lives(day) == ["replaced", "replaced", "cleaned"]
    world.require_exactly_once(day)


def test_a_run_that_says_what_it_replaces_replaces_nothing_younger(world: RestatingWorld, day: int) -> None:
    shown = world.epoch_of(day).id
    world.restate(day)
    same, other = (
        RunKey("restating", f"{why} {day}", restate=why, replaces=shown)
        for why in ("the label was wrong", "another reason")
    )
    with pytest.raises(RestateRefused, match=f"asked for when epoch {shown} was shown"):
        world.run_task("begin", other, day)
    for _ in range(2):
        world.run(same, day)  # what it asks for is done: by the run before it
    assert world.lives(day) == ["replaced", "cleaned"]
    world.require_exactly_once(day)
    again = dataclasses.replace(other, replaces=world._looking.generations(world.epoch_of(day))[-1].id)
    world.run(again, day)
    assert world.lives(day) == ["replaced", "replaced", "cleaned"]


# --- requests with a name of their own --------------------------------------------------------------------------------

REASON = "the label was wrong (request 2026-11)"  #: as `require_reason` writes it


def _asking(day: int, name: str, reason: str = REASON, **more: Any) -> RunKey:
    return RunKey("restating", f"{name} asks {day}", restate=reason, **more)


def _nobody_stages(request_uri: str) -> None:
    raise AssertionError("a request that is done was staged once more")


def _ask(world: RestatingWorld, day: int, run: RunKey, job: Callable[[str], None] = write_parquet) -> None:
    world.run(run, day, job=job)


def test_one_request_is_one_restatement_whoever_makes_it_again(world: RestatingWorld, day: int) -> None:
    _ask(world, day, _asking(day, "first"))
    for _ in range(2):
        _ask(world, day, _asking(day, "second"), _nobody_stages)
    assert world.lives(day) == ["replaced", "cleaned"]
    _ask(world, day, _asking(day, "third", "something else"))
    _ask(world, day, _asking(day, "fourth"), _nobody_stages)  # it has been done, whatever came since
    assert world.lives(day) == ["replaced", "replaced", "cleaned"]
    _ask(world, day, _asking(day, "fifth", REASON.replace("11", "12")))
    assert world.lives(day) == ["replaced", "replaced", "replaced", "cleaned"]
    world.require_exactly_once(day)


@pytest.mark.sample(2)
@pytest.mark.parametrize("until", ["begin", "commit", "prepare.archive", "publish.numbers"])
def test_who_makes_a_request_again_while_it_is_under_way_takes_nothing_from_who_is_at_it(
    world: RestatingWorld, day: int, until: str
) -> None:
    first, second = _asking(day, "first"), _asking(day, "second")
    world.run_until(first, day, until)
    attempt = world._looking.generations(world.epoch_of(day))[-1].attempt
    if until in ("commit", "publish.numbers"):
        world.run_task("begin", second, day)
    else:
        with pytest.raises(EpochBusy, match="is held by run first"):
            world.run_task("begin", second, day)
    assert world._looking.generations(world.epoch_of(day))[-1].attempt == attempt
    world.run(first, day, world.tasks()[world.tasks().index(until) + 1])
    _ask(world, day, second, _nobody_stages)
    assert world.lives(day) == ["replaced", "cleaned"]
    world.require_exactly_once(day)


def test_a_request_that_was_given_up_may_be_made_again_by_another_run(world: RestatingWorld, day: int) -> None:
    world.run_task("begin", _asking(day, "first"), day)
    void(world.runtime(), world._looking.generations(world.epoch_of(day))[-1].id, "not now")
    with pytest.raises(EpochVoid, match="not now"):
        world.run_task("begin", _asking(day, "first"), day)
    otherwise = "better said (request 2026-11)"
    _ask(world, day, _asking(day, "second", otherwise))
    _ask(world, day, _asking(day, "third", otherwise), _nobody_stages)
    assert world.lives(day) == ["replaced", "void", "cleaned"]
    world.require_exactly_once(day)


def test_a_request_that_says_something_else_than_before_is_refused_and_the_first_one_named(
    world: RestatingWorld, day: int
) -> None:
    world.run_task("begin", _asking(day, "first"), day)
    other = _asking(day, "second", "for another reason (request 2026-11)")
    frozen = _asking(day, "third", input=Input.FROZEN)
    with pytest.raises(RestateRefused, match=r"request '2026-11' has been made before.*the label was wrong"):
        world.run_task("begin", other, day)
    _ask(world, day, _asking(day, "first"))
    [_, new] = world._looking.generations(world.epoch_of(day))
    for run in (other, frozen):
        with pytest.raises(
            RestateRefused, match=f"otherwise: numbers epoch {new.id} .*fresh input, the label was wrong"
        ):
            world.run_task("begin", run, day)
    assert world.lives(day) == ["replaced", "cleaned"]


# --- from what was read ----------------------------------------------------------------------------------------------


@pytest.fixture
def grown(monkeypatch: pytest.MonkeyPatch) -> None:
    """From now on there is more to read of every day."""
    latest = OpenNumbers.latest
    monkeypatch.setattr(OpenNumbers, "latest", lambda *asked: {**latest(*asked), "late": True})


def _frozen(world: RestatingWorld, day: int) -> RunKey:
    return dataclasses.replace(world.restating_run(day, "frozen"), input=Input.FROZEN)


def test_a_frozen_restatement_that_is_planned_anew_reads_what_was_read_all_the_same(
    world: RestatingWorld, day: int, grown: None
) -> None:
    world.run_task("begin", _frozen(world, day), day)
    [_, new] = world._looking.generations(world.epoch_of(day))
    assert replan(world.runtime(), new.id, "planned anew").plan.sources["numbers"].end == {"day": day}
    world.run(_frozen(world, day), day)
    assert world.lives(day) == ["replaced", "cleaned"]
    world.require_exactly_once(day)


def test_a_frozen_run_does_not_join_one_that_reads_afresh(world: RestatingWorld, day: int, grown: None) -> None:
    world.run_task("begin", world.restating_run(day), day)
    world.expire_leases()
    with pytest.raises(RestateRefused, match="was begun to read afresh"):
        world.run_task("begin", _frozen(world, day), day)
    world.restate(day)
    world.require_exactly_once(day)


def test_a_day_that_nothing_shows_yet_is_an_ordinary_epoch(world: RestatingWorld) -> None:
    day = next(world.days)
    world.restate(day)
    assert world.lives(day) == ["cleaned"]
    world.require_exactly_once(day)


def test_a_restatement_that_is_given_up_leaves_the_old_rows(world: RestatingWorld, day: int) -> None:
    world.run_until(world.restating_run(day), day, "prepare.archive")
    [_, given_up] = world._looking.generations(world.epoch_of(day))
    void(world.runtime(), given_up.id, "a mistake")
    assert world.lives(day) == ["cleaned", "void"]
    assert all(rows == wrong_rows(day) for rows in world.tables(day).values())
    world.require_tidy()
    for task in ("commit", "begin"):  # a retry, and the whole run cleared
        with pytest.raises(Terminal) as refused:
            world.run_task(task, world.restating_run(day), day)
    current = world.epoch_of(day).id
    said = f"was given up: a mistake; epoch {current} is shown as before"
    assert isinstance(refused.value, EpochVoid) and said in str(refused.value)
    assert "say another reason" in str(refused.value) and "let another run ask for it" in str(refused.value)
    assert world.lives(day) == ["cleaned", "void"]
    world.run(RunKey("restating", f"third {day}", restate="now it is right"), day)
    assert world.lives(day) == ["replaced", "void", "cleaned"]
    world.require_exactly_once(day)


def test_a_replacement_is_not_planned_anew_for_other_sinks_than_show_the_old_rows(
    world: RestatingWorld, day: int
) -> None:
    """Or one would show the old rows for good, beside the new ones of the others."""
    world.run_task("begin", world.restating_run(day), day)
    [old, new] = world._looking.generations(world.epoch_of(day))
    fewer = with_sinks(world, *world.pipeline.sinks[1:])
    with pytest.raises(RestateRefused, match=f"epoch {old.id}.*was published with other sinks") as told:
        replan(fewer.runtime(), new.id, "the first moves out")
    assert "lockstep void" in str(told.value)
    assert world._looking.epoch(new.pipeline, new.id) == new
    world.restate(day)
    world.require_exactly_once(day)


def test_who_stood_still_while_he_planned_anew_leaves_what_was_begun_meanwhile(
    world: RestatingWorld, day: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.run_task("begin", world.restating_run(day), day)
    [_, new] = world._looking.generations(world.epoch_of(day))
    world.expire_leases()

    def stand_still(*asked: Any, **more: Any) -> Plan:
        plan = make_plan(*asked, **more)
        world.run_task("begin", world.restating_run(day, "another"), day)
        return plan

    monkeypatch.setattr("lockstep.operations.replan.make_plan", stand_still)
    with pytest.raises(IllegalTransition, match="another attempt began meanwhile"):
        replan(world.runtime(), new.id, "planned anew")
    world.run(world.restating_run(day, "another"), day)
    world.require_exactly_once(day)


def test_a_replacement_is_not_begun_before_every_sink_shows_what_it_replaces(world: RestatingWorld) -> None:
    day = next(world.days)
    run = RunKey("restating", f"half {day}")
    world.run_until(run, day, "publish.numbers")
    with pytest.raises(EpochBusy, match="it is committed"):
        world.run_task("begin", world.restating_run(day), day)
    world.run(run, day, "publish.archive")
    world.restate(day)
    world.require_exactly_once(day)


# --- refused before anything is planned ------------------------------------------------------------------------------


def _planned(world: RestatingWorld, day: int) -> list[str]:
    with pytest.raises((RestateRefused, PreflightRefused)) as refused:
        world.run_task("begin", world.restating_run(day), day)
    assert world.lives(day) == ["cleaned"], "nothing was planned"
    return [str(refused.value)]


def test_other_sinks_than_those_that_show_it_are_refused(world: RestatingWorld, day: int) -> None:
    first, *_ = world.pipeline.sinks
    [said] = _planned(with_sinks(world, first), day)
    assert "changed: archive" in said


@pytest.mark.fault("Q1")
@pytest.mark.tier("all")
def test_epochs_of_a_sink_that_was_renamed_are_verified_and_restated_by_the_name_that_they_have(
    world: RestatingWorld, day: int
) -> None:
    renamed = with_sinks(world, *(_renamed(sink) for sink in world.pipeline.sinks))
    later = next(world.days)
    renamed.publish_wrong(later)
    for mine, moved in ((world, day), (renamed, later), (world, day)):
        mine.run(RunKey("restating", f"{mine.lives(moved)} of {moved}", restate="the label was wrong"), moved)
        mine.require_exactly_once(moved)
        for one in (day, later):
            assert [found.problem for found in verify(mine.runtime(), world.epoch_of(one))] == [None, None]


def _renamed(sink: Sink) -> PostgresSink:
    arguments = sink.arguments()
    return PostgresSink(**{**arguments, "name": f"{arguments['name']}_renamed"})


def test_a_table_without_the_epoch_column_is_named(world: RestatingWorld) -> None:
    world.execute(world.warehouse_dsn, "CREATE TABLE IF NOT EXISTS public.plain (day bigint, number int, label text)")
    plain = PostgresSink("plain", tables={"numbers": "public.plain"}, connection="warehouse")
    other = with_sinks(world, plain)
    day = next(world.days)
    other.run(RunKey("restating", f"plain {day}"), day)
    [said] = _planned(other, day)
    assert "public.plain has no column lockstep_epoch" in said


def test_what_no_marker_proves_is_not_replaced(world: RestatingWorld, day: int) -> None:
    given = "UPDATE public.lockstep_marker SET sink = %s WHERE sink = %s AND epoch = %s"
    world.execute(world.warehouse_dsn, given, ("nobody", "numbers", world.epoch_of(day).id))
    [said] = _planned(world, day)
    assert "sink numbers holds no marker of it" in said
    world.execute(world.warehouse_dsn, given, ("numbers", "nobody", world.epoch_of(day).id))


def test_rows_of_another_life_are_not_deleted(world: RestatingWorld, day: int) -> None:
    """The target was restored to another state after the replacement was planned."""
    world.run_task("begin", world.restating_run(day), day)
    world.run_task("stage", world.restating_run(day), day)
    changed = "UPDATE public.lockstep_marker SET manifest_hash = %s WHERE sink = %s AND epoch = %s"
    old = world.epoch_of(day)
    for sink in world.pipeline.sinks:
        world.execute(world.warehouse_dsn, changed, ("0" * 64, sink.name, old.id))
        with pytest.raises(LedgerConflict, match="the target has the marker of manifest 0000"):
            world.run_task(f"prepare.{sink.name}", world.restating_run(day), day)
        world.execute(world.warehouse_dsn, changed, (old.manifest_hash, sink.name, old.id))
    assert all(rows == wrong_rows(day) for rows in world.tables(day).values())
    void(world.runtime(), world._looking.generations(world.epoch_of(day))[1].id, "a test")


# --- who looks on ----------------------------------------------------------------------------------------------------


@pytest.mark.fault("N1")
def test_a_reader_sees_the_old_rows_or_the_new_ones(
    world: RestatingWorld, day: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It looks, on a connection of its own, wherever a crash could be."""
    monkeypatch.setenv("LOCKSTEP_TESTING", "1")
    reached: Counter[CrashPoint] = Counter()

    def look(point: CrashPoint) -> None:
        reached[point] += 1
        world.require_old_or_new(day)

    stop = crash.observe(look)
    world.restate(day)
    stop()
    assert {CrashPoint.PREPARE_AFTER_REMOVAL, CrashPoint.PUBLISH_AFTER_REMOVAL} <= reached.keys()
    world.require_exactly_once(day)
    assert world.lives(day) == ["replaced", "cleaned"]
    world.require_tidy()


def test_verify_knows_what_was_replaced(world: RestatingWorld, day: int) -> None:
    old = world.epoch_of(day)
    for last in ("commit", "publish.numbers", "cleanup"):
        world.run_until(world.restating_run(day), day, last)
        for one in verify(world.runtime(), world._looking.epoch(old.pipeline, old.id)):
            assert one.agrees, one
            assert one.note == f"replaced by epoch {world.epoch_of(day).id}"
    assert all(one.agrees for one in verify(world.runtime(), world.epoch_of(day)))
    world.execute(world.warehouse_dsn, "INSERT INTO public.numbers VALUES (%s, 1, 'back', %s)", (day, old.id))
    [found] = [one for one in verify(world.runtime(), world._looking.epoch(old.pipeline, old.id)) if not one.agrees]
    assert found.problem is not None and "shows 1 rows still" in found.problem
    world.execute(world.warehouse_dsn, "DELETE FROM public.numbers WHERE label = 'back'")


def test_as_of_never_mixes_lives(world: RestatingWorld) -> None:
    """While some sinks show the old rows and others the new ones, a cut has neither."""
    before, day = next(world.days), next(world.days)
    world.publish_wrong(before)  # its sinks are read while nothing newer is shown whole
    world.publish_wrong(day)
    old = world.epoch_of(day).id

    def both() -> list[Counter[object]]:
        found = as_of("numbers", ledger=world.ledger_dsn, connections={"warehouse": world.warehouse_dsn})
        cuts = [found.sinks[sink.name]["numbers"] for sink in world.pipeline.sinks]
        asked = "SELECT day, number, label FROM {} WHERE {} AND day = {}"
        return [
            Counter(world.execute(world.warehouse_dsn, asked.format(cut.target, cut.predicate, day))) for cut in cuts
        ]

    for task in world.tasks():
        world.run_task(task, world.restating_run(day), day)
        first, second = both()
        assert first == second, task
        assert first in (wrong_rows(day), Counter(), Counter(rows_of_day(day)))
    assert first == Counter(rows_of_day(day))
    with pytest.raises(Exception, match=f"epoch {old} was replaced by epoch {world.epoch_of(day).id}"):
        as_of("numbers", old, ledger=world.ledger_dsn, connections={"warehouse": world.warehouse_dsn})


# --- crashes and zombies ---------------------------------------------------------------------------------------------


@pytest.mark.tier("all")
@pytest.mark.fault("N1")
def test_a_day_is_swapped_once_wherever_a_process(
    world: RestatingWorld,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    subtests: pytest.Subtests,
    sampling: Sampling,
) -> None:
    """… is killed, or hangs and is released after another one has finished the restatement."""
    strike_each(world, in_turn(sampling, hits(world, monkeypatch), SWEEPS, every=10), tmp_path, subtests)


LATE = [
    (task, point)
    for task in ("publish.numbers", "publish.archive")
    for point in (
        CrashPoint.PUBLISH_BEFORE_SINK,
        CrashPoint.PUBLISH_BEFORE_SINK_COMMIT,
        CrashPoint.PUBLISH_BEFORE_RECORD,
    )
]


@pytest.mark.fault("N2")
def test_a_late_publisher_of_what_was_replaced_finds_its_marker(
    world: RestatingWorld, tmp_path: Path, subtests: pytest.Subtests, sampling: Sampling
) -> None:
    """It stood still since before the original was shown."""
    for task, point in sampling.sample(LATE, 2):
        with subtests.test(f"{task} {point}"):
            day = next(world.days)
            run = RunKey("restating", f"late {task} {point} {day}")
            tasks = [(one, partial(world.run_task, one, run, day)) for one in world.tasks()]
            victim = sacrifice(tasks, Hit(task, point, 1), "hang", tmp_path / "victim.log")

            def resume(day: int = day, run: RunKey = run, task: str = task) -> None:
                world.run(run, day, task)
                world.restate(day)

            overtake(victim, resume, partial(world.require_exactly_once, day))
            assert world.lives(day) == ["replaced", "cleaned"]


def test_no_two_side_effects_of_a_restatement_fall_between_the_same_crash_points(
    world: RestatingWorld, day: int, monkeypatch: pytest.MonkeyPatch, subtests: pytest.Subtests
) -> None:
    for task in world.tasks():
        with subtests.test(task):
            with recorded(monkeypatch, world.folder) as recording:

                def job(request_uri: str, pause: Callable[..., object] = recording.paused) -> None:
                    with pause():  # type: ignore[attr-defined]
                        write_parquet(request_uri)

                world.run_task(task, world.restating_run(day), day, job)
            assert recording.unseparated() == []


def test_a_prepared_branch_that_was_lost_after_the_decision_swaps_from_the_wal(world: RestatingWorld, day: int) -> None:
    world.run_until(world.restating_run(day), day, "commit")
    for gid in world.prepared():
        world.roll_back(gid)
    world.restate(day, "publish.numbers")
    world.require_exactly_once(day)
    assert world.publications(day) == {"numbers": "repaired", "archive": "sent"}


def test_a_replacement_that_is_shown_while_a_cut_is_made_is_in_it(
    world: RestatingWorld, day: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.publish_wrong(next(world.days))  # the newest
    tasks, run = world.tasks(), world.restating_run(day)
    until = tasks.index("commit") + 1
    for task in tasks[:until]:
        world.run_task(task, run, day)
    asked, unfinished = list[str](), Ledger.unfinished_epochs

    def late(ledger: Ledger, pipeline: str) -> list[Epoch]:
        asked.append(pipeline)
        for task in tasks[until:] if len(asked) == 1 else ():
            world.run_task(task, run, day)
        return unfinished(ledger, pipeline)

    monkeypatch.setattr(Ledger, "unfinished_epochs", late)
    found = as_of("numbers", ledger=world.ledger_dsn, connections={"warehouse": world.warehouse_dsn})
    assert found.epoch == world.epoch_of(day).id
    for sink in world.pipeline.sinks:
        cut = found.sinks[sink.name]["numbers"]
        rows = world.execute(
            world.warehouse_dsn, f"SELECT day, number, label FROM {cut.target} WHERE {cut.predicate} AND day = {day}"
        )
        assert Counter(rows) == Counter(rows_of_day(day))
