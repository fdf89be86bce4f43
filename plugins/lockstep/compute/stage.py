"""The Spark side of stage: read the frozen ranges, transform, write each output into the execution's folder.

Nothing here is believed: the task that asked for it checks the sources again, lists, counts and seals.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from pyspark.sql import DataFrame, SparkSession

from lockstep.compute.bad_records import settle
from lockstep.compute.by_value import ship_by_value
from lockstep.compute.enrich import Enrichments, asked_once, collected
from lockstep.compute.failures import translated
from lockstep.compute.inputs import Input, Observed
from lockstep.compute.session import tagged
from lockstep.errors import InvalidPipeline, PlanMismatch, StageFailed
from lockstep.pipeline import Pipeline
from lockstep.wal.manifest import SourceCount
from lockstep.wal.request import StageRequest, StageResult, read_request, write_error, write_result

_WRITE = {
    "compression": "zstd",
    "mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
    # every reader takes all rows once, so nothing is repaid of what looking for repeated values and bounds costs
    "parquet.enable.dictionary": "false",
    "parquet.column.statistics.enabled": "false",
    "parquet.size.statistics.enabled": "false",
}


def run_request(request_uri: str, spark: SparkSession, pipeline: Pipeline) -> StageResult:
    """Stage what the request at `request_uri` asks for; leave `_result.json` or `_error.json` beside it.

    Raises what `stage_epoch` raises.
    """
    request = read_request(request_uri)
    try:
        result = stage_epoch(spark, pipeline, request)
    except Exception as error:
        write_error(request_uri, error)
        raise
    write_result(request_uri, result)
    return result


def stage_epoch(spark: SparkSession, pipeline: Pipeline, request: StageRequest) -> StageResult:
    """Write `request.outputs` as Parquet under `request.folder`, and count what was read and written.

    An input that is read more than once, or may go to quarantine, is read once and kept. Raises `SourceChanged`,
    `BadRecords`, `InvalidPipeline`, `PlanMismatch`, `StageFailed`.
    """
    _require_same_sources(pipeline, request)
    ship_by_value(pipeline)
    with tagged(spark, request.token), _checked(pipeline, request), translated(f"pipeline {pipeline.name}"):
        inputs, outputs = _planned(spark, pipeline, request)
        early = _settled(spark, [found for found in inputs if found.quarantines], request)
        rows = {name: _write(frame, f"{request.folder}/{name}") for name, frame in outputs.items()}
        late = _settled(spark, [found for found in inputs if found.name not in early], request)
    return StageResult(rows, {**early, **late}, pipeline.code_version())


def _require_same_sources(pipeline: Pipeline, request: StageRequest) -> None:
    if set(pipeline.sources) != set(request.sources):
        raise PlanMismatch(
            f"pipeline {pipeline.name} has the sources {sorted(pipeline.sources)}, its plan {sorted(request.sources)}: "
            "deploy the same code everywhere, or `lockstep replan`"
        )


@contextmanager
def _checked(pipeline: Pipeline, request: StageRequest) -> Iterator[None]:
    """Check the frozen files before they are read, and when Spark has failed: a changed file explains most of that."""

    def check() -> None:
        for name, found in request.sources.items():
            pipeline.sources[name].check(found.start, found.end)

    check()
    try:
        yield
    except Exception:
        check()
        raise


def _planned(
    spark: SparkSession, pipeline: Pipeline, request: StageRequest
) -> tuple[list[Input], Mapping[str, DataFrame]]:
    planned = [Input.plan(spark, name, pipeline.sources[name], found) for name, found in request.sources.items()]
    inputs = [found.kept() if found.quarantines else found for found in planned]
    enrichments = Enrichments()
    with collected(enrichments):
        outputs = _transformed(pipeline, request, inputs)  # plans; nothing is read or asked yet
    uses = {found.name: found.uses(outputs.values()) for found in inputs if not found.quarantines}
    _require_used(pipeline, inputs, uses)
    if all(count < 2 for count in uses.values()) and enrichments.first_shared(outputs.values()) is None:
        return inputs, outputs
    inputs = [found.kept() if uses.get(found.name, 0) > 1 else found for found in inputs]
    return inputs, asked_once(lambda: _transformed(pipeline, request, inputs))


def _transformed(pipeline: Pipeline, request: StageRequest, inputs: list[Input]) -> Mapping[str, DataFrame]:
    outputs = pipeline.transform({found.name: found.frame() for found in inputs})
    if set(outputs) != set(request.outputs):
        raise InvalidPipeline(
            f"pipeline {pipeline.name}: its transform returns {sorted(outputs)}, "
            f"its sinks take {sorted(request.outputs)}"
        )
    return {name: outputs[name] for name in request.outputs}


def _require_used(pipeline: Pipeline, inputs: list[Input], uses: Mapping[str, int]) -> None:
    """An input that no output reads would be consumed, and its rows lost."""
    unused = [found.name for found in inputs if found.observed and uses.get(found.name, 1) == 0]
    if unused:
        raise InvalidPipeline(
            f"pipeline {pipeline.name}: no output reads the sources {unused}; use them in the transform, or drop them"
        )


def _settled(spark: SparkSession, inputs: list[Input], request: StageRequest) -> dict[str, SourceCount]:
    counts = {found.name: found.count(spark) for found in inputs}
    for found in inputs:
        settle(found, counts[found.name], request.folder)
    return counts


def _write(frame: DataFrame, path: str) -> int:
    observed = Observed.of(frame, rows="count(1)")
    observed.frame.write.mode("error").options(**_WRITE).parquet(path)
    counts = observed.counts()
    if not counts:
        raise StageFailed(f"Spark wrote {path} and didn't say how many rows")
    return counts["rows"]
