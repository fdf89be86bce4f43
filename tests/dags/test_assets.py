"""What assets are told of epochs: each once, whoever shows it, and by Airflow's own way from a task to its events."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import count, repeat
from operator import itemgetter
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from lockstep.epoch import Epoch, Generation, Interval, KeyedBy, Plan, RunKey, SourceRange
from lockstep.ledger import Ledger
from lockstep.sinks import FileSink
from lockstep.states import Role
from tests.dags.pipelines import NUMBERS, ORDERS
from tests.ledger.epochs import attempt_of, cleaned, committed, day, show, voted

if TYPE_CHECKING:
    from airflow.sdk import Context

    from lockstep.airflow.assets import AssetEventEmitter

NAME = "orders"
SINK = "warehouse"
ASSET = "orders/warehouse"
PARTITIONS = "orders/warehouse:epochs"
PLAN = Plan(
    {"landing": SourceRange(None, 10)},
    {sink: FileSink(sink, output="flights", path=f"out/{sink}").spec() for sink in ("warehouse", "delays")},
)


@dataclass
class Airflow:
    """Stands for the api-server: keeps what a task's end writes, and answers what a task asks. `over`: runs. `clock`:
    the times of events to come. `silent`, `inactive`: names of assets of which it tells no events, or writes none."""

    events: list[dict[str, Any]] = field(default_factory=list)
    over: set[str] = field(default_factory=set)
    clock: Iterator[datetime] = field(default_factory=lambda: map(lately, count()))
    silent: set[str] = field(default_factory=set)
    inactive: set[str] = field(default_factory=set)
    asked: int = 0

    def answer(self, question: Any, **said: Any) -> Any:
        if question.__name__ == "GetDagRunState":
            if said["run_id"] not in self.over:
                return SimpleNamespace(state="running")
            raise RuntimeError("no such run")
        self.asked += 1
        if said["name"] in self.silent:
            raise RuntimeError("500 Internal Server Error\ndetail")
        found = [event for event in self.events if event["name"] == said["name"]]
        if "limit" in question.model_fields:
            after, before = said.get("after") or datetime.min, said.get("before") or datetime.max
            found = [event for event in found if after <= event["at"] <= before]
            found = sorted(found, key=itemgetter("at"), reverse=not said.get("ascending", True))[: said.get("limit")]
        return SimpleNamespace(asset_events=[SimpleNamespace(extra=one["extra"], timestamp=one["at"]) for one in found])

    def end(self, task: Any, context: Any) -> list[dict[str, Any]]:
        """The task's success, as its runner sends it and the server takes it: an event of each outlet."""
        from airflow.sdk.execution_time.task_runner import _serialize_outlet_events

        sent: list[Any] = list(_serialize_outlet_events(context["outlet_events"]))
        written = []
        for outlet in task.outlets:
            mine = [one for one in sent if outlet.name in (one["dest_asset_key"]["name"], one.get("source_alias_name"))]
            for one in mine or [{"dest_asset_key": {"name": outlet.name}, "extra": {}}]:
                name = one["dest_asset_key"]["name"]
                told = {"name": name, "extra": one["extra"], "partition": one.get("partition_key")}
                if name not in self.inactive:
                    written.append({**told, "at": next(self.clock)})
        self.events += written
        return written

    def named(self, name: str) -> list[dict[str, Any]]:
        return [event for event in self.events if event["name"] == name]


def lately(number: int) -> datetime:
    return datetime(2026, 1, 1) + timedelta(seconds=number)


@pytest.fixture
def airflow_api(monkeypatch: pytest.MonkeyPatch) -> Airflow:
    from lockstep.airflow import _airflow

    stands_for_it = Airflow()
    monkeypatch.setattr(_airflow, "_ask_supervisor", stands_for_it.answer)
    return stands_for_it


