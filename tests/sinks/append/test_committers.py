"""What remembers the epochs that were sent: once, whole, by whoever comes first, and never by guess."""

from __future__ import annotations

import shutil
import signal
import time
import uuid
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import pytest

from lockstep.epoch import Interval
from lockstep.errors import LedgerConflict, OutcomeUnknown, PreflightRefused, SinkUnavailable, TargetChanged
from lockstep.sinks.committers import NoTransaction, OutsideCommitter, open_committer
from lockstep.sinks.committers import _lone_sender as lone_sender
from lockstep.sinks.committers._table import PostgresCommitter
from lockstep.sinks.values import SinkContext
from lockstep.testing import calls_from
from lockstep.testing._children import ended, fork
from lockstep.testing._under_test import DEPLOYMENT, epoch
from stack.postgres import PostgresServer
from tests.sinks.postgres_target import execute

MODULES = [f"lockstep.sinks.{name}" for name in ("committers._folder", "committers._table", "durable_file")]
Make = Callable[..., OutsideCommitter]


@pytest.fixture(params=["folder", "table"])
def make(request: pytest.FixtureRequest, memory: Path, memory_server: PostgresServer) -> Make:
    """A committer as each process makes its own."""
    connections: dict[str, str] = {}
    setting = str(memory / "sent")
    if request.param == "table":
        setting = "postgres:records"
        connections["records"] = memory_server.create_database(f"sent_{uuid.uuid4().hex[:12]}")

    def made(sink: str = "feed", pipeline: str = "pipe") -> OutsideCommitter:
        return open_committer(sink, setting, SinkContext(DEPLOYMENT, pipeline, connections))

    made().create_resource()
    return made


def record(committer: OutsideCommitter, id: int = 1, token: int = 10, manifest: str = "a") -> None:
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


def test_a_process_that_is_killed_while_it_creates_leaves_nothing_for_good(memory: Path) -> None:
    committer = open_committer("feed", str(memory / "sent"), SinkContext(DEPLOYMENT, "pipe", {}))

    def work(left: int) -> None:
        steps = iter(range(left))
        calls_from(*MODULES)(lambda _: None if next(steps, None) is not None else _die())
        committer.create_resource()

    number = 0
    while fork(partial(work, number)).wait():
        number += 1
        committer.create_resource()
        assert not [left for left in (memory / "sent").rglob("*") if "~" in left.name]
        shutil.rmtree(memory / "sent")
    assert number > 8, "hardly a call was seen"


def test_a_folder_that_lost_its_id_is_another_target(memory: Path) -> None:
    committer = open_committer("feed", str(memory / "sent"), SinkContext(DEPLOYMENT, "pipe", {}))
    with pytest.raises(TargetChanged, match="mount or restore"):
        committer.resource_id()
    assert not (memory / "sent").exists(), "looking made it"
    committer.create_resource()
    (memory / "sent" / "id.json").write_text("{}")
    with pytest.raises(TargetChanged, match="damaged"):
        committer.resource_id()


def test_a_damaged_record_is_neither_sent_nor_unsent(memory: Path) -> None:
    committer = open_committer("feed", str(memory / "sent"), SinkContext(DEPLOYMENT, "pipe", {}))
    committer.create_resource()
    record(committer)
    [file] = (memory / "sent").rglob("epoch=1.json")
    whole = file.read_bytes()
    for damaged in (whole[:-10], whole.replace(b"10", b"11"), b""):
        file.write_bytes(damaged)
        with pytest.raises(OutcomeUnknown, match=r"epoch=1\.json is damaged"):
            committer.is_checkpoint_committed(1)


def test_a_folder_that_cannot_be_written_is_named(memory: Path) -> None:
    (memory / "sent").write_text("a file stands here")
    committer = open_committer("feed", str(memory / "sent"), SinkContext(DEPLOYMENT, "pipe", {}))
    with pytest.raises(SinkUnavailable, match="sent"):
        committer.create_resource()


@pytest.mark.parametrize("make", ["table"], indirect=True)
def test_a_table_that_a_crash_empties_is_refused(make: Make) -> None:
    committer = make()
    execute(_dsn(committer), "ALTER TABLE lockstep_sent SET UNLOGGED")
    with pytest.raises(PreflightRefused, match="SET LOGGED"):
        committer.create_resource()


@pytest.mark.parametrize("make", ["table"], indirect=True)
def test_a_database_without_the_table_is_another_target(make: Make) -> None:
    committer = make()
    execute(_dsn(committer), "DROP TABLE lockstep_sent")
    with pytest.raises(TargetChanged, match="has no lockstep_sent"):
        committer.resource_id()


def _dsn(committer: OutsideCommitter) -> str:
    assert isinstance(committer, PostgresCommitter)
    return committer._database.dsn


# --- one sender at a time --------------------------------------------------------------------------------------------


def alone(committer: OutsideCommitter) -> bool:
    with committer.session(epoch()) as session:
        return session.claimed


def test_while_one_sends_the_others_leave_it_to_it(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """Longer than a standstill: it beats."""
    monkeypatch.setattr(lone_sender, "STANDSTILL", 2.0)  # more than a busy machine keeps a thread waiting
    with make().session(epoch()) as session:
        assert session.claimed
        until = time.monotonic() + 1.5 * lone_sender.STANDSTILL
        while time.monotonic() < until:
            assert not alone(make()), "a second sender was let in beside one that lives"
            time.sleep(lone_sender.STANDSTILL / 5)
        with make().session(epoch(2)) as other:
            assert other.claimed
        make().commit_checkpoint(epoch(2), other)
    assert alone(make())
    with make().session(epoch(2)) as late:
        assert not late.claimed, "there is nothing to send after the record"


def _sends(make: Make, action: signal.Signals) -> None:
    with make().session(epoch()) as session:
        assert session.claimed
        signal.raise_signal(action)


def _until_alone(make: Make, seconds: float, otherwise: str) -> None:
    until = time.monotonic() + seconds
    while not alone(make()):
        assert time.monotonic() < until, otherwise
        time.sleep(0.05)


def test_a_dead_sender_is_followed_long_before_a_standstill(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """As soon as the server comes to see that the connection is closed."""
    monkeypatch.setattr(lone_sender, "STANDSTILL", 300.0)
    assert fork(lambda: _sends(make, signal.SIGKILL)).wait() == -signal.SIGKILL
    _until_alone(make, 30, "everybody waits for a dead sender")


def test_a_stopped_sender_is_followed_soon(make: Make) -> None:
    with ended(fork(lambda: _sends(make, signal.SIGSTOP))) as stopped:
        assert stopped.wait_until_stopped()
        assert not alone(make())
        _until_alone(make, 60, "everybody waits for a stopped sender")


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
