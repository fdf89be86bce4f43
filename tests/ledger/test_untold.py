"""What sinks show and Airflow's assets may not know: written with the publication, for pipelines that a DAG moves."""

from __future__ import annotations

from datetime import timedelta

from lockstep.epoch import RunKey
from lockstep.ledger import Ledger
from lockstep.remedies import COMMAND, NOTEBOOK
from lockstep.states import Role
from tests.ledger.epochs import (
    CLICKS,
    FLIGHTS,
    RUN,
    SINKS,
    Sql,
    a_plan,
    attempt_of,
    cleaned,
    clicked,
    committed,
    planned,
    published,
    show,
    voted,
)

WEEK = timedelta(days=7)


def sinks(ledger: Ledger, epoch: int = 1, pipeline: str = FLIGHTS) -> set[str]:
    return {one.sink for one in ledger.untold(pipeline, [epoch])}


def test_a_sink_is_untold_from_its_publication_until_it_is_found_told(ledger: Ledger) -> None:
    epoch = committed(ledger, planned(ledger))
    assert not sinks(ledger)
    show(ledger, epoch, SINKS[0])
    assert sinks(ledger) == {SINKS[0]}
    ledger.note_told(FLIGHTS, 1, [SINKS[0]], Role.PUBLISH)
    show(ledger, epoch, SINKS[0])
    assert not sinks(ledger), "recorded again it is no news"
    show(ledger, epoch, SINKS[1])
    assert [(one.sink, one.shown_by) for one in ledger.untold(FLIGHTS, [1, 2])] == [(SINKS[1], "tester")]


def test_of_a_pipeline_that_no_dag_moves_nothing_is_untold(ledger: Ledger) -> None:
    cleaned(ledger, planned(ledger, 1, RunKey(NOTEBOOK, "run_epoch__1")))
    assert ledger.all_untold(10) == []


def test_what_a_person_restates_at_a_command_line_is_untold_where_a_dag_moves_the_pipeline(ledger: Ledger) -> None:
    old = cleaned(ledger, planned(ledger))
    ledger.note_told(FLIGHTS, 1, SINKS, Role.PUBLISH)
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
    found = ledger.all_untold(10)
    assert [(one.pipeline, one.sink) for one in found] == [(FLIGHTS, SINKS[1]), *((CLICKS, sink) for sink in SINKS)]
    assert set(found[0].runs) == {RUN, again} and found[1].runs == (RunKey("clicks", "first"),)
    assert ledger.all_untold(1) == found[:1]


def test_what_is_replaced_is_forgotten_and_what_nobody_could_be_told_of_in_time_is_named(
    ledger: Ledger, sql: Sql
) -> None:
    old = cleaned(ledger, planned(ledger))
    new = ledger.plan_generation(old, a_plan(), {}, RunKey("flights", "again"), "a bug")
    assert new is not None
    ledger.commit_epoch(attempt_of(voted(ledger, new)))
    assert ledger.forget_untold(WEEK, Role.RECOVER) == [] and not sinks(ledger, old.id)
    published(ledger, planned(ledger, 2, RunKey("flights", "second")))
    published(ledger, planned(ledger, 3, RunKey("flights", "third")))
    sql("UPDATE lockstep.untold SET shown_at = now() - interval '8 days' WHERE epoch = 3")
    sql.commit()
    assert {(one.epoch, one.sink) for one in ledger.forget_untold(WEEK, Role.RECOVER)} == {(3, sink) for sink in SINKS}
    assert sinks(ledger, 3) == set() and sinks(ledger, 4) == set(SINKS)
