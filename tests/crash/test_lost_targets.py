"""A sink's target is lost between two epochs: unmounted, restored to an earlier moment, emptied, or another one."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path

import pyarrow as pa
import pytest

from lockstep.epoch import RunKey
from lockstep.errors import IllegalTransition, LedgerConflict, RestateRefused, TargetChanged
from lockstep.operations.doctor import Severity, Surroundings, examine
from lockstep.operations.renumber import renumber
from lockstep.operations.resolve import resolve
from lockstep.protocol.begin import begin
from lockstep.sinks import FileSink, FunctionSink
from lockstep.sinks.base import Sink
from lockstep.sinks.values import Publication, SinkEpoch
from lockstep.states import Role
from stack.postgres import PostgresServer
from tests.crash.originals import Originals, copied
from tests.crash.test_as_of import cut, expect
from tests.crash.world import World, interval_of, make_world, rows_of_day

_numbers = count(1)


def _run(day: int) -> RunKey:
    return RunKey("lost targets", f"{day} {next(_numbers)}")


@pytest.fixture(scope="module")
def originals(ledger_server: PostgresServer, tmp_path_factory: pytest.TempPathFactory) -> Originals[World]:
    """Day 0 is published. On the server that makes databases soonest: nothing here is about power or disks."""

    def make(protocol: str) -> World:
        ledger, warehouse = (f"lost_{kind}_{next(_numbers)}" for kind in ("ledger", "warehouse"))
        made = make_world(
            ledger_server.create_database(ledger),
            ledger_server.create_database(warehouse),
            tmp_path_factory.mktemp("lost"),
            protocol,  # type: ignore[arg-type]
        )
        made.run(_run(0), 0)
        return made

    return Originals(ledger_server, make)


@pytest.fixture
def world(request: pytest.FixtureRequest, originals: Originals[World]) -> World:
    return originals.copy(getattr(request, "param", "two_phase"))


@dataclass(frozen=True)
class Past:
    """What both targets were, when day 0 was all that they showed."""

    server: PostgresServer
    warehouse: str  #: DSN of the copy
    folder: Path

    @classmethod
    def of(cls, world: World, server: PostgresServer) -> Past:
        folder = world.folder / f"past_{next(_numbers)}"
        shutil.copytree(world.folder / "out", folder)
        return cls(server, copied(server, world.warehouse_dsn), folder)


@pytest.fixture
def past(world: World, ledger_server: PostgresServer) -> Past:
    """Day 1 is published since."""
    found = Past.of(world, ledger_server)
    world.run(_run(1), 1)
    return found


@contextmanager
def _instead(world: World, folder: Path | None) -> Iterator[World]:
    """Another folder, or an empty one as a mount point is, in the place of the files'."""
    out, away = world.folder / "out", world.folder / "away"
    out.rename(away)
    shutil.copytree(folder, out) if folder else out.mkdir()
    yield world
    shutil.rmtree(out)
    away.rename(out)


def _unmounted(world: World, past: Past) -> AbstractContextManager[World]:
    return _instead(world, None)


def _older_folder(world: World, past: Past) -> AbstractContextManager[World]:
    return _instead(world, past.folder)


@contextmanager
def _older_warehouse(world: World, past: Past) -> Iterator[World]:
    yield replace(world, warehouse_dsn=copied(past.server, past.warehouse))


@contextmanager
def _empty_warehouse(world: World, past: Past) -> Iterator[World]:
    empty = past.server.create_database(f"empty_{next(_numbers)}")
    world.execute(empty, "CREATE TABLE public.numbers (day bigint, number int, label text, lockstep_epoch bigint)")
    yield replace(world, warehouse_dsn=empty)


@contextmanager
def _other_warehouse(world: World, past: Past) -> Iterator[World]:
    other = copied(past.server, past.warehouse)
    world.execute(other, "UPDATE lockstep_target_id SET id = gen_random_uuid()")
    yield replace(world, warehouse_dsn=other)


Losing = Callable[[World, Past], AbstractContextManager[World]]
LOST: dict[str, tuple[str, Losing, type[Exception], str]] = {
    "an unmounted folder": ("files", _unmounted, TargetChanged, "target.json is missing .*mount or restore it"),
    "an older folder": ("files", _older_folder, LedgerConflict, "of epoch 2 .* the target has no marker"),
    "an older warehouse": ("warehouse", _older_warehouse, LedgerConflict, "of epoch 2 .* the target has no marker"),
    "an empty warehouse": ("warehouse", _empty_warehouse, TargetChanged, "the database has no .*lockstep_target_id"),
    "another warehouse": (
        "warehouse",
        _other_warehouse,
        TargetChanged,
        "leads to target .*, and epoch 2, ",
    ),
}


