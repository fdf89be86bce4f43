"""The way back: rows that were replaced are shown again from their kept WAL, by one decision and without a job."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import NoReturn

import pytest

from lockstep.audits import Audit, in_range, none_where, unique
from lockstep.crash import CrashPoint
from lockstep.epoch import Epoch, Input, RunKey
from lockstep.errors import EpochBusy, EpochHeld, PreflightRefused, RestateRefused, WalCorrupt, WalGone
from lockstep.operations.doctor import Surroundings, examine
from lockstep.operations.quarantine import find_quarantine, open_quarantined
from lockstep.operations.replan import release, void
from lockstep.operations.verify import verify
from lockstep.operations.wal_log import open_output
from lockstep.protocol.begin import begin
from lockstep.protocol.stage_job import Launch
from lockstep.sinks import FileSink
from stack.postgres import PostgresServer
from tests.crash.recording import recorded
from tests.crash.restating_world import RestatingWorld, make_restating_world, wrong_rows
from tests.crash.test_kept_wals import pass_time
from tests.crash.test_kill_and_zombie import hits, strike_each
from tests.crash.victims import Action, Hit, in_turn, overtake, sacrifice
from tests.crash.world import Rows, flip_a_bit, rows_of_day, write_others, write_parquet
from tests.sampling import Sampling

DAY = timedelta(days=1)
WHY = "it was right before"


WAYS: list[tuple[Action, str]] = [("kill", "retry"), ("kill", "recovery"), ("hang", "recovery")]


@dataclass(frozen=True)
class RestoringWorld(RestatingWorld):
    """Rows go into a folder, too. A sweep strikes who shows the first rows of a day again."""

    def run_task(self, task: str, run: RunKey, day: int, job: Launch | None = None) -> None:
        super().run_task(task, run, day, no_job if run.restore else job)

    def struck_day(self) -> int:
        return twice(self)

    def run_of(self, day: int, name: str) -> RunKey:
        return replace(restoring(self, day), run_id=f"{name} {day}")

    def is_moved(self, day: int) -> bool:
        return "cleaned" in self.lives(day)[2:]

    def expected(self, day: int) -> Rows:
        return wrong_rows(day)

    def require_tidy(self) -> None:
        assert self.prepared() == []
        kept(self, zombies=True)


@pytest.fixture(scope="module")
def world(ledger_server: PostgresServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RestatingWorld]:
    folder = tmp_path_factory.mktemp("restoring")
    dsns = [ledger_server.create_database(f"restoring_{name}") for name in ("ledger", "warehouse")]
    made = make_restating_world(dsns[0], dsns[1], folder)
    files = FileSink("files", output="numbers", path=str(folder / "out"), format="parquet")
    pipeline = replace(made.pipeline, sinks=[*made.pipeline.sinks, files], keep_wal=DAY)
    yield RestoringWorld(**{**vars(made), "pipeline": pipeline})


@pytest.fixture
def day(world: RestatingWorld) -> int:
    return twice(world)


def twice(world: RestatingWorld) -> int:
    """A day that showed some rows first and others since."""
    day = next(world.days)
    world.publish_wrong(day)
    world.restate(day)
    return day


def first_of(world: RestatingWorld, day: int) -> Epoch:
    return world._looking.generations(world.epoch_of(day))[0]


def restoring(world: RestatingWorld, day: int, epoch: int | None = None, why: str = WHY) -> RunKey:
    wanted = epoch or first_of(world, day).id
    return RunKey("restoring", f"{day} {wanted} {why}", restate=why, restore=wanted)


def no_job(request_uri: str) -> NoReturn:
    raise AssertionError("rows that were sealed are computed again")


def go(world: RestatingWorld, run: RunKey, day: int, start: str = "begin", last: str = "cleanup") -> None:
    tasks = world.tasks()
    for task in tasks[tasks.index(start) : tasks.index(last) + 1]:
        world.run_task(task, run, day)


def everywhere(world: RestatingWorld, day: int) -> list[Rows]:
    return [*world.tables(day).values(), world.shown_in_files(day)]


def require_back(world: RestatingWorld, day: int) -> None:
    assert everywhere(world, day) == [wrong_rows(day)] * 3


def kept(world: RestatingWorld, *, zombies: bool = False) -> set[int]:
    """The epochs whose WAL is kept. Every one of them has its rows, and nothing else is in staging; but what `zombies`
    have left beside one, which goes with it."""
    runtime = world.runtime()
    wals = runtime.ledger.kept_wals("numbers")
    left, own = set(world.left_in_staging()), {one.wal for one in wals}
    assert own <= left
    assert {one.rpartition("/")[0] for one in left - own} <= {one.rpartition("/")[0] for one in own if zombies}
    for one in wals:
        assert sum(batch.num_rows for batch in open_output(runtime, one.epoch, "numbers")) == 20
    runtime.ledger.close()
    return {one.epoch for one in wals}


def test_one_decision_shows_replaced_rows_again_in_every_sink_and_no_job_runs(world: RestatingWorld, day: int) -> None:
    old = first_of(world, day)
    go(world, restoring(world, day), day)
    require_back(world, day)
    assert world.lives(day) == ["replaced", "replaced", "cleaned"]
    new = world.epoch_of(day)
    assert new.restores == old.id
    assert new.manifest_hash != old.manifest_hash
    assert str(new).endswith(f"in place of epoch {new.generation.replaces} with the rows of epoch {old.id}")  # type: ignore[union-attr]
    assert new.code_version == old.code_version
    for one in (old, new):
        assert [found.problem for found in verify(world.runtime(), one)] == [None] * 3
    go(world, restoring(world, day), day)  # a clear of the whole run
    assert world.epoch_of(day) == new
    with pytest.raises(RestateRefused, match="shows these very rows"):
        world.run_task("begin", restoring(world, day, why="once more"), day)


@pytest.mark.fault("N7")
def test_a_wal_stays_for_as_long_as_a_life_refers_to_it(world: RestatingWorld, day: int) -> None:
    old, other = world._looking.generations(world.epoch_of(day))
    go(world, restoring(world, day), day, last="stage")
    for epoch in (old.id, other.id):
        pass_time(world, epoch, 2 * DAY)
    assert world.recover().problems == []
    world.expire_leases()
    go(world, restoring(world, day), day)
    new = world.epoch_of(day)
    assert other.id not in kept(world)
    assert {old.id, new.id} <= kept(world)
    pass_time(world, new.id, 2 * DAY)
    assert world.recover().problems == []  # lets go of the one that refers, then of the other
    assert kept(world).isdisjoint({old.id, new.id})
    require_back(world, day)


def test_a_life_that_is_given_up_holds_no_wal(world: RestatingWorld, day: int) -> None:
    go(world, restoring(world, day), day, last="prepare.files")
    old, _, given_up = world._looking.generations(world.epoch_of(day))
    void(world.runtime(), given_up.id, "a mistake")
    assert old.id in kept(world)
    pass_time(world, old.id, 2 * DAY)
    assert world.recover().problems == []
    assert old.id not in kept(world)
    assert everywhere(world, day) == [Counter(rows_of_day(day))] * 3


def _refused(world: RestatingWorld, day: int, error: type[Exception], said: str, epoch: int | None = None) -> None:
    lives = world.lives(day)
    with pytest.raises(error, match=said):
        world.run_task("begin", restoring(world, day, epoch), day)
    assert world.lives(day) == lives, "nothing was planned"


def test_what_can_not_be_shown_again_is_refused_before_anything_is_planned(world: RestatingWorld, day: int) -> None:
    old, current = world._looking.generations(world.epoch_of(day))
    elsewhere = twice(world)
    _refused(world, day, RestateRefused, "is the current generation", current.id)
    _refused(world, day, RestateRefused, "is of another range", first_of(world, elsewhere).id)
    for beside, said in ({"input": Input.FROZEN}, "reads no range"), ({"epoch": 1}, "restates by interval"):
        with pytest.raises(RestateRefused, match=said):
            world.run_task("begin", replace(restoring(world, day), **beside), day)
    nobody = next(world.days)
    with pytest.raises(RestateRefused, match="nothing shows"):
        world.run_task("begin", restoring(world, nobody, old.id), nobody)
    assert world.state_of(nobody) is None
    pass_time(world, old.id, 2 * DAY)
    assert world.recover().problems == []
    _refused(world, day, WalGone, "isn't kept")


@pytest.mark.fault("N7")
def test_a_damaged_wal_is_not_shown_again(world: RestatingWorld, day: int) -> None:
    folder = world.staging_folder / (first_of(world, day).wal or "") / "numbers"
    file = sorted(folder.glob("*.parquet"))[0]
    sound = file.read_bytes()
    flip_a_bit(file)
    _refused(world, day, WalCorrupt, "sha256")
    file.write_bytes(sound)
    run = restoring(world, day)
    go(world, run, day, last="stage")
    file.write_bytes(sound[:-1])
    with pytest.raises(WalCorrupt):
        world.run_task("prepare.numbers", run, day)
    file.write_bytes(sound)
    go(world, run, day, "prepare.numbers")
    require_back(world, day)


def test_a_table_that_takes_the_columns_no_more_is_named_before_anything_is_planned(
    world: RestatingWorld, day: int
) -> None:
    rename = "ALTER TABLE public.archive RENAME COLUMN {} TO {}"
    world.execute(world.warehouse_dsn, rename.format("label", "title"))
    _refused(world, day, PreflightRefused, "public.archive.*label")
    world.execute(world.warehouse_dsn, rename.format("title", "label"))


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    "audit",
    [
        unique("numbers", "day"),
        in_range("numbers", "number", at_least=1, blocking=False, quarantine=True),  # no row leaves a sealed output
    ],
    ids=["blocking", "quarantine"],
)
def test_todays_audits_are_asked_of_the_rows_again(world: RestatingWorld, day: int, audit: Audit) -> None:
    audited = replace(world, pipeline=replace(world.pipeline, audits=[audit]))
    run = restoring(world, day)
    with pytest.raises(EpochHeld):
        go(audited, run, day)
    assert everywhere(world, day) == [Counter(rows_of_day(day))] * 3
    held = world._looking.generations(world.epoch_of(day))[-1]
    release(world.runtime(), held.id, "a test")
    go(audited, run, day)
    require_back(world, day)


def test_a_condition_that_only_spark_can_judge_is_refused_by_name(world: RestatingWorld, day: int) -> None:
    spark = none_where("numbers", "label rlike '^row'", name="spark", quarantine=True)
    audited = replace(world, pipeline=replace(world.pipeline, audits=[spark]))
    _refused(audited, day, RestateRefused, "audit spark sends rows to quarantine by a condition in Spark's SQL")


@pytest.mark.sample(1)
@pytest.mark.parametrize("part", ["_manifest.json", "numbers"])
def test_what_is_decided_and_damaged_is_shown_again_from_the_same_wal(
    world: RestatingWorld, day: int, part: str
) -> None:
    run = restoring(world, day)
    go(world, run, day, last="commit")
    old, other, new = world._looking.generations(world.epoch_of(day))
    place = world.staging_folder / ((new if part == "_manifest.json" else old).wal or "") / part
    place.rename(place.with_name("away"))
    if part == "numbers":  # the rows themselves: nobody has them
        with pytest.raises(WalCorrupt):
            go(world, run, day, "stage", "stage")
        place.with_name("away").rename(place)
    else:
        place.with_name("away").unlink()
        go(world, run, day, "stage", "stage")
        assert world._looking.epoch("numbers", new.id).restaged is not None
    go(world, run, day, "stage")
    require_back(world, day)
    assert {old.id, other.id, new.id} <= kept(world)
    assert [found.problem for found in verify(world.runtime(), world.epoch_of(day))] == [None] * 3


@pytest.mark.fault("N7")
def test_of_two_who_want_different_rows_one_waits(world: RestatingWorld, day: int) -> None:
    run, reads = restoring(world, day), RunKey("restoring", f"reads {day}", restate="a late file")
    go(world, run, day, last="begin")
    world.expire_leases()
    with pytest.raises(EpochBusy, match="can't read its range again"):
        world.run_task("begin", reads, day)
    go(world, run, day)
    require_back(world, day)
    world.run_task("begin", reads, day)
    world.expire_leases()
    second = world._looking.generations(world.epoch_of(day))[1]
    with pytest.raises(EpochBusy, match=f"can't show the rows of epoch {second.id} again"):
        world.run_task("begin", restoring(world, day, second.id), day)
    world.run(reads, day)
    assert everywhere(world, day) == [Counter(rows_of_day(day))] * 3


@pytest.mark.fault("N7")
@pytest.mark.sample(1)
@pytest.mark.parametrize("point", [CrashPoint.EXPIRE_BEFORE_MARK, CrashPoint.EXPIRE_AFTER_MARK])
def test_who_lets_go_of_a_wal_and_who_refers_to_it_agree(
    world: RestatingWorld, day: int, point: CrashPoint, tmp_path: Path
) -> None:
    """One that stood still before it had said so lets go of nothing; of what may be gone nobody shows anything."""
    old = first_of(world, day)
    pass_time(world, old.id, 2 * DAY)
    recovers = [("recover", lambda: world.run_task("recover", RunKey("restoring", "recovery"), day))]
    victim = sacrifice(recovers, Hit("recover", point, 1), "hang", tmp_path / "log")

    def resume() -> None:
        if point is CrashPoint.EXPIRE_AFTER_MARK:
            _refused(world, day, WalGone, "isn't kept any more")
        else:
            go(world, restoring(world, day), day)

    def check() -> None:
        back = point is CrashPoint.EXPIRE_BEFORE_MARK
        assert everywhere(world, day) == [wrong_rows(day) if back else Counter(rows_of_day(day))] * 3
        if back:
            assert old.id in kept(world)

    overtake(victim, resume, check)


# --- crashes and zombies ---------------------------------------------------------------------------------------------


@pytest.mark.tier("all")
@pytest.mark.fault("N7")
def test_rows_come_back_once_wherever_a_process(
    world: RestatingWorld,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    subtests: pytest.Subtests,
    sampling: Sampling,
) -> None:
    """… is killed, or hangs and is released after another one has finished. Between stage and cleanup it is an epoch
    like any that takes another's place: see test_restating.py."""
    reached = [hit for hit in hits(world, monkeypatch) if hit.task in ("begin", "stage", "commit", "cleanup")]
    strike_each(world, in_turn(sampling, reached, WAYS, every=12), tmp_path, subtests)


