"""A job that `stage` leaves to itself: what the same try seals later, and what nobody ever does."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from lockstep import crash
from lockstep.crash import CrashInjected, CrashPoint
from lockstep.epoch import Epoch, RunKey
from lockstep.errors import Fenced, JobAtWork, SourceChanged, StageFailed
from lockstep.launchers import JobState
from lockstep.ledger import Ledger
from lockstep.protocol.runtime import Runtime
from lockstep.protocol.stage import Leaving, stage
from lockstep.protocol.stage_job import Launch
from lockstep.wal.request import JOB, has_ended, is_requested, read_request, write_error
from tests.crash.world import Numbers, OpenNumbers, World, write_others, write_parquet


@contextmanager
def meanwhile_at(place: CrashPoint, act: Callable[[], object]) -> Iterator[None]:
    """Another process comes along, once, where this one has come to the place."""
    struck: list[CrashPoint] = []

    def strike(point: CrashPoint) -> None:
        if point is place and not struck:
            struck.append(point)
            act()

    forget = crash.observe(strike)
    try:
        yield
    finally:
        forget()


@dataclass
class Cluster:
    """Takes jobs and does nothing before it is told to."""

    requests: dict[str, str] = field(default_factory=dict)
    states: dict[str, JobState] = field(default_factory=dict)
    cancelled: list[str] = field(default_factory=list)

    def launch(self, request_uri: str) -> str:
        handle = f"job {len(self.requests) + 1}"
        self.requests[handle] = request_uri
        return handle

    def state(self, handle: str) -> JobState:
        return self.states.get(handle, JobState.RUNNING)

    def cancel_job(self, handle: str) -> None:
        self.cancelled.append(handle)

    def work(self, handle: str, job: Launch = write_parquet) -> None:
        """Do what the job has to, and end it."""
        job(self.requests[handle])
        self.states[handle] = JobState.SUCCEEDED


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


@pytest.fixture
def day(world: World) -> Iterator[int]:
    """Of an epoch that is begun."""
    found = next(world.days)
    world.run_task("begin", _run(found), found)
    yield found
    world.require_tidy()


def _run(day: int) -> RunKey:
    return RunKey("left", f"run {day}")


def _runtime(world: World, number: int) -> Runtime:
    """A process of the try of this number."""
    return replace(world.runtime(), ledger=Ledger(world.ledger_dsn, f"airflow:left/run/stage#{number}"))


def look(world: World, day: int, cluster: Cluster, number: int = 1, *, new: bool = True) -> Epoch:
    """What the task does whenever it runs; `number`: of its try."""

    def unexpected(request_uri: str) -> None:
        raise AssertionError("it is to be left to itself")

    runtime = _runtime(world, number)
    try:
        return stage(runtime, _run(day), unexpected, "m:p", leaving=Leaving(cluster, new=new))
    finally:
        runtime.ledger.close()


def leave(world: World, day: int, cluster: Cluster, number: int = 1) -> tuple[str, int]:
    """Handle and token of a job that is left."""
    with pytest.raises(JobAtWork) as left:
        look(world, day, cluster, number)
    handle = list(cluster.requests)[-1]
    assert left.value.places == (cluster.requests[handle],)
    return handle, read_request(cluster.requests[handle]).token


def finish(world: World, day: int) -> None:
    world.run(_run(day), day, start=world.tasks()[world.tasks().index("stage") + 1])
    world.require_exactly_once(day)
    assert world.state_of(day) == "cleaned"


def test_what_the_job_wrote_is_sealed_by_a_later_process_of_the_same_try(
    world: World, day: int, cluster: Cluster
) -> None:
    handle, token = leave(world, day, cluster)
    for new in (True, False):
        with pytest.raises(JobAtWork, match=f"{handle}, of execution {token}, is at work"):
            look(world, day, cluster, new=new)
    cluster.work(handle)
    sealed = look(world, day, cluster, new=False)
    assert sealed.wal is not None and sealed.wal.endswith(f"/{token}")
    assert list(cluster.requests) == [handle] and not cluster.cancelled
    finish(world, day)


@pytest.mark.fault("B24")
def test_another_try_cancels_what_was_left_and_seals_its_own_whatever_the_older_one_still_writes(
    world: World, day: int, cluster: Cluster
) -> None:
    older, _ = leave(world, day, cluster)
    younger, token = leave(world, day, cluster, 2)
    assert cluster.cancelled == [older]
    cluster.work(older, write_others)
    with pytest.raises(JobAtWork, match=younger):
        look(world, day, cluster, 2)
    cluster.work(younger)
    assert str(look(world, day, cluster, 2).wal).endswith(f"/{token}")
    finish(world, day)


@pytest.mark.fault("B24")
def test_of_two_processes_of_one_try_that_seal_at_once_one_does(
    world: World, day: int, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOCKSTEP_TESTING", "1")
    handle, token = leave(world, day, cluster)
    cluster.work(handle)
    meanwhile: list[Epoch] = []
    with meanwhile_at(CrashPoint.STAGE_BEFORE_MANIFEST, lambda: meanwhile.append(look(world, day, cluster))):
        found = look(world, day, cluster)
    assert found.wal == meanwhile[0].wal and str(found.wal).endswith(f"/{token}")
    assert list(cluster.requests) == [handle]
    finish(world, day)


@pytest.mark.fault("B24")
def test_a_process_that_meets_another_one_of_its_try_dead_at_the_seal_stages_anew(
    world: World, day: int, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOCKSTEP_TESTING", "1")
    handle, token = leave(world, day, cluster)
    cluster.work(handle)

    def die() -> None:
        with monkeypatch.context() as patch, pytest.raises(CrashInjected):
            patch.setenv("LOCKSTEP_CRASH", f"{CrashPoint.STAGE_AFTER_MANIFEST}:raise")
            look(world, day, cluster)

    told = f"another process of this try seals execution {token}, or died"
    with meanwhile_at(CrashPoint.STAGE_BEFORE_MANIFEST, die), pytest.raises(JobAtWork, match=told) as met:
        look(world, day, cluster)
    assert met.value.places == (), "where the triggerer would see its end at once"
    leave(world, day, cluster)
    cluster.work(list(cluster.requests)[-1])
    look(world, day, cluster)
    finish(world, day)


@pytest.mark.fault("B24")
def test_a_process_that_was_stopped_cancels_no_job_of_a_younger_try(
    world: World, day: int, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOCKSTEP_TESTING", "1")
    younger: list[str] = []
    with meanwhile_at(CrashPoint.STAGE_AFTER_TOKEN, lambda: younger.append(leave(world, day, cluster, 2)[0])):
        leave(world, day, cluster, 1)
    assert cluster.cancelled == []
    cluster.work(younger[0])
    look(world, day, cluster, 2)
    finish(world, day)


@pytest.mark.fault("B24")
def test_a_job_is_believed_by_what_it_left_and_never_by_what_is_told_of_it(
    world: World, day: int, cluster: Cluster
) -> None:
    handle, _ = leave(world, day, cluster)
    cluster.states[handle] = JobState.SUCCEEDED
    with pytest.raises(StageFailed, match=f"{handle}, of execution .*, has succeeded without a word"):
        look(world, day, cluster)
    second, _ = leave(world, day, cluster, 2)
    cluster.work(second)
    cluster.states[second] = JobState.FAILED
    assert look(world, day, cluster, 2).wal is not None
    finish(world, day)


def test_a_job_that_ends_between_two_looks_at_it_is_sealed(
    world: World, day: int, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    handle, token = leave(world, day, cluster)

    def end(asked: str) -> JobState:
        cluster.work(asked)
        return JobState.SUCCEEDED

    monkeypatch.setattr(cluster, "state", end)
    assert str(look(world, day, cluster).wal).endswith(f"/{token}")
    assert list(cluster.requests) == [handle]
    finish(world, day)


def test_a_job_that_failed_says_why_whatever_is_told_of_it(world: World, day: int, cluster: Cluster) -> None:
    handle, _ = leave(world, day, cluster)
    assert not has_ended(cluster.requests[handle])
    write_error(cluster.requests[handle], SourceChanged("the file is another one"))
    assert has_ended(cluster.requests[handle])
    with pytest.raises(SourceChanged, match="the file is another one"):
        look(world, day, cluster)
    world.run_task("abort", _run(day), day)


def test_a_result_that_another_definition_was_asked_for_is_thrown_away(
    world: World, day: int, cluster: Cluster
) -> None:
    handle, token = leave(world, day, cluster)
    cluster.work(handle)
    runtime = _runtime(world, 1)
    with pytest.raises(JobAtWork):
        stage(runtime, _run(day), write_parquet, "moved:pipeline", leaving=Leaving(cluster))
    _, own = list(cluster.requests)
    cluster.work(own)
    sealed = stage(runtime, _run(day), write_parquet, "moved:pipeline", leaving=Leaving(cluster))
    assert sealed.wal is not None and int(sealed.wal.rpartition("/")[2]) > token
    runtime.ledger.close()
    finish(world, day)


def test_input_that_changed_while_the_job_worked_is_not_sealed(
    world: World, day: int, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Changed(OpenNumbers):
        def check(self, start: object, end: object) -> None:
            raise SourceChanged("rows were corrected")

    handle, _ = leave(world, day, cluster)
    cluster.work(handle)
    with monkeypatch.context() as patch:
        patch.setattr(Numbers, "open", lambda self, context: Changed())
        with pytest.raises(SourceChanged, match="rows were corrected"):
            look(world, day, cluster)
    assert world.epoch_of(day).wal is None
    world.run_task("abort", _run(day), day)


def test_an_attempt_that_is_void_seals_nothing_and_then_takes_the_request_away(
    world: World, day: int, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOCKSTEP_TESTING", "1")
    handle, _ = leave(world, day, cluster)
    found: list[bool] = []

    def find_out() -> None:
        found.append(is_requested(cluster.requests[handle]))
        with pytest.raises(Fenced):
            look(world, day, cluster)

    with meanwhile_at(CrashPoint.ABORT_AFTER_RAISE, find_out):
        world.run_task("abort", _run(day), day)
    assert found == [True], "its job is at work and its folder stands"
    assert not is_requested(cluster.requests[handle]), "by which the job's driver ends"
    with pytest.raises(Fenced):
        look(world, day, cluster)


def test_a_new_attempt_takes_nothing_up_that_an_older_one_has_left(world: World, day: int, cluster: Cluster) -> None:
    older, _ = leave(world, day, cluster)
    world.run_task("begin", _run(day), day)  # cleared from there
    younger, token = leave(world, day, cluster)
    assert younger != older
    cluster.work(younger)
    assert str(look(world, day, cluster).wal).endswith(f"/{token}")
    finish(world, day)


@pytest.mark.fault("B24")
@pytest.mark.parametrize("point", [CrashPoint.STAGE_AFTER_LAUNCH, CrashPoint.STAGE_AFTER_NOTE])
def test_a_try_that_dies_around_the_note_is_as_if_it_had_never_launched(
    world: World, day: int, cluster: Cluster, point: CrashPoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOCKSTEP_TESTING", "1")
    monkeypatch.setenv("LOCKSTEP_CRASH", f"{point}:raise")
    with pytest.raises(CrashInjected):
        look(world, day, cluster)
    [dead] = cluster.requests
    folder = Path(cluster.requests[dead].removeprefix("file://")).parent
    assert (folder / JOB).exists() == (point is CrashPoint.STAGE_AFTER_NOTE)
    own, token = leave(world, day, cluster, 2)
    assert cluster.cancelled == ([dead] if point is CrashPoint.STAGE_AFTER_NOTE else [])
    cluster.work(dead, write_others)
    cluster.work(own)
    assert str(look(world, day, cluster, 2).wal).endswith(f"/{token}")
    finish(world, day)
