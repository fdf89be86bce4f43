"""What OpenLineage's provider is told of operators that really ran: it asks them itself, as it does after a task."""

from __future__ import annotations

import json
from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from lockstep.column_lineage import ColumnLineage, How, Part
from lockstep.dataset import Dataset
from lockstep.errors import NotPrepared
from lockstep.wal.manifest import Manifest
from lockstep.wal.staging import Staging
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
    from lockstep.orchestration import operators
    from lockstep.orchestration._telling import TellingOperator

    kinds = [one for one in vars(operators).values() if isinstance(one, type)]
    tasks = [one for one in kinds if issubclass(one, TellingOperator)]
    assert len(tasks) > 12
    for method in ("start", "complete", "failure"):
        assert all(callable(getattr(one, f"get_openlineage_facets_on_{method}")) for one in tasks)
    found = told(observed.operator("Begin"), "running")
    assert (found.inputs, found.outputs, found.run_facets) == ([], [], {})


def test_a_place_that_cannot_be_named_fails_no_task(observed: Observed, monkeypatch: pytest.MonkeyPatch) -> None:
    observed.decide()
    monkeypatch.setattr("lockstep.orchestration._lineage._sealed", lambda *_: 1 / 0)
    found = told(observed.run("Publish", sink="warehouse"))
    assert found.outputs == []
    assert observed.world.shown_in_warehouse(DAY)


COLUMNS = ColumnLineage(
    {
        "day": frozenset({Part("numbers", "day", How.IDENTITY)}),
        "number": None,
        "label": frozenset({Part("numbers", "day", How.CONDITIONAL), Part("numbers", "number", How.TRANSFORMATION)}),
    },
    frozenset({Part("numbers", "number", How.FILTER)}),
)


def sealed_with(monkeypatch: pytest.MonkeyPatch, lineage: ColumnLineage) -> None:
    """Every manifest has it of all outputs."""
    read = Staging.manifest

    def manifest(staging: Staging, wal: str, manifest_hash: str) -> Manifest:
        found = read(staging, wal, manifest_hash)
        return replace(found, column_lineage=dict.fromkeys(found.outputs, lineage))

    monkeypatch.setattr(Staging, "manifest", manifest)


def told_of(field: Any) -> list[tuple[str, str, str, list[tuple[str, str]]]]:
    return [
        (one.namespace, one.name, one.field, [(how.type, how.subtype) for how in one.transformations]) for one in field
    ]


def test_publish_tells_of_which_columns_of_its_inputs_an_output_s_columns_are_made(
    observed: Observed, monkeypatch: pytest.MonkeyPatch
) -> None:
    sealed_with(monkeypatch, COLUMNS)
    observed.decide()
    found = told(observed.run("Publish", sink="warehouse"))
    [shown], [read] = found.outputs, found.inputs
    place = read.namespace, read.name
    made: Any = shown.facets["columnLineage"]
    assert {name: told_of(one.inputFields) for name, one in made.fields.items()} == {
        "day": [(*place, "day", [("DIRECT", "IDENTITY")])],
        "label": [
            (*place, "day", [("INDIRECT", "CONDITIONAL")]),
            (*place, "number", [("DIRECT", "TRANSFORMATION")]),
        ],
    }
    assert told_of(made.dataset) == [(*place, "number", [("INDIRECT", "FILTER")])]
    from openlineage.client.serde import Serde

    event = json.loads(Serde.to_json(shown))
    assert set(event["facets"]["columnLineage"]["fields"]) == {"day", "label"}


def test_a_job_is_asked_for_columns_and_anything_noted_where_somebody_listens_and_only_there(
    observed: Observed, monkeypatch: pytest.MonkeyPatch
) -> None:
    from lockstep.orchestration.operators import open_runtime

    task = observed.operator("Begin")
    for disabled in ("False", "True"):
        monkeypatch.setenv("AIRFLOW__OPENLINEAGE__DISABLED", disabled)
        with open_runtime("numbers", observed.world.pipeline, observed.context(task)) as runtime:
            assert runtime.column_lineage == (disabled == "False")
    assert cast("Any", observed.run("Begin")).lineage is None


def test_sparks_own_lineage_gets_its_parent_where_the_provider_is_to_say_it(
    monkeypatch: pytest.MonkeyPatch, observed: Observed
) -> None:
    from airflow.providers.common.compat.openlineage.utils import spark

    from lockstep.orchestration._lineage import with_parent_run

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


def test_of_several_places_each_is_told_with_its_part_in_a_column_and_nobody_counts_what_is_where(
    observed: Observed, monkeypatch: pytest.MonkeyPatch
) -> None:
    from lockstep.sinks.files import FileSink

    places = (Dataset("kafka://one:9092", "a"), Dataset("kafka://one:9092", "b"))
    named = [(one.namespace, one.name) for one in places]
    monkeypatch.setattr(FileSink, "datasets", lambda sink, connections: {sink.output: places})
    monkeypatch.setattr(type(observed.world.pipeline.sources["numbers"]), "datasets", lambda *_: places)
    sealed_with(monkeypatch, replace(COLUMNS, rows=None))
    observed.decide()
    shown = told(observed.run("Publish", sink="files")).outputs
    assert [(one.namespace, one.name) for one in shown] == named
    for one in shown:
        counted: Any = one.outputFacets["outputStatistics"]
        made: Any = one.facets["columnLineage"]
        assert "schema" in one.facets and (counted.rowCount, counted.size) == (None, None)
        assert told_of(made.fields["day"].inputFields) == [(*place, "day", [("DIRECT", "IDENTITY")]) for place in named]
        assert made.dataset is None, "by what rows are chosen isn't known"