def _examined(world: World) -> list[str]:
    around = Surroundings(world.ledger_dsn, str(world.staging_folder), None, {"warehouse": world.warehouse_dsn})
    found = examine(around, "numbers")
    return [one.says for one in found if one.check == "sinks" and one.severity is Severity.BROKEN]


@pytest.mark.fault("L17")
def test_nothing_is_planned_for_a_target_that_lacks_what_was_published_there(
    world: World, past: Past, subtests: pytest.Subtests
) -> None:
    for how, (sink, lose, error, said) in LOST.items():
        asks = rf"{said}.*Nothing is planned .*lockstep renumber numbers --lacking {sink} "
        with subtests.test(how), lose(world, past) as lost:
            with pytest.raises(error, match=asks):
                begin(lost.runtime(), _run(2), interval_of(2))
            assert lost.state_of(2) is None
            assert any(f"--lacking {sink}" in one for one in _examined(lost))
            if lose is _unmounted:
                assert list((world.folder / "out").rglob("*")) == [], "nothing is made below a mount point"
    assert _examined(world) == []
    world.run(_run(2), 2)
    for day in range(3):
        world.require_exactly_once(day)


@pytest.mark.fault("L17")
@pytest.mark.parametrize("world", ["two_phase", "write_ahead"], indirect=True)
def test_a_target_that_is_lost_while_an_epoch_is_staged_gets_no_vote(
    world: World, past: Past, subtests: pytest.Subtests
) -> None:
    run = _run(2)
    world.run_until(run, 2, "stage")
    for how, (sink, lose, error, said) in LOST.items():
        with subtests.test(how), lose(world, past) as lost:
            with pytest.raises(error, match=said):
                lost.run_task(f"prepare.{sink}", run, 2)
            assert world._looking.participants("numbers", world.epoch_of(2).id)[sink].vote is None
            assert lose is not _unmounted or list((world.folder / "out").rglob("*")) == []
    world.run(run, 2, "prepare.warehouse")
    for day in range(3):
        world.require_exactly_once(day)


@pytest.mark.fault("L17")
@pytest.mark.sample(2)
@pytest.mark.parametrize(("sink", "lose", "error", "said"), LOST.values(), ids=LOST)
def test_a_person_says_that_what_is_lost_stays_away_and_it_goes_on(
    world: World, past: Past, sink: str, lose: Losing, error: type[Exception], said: str
) -> None:
    with lose(world, past) as lost:
        with pytest.raises(IllegalTransition, match=rf"{said}.*lockstep renumber numbers --lacking {sink} --reason"):
            renumber(lost.runtime(), "the ledger is fine")
        assert lose is not _unmounted or list((world.folder / "out").rglob("*")) == []
        with pytest.raises(error):
            begin(lost.runtime(), _run(2), interval_of(2))
        [told] = renumber(lost.runtime(), "nobody has a copy", lacking=[sink]).lacking
        assert (told.sink, told.epoch) == (sink, 2)
        assert _examined(lost) == []
        for day in (2, 3):
            lost.run(_run(day), day)
            lost.require_exactly_once(day)
        with pytest.raises(IllegalTransition, match=f"sink {sink} shows the last epoch"):
            renumber(lost.runtime(), "once more", lacking=[sink])
    with pytest.raises((TargetChanged, LedgerConflict), match=f"--lacking {sink} "):  # that one lacks the newer days
        begin(world.runtime(), _run(4), interval_of(4))


@pytest.mark.fault("L17")
def test_the_last_epoch_is_the_one_that_was_shown_last_whatever_its_number(
    world: World, ledger_server: PostgresServer
) -> None:
    behind = _run(1)
    world.run_until(behind, 1, "begin")
    world.run(_run(2), 2)
    past = Past.of(world, ledger_server)
    world.run(behind, 1, "stage")
    for lose in (_older_folder, _older_warehouse):
        with lose(world, past) as lost, pytest.raises(LedgerConflict, match=r"of epoch 2 .* the target has no marker"):
            begin(lost.runtime(), _run(3), interval_of(3))
    world.run(_run(3), 3)
    world.require_exactly_once(3)


@pytest.mark.fault("L17")
@pytest.mark.parametrize(("how", "decided"), [("an older folder", 1), ("an older warehouse", 3)])
def test_what_is_shown_after_the_loss_hides_no_hole(world: World, past: Past, how: str, decided: int) -> None:
    """A decided epoch is shown wherever its sink leads; its own transaction, if there was one, was lost, too."""
    sink, lose, error, said = LOST[how]
    days = range(2, 2 + decided)
    runs = {day: _run(day) for day in days}
    for task in world.tasks()[: world.tasks().index("commit") + 1]:
        for day in days:
            world.run_task(task, runs[day], day)
    with lose(world, past) as lost:
        assert lost.recover().problems == []
        assert {lost.publications(day)[sink] for day in days} <= {Publication.REPAIRED, Publication.SENT}
        with pytest.raises(error, match=said):
            begin(lost.runtime(), _run(5), interval_of(5))
        renumber(lost.runtime(), "nobody has a copy", lacking=[sink])
        renumber(lost.runtime(), "a look at something else takes no word back")
        for day in (5, 6):
            lost.run(_run(day), day)
            lost.require_exactly_once(day)


