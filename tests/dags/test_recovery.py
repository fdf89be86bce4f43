"""What the recovery DAG tells: a task a pipeline that is recovered, and one that is red while anything is stuck."""

from __future__ import annotations

from contextlib import closing, nullcontext
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from lockstep.epoch import Epoch, KeyedBy, RunKey
from lockstep.errors import EpochsStuck, IllegalTransition, UnknownEpoch
from lockstep.ledger import Ledger
from lockstep.ledger.report import Report
from lockstep.operations.resolve import NothingAsked
from lockstep.protocol.recover import RecoveryReport
from lockstep.states import Role
from tests.cases import cases
from tests.ledger.epochs import FLIGHTS, RUN, day, planned

if TYPE_CHECKING:
    from airflow.sdk import Context


@pytest.fixture(autouse=True)
def pipeline(ledger: Ledger) -> None:
    ledger.ensure_pipeline(FLIGHTS, KeyedBy.INTERVAL)


@pytest.fixture
def done(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """What the operators do in the place of recovery: the hold of each round, and each word that is carried out."""
    from lockstep.airflow import operators

    found: list[object] = []

    def recovered(_: object, recovery_grace: object, __: object) -> RecoveryReport:
        found.append(recovery_grace)
        return RecoveryReport(FLIGHTS)

    monkeypatch.setattr(operators, "open_runtime", lambda *_: nullcontext(SimpleNamespace(ledger=ledger)))
    monkeypatch.setattr(operators, "recover", recovered)
    monkeypatch.setattr(operators, "resolve_as_asked", lambda _, *asked: found.append(asked))
    return found


def recover(of: str = FLIGHTS, **params: object) -> None:
    from lockstep.airflow.operators import RecoverOperator

    RecoverOperator(task_id="recover", pipeline=of).execute(cast("Context", {"params": params}))


def test_what_is_stuck_is_looked_for_when_all_was_recovered_and_rounds_may_overlap() -> None:
    from airflow.sdk import TriggerRule

    from lockstep.airflow.dag import recovery_dag

    dag = recovery_dag()
    for name in ("stuck_epochs", "emit_asset_events"):
        last = dag.get_task(name)
        assert (last.upstream_task_ids, last.trigger_rule) == ({"recover"}, TriggerRule.ALL_DONE)
    assert dag.max_active_runs > 1, "one that takes long holds no other pipeline up"
    assert dag.get_task("emit_asset_events").max_active_tis_per_dag == 1, "nothing is told by two at the same moment"
    assert recovery_dag(max_active_runs=1).max_active_runs == 1


@pytest.mark.fault("R10")
@cases("name", ["recovery_dag", "compaction_dag"])
def test_arguments_of_airflow_s_come_over_lockstep_s_own_or_beside_them(name: str) -> None:
    import lockstep

    def alarm(context: Any) -> None: ...

    make: Any = getattr(lockstep, name)
    start = datetime(2026, 1, 1, tzinfo=UTC)
    mine = {"default_args": {"on_failure_callback": alarm}, "params": {"mine": 1}, "tags": ["mine"], "doc_md": "mine"}
    dag, usual = make(**mine, start_date=start), make()
    assert dag.default_args == {**usual.default_args, "on_failure_callback": alarm}
    assert dag.params.keys() == {*usual.params, "mine"} and dag.tags == {*usual.tags, "mine"}
    assert (dag.doc_md, dag.start_date, usual.doc_md is None) == ("mine", start, False)
    tasks = [task for task in dag.tasks if hasattr(task, "on_failure_callback")]
    assert tasks and all(task.on_failure_callback for task in tasks)


@pytest.mark.fault("H25")
def test_the_task_is_red_while_an_epoch_waits_for_a_person_and_names_pipeline_epoch_and_way_out(ledger: Ledger) -> None:
    from lockstep.airflow.operators import StuckEpochsCheck

    task = StuckEpochsCheck(task_id="stuck_epochs")
    planned(ledger, 1)
    task.execute(cast("Context", {}))
    ledger.raise_attempt(FLIGHTS, 1, Role.ABORT, reason="disk full")
    with pytest.raises(EpochsStuck, match=rf"^pipeline {FLIGHTS}: an epoch is stuck; epoch 1 \(planned\): .*disk full"):
        task.execute(cast("Context", {}))


def test_recovery_reads_which_pipeline_and_what_hold_from_the_run_whatever_airflow_makes_of_its_params(
    ledger: Ledger, done: list[object]
) -> None:
    from lockstep.airflow import operators

    ledger.ensure_pipeline("clicks", KeyedBy.CURSOR)
    conf = {"pipeline": FLIGHTS, "recovery_grace_minutes": 7}
    params = {"pipeline": None, "recovery_grace_minutes": None}
    asked = cast("Context", {"params": params, "dag_run": SimpleNamespace(conf=conf)})
    assert operators.ListPipelinesOperator(task_id="pipelines").execute(asked) == [FLIGHTS]
    operators.RecoverOperator(task_id="recover", pipeline=FLIGHTS).execute(asked)
    assert done == [timedelta(minutes=7)]
    for wrong in ("0", -1, True, 0.5, 10**30):
        with pytest.raises(IllegalTransition, match="recovery_grace_minutes is"):
            recover(recovery_grace_minutes=wrong)
    assert len(done) == 1


@pytest.mark.fault("R17")
def test_recovery_of_a_pipeline_that_there_is_not_is_refused_and_of_none_is_of_every(ledger: Ledger) -> None:
    from lockstep.airflow.operators import ListPipelinesOperator

    def names(**conf: object) -> Any:
        asked = cast("Context", {"params": {"pipeline": None}, "dag_run": SimpleNamespace(conf=conf)})
        return ListPipelinesOperator(task_id="pipelines").execute(asked)

    ledger.ensure_pipeline("clicks", KeyedBy.CURSOR)
    assert names() == names(pipeline="") == names(pipeline=None) == ["clicks", FLIGHTS]
    for wrong in ("fligths", 0, [FLIGHTS]):
        for word in ({}, {"resolve_epoch": 1, "resolve_sink": "delays", "resolve_entry": 1}):
            with pytest.raises(UnknownEpoch, match=r"the ledger has no pipeline .* to recover: `lockstep status`"):
                names(pipeline=wrong, **word)


@pytest.mark.fault("R18")
def test_intervals_without_an_epoch_are_named_with_the_backfill_that_fills_them_and_make_nothing_red(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    from lockstep.airflow.operators import StuckEpochsCheck

    said: list[str] = []
    log = SimpleNamespace(warning=lambda text, *values: said.append(text % values))
    monkeypatch.setattr(StuckEpochsCheck, "log", log)
    task = StuckEpochsCheck(task_id="stuck_epochs")
    planned(ledger, 1)
    planned(ledger, 2, RunKey("flights", "second"))
    task.perform(cast("Context", {}))
    assert said == []
    planned(ledger, 5, RunKey("flights", "fifth"))
    planned(ledger, 7, RunKey("flights", "seventh"))
    task.perform(cast("Context", {}))
    start, end = day(3).start.isoformat(), day(5).start.isoformat()
    last = f"{day(4).start:%Y-%m-%d}T23:59:59+00:00"
    assert said == [
        f"pipeline {FLIGHTS}: no epoch for [{start}, {end}) and 1 more: `airflow backfill create --dag-id <its DAG> "
        f"--from-date {start} --to-date {last} --reprocess-behavior failed` fills it"
    ]


def test_a_run_that_points_to_a_persons_word_has_it_carried_out_before_it_recovers(
    done: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    from lockstep.airflow import operators

    word: dict[str, Any] = {"pipeline": FLIGHTS, "resolve_epoch": 7, "resolve_sink": "delays", "resolve_entry": 40}
    recover(pipeline=FLIGHTS)
    recover(**word)
    assert done == [None, (7, "delays", 40), None]

    def used_up(*_: object) -> None:
        raise NothingAsked("it was carried out")

    monkeypatch.setattr(operators, "resolve_as_asked", used_up)
    recover(**word)
    assert done[3:] == [None], "a retry goes on with the rest"
    wrongs: list[tuple[str, Any]] = [("resolve_epoch", wrong) for wrong in ("7", True, 10**30)]
    wrongs += [("resolve_entry", 1 << 63), ("resolve_entry", None), ("resolve_sink", None), ("pipeline", None)]
    for name, wrong in wrongs:
        with pytest.raises(IllegalTransition, match="to resolve say pipeline"):
            recover(**{**word, name: wrong})
    assert len(done) == 4


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
    from lockstep.airflow._actors import pending_tasks

    with closing(Report(ledger._connection.dsn)) as report:
        return pending_tasks(epoch, report, cast("Context", {"ti": answers}))


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
    ledger: Ledger, done: list[object]
) -> None:
    from airflow.sdk.exceptions import AirflowSkipException

    ledger.ensure_pipeline("clicks", KeyedBy.CURSOR)
    with ledger.recovering(FLIGHTS) as alone:
        assert alone
        with pytest.raises(AirflowSkipException, match="another run is recovering pipeline flights"):
            recover()
        recover("clicks")
        recover(pipeline=FLIGHTS)
        recover(recovery_grace_minutes=0)
    recover()
    assert len(done) == 4
