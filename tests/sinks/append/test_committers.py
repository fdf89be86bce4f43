"""What remembers the epochs that were sent, or begun: once, whole, by whoever comes first, and never by guess."""

from __future__ import annotations

import os
import signal
import stat
import time
import uuid
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from lockstep.epoch import Interval
from lockstep.errors import (
    LedgerConflict,
    LockstepError,
    OutcomeUnknown,
    PreflightRefused,
    SinkUnavailable,
    TargetChanged,
)
from lockstep.sinks import durable_file
from lockstep.sinks.committers import ExternalCommitter, NoTransaction, external, open_committer
from lockstep.sinks.committers._table import PostgresCommitter
from lockstep.sinks.committers.external import BegunCommitter
from lockstep.sinks.values import SinkContext
from lockstep.testing import calls_from
from lockstep.testing._crash_sweep import ended, fork
from lockstep.testing._under_test import DEPLOYMENT, epoch
from stack.postgres import PostgresServer
from tests.crash_states import CrashState, broken_states, recorded
from tests.sinks.kafka_watching import wait_until_struck
from tests.sinks.postgres_target import execute
from tests.sinks.test_file_sink_crash_states import Forgetful
from tests.waiting import until

BROKEN = (AssertionError, LockstepError, OSError)

MODULES = [f"lockstep.sinks.{name}" for name in ("committers._folder", "committers._table", "durable_file")]
Make = Callable[..., ExternalCommitter]


@pytest.fixture(params=["folder", "table"])
def make(request: pytest.FixtureRequest, memory: Path, ledger_server: PostgresServer) -> Make:
    """A committer as each process makes its own."""
    connections: dict[str, str] = {}
    setting = str(memory / "sent")
    if request.param == "table":
        setting = "postgres:records"
        connections["records"] = ledger_server.create_database(f"sent_{uuid.uuid4().hex[:12]}")

    def made(sink: str = "feed", pipeline: str = "pipe") -> ExternalCommitter:
        return open_committer(sink, setting, SinkContext(DEPLOYMENT, pipeline, connections))

    made().create_resource()
    return made


def record(committer: ExternalCommitter, id: int = 1, token: int = 10, manifest: str = "a") -> None:
    committer.commit_checkpoint(epoch(id, token=token, manifest=manifest), NoTransaction())


def test_an_epoch_is_recorded_once_for_its_sink_and_stays_as_it_was(make: Make) -> None:
    committer = make()
    assert committer.is_checkpoint_committed(1) is None
    record(committer, token=10)
    record(make(), token=20)
    marker = make().is_checkpoint_committed(1)
    assert marker is not None and (marker.epoch, marker.token) == (1, 10)
    assert marker.manifest_hash == epoch().manifest_hash
    assert make().is_checkpoint_committed(2) is None
    for sink, pipeline in (("feed2", "pipe"), ("feed", "pipe2"), ("fee", "pipe"), ("feed", "pip")):
        assert make(sink, pipeline).is_checkpoint_committed(1) is None
    with pytest.raises(LedgerConflict, match="epoch 1 is recorded with manifest"):
        record(make(), manifest="b")


def test_processes_that_record_and_create_at_once_all_succeed_and_agree_on_one_id(make: Make) -> None:
    before = make().resource_id()

    def work() -> None:
        committer = make()
        committer.create_resource()
        for id in range(1, 11):
            record(committer, id, token=id)

    children = [fork(work) for _ in range(4)]
    assert [child.wait() for child in children] == [0] * 4
    committer = make()
    assert all(committer.is_checkpoint_committed(id) for id in range(1, 11))
    assert uuid.UUID(committer.resource_id()) == uuid.UUID(before)


def test_a_record_is_whole_or_missing_wherever_its_writer_is_killed(make: Make) -> None:
    number = 0
    ended = False
    while not ended:
        number += 1

        def work(id: int = number, left: int = number) -> None:
            committer, steps = make(), iter(range(left))
            calls_from(*MODULES)(lambda _: None if next(steps, None) is not None else _die())
            record(committer, id)

        ended = fork(work).wait() == 0
        found = make().is_checkpoint_committed(number)
        assert found is None or found.manifest_hash == epoch().manifest_hash
        record(make(), number, token=99)
        assert make().is_checkpoint_committed(number) is not None
    assert number > 8, "hardly a call was seen"


def _die() -> None:
    signal.raise_signal(signal.SIGKILL)


def in_folder(folder: Path) -> ExternalCommitter:
    return open_committer("feed", str(folder), SinkContext(DEPLOYMENT, "pipe", {}))


