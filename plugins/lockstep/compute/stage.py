"""The Spark side of stage: read the frozen ranges, transform, write each output into the execution's folder.

Nothing here is believed: the task that asked for it checks the sources again, lists, counts and seals.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType
from typing import TypeVar

import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from lockstep.compute import _adoptable
from lockstep.compute._bad_records import settle
from lockstep.compute._balances import Balances, collecting_balances
from lockstep.compute._by_value import ship_by_value
from lockstep.compute._conserving import conserved
from lockstep.compute._file_reading import read_in_executors
from lockstep.compute._inputs import Input, ObservedFrame
from lockstep.compute._local_rows import ROOM, collect_plain, most_rows, note_written, remember, rows_in
from lockstep.compute._quarantining import Quarantining
from lockstep.compute._reading_once import ReadAgain, noting_reads
from lockstep.compute._state_writing import StateWriter
from lockstep.compute._taking_back import require_deletes
from lockstep.compute._transforming import ByName, call_transform, require_frames, require_outputs
from lockstep.compute.enrich import Enrichments, asked_once, collecting_enrichments
from lockstep.compute.state import StateRows, states_of
from lockstep.definition.windows import only_windows
from lockstep.errors import InvalidPipeline, PlanMismatch, StageFailed
from lockstep.pipeline import Pipeline
from lockstep.sources.base import SourceContext, planned_source
from lockstep.sources.open_source import OpenSource
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
_SMALL = 16 << 20  #: bytes of input
_FEW_KEYS = 100_000  #: of all state
TOO_LARGE = "spark.driver.maxResultSize"  #: what Spark's refusal names of a result that its driver won't hold
_MALFORMED = ("MALFORMED_RECORD", "FAILED_READ_FILE")  #: what Spark's refusal of a malformed record names
_STATE, _AWAY = "state:", "quarantine:"  #: before a name: what the frame is, if not an output
_left_to_spark: set[str] = set()  #: folders of pipelines whose outputs this process couldn't take
_keeping_inputs: set[str] = set()  #: those whose transform reads its inputs more than once
_WRITE = {
    "compression": "zstd",
    "mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
    # every reader takes all rows once, so nothing is repaid of what looking for repeated values and bounds costs
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

    `started` is told, before anything is asked of Spark, in which session, and by which token `cancel` ends it there.
    """
    request = read_request(request_uri)

    def run(spark: SparkSession) -> StageResult:
        started(spark, request.token)
        try:
            return run_request(request_uri, spark, pipeline, connections)
        except BaseException:
            # a shared session lives on, and so would what still runs in it for this execution
            with suppress(Exception):
                cancel(spark, request.token)
            raise

    return run_in_session(target, _home(request), run)


def _home(request: StageRequest) -> str:
    """Where all executions of the pipeline have their folders: known to nobody else, and to all of them."""
    return request.folder.rsplit("/", 2)[0]


