"""A day that turned out wrong is replaced in every sink by one decision, wherever a process dies or stands still."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import psycopg2
import pytest

from lockstep import crash
from lockstep.crash import CrashPoint
from lockstep.epoch import Epoch, RunKey
from lockstep.errors import EpochBusy, LedgerConflict, PreflightRefused, RestateRefused
from lockstep.ledger import Ledger
from lockstep.operations.as_of import as_of
from lockstep.operations.replan import replan, void
from lockstep.operations.verify import verify
from lockstep.pipeline import Pipeline
from lockstep.roles.begin import begin
from lockstep.runtime import Runtime
from lockstep.sinks import FileSink
from lockstep.sinks.postgres import PostgresSink
from lockstep.sources import SequenceSource
from lockstep.wal.staging import Staging
from stack.postgres import PostgresServer
from tests.cover import Cover
from tests.crash.recording import recorded
from tests.crash.restating_world import RestatingWorld, make_restating_world, with_sinks, wrong_rows
from tests.crash.victims import Action, Hit, hits_of, overtake, sacrifice
from tests.crash.world import rows_of_day, write_parquet


@pytest.fixture(scope="module")
def world(
    ledger_server: PostgresServer, warehouse_server: PostgresServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RestatingWorld]:
    folder = tmp_path_factory.mktemp("restating")
    name = f"restating_{folder.parent.name.replace('-', '_')}"[:60]
    dsns = [server.create_database(name) for server in (ledger_server, warehouse_server)]
    yield make_restating_world(dsns[0], dsns[1], folder)


@pytest.fixture
def day(world: RestatingWorld) -> int:
    """One that shows wrong rows."""
    day = next(world.days)
    world.publish_wrong(day)
    return day


def test_one_decision_swaps_a_day_in_every_sink(world: RestatingWorld, day: int) -> None:
    world.restate(day)
    world.require_exactly_once(day)
    assert world.lives(day) == ["replaced", "cleaned"]
    world.require_tidy()


def test_a_run_restates_once_however_often_it_is_cleared(world: RestatingWorld, day: int) -> None:
    world.restate(day)
    world.restate(day)
    assert world.lives(day) == ["replaced", "cleaned"]
    another = RunKey("restating", f"right {day}", restate="once more")
    for task in world.tasks():
        world.run_task(task, another, day)
    assert world.lives(day) == ["replaced", "replaced", "cleaned"]
    world.require_exactly_once(day)


def test_runs_that_do_not_ask_for_it_restate_nothing(world: RestatingWorld, day: int) -> None:
    world.restate(day)
    for run in ("wrong", "another"):  # the first one's epoch is replaced: its markers stand all the same
        world.run(RunKey("restating", f"{run} {day}"), day)
    assert world.lives(day) == ["replaced", "cleaned"]
    world.require_exactly_once(day)


def test_runs_with_one_reason_at_a_time_move_one_epoch(world: RestatingWorld, day: int) -> None:
    tasks = world.tasks()
    for task in tasks[: tasks.index("publish.archive")]:
        world.run_task(task, world.restating_run(day), day)
    beside = RunKey("restating", f"beside {day}", restate="the label was wrong")
    with pytest.raises(EpochBusy, match="it is committed"):
        world.run_task("begin", RunKey("restating", f"other {day}", restate="for another reason"), day)
    for task in tasks:
        world.run_task(task, beside, day)
    world.restate(day, "publish.archive")
    assert world.lives(day) == ["replaced", "cleaned"]
    world.require_exactly_once(day)


@pytest.mark.parametrize("until", ["begin", "commit", "cleanup"])
def test_a_run_that_takes_over_what_another_has_begun_goes_on_with_it_and_restates_nothing_more(
    world: RestatingWorld, day: int, until: str
) -> None:
    tasks = world.tasks()
    first = RunKey("restating", f"first {day}", restate="the label was wrong")
    second = RunKey("restating", f"second {day}", restate="somebody else saw it, too")
    world.run_task("begin", first, day)
    world.expire_leases()
    for task in tasks[: tasks.index(until) + 1]:
        world.run_task(task, second, day)
    for task in tasks:  # it is cleared
        world.run_task(task, second, day)
    world.require_exactly_once(day)
    assert world.lives(day) == ["replaced", "cleaned"]
    world.run_task("begin", first, day)  # and so is the other one
    assert world.lives(day) == ["replaced", "cleaned"]


def test_a_run_of_numbers_that_asks_for_it_is_refused_and_reads_nothing(world: RestatingWorld, tmp_path: Path) -> None:
    pipeline = Pipeline(
        name="ticks",
        sources={"ticks": SequenceSource(5)},
        transform=lambda inputs: {"ticks": inputs["ticks"]},
        sinks=[FileSink("folder", output="ticks", path=str(tmp_path / "ticks"))],
    )
    runtime = Runtime.of(pipeline, Ledger(world.ledger_dsn), Staging(str(tmp_path)), {})
    with pytest.raises(RestateRefused, match="run one: the epochs of ticks are numbers"):
        begin(runtime, RunKey("ticks", "one", restate="a corrected file"))
    assert runtime.ledger.last_epoch("ticks") is None


def test_a_day_that_nothing_shows_yet_is_an_ordinary_epoch(world: RestatingWorld) -> None:
    day = next(world.days)
    world.restate(day)
    assert world.lives(day) == ["cleaned"]
    world.require_exactly_once(day)


def test_a_restatement_that_is_given_up_leaves_the_old_rows(world: RestatingWorld, day: int) -> None:
    tasks = world.tasks()
    for task in tasks[: tasks.index("commit")]:
        world.run_task(task, world.restating_run(day), day)
    [_, given_up] = world._looking.generations(world.epoch_of(day))
    void(world.runtime(), given_up.id, "a mistake")
    assert world.lives(day) == ["cleaned", "void"]
    assert all(rows == wrong_rows(day) for rows in world.tables(day).values())
    world.require_tidy()
    for task in tasks:
        world.run_task(task, RunKey("restating", f"third {day}", restate="now it is right"), day)
    assert world.lives(day) == ["replaced", "void", "cleaned"]
    world.require_exactly_once(day)


def test_a_replacement_that_is_planned_anew_takes_the_place_all_the_same(world: RestatingWorld, day: int) -> None:
    tasks = world.tasks()
    for task in tasks[: tasks.index("commit")]:
        world.run_task(task, world.restating_run(day), day)
    [old, new] = world._looking.generations(world.epoch_of(day))
    replanned = replan(world.runtime(), new.id, "planned anew")
    assert (replanned.generation, replanned.wal) == (new.generation, None)
    assert world._looking.epoch(old.pipeline, old.id).state == "cleaned"
    world.restate(day)
    assert world.lives(day) == ["replaced", "cleaned"]
    world.require_exactly_once(day)
    world.require_tidy()


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


def test_upserts_and_what_nothing_proves_can_not_be_taken_back(world: RestatingWorld) -> None:
    one = partial(PostgresSink, tables={"numbers": "public.numbers"}, connection="warehouse", protocol="write_ahead")
    upserts, unproven = one("upserts", mode="upsert", key=["day", "number"]), one("unproven", guarantee="none")
    for sink, why in ((upserts, "mode='upsert'"), (unproven, "guarantee='none'")):
        with sink.opened(world.runtime().sink_context()) as opened, pytest.raises(PreflightRefused, match=why):
            opened.require_replaceable()


def test_a_table_without_the_epoch_column_is_named(world: RestatingWorld) -> None:
    world.execute(world.warehouse_dsn, "CREATE TABLE IF NOT EXISTS public.plain (day bigint, number int, label text)")
    plain = PostgresSink("plain", tables={"numbers": "public.plain"}, connection="warehouse")
    other = with_sinks(world, plain)
    day = next(world.days)
    other.run(RunKey("restating", f"plain {day}"), day)
    [said] = _planned(other, day)
    assert "public.plain has no column lockstep_epoch" in said


def test_what_no_marker_proves_is_not_replaced(world: RestatingWorld, day: int) -> None:
    marker = "DELETE FROM public.lockstep_marker WHERE sink = 'numbers' AND epoch = %s RETURNING *"
    world.execute(world.warehouse_dsn, marker, (world.epoch_of(day).id,))
    [said] = _planned(world, day)
    assert "sink numbers holds no marker of it" in said


def test_rows_of_another_life_are_not_deleted(world: RestatingWorld, day: int) -> None:
    """The target was restored to another state after the replacement was planned."""
    world.run_task("begin", world.restating_run(day), day)
    world.run_task("stage", world.restating_run(day), day)
    changed = "UPDATE public.lockstep_marker SET manifest_hash = %s WHERE sink = %s AND epoch = %s"
    old = world.epoch_of(day)
    for sink in world.pipeline.sinks:
        world.execute(world.warehouse_dsn, changed, ("0" * 64, sink.name, old.id))
        with pytest.raises(LedgerConflict, match="takes the place of epoch"):
            world.run_task(f"prepare.{sink.name}", world.restating_run(day), day)
        world.execute(world.warehouse_dsn, changed, (old.manifest_hash, sink.name, old.id))
    assert all(rows == wrong_rows(day) for rows in world.tables(day).values())
    void(world.runtime(), world._looking.generations(world.epoch_of(day))[1].id, "a test")


# --- who looks on ----------------------------------------------------------------------------------------------------


def _watching(world: RestatingWorld, day: int, task: Callable[[], None]) -> Counter[CrashPoint]:
    """Look into the tables, on a connection of its own, wherever a crash could be."""
    reached: Counter[CrashPoint] = Counter()

    def look(point: CrashPoint) -> None:
        reached[point] += 1
        world.require_old_or_new(day)

    stop = crash.observe(look)
    try:
        task()
    finally:
        stop()
    return reached


def test_a_reader_sees_the_old_rows_or_the_new_ones(
    world: RestatingWorld, day: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOCKSTEP_TESTING", "1")
    reached = _watching(world, day, partial(world.restate, day))
    assert {CrashPoint.PREPARE_AFTER_REMOVAL, CrashPoint.PUBLISH_AFTER_REMOVAL} <= reached.keys()
    world.require_exactly_once(day)


def test_verify_knows_what_was_replaced(world: RestatingWorld, day: int) -> None:
    old = world.epoch_of(day)
    tasks = world.tasks()
    for last in ("commit", "publish.numbers", "cleanup"):
        for task in tasks[: tasks.index(last) + 1]:
            world.run_task(task, world.restating_run(day), day)
        for one in verify(world.runtime(), world._looking.epoch(old.pipeline, old.id)):
            assert one.agrees, one
            assert one.note == f"replaced by epoch {world.epoch_of(day).id}"
    assert all(one.agrees for one in verify(world.runtime(), world.epoch_of(day)))
    world.execute(world.warehouse_dsn, "INSERT INTO public.numbers VALUES (%s, 1, 'back', %s)", (day, old.id))
    [found] = [one for one in verify(world.runtime(), world._looking.epoch(old.pipeline, old.id)) if not one.agrees]
    assert found.problem is not None and "shows 1 rows still" in found.problem
    world.execute(world.warehouse_dsn, "DELETE FROM public.numbers WHERE label = 'back'")


def test_as_of_never_mixes_lives(world: RestatingWorld, day: int) -> None:
    """While some sinks show the old rows and others the new ones, a cut has neither."""
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


# --- crashes and zombies ---------------------------------------------------------------------------------------------


def _hits(world: RestatingWorld, monkeypatch: pytest.MonkeyPatch) -> list[Hit]:
    """Every point that a restatement reaches, by task."""
    monkeypatch.setenv("LOCKSTEP_TESTING", "1")
    day, found = next(world.days), []
    world.publish_wrong(day)
    for task in world.tasks():
        reached = _watching(world, day, partial(world.run_task, task, world.restating_run(day), day))
        found += hits_of(task, reached)
    monkeypatch.delenv("LOCKSTEP_TESTING")
    assert len(found) > 50
    return found


def _retry(world: RestatingWorld, day: int, task: str) -> None:
    world.restate(day, task)


def _new_run(world: RestatingWorld, day: int, task: str) -> None:
    world.expire_leases()
    run = RunKey("restating", f"new {day}", restate="the label was wrong")
    for one in world.tasks():
        world.run_task(one, run, day)


def _recovery(world: RestatingWorld, day: int, task: str) -> None:
    world.expire_leases()
    assert world.recover().problems == []
    if "cleaned" not in world.lives(day)[1:]:
        world.restate(day)


WAYS: list[tuple[Action, Callable[[RestatingWorld, int, str], None]]] = [
    ("kill", _retry),
    ("kill", _recovery),
    ("hang", _retry),
    ("hang", _new_run),
    ("hang", _recovery),
]


@pytest.mark.parametrize(("action", "resume"), WAYS, ids=lambda way: getattr(way, "__name__", way).strip("_"))
def test_a_day_is_swapped_once_wherever_a_process(
    world: RestatingWorld,
    action: Action,
    resume: Callable[[RestatingWorld, int, str], None],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    subtests: pytest.Subtests,
    cover: Cover,
) -> None:
    """… is killed, or hangs and is released after another one has finished the restatement."""
    turn = WAYS.index((action, resume))
    days = []
    for hit in cover.share(_hits(world, monkeypatch), turn, len(WAYS)):
        day = next(world.days)
        days.append(day)
        with subtests.test(str(hit)):
            world.publish_wrong(day)
            tasks = [(task, partial(world.run_task, task, world.restating_run(day), day)) for task in world.tasks()]
            victim = sacrifice(tasks, hit, action, tmp_path / "victim.log")
            world.require_old_or_new(day)
            overtake(victim, partial(resume, world, day, hit.task), partial(world.require_exactly_once, day))
    world.expire_leases()
    assert world.recover().problems == []
    world.require_tidy()
    for place, shown in world.shown().items():
        for day in days:
            assert shown[day] == Counter(rows_of_day(day)), place


@pytest.mark.parametrize("task", ["publish.numbers", "publish.archive"])
def test_a_late_publisher_of_what_was_replaced_finds_its_marker(
    world: RestatingWorld, task: str, tmp_path: Path, subtests: pytest.Subtests
) -> None:
    """It stood still since before the original was shown."""
    for point in (
        CrashPoint.PUBLISH_BEFORE_SINK,
        CrashPoint.PUBLISH_BEFORE_SINK_COMMIT,
        CrashPoint.PUBLISH_BEFORE_RECORD,
    ):
        with subtests.test(str(point)):
            day = next(world.days)
            run = RunKey("restating", f"late {task} {point} {day}")
            tasks = [(one, partial(world.run_task, one, run, day)) for one in world.tasks()]
            victim = sacrifice(tasks, Hit(task, point, 1), "hang", tmp_path / "victim.log")

            def resume(day: int = day, run: RunKey = run) -> None:
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
    tasks = world.tasks()
    for task in tasks[: tasks.index("commit") + 1]:
        world.run_task(task, world.restating_run(day), day)
    connection = psycopg2.connect(world.warehouse_dsn)
    connection.autocommit = True
    for gid in world.prepared():
        connection.cursor().execute("ROLLBACK PREPARED %s", (gid,))
    connection.close()
    world.restate(day, "publish.numbers")
    world.require_exactly_once(day)
    assert world.publications(day) == {"numbers": "repaired", "archive": "sent"}