@pytest.fixture(autouse=True)
def pipeline(ledger: Ledger) -> None:
    ledger._connection.actor = "airflow:orders/first/publish.warehouse#1"
    ledger.ensure_pipeline(NAME, KeyedBy.INTERVAL)


def begun(ledger: Ledger, number: int = 1, run: str = "first") -> Epoch:
    key = RunKey(NAME, run)
    epoch = ledger.plan_epoch(NAME, PLAN, {}, key, interval=day(number), after=None)
    assert epoch is not None
    return epoch


def shown(ledger: Ledger, number: int = 1, run: str = "first") -> Epoch:
    """In the one sink."""
    return show(ledger, committed(ledger, begun(ledger, number, run)), SINK)


def context() -> Context:
    from airflow.sdk.execution_time.context import OutletEventAccessors

    return cast("Context", {"outlet_events": OutletEventAccessors()})


def task() -> Any:
    from airflow.sdk import BaseOperator

    from lockstep.airflow.assets import outlets_of

    return BaseOperator(task_id="emit_asset_events", outlets=outlets_of(NAME, [SINK]))


def teller(ledger: Ledger, role: Role = Role.PUBLISH, actor: str | None = None, **arguments: Any) -> AssetEventEmitter:
    from lockstep.airflow.assets import AssetEventEmitter

    ledger._connection.actor = actor or ledger.actor
    return AssetEventEmitter(ledger, role, **arguments)


def tell_one(airflow_api: Airflow, ledger: Ledger, epoch: Epoch, sink: str = SINK, **arguments: Any) -> list[Any]:
    made, around = task(), context()
    teller(ledger, **arguments).emit_epoch(made, around, epoch, sink)
    return airflow_api.end(made, around)


def emit_pending(airflow_api: Airflow, ledger: Ledger, failures: Sequence[str] = ()) -> list[Any]:
    made, around = task(), context()
    assert teller(ledger, Role.RECOVER, "airflow:lockstep_recovery/r/tell#1").emit_pending(made, around) == list(
        failures
    )
    return airflow_api.end(made, around)


def emit_pack(airflow_api: Airflow, ledger: Ledger, epochs: Sequence[Epoch], **arguments: Any) -> list[Any]:
    made, around = task(), context()
    teller(ledger, **arguments).emit_pack(made, around, epochs, [SINK])
    return airflow_api.end(made, around)


def partitioned() -> bool:
    from lockstep.airflow._airflow import HAS_PARTITIONS

    return HAS_PARTITIONS


def test_an_epoch_is_one_event_and_one_partition_with_what_makes_it_out(airflow_api: Airflow, ledger: Ledger) -> None:
    epoch = shown(ledger)
    told = tell_one(airflow_api, ledger, epoch)
    assert [(event["name"], event["partition"]) for event in told] == [
        (ASSET, None),
        *([(PARTITIONS, "2013-01-01T00:00:00")] if partitioned() else []),
    ]
    for event in told:
        assert event["extra"] == {
            "pipeline": NAME,
            "sink": SINK,
            "deployment": ledger.deployment(),
            "epoch": 1,
            "generation": 0,
            "replaces": None,
            "interval": str(day(1)),
            "state": "committed",
            "rows": {"flights": 7},
            "digest": {"flights": "0" * 32},
        }
    assert airflow_api.asked == 0, "who has shown it itself needn't look"
    for number in (2, 3):
        assert tell_one(airflow_api, ledger, epoch, actor=f"airflow:orders/first/publish.warehouse#{number}") == []
    assert airflow_api.asked == 1 + partitioned(), "then the ledger knows it, too"
    assert tell_one(airflow_api, ledger, epoch, "added_later") == [], "a sink that came after the decision"


def test_a_try_that_died_before_its_end_has_its_epoch_told_by_the_next_one(
    airflow_api: Airflow, ledger: Ledger
) -> None:
    epoch = shown(ledger)
    made, around = task(), context()
    teller(ledger).emit_epoch(made, around, epoch, SINK)  # and never gets to its end
    assert tell_one(airflow_api, ledger, epoch, actor="airflow:orders/first/publish.warehouse#2")
    assert len(airflow_api.named(ASSET)) == 1