@pytest.mark.fault("P2")
def test_a_loss_is_seen_behind_whatever_epochs_the_sink_has_no_part_in(world: World, past: Past) -> None:
    """Undecided, given up, or of a time when the pipeline had other sinks: none of them tells of the target."""
    world.execute(
        world.ledger_dsn,
        "SET session_replication_role = replica;"
        " INSERT INTO lockstep.epoch (pipeline, id, span, state, attempt, plan, wal, manifest_hash)"
        " SELECT 'numbers', n + 2,"
        " tstzrange(lower(e.span) + n * interval '1000 d', upper(e.span) + n * interval '1000 d'),"
        " (ARRAY['planned', 'void', 'cleaned'])[n %% 3 + 1], n, e.plan - 'sinks' || '{\"sinks\": {}}', 'w',"
        " repeat('a', 64)"
        " FROM generate_series(1, 40) n, lockstep.epoch e WHERE e.id = 2;"
        " UPDATE lockstep.pipeline SET last_epoch = 42",
    )
    for how in ("an older folder", "an empty warehouse"):
        _, lose, error, said = LOST[how]
        with lose(world, past) as lost, pytest.raises(error, match=said):
            begin(lost.runtime(), _run(2), interval_of(2))
    begin(world.runtime(), _run(2), interval_of(2))


def _restating(day: int, why: str) -> RunKey:
    return RunKey("lost targets", f"{day} {next(_numbers)}", restate=why)


@pytest.mark.fault("P3", "P4")
@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("world", "how"),
    [
        ("two_phase", "an older folder"),
        ("two_phase", "an older warehouse"),
        ("write_ahead", "an older warehouse"),
        ("write_ahead", "an empty warehouse"),
        ("two_phase", "an unmounted folder"),
    ],
    indirect=["world"],
)
def test_what_a_target_has_lost_is_written_again_by_a_persons_word(world: World, past: Past, how: str) -> None:
    """The older ones show the original of day 0, which was restated since."""
    world.run(_restating(0, "a file was corrected"), 0)
    sink, lose, error, _ = LOST[how]
    with lose(world, past) as lost:
        for day in (0, 1):
            with pytest.raises((error, RestateRefused), match=f"lockstep renumber numbers --lacking {sink} "):
                begin(lost.runtime(), _restating(day, "it was lost"), interval_of(day))
        assert f"lockstep renumber numbers --lacking {sink} " in cut(lost).unreadable[sink]
        renumber(lost.runtime(), "nobody has a copy", lacking=[sink])
        lost.run(_run(2), 2)
        expect(lost, cut(lost), 2)  # not day 1, which one of them lacks, nor either life of day 0
        for day, shown in ((0, [0, 2]), (1, [0, 1, 2]), (0, [0, 1, 2])):
            lost.run(_restating(day, "it was lost"), day)
            expect(lost, cut(lost), *shown)
        for day in range(3):
            lost.require_exactly_once(day)
        assert lost.recover().problems == [] and _examined(lost) == []


@pytest.mark.fault("P3", "P10")
@pytest.mark.parametrize("gone", ["out/**/*epoch=2*", "out/.lockstep/*epoch=2*"], ids=["all", "the marker"])
def test_a_hole_far_behind_is_filled_by_a_persons_word(world: World, past: Past, gone: str) -> None:
    world.run(_run(2), 2)
    for marker in [*world.folder.glob(gone), *world.folder.glob("out/**/2.json")]:
        marker.unlink()
    with pytest.raises(RestateRefused, match=r"no marker of it.*lockstep renumber numbers --lacking files "):
        begin(world.runtime(), _restating(1, "somebody deleted it"), interval_of(1))
    renumber(world.runtime(), "somebody deleted it", lacking=["files"])
    with pytest.raises(IllegalTransition, match=r"sink files shows the last epoch .* and every earlier one"):
        renumber(world.runtime(), "once more", lacking=["files"])
    world.run(_restating(1, "somebody deleted it"), 1)
    for place, shown in world.shown().items():
        assert shown == {day: Counter(rows_of_day(day)) for day in range(3)}, place


@pytest.mark.fault("P16")
def test_the_marker_of_a_replaced_epoch_is_missed_where_nobody_has_said_that_it_is_lost(world: World) -> None:
    run = _run(2)
    world.run(run, 2)
    world.run(_restating(2, "a file was corrected"), 2)
    world.run_task("publish.warehouse", run, 2)
    world.execute(world.warehouse_dsn, "DELETE FROM lockstep_marker WHERE epoch = 2")
    with pytest.raises(LedgerConflict, match=r"epoch 2 .* is published in sink warehouse by the ledger, .* no marker"):
        world.run_task("publish.warehouse", run, 2)


