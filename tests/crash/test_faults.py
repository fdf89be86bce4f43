"""Faults that no crash point causes: people, other programs, disks and servers."""

from __future__ import annotations

import os
import threading
import uuid
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import pytest
from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_fixed

from lockstep.crash import CrashPoint
from lockstep.epoch import Epoch, Interval, Position, RunKey
from lockstep.errors import (
    EpochBusy,
    Fenced,
    LedgerConflict,
    NotPrepared,
    Retryable,
    SourceChanged,
    StageFailed,
    StagingUnavailable,
    TargetChanged,
    WalCorrupt,
)
from lockstep.ledger import Ledger
from lockstep.operations.verify import verify
from lockstep.protocol.begin import begin
from lockstep.protocol.recover import LONGEST, recover
from lockstep.sources import OpenSource, SourceContext
from lockstep.states import Role
from stack.postgres import PostgresServer
from tests.crash.victims import Hit, sacrifice
from tests.crash.world import FIRST_DAY, Numbers, OpenNumbers, World, flip_a_bit, interval_of, make_world
from tests.sampling import Sampling
from tests.small_disk import small_disk

BOTH = pytest.mark.parametrize("world", ["two_phase", "write_ahead"], indirect=True)


def _run(day: int, name: str = "run") -> RunKey:
    return RunKey("faults", f"{name} {day}")


# --- runs against each other ---


@pytest.mark.fault("A3")
def test_the_second_run_of_an_epoch_waits_and_then_finds_it_published(world: World) -> None:
    day = next(world.days)
    world.run_until(_run(day), day, "prepare.warehouse")
    with pytest.raises(EpochBusy):
        begin(world.runtime(), _run(day, "second"), interval_of(day))
    world.run(_run(day), day, start="prepare.files")
    published = world.epoch_of(day)
    world.run(_run(day, "second"), day)
    assert world.epoch_of(day) == published
    world.require_exactly_once(day)


@pytest.mark.fault("H5")
def test_a_run_whose_epoch_was_taken_over_is_fenced_at_every_task(world: World) -> None:
    day = next(world.days)
    world.run_until(_run(day), day, "stage")
    world.expire_leases()
    begin(world.runtime(), _run(day, "second"), interval_of(day))
    for task in ("stage", "prepare.warehouse", "prepare.files", "commit", "publish.warehouse", "publish.files"):
        with pytest.raises(Fenced, match="clear from begin"):
            world.run_task(task, _run(day), day)
    world.require_nothing_shown(day)
    world.run(_run(day, "second"), day)
    world.require_exactly_once(day)


@pytest.mark.fault("E6", "E13", "F5", "G4")
@BOTH
def test_recovery_and_retry_may_publish_at_once(world: World) -> None:
    day = next(world.days)
    world.run_until(_run(day), day, "commit")
    children = [
        _fork(partial(_stubbornly, world.recover)),
        _fork(partial(_stubbornly, partial(world.run, _run(day), day, "publish.warehouse"))),
    ]
    assert [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children] == [0, 0]
    world.require_exactly_once(day)
    assert world.state_of(day) == "cleaned"


