"""What the recovery DAG tells: a task a pipeline that is recovered, and one that is red while anything is stuck."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing, nullcontext
from datetime import timedelta
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast
from uuid import uuid4

import pytest
from psycopg2.extensions import parse_dsn

from lockstep.epoch import Epoch, Identity, RunKey
from lockstep.errors import EpochsStuck, IllegalTransition
from lockstep.ledger import Ledger
from lockstep.ledger.report import Report
from lockstep.operations.resolve import NothingAsked
from lockstep.roles.recover import RecoveryReport
from lockstep.states import Role
from stack.postgres import PostgresServer
from tests.ledger.epochs import FLIGHTS, RUN, day, planned

if TYPE_CHECKING:
    from airflow.sdk import Context


@pytest.fixture
def ledger(memory_server: PostgresServer, migrated: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Ledger]:
    """An empty ledger, and Airflow's Connection to it."""
    dsn = memory_server.create_database(f"recovery_{uuid4().hex}", migrated)
    parts = parse_dsn(dsn)
    found = {"conn_type": "postgres", "host": parts["host"], "port": int(parts["port"])}
    found |= {"login": parts["user"], "schema": parts["dbname"]}
    monkeypatch.setenv("AIRFLOW_CONN_LOCKSTEP_LEDGER", json.dumps(found))
    with closing(Ledger(dsn)) as opened:
        opened.ensure_pipeline(FLIGHTS, Identity.INTERVAL)
        yield opened


def test_what_is_stuck_is_looked_for_when_all_was_recovered_however_that_ended() -> None:
    from airflow.sdk import TriggerRule

    from lockstep.orchestration.recovery import recovery_dag

    for name in ("nothing_stuck", "tell"):
        last = recovery_dag().get_task(name)
        assert (last.upstream_task_ids, last.trigger_rule) == ({"recover"}, TriggerRule.ALL_DONE)


@pytest.mark.fault("H25")
def test_the_task_is_red_while_an_epoch_waits_for_a_person_and_names_pipeline_epoch_and_way_out(ledger: Ledger) -> None:
    from lockstep.orchestration.operators import NothingStuckOperator

    task = NothingStuckOperator(task_id="nothing_stuck")
    planned(ledger, 1)
    task.execute(cast("Context", {}))
    ledger.raise_attempt(FLIGHTS, 1, Role.ABORT, reason="disk full")
    with pytest.raises(EpochsStuck, match=rf"^pipeline {FLIGHTS}: an epoch is stuck; epoch 1 \(planned\): .*disk full"):
        task.execute(cast("Context", {}))


