"""What older versions wrote is read by this one: their ledger, staging, targets and markers, caught in the middle."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from lockstep.cli import app
from lockstep.connections.environment import variable_of
from lockstep.epoch import Epoch
from lockstep.errors import StageFailed
from lockstep.operations.savepoint import export, start
from lockstep.sinks import FileSink
from lockstep.sinks.base import Sink
from lockstep.sinks.values import Guarantee, SinkContext
from stack.postgres import PostgresServer
from tests.kept.deployment import FIRST_DAY, Row, counted, interval_of
from tests.kept.restored import DECIDED, KEPT, Restored, definitions, restored, with_kafka, with_mariadb

PIPELINES = tuple(dict.fromkeys(name for kept in KEPT for name in definitions(kept).pipelines(Path("/"))))
SEQUENCES = ("numbers", "resumed")
#: columns that a target tells otherwise: as a folder's name, as a mark of rows that are gone
ELSEWHERE = {("numbers", "by_parity"): "parity", ("resumed", "by_parity"): "parity", ("customers", "totals"): "gone"}
#: key, and the column of what is newest where it isn't the epoch
UPSERTS = {
    ("customers", "totals"): ("customer", None),
    ("numbers", "newest"): ("parity", "total"),
    ("resumed", "newest"): ("parity", "total"),
    ("maria", "newest"): ("piece", None),
}


@pytest.fixture(scope="module", params=KEPT)
def deployment(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    ledger_server: PostgresServer,
    warehouse_server: PostgresServer,
) -> Iterator[Restored]:
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("NO_PROXY", "127.0.0.1")
        folder = tmp_path_factory.mktemp("kept")
        with restored(request.param, folder, ledger_server, warehouse_server) as found:
            yield found


@pytest.fixture(params=["", "maria", "kafka"], ids=["postgres", "mariadb", "kafka"])
def pipelines(request: pytest.FixtureRequest, deployment: Restored) -> list[str]:
    """Those that need this server."""
    if request.param == "maria":
        with_mariadb(deployment, request.getfixturevalue("mariadb_server"))
    elif request.param == "kafka":
        with_kafka(deployment, request.getfixturevalue("kafka_broker"))
    needs = {name: set(wanted) & {"maria", "kafka"} for name, wanted in definitions(deployment.name).NEEDS.items()}
    found = [name for name in PIPELINES if needs.get(name, set()) == ({request.param} - {""})]
    return [name for name in found if name in deployment.facts]


def sealed(epochs: Mapping[int, Any], output: str) -> list[list[Row]]:
    return [epoch["sealed"][output] for _, epoch in sorted(epochs.items())]


def expected(deployment: Restored, pipeline: str, sink: str, output: str, epochs: Mapping[int, Any]) -> Counter[str]:
    """The rows that a reader has to find once these epochs are shown."""
    guarantee_of_receivers = deployment.arguments(pipeline, sink)
    if not {"tables", "path", "topic"} & set(guarantee_of_receivers):  # what was sent before is at the old receiver
        epochs = {id: epoch for id, epoch in epochs.items() if sink not in epoch["published"]}
    rows = [row for of_epoch in sealed(epochs, output) for row in of_epoch]
    if (pipeline, sink) in UPSERTS:
        rows = newest(rows, *UPSERTS[pipeline, sink])
    left_out = ELSEWHERE.get((pipeline, sink))
    return counted({name: value for name, value in row.items() if name != left_out} for row in rows)


def newest(rows: list[Row], key: str, order: str | None) -> list[Row]:
    found: dict[str | None, Row] = {}
    for row in rows:
        before = found.get(row[key])
        if before is None or order is None or int(row[order] or 0) >= int(before[order] or 0):
            found[row[key]] = row
    return [row for row in found.values() if row.get("gone") != "1"]


def decided(deployment: Restored, pipeline: str, *more: str) -> dict[int, Any]:
    return {id: epoch for id, epoch in deployment.kept(pipeline).items() if epoch["state"] in (*DECIDED, *more)}


def require_shown(deployment: Restored, pipeline: str, *more: str) -> None:
    """Every target has the rows of what is decided now, each as often as it was sealed."""
    for sink, spec in deployment.deployment.epochs(pipeline)[1].plan.sinks.items():
        for output in outputs_of(spec["arguments"]):
            sharing = SEQUENCES if spec["arguments"].get("shared") else (pipeline,)
            wanted: Counter[str] = Counter()
            for one in sharing:
                deployment.recovered(one)
                wanted += expected(deployment, one, sink, output, decided(deployment, one, *more))
            assert counted(deployment.shown(pipeline, sink, output)) == wanted, (sink, output)


def outputs_of(arguments: Mapping[str, Any]) -> list[str]:
    return list(arguments.get("tables", ())) or [arguments["output"]]


def invoke(deployment: Restored, monkeypatch: pytest.MonkeyPatch, *arguments: str) -> Any:
    monkeypatch.setenv("LOCKSTEP_LEDGER", deployment.deployment.ledger_dsn)
    monkeypatch.setenv("LOCKSTEP_STAGING", deployment.deployment.staging)
    for connection, value in deployment.deployment.connections.items():
        monkeypatch.setenv(variable_of(connection), value)
    result = CliRunner().invoke(app, [*arguments, "--json"])
    return json.loads(result.stdout)


def test_what_was_decided_then_is_shown_now_once(
    deployment: Restored, pipelines: list[str], subtests: pytest.Subtests, monkeypatch: pytest.MonkeyPatch
) -> None:
    for pipeline in pipelines:
        with subtests.test(pipeline):
            if pipeline not in deployment.reports:
                [status] = invoke(deployment, monkeypatch, "status", pipeline)
                states = {one["epoch"]["id"]: one["epoch"]["state"] for one in status["epochs"]}
                assert states == {id: epoch["state"] for id, epoch in deployment.kept(pipeline).items()}
            first, second = deployment.recovered(pipeline)
            assert first.complete and second.complete, (first.problems, first.busy)
            kept = deployment.kept(pipeline)
            assert first.finished == [id for id, epoch in kept.items() if epoch["state"] in ("committed", "published")]
            assert second.finished == []
            require_shown(deployment, pipeline)
            epochs = deployment.deployment.epochs(pipeline)
            settled = {"committed": "cleaned", "published": "cleaned"}
            assert {id: epoch.state.value for id, epoch in epochs.items()} == {
                id: settled.get(epoch["state"], epoch["state"]) for id, epoch in kept.items()
            }


def test_verify_agrees_with_the_kept_manifests(
    deployment: Restored, pipelines: list[str], subtests: pytest.Subtests, monkeypatch: pytest.MonkeyPatch
) -> None:
    for pipeline in pipelines:
        with subtests.test(pipeline):
            deployment.recovered(pipeline)
            found = invoke(deployment, monkeypatch, "verify", pipeline)
            problems = [(one["epoch"], one["sink"], one["problem"]) for one in found if one["problem"]]
            assert [one for one in problems if "epoch numbers of two sinks can't be told apart" not in one[2]] == []
            assert {sink for _, sink, _ in problems} <= {"shared"}
            assert {one["epoch"] for one in found} >= set(decided(deployment, pipeline))


def test_markers_are_found_by_number_and_by_range(
    deployment: Restored, pipelines: list[str], subtests: pytest.Subtests
) -> None:
    for pipeline in pipelines:
        deployment.recovered(pipeline)
        epochs = [deployment.deployment.epochs(pipeline)[id] for id in decided(deployment, pipeline)]
        with deployment.deployment.runtime(pipeline) as runtime:
            for epoch, name in [(one, name) for one in epochs for name in one.plan.sinks]:
                with subtests.test(pipeline, epoch=epoch.id, sink=name):
                    require_marker(runtime.sink_of(epoch, name), runtime.sink_context(), epoch)


def require_marker(description: Sink, context: SinkContext, epoch: Epoch) -> None:
    with description.opened(context) as sink:
        if sink.guarantee is Guarantee.NONE:
            return
        marker = sink.find_marker(epoch.id)
        assert marker is not None and marker.manifest_hash == epoch.manifest_hash
        if epoch.interval is not None:
            span = f"{epoch.interval.start.isoformat()}/{epoch.interval.end.isoformat()}"
            of_span = sink.find_marker_of_span(span)
            assert of_span is not None and of_span.epoch == epoch.id


def test_overrides_deployed_settings_and_runs_are_known(deployment: Restored) -> None:
    with deployment.deployment.runtime("orders") as runtime:
        epoch = runtime.ledger.epoch("orders", 4)
        assert runtime.sink_of(epoch, "warehouse").settings() == {"lock_timeout": 7.0}
        assert runtime.sink_of(epoch, "refunds").settings() == {}
    with deployment.deployment.runtime("tables") as runtime:
        runtime = replace(runtime, definition=None)  # as recovery is
        sink = runtime.sink_of(runtime.ledger.epoch("tables", 3), "http")
        assert sink.settings()["records_per_request"] == 2
    deployment.recovered("orders")
    epoch = deployment.deployment.move("orders", 0, "begin")  # a run of then is known now
    assert (epoch.id, epoch.interval, epoch.state.value) == (1, interval_of(0), "cleaned")


def test_what_was_staged_or_planned_goes_on_and_the_next_epoch_follows(
    deployment: Restored, pipelines: list[str], subtests: pytest.Subtests
) -> None:
    for pipeline in pipelines:
        with subtests.test(pipeline):
            deployment.recovered(pipeline)
            require_to_go_on(deployment, pipeline)


def require_to_go_on(deployment: Restored, pipeline: str) -> None:
    """The state that was kept is read, too: the job is only asked for once it is found whole."""
    kept, number = deployment.kept(pipeline), 100
    finish = ("prepare", "commit", "publish", "cleanup")
    for id, epoch in kept.items():
        if epoch["state"] in ("staged", "planned"):
            number = id - 1 if pipeline == "orders" else number + 1
            found = deployment.begin(pipeline, number)
            assert found.id == id and ends_of(found) == epoch["ends"]
            if epoch["state"] == "staged":
                deployment.deployment.move(pipeline, number, *finish)
            else:
                require_asked_for_rows(deployment, pipeline, number)
                return
    require_shown(deployment, pipeline, "staged")
    land(deployment, pipeline)
    found = deployment.begin(pipeline, number := 200)
    assert found.id == max(kept) + 1
    for source, range in found.plan.sources.items():
        assert range.start == deployment.deployment.epochs(pipeline)[max(kept)].plan.sources[source].end
        assert range.end != range.start
    require_new(deployment, pipeline, found)
    require_asked_for_rows(deployment, pipeline, number)


def ends_of(epoch: Epoch) -> dict[str, Any]:
    return {source: range.end for source, range in epoch.plan.sources.items()}


def require_asked_for_rows(deployment: Restored, pipeline: str, number: int) -> None:
    """Sources find what they froze, and the state before is whole."""
    asked: list[str] = []

    def job(request: str) -> None:
        asked.append(request)
        raise StageFailed("no Spark here")

    with pytest.raises(StageFailed, match="no Spark here"):
        deployment.deployment.move(pipeline, number, "stage", job=job)
    assert asked


def land(deployment: Restored, pipeline: str) -> None:
    """Something new to read, where the kept deployment hasn't left anything."""
    if pipeline == "orders":
        (deployment.home / "landing" / "orders" / f"{FIRST_DAY.replace(month=7, day=20):%Y-%m-%d}.csv").touch()


