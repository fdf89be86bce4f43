"""The Spark side of stage: read the frozen ranges, transform, write each output into the execution's folder.

Nothing here is trusted: the task that requested it checks the sources again, lists, counts and seals.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import TypeVar

import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from lockstep.compute._conservation import Balances, collecting_balances
from lockstep.compute._counting import ObservedFrame
from lockstep.compute._executors import read_in_executors, ship_by_value
from lockstep.compute._inputs import SourceInput, settle_bad_records
from lockstep.compute._local_rows import MEMORY_BUDGET, collect_plain, most_rows, note_written, remember, rows_in
from lockstep.compute._quarantining import Quarantining
from lockstep.compute._reading_once import ReadAgain, noting_reads
from lockstep.compute._state_writing import StateWriter
from lockstep.compute._table_files import TABLE_FILE_OPTIONS, adoptable, with_epoch
from lockstep.compute._transforming import Frames, TransformRun
from lockstep.compute.enrich import Enrichments, collecting_enrichments, run_enrichments_once
from lockstep.compute.state import states_of
from lockstep.definition.windows import only_windows
from lockstep.errors import InvalidPipeline, PlanMismatch, StageFailed
from lockstep.pipeline import Pipeline
from lockstep.sources.base import OpenSource, SourceContext, planned_source
from lockstep.spark.failures import translate_errors
from lockstep.spark.session import (
    cancel,
    is_remote,
    releasing_checkpoints,
    require_unchanged,
    run_in_session,
    tag_operations,
)
from lockstep.wal.manifest import SourceCount
from lockstep.wal.request import (
    JobFiles,
    StageRequest,
    StageResult,
    TableStagingRequest,
    read_request,
    write_error,
    write_result,
)
from lockstep.wal.sealing import quarantine_of

T = TypeVar("T")
_log = logging.getLogger(__name__)
_SMALL_INPUT = 16 << 20  #: bytes of input
_FEW_KEYS = 100_000  #: of all state
TOO_LARGE = "spark.driver.maxResultSize"  #: in Spark's error for a result that is too large for its driver
_MALFORMED = ("MALFORMED_RECORD", "FAILED_READ_FILE")  #: in Spark's errors for malformed records
_QUARANTINED = "quarantine:"  #: prefix of the names of frames that go to quarantine
_left_to_spark: set[str] = set()  #: folders of pipelines whose outputs are too large for this process
_keeping_inputs: set[str] = set()  #: folders of pipelines whose transform reads its inputs more than once
_WAL_FILE_OPTIONS = {
    "compression": "zstd",
    "mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
    # every reader takes all rows once, so dictionaries and statistics don't pay off
    "parquet.enable.dictionary": "false",
    "parquet.column.statistics.enabled": "false",
    "parquet.size.statistics.enabled": "false",
}


def launch_request(
    request_uri: str,
    target: str | SparkSession,
    pipeline: Pipeline,
    connections: Mapping[str, str],
    started: Callable[[SparkSession, int], object] = lambda spark, token: None,
) -> StageResult:
    """`run_request` in a session of `target`, at Spark Connect in the one that the pipeline's epochs share.

    `started` is called before the first request to Spark, with the session and the token by which `cancel` ends the
    work.
    """
    request = read_request(request_uri)

    def run(spark: SparkSession) -> StageResult:
        started(spark, request.token)
        try:
            return run_request(request_uri, spark, pipeline, connections)
        except BaseException:
            # a shared session stays open, and so would its running operations
            with suppress(Exception):
                cancel(spark, request.token)
            raise

    return run_in_session(target, _pipeline_folder(request), run)


def _pipeline_folder(request: StageRequest) -> str:
    """The parent folder of the pipeline's executions: the same for all of them, and of no other pipeline."""
    return request.folder.rsplit("/", 2)[0]


def run_request(
    request_uri: str, spark: SparkSession, pipeline: Pipeline, connections: Mapping[str, str]
) -> StageResult:
    """Stage what the request at `request_uri` asks for; write `_result.json` or `_error.json` next to it.

    `connections`: those of the sources. Raises what `stage_epoch` raises.
    """
    request = read_request(request_uri)
    try:
        result = stage_epoch(spark, pipeline, request, connections, options=request_uri.partition("?")[2])
    except Exception as error:
        write_error(request_uri, error)
        raise
    write_result(request_uri, result)
    return result


