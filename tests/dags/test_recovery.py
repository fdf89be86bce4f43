"""What the recovery DAG tells: a task a pipeline that is recovered, and one that is red while anything is stuck."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from typing import TYPE_CHECKING, cast

import pytest
from psycopg2.extensions import parse_dsn

from lockstep.epoch import Identity
from lockstep.errors import EpochsStuck
from lockstep.ledger import Ledger, migrate
from lockstep.states import Role
from stack.postgres import PostgresServer
from tests.ledger.epochs import FLIGHTS, planned

if TYPE_CHECKING:
    from airflow.sdk import Context


@pytest.fixture
def ledger(ledger_server: PostgresServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[Ledger]:
    """An empty ledger, and Airflow's Connection to it."""
    ledger_server.create_database("recovery")
    dsn = ledger_server.dsn("recovery")
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

    last = recovery_dag().get_task("nothing_stuck")
    assert (last.upstream_task_ids, last.trigger_rule) == ({"recover"}, TriggerRule.ALL_DONE)


def test_the_task_is_red_while_an_epoch_waits_for_a_person_and_names_pipeline_epoch_and_way_out(ledger: Ledger) -> None:
    from lockstep.orchestration.operators import NothingStuckOperator

    task = NothingStuckOperator(task_id="nothing_stuck")
    planned(ledger, 1)
    task.execute(cast("Context", {}))
    ledger.raise_attempt(FLIGHTS, 1, Role.ABORT, reason="disk full")
    with pytest.raises(EpochsStuck, match=rf"^pipeline {FLIGHTS}: an epoch is stuck; epoch 1 \(planned\): .*disk full"):
        task.execute(cast("Context", {}))