def run_request(
    request_uri: str, spark: SparkSession, pipeline: Pipeline, connections: Mapping[str, str]
) -> StageResult:
    """Stage what the request at `request_uri` asks for; leave `_result.json` or `_error.json` beside it.

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
    """Write `request.outputs` as Parquet under `request.folder`, the next version of each state beside it, and count
    what was read and written. `options`: by which this process finds the storage, see `Staging.address_of`.

    Rows that audits send to quarantine are written beside the outputs.
    An input that is read more than once, or may go to quarantine, or is read by jobs that aren't known of, is read once
    and kept.
    Raises `SourceChanged`, `BadRecords`, `StateRejected`, `InvalidPipeline`, `PlanMismatch`, `StageFailed`.
    """
    _require_same_sources(pipeline, request)
    _require_same_state(pipeline, request)
    ship_by_value(pipeline)
    with (
        _open_sources(pipeline, request, connections) as sources,
        tag_operations(spark, request.token),
        releasing_checkpoints(spark),
        _checking_sources(sources, request),
        translate_errors(f"pipeline {pipeline.name}"),
        ExitStack() as held,
    ):
        files = JobFiles.of(request, options) if request.state or is_remote(spark) else None
        states = states_of(spark, pipeline.state, request.state, files if request.state else None, request.timestamp)
        balances, quarantining = Balances(), Quarantining.of(request.quarantine)
        plan_inputs = partial(_plan_inputs, spark, pipeline, request, sources, states, balances, quarantining)
        here = files is not None and files.storage.shows_files_whole and _fits_here(spark, request, sources)
        here = here and held.enter_context(ROOM.taken(len(request.outputs)))
        inputs, frames = (_plan_held(spark, request, plan_inputs) if here else None) or plan_inputs(sound=False)
        early = _count_inputs(spark, [found for found in inputs if found.quarantines], request, balances)
        _collect_changes(frames, states)
        writes = {
            name: partial(_write_at_home, frames.outputs[name], name, request.homes[name], request.epoch)
            if name in request.homes
            else partial(_write, frames.outputs[name], f"{request.folder}/{name}", files)
            for name in request.outputs
        }
        in_turn = len(writes) == 1 or states or balances.shares_parts(frames.by_name().values())
        rows = {n: writes[n]() for n in writes} if in_turn else _at_once(spark, request.token, writes)
        folder = request.state.folder if request.state else ""
        written = {
            name: StateWriter(state).write(frames.changes.get(name), folder, _WRITE) for name, state in states.items()
        }
        late = _count_inputs(spark, [found for found in inputs if found.name not in early], request, balances)
        settled = balances.settle_counts(frames.by_name().values())
        away = quarantining.settle(rows, partial(_write_away, request.folder))
        found = read_in_executors(spark, request, options)
        require_unchanged(spark, f"the transform of pipeline {pipeline.name}")
    return StageResult(rows, {**early, **late}, pipeline.code_version(), written, settled, found, away)


def _plan_held(
    spark: SparkSession, request: StageRequest, plan_inputs: Callable[..., tuple[list[Input], _Frames]]
) -> tuple[list[Input], _Frames] | None:
    """Inputs and frames such that this process holds the rows of every output; None if that is Spark's.

    Nothing is written yet, so the records are taken for sound first; only if they aren't, each is marked.
    """
    for sound in (True, False):
        try:
            inputs, frames = plan_inputs(sound=sound)
            if frames.asks:
                return inputs, frames
            if not _hold_rows(spark, request.token, frames.outputs):
                _left_to_spark.add(_home(request))
                return None  # planned anew: what is counted by a job that was ended isn't what there is
            return inputs, frames
        except _AsksOthers:
            return None
        except Exception as error:
            if not sound or not any(sign in str(error) for sign in _MALFORMED):
                raise
            _log.info("%s: some record is malformed, each is looked at: %s", request.folder, type(error).__name__)
    return None


def _require_same_sources(pipeline: Pipeline, request: StageRequest) -> None:
    if set(pipeline.sources) != set(request.sources):
        raise PlanMismatch(
            f"pipeline {pipeline.name} has the sources {sorted(pipeline.sources)}, its plan {sorted(request.sources)}: "
            "deploy the same code everywhere, or `lockstep replan`"
        )


def _require_same_state(pipeline: Pipeline, request: StageRequest) -> None:
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
                planned_source(name, found.spec, pipeline.sources[name]).opened(
                    SourceContext.for_reading(pipeline.name, name, connections)
                )
            )
            for name, found in request.sources.items()
        }


@contextmanager
def _checking_sources(sources: Mapping[str, OpenSource], request: StageRequest) -> Iterator[None]:
    """Check the frozen files before they are read, and when Spark has failed: a changed file explains most of that."""

    def check() -> None:
        for name, found in request.sources.items():
            sources[name].check(found.start, found.end)

    check()
    try:
        yield
    except Exception:
        check()
        raise


class _AsksOthers(Exception):
    """A transform asks outside systems, which are asked once: its job isn't one to be tried."""


