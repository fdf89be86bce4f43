"""The pipeline's definition changes while epochs of the old one are about."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType
from typing import Any

import pytest

from lockstep.epoch import Interval, Position, RunKey
from lockstep.errors import IllegalTransition, PlanMismatch, PreflightRefused, RestateRefused, SourceChanged
from lockstep.operations.override import clear_override, override
from lockstep.operations.replan import replan, replan_for, void
from lockstep.pipeline import Pipeline
from lockstep.protocol.begin import begin
from lockstep.protocol.planned_sinks import find_redefined
from lockstep.protocol.publish import publish_shard
from lockstep.run import report_of
from lockstep.sinks.base import Sink
from lockstep.sinks.files import FileSink
from lockstep.sinks.postgres import PostgresSink
from lockstep.sinks.postgres.dialect import PostgresDialect
from lockstep.sources import OpenSource, SourceContext
from tests.crash.world import Numbers, OpenNumbers, Tens, World, interval_of, untouched


def _with_sinks(world: World, *sinks: Sink) -> World:
    old = world.pipeline
    return replace(world, pipeline=Pipeline(old.name, old.sources, old.transform, sinks))


def test_a_sink_that_came_later_is_no_business_of_a_decided_epoch(world: World) -> None:
    day = next(world.days)
    world.run(RunKey("old", f"{day}"), day)
    more = FileSink("more", output="numbers", path=str(world.folder / "more"), format="csv")
    later = _with_sinks(world, *world.pipeline.sinks, more)
    later.run(RunKey("again", f"{day}"), day)
    assert later.state_of(day) == "cleaned"
    later.require_exactly_once(day)
    assert not (world.folder / "more").exists()


@pytest.mark.fault("Q5")
def test_more_sinks_than_a_server_prepares_are_refused_before_anything_is_planned(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    day, spec = next(world.days), world.pipeline.sinks[0].arguments()
    second = PostgresSink(**{**spec, "name": "second", "tables": {"numbers": "public.second"}, "create": True})
    both = _with_sinks(world, *world.pipeline.sinks, second)
    room = PostgresDialect.require_room

    def one(dialect: PostgresDialect, cursor: Any) -> tuple[str, int]:
        return room(dialect, cursor)[0], 1

    with monkeypatch.context() as patched:
        patched.setattr(PostgresDialect, "require_room", one)
        with pytest.raises(PreflightRefused, match=r"sinks warehouse, second .* to at least 2 and restart"):
            begin(both.runtime(), RunKey("both", f"{day}"), interval_of(day))
        assert both.state_of(day) is None
        world.run(RunKey("alone", f"{day}"), day)
    day = next(world.days)
    both.run(RunKey("both", f"{day}"), day)
    both.require_exactly_once(day)


def test_the_shards_of_a_sink_that_had_none_when_it_voted_are_left_to_publish(world: World) -> None:
    day = next(world.days)
    run = RunKey("old", f"{day}")
    world.run_until(run, day, "commit")
    for sink in ("warehouse", "files"):  # as the instances of a mapped task that was deployed meanwhile
        publish_shard(world.runtime(), run, sink, 2)
    world.require_nothing_shown(day)
    world.run(run, day, "publish.warehouse")
    world.require_exactly_once(day)


@pytest.mark.fault("Q10")
@pytest.mark.parametrize("world", ["write_ahead"], indirect=True)
def test_an_override_of_a_sink_that_was_out_meanwhile_is_taken_back(world: World) -> None:
    told: dict[str, Any] = {"connection": "warehouse", "tables": {"numbers": "public.mode"}, "create": True}
    upserting = PostgresSink("mode", mode="upsert", key=["day", "number"], **told)
    with_upserts, day = _with_sinks(world, upserting), next(world.days)
    with_upserts.run_task("begin", RunKey("upserted", f"{day}"), day)
    override(with_upserts.runtime(), "mode", ["on_missing=delete"], "to restate")
    void(world.runtime(), world.epoch_of(day).id, "it has keys twice")
    world.run(RunKey("out", f"{day}"), next(world.days))
    back = _with_sinks(world, PostgresSink("mode", **{**told, "tables": {"numbers": "public.appended"}}))
    clear_override(back.runtime(), "mode", "as begin says")
    back.run(RunKey("back", f"{day}"), next(world.days))


@pytest.mark.fault("R3")
def test_whoever_runs_a_published_interval_again_hears_which_sinks_and_sources_are_others_by_now(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    day = next(world.days)
    world.run(RunKey("old", f"{day}"), day)
    moved = FileSink("files", output="numbers", path=str(world.folder / "elsewhere"), format="csv")
    sinks = [moved if one.name == "files" else one for one in world.pipeline.sinks]
    later = _with_sinks(world, *sinks)
    runtime = later.runtime()
    epoch = begin(runtime, RunKey("again", f"{day}"), interval_of(day))
    assert report_of(runtime, epoch, True).redefined == ("sink files",)
    said = "was decided by another definition of sink files, and stays as it is"
    assert said in caplog.text and "pipeline of another name" in caplog.text
    with pytest.raises(RestateRefused, match="changed: files"):
        begin(runtime, RunKey("restating", f"{day}", restate="elsewhere"), interval_of(day))

    other = replace(world, pipeline=replace(world.pipeline, sources={"numbers": OtherNumbers()}))
    caplog.clear()
    epoch = begin(other.runtime(), RunKey("third", f"{day}"), interval_of(day))
    assert report_of(other.runtime(), epoch, True).redefined == ("source numbers",)
    assert f"`lockstep restate numbers --epoch {epoch.id} --reason" in caplog.text
    other.run(RunKey("restating", f"{day} again", restate="another table"), day)
    assert report_of(other.runtime(), other.epoch_of(day), True).redefined == ()
    assert not find_redefined(epoch, world.pipeline.sink_specs(), world.pipeline.reads_from())


@pytest.mark.fault("R3", "P17")
def test_a_sink_is_another_one_by_what_it_shows_and_by_no_other_argument(world: World) -> None:
    def named(old: Sink, new: Sink, settings: Mapping[str, Any] = MappingProxyType({})) -> tuple[str, ...]:
        frozen = {"type": old.spec()["type"], "arguments": {**old.spec()["arguments"], **settings}}
        plan = replace(published.plan, sinks={old.name: frozen})
        return find_redefined(replace(published, plan=plan), {new.name: new.spec()}, {})

    world.run(RunKey("told", "it"), day := next(world.days))
    published, table = world.epoch_of(day), partial(PostgresSink, "w", tables={"numbers": "t"}, connection="c")
    folder = partial(FileSink, "w", output="numbers", path=str(world.folder))
    for old, new in (
        (folder(), folder(success="_SUCCESS")),
        (table(), table(mode="upsert", key=["day"])),
        (table(), table(on_new_columns="add")),
        (table(), table(epoch_column="e")),
    ):
        assert named(old, new) == named(new, old) == ("sink w",)
    assert named(table(), table(create=True)) == named(table(create=True), table()) == ()
    assert named(table(), table(lock_timeout=9)) == named(table(), table(), {"lock_timeout": 5, "was": None}) == ()


class OtherNumbers(Numbers):
    """The same, from another place."""

    def reads_from(self) -> str:
        return "another place"


@pytest.mark.parametrize("world", ["write_ahead"], indirect=True)
def test_a_source_that_comes_back_goes_on_where_it_ended(world: World) -> None:
    def planned(number: int, *names: str) -> dict[str, tuple[Position | None, Position]]:
        sources = {name: Tens() for name in names}
        sink = FileSink("tens", output="numbers", path=str(world.folder / "tens"))
        pipeline = Pipeline("tens", sources, untouched, [sink], max_in_flight=9)
        epoch = begin(replace(world, pipeline=pipeline).runtime(), RunKey("tens", f"run {number}"))
        assert epoch.id == number
        return {name: (found.start, found.end) for name, found in epoch.plan.sources.items()}

    assert planned(1, "a", "b") == {"a": (None, 10), "b": (None, 10)}
    assert planned(2, "b") == {"b": (10, 20)}
    assert planned(3, "b") == {"b": (20, 30)}
    assert planned(4, "a", "b", "c") == {"a": (10, 20), "b": (30, 40), "c": (None, 10)}


def test_a_run_that_is_to_replan_freezes_its_epoch_anew_once_and_moves_it(world: World) -> None:
    day = next(world.days)
    world.run_until(RunKey("old", f"{day}"), day, "prepare.files")
    world.expire_leases()
    fewer, run = _with_sinks(world, world.pipeline.sinks[1]), RunKey("new", f"{day}", interval_of(day))
    old = world.epoch_of(day)
    with pytest.raises(IllegalTransition, match="the one that it begins is"):
        replan_for(fewer.runtime(), run, "the warehouse moves out", old.id + 1)
    assert world.epoch_of(day) == old
    assert replan_for(fewer.runtime(), run, "the warehouse moves out", old.id) is not None
    assert replan_for(fewer.runtime(), run, "the warehouse moves out", old.id) is None, "begin has waited meanwhile"
    fewer.run(run, day)
    assert fewer.shown_in_files(day) and not fewer.shown_in_warehouse(day)
    assert replan_for(fewer.runtime(), run, "the warehouse moves out") is None, "cleared, it finds its epoch"
    with pytest.raises(IllegalTransition, match="none of its range is undecided"):
        replan_for(fewer.runtime(), RunKey("another", f"{day}", interval_of(day)), "too late")


@pytest.mark.parametrize("world", ["write_ahead"], indirect=True)
@pytest.mark.parametrize("names", [("renamed",), ("numbers", "more")])
def test_an_undecided_epoch_whose_sources_changed_names_replan(world: World, names: tuple[str, ...]) -> None:
    day = next(world.days)
    run = RunKey("old", f"{day}")
    world.run_until(run, day, "begin")
    old = world.pipeline
    other = replace(world, pipeline=Pipeline(old.name, {name: Numbers() for name in names}, old.transform, old.sinks))
    with pytest.raises(PlanMismatch, match=r"sources numbers, .* `lockstep replan numbers"):
        other.run_task("stage", run, day)
    assert world.left_in_staging() == []
    world.run(run, day, start="stage")
    world.require_exactly_once(day)


@dataclass(frozen=True)
class Placed(Numbers):
    """Numbers of one place; what stands elsewhere is no part of a range."""

    place: str

    def open(self, context: SourceContext) -> OpenSource:
        return OpenPlaced(self.place)


@dataclass(frozen=True)
class OpenPlaced(OpenNumbers):
    place: str

    def latest(self, start: Position | None, interval: Interval | None) -> Position:
        return {**super().latest(start, interval), "place": self.place}

    def check(self, start: Position | None, end: Position) -> None:
        if end["place"] != self.place:
            raise SourceChanged(f"the range is of {end['place']}, this is {self.place}")


def _placed(world: World, place: str) -> World:
    return replace(world, pipeline=replace(world.pipeline, sources={"numbers": Placed(place)}))


@pytest.mark.parametrize("world", ["write_ahead"], indirect=True)
def test_a_frozen_range_is_read_where_it_was_planned_until_it_is_planned_anew(world: World) -> None:
    day, other = next(world.days), next(world.days)
    here, there = _placed(world, "here"), _placed(world, "there")
    for planned in (day, other):
        here.run_until(RunKey("old", f"{planned}"), planned, "begin")
    there.run(RunKey("old", f"{day}"), day, start="stage")
    world.require_exactly_once(day)
    replan(there.runtime(), world.epoch_of(other).id, "the numbers have moved")
    assert world.epoch_of(other).plan.sources["numbers"].end["place"] == "there"
    there.run(RunKey("new", f"{other}"), other)
    world.require_exactly_once(other)


@pytest.mark.parametrize("world", ["two_phase"], indirect=True)
def test_an_undecided_epoch_whose_sinks_changed_names_replan_and_what_an_old_prepare_leaves_is_swept(
    world: World,
) -> None:
    day = next(world.days)
    world.run_until(RunKey("old", f"{day}"), day, "prepare.files")
    [gid] = world.prepared()
    world.expire_leases()
    fewer = _with_sinks(world, world.pipeline.sinks[1])
    with pytest.raises(PlanMismatch, match="lockstep replan numbers"):
        fewer.run(RunKey("new", f"{day}"), day)
    replan(fewer.runtime(), world.epoch_of(day).id, "the warehouse moves out")
    assert fewer.prepared() == []
    world.prepare_foreign(gid)  # what the old process does when it goes on
    assert fewer.recover().problems == []
    assert fewer.prepared() == []
    fewer.run(RunKey("new", f"{day}"), day)
    assert fewer.shown_in_files(day) and not fewer.shown_in_warehouse(day)