def require_new(deployment: Restored, pipeline: str, epoch: Epoch) -> None:
    """What comes next is what was landed last, and nothing that was read before."""
    range = next(iter(epoch.plan.sources.values()))
    names = [Path(file["path"]).name for file in range.end["files"]] if "files" in range.end else None
    match pipeline:
        case "customers":
            assert names == ["6.json"]
        case "clicks":
            assert names == ["4.csv"]
        case "lines":
            assert names == ["a.csv"] and range.end["files"][0]["from"] > 0
        case "tables":
            assert {name: one.end["rows"] for name, one in epoch.plan.sources.items()} == {"accounts": 3, "entries": 3}
        case "maria":
            assert range.end["rows"] == 1
        case "maria_again":
            assert range.end["rows"] == 3
        case "events":
            [topic] = range.end["topics"].values()
            assert sum(end - first for first, end in topic["partitions"].values()) == 4


def test_kept_state_can_be_saved(deployment: Restored, tmp_path: Path) -> None:
    for pipeline in SEQUENCES:
        deployment.recovered(pipeline)
        last = max(decided(deployment, pipeline))
        with deployment.deployment.runtime(pipeline) as runtime:
            saved = export(runtime, str(tmp_path / pipeline), last)
        assert saved.positions == deployment.kept(pipeline)[last]["ends"]
        assert saved.versions["sums"].rows == 2


def test_a_new_pipeline_begins_with_the_kept_savepoint(deployment: Restored, tmp_path: Path) -> None:
    sink = FileSink("out", output="numbers", path=str(tmp_path / "out"))
    again = replace(deployment.deployment.pipelines["resumed"], name="again", sinks=[sink])
    deployment.deployment.pipelines = {**deployment.deployment.pipelines, "again": again}
    with deployment.deployment.runtime("again") as runtime:
        found = start(runtime, str(deployment.home / "savepoint"))
    assert (found.pipeline, found.epoch) == ("numbers", 2)
    epoch = deployment.deployment.move("again", 1, "begin")
    assert {name: one.start for name, one in epoch.plan.sources.items()} == found.positions
    require_asked_for_rows(deployment, "again", 1)