def test_a_folder_that_lost_its_id_is_another_target(memory: Path) -> None:
    committer = in_folder(memory / "sent")
    with pytest.raises(TargetChanged, match="mount or restore"):
        committer.resource_id()
    assert not (memory / "sent").exists(), "looking made it"
    committer.create_resource()
    (memory / "sent" / "id.json").write_text("{}")
    with pytest.raises(TargetChanged, match="damaged"):
        committer.resource_id()
    (memory / "file").write_text("a file stands here")
    with pytest.raises(SinkUnavailable, match="file"):
        in_folder(memory / "file").create_resource()


def test_a_damaged_record_is_neither_sent_nor_unsent(memory: Path) -> None:
    committer = in_folder(memory / "sent")
    committer.create_resource()
    record(committer)
    [file] = (memory / "sent").rglob("epoch=1.json")
    whole = file.read_bytes()
    for damaged in (whole[:-10], whole.replace(b"10", b"11"), b""):
        file.write_bytes(damaged)
        with pytest.raises(OutcomeUnknown, match=r"epoch=1\.json is damaged"):
            committer.is_checkpoint_committed(1)


@pytest.mark.parametrize("make", ["table"], indirect=True)
def test_a_table_that_a_crash_empties_is_refused_and_a_database_without_it_is_another_target(make: Make) -> None:
    committer = make()
    assert isinstance(committer, PostgresCommitter)
    dsn = committer._database.dsn
    execute(dsn, "ALTER TABLE lockstep_sent SET UNLOGGED")
    with pytest.raises(PreflightRefused, match="SET LOGGED"):
        committer.create_resource()
    execute(dsn, "DROP TABLE lockstep_sent")
    with pytest.raises(TargetChanged, match="has no lockstep_sent"):
        committer.resource_id()


# --- one sender at a time --------------------------------------------------------------------------------------------


def alone(committer: ExternalCommitter) -> bool:
    with committer.session(epoch()) as session:
        return session.claimed


