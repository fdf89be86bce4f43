"""Operators that really run, without a scheduler: on a real ledger, and sinks that the environment names."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

from lockstep.epoch import RunKey
from tests.crash.world import World, interval_of

if TYPE_CHECKING:
    from airflow.sdk import BaseOperator, Context

RUN = RunKey("numbers", "a run")
DAY = 3


@dataclass(frozen=True)
class Observed:
    """A world whose roles the operators call."""

    world: World

    def execute(self, task: BaseOperator) -> Any:
        """As a task of the day's run does."""
        return task.execute(self.context(task))

    def context(self, task: BaseOperator) -> Context:
        """Of the first try of a task of the day's run."""
        from airflow.sdk.execution_time.context import OutletEventAccessors

        span = interval_of(DAY)
        ti = SimpleNamespace(
            dag_id=RUN.dag_id,
            run_id=RUN.run_id,
            task_id=task.task_id,
            map_index=-1,
            try_number=1,
            get_first_reschedule_date=lambda context: None,
        )
        run = SimpleNamespace(
            conf={}, data_interval_start=span.start, data_interval_end=span.end, run_after=span.end, run_id=RUN.run_id
        )
        context = {
            "ti": ti,
            "dag_run": run,
            "data_interval_start": span.start,
            "data_interval_end": span.end,
            "params": {},
            "task": task,
            "outlet_events": OutletEventAccessors(),
        }
        return cast("Context", context)

    def operator(self, kind: str, **arguments: Any) -> BaseOperator:
        """Of the world's pipeline: "Begin", "Publish"…."""
        from lockstep.airflow import operators

        made: Callable[..., BaseOperator] = getattr(operators, f"{kind}Operator")
        return made(task_id=kind.lower(), pipeline=self.world.pipeline, **arguments)

    def run(self, kind: str, **arguments: Any) -> BaseOperator:
        """The operator, once it has run."""
        made = self.operator(kind, **arguments)
        self.execute(made)
        return made

    def decide(self) -> None:
        """All that comes before `publish`."""
        self.run("Begin")
        self.world.run_task("stage", RUN, DAY)
        for sink in ("warehouse", "files"):
            self.run("Prepare", sink=sink)
        self.run("Commit")
