"""What a run tells those who only listen: OpenLineage's transport, a server of metrics, and the reader of a log."""

from __future__ import annotations

import json
from typing import Any

import pytest

from lockstep.orchestration.provider import get_provider_info
from tests.e2e.airflow_api import wait_for
from tests.e2e.conftest import TestedStack
from tests.e2e.world import World

pytestmark = [pytest.mark.airflow, pytest.mark.timeout(900)]

DAY, SINKS = "2024-02-20", ("archive", "warehouse")
COLUMNS = {name: [name] for name in ("id", "day", "amount")}  #: by what each is made of


def heard(stack: TestedStack) -> list[str]:
    """Every metric that has come since."""
    found: list[str] = []
    while True:
        try:
            found += stack.metrics.recv(65_536).decode().splitlines()
        except BlockingIOError:
            return found


def completed(stack: TestedStack) -> dict[str, Any]:
    """By its name the last event of each job that has ended well."""
    lines = stack.lineage.read_text().splitlines() if stack.lineage.exists() else []
    events = [json.loads(line) for line in lines if line.endswith("}")]
    return {event["job"]["name"]: event for event in events if event["eventType"] == "COMPLETE"}


def test_a_run_tells_lineage_and_metrics_what_its_sinks_show(world: World, stack: TestedStack) -> None:
    rows, told = world.land("orders", DAY).total(), heard(stack)
    told.clear()
    run_id = world.trigger("orders", DAY, dag_id="observed")

    def all_told() -> bool:
        told.extend(heard(stack))
        rows_told = {f"airflow.lockstep.rows.orders.{sink}.orders:{rows}|c" for sink in SINKS}
        return rows_told <= {*told} and {f"observed.publish.{sink}" for sink in SINKS} <= completed(stack).keys()

    wait_for(all_told, "rows by StatsD, and events of both sinks")
    world.require_success("observed", run_id)
    epoch = world.epoch("orders", DAY)
    assert epoch is not None
    for sink in SINKS:
        event = completed(stack)[f"observed.publish.{sink}"]
        [output] = event["outputs"]
        assert output["outputFacets"]["outputStatistics"]["rowCount"] == rows
        made_of = output["facets"]["columnLineage"]["fields"]
        assert {name: [one["field"] for one in told["inputFields"]] for name, told in made_of.items()} == COLUMNS
        [named] = event["run"]["facets"]["lockstep_epochs"]["epochs"]
        assert (named["pipeline"], named["epoch"]) == ("orders", epoch.id)
        assert any(line.startswith(f"airflow.lockstep.phase.duration.orders.publish.{sink}:") for line in told)
    assert all(".".join(name.split(".")[:1]) == "observed" for name in completed(stack)), "nobody else asked for it"


def test_the_page_for_a_new_connection_asks_for_what_each_type_of_lockstep_s_has(world: World) -> None:
    forms = world.api.connection_forms()
    for asked in get_provider_info()["connection-types"]:
        form = forms[asked["connection-type"]]
        assert form["hook_name"] == asked["hook-name"]
        assert set(form["extra_fields"] or {}) == set(asked.get("conn-fields", {}))