@pytest.mark.fault("Q13")
def test_a_run_that_was_deleted_and_comes_back_under_its_id_emits_no_event_twice(
    airflow_api: Airflow, ledger: Ledger
) -> None:
    epoch = shown(ledger)
    assert tell_one(airflow_api, ledger, epoch)
    with closing(Ledger(ledger._connection.dsn, ledger.actor)) as again:  # the same try of the same task
        assert tell_one(airflow_api, again, epoch) == [] == emit_pack(airflow_api, again, [epoch])


@pytest.mark.fault("Q14")
def test_in_a_run_with_a_partition_key_the_event_that_would_get_it_is_left_to_the_recovery_dag(
    airflow_api: Airflow, ledger: Ledger
) -> None:
    epoch, made = shown(ledger), task()
    around = cast("Context", {**context(), "dag_run": SimpleNamespace(partition_key="2026-01-01")})
    teller(ledger).emit_epoch(made, around, epoch, SINK)
    assert [event["name"] for event in airflow_api.end(made, around)] == [PARTITIONS] * partitioned()
    airflow_api.over.add("first")
    assert [(event["name"], event["partition"]) for event in emit_pending(airflow_api, ledger)] == [(ASSET, None)] + [
        (PARTITIONS, "2013-01-01T00:00:00")
    ] * (not partitioned())


def test_what_stands_in_place_of_an_epoch_is_one_new_event_of_the_same_partition(
    airflow_api: Airflow, ledger: Ledger
) -> None:
    old = cleaned(ledger, begun(ledger))
    tell_one(airflow_api, ledger, old)
    new = ledger.plan_generation(old, PLAN, {}, RunKey(NAME, "again"), "a bug")
    assert new is not None
    new = show(ledger, ledger.commit_epoch(attempt_of(voted(ledger, new))), SINK)
    told = tell_one(airflow_api, ledger, new)
    assert {(one["extra"]["epoch"], one["extra"]["generation"]) for one in told} == {(new.id, 1)}
    assert told[0]["extra"]["replaces"] == [old.id, old.id]
    assert len({event["partition"] for event in airflow_api.named(PARTITIONS)}) == int(partitioned())
    assert tell_one(airflow_api, ledger, new, actor="airflow:orders/again/publish.warehouse#2") == []


@pytest.mark.fault("L16")
def test_recovery_isnt_misled_by_events_of_a_ledger_before_this_one(airflow_api: Airflow, ledger: Ledger) -> None:
    airflow_api.over.add("first")
    shown(ledger)
    for event in emit_pending(airflow_api, ledger):
        event["extra"]["deployment"] = "of last year"
    told = emit_pending(airflow_api, ledger)
    assert [event["extra"]["epoch"] for event in told if event["name"] == ASSET] == [1]
    assert emit_pending(airflow_api, ledger) == []
    assert ledger.all_pending_events(10) == [], "it was found in Airflow"


def test_recovery_leaves_what_a_run_that_is_under_way_will_tell_until_its_turn_is_over(
    airflow_api: Airflow, ledger: Ledger
) -> None:
    from lockstep.airflow.assets import OWN_RUN_FIRST

    epoch = shown(ledger)
    assert emit_pending(airflow_api, ledger) == []
    age(ledger, OWN_RUN_FIRST)
    assert emit_pending(airflow_api, ledger)
    assert tell_one(airflow_api, ledger, epoch, actor="airflow:orders/first/publish.warehouse#1") == []