def stage_epoch(
    spark: SparkSession,
    pipeline: Pipeline,
    request: StageRequest,
    connections: Mapping[str, str] = MappingProxyType({}),
    *,
    options: str = "",
) -> StageResult:
    """Write `request.outputs` as Parquet below `request.folder`, and the next version of each state; return the counts
    of rows read and written. `options`: how this process finds the storage, see `Staging.address_of`.

    Rows that audits send to quarantine are written next to the outputs. An input that is read more than once, may have
    records for quarantine, or is read by jobs of the transform itself is read once and kept. Raises `SourceChanged`,
    `BadRecords`, `StateRejected`, `InvalidPipeline`, `PlanMismatch`, `StageFailed`.
    """
    _require_same_definition(pipeline, request)
    ship_by_value(pipeline)
    with (
        _open_sources(pipeline, request, connections) as sources,
        tag_operations(spark, request.token),
        releasing_checkpoints(spark),
        _checking_sources(sources, request),
        translate_errors(f"pipeline {pipeline.name}"),
        ExitStack() as stack,
    ):
        files = JobFiles.of(request, options) if request.state or is_remote(spark) else None
        states = states_of(spark, pipeline.state, request.state, files if request.state else None, request.timestamp)
        run = TransformRun(pipeline, request, states, Balances(), Quarantining.of(request.quarantine))
        plan_inputs = partial(_plan_inputs, spark, run, sources)
        local = files is not None and files.storage.shows_files_whole and _can_write_here(spark, request, sources)
        local = local and stack.enter_context(MEMORY_BUDGET.reserve(len(request.outputs)))
        inputs, frames = (_plan_collected(spark, request, plan_inputs) if local else None) or plan_inputs(sound=False)
        early = _count_inputs(spark, [source for source in inputs if source.quarantines], request, run.balances)
        frames.collect_changes(states)
        writes = {
            name: partial(_write_to_table, frames.outputs[name], name, request.homes[name], request.epoch)
            if name in request.homes
            else partial(_write, frames.outputs[name], f"{request.folder}/{name}", files)
            for name in request.outputs
        }
        in_turn = len(writes) == 1 or states or run.balances.shares_parts(frames.by_name().values())
        rows = {n: writes[n]() for n in writes} if in_turn else _concurrently(spark, request.token, writes)
        folder = request.state.folder if request.state else ""
        written = {
            name: StateWriter(state).write(frames.changes.get(name), folder, _WAL_FILE_OPTIONS)
            for name, state in states.items()
        }
        late = _count_inputs(spark, [source for source in inputs if source.name not in early], request, run.balances)
        settled = run.balances.settle_counts(frames.by_name().values())
        quarantined = run.quarantining.settle(
            rows,
            lambda frame, output: _count_written(frame, f"{request.folder}/{quarantine_of(output)}", _WAL_FILE_OPTIONS),
        )
        digests = read_in_executors(spark, request, options)
        require_unchanged(spark, f"the transform of pipeline {pipeline.name}")
    return StageResult(rows, {**early, **late}, pipeline.code_version(), written, settled, digests, quarantined)


def _plan_collected(
    spark: SparkSession, request: StageRequest, plan_inputs: Callable[..., tuple[list[SourceInput], Frames]]
) -> tuple[list[SourceInput], Frames] | None:
    """Inputs and frames whose output rows this process holds; None if Spark has to write them.

    Nothing is written yet, so records are assumed to be sound first, and marked one by one only if that fails.
    """
    for sound in (True, False):
        try:
            inputs, frames = plan_inputs(sound=sound)
            if frames.has_enrichments:
                return inputs, frames
            if not _collect_outputs(spark, request.token, frames.outputs):
                _left_to_spark.add(_pipeline_folder(request))
                return None  # planned again, as the counts of a cancelled job are wrong
            return inputs, frames
        except _HasEnrichments:
            return None
        except Exception as error:
            if not sound or not any(sign in str(error) for sign in _MALFORMED):
                raise
            _log.info("%s: a record is malformed, every record is checked: %s", request.folder, type(error).__name__)
    return None


def _require_same_definition(pipeline: Pipeline, request: StageRequest) -> None:
    if set(pipeline.sources) != set(request.sources):
        raise PlanMismatch(
            f"pipeline {pipeline.name} has the sources {sorted(pipeline.sources)}, its plan {sorted(request.sources)}: "
            "deploy the same code everywhere, or `lockstep replan`"
        )
    if dict(pipeline.state) != (dict(request.state.declared) if request.state else {}):
        raise PlanMismatch(
            f"pipeline {pipeline.name}: this driver's definition declares another state than the task's: deploy the "
            "same code everywhere"
        )


@contextmanager
def _open_sources(
    pipeline: Pipeline, request: StageRequest, connections: Mapping[str, str]
) -> Iterator[Mapping[str, OpenSource]]:
    with ExitStack() as stack:
        yield {
            name: stack.enter_context(
                planned_source(name, planned.spec, pipeline.sources[name]).opened(
                    SourceContext.for_reading(pipeline.name, name, connections)
                )
            )
            for name, planned in request.sources.items()
        }


