"""What the recovery DAG tells: a task a pipeline that is recovered, and one that is red while anything is stuck."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing, nullcontext
from datetime import timedelta
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast
from uuid import uuid4

import pytest
from psycopg2.extensions import parse_dsn

from lockstep.epoch import Identity, RunKey
from lockstep.errors import EpochsStuck, IllegalTransition
from lockstep.ledger import Ledger, migrate
from lockstep.operations.resolve import NothingAsked
from lockstep.roles.recover import RecoveryReport
from lockstep.states import Role
from stack.postgres import PostgresServer
from tests.ledger.epochs import FLIGHTS, day, planned

if TYPE_CHECKING:
    from airflow.sdk import Context


@pytest.fixture
def ledger(ledger_server: PostgresServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[Ledger]:
    """An empty ledger, and Airflow's Connection to it."""
    dsn = ledger_server.create_database(f"recovery_{uuid4().hex}")
    migrate(dsn)
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
    monkeypatch.setattr(operators, "open_runtime", lambda *_: nullcontext())

    def recovered(_: object, hold: object) -> RecoveryReport:
        held.append(hold)
        return RecoveryReport(FLIGHTS)

    monkeypatch.setattr(operators, "recover", recovered)
    ledger.ensure_pipeline("clicks", Identity.CURSOR)
    conf = {"pipeline": FLIGHTS, "hold_minutes": 7}
    params = {"pipeline": None, "hold_minutes": None}
    asked = cast("Context", {"params": params, "dag_run": SimpleNamespace(conf=conf)})
    assert operators.ListPipelinesOperator(task_id="pipelines").execute(asked) == [FLIGHTS]
    operators.RecoverOperator(task_id="recover", pipeline=FLIGHTS).execute(asked)
    assert held == [timedelta(minutes=7)]


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
    monkeypatch.setattr(operators, "open_runtime", lambda *_: nullcontext())
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