def test_recovery_reads_which_pipeline_and_what_hold_from_the_run_whatever_airflow_makes_of_its_params(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    from lockstep.orchestration import operators

    held: list[object] = []
    monkeypatch.setattr(operators, "open_runtime", lambda *_: nullcontext(SimpleNamespace(ledger=ledger)))

    def recovered(_: object, hold: object, __: object) -> RecoveryReport:
        held.append(hold)
        return RecoveryReport(FLIGHTS)

    monkeypatch.setattr(operators, "recover", recovered)
    ledger.ensure_pipeline("clicks", Identity.CURSOR)
    conf = {"pipeline": FLIGHTS, "hold_minutes": 7}
    params = {"pipeline": None, "hold_minutes": None}
    asked = cast("Context", {"params": params, "dag_run": SimpleNamespace(conf=conf)})
    assert operators.ListPipelinesOperator(task_id="pipelines").execute(asked) == [FLIGHTS]
    task = operators.RecoverOperator(task_id="recover", pipeline=FLIGHTS)
    task.execute(asked)
    assert held == [timedelta(minutes=7)]
    for wrong in ("0", -1, True, 0.5, 10**30):
        with pytest.raises(IllegalTransition, match="hold_minutes is"):
            task.execute(cast("Context", {"params": params, "dag_run": SimpleNamespace(conf={"hold_minutes": wrong})}))
    assert len(held) == 1


def test_intervals_without_an_epoch_are_named_with_the_backfill_that_fills_them_and_make_nothing_red(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    from lockstep.orchestration.operators import NothingStuckOperator

    said: list[str] = []
    log = SimpleNamespace(warning=lambda text, *values: said.append(text % values))
    monkeypatch.setattr(NothingStuckOperator, "log", log)
    task = NothingStuckOperator(task_id="nothing_stuck")
    planned(ledger, 1)
    planned(ledger, 2, RunKey("flights", "second"))
    task.perform(cast("Context", {}))
    assert said == []
    planned(ledger, 5, RunKey("flights", "fifth"))
    planned(ledger, 7, RunKey("flights", "seventh"))
    task.perform(cast("Context", {}))
    start, end = day(3).start.isoformat(), day(5).start.isoformat()
    assert said == [
        f"pipeline {FLIGHTS}: no epoch for [{start}, {end}) and 1 more: `airflow backfill create --dag-id <its DAG> "
        f"--from-date {start} --to-date {end}` fills it"
    ]


def test_a_run_that_points_to_a_persons_word_has_it_carried_out_before_it_recovers(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    from lockstep.orchestration import operators

    seen: list[object] = []
    monkeypatch.setattr(operators, "open_runtime", lambda *_: nullcontext(SimpleNamespace(ledger=ledger)))
    monkeypatch.setattr(operators, "resolve_as_asked", lambda _, *asked: seen.append(asked))

    def recovered(*_: object) -> RecoveryReport:
        seen.append("recover")
        return RecoveryReport(FLIGHTS)

    monkeypatch.setattr(operators, "recover", recovered)
    task = operators.RecoverOperator(task_id="recover", pipeline=FLIGHTS)
    task.execute(cast("Context", {"params": {"pipeline": FLIGHTS}}))
    task.execute(
        cast(
            "Context",
            {"params": {"pipeline": FLIGHTS, "resolve_epoch": 7, "resolve_sink": "delays", "resolve_word": 40}},
        )
    )
    assert seen == ["recover", (7, "delays", 40), "recover"]

    def used_up(*_: object) -> None:
        raise NothingAsked("it was carried out")

    monkeypatch.setattr(operators, "resolve_as_asked", used_up)
    task.execute(
        cast(
            "Context",
            {"params": {"pipeline": FLIGHTS, "resolve_epoch": 7, "resolve_sink": "delays", "resolve_word": 40}},
        )
    )
    assert seen.pop() == "recover" and len(seen) == 3, "a retry goes on with the rest"
    for wrong in (
        {"resolve_sink": None},
        {"resolve_epoch": "7"},
        {"resolve_epoch": True},
        {"resolve_epoch": 10**30},
        {"resolve_word": 1 << 63},
        {"resolve_word": None},
        {"pipeline": None},
    ):
        params = {"pipeline": FLIGHTS, "resolve_epoch": 7, "resolve_sink": "delays", "resolve_word": 40, **wrong}
        with pytest.raises(IllegalTransition, match="to resolve say pipeline"):
            task.execute(cast("Context", {"params": params}))
    assert len(seen) == 3


class Answers:
    """What Airflow says of one run to a task: its state, those of its tasks, and whether its DAG is paused."""

    def __init__(self, run: str | None, states: dict[str, str | None], *, paused: bool = False) -> None:
        self.run, self.states, self.paused = run, states, paused

    def get_dr_count(self, dag_id: str, run_ids: list[str], states: list[str]) -> int:
        assert (dag_id, run_ids) == (RUN.dag_id, [RUN.run_id])
        return int(self.run in states)

    def get_task_states(self, dag_id: str, run_ids: list[str]) -> dict[str, Any]:
        return {RUN.run_id: self.states} if self.states else {}

    def get_dag(self, dag_id: str) -> SimpleNamespace:
        return SimpleNamespace(is_paused=self.paused)


def begun_by(ledger: Ledger, task: str, number: int = 1) -> Epoch:
    """The epoch of a day, whose attempt a task has opened."""
    with closing(Ledger(ledger._connection.dsn, f"airflow:{RUN.dag_id}/{RUN.run_id}/{task}#1")) as worker:
        return planned(worker, number, RUN.part(f"part{number}"))


def comes(ledger: Ledger, epoch: Epoch, answers: Any) -> str | None:
    from lockstep.orchestration._coming import what_comes

    with closing(Report(ledger._connection.dsn)) as report:
        return what_comes(epoch, report, cast("Context", {"ti": answers}))


BETWEEN = {"begin": "success", "stage": "success", "prepare.delays": None, "publish.delays": None, "abort": "skipped"}


def test_of_an_attempt_whose_task_waits_for_a_slot_airflow_has_something_to_come(ledger: Ledger) -> None:
    epoch = begun_by(ledger, "begin")
    for state in ("scheduled", "queued", "running", "up_for_retry", "up_for_reschedule", None):
        states = {**BETWEEN, "prepare.warehouse": state, "prepare.delays": "success"}
        told = comes(ledger, epoch, Answers("running", states))
        assert told == f"prepare.warehouse of run {RUN.run_id} of DAG {RUN.dag_id}", state


def test_of_an_attempt_that_nobody_goes_on_with_airflow_has_nothing_to_come(ledger: Ledger) -> None:
    epoch = begun_by(ledger, "begin")
    others = {"begin": "success", "other.stage": "queued", "own_stage": "queued", "staged": None}
    answers = {
        "a run that was deleted": Answers(None, {}),
        "that failed": Answers("failed", BETWEEN),
        "whose tasks ended": Answers("running", {**BETWEEN, "prepare.delays": "failed"}),
        "of a paused DAG": Answers("running", {**BETWEEN, "prepare.delays": "scheduled"}, paused=True),
        "with others' tasks": Answers("running", others),
    }
    found = {name: comes(ledger, epoch, answer) for name, answer in answers.items()}
    assert found == dict.fromkeys(answers)


def test_what_is_to_come_is_the_tasks_of_the_epochs_own_group_or_pack(ledger: Ledger) -> None:
    states = {"eu.flights.commit": "queued", "us.flights.commit": "scheduled", "tables.pack_3": "running"}
    wanted = {"eu.flights.begin": "eu.flights.commit", "tables.pack[3]": "tables.pack_3"}
    for number, (task, told) in enumerate(wanted.items(), 1):
        found = comes(ledger, begun_by(ledger, task, number), Answers("running", {**states, "tables.pack_13": None}))
        assert found == f"{told} of run {RUN.run_id} of DAG {RUN.dag_id}"


def test_an_attempt_is_left_alone_while_airflow_does_not_answer(ledger: Ledger) -> None:
    from airflow.sdk.exceptions import AirflowRuntimeError
    from airflow.sdk.execution_time.comms import ErrorResponse

    def refuse(**_: object) -> int:
        raise AirflowRuntimeError(ErrorResponse())

    epoch = begun_by(ledger, "begin")
    assert comes(ledger, epoch, SimpleNamespace(get_dr_count=refuse)) is not None
    nobodys = planned(ledger, 2, RunKey("run_epoch", "a notebook's"))
    assert comes(ledger, nobodys, SimpleNamespace(get_dr_count=refuse)) is None, "Airflow isn't asked"
    voided = ledger.raise_attempt(FLIGHTS, epoch.id, Role.ABORT)
    assert comes(ledger, voided, SimpleNamespace(get_dr_count=refuse)) is None, "nobody can go on with it"


def test_a_scheduled_round_leaves_a_pipeline_to_the_round_that_is_at_it_and_a_persons_doesnt(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    from airflow.sdk.exceptions import AirflowSkipException

    from lockstep.orchestration import operators

    done: list[str] = []
    monkeypatch.setattr(operators, "open_runtime", lambda *_: nullcontext(SimpleNamespace(ledger=ledger)))

    def recovered(*_: object) -> RecoveryReport:
        done.append("recovered")
        return RecoveryReport(FLIGHTS)

    monkeypatch.setattr(operators, "recover", recovered)
    ledger.ensure_pipeline("clicks", Identity.CURSOR)

    def round_of(name: str, **conf: object) -> None:
        task = operators.RecoverOperator(task_id="recover", pipeline=name)
        task.execute(cast("Context", {"params": conf}))

    with ledger.recovering(FLIGHTS) as alone:
        assert alone
        with pytest.raises(AirflowSkipException, match="another round is recovering pipeline flights"):
            round_of(FLIGHTS)
        round_of("clicks")
        round_of(FLIGHTS, pipeline=FLIGHTS)
        round_of(FLIGHTS, hold_minutes=0)
    round_of(FLIGHTS)
    assert len(done) == 4


def test_rounds_may_overlap_so_that_one_that_takes_long_holds_no_other_pipeline_up() -> None:
    from lockstep.orchestration.recovery import recovery_dag

    dag = recovery_dag()
    assert dag.max_active_runs > 1
    assert dag.get_task("tell").max_active_tis_per_dag == 1, "nothing is told by two at the same moment"
    assert recovery_dag(max_active_runs=1).max_active_runs == 1