@contextmanager
def _checking_sources(sources: Mapping[str, OpenSource], request: StageRequest) -> Iterator[None]:
    """Check the frozen files before they are read, and after an error of Spark, which a changed file often explains."""

    def check() -> None:
        for name, frozen in request.sources.items():
            sources[name].check(frozen.start, frozen.end)

    check()
    try:
        yield
    except Exception:
        check()
        raise


class _HasEnrichments(Exception):
    """The transform has enrichments, which may run only once, so its outputs can't be computed for a trial."""


def _plan_inputs(
    spark: SparkSession,
    run: TransformRun,
    sources: Mapping[str, OpenSource],
    *,
    sound: bool,
) -> tuple[list[SourceInput], Frames]:
    """Plan the inputs, and the frames of the transform over them, without writing.

    `sound`: assume that no record is malformed; raises `_HasEnrichments` if the transform must not run again then."""
    pipeline, request = run.pipeline, run.request
    planned = [
        SourceInput.plan(spark, name, sources[name], frozen, pipeline.conservation, sound=sound)
        for name, frozen in request.sources.items()
    ]
    if _may_read_once(spark, pipeline, request, sources):
        with suppress(ReadAgain):
            return planned, _read_once(run, planned)
        if not only_windows(pipeline.state):
            _keeping_inputs.add(_pipeline_folder(request))
    if run.states:  # the transform may run jobs on its inputs to look up keys
        inputs = [source.materialize_traceably() for source in planned]
    else:
        inputs = [source.materialize() if source.quarantines else source for source in planned]
    enrichments = Enrichments()
    with collecting_enrichments(enrichments), collecting_balances(run.balances), noting_reads(once=False) as readings:
        frames = run.frames(inputs)  # plans; nothing is read yet
    if sound and enrichments.observed:
        raise _HasEnrichments
    every = frames.by_name().values()
    uses = {
        source.name: source.uses([*every, *readings.frames])
        for source in inputs
        if run.states or not source.quarantines
    }
    if unused := [source.name for source in inputs if source.observed and uses.get(source.name, 1) == 0]:
        raise InvalidPipeline(  # their rows would be consumed, and lost
            f"pipeline {pipeline.name}: no output reads the sources {unused}; use them in the transform, or drop them"
        )
    twice = not run.states and any(count > 1 for count in uses.values())
    if not twice and enrichments.first_shared([*every, *run.quarantining.frames().values()]) is None:
        return inputs, replace(frames, has_enrichments=bool(enrichments.observed))
    inputs = [source.materialize() if twice and uses.get(source.name, 0) > 1 else source for source in inputs]

    def again() -> Mapping[str, DataFrame]:
        with collecting_balances(run.balances):
            frames = run.frames(inputs).by_name()
        return {**frames, **{f"{_QUARANTINED}{name}": frame for name, frame in run.quarantining.frames().items()}}

    return inputs, replace(Frames.of(run_enrichments_once(again)), has_enrichments=bool(enrichments.observed))


def _may_read_once(
    spark: SparkSession, pipeline: Pipeline, request: StageRequest, sources: Mapping[str, OpenSource]
) -> bool:
    """True if it is worth a trial whether only one job reads the inputs. A failed trial may take as long as keeping
    them: no trial if they are large and the state has so many keys that many may be looked up."""
    if request.state is None or not is_remote(spark):
        return False
    if only_windows(pipeline.state):
        return True
    sizes = [sources[name].bytes_planned(frozen.start, frozen.end) or 0 for name, frozen in request.sources.items()]
    few = sum(sizes) <= _SMALL_INPUT or sum(version.rows for version in request.state.before.values()) <= _FEW_KEYS
    return few and most_rows() > 0 and _pipeline_folder(request) not in _keeping_inputs


def _read_once(run: TransformRun, planned: list[SourceInput]) -> Frames:
    """The transform's frames over inputs that only one job reads. Raises `ReadAgain` if other jobs read them."""
    if run.request.quarantine:
        raise ReadAgain("rows may go to quarantine")
    if any(source.quarantines for source in planned):
        raise ReadAgain("records may go to quarantine")
    enrichments = Enrichments()
    with collecting_enrichments(enrichments), collecting_balances(run.balances), noting_reads(once=True) as readings:
        try:
            frames = run.frames(planned)
            if not enrichments.observed:
                frames.collect_changes(run.states)
            frames_to_run = [frame for frame in frames.by_name().values() if rows_in(frame) is None]
            if readings.computed:
                for frame in frames_to_run:
                    assert frame.schema
        except AnalysisException as error:  # a column of a frame whose plan was replaced by its rows
            raise ReadAgain("a frame that was computed once has no plan any more") from error
    every = [*frames_to_run, *readings.frames]
    if enrichments.first_shared(every) is not None:
        raise ReadAgain("an enrichment may run only once")
    for source in planned:
        if source.observed and (source.uses(every), source.observed.executions) != (1, source.uses(readings.frames)):
            raise ReadAgain(f"source {source.name} isn't read by one job alone")
    return frames


