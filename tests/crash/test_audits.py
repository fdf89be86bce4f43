"""Epochs with audits: held ones show nothing until a person answers; killed and stopped wherever `audit` gets to."""

from __future__ import annotations

import importlib
import json
import sys
from collections import Counter
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from lockstep.audits import Audit, function, in_range, not_null, row_count, sql, unique, volume
from lockstep.crash import CrashPoint
from lockstep.epoch import Outcome, RunKey, Verdict
from lockstep.errors import (
    AuditFailed,
    EpochHeld,
    Fenced,
    IllegalTransition,
    NotAudited,
    PackFailed,
    WalCorrupt,
)
from lockstep.operations.replan import release, replan, void
from lockstep.operations.verify import verify
from lockstep.protocol.pack import move_pack, require_all_moved
from tests.crash.recording import recorded
from tests.crash.test_kill_and_zombie import RESUMES, strike_each
from tests.crash.victims import Action, Hit, hits_of, overtake, sacrifice
from tests.crash.world import ROWS, World, interval_of, write_parquet
from tests.sampling import Sampling

pytestmark = pytest.mark.parametrize("world", ["two_phase"], indirect=True)  # no audit knows what comes after it
POINTS = [point for point in CrashPoint if point.startswith("audit.")]
SOUND = (
    row_count("numbers", ROWS, ROWS),
    not_null("numbers", "number"),
    in_range("numbers", "number", 0, ROWS),
    volume("numbers", within=0),
)
ODD = unique("numbers", "number", blocking=False)  #: the world's rows have two that are equal
OFFENDED = unique("numbers", ["day", "number", "label"])


def auditing(world: World, *audits: Audit) -> World:
    return replace(world, pipeline=replace(world.pipeline, audits=audits))


def run_of(day: int) -> RunKey:
    return RunKey("audits", f"day {day}")


def verdict_of(world: World, day: int) -> Verdict | None:
    return world._looking.verdict(world.pipeline.name, world.epoch_of(day).id)


def held(world: World, last: str = "audit") -> int:
    """A day whose audits hold it."""
    day = next(world.days)
    with pytest.raises(EpochHeld):
        world.run_until(run_of(day), day, last)
    return day


@pytest.fixture
def sound(world: World) -> World:
    return auditing(world, *SOUND, ODD)


@pytest.fixture
def offended(world: World) -> World:
    return auditing(world, *SOUND, OFFENDED)


def test_what_passes_is_published_with_its_warnings_kept(sound: World) -> None:
    day = next(sound.days)
    sound.run(run_of(day), day)
    sound.require_exactly_once(day)
    verdict = verdict_of(sound, day)
    assert verdict is not None and verdict.outcome is Outcome.PASSED
    assert [str(one) for one in verdict.warnings] == ["unique_numbers_number (1 row)"]
    assert len(verdict.results) == len(SOUND) + 1
    assert samples(sound, day) == {"unique_numbers_number"}
    sound.require_tidy()


def samples(world: World, day: int) -> set[str]:
    """Which audits have left rows that offend them beside the WALs."""
    found = world.staging_folder.glob(f"*/numbers/audits/epoch={world.epoch_of(day).id}/*.json")
    return {name for path in found for name in json.loads(path.read_text())}


@pytest.mark.fault("N9")
def test_a_held_epoch_shows_nothing_whatever_is_run(offended: World) -> None:
    day = held(offended)
    for task in ("audit", *(f"prepare.{sink.name}" for sink in offended.pipeline.sinks), "commit"):
        with pytest.raises(EpochHeld, match="unique_numbers_day_number_label"):
            offended.run_task(task, run_of(day), day)
    with pytest.raises(IllegalTransition):
        offended.run_task("cleanup", run_of(day), day)
    offended.expire_leases()
    for run in (run_of(day), RunKey("audits", f"another {day}")):
        with pytest.raises(EpochHeld):
            offended.run(run, day)
        offended.expire_leases()
    offended.require_nothing_shown(day)
    assert offended.prepared() == [] and offended.left_in_sink() == []
    assert samples(offended, day) == {"unique_numbers_day_number_label"}
    void(offended.runtime(), offended.epoch_of(day).id, "given up")
    offended.require_tidy()