@dataclass(frozen=True)
class _Frames:
    """What one run of a transform returns: a DataFrame an output, and one a state that changes."""

    outputs: Mapping[str, DataFrame]
    changes: Mapping[str, DataFrame]
    asks: bool = False  #: outside systems, which are asked once

    def by_name(self) -> dict[str, DataFrame]:
        """All of them, under names that can't meet."""
        return {**self.outputs, **{f"{_STATE}{name}": frame for name, frame in self.changes.items()}}

    @classmethod
    def of(cls, frames: Mapping[str, DataFrame]) -> _Frames:
        outputs = {name: frame for name, frame in frames.items() if ":" not in name}
        states = {name: frame for name, frame in frames.items() if name.startswith(_STATE)}
        return cls(outputs, {name.removeprefix(_STATE): frame for name, frame in states.items()})


def _plan_inputs(
    spark: SparkSession,
    pipeline: Pipeline,
    request: StageRequest,
    sources: Mapping[str, OpenSource],
    states: Mapping[str, StateRows],
    balances: Balances,
    quarantining: Quarantining,
    *,
    sound: bool,
) -> tuple[list[Input], _Frames]:
    """`sound`: of records that are taken for sound; raises `_AsksOthers` if the outputs can't be had again."""
    planned = [
        Input.plan(spark, name, sources[name], found, pipeline.conservation, sound=sound)
        for name, found in request.sources.items()
    ]
    if _may_read_once(spark, pipeline, request, sources):
        with suppress(ReadAgain):
            return planned, _read_once(pipeline, request, planned, states, balances, quarantining)
        if not only_windows(pipeline.state):
            _keeping_inputs.add(_home(request))
    if states:  # its transform may run jobs on them, to find what it needs of the state
        inputs = [found.materialize_traceably() for found in planned]
    else:
        inputs = [found.materialize() if found.quarantines else found for found in planned]
    enrichments = Enrichments()
    with collecting_enrichments(enrichments), collecting_balances(balances), noting_reads(once=False) as readings:
        frames = _transform(pipeline, request, inputs, states, balances, quarantining)  # plans; nothing is read yet
    if sound and enrichments.made:
        raise _AsksOthers
    every = frames.by_name().values()
    uses = {found.name: found.uses([*every, *readings.frames]) for found in inputs if states or not found.quarantines}
    _require_used(pipeline, inputs, uses)
    twice = not states and any(count > 1 for count in uses.values())
    if not twice and enrichments.first_shared([*every, *quarantining.frames().values()]) is None:
        return inputs, replace(frames, asks=bool(enrichments.made))
    inputs = [found.materialize() if twice and uses.get(found.name, 0) > 1 else found for found in inputs]

    def again() -> Mapping[str, DataFrame]:
        with collecting_balances(balances):
            frames = _transform(pipeline, request, inputs, states, balances, quarantining).by_name()
        return {**frames, **{f"{_AWAY}{name}": frame for name, frame in quarantining.frames().items()}}

    return inputs, replace(_Frames.of(asked_once(again)), asks=bool(enrichments.made))


def _may_read_once(
    spark: SparkSession, pipeline: Pipeline, request: StageRequest, sources: Mapping[str, OpenSource]
) -> bool:
    """Whether to find out if one job is all that reads the inputs. To find that it isn't may take as long as to keep
    them: not where they are large, and the state has so many keys that many of them may be looked up."""
    if request.state is None or not is_remote(spark):
        return False
    if only_windows(pipeline.state):
        return True
    known = [sources[name].bytes_planned(found.start, found.end) or 0 for name, found in request.sources.items()]
    few = sum(known) <= _SMALL or sum(version.rows for version in request.state.before.values()) <= _FEW_KEYS
    return few and most_rows() > 0 and _home(request) not in _keeping_inputs