def _count_inputs(
    spark: SparkSession, inputs: list[SourceInput], request: StageRequest, balances: Balances
) -> dict[str, SourceCount]:
    balances.sources.update({source.name: source.counts(spark) for source in inputs})
    read = {source.name: balances.sources[source.name] for source in inputs}
    counts = {name: SourceCount(numbers["rows"], numbers["bad"]) for name, numbers in read.items()}
    for source in inputs:
        settle_bad_records(source, counts[source.name], request.folder)
    return counts


def _can_write_here(spark: SparkSession, request: StageRequest, sources: Mapping[str, OpenSource]) -> bool:
    """True if this process writes the outputs faster than Spark, which starts a process for each folder and file on a
    local file system; by the sizes that the sources know before any row is read."""
    needs_spark = request.state or request.homes or _pipeline_folder(request) in _left_to_spark
    if not is_remote(spark) or most_rows() == 0 or needs_spark:
        return False
    planned = [sources[name].bytes_planned(frozen.start, frozen.end) for name, frozen in request.sources.items()]
    sizes = [size for size in planned if size is not None]
    return len(sizes) == len(planned) and sum(sizes) <= _SMALL_INPUT


def _collect_outputs(spark: SparkSession, token: int, outputs: Mapping[str, DataFrame]) -> bool:
    """Collect the rows of every output in this process; false if one has too many rows, or types that only Spark
    writes."""
    calls = {name: partial(_collect_output, name, frame) for name, frame in outputs.items()}
    collected = {n: calls[n]() for n in calls} if len(calls) == 1 else _concurrently(spark, token, calls)
    tables = {name: table for name, table in collected.items() if table is not None}
    for name, table in tables.items():
        remember(outputs[name], table)
    return len(tables) == len(outputs)


def _collect_output(output: str, frame: DataFrame) -> pa.Table | None:
    observed = ObservedFrame.of(frame, rows="count(1)")
    try:
        table = collect_plain(observed.frame)
    except Exception as error:
        if TOO_LARGE not in str(error):
            raise
        _log.info("output %s is too large to be collected, and left to Spark: %s", output, error)
        return None
    if table is not None and len(table) != (counted := observed.counts().get("rows")):
        raise StageFailed(f"Spark counted {counted} rows of output {output} and returned {len(table)}")
    return table


def _concurrently(spark: SparkSession, token: int, calls: Mapping[str, Callable[[], T]]) -> dict[str, T]:
    """Run the calls concurrently and return their results. The first error cancels the other calls and is raised."""

    def tagged(call: Callable[[], T]) -> T:
        with tag_operations(spark, token):  # tags are thread-local
            return call()

    with ThreadPoolExecutor(len(calls), "lockstep-write") as threads:
        rows = {name: threads.submit(tagged, call) for name, call in calls.items()}
        try:
            for future in as_completed(rows.values()):
                future.result()
        except BaseException:
            with suppress(Exception):  # the first error matters more
                cancel(spark, token)
            raise
    return {name: future.result() for name, future in rows.items()}


def committing(spark: SparkSession) -> dict[str, str]:
    """Options of Hadoop's committer. With its second algorithm a file is visible when its task is done, not when all
    are, so it is digested meanwhile, and hashed again by the seal.

    Not on a cluster: an executor that is lost but still runs would replace another attempt's file after the seal.
    """
    master = spark.conf.get("spark.master", "") or ""
    alone = master == "local" or master.startswith("local[")
    return {"mapreduce.fileoutputcommitter.algorithm.version": "2" if alone else "1"}


def _write(frame: DataFrame, path: str, files: JobFiles | None) -> int:
    if files is not None and (table := rows_in(frame)) is not None:
        if files.storage.shows_files_whole:
            files.create_folder(path)
        files.write(path, table)
        note_written(frame)
        return len(table)
    return _count_written(frame, path, _WAL_FILE_OPTIONS)


def _write_to_table(frame: DataFrame, output: str, request: TableStagingRequest, epoch: int) -> int:
    path, staging = f"{request.folder}/{output}", request.home
    if not staging.partition_by and (table := rows_in(frame)) is not None:
        JobFiles.at_home(staging).write(path, with_epoch(table, output, staging, epoch), for_queries=True)
        note_written(frame)
        return len(table)
    return _count_written(adoptable(frame, output, staging, epoch), path, TABLE_FILE_OPTIONS)


def _count_written(frame: DataFrame, path: str, options: Mapping[str, str]) -> int:
    observed = ObservedFrame.of(frame, rows="count(1)")
    observed.frame.write.mode("error").options(**options, **committing(frame.sparkSession)).parquet(path)
    counts = observed.counts()
    if not counts:
        raise StageFailed(f"Spark wrote {path} without counting its rows")
    return counts["rows"]
