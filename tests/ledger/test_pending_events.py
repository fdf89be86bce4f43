"""What sinks show and Airflow's assets may not know: written with the publication, for pipelines that a DAG moves."""

from __future__ import annotations

from datetime import timedelta

from lockstep.epoch import RunKey
from lockstep.ledger import Ledger
from lockstep.observability.suggestions import COMMAND, NOTEBOOK
from lockstep.states import Role
from tests.ledger.epochs import (
    CLICKS,
    FLIGHTS,
    RUN,
    SINKS,
    Sql,
    a_plan,
    cleaned,
    clicked,
    committed,
    planned,
    published,
    show,
)

WEEK = timedelta(days=7)


def sinks(ledger: Ledger, epoch: int = 1, pipeline: str = FLIGHTS) -> set[str]:
    return {one.sink for one in ledger.pending_events(pipeline, [epoch])}


def test_a_sink_is_untold_from_its_publication_until_it_is_found_told(ledger: Ledger) -> None:
    epoch = committed(ledger, planned(ledger))
    assert not sinks(ledger)
    show(ledger, epoch, SINKS[0])
    assert sinks(ledger) == {SINKS[0]}
    ledger.mark_emitted(FLIGHTS, 1, [SINKS[0]], Role.PUBLISH)
    show(ledger, epoch, SINKS[0])
    assert not sinks(ledger), "recorded again it is no news"
    show(ledger, epoch, SINKS[1])
    assert [(one.sink, one.published_by) for one in ledger.pending_events(FLIGHTS, [1, 2])] == [(SINKS[1], "tester")]


def test_only_of_a_pipeline_that_a_dag_moves_something_is_untold_whoever_restates_it(ledger: Ledger) -> None:
    cleaned(ledger, planned(ledger, 2, RunKey(NOTEBOOK, "run_epoch__1")))
    assert ledger.all_pending_events(10) == []
    old = cleaned(ledger, planned(ledger))
    ledger.mark_emitted(FLIGHTS, old.id, SINKS, Role.PUBLISH)
    new = ledger.plan_generation(old, a_plan(), {}, RunKey(COMMAND, "by hand"), "a bug")
    assert new is not None
    cleaned(ledger, new)
    assert sinks(ledger, new.id) == set(SINKS) and not sinks(ledger, old.id)


def test_all_that_is_untold_is_listed_oldest_first_with_every_run_that_came_to_it(ledger: Ledger) -> None:
    epoch = committed(ledger, planned(ledger))
    again = RunKey("flights", "again")
    ledger.take_over(FLIGHTS, 1, again)
    show(ledger, epoch, SINKS[1])
    published(ledger, clicked(ledger, 0, RunKey("clicks", "first")))
    found = ledger.all_pending_events(10)
    assert [(one.pipeline, one.sink) for one in found] == [(FLIGHTS, SINKS[1]), *((CLICKS, sink) for sink in SINKS)]
    assert set(found[0].runs) == {RUN, again} and found[1].runs == (RunKey("clicks", "first"),)
    assert ledger.all_pending_events(1) == found[:1]


def test_a_sink_of_which_nothing_can_be_told_keeps_no_other_from_its_turn(ledger: Ledger, sql: Sql) -> None:
    for number in range(1, 4):
        published(ledger, planned(ledger, number, RunKey("flights", f"run {number}")))
    published(ledger, clicked(ledger, 0, RunKey("clicks", "first")))
    sql("UPDATE lockstep.pending_asset_event SET published_at = now() - interval '8 days' WHERE pipeline = %s", FLIGHTS)
    sql.commit()
    first = {(one.pipeline, one.sink, one.epoch) for one in ledger.all_pending_events(4)}
    assert first == {(pipeline, sink, 1) for pipeline in (FLIGHTS, CLICKS) for sink in SINKS}


def test_what_is_replaced_is_forgotten(ledger: Ledger) -> None:
    old = cleaned(ledger, planned(ledger))
    new = ledger.plan_generation(old, a_plan(), {}, RunKey("flights", "again"), "a bug")
    assert new is not None
    committed(ledger, new)
    published(ledger, planned(ledger, 2, RunKey("flights", "second")))
    ledger.delete_replaced_events(Role.RECOVER)
    assert not sinks(ledger, old.id) and sinks(ledger, 3) == set(SINKS)


def test_since_when_somebody_has_looked_in_vain_stands_there_and_only_who_says_so_lets_go(
    ledger: Ledger, sql: Sql
) -> None:
    for number in (1, 2):
        published(ledger, planned(ledger, number, RunKey("flights", f"run {number}")))
    assert {one.missed for one in ledger.all_pending_events(9)} == {None}
    ledger.mark_missed(FLIGHTS, SINKS[0], [1], Role.RECOVER)
    sql("UPDATE lockstep.pending_asset_event SET missed_at = missed_at - interval '8 days'")
    sql.commit()
    ledger.mark_missed(FLIGHTS, SINKS[0], [1, 2], Role.RECOVER)
    missed = {(one.epoch, one.sink): one.missed for one in ledger.all_pending_events(9)}
    assert [missed[1, SINKS[1]], missed[2, SINKS[1]]] == [None, None]
    first, second = missed[1, SINKS[0]], missed[2, SINKS[0]]
    assert first is not None and first >= WEEK + timedelta(1) and second is not None and second < timedelta(1)
    ledger.delete_unemittable_events(FLIGHTS, SINKS[0], [1], Role.RECOVER)
    assert sinks(ledger, 1) == {SINKS[1]} and sinks(ledger, 2) == set(SINKS)