def _read_once(
    pipeline: Pipeline,
    request: StageRequest,
    planned: list[Input],
    states: Mapping[str, StateRows],
    balances: Balances,
    quarantining: Quarantining,
) -> _Frames:
    """The transform's frames, of inputs that one job is all that reads. Raises `ReadAgain` if it isn't."""
    if request.quarantine:
        raise ReadAgain("rows may go to quarantine")
    if any(found.quarantines for found in planned):
        raise ReadAgain("records may go to quarantine")
    enrichments = Enrichments()
    with collecting_enrichments(enrichments), collecting_balances(balances), noting_reads(once=True) as readings:
        try:
            frames = _transform(pipeline, request, planned, states, balances, quarantining)
            if not enrichments.made:
                _collect_changes(frames, states)
            left = [frame for frame in frames.by_name().values() if rows_in(frame) is None]
            if readings.computed:
                for frame in left:
                    assert frame.schema
        except AnalysisException as error:  # a column that is told by a frame of which only the rows are left
            raise ReadAgain("what is computed once can't be looked into") from error
    every = [*left, *readings.frames]
    if enrichments.first_shared(every) is not None:
        raise ReadAgain("outside systems are asked once")
    for found in planned:
        if found.observed and (found.uses(every), found.observed.executions) != (1, found.uses(readings.frames)):
            raise ReadAgain(f"source {found.name} isn't read by one job alone")
    return frames


def _collect_changes(frames: _Frames, states: Mapping[str, StateRows]) -> None:
    """Compute what is shown and a state's changes as well once, if it is small."""
    for name, changes in frames.changes.items():
        if any(changes is output for output in frames.outputs.values()):
            StateWriter(states[name]).collect(changes)


def _transform(
    pipeline: Pipeline,
    request: StageRequest,
    inputs: list[Input],
    states: Mapping[str, StateRows],
    balances: Balances,
    quarantining: Quarantining,
) -> _Frames:
    frames = ByName("input", {found.name: found.frame for found in inputs})
    changes: Mapping[str, DataFrame] = {}
    if states:
        outputs, changes = _with_state(pipeline, frames, ByName("state", states))
    else:
        outputs = require_frames(pipeline, "output", call_transform(pipeline, frames))
    require_outputs(pipeline, request.epoch, request.outputs, outputs)
    require_deletes(pipeline, outputs, balances)
    marked = quarantining.mark(outputs)
    counted = conserved(pipeline, marked, balances, request.conserved, quarantining.offends)
    return _Frames(quarantining.keep(counted), changes)


def _with_state(
    pipeline: Pipeline, frames: Mapping[str, DataFrame], states: Mapping[str, StateRows]
) -> tuple[Mapping[str, DataFrame], Mapping[str, DataFrame]]:
    match call_transform(pipeline, frames, states):
        case (outputs, changes):
            require_frames(pipeline, "output", outputs)
            require_frames(pipeline, "state", changes)
        case found:
            raise InvalidPipeline(
                f"pipeline {pipeline.name} has state: its transform must return two mappings, the outputs and the "
                f"changes of each state, and returns a {type(found).__name__}"
            )
    if unknown := sorted(set(changes) - set(states)):
        raise InvalidPipeline(
            f"pipeline {pipeline.name}: its transform returns changes of {unknown}, it declares {sorted(states)}"
        )
    return outputs, changes


def _require_used(pipeline: Pipeline, inputs: list[Input], uses: Mapping[str, int]) -> None:
    """An input that no output reads would be consumed, and its rows lost."""
    unused = [found.name for found in inputs if found.observed and uses.get(found.name, 1) == 0]
    if unused:
        raise InvalidPipeline(
            f"pipeline {pipeline.name}: no output reads the sources {unused}; use them in the transform, or drop them"
        )


def _count_inputs(
    spark: SparkSession, inputs: list[Input], request: StageRequest, balances: Balances
) -> dict[str, SourceCount]:
    balances.sources.update({found.name: found.counts(spark) for found in inputs})
    read = {found.name: balances.sources[found.name] for found in inputs}
    counts = {name: SourceCount(one["rows"], one["bad"]) for name, one in read.items()}
    for found in inputs:
        settle(found, counts[found.name], request.folder)
    return counts


