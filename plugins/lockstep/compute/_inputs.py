"""One source's frozen range as a DataFrame that counts what flows through it."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, cast

from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

from lockstep.compute._conservation_sql import counts_of_source
from lockstep.compute._whole_files import Blocks, count_of_sizes, counts_of_blocks, planned_size, unknown_size
from lockstep.definition.conservation import Conservation
from lockstep.epoch import SourceRange
from lockstep.errors import StageFailed
from lockstep.sources.base import OpenSource
from lockstep.sources.records import BAD, FILE, WHY, OpenRecordSource, SourceRecords
from lockstep.spark._pyspark import allow_twice_observed, counted_in_driver
from lockstep.spark.session import active, is_remote, release_later

_SECONDS = 5.0  #: a driver hears of its metrics from another thread, a moment after the job


class _Told(dict[str, Any]):
    """What a Connect client's observation is told; the client updates it once an execution."""

    times = 0

    def update(self, *arguments: Any, **values: Any) -> None:
        self.times += 1
        super().update(*arguments, **values)


@dataclass(frozen=True)
class ObservedFrame:
    """A DataFrame whose rows are counted by the first action that reads it. `metric`: a name no other plan has."""

    frame: DataFrame
    metric: str
    observation: Observation
    names: Sequence[str]  #: of what is counted

    @classmethod
    def of(cls, frame: DataFrame, **counts: str) -> ObservedFrame:
        """`counts`: what to count, as SQL aggregates by name."""
        metric = f"lockstep-{uuid.uuid4().hex}"
        observation = Observation(metric)
        columns = [F.expr(aggregate).alias(name) for name, aggregate in counts.items()]
        if not is_remote(frame.sparkSession):
            return cls(frame.observe(observation, *columns), metric, observation, tuple(counts))
        from pyspark.sql.connect import dataframe, plan

        allow_twice_observed()
        # as DataFrame.observe, which asks the server first whether this is a stream
        told, child = cast(Any, observation), cast(Any, frame)
        told._result = _Told()
        observed = dataframe.DataFrame(plan.CollectMetrics(child._plan, told, cast(Any, columns)), child._session)
        return cls(cast(DataFrame, observed), metric, observation, tuple(counts))

    @property
    def executions(self) -> int:
        """How many jobs have read the frame to their end, as far as a Connect client is told."""
        return int(cast(Any, self.observation)._result.times)

    def counts(self) -> dict[str, int]:
        """What was counted, in the order that was asked for; empty if no action has read the frame."""
        remote = not isinstance(self.observation, Observation)
        found = dict(self.observation.get) if remote else self._driver_counts()
        return {name: found[name] for name in self.names if name in found}  # Spark 4.0 has an order of its own

    def _driver_counts(self) -> dict[str, int]:
        # Observation.get would wait for ever for a frame that the optimizer cut out of the plan
        done = cast(Any, self.observation)._jo.future()
        deadline = time.monotonic() + _SECONDS
        while not done.isCompleted() and time.monotonic() < deadline:
            time.sleep(0.005)
        return counted_in_driver(self.observation) if done.isCompleted() else {}

    def uses_in(self, frame: DataFrame) -> int:
        """How often the plan of `frame` reads this one."""
        if is_remote(frame.sparkSession):
            from lockstep.compute._held_plan import relation_of

            return int(relation_of(frame).SerializeToString().count(self.metric.encode()))
        return int(frame._jdf.queryExecution().analyzed().toString().count(f"CollectMetrics {self.metric}"))

    def read(self) -> None:
        """Have all of it read, and nothing kept."""
        self.frame.agg(F.count(F.lit(1))).collect()

    def checkpoint(self) -> DataFrame:
        """Run the plan now and keep its rows in Spark, at Spark Connect until the epoch is staged."""
        if not is_remote(self.frame.sparkSession):
            return self.frame.localCheckpoint(eager=True)
        from pyspark.sql.connect import plan

        # DataFrame.localCheckpoint of the Connect client doesn't hand the observations on
        client, logical = self.frame.sparkSession.client, cast(Any, self.frame._plan)
        command = plan.Checkpoint(child=logical, local=True, eager=True)
        with active(self.frame.sparkSession):  # the client takes the session of the answer from there
            _, properties, _ = client.execute_command(command.command(client), observations=logical.observations)
        checkpoint = cast(DataFrame, properties["checkpoint_command_result"])
        release_later(checkpoint)
        return checkpoint