def test_while_one_sends_the_others_leave_it_to_it(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """Longer than a standstill: it beats."""
    monkeypatch.setattr(external, "STANDSTILL", 2.0)  # more than a busy machine keeps a thread waiting
    with make().session(epoch()) as session:
        assert session.claimed
        end = time.monotonic() + 1.5 * external.STANDSTILL
        while time.monotonic() < end:
            assert not alone(make()), "a second sender was let in beside one that lives"
            time.sleep(external.STANDSTILL / 5)
        with make().session(epoch(2)) as other:
            assert other.claimed
        make().commit_checkpoint(epoch(2), other)
    assert alone(make())
    with make().session(epoch(2)) as late:
        assert not late.claimed, "there is nothing to send after the record"


@pytest.mark.parametrize(
    ("how", "standstill"),
    [(signal.SIGKILL, 300.0), (signal.SIGSTOP, 0.5)],
    ids=["killed: long before a standstill", "stopped: soon"],
)
def test_a_sender_that_is_struck_is_followed(
    how: signal.Signals, standstill: float, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A dead one as soon as the server comes to see that the connection is closed."""
    monkeypatch.setattr(external, "STANDSTILL", standstill)

    def sends() -> None:
        with make().session(epoch()) as session:
            assert session.claimed
            signal.raise_signal(how)

    with ended(fork(sends)) as struck:
        wait_until_struck(struck, how)
        until(lambda: alone(make()), "everybody waits for it", seconds=60)


def test_an_interval_is_found_whatever_number_its_epoch_has(make: Make) -> None:
    start = datetime(2013, 1, 1, tzinfo=UTC)
    sent = replace(epoch(3, token=10), interval=Interval(start, start + timedelta(days=1)))
    make().commit_checkpoint(sent, NoTransaction())
    record(make(), id=2, token=11)
    found = make().find_span(sent.span or "")
    assert found is not None and (found.epoch, found.token, found.span) == (3, 10, sent.span)
    assert make().find_span("2014") is None
    assert [one.epoch for one in make().newest()] == [3]
    assert sorted((one.epoch, one.span) for one in make().all()) == [(2, None), (3, sent.span)]


# --- the record before the rows --------------------------------------------------------------------------------------


@pytest.fixture
def begun(make: Make) -> Callable[[], BegunCommitter]:
    """Of one that records what begins, as each process makes its own."""
    BegunCommitter(make()).create_resource()
    return lambda: BegunCommitter(make())


def test_what_has_begun_proves_a_decision_and_no_other(
    begun: Callable[[], BegunCommitter],
) -> None:
    committer, at = begun(), epoch(7, token=12)
    with pytest.raises(RuntimeError), committer.session(at) as session:
        assert session.claimed
        raise RuntimeError
    for found in (committer.newest(), list(committer.all()), [committer.find_begun(7)]):
        assert [(one.epoch, one.token, one.manifest_hash) for one in found if one] == [(7, 12, at.manifest_hash)]
    assert committer.is_checkpoint_committed(7) is None
    with pytest.raises(LedgerConflict, match="epoch 7 is recorded as begun with manifest"):
        begun().session(epoch(7, token=13, manifest="b")).__enter__()


def test_only_one_of_many_begins(begun: Callable[[], BegunCommitter]) -> None:
    def begin() -> None:
        os._exit(40 if begun()._records.begin(epoch(token=os.getpid())) else 50)

    children = [fork(begin) for _ in range(6)]
    assert sorted(child.wait() for child in children) == [40] + [50] * 5


def test_what_was_recorded_as_cut_off_stays_so(begun: Callable[[], BegunCommitter]) -> None:
    """The sender stood still, and goes on once somebody has followed it."""
    for number, go_on in enumerate(("end", "take_back"), start=1):
        sender, follower, at = begun(), begun(), epoch(number, token=10 + number)
        assert sender._records.begin(at)
        with follower.session(epoch(number, token=20 + number)) as session:
            assert not session.claimed
        if go_on == "end":
            sender.commit_checkpoint(at, session)
        else:
            sender._records.take_back(at)
        looking = begun()
        for marker in (looking.is_checkpoint_committed(number), *looking.newest(), list(looking.all())[-1]):
            assert marker is not None and not marker.whole
            assert (marker.epoch, marker.token) == (number, 20 + number)
        with begun().session(at) as session:
            assert not session.claimed
        assert not begun()._records.begin(at)


# --- power cuts, in every state that fsyncs of a folder allow ---------------------------------------------------------


def send(disk: Path) -> None:
    """What a publisher does that has nothing else to do."""
    one = in_folder(disk / "out" / "sent")
    with one.session(epoch()) as session:
        if session.claimed:
            one.commit_checkpoint(epoch(), session)


def broken(disk: Path) -> tuple[int, list[str]]:
    disk.mkdir()
    with recorded(disk) as recording:
        recording.mark("begun")
        in_folder(disk / "out" / "sent").create_resource()
        id = in_folder(disk / "out" / "sent").resource_id()
        recording.mark("voted")
        send(disk)
        recording.mark("recorded")

    def check(state: CrashState) -> None:
        if "voted" in state.marks:
            assert in_folder(disk / "out" / "sent").resource_id() == id
            found = in_folder(disk / "out" / "sent").is_checkpoint_committed(1)
            assert found is None or found.manifest_hash == epoch().manifest_hash
            assert found or "recorded" not in state.marks, "what was recorded is gone"
        else:
            in_folder(disk / "out" / "sent").create_resource()
        send(disk)
        assert in_folder(disk / "out" / "sent").is_checkpoint_committed(1)
        in_folder(disk / "out" / "sent").create_resource()
        assert not list(disk.rglob("epoch=*~*"))

    return broken_states(recording, disk, check, BROKEN)


@pytest.mark.tier("all")
def test_after_a_power_cut_a_record_is_missing_or_whole(memory: Path) -> None:
    number, found = broken(memory / "disk")
    assert found == []
    assert number > 30


def begins_again(disk: Path) -> tuple[int, list[str]]:
    """Once a row may have gone out, no state may let anybody send another one."""
    disk.mkdir()

    def beforehand() -> BegunCommitter:
        return BegunCommitter(in_folder(disk / "out" / "sent"))

    beforehand().create_resource()
    with recorded(disk) as recording:
        with beforehand().session(epoch()) as session:
            assert session.claimed
            recording.mark("sending")
            beforehand().commit_checkpoint(epoch(), session)
        recording.mark("recorded")

    def check(state: CrashState) -> None:
        with beforehand().session(epoch(token=11)) as session:
            assert not (session.claimed and "sending" in state.marks), "it is sent twice"
            if session.claimed:
                beforehand().commit_checkpoint(epoch(token=11), session)
        marker = beforehand().is_checkpoint_committed(1)
        assert marker is not None, "nobody says what became of it"
        assert marker.whole or "recorded" not in state.marks, "what was sent whole is said to be cut off"

    return broken_states(recording, disk, check, BROKEN)


@pytest.mark.tier("all")
@pytest.mark.fault("E29")
def test_after_a_power_cut_nothing_begins_again(memory: Path) -> None:
    number, found = begins_again(memory / "disk")
    assert found == []
    assert number > 10


@pytest.mark.tier("all")
@pytest.mark.parametrize("forgotten", [stat.S_ISDIR, stat.S_ISREG], ids=["folders", "files"])
def test_a_forgotten_fsync_is_noticed(
    memory: Path, monkeypatch: pytest.MonkeyPatch, forgotten: Callable[[int], bool]
) -> None:
    monkeypatch.setattr(durable_file, "os", Forgetful(forgotten))
    for broken_by in (broken, begins_again):
        _, found = broken_by(memory / broken_by.__name__)
        assert found, broken_by.__name__