def test_what_a_person_releases_goes_on_with_the_rows_that_were_sealed(offended: World) -> None:
    day = held(offended)
    before = offended.epoch_of(day)
    offended.expire_leases()
    report = offended.recover()
    assert (report.problems, report.voided) == ([], []), "it is left to a person"
    assert offended.epoch_of(day) == before and offended.left_in_staging() != []
    with pytest.raises(EpochHeld, match="not published"):
        verify(offended.runtime(), before)
    offended.run_task("abort", run_of(day), day)  # as the DAG does
    release(offended.runtime(), offended.epoch_of(day).id, "equal rows are right here")
    with pytest.raises(Fenced, match="clear from begin"):
        offended.run_task("audit", run_of(day), day)
    offended.run(run_of(day), day)
    offended.require_exactly_once(day)
    offended.require_tidy()
    verdict = verdict_of(offended, day)
    assert verdict is not None and str(verdict).endswith(": equal rows are right here")
    assert all(one.agrees for one in verify(offended.runtime(), offended.epoch_of(day)))


def test_the_plan_s_audits_count_and_not_those_of_a_later_definition(offended: World) -> None:
    day = next(offended.days)
    offended.run_until(run_of(day), day, "stage")
    now = auditing(offended)  # whose DAG has no task for them
    for task in ("prepare.warehouse", "commit"):
        with pytest.raises(NotAudited, match="`lockstep replan numbers"):
            now.run_task(task, run_of(day), day)
    with pytest.raises(EpochHeld):
        now.run_task("audit", run_of(day), day)
    void(now.runtime(), offended.epoch_of(day).id, "given up")
    now.require_tidy()


