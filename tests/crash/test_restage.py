"""A decided epoch whose WAL is damaged is staged again, and goes on only if the rows are the sealed ones."""

from __future__ import annotations

import shutil
from collections import Counter
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from lockstep import crash
from lockstep.crash import CrashPoint
from lockstep.epoch import Epoch, Position, RunKey
from lockstep.errors import IllegalTransition, RestageRefused, SourceChanged, WalCorrupt
from lockstep.operations.verify import verify
from lockstep.protocol.restage import restage
from lockstep.protocol.stage_job import Launch
from lockstep.protocol.sweep import sweep_folders
from lockstep.sinks.append_only.lines import StdoutSink
from lockstep.sources import OpenSource, SourceContext
from tests.crash.victims import Action, hits_of, sacrifice
from tests.crash.world import Numbers, OpenNumbers, World, flip_a_bit, write_backwards, write_others, write_parquet
from tests.sampling import Sampling

DAMAGES = ("flipped", "no file", "no manifest", "no folder")


def _run(day: int) -> RunKey:
    return RunKey("restage", f"run {day}")


def damaged(world: World, damage: str = "flipped", last: str = "commit") -> int:
    """A decided epoch without branches, whose WAL is damaged."""
    day = next(world.days)
    world.run_until(_run(day), day, last)
    for gid in world.prepared():
        world.roll_back(gid)
    shutil.rmtree(world.folder / "out" / ".lockstep" / str(_vote_of(world, day, "files")))
    _damage(world, day, damage)
    return day


def _vote_of(world: World, day: int, sink: str) -> int:
    [(token,)] = world.execute(
        world.ledger_dsn,
        "SELECT token FROM lockstep.participant WHERE epoch = %s AND sink = %s",
        (world.epoch_of(day).id, sink),
    )
    return int(token)


def _damage(world: World, day: int, damage: str) -> None:
    epoch = world.epoch_of(day)
    folder = world.staging_folder / str(epoch.restaged.wal if epoch.restaged else epoch.wal)
    file = folder / "numbers" / "part-00000.parquet"
    match damage:
        case "flipped":
            flip_a_bit(file)
        case "no file":
            file.unlink()
        case "no manifest":
            (folder / "_manifest.json").unlink()
        case "no folder":
            shutil.rmtree(folder)


def _restage(world: World, day: int, job: Launch = write_parquet) -> Epoch:
    return restage(world.runtime(), world.epoch_of(day).id, job, "its disk was bad")


def _finish(world: World, day: int) -> None:
    world.run(_run(day), day, start="publish.warehouse")
    world.require_exactly_once(day)
    assert world.state_of(day) == "cleaned"
    found = verify(world.runtime(), world.epoch_of(day))
    assert found and all(one.agrees for one in found)
    world.require_tidy()


@pytest.mark.fault("L12")
@pytest.mark.sample(2)
@pytest.mark.parametrize("job", [write_parquet, write_backwards], ids=["the same files", "another order"])
@pytest.mark.parametrize("damage", DAMAGES)
def test_a_decided_epoch_whose_wal_is_damaged_is_staged_again_and_published(
    world: World, damage: str, job: Launch
) -> None:
    day = damaged(world, damage)
    decided = world.epoch_of(day)
    for sink in ("warehouse", "files"):
        with pytest.raises(WalCorrupt, match=f"lockstep restage numbers {decided.id} --reason"):
            world.run_task(f"publish.{sink}", _run(day), day)
    changed = _restage(world, day, job)
    assert replace(changed, restaged=None) == decided, "the decision stays as it is"
    _finish(world, day)
    [(reason, role)] = world.execute(
        world.ledger_dsn,
        "SELECT reason, role FROM lockstep.transition WHERE epoch = %s AND source_state = target_state AND sink IS NULL"
        " AND source_state = 'committed'",
        (decided.id,),
    )
    assert (reason, role) == ("its disk was bad", "operator")


@pytest.mark.fault("L12")
def test_a_decided_epoch_never_goes_on_from_other_rows_than_were_sealed(world: World) -> None:
    day = damaged(world)
    decided = world.epoch_of(day)
    with pytest.raises(RestageRefused, match="other rows came out"):
        _restage(world, day, write_others)
    assert world.epoch_of(day) == decided
    with pytest.raises(WalCorrupt):
        world.run_task("publish.files", _run(day), day)
    world.require_nothing_shown(day)
    _restage(world, day)
    _finish(world, day)


class Changed(Numbers):
    def open(self, context: SourceContext) -> OpenSource:
        return OpenChanged()


class OpenChanged(OpenNumbers):
    def check(self, start: Position | None, end: Position) -> None:
        raise SourceChanged("the file is another one")


def test_a_source_that_has_changed_is_never_staged_again(world: World) -> None:
    day = damaged(world)
    changed = replace(world, pipeline=replace(world.pipeline, sources={"numbers": Changed()}))
    with pytest.raises(SourceChanged):
        _restage(changed, day)
    assert world.epoch_of(day).restaged is None
    _restage(world, day)
    _finish(world, day)


def test_only_a_committed_epoch_whose_wal_is_damaged_is_staged_again(world: World) -> None:
    day = next(world.days)
    world.run_until(_run(day), day, "prepare.files")
    with pytest.raises(IllegalTransition, match="it is staged"):
        _restage(world, day)
    world.run_task("commit", _run(day), day)
    with pytest.raises(IllegalTransition, match="as it was sealed"):
        _restage(world, day)
    world.run(_run(day), day, start="publish.warehouse")
    with pytest.raises(IllegalTransition, match="every sink shows it"):
        _restage(world, day)