def test_recovery_tells_each_epoch_that_a_pack_has_shown_whatever_became_of_the_others(
    airflow_api: Airflow, ledger: Ledger
) -> None:
    for number in (1, 2, 3):
        shown(ledger, number, f"packed/{day(number).start.isoformat()}")
    ledger.void_epoch(NAME, begun(ledger, 4, "packed/4").id, "given up")
    airflow_api.over.add("packed")
    emit_pending(airflow_api, ledger)
    [told] = airflow_api.named(ASSET)
    assert told["extra"]["epochs"] == [1, 2, 3] and told["extra"]["rows"] == {"flights": 21}
    found = [(event["partition"], event["extra"]["epoch"]) for event in airflow_api.named(PARTITIONS)]
    wanted = [(f"2013-01-0{number}T00:00:00", number) for number in (1, 2, 3)] if partitioned() else []
    assert found == wanted


def test_a_pack_tells_only_those_of_its_epochs_that_are_untold(airflow_api: Airflow, ledger: Ledger) -> None:
    first, second = (shown(ledger, number, f"packed/{number}") for number in (1, 2))
    tell_one(airflow_api, ledger, first)
    emit_pack(airflow_api, ledger, [first, second], actor="airflow:orders/packed/pack#1")
    *_, last = airflow_api.named(ASSET)
    told = {"pipeline": NAME, "sink": SINK, "deployment": ledger.deployment()}
    assert last["extra"] == {**told, "epochs": [2], "rows": {"flights": 7}}
    assert emit_pack(airflow_api, ledger, [first, second], actor="airflow:orders/packed/pack#2") == []


def test_one_of_many_pipelines_is_told_through_the_alias_and_its_partitions_without(
    airflow_api: Airflow, ledger: Ledger
) -> None:
    from lockstep.airflow.assets import alias_of

    made, around = task(), context()
    teller(ledger, alias=alias_of("lockstep.mine.all")).emit_pack(made, around, [shown(ledger)], [SINK])
    partitions = [PARTITIONS] if partitioned() else []
    assert [outlet.name for outlet in made.outlets] == ["lockstep.mine.all", *partitions]
    told = airflow_api.end(made, around)
    assert [event["name"] for event in told] == [ASSET, *partitions] and told[0]["extra"]["epochs"] == [1]


def test_a_cursors_epochs_are_partitions_by_their_numbers(ledger: Ledger) -> None:
    from lockstep.airflow.assets import partition_key

    epoch = begun(ledger)
    assert partition_key(replace(epoch, interval=None)) == "1"
    again = replace(epoch, id=9, interval=None, generation=Generation(1, 2, 5, "a bug"))
    assert partition_key(again) == "1", "what takes its place is the same partition"
    start = epoch.interval.start + timedelta(microseconds=1) if epoch.interval else None
    assert start is not None
    assert partition_key(replace(epoch, interval=Interval(start, start + timedelta(1)))) == "2013-01-01T00:00:00.000001"


def test_what_is_missing_of_an_interval_is_what_no_sink_shows(ledger: Ledger) -> None:
    from lockstep.airflow.assets import missing_intervals

    def missing(pipeline: str, span: Interval, sink: str | None = None) -> list[Interval]:
        return [Interval(*gap) for gap in missing_intervals(pipeline, span.start, span.end, sink)]

    for number in (1, 2, 4):
        cleaned(ledger, begun(ledger, number, f"run {number}"))
    shown(ledger, 5, "run 5")
    span = day(1, days=6)
    assert missing(NAME, day(1, days=2)) == []
    assert missing(NAME, span) == [day(3), day(5, days=2)]
    assert missing(NAME, span, SINK) == [day(3), day(6)]
    assert missing(NAME, span, "added_later") == [span]
    assert missing("unheard", span) == [span]


def test_sources_are_inlets_of_what_reads_them_and_sinks_outlets_of_what_shows_them() -> None:
    from lockstep.airflow.assets import outlets_of, source_of
    from lockstep.airflow.dag import epoch_dag

    made = epoch_dag(NUMBERS)
    assert {task.task_id: task.inlets for task in made.tasks if task.inlets} == {
        "stage": [source_of("numbers", "orders")]
    }
    assert {task.task_id: task.outlets for task in made.tasks if task.outlets} == {
        f"publish.{sink}": outlets_of("numbers", [sink]) for sink in ("raw", "copy")
    }
    mine = epoch_dag(ORDERS, schedule="@daily", task_args={"stage": {"inlets": []}})
    assert made.has_task("stage") and not mine.get_task("stage").inlets