@dataclass(frozen=True)
class Input:
    """One source of an epoch. `observed` None: the range is known to be empty."""

    name: str
    source: OpenSource
    range: SourceRange
    records: SourceRecords
    observed: ObservedFrame | None
    declared: Sequence[Conservation] = ()
    seen: ObservedFrame | None = None  #: whatever reads what was kept, if somebody has to know
    planned: SourceRecords | None = None  #: as they are read, before anything is counted

    @classmethod
    def plan(
        cls,
        spark: SparkSession,
        name: str,
        source: OpenSource,
        found: SourceRange,
        declared: Sequence[Conservation] = (),
        *,
        sound: bool = False,
    ) -> Input:
        """Plan the read; nothing is read yet. `declared`: of which rows travel how. `sound`: by a job that fails at a
        malformed record, where that is cheaper and none goes to quarantine."""
        records = (_sound_records(spark, source, found) if sound else None) or _records(spark, source, found)
        if source.is_empty(found.start, found.end):
            return cls(name, source, found, records, None, declared)
        observed = _observe(records, name, declared)
        counted = replace(records, frame=observed.frame)
        return cls(name, source, found, counted, observed, declared, planned=records)

    @property
    def quarantines(self) -> bool:
        """Whether malformed records go to quarantine."""
        marked = self.records.marked
        return marked and isinstance(self.source, OpenRecordSource) and self.source.on_bad_records == "quarantine"

    def marked(self) -> SourceRecords:
        """The records with the malformed ones marked, also where no mark was asked for at first."""
        if not self.records.sound:
            return self.records
        return _records(self.records.frame.sparkSession, self.source, self.range)

    @cached_property
    def frame(self) -> DataFrame:
        """What the transform gets: the rows that parse. It never sees the others, even where they fail the epoch."""
        if not self.records.marked:
            return self.records.frame
        return self.records.frame.where(f"{BAD} IS NULL").drop(
            BAD, FILE, WHY
        )  # who counts has read every column already

    def uses(self, outputs: Iterable[DataFrame]) -> int:
        """How often the outputs' plans read this input."""
        observed = self.seen or self.observed
        return sum(observed.uses_in(output) for output in outputs) if observed else 0

    def materialize(self) -> Input:
        """Read the range now, once; whatever reads this input afterwards sees the same rows.

        A local checkpoint and not `persist`: no other plan can match it, a dead client's copy goes with its session,
        and 3 M flights took three quarters of the time.
        """
        if self.observed is None:
            return self
        return replace(self, records=replace(self.records, frame=self.observed.checkpoint()))

    def materialize_traceably(self) -> Input:
        """`kept`, such that `uses` can still tell who reads it."""
        kept = self.materialize()
        if kept.observed is None:
            return kept
        seen = ObservedFrame.of(kept.records.frame, rows="count(1)")
        return replace(kept, records=replace(kept.records, frame=seen.frame), seen=seen)

    def counts(self, spark: SparkSession) -> dict[str, int]:
        """Rows read, of them bad (malformed) ones, and what is counted for the pipeline's conservation; reads the range
        now if the optimizer found no need to, or the transform stopped before its end, or it has to be told from one
        whose file was read short. Raises `StageFailed` if Spark hasn't read the files to their end."""
        if self.observed is None:
            return dict.fromkeys(("rows", "bad", *counts_of_source(self.declared, self.name)), 0)
        held = self.source.rows_held(self.range.start, self.range.end) or 0
        counts, sizes = self.observed.counts(), self.records.sizes
        blocks = Blocks.taken_from(counts)
        all_held = bool(counts) and counts["rows"] >= held
        if all_held and blocks.are_whole(sizes):
            return counts
        if self.planned is not None and (size := planned_size(self.planned)) is not None:
            raise StageFailed(self._told_of(f"a file as one of {size} bytes"))
        if all_held and blocks.may_be_whole(sizes):
            return counts
        again, whole = self._read_again(spark)
        if again["rows"] < held:
            raise StageFailed(
                f"source {self.name}: the footers of its files say {held} rows, and Spark read {again['rows']}; "
                "nothing was sealed"
            )
        alike = blocks.are_whole(sizes) or blocks.are_cut_as(whole)
        if not alike and counts["rows"] != again["rows"]:  # as many rows were all of them, however they were cut
            raise StageFailed(self._told_of(f"files in blocks of {' to '.join(map(str, blocks.odd))} bytes"))
        return counts if all_held else again

    def _read_again(self, spark: SparkSession) -> tuple[dict[str, int], Blocks]:
        """By a job that asks for each file's size, too."""
        records = _records(spark, self.source, self.range)
        again = _observe(records, self.name, self.declared, count_of_sizes(records))
        again.read()
        counts = again.counts()
        blocks = Blocks.taken_from(counts)
        if (size := unknown_size(counts)) is not None:
            raise StageFailed(self._told_of(f"a file as one of {size} bytes"))
        return counts, blocks

    def _told_of(self, what: str) -> str:
        return (
            f"source {self.name}: Spark read {what}, and no file that the plan froze is so: it goes by what it knew of "
            "an earlier one; nothing was sealed"
        )


def _records(spark: SparkSession, source: OpenSource, found: SourceRange) -> SourceRecords:
    if isinstance(source, OpenRecordSource):
        return source.read_records(spark, found.start, found.end)
    return SourceRecords(source.read(spark, found.start, found.end), ())


def _sound_records(spark: SparkSession, source: OpenSource, found: SourceRange) -> SourceRecords | None:
    if not isinstance(source, OpenRecordSource) or source.on_bad_records != "fail":
        return None
    return source.read_sound(spark, found.start, found.end)


def _observe(
    records: SourceRecords, source: str, declared: Sequence[Conservation], sizes: Mapping[str, str] | None = None
) -> ObservedFrame:
    more = counts_of_source(declared, source, f"{BAD} IS NULL" if records.marked else None)
    more |= counts_of_blocks(records) | dict(sizes or {})
    if records.sound:
        empty = f"count(CASE WHEN {records.no_value} THEN 1 END)"  # or columns that nobody asks for aren't parsed
        return ObservedFrame.of(records.frame, rows="count(1)", bad="count_if(false)", empty=empty, **more)
    if not records.marked:
        return ObservedFrame.of(records.frame, rows="count(1)", bad="count_if(false)", **more)
    # count_if would give each row one more column, and copy it for that
    bad = f"count(CASE WHEN {BAD} IS NOT NULL AND {records.every_column} THEN 1 END)"
    return ObservedFrame.of(records.frame, rows="count(1)", bad=bad, **more)