@pytest.mark.fault("P26")
@pytest.mark.parametrize("world", ["write_ahead"], indirect=True)
def test_what_a_person_has_resolved_as_applied_is_written_there_by_another_word(world: World) -> None:
    other = "UPDATE lockstep_target_id SET id = translate(id::text, '01', '10')::uuid"  # and back
    world.run_until(_run(1), 1, "commit")
    world.execute(world.warehouse_dsn, other)
    resolve(world.runtime(), 2, "warehouse", "applied", "I looked")
    world.execute(world.warehouse_dsn, other)
    world.recover()
    renumber(world.runtime(), "it isn't there", lacking=["warehouse"])
    world.run(_restating(1, "it isn't there"), 1)
    world.require_exactly_once(1)


@pytest.mark.fault("P24")
def test_a_word_covers_no_epoch_that_was_undecided_then(world: World, past: Past) -> None:
    world.run_until(run := _run(3), 3, "begin")
    with _older_folder(world, past) as lost:
        renumber(lost.runtime(), "nobody has a copy", lacking=["files"])
        lost.run(run, 3)
        lost.run(_restating(3, "a file was corrected"), 3)
        (world.folder / "out" / ".lockstep" / "epoch=3.json").unlink()
        with pytest.raises(LedgerConflict, match=r"epoch 3 .* no marker"):
            lost.run_task("publish.files", run, 3)


@pytest.mark.fault("P6", "P9")
def test_what_was_lost_is_replaced_day_by_day_and_its_run_cleared(world: World, past: Past) -> None:
    run = _run(2)
    world.run(run, 2)
    with _older_folder(world, past) as lost:
        renumber(lost.runtime(), "nobody has a copy", lacking=["files"])
        for again, day in ((_restating(2, "it was lost"), 2), (run, 2), (_restating(1, "it was lost"), 1)):
            lost.run(again, day)
            lost.require_exactly_once(day)
        assert lost.recover().problems == []
        shutil.rmtree(world.folder / "out")
        shutil.copytree(past.folder, world.folder / "out")  # what has replaced them is lost, too
        for again, task, day in ((run, "publish.files", 2), (_run(3), "begin", 3)):
            with pytest.raises(LedgerConflict, match=r"epoch [45] .* the target (holds|has) no marker"):
                lost.run_task(task, again, day)


@pytest.mark.fault("L17")
def test_sinks_that_are_lost_together_are_said_to_be_by_one_command(world: World, past: Past) -> None:
    with _older_folder(world, past) as half, _older_warehouse(half, past) as lost:
        for lacking in ([], ["files"], ["warehouse"]):
            with pytest.raises(IllegalTransition, match=r"numbers --lacking files --lacking warehouse --reason"):
                renumber(lost.runtime(), "one server", lacking=lacking)
        with pytest.raises(IllegalTransition, match="numbers has no sink warehuose, but files, warehouse"):
            renumber(lost.runtime(), "one server", lacking=["files", "warehuose"])
        renumber(lost.runtime(), "one server", lacking=["files", "warehouse"])
        lost.run(_run(2), 2)
        lost.require_exactly_once(2)


def take(batch: pa.RecordBatch, epoch: SinkEpoch) -> None:
    """What a `FunctionSink` does that keeps nothing."""


def _more(world: World, *sinks: Sink) -> World:
    return replace(world, pipeline=replace(world.pipeline, sinks=[*world.pipeline.sinks[:2], *sinks]))


@pytest.mark.fault("L17")
def test_no_alarm_is_given_where_nothing_is_lost(world: World, past: Past) -> None:
    """A sink that joins later, one that keeps no record, one that the definition takes elsewhere, a person's word."""
    folder = world.folder / "later"
    later = _more(
        world,
        FileSink("later", output="numbers", path=str(folder)),
        FunctionSink("nobody", output="numbers", function=f"{__name__}:take"),
    )
    for day in (2, 3):
        later.run(_run(day), day)
    elsewhere = _more(world, FileSink("later", output="numbers", path=str(world.folder / "elsewhere")))
    for day in (4, 5):
        elsewhere.run(_run(day), day)
    run = _run(6)
    elsewhere.run_until(run, 6, "publish.files")
    epoch, vote = world.epoch_of(6), world._looking.participants("numbers", world.epoch_of(6).id)["later"].vote
    assert vote is not None
    said = Publication.RESOLVED.value, Role.OPERATOR, "I looked"
    world._looking.record_publication(epoch, "later", vote.token, *said, unproven="a person has said so")
    elsewhere.run_until(_run(7), 7, "begin")
    assert _examined(elsewhere) == []