@pytest.mark.fault("Q11")
def test_pipelines_and_sinks_whose_names_have_dots_share_no_asset() -> None:
    from lockstep.airflow.assets import outlets_of

    outlets = [*outlets_of("shop", ["eu.warehouse"]), *outlets_of("shop.eu", ["warehouse"])]
    assert len({asset.name for asset in outlets}) == len({asset.uri for asset in outlets}) == len(outlets)


def test_recovery_tells_of_every_sink_but_one_whose_events_cannot_be_read_and_says_which(
    airflow_api: Airflow, ledger: Ledger, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    from lockstep.airflow import assets

    epoch = committed(ledger, begun(ledger))
    for sink in ("delays", SINK):
        epoch = show(ledger, epoch, sink)
    airflow_api.over.add("first")
    airflow_api.silent.add("orders/delays")
    failure = (
        "pipeline orders: the events of sink delays weren't emitted: "
        "Airflow's events of asset orders/delays can't be read: "
        "RuntimeError: 500 Internal Server Error"
    )
    told = emit_pending(airflow_api, ledger, [failure])
    assert {(event["extra"]["sink"], event["extra"]["epoch"]) for event in told} == {(SINK, 1)}
    assert failure in caplog.text
    airflow_api.silent.clear()
    with monkeypatch.context() as foreign:
        foreign.setattr(assets, "_facts", lambda epoch, sink, ledger: {}[sink])
        emit_pending(
            airflow_api,
            ledger,
            ["pipeline orders: the events of sink delays weren't emitted: KeyError('delays')"],
        )
    assert {event["extra"]["sink"] for event in emit_pending(airflow_api, ledger)} == {"delays"}


def test_the_task_that_tells_succeeds_and_the_one_behind_it_fails_with_what_it_could_not_tell(
    airflow_api: Airflow, ledger: Ledger
) -> None:
    from lockstep.airflow.dag import recovery_dag
    from lockstep.airflow.operators import EmitAssetEventsOperator, FailOnUnemittedEvents
    from lockstep.errors import RecoveryIncomplete

    shown(ledger)
    airflow_api.over.add("first")
    ti = SimpleNamespace(
        dag_id="lockstep_recovery", run_id="r", task_id="emit_asset_events", map_index=-1, try_number=1
    )
    acting = cast("Context", {**context(), "ti": ti})
    airflow_api.silent.add(ASSET)
    [sentence] = EmitAssetEventsOperator(task_id="emit_asset_events").execute(acting)
    with pytest.raises(RecoveryIncomplete, match="pipeline orders: the events of sink warehouse weren't emitted"):
        FailOnUnemittedEvents(task_id="fail_on_unemitted", unemitted=sentence).execute(acting)
    airflow_api.silent.clear()
    assert EmitAssetEventsOperator(task_id="emit_asset_events").execute(acting) == [], "over which nothing is mapped"
    assert recovery_dag().get_task("fail_on_unemitted").upstream_task_ids == {"emit_asset_events"}


def test_a_run_whose_sink_shows_the_epoch_succeeds_although_airflows_events_cannot_be_read(
    airflow_api: Airflow, ledger: Ledger, caplog: pytest.LogCaptureFixture
) -> None:
    third = "airflow:orders/first/publish.warehouse#3"
    epoch = shown(ledger)
    airflow_api.silent.add(ASSET)
    ledger._connection.actor = third
    assert [one for one in tell_one(airflow_api, ledger, epoch, actor=third) if one["name"] == ASSET] == []
    told = emit_pack(airflow_api, ledger, [epoch, shown(ledger, 2, "first/2")], actor=third)
    assert [one["extra"]["epochs"] for one in told if one["name"] == ASSET] == [[2]]
    assert "orders/warehouse can't be read" in caplog.text and "are left to the recovery DAG" in caplog.text
    assert 1 in {row.epoch for row in ledger.pending_events(NAME, [1])}
    airflow_api.silent.clear()
    airflow_api.over.add("first")
    assert [one["extra"]["epoch"] for one in emit_pending(airflow_api, ledger) if one["name"] == ASSET] == [1]


@pytest.mark.parametrize(
    "moments",
    [
        lambda: map(lately, count()),
        lambda: repeat(lately(0)),
        lambda: (datetime.now() + timedelta(-400, seconds=number) for number in count()),
        lambda: (datetime.now() + timedelta(400, seconds=number) for number in count()),
    ],
    ids=["many", "one", "old", "future"],
)
def test_what_airflow_knows_is_found_however_many_events_it_has_and_in_few_questions(
    airflow_api: Airflow, ledger: Ledger, monkeypatch: pytest.MonkeyPatch, moments: Callable[[], Iterator[datetime]]
) -> None:
    from lockstep.airflow import _airflow

    monkeypatch.setattr(_airflow, "_PAGE", 4)
    airflow_api.clock = moments()
    epochs = [shown(ledger, number, f"run {number}") for number in range(1, 12)]
    for epoch in epochs:
        assert tell_one(airflow_api, ledger, epoch)
    airflow_api.events[:0] = [
        {"name": ASSET, "extra": extra, "at": lately(0)} for extra in ({}, {"epoch": [1]}, {"epochs": 3})
    ]
    airflow_api.over |= {f"run {number}" for number in range(1, 12)}
    assert tell_one(airflow_api, ledger, epochs[-1], actor="airflow:orders/run 11/publish.warehouse#2") == []
    assert airflow_api.asked <= 2 * (1 + partitioned()) or len({one["at"] for one in airflow_api.events}) == 1
    assert emit_pending(airflow_api, ledger) == [] and ledger.all_pending_events(20) == []


def test_news_stay_until_somebody_has_looked_and_go_with_a_line_when_airflow_takes_them_for_a_week_in_vain(
    airflow_api: Airflow, ledger: Ledger, caplog: pytest.LogCaptureFixture
) -> None:
    from lockstep.airflow.assets import GIVE_UP_AFTER

    shown(ledger)
    airflow_api.over.add("first")
    airflow_api.inactive |= {ASSET, PARTITIONS}
    age(ledger, 10 * GIVE_UP_AFTER)
    airflow_api.silent.add(ASSET)
    assert len(teller(ledger, Role.RECOVER).emit_pending(task(), context())) == 1
    airflow_api.silent.clear()
    age(ledger, GIVE_UP_AFTER)
    for _ in range(2):
        emit_pending(airflow_api, ledger)
        assert len(ledger.all_pending_events(9)) == 1
    age(ledger, GIVE_UP_AFTER)
    airflow_api.silent.add(ASSET)
    assert len(teller(ledger, Role.RECOVER).emit_pending(task(), context())) == 1
    assert len(ledger.all_pending_events(9)) == 1, "who couldn't look lets go of nothing"
    airflow_api.silent.clear()
    assert "in vain" not in caplog.text
    emit_pending(airflow_api, ledger)
    assert ledger.all_pending_events(9) == []
    assert "orders epoch 1: no event for 7 days, as Airflow has no asset orders/warehouse" in caplog.text


def age(ledger: Ledger, by: timedelta) -> None:
    import psycopg2

    with closing(psycopg2.connect(ledger._connection.dsn)) as connection, connection, connection.cursor() as cursor:
        cursor.execute(
            "UPDATE lockstep.pending_asset_event SET published_at = published_at - %s, missed_at = missed_at - %s",
            (by, by),
        )
