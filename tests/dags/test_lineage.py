"""What OpenLineage's provider is told of operators that really ran: it asks them itself, as it does after a task."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from lockstep.connections.names import Dataset
from lockstep.errors import NotPrepared
from tests.dags.observed import DAY, RUN, Observed

if TYPE_CHECKING:
    from airflow.providers.openlineage.extractors import OperatorLineage
    from airflow.sdk import BaseOperator


@pytest.fixture(autouse=True)
def transport(monkeypatch: pytest.MonkeyPatch) -> None:
    """The provider has somebody to tell."""
    pytest.importorskip("airflow.providers.openlineage", reason="the provider isn't installed")
    monkeypatch.setenv("AIRFLOW__OPENLINEAGE__TRANSPORT", json.dumps({"type": "console"}))


def told(task: BaseOperator, how: str = "success") -> OperatorLineage[Any, Any]:
    """What the provider takes out of a task that has run."""
    from airflow.providers.openlineage.extractors.manager import ExtractorManager
    from airflow.utils.state import TaskInstanceState

    run = cast("Any", SimpleNamespace(run_id=RUN.run_id))
    manager: Any = ExtractorManager()  # type: ignore[no-untyped-call]
    found: OperatorLineage[Any, Any] = manager.extract_metadata(run, task, TaskInstanceState(how), SimpleNamespace())
    return found


def epochs(found: OperatorLineage[Any, Any]) -> list[tuple[str, int, str]]:
    facet: Any = found.run_facets["lockstep_epochs"]
    return [(one["pipeline"], one["epoch"], one["state"]) for one in facet.epochs]


def test_begin_tells_what_is_read_and_which_range(observed: Observed) -> None:
    found = told(observed.run("Begin"))
    [read] = found.inputs
    assert (read.namespace, read.name) == ("lockstep://numbers", "numbers"), "a source that no rule names"
    ranges: Any = read.inputFacets["lockstep_range"]
    assert (ranges.start, ranges.end) == ("null", '{"day": 3}')
    assert epochs(found) == [("numbers", 1, "planned")]
    assert found.outputs == []


def test_publish_tells_what_its_sink_shows_with_rows_and_columns_and_no_login(
    observed: Observed, monkeypatch: pytest.MonkeyPatch
) -> None:
    observed.decide()
    place = observed.world.warehouse_dsn
    dbname = observed.world.execute(place, "SELECT current_database()")[0][0]
    port = observed.world.execute(place, "SHOW port")[0][0]
    found = told(observed.run("Publish", sink="warehouse"))
    [shown] = found.outputs
    assert shown.namespace.startswith("postgres://") and shown.namespace.endswith(f":{port}")
    assert shown.name == f"{dbname}.public.numbers"
    counted: Any = shown.outputFacets["outputStatistics"]
    assert counted.rowCount == 20 and counted.size > 0
    columns: Any = shown.facets["schema"]
    assert [(one.name, one.type) for one in columns.fields] == [
        ("day", "int64"),
        ("number", "int32"),
        ("label", "string"),
    ]
    [read] = found.inputs
    rows: Any = read.inputFacets["inputStatistics"]
    assert rows.rowCount == 20
    [files] = told(observed.run("Publish", sink="files")).outputs
    assert (files.namespace, files.name) == ("file", str(observed.world.folder / "out"))
    assert epochs(found) == [("numbers", 1, "committed")]


def test_what_fails_has_shown_nothing_as_far_as_anybody_knows(observed: Observed) -> None:
    observed.run("Begin")
    task = observed.operator("Publish", sink="warehouse")
    with pytest.raises(NotPrepared):
        observed.execute(task)
    found = told(task, "failed")
    assert found.outputs == []
    assert epochs(found) == [("numbers", 1, "planned")]


def test_a_start_names_no_epoch_and_every_operator_can_be_asked(observed: Observed) -> None:
    from lockstep.airflow import operators
    from lockstep.airflow._base_operator import LockstepOperator

    kinds = [one for one in vars(operators).values() if isinstance(one, type)]
    tasks = [one for one in kinds if issubclass(one, LockstepOperator)]
    assert len(tasks) > 12
    for method in ("start", "complete", "failure"):
        assert all(callable(getattr(one, f"get_openlineage_facets_on_{method}")) for one in tasks)
    found = told(observed.operator("Begin"), "running")
    assert (found.inputs, found.outputs, found.run_facets) == ([], [], {})


def test_a_place_that_cannot_be_named_fails_no_task(observed: Observed, monkeypatch: pytest.MonkeyPatch) -> None:
    observed.decide()
    monkeypatch.setattr("lockstep.airflow._telemetry._schemas", lambda *_: 1 / 0)
    found = told(observed.run("Publish", sink="warehouse"))
    assert found.outputs == []
    assert observed.world.shown_in_warehouse(DAY)


def test_nothing_is_noted_where_the_provider_is_disabled(observed: Observed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW__OPENLINEAGE__DISABLED", "True")
    assert cast("Any", observed.run("Begin")).lineage is None


def test_sparks_own_lineage_gets_its_parent_where_the_provider_is_to_say_it(
    monkeypatch: pytest.MonkeyPatch, observed: Observed
) -> None:
    from airflow.providers.common.compat.openlineage.utils import spark

    from lockstep.airflow._telemetry import with_parent_run

    def inject(properties: dict[str, Any], context: Any) -> dict[str, Any]:
        return {**properties, "spark.openlineage.parentRunId": context["ti"]}

    monkeypatch.setattr(spark, "inject_parent_job_information_into_spark_properties", inject)
    given = {"conf": {"spark.x": "1"}, "name": "job"}
    context = cast("Any", {"ti": "the run"})
    assert with_parent_run(given, context) == given
    monkeypatch.setenv("AIRFLOW__OPENLINEAGE__SPARK_INJECT_PARENT_JOB_INFO", "True")
    told = {"spark.x": "1", "spark.openlineage.parentRunId": "the run"}
    assert with_parent_run(given, context) == {"conf": told, "name": "job"}
    assert with_parent_run({}, context) == {"conf": {"spark.openlineage.parentRunId": "the run"}}


def test_of_several_places_each_is_an_output_and_none_has_a_row_count(
    observed: Observed, monkeypatch: pytest.MonkeyPatch
) -> None:
    from lockstep.sinks.files import FileSink

    places = (Dataset("kafka://one:9092", "a"), Dataset("kafka://one:9092", "b"))
    named = [(one.namespace, one.name) for one in places]
    monkeypatch.setattr(FileSink, "datasets", lambda sink, connections: {sink.output: places})
    monkeypatch.setattr(type(observed.world.pipeline.sources["numbers"]), "datasets", lambda *_: places)
    observed.decide()
    shown = told(observed.run("Publish", sink="files")).outputs
    assert [(one.namespace, one.name) for one in shown] == named
    for one in shown:
        counted: Any = one.outputFacets["outputStatistics"]
        assert "schema" in one.facets and (counted.rowCount, counted.size) == (None, None)