def _fits_here(spark: SparkSession, request: StageRequest, sources: Mapping[str, OpenSource]) -> bool:
    """Whether this process writes the outputs sooner than Spark, which starts a process for each folder and file that
    it makes on a local file system: as far as the sources know, before any row is read."""
    left = request.state or request.homes or _home(request) in _left_to_spark
    if not is_remote(spark) or most_rows() == 0 or left:
        return False
    planned = [sources[name].bytes_planned(found.start, found.end) for name, found in request.sources.items()]
    known = [size for size in planned if size is not None]
    return len(known) == len(planned) and sum(known) <= _SMALL


def _hold_rows(spark: SparkSession, token: int, outputs: Mapping[str, DataFrame]) -> bool:
    """Have this process hold the rows of every output; False if those of one are too many for it, or types Spark's."""
    calls = {name: partial(_collected, name, frame) for name, frame in outputs.items()}
    found = {n: calls[n]() for n in calls} if len(calls) == 1 else _at_once(spark, token, calls)
    held = {name: table for name, table in found.items() if table is not None}
    for name, table in held.items():
        remember(outputs[name], table)
    return len(held) == len(outputs)


def _collected(output: str, frame: DataFrame) -> pa.Table | None:
    observed = ObservedFrame.of(frame, rows="count(1)")
    try:
        found = collect_plain(observed.frame)
    except Exception as error:
        if TOO_LARGE not in str(error):
            raise
        _log.info("output %s is too large to be handed out, and left to Spark: %s", output, error)
        return None
    if found is not None and len(found) != (counted := observed.counts().get("rows")):
        raise StageFailed(f"Spark counted {counted} rows of output {output} and handed out {len(found)}")
    return found


def _at_once(spark: SparkSession, token: int, calls: Mapping[str, Callable[[], T]]) -> dict[str, T]:
    """What each returns, called side by side; the first one that fails ends the others, and is told."""

    def tagged(call: Callable[[], T]) -> T:
        with tag_operations(spark, token):  # a tag is its thread's
            return call()

    with ThreadPoolExecutor(len(calls), "lockstep-write") as threads:
        rows = {name: threads.submit(tagged, call) for name, call in calls.items()}
        try:
            for one in as_completed(rows.values()):
                one.result()
        except BaseException:
            with suppress(Exception):  # what failed matters more
                cancel(spark, token)
            raise
    return {name: one.result() for name, one in rows.items()}


def committing(spark: SparkSession) -> dict[str, str]:
    """With the second algorithm of Hadoop's committer a file shows up when its task is done, not when all are: it is
    digested meanwhile, and hashed again by the seal.

    Not where an executor can be lost: it may still live, and would put its task's file in the place of another
    attempt's, after the seal.
    """
    master = spark.conf.get("spark.master", "") or ""
    alone = master == "local" or master.startswith("local[")
    return {"mapreduce.fileoutputcommitter.algorithm.version": "2" if alone else "1"}


def _write(frame: DataFrame, path: str, files: JobFiles | None) -> int:
    if files is not None and (held := rows_in(frame)) is not None:
        if files.storage.shows_files_whole:
            files.create_folder(path)
        files.write(path, held)
        note_written(frame)
        return len(held)
    return _count_written(frame, path, _WRITE)


def _write_away(folder: str, frame: DataFrame, output: str) -> int:
    return _count_written(frame, f"{folder}/{quarantine_of(output)}", _WRITE)


def _write_at_home(frame: DataFrame, output: str, request: TableStagingRequest, epoch: int) -> int:
    path, home = f"{request.folder}/{output}", request.home
    if not home.partition_by and (held := rows_in(frame)) is not None:
        JobFiles.at_home(home).write(path, _adoptable.with_epoch(held, output, home, epoch), for_queries=True)
        note_written(frame)
        return len(held)
    return _count_written(_adoptable.adoptable(frame, output, home, epoch), path, _adoptable.OPTIONS)


def _count_written(frame: DataFrame, path: str, options: Mapping[str, str]) -> int:
    observed = ObservedFrame.of(frame, rows="count(1)")
    observed.frame.write.mode("error").options(**options, **committing(frame.sparkSession)).parquet(path)
    counts = observed.counts()
    if not counts:
        raise StageFailed(f"Spark wrote {path} and didn't say how many rows")
    return counts["rows"]
