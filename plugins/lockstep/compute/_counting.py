"""DataFrames whose rows are counted by the first action that reads them."""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F

from lockstep.spark._pyspark import allow_twice_observed, counted_in_driver
from lockstep.spark.session import active, is_remote, release_later

_SECONDS = 5.0  #: a driver hears of its metrics from another thread, a moment after the job


class _ObservedCounts(dict[str, Any]):
    """Metrics of a Connect client's observation; the client updates them once an execution."""

    times = 0

    def update(self, *arguments: Any, **values: Any) -> None:
        self.times += 1
        super().update(*arguments, **values)


@dataclass(frozen=True)
class ObservedFrame:
    """A DataFrame that counts its rows in the first action that reads it. `metric`: a name that is unique over all
    plans."""

    frame: DataFrame
    metric: str
    observation: Observation
    names: Sequence[str]  #: of what is counted

    @classmethod
    def of(cls, frame: DataFrame, **counts: str) -> ObservedFrame:
        """Observe `frame`. `counts`: SQL aggregates by name."""
        metric = f"lockstep-{uuid.uuid4().hex}"
        observation = Observation(metric)
        columns = [F.expr(aggregate).alias(name) for name, aggregate in counts.items()]
        if not is_remote(frame.sparkSession):
            return cls(frame.observe(observation, *columns), metric, observation, tuple(counts))
        from pyspark.sql.connect import dataframe, plan

        allow_twice_observed()
        # as DataFrame.observe, which asks the server first whether this is a stream
        client_observation, child = cast(Any, observation), cast(Any, frame)
        client_observation._result = _ObservedCounts()
        observed = dataframe.DataFrame(
            plan.CollectMetrics(child._plan, client_observation, cast(Any, columns)), child._session
        )
        return cls(cast(DataFrame, observed), metric, observation, tuple(counts))

    @property
    def executions(self) -> int:
        """Number of jobs that have read the frame completely, as far as a Connect client knows."""
        return int(cast(Any, self.observation)._result.times)

    def counts(self) -> dict[str, int]:
        """Return the counts in their declared order; empty if no action has read the frame."""
        if isinstance(self.observation, Observation):
            # Observation.get would wait forever for a frame that the optimizer removed from the plan
            done = cast(Any, self.observation)._jo.future()
            deadline = time.monotonic() + _SECONDS
            while not done.isCompleted() and time.monotonic() < deadline:
                time.sleep(0.005)
            counts = counted_in_driver(self.observation) if done.isCompleted() else {}
        else:
            counts = dict(self.observation.get)
        return {name: counts[name] for name in self.names if name in counts}  # Spark 4.0 changes the order

    def uses_in(self, frame: DataFrame) -> int:
        """Number of times that the plan of `frame` reads this frame."""
        if is_remote(frame.sparkSession):
            from lockstep.compute._local_plan import relation_of

            return int(relation_of(frame).SerializeToString().count(self.metric.encode()))
        return int(frame._jdf.queryExecution().analyzed().toString().count(f"CollectMetrics {self.metric}"))

    def read(self) -> None:
        """Read all rows, and keep none."""
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
class CountedFrame:
    """A DataFrame that counts `aggregates` (SQL by name) in the first action that reads it.

    `plain`: the frame without the observation. `visible`: what a transform gets, without the column that only counts.
    """

    frame: DataFrame
    observed: ObservedFrame
    plain: DataFrame
    aggregates: Mapping[str, str]
    visible: DataFrame

    @classmethod
    def of(cls, frame: DataFrame, hidden: str | None = None, /, **aggregates: str) -> CountedFrame:
        """Count `frame`. `hidden`: a column that only the aggregates use."""
        observed = ObservedFrame.of(frame, **aggregates)
        visible = observed.frame.drop(hidden) if hidden else observed.frame
        return cls(observed.frame, observed, frame, aggregates, visible)

    def counts(self) -> dict[str, int]:
        """Return the counts; runs a job if the optimizer removed the frame from the plan as empty."""
        if counts := self.observed.counts():
            return counts
        columns = [F.expr(aggregate).alias(name) for name, aggregate in self.aggregates.items()]
        [row] = self.plain.agg(*columns).collect()
        return row.asDict()