def test_an_epoch_whose_own_check_was_changed_meanwhile_shows_nothing_until_it_is_replanned(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def deploy(most: int) -> None:
        (tmp_path / "deployed_checks.py").write_text(f"def strange(rows):\n    return rows.slice(0, {most})\n")
        sys.modules.pop("deployed_checks", None)
        importlib.invalidate_caches()

    deploy(0)
    own, day = auditing(world, function("numbers", "deployed_checks:strange")), next(world.days)
    own.run(run_of(day), day)
    own.require_exactly_once(day)
    day = next(world.days)
    own.run_until(run_of(day), day, "stage")
    deploy(2)
    for _ in range(2):
        with pytest.raises(AuditFailed, match="planned with version"):
            own.run_task("audit", run_of(day), day)
    with pytest.raises(NotAudited):
        own.run_task("prepare.warehouse", run_of(day), day)
    own.run_task("abort", run_of(day), day)
    own.require_nothing_shown(day)
    assert verdict_of(own, day) is None
    replan(own.runtime(), own.epoch_of(day).id, "the check was changed")
    with pytest.raises(EpochHeld, match="strange_numbers"):
        own.run(run_of(day), day)
    assert samples(own, day) == {"strange_numbers"}
    release(own.runtime(), own.epoch_of(day).id, "looked")
    own.run(run_of(day), day)
    own.require_exactly_once(day)


@pytest.mark.fault("N9")
def test_a_wal_that_is_staged_anew_loses_its_release(offended: World) -> None:
    day = held(offended)
    release(offended.runtime(), offended.epoch_of(day).id, "looked")
    file = next((offended.staging_folder / (offended.epoch_of(day).wal or "")).glob("numbers/*.parquet"))
    file.write_bytes(file.read_bytes()[:-1])
    with pytest.raises(EpochHeld):
        offended.run(run_of(day), day)
    offended.require_nothing_shown(day)
    release(offended.runtime(), offended.epoch_of(day).id, "looked again")
    offended.run(run_of(day), day)
    offended.require_exactly_once(day)


@pytest.mark.fault("N9")
def test_a_damaged_wal_gets_no_verdict(sound: World) -> None:
    day = next(sound.days)
    sound.run_until(run_of(day), day, "stage")
    file = next((sound.staging_folder / (sound.epoch_of(day).wal or "")).glob("numbers/*.parquet"))
    file.write_bytes(file.read_bytes()[:-1])
    with pytest.raises(WalCorrupt):
        sound.run_task("audit", run_of(day), day)
    assert verdict_of(sound, day) is None
    sound.run(run_of(day), day)
    sound.require_exactly_once(day)


def test_an_audit_that_cant_be_asked_leaves_no_verdict(world: World) -> None:
    wrong, day = auditing(world, sql("typo", "SELECT nope FROM numbers", outputs="numbers")), next(world.days)
    with pytest.raises(AuditFailed, match="audit typo can't be asked, BinderException"):
        wrong.run_until(run_of(day), day, "audit")
    assert verdict_of(wrong, day) is None
    with pytest.raises(NotAudited):
        wrong.run_task("prepare.warehouse", run_of(day), day)
    replan(world.runtime(), world.epoch_of(day).id, "corrected")
    world.run(run_of(day), day)
    world.require_exactly_once(day)


def test_of_a_pack_only_what_offends_is_held(world: World) -> None:
    days = [next(world.days) for _ in range(3)]
    one = sql("one_day", f"SELECT * FROM numbers WHERE day = {days[1]}", outputs="numbers")
    packed = auditing(world, one)
    run = RunKey("audits", f"pack {days[0]}")
    runs = [run.member(interval_of(day), 0) for day in days]
    members = move_pack(packed.runtime(), runs, write_parquet)
    with pytest.raises(PackFailed, match="EpochHeld"):
        require_all_moved(members)
    assert [packed.state_of(day) for day in days] == ["cleaned", "staged", "cleaned"]
    packed.require_nothing_shown(days[1])
    release(packed.runtime(), packed.epoch_of(days[1]).id, "looked")
    require_all_moved(move_pack(packed.runtime(), runs, write_parquet))
    for day in days:
        packed.require_exactly_once(day)


def test_no_two_side_effects_of_an_audit_fall_between_the_same_crash_points(
    sound: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, day = next(sound.days), next(sound.days)
    sound.run(run_of(first), first)
    sound.run_until(run_of(day), day, "stage")
    with recorded(monkeypatch, sound.folder) as recording:
        sound.run_task("audit", run_of(day), day)
    assert recording.unseparated() == []
    assert {what for kind, what in recording.events if kind == "point"} == set(POINTS)
    sound.run(run_of(day), day, start="prepare.warehouse")


WAYS: list[tuple[Action, str]] = [(action, resume) for action in ("kill", "hang") for resume in RESUMES]


@pytest.mark.tier("all")
@pytest.mark.fault("N9")
def test_every_row_is_shown_once_wherever_an_audit(
    sound: World, tmp_path: Path, subtests: pytest.Subtests, sampling: Sampling
) -> None:
    """… is killed, or hangs and is released after another one has finished the epoch."""
    struck_at = [(way, hit) for way in WAYS for hit in hits_of("audit", Counter(POINTS))]
    strike_each(sound, sampling.sample(struck_at, 5), tmp_path, subtests)


@pytest.mark.fault("N9")
def test_a_verdict_holds_wherever_who_gave_it(
    offended: World, tmp_path: Path, subtests: pytest.Subtests, sampling: Sampling
) -> None:
    """… was killed, or hangs and goes on after a person has released the epoch and another run has published it."""
    actions: tuple[Action, ...] = ("kill", "hang")
    for hit, action in sampling.sample([(h, one) for h in hits_of("audit", Counter(POINTS)) for one in actions], 2):
        with subtests.test(f"{action} {hit}"):
            _require_verdict_to_hold(offended, hit, action, tmp_path)


def _require_verdict_to_hold(offended: World, hit: Hit, action: Action, folder: Path) -> None:
    day = next(offended.days)
    run = run_of(day)
    offended.run_until(run, day, "stage")
    victim = sacrifice([("audit", partial(offended.run_task, "audit", run, day))], hit, action, folder / "log")

    def resume() -> None:
        with pytest.raises(EpochHeld):
            offended.run_task("audit", run, day)
        offended.require_nothing_shown(day)
        release(offended.runtime(), offended.epoch_of(day).id, "looked")
        offended.run(run, day)

    overtake(victim, resume, partial(offended.require_exactly_once, day))