def test_what_was_staged_again_may_be_damaged_and_staged_again(world: World) -> None:
    day = damaged(world)
    first = _restage(world, day, write_backwards).restaged
    _damage(world, day, "no file")
    with pytest.raises(WalCorrupt, match="lockstep restage"):
        world.run_task("publish.warehouse", _run(day), day)
    second = _restage(world, day).restaged
    assert first and second and first.wal != second.wal
    _finish(world, day)


def test_a_sink_that_published_from_the_damaged_wal_has_the_same_rows_as_one_that_comes_later(world: World) -> None:
    day = damaged(world, last="publish.warehouse")
    _restage(world, day, write_backwards)
    _finish(world, day)


@pytest.mark.parametrize("world", ["two_phase", "write_ahead"], indirect=True)
def test_a_stage_that_is_run_again_stages_a_damaged_decided_epoch_again_if_its_wal_is_needed(world: World) -> None:
    day = next(world.days)
    world.run_until(_run(day), day, "commit")
    needed = world.protocol == "write_ahead"
    _damage(world, day, "flipped")
    world.run_task("stage", _run(day), day)
    changed = world.epoch_of(day).restaged
    assert (changed is not None) == needed
    world.run_task("stage", _run(day), day)
    assert world.epoch_of(day).restaged == changed, "once is enough"
    assert sweep_folders(world.runtime()) == 0
    _finish(world, day)


@pytest.mark.fault("L12")
def test_two_who_stage_again_at_once_leave_one_wal(world: World) -> None:
    day = damaged(world)

    def overtaken(request_uri: str) -> None:
        write_backwards(request_uri)
        _restage(world, day)

    late = _restage(world, day, overtaken)
    assert late.restaged is not None and not late.restaged.reordered, "the one that was recorded first"
    _finish(world, day)


ACTIONS: list[Action] = ["kill", "hang"]


@pytest.mark.fault("L12")
@pytest.mark.parametrize("action", ACTIONS)
def test_a_restage_that_dies_or_is_overtaken_anywhere_leaves_every_row_once(
    world: World,
    action: Action,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    subtests: pytest.Subtests,
    sampling: Sampling,
) -> None:
    monkeypatch.setenv("LOCKSTEP_TESTING", "1")
    reached: Counter[CrashPoint] = Counter()
    day = damaged(world)
    stop = crash.observe(lambda point: reached.update([point]))
    world.run_task("restage", _run(day), day)
    stop()
    monkeypatch.delenv("LOCKSTEP_TESTING")
    _finish(world, day)
    hits = hits_of("restage", reached)
    assert {hit.point for hit in hits} >= {point for point in CrashPoint if point.startswith("restage.")}
    for hit in sampling.share(hits, 2 * ACTIONS.index(action), 2 * len(ACTIONS)):
        with subtests.test(str(hit)):
            day = damaged(world)
            task = ("restage", partial(world.run_task, "restage", _run(day), day, write_backwards))
            victim = sacrifice([task], hit, action, tmp_path / "victim.log")
            assert victim.struck
            if world.epoch_of(day).restaged is None:
                _restage(world, day)
            world.run(_run(day), day, start="publish.warehouse")
            if action == "hang":
                victim.release()
                assert victim.alarm is None
            assert world.recover().problems == []
            world.require_exactly_once(day)
            world.require_tidy()


# --- sinks that know a row by its place ---


def _with_stdout(world: World) -> World:
    out = StdoutSink("out", output="numbers", committer=str(world.folder / "sent"))
    return replace(world, pipeline=replace(world.pipeline, sinks=[*world.pipeline.sinks, out]))


@pytest.mark.fault("L12")
@pytest.mark.parametrize("world", ["two_phase"], indirect=True)
def test_rows_in_another_order_are_never_sent_where_sending_has_begun(world: World, tmp_path: Path) -> None:
    world = _with_stdout(world)
    day = next(world.days)
    world.run_until(_run(day), day, "commit")
    [hit] = hits_of("publish.out", Counter([CrashPoint.PUBLISH_BEFORE_SINK]))
    task = ("publish.out", partial(world.run_task, "publish.out", _run(day), day))
    assert sacrifice([task], hit, "kill", tmp_path / "log").killed
    _damage(world, day, "flipped")
    with pytest.raises(RestageRefused, match="publishing to out has begun"):
        _restage(world, day, write_backwards)
    assert world.epoch_of(day).restaged is None
    changed = _restage(world, day)
    assert changed.restaged and not changed.restaged.reordered
    _finish(world, day)


@pytest.mark.fault("L12")
@pytest.mark.parametrize("world", ["two_phase"], indirect=True)
def test_nothing_of_a_damaged_wal_is_sent_so_that_it_can_be_staged_again_in_any_order(
    world: World, capfd: pytest.CaptureFixture[str]
) -> None:
    world = _with_stdout(world)
    day = next(world.days)
    world.run_until(_run(day), day, "commit")
    path = world.staging_folder / str(world.epoch_of(day).wal) / "numbers" / "part-00001.parquet"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(WalCorrupt):
        world.run_task("publish.out", _run(day), day)
    assert f"row 1 of day {day}" not in capfd.readouterr().out
    assert _restage(world, day, write_backwards).restaged
    _finish(world, day)
    assert f"row 1 of day {day}" in capfd.readouterr().out
