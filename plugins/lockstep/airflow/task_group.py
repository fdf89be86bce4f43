"""The tasks of a pipeline inside anybody's DAG, between its own: `extract >> EpochTaskGroup(pipeline) >> report`."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from datetime import timedelta
from typing import Any, Self

from airflow.sdk import DAG, TaskGroup, TriggerRule, XComArg
from airflow.sdk.definitions._internal.contextmanager import (  # nothing public names what is around a call
    DagContext,
    TaskGroupContext,
)

from lockstep.airflow._airflow import documentation_of_group
from lockstep.airflow._base_operator import PATIENCE
from lockstep.airflow._phases import NAMES, SPARK, Phases, describe, map_packs, retry_arguments
from lockstep.airflow._run_conf import require_intervals
from lockstep.airflow.operators import GroupEnd, pipelines_in
from lockstep.epoch import KeyedBy
from lockstep.errors import InvalidPipeline
from lockstep.launchers import JobLauncher
from lockstep.pipeline import Pipeline

_GROUP_END_DOC = (
    "Nothing to do, and never started. It fails with `cleanup`, so that the run fails if the epoch isn't moved, "
    "whatever rules the tasks behind the group run by. Of a group around this one it is the only end."
)


class EpochTaskGroup(TaskGroup):
    """Moves an epoch of `pipeline` in each run of the DAG around it.

    What comes before the group comes before `begin`; what comes behind it, behind `cleanup`: when every sink shows the
    epoch. Several groups may stand in a DAG, of different pipelines. `group_id`: the pipeline's name, unless given.
    `spark_conn_id`, `spark_submit`, `launcher`, `max_wait`, `map_shards`, `task_args`: as of `epoch_dag`. `pack`: one
    task in place of all phases; more than one epoch of an interval pipeline only `epoch_dag` puts into a run.
    `default_args` and `group_args` are Airflow's; the DAG's and its groups' count more than Lockstep's own. Raises
    `InvalidPipeline` where the DAG can't give its runs what the epochs need.
    """

    __slots__ = ()  # all that there is to know is what TaskGroup knows, or its copies would lack it

    def __init__(
        self,
        pipeline: Pipeline,
        *,
        group_id: str | None = None,
        spark_conn_id: str = SPARK,
        spark_submit: Mapping[str, Any] | None = None,
        max_wait: timedelta = PATIENCE,
        pack: int | None = None,
        map_shards: bool = False,
        task_args: Mapping[str, Mapping[str, Any]] | None = None,
        launcher: JobLauncher | None = None,
        default_args: Mapping[str, Any] | None = None,
        **group_args: Any,
    ) -> None:
        spark = (spark_conn_id, spark_submit or {})
        phases = Phases(pipeline, *spark, max_wait, task_args or {}, part=True, launcher=launcher)
        if pack is not None and pack != 1 and pipeline.identity is KeyedBy.INTERVAL:
            raise InvalidPipeline(
                f"pipeline {pipeline.name}: pack={pack} in a task group, whose run is one interval and so one epoch: "
                "say pack=1, or take epoch_dag(…, pack=…), whose schedule puts several intervals into a run"
            )
        own_group_id = group_id or pipeline.name.replace(".", "_")  # Airflow has it that only a prefix ends in a dot
        self._open([pipeline], own_group_id, default_args, {**documentation_of_group(describe(pipeline)), **group_args})
        with self.dag, self:  # of which tasks learn their DAG where it stands in an argument alone
            phases.make(pack=pack, map_shards=map_shards)
            self._ends >> _group_end()

    @classmethod
    def mapped(
        cls,
        pipelines: Sequence[Pipeline],
        *,
        group_id: str,
        spark_conn_id: str = SPARK,
        spark_submit: Mapping[str, Any] | None = None,
        max_wait: timedelta = PATIENCE,
        task_args: Mapping[str, Mapping[str, Any]] | None = None,
        default_args: Mapping[str, Any] | None = None,
        **group_args: Any,
    ) -> Self:
        """One mapped task, with an instance for each of `pipelines`, by its name, that moves an epoch of it in one go.

        Phases can't be mapped: the tasks of a mapped group are the same in each instance, and pipelines differ in their
        sinks and audits. For those make a group of each, in a loop.
        """
        twice = {pipeline.name for pipeline in pipelines if sum(other.name == pipeline.name for other in pipelines) > 1}
        if twice or not pipelines:
            problem = f"{', '.join(sorted(twice))} more than once" if twice else "none"
            raise InvalidPipeline(f"group {group_id} is mapped over {problem}: give it pipelines of different names")
        group = cls.__new__(cls)
        group._open(pipelines, group_id, default_args, group_args)
        with group.dag, group:
            map_packs(
                pipelines,
                f"lockstep.{group.dag.dag_id}.{group.group_id}",
                spark_conn_id=spark_conn_id,
                spark_submit=spark_submit or {},
                max_wait=max_wait,
                task_args=task_args or {},
            )
            group._ends >> _group_end()
        return group

    @property
    def output(self) -> XComArg:
        """What `cleanup` returns, of the run's own epoch: {"pipeline": …, "epoch": number, "interval": …, "state": …}.
        Whoever takes it as an argument comes behind the group. Of a pack {"pipeline": …, "epochs": [these]}."""
        return XComArg(self._last)

    def get_roots(self) -> Generator[Any, None, None]:
        yield from [self._first] if self._first is not None else super().get_roots()

    def get_leaves(self) -> Generator[Any, None, None]:
        """`abort` is none: in a good run it is skipped, and so would be what follows."""
        yield from [self._last] if self._last is not None else super().get_leaves()

    @property
    def _first(self) -> Any:
        return self.children.get(self.child_id(NAMES), self._child("begin"))  # type: ignore[no-untyped-call]

    @property
    def _last(self) -> Any:
        return self._child("cleanup")

    @property
    def _ends(self) -> list[Any]:
        """What would be a leaf of a group around this one, which asks its tasks alone for theirs."""
        abort = self.children.get(self.child_id("abort"))  # type: ignore[no-untyped-call]
        return [self._last] if abort is None else [self._last, abort]

    def _child(self, phase: str) -> Any:
        """Its task, or the pack; None in a part of the DAG that lacks it."""
        group: Any = self  # whose methods have no types
        return self.children.get(group.child_id(phase), self.children.get(group.child_id("pack")))

    def _open(
        self,
        pipelines: Sequence[Pipeline],
        group_id: str,
        default_args: Mapping[str, Any] | None,
        group_args: Mapping[str, Any],
    ) -> None:
        """Become a group without tasks."""
        around = group_args.get("parent_group") or TaskGroupContext.get_current(group_args.get("dag"))
        dag = group_args.get("dag") or (around.dag if around else DagContext.get_current())
        if dag is None:
            raise InvalidPipeline(f"EpochTaskGroup {group_id} stands in no DAG: make it inside `with DAG(…)` or `@dag`")
        _require_place(dag, around, pipelines)
        if dag.schedule is None:
            _unbind(dag)
        theirs = {*dag.default_args, *(around.default_args if around else ())}
        ours = {name: value for name, value in retry_arguments().items() if name not in theirs}
        defaults: Any = {**ours, **(default_args or {})}
        super().__init__(group_id, default_args=defaults, **group_args)


# Airflow copies a group attribute by attribute, and takes their names from its class alone; without them the copy would
# share its children with what it was made of.
EpochTaskGroup.__slots__ = TaskGroup.__slots__  # type: ignore[attr-defined]


def _group_end() -> GroupEnd:
    """A leaf, which `cleanup` isn't where tasks stand behind the group: by its leaves a run fails. It is behind `abort`
    too, which a good run skips: as a leaf of a group around this one `abort` would have all skipped that follows."""
    bare: dict[str, Any] = {
        "depends_on_past": False,
        "on_execute_callback": None,
        "on_success_callback": None,
    }  # or it would be started
    return GroupEnd(
        task_id="moved", doc_md=_GROUP_END_DOC, trigger_rule=TriggerRule.NONE_FAILED_MIN_ONE_SUCCESS, **bare
    )


def _unbind(dag: DAG) -> None:
    """Take start and end from a DAG that is only triggered, where they bound nothing but its runs' tasks: Airflow would
    leave all of them out of a run of an earlier interval, and end it green. Those of `default_args` stay."""
    for bound in {"start_date", "end_date"} - dag.default_args.keys():
        of_dag = getattr(dag, bound)
        for task in dag.tasks:
            if getattr(task, bound) == of_dag:
                setattr(task, bound, None)
        setattr(dag, bound, None)


def _require_place(dag: DAG, around: TaskGroup | None, pipelines: Sequence[Pipeline]) -> None:
    if dag.fail_fast:
        raise InvalidPipeline(
            f"DAG {dag.dag_id} has fail_fast=True, which ends every other task at the first failure, and lets none run "
            "by another rule than all_success: `abort` could not roll back. Leave it away"
        )
    if around is not None and next(around.iter_mapped_task_groups(), None) is not None:
        raise InvalidPipeline(
            f"{around.group_id} is a mapped task group: each of its instances would move the same epoch of "
            f"{pipelines[0].name} for the same run. Put the epoch's group beside it, or make one for each pipeline"
        )
    for pipeline in pipelines:
        if pipeline.name in pipelines_in(dag):
            raise InvalidPipeline(
                f"pipeline {pipeline.name} is moved by DAG {dag.dag_id} already: a run moves one epoch of a pipeline"
            )
        require_intervals(pipeline, dag)