@pytest.mark.fault("T4")
def test_an_error_that_has_no_name_of_ours_stops_neither_other_sinks_nor_other_epochs(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    days = [next(world.days) for _ in range(2)]
    for day in days:
        world.run_until(_run(day), day, "commit")

    def fail(*arguments: object) -> None:
        raise UnicodeEncodeError("utf-8", "a row's text", 0, 1, "surrogates not allowed")

    with monkeypatch.context() as patched:
        patched.setattr("lockstep.sinks.files._sink.OpenFileSink.publish", fail)
        [problem] = world.recover().problems
    assert "UnicodeEncodeError" in problem and "test_faults.py" in problem and "a row's" not in problem
    for day in days:
        assert world.state_of(day) == "committed" and world.shown_in_warehouse(day), "the other sink shows it"
    assert world.recover().problems == []
    for day in days:
        world.require_exactly_once(day)


def test_recovery_leaves_alone_what_is_still_to_come_and_not_for_ever(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    """… nor what nobody can say anything of; other epochs don't wait for either."""
    days = [next(world.days) for _ in range(3)]
    for day in days:
        world.run_until(_run(day), day, "prepare.files")
    world.expire_leases()
    waiting, unknown, other = (world.epoch_of(day) for day in days)

    def coming(epoch: Epoch) -> str | None:
        if epoch.id == unknown.id:
            raise KeyError("no such task")
        return "a task that waits for a slot" if epoch.id == waiting.id else None

    report = recover(world.runtime(), timedelta(0), coming)
    assert (report.voided, report.problems) == ([other.id], []) and "can't ask for unfinished tasks" in caplog.text
    assert [world.epoch_of(day) for day in days[:2]] == [waiting, unknown]
    _let_pass(world, LONGEST)
    assert {waiting.id, unknown.id} <= set(recover(world.runtime(), timedelta(0), coming).voided), (
        "nothing waits so long"
    )
    for day in days:
        world.run(_run(day, "next"), day)
        world.require_exactly_once(day)


def _let_pass(world: World, time: timedelta) -> None:
    """Since the last sign of life of every attempt."""
    world.execute(
        world.ledger_dsn,
        "SET session_replication_role = replica; UPDATE lockstep.epoch SET attempted_at = attempted_at - %(time)s,"
        " changed_at = changed_at - %(time)s, lease_until = lease_until - %(time)s",
        {"time": time},
    )


@pytest.mark.fault("L11")
def test_an_epoch_that_is_cleaned_up_while_it_is_verified_raises_no_alarm(world: World) -> None:
    day = next(world.days)
    world.run_until(_run(day), day, "publish.files")
    known = world.epoch_of(day)
    world.run_task("cleanup", _run(day), day)
    found = verify(world.runtime(), known)
    assert found and all(one.agrees for one in found if one.compared)


@pytest.mark.fault("L11")
def test_a_plan_that_is_made_by_another_run_meanwhile_is_no_change_of_the_source(world: World) -> None:
    day = next(world.days)
    late = replace(world, pipeline=replace(world.pipeline, sources={"numbers": Overtaken(world, day)}))
    late.run_task("begin", _run(day, "late"), day)
    assert world.state_of(day) == "cleaned"
    world.require_exactly_once(day)


@pytest.mark.fault("L11")
def test_a_source_that_changed_is_an_alarm_where_nobody_else_has_planned(world: World) -> None:
    day = next(world.days)
    late = replace(world, pipeline=replace(world.pipeline, sources={"numbers": Overtaken(world, None)}))
    with pytest.raises(SourceChanged):
        late.run_task("begin", _run(day), day)
    assert world.state_of(day) is None


@dataclass(frozen=True)
class Overtaken(Numbers):
    """By the time it looks again, another run has moved the epoch, and what it saw before is there no more."""

    world: World
    day: int | None

    def open(self, context: SourceContext) -> OpenSource:
        return OpenOvertaken(self.world, self.day)


@dataclass(frozen=True)
class OpenOvertaken(OpenNumbers):
    world: World
    day: int | None

    def latest(self, start: Position | None, interval: Interval | None) -> Position:
        if self.day is not None:
            self.world.run(_run(self.day, "other"), self.day)
        raise SourceChanged("it is another one now")


@pytest.mark.parametrize("recovers", [False, True])
def test_whoever_publishes_for_long_says_so_meanwhile(
    world: World, monkeypatch: pytest.MonkeyPatch, recovers: bool
) -> None:
    shown, renew = threading.Event(), Ledger.renew_publisher

    def renew_and_tell(ledger: Ledger, epoch: Epoch, sink: str, role: Role) -> bool:
        renewed = renew(ledger, epoch, sink, role)
        shown.set()
        return renewed

    def take_long(point: CrashPoint) -> None:
        if point is CrashPoint.PUBLISH_BEFORE_SINK:
            assert shown.wait(20), "nobody says that the epoch is being published"
            shown.clear()

    day = next(world.days)
    world.run_until(_run(day), day, "commit")
    monkeypatch.setattr("lockstep.protocol.lease.RENEWAL", 0.01)
    monkeypatch.setattr(Ledger, "renew_publisher", renew_and_tell)
    monkeypatch.setattr("lockstep.protocol.publish.reach", take_long)
    world.recover() if recovers else world.run(_run(day), day, "publish.warehouse")
    assert world.state_of(day) == "cleaned"


# --- Airflow's task state is not believed ---


@pytest.mark.fault("C13", "D10")
def test_a_sink_that_did_not_vote_cannot_be_committed_over(world: World) -> None:
    day = next(world.days)
    world.run_until(_run(day), day, "prepare.warehouse")
    with pytest.raises(NotPrepared, match="lacks the vote of files"):
        world.run_task("commit", _run(day), day)
    with pytest.raises(NotPrepared, match="not committed"):
        world.run_task("publish.warehouse", _run(day), day)
    world.require_nothing_shown(day)
    world.run(_run(day), day, start="prepare.files")
    world.require_exactly_once(day)


@pytest.mark.fault("H19")
def test_abort_after_the_decision_changes_nothing(world: World) -> None:
    day = next(world.days)
    world.run_until(_run(day), day, "commit")
    world.run_task("abort", _run(day), day)
    world.run(_run(day), day, start="publish.warehouse")
    world.require_exactly_once(day)


@pytest.mark.fault("C10")
def test_an_aborted_attempt_shows_nothing_and_a_new_run_brings_the_epoch(world: World) -> None:
    day = next(world.days)
    world.run_until(_run(day), day, "prepare.files")
    world.run_task("abort", _run(day), day)
    world.require_nothing_shown(day)
    assert world.prepared() == []
    assert world.left_in_sink() == []
    with pytest.raises(Fenced, match="votes are per attempt: clear from begin"):
        world.run_task("commit", _run(day), day)
    world.run(_run(day, "next"), day)
    world.require_exactly_once(day)
    world.require_tidy()


# --- crashes of abort and recover themselves ---


ABORTING = [
    Hit("abort", CrashPoint(point), nth)
    for point in ("abort.before_raise", "abort.after_raise", "rollback.before_sink", "rollback.after_sink")
    for nth in (1, 2)
]
RECOVERING = ["publish.before_sink", "publish.before_record", "publish.after_record", "cleanup.after_archive"]


@pytest.mark.fault("G2")
def test_abort_may_die_anywhere(world: World, tmp_path: Path, subtests: pytest.Subtests, sampling: Sampling) -> None:
    for hit in sampling.sample(ABORTING, 3):
        with subtests.test(str(hit)):
            day = next(world.days)
            world.run_until(_run(day), day, "prepare.files")
            tasks = [("abort", partial(world.run_task, "abort", _run(day), day))]
            victim = sacrifice(tasks, hit, "kill", tmp_path / "log")
            assert victim.killed or hit.nth == 2
            world.require_nothing_shown(day)
            world.expire_leases()
            assert world.recover().problems == []
            world.require_nothing_shown(day)
            assert world.prepared() == []
            assert world.left_in_sink() == []
            world.run(_run(day, "next"), day)
            world.require_exactly_once(day)
    world.require_tidy()


@pytest.mark.fault("G1")
def test_recovery_may_die_anywhere(world: World, tmp_path: Path, subtests: pytest.Subtests, sampling: Sampling) -> None:
    for point in sampling.sample(RECOVERING, 2):
        with subtests.test(point):
            day = next(world.days)
            world.run_until(_run(day), day, "commit")
            tasks = [("recover", partial(world.run_task, "recover", _run(day), day))]
            for nth in (1, 2):
                sacrifice(tasks, Hit("recover", CrashPoint(point), nth), "kill", tmp_path / "log")
            assert world.recover().problems == []
            world.require_exactly_once(day)
    world.require_tidy()


# --- a person, other programs ---


@pytest.mark.fault("E5", "H18")
def test_a_decided_transaction_rolled_back_by_hand_is_repaired_from_the_wal(world: World) -> None:
    day = next(world.days)
    world.run_until(_run(day), day, "commit")
    [gid] = world.prepared()
    world.roll_back(gid)
    world.run(_run(day), day, start="publish.warehouse")
    world.require_exactly_once(day)
    assert world.publications(day)["warehouse"] == "repaired"


@pytest.mark.fault("D15")
def test_a_branch_of_another_manifest_is_never_committed(world: World) -> None:
    day = next(world.days)
    world.run_until(_run(day), day, "commit")
    [gid] = world.prepared()
    forged = f"{gid[:-12]}{'0' * 12}"
    world.roll_back(gid)
    world.prepare_foreign(forged)
    with pytest.raises(LedgerConflict, match=r"0{12}"):
        world.run_task("publish.warehouse", _run(day), day)
    assert any("LedgerConflict" in problem and forged in problem for problem in world.recover().problems)
    assert world.prepared() == [forged]
    assert world.execute(world.warehouse_dsn, "SELECT * FROM public.numbers WHERE label = 'a zombie'") == []
    world.roll_back(forged)
    world.run(_run(day), day, start="publish.warehouse")
    world.require_exactly_once(day)
    assert world.publications(day)["warehouse"] == "repaired"


@pytest.mark.fault("C7", "D7", "F4")
def test_transactions_of_others_are_never_touched(world: World) -> None:
    """One with a token that this ledger never issued is an alarm, and no rollback."""
    day = next(world.days)
    world.run(_run(day), day)
    deployment = Ledger(world.ledger_dsn).deployment()
    epoch = world.epoch_of(day)
    foreign = [
        "another application's",
        f"lockstep:{deployment}:numbers2:warehouse:{epoch.id}:1:{'a' * 12}",
        f"lockstep:{deployment}:numbers:warehouse2:{epoch.id}:1:{'a' * 12}",
        f"lockstep:{uuid.uuid4()}:numbers:warehouse:{epoch.id}:1:{'a' * 12}",
        f"lockstep:{deployment}:numbers:warehouse:{epoch.id}:1",
    ]
    never_issued = f"lockstep:{deployment}:numbers:warehouse:{epoch.id}:999999:{'a' * 12}"
    for gid in foreign:
        world.prepare_foreign(gid)
    try:
        assert world.recover().problems == []
        world.prepare_foreign(never_issued)
        [problem] = world.recover().problems
        assert "never issued token 999999" in problem
        assert sorted(world.prepared()) == sorted([*foreign, never_issued])
    finally:
        for gid in world.prepared():
            world.roll_back(gid)


@pytest.mark.fault("Q6")
@pytest.mark.tier("all")
def test_the_first_and_the_last_day_of_the_calendar_are_days(world: World) -> None:
    for first in (datetime.min, datetime(9999, 12, 30)):
        day = (first.replace(tzinfo=UTC) - FIRST_DAY).days
        world.run(_run(day), day)
        world.require_exactly_once(day)
        assert world.state_of(day) == "cleaned"


@pytest.mark.fault("C23")
def test_a_connection_that_leads_elsewhere_after_the_vote_gets_nothing(
    world: World, warehouse_server: PostgresServer
) -> None:
    day = next(world.days)
    world.run_until(_run(day), day, "commit")
    name = f"elsewhere_{uuid.uuid4().hex[:8]}"
    warehouse_server.create_database(name)
    elsewhere = make_world(world.ledger_dsn, warehouse_server.dsn(name), world.folder, "two_phase").warehouse_dsn
    moved = replace(world, warehouse_dsn=elsewhere)
    with pytest.raises((TargetChanged, Retryable)):
        moved.run_task("publish.warehouse", _run(day), day)
    assert not moved.shown_in_warehouse(day)
    world.run(_run(day), day, start="publish.warehouse")
    world.require_exactly_once(day)


@pytest.mark.fault("D7", "D15")
def test_a_marker_of_another_life_stops_the_epoch(world: World) -> None:
    """The same deployment's ledger, restored to before the epoch: the sinks know more than it does."""
    day = next(world.days)
    world.run(_run(day), day)
    epoch = world.epoch_of(day)
    change = "UPDATE lockstep_marker SET manifest_hash = %s WHERE pipeline = 'numbers' AND epoch = %s"
    world.execute(world.warehouse_dsn, change, ("f" * 64, epoch.id))
    with pytest.raises(LedgerConflict):
        world.run_task("publish.warehouse", _run(day), day)
    world.execute(world.warehouse_dsn, change, (epoch.manifest_hash, epoch.id))
    world.require_exactly_once(day)


# --- the WAL ---


DAMAGES = ("truncated", "missing", "flipped")


@pytest.mark.fault("B11")
def test_a_damaged_wal_is_refused_and_staged_again_before_the_decision(world: World) -> None:
    day = next(world.days)
    world.run_until(_run(day), day, "stage")
    for damage in DAMAGES:
        path = _damage(world, day, damage)
        with pytest.raises(WalCorrupt):
            world.run_task("prepare.warehouse", _run(day), day)
            pytest.fail(damage)
        world.require_nothing_shown(day)
        if damage != DAMAGES[-1]:
            path.with_suffix(".backup").rename(path)
    world.run(_run(day), day)
    world.require_exactly_once(day)
    world.require_tidy()


@pytest.mark.fault("B11")
def test_a_damaged_wal_after_the_decision_fails_closed(world: World) -> None:
    day = next(world.days)
    world.run_until(_run(day), day, "commit")
    [gid] = world.prepared()
    world.roll_back(gid)
    for damage in DAMAGES:
        path = _damage(world, day, damage)
        with pytest.raises(WalCorrupt):
            world.run_task("publish.warehouse", _run(day), day)
            pytest.fail(damage)
        assert not world.shown_in_warehouse(day)
        assert world.state_of(day) == "committed"
        path.parent.mkdir(exist_ok=True)
        path.with_suffix(".backup").rename(path)
    world.run(_run(day), day, start="publish.warehouse")
    world.require_exactly_once(day)


@pytest.mark.fault("B9", "J1")
def test_a_full_disk_in_staging_fails_the_attempt_and_nothing_else(world: World) -> None:
    day = next(world.days)
    with small_disk(world.folder / f"tiny-{day}", "256k") as disk:
        small = replace(world, staging_folder=disk)
        (disk / "ballast").write_bytes(b"x" * (disk_free(disk) - 8192))
        with pytest.raises((StagingUnavailable, StageFailed, OSError)):
            small.run(_run(day), day)
        world.require_nothing_shown(day)
        (disk / "ballast").unlink()
        small.run(_run(day), day)
        world.require_exactly_once(day)
        assert small.left_in_staging() == []


# --- servers ---


@pytest.mark.fault("D3")
def test_the_decision_survives_an_immediate_stop_of_the_ledger(world: World, ledger_server: PostgresServer) -> None:
    day = next(world.days)
    world.run_until(_run(day), day, "commit")
    ledger_server.stop("immediate")
    ledger_server.start()
    assert world.state_of(day) == "committed"
    world.run(_run(day), day, start="publish.warehouse")
    world.require_exactly_once(day)


@pytest.mark.fault("E10")
@BOTH
def test_what_a_role_with_synchronous_commit_off_published_survives_an_immediate_stop(
    world: World, warehouse_server: PostgresServer
) -> None:
    world.execute(world.warehouse_dsn, "ALTER ROLE CURRENT_USER SET synchronous_commit = off")
    try:
        day = next(world.days)
        world.run_until(_run(day), day, "publish.warehouse")
        warehouse_server.stop("immediate")
        warehouse_server.start()
        world.run(_run(day), day, start="publish.files")
        world.require_exactly_once(day)
    finally:
        world.execute(world.warehouse_dsn, "ALTER ROLE CURRENT_USER RESET synchronous_commit")


@pytest.mark.fault("C11", "E9")
def test_a_sink_that_is_down_after_the_decision_is_published_when_it_is_back(
    world: World, warehouse_server: PostgresServer
) -> None:
    day = next(world.days)
    world.run_until(_run(day), day, "commit")
    warehouse_server.stop("immediate")
    try:
        with pytest.raises(Retryable):
            world.run_task("publish.warehouse", _run(day), day)
        assert world.recover().problems
        assert world.state_of(day) == "committed"
    finally:
        warehouse_server.start()
    assert world.recover().problems == []
    world.require_exactly_once(day)
    world.require_tidy()


# --- means ---


def _fork(work: Callable[[], object]) -> int:
    pid = os.fork()
    if pid == 0:
        code = 1
        with suppress(BaseException):
            work()
            code = 0
        os._exit(code)
    return pid


def _stubbornly(work: Callable[[], object]) -> None:
    tries = Retrying(
        retry=retry_if_exception_type((Retryable, Fenced)),
        stop=stop_after_delay(60),
        wait=wait_fixed(0.1),
        reraise=True,
    )
    tries(work)


def _damage(world: World, day: int, damage: str) -> Path:
    wal = world.epoch_of(day).wal
    assert wal is not None
    path = world.staging_folder / wal / "numbers" / "part-00000.parquet"
    data = path.read_bytes()
    path.with_suffix(".backup").write_bytes(data)
    match damage:
        case "truncated":
            path.write_bytes(data[:-10])
        case "flipped":
            flip_a_bit(path)
        case "missing":
            path.unlink()
    return path


def disk_free(folder: Path) -> int:
    """Bytes left on the file system of `folder`."""
    stat = os.statvfs(folder)
    return stat.f_bavail * stat.f_frsize