def test_another_run_with_the_same_reason_finds_the_rows_restored(world: RestatingWorld, day: int) -> None:
    first = restoring(world, day)
    go(world, first, day)
    current = world._looking.generations(world.epoch_of(day))[-1]
    assert begin(world.runtime(), replace(first, run_id=f"another {day}"), world.interval_of_run(day)).id == current.id
    with pytest.raises(RestateRefused, match="shows these very rows"):
        begin(
            world.runtime(), replace(first, run_id=f"third {day}", restate="another reason"), world.interval_of_run(day)
        )


def test_no_two_side_effects_of_showing_rows_again_fall_between_the_same_crash_points(
    world: RestatingWorld, day: int, monkeypatch: pytest.MonkeyPatch, subtests: pytest.Subtests
) -> None:
    for task in world.tasks():
        with subtests.test(task):
            with recorded(monkeypatch, world.folder) as recording:
                world.run_task(task, restoring(world, day), day)
            assert recording.unseparated() == []


@pytest.mark.fault("Q8")
@pytest.mark.tier("all")
def test_rows_that_come_back_have_the_quarantine_that_they_were_sealed_with(world: RestatingWorld) -> None:
    audits = [in_range("numbers", "number", at_most=9, name="small", blocking=False, quarantine=True)]
    audited, day = replace(world, pipeline=replace(world.pipeline, audits=audits)), next(world.days)
    for why, job in (("first", write_others), ("second", write_parquet)):
        audited.run(RunKey("restoring", f"{why} {day}", restate=why), day, job=job)
    go(audited, restoring(audited, day), day)
    first, _, current = world._looking.generations(world.epoch_of(day))
    logs = [find_quarantine(world.runtime(), epoch.id) for epoch in (first, current)]
    assert logs[0] == logs[1] and (world.staging_folder / logs[1].folder).is_dir()
    for epoch in (first, current):
        batches = open_quarantined(world.runtime(), epoch.id, "numbers")
        assert batches is not None and sum(batch.num_rows for batch in batches) == 9


def test_the_doctor_knows_which_audits_it_was_planned_with(world: RestatingWorld, day: int) -> None:
    audits = [in_range("numbers", "number", at_most=99, name="small", blocking=False, quarantine=True)]
    audited = replace(world, pipeline=replace(world.pipeline, audits=audits))
    go(audited, restoring(audited, day), day, last="stage")

    def drift(defined: RestatingWorld) -> list[str]:
        found = Surroundings(
            world.ledger_dsn,
            str(world.staging_folder),
            None,
            {"warehouse": world.warehouse_dsn},
            lambda _: defined.pipeline,
        )
        return [one.says for one in examine(found, only="numbers") if one.check == "drift"]

    assert drift(audited) == []
    [said] = drift(world)
    assert "was planned with other audits" in said
    spark = none_where("numbers", "label rlike '^row'", name="spark", quarantine=True)
    [said] = drift(replace(world, pipeline=replace(world.pipeline, audits=[spark])))
    assert "was planned with other audits" in said
    go(audited, restoring(audited, day), day, "audit")
