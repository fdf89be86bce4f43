"""The tasks of a pipeline inside another DAG, between its own tasks: `extract >> EpochTaskGroup(pipeline) >>
report`."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from datetime import timedelta
from typing import Any, Self

from airflow.sdk import DAG, TaskGroup, TriggerRule, XComArg
from airflow.sdk.definitions._internal.contextmanager import (  # no public API
    DagContext,
    TaskGroupContext,
)

from lockstep.airflow._airflow import documentation_of_group
from lockstep.airflow._base_operator import MAX_WAIT
from lockstep.airflow._phases import NAMES, SPARK, Phases, describe, map_packs, retry_arguments
from lockstep.airflow._run_conf import require_intervals
from lockstep.airflow.operators import GroupEnd, pipelines_in
from lockstep.epoch import KeyedBy
from lockstep.errors import InvalidPipeline
from lockstep.launchers import JobLauncher
from lockstep.pipeline import Pipeline

_GROUP_END_DOC = (
    "Does nothing and is never started. It fails with `cleanup`, so that the run fails if the epoch isn't moved, "
    "whatever trigger rules the tasks after the group have. It is the only leaf of an outer group."
)


class EpochTaskGroup(TaskGroup):
    """Moves an epoch of `pipeline` in each run of the surrounding DAG.

    Upstream tasks of the group run before `begin`; downstream tasks run after `cleanup`, when every sink shows the
    epoch. A DAG may contain several groups, of different pipelines.

    `group_id`: by default the pipeline's name. `spark_conn_id`, `spark_submit`, `launcher`, `max_wait`,
    `map_shards`, `task_args`: as in `epoch_dag`. `pack`: one task in place of all phases; for an interval pipeline
    it has to be 1, as only `epoch_dag` can put several intervals into a run. `default_args` and `group_args` are
    Airflow's; those of the DAG and its groups override Lockstep's own.

    Raises `InvalidPipeline` if the DAG can't give its runs what the epochs need.
    """

    __slots__ = ()  # no attributes of its own: copies of a group would lack them

    def __init__(
        self,
        pipeline: Pipeline,
        *,
        group_id: str | None = None,
        spark_conn_id: str = SPARK,
        spark_submit: Mapping[str, Any] | None = None,
        max_wait: timedelta = MAX_WAIT,
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
                f"pipeline {pipeline.name}: pack={pack} in a task group, whose run has one interval and so one epoch: "
                "use pack=1, or epoch_dag(…, pack=…), whose schedule puts several intervals into a run"
            )
        own_id = group_id or pipeline.name.replace(".", "_")  # in a task id a dot ends a group's prefix
        self._open([pipeline], own_id, default_args, {**documentation_of_group(describe(pipeline)), **group_args})
        with self.dag, self:  # for a DAG that is given as an argument only
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
        max_wait: timedelta = MAX_WAIT,
        task_args: Mapping[str, Mapping[str, Any]] | None = None,
        default_args: Mapping[str, Any] | None = None,
        **group_args: Any,
    ) -> Self:
        """One mapped task, with an instance for each of `pipelines`, which moves an epoch of it in one go.

        Phases can't be mapped: the tasks of a mapped group are the same in each instance, but pipelines differ in
        sinks and audits. To have phases, make a group for each pipeline in a loop.
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
        """Return value of `cleanup` for the run's epoch: {"pipeline": …, "epoch": number, "interval": …, "state":
        …}; for a pack {"pipeline": …, "epochs": [these]}. A task that takes it as an argument runs after the group."""
        return XComArg(self._last)

    def get_roots(self) -> Generator[Any, None, None]:
        yield from [self._first] if self._first is not None else super().get_roots()

    def get_leaves(self) -> Generator[Any, None, None]:
        """The last task. `abort` is no leaf: in a good run it is skipped, and so would be the tasks after it."""
        yield from [self._last] if self._last is not None else super().get_leaves()

    @property
    def _first(self) -> Any:
        return self.children.get(self.child_id(NAMES), self._child("begin"))  # type: ignore[no-untyped-call]

    @property
    def _last(self) -> Any:
        return self._child("cleanup")

    @property
    def _ends(self) -> list[Any]:
        """Tasks that would be leaves of an outer group, which asks only its tasks for theirs."""
        abort = self.children.get(self.child_id("abort"))  # type: ignore[no-untyped-call]
        return [self._last] if abort is None else [self._last, abort]

    def _child(self, phase: str) -> Any:
        """The task of a phase, or the pack; None in a partial copy of the DAG that lacks it."""
        group: Any = self  # its methods have no types
        return self.children.get(group.child_id(phase), self.children.get(group.child_id("pack")))

    def _open(
        self,
        pipelines: Sequence[Pipeline],
        group_id: str,
        default_args: Mapping[str, Any] | None,
        group_args: Mapping[str, Any],
    ) -> None:
        """Initialize the group without tasks."""
        around = group_args.get("parent_group") or TaskGroupContext.get_current(group_args.get("dag"))
        dag = group_args.get("dag") or (around.dag if around else DagContext.get_current())
        if dag is None:
            raise InvalidPipeline(f"EpochTaskGroup {group_id} is in no DAG: create it inside `with DAG(…)` or `@dag`")
        _require_place(dag, around, pipelines)
        if dag.schedule is None:
            _unbind(dag)
        theirs = {*dag.default_args, *(around.default_args if around else ())}
        ours = {name: value for name, value in retry_arguments().items() if name not in theirs}
        defaults: Any = {**ours, **(default_args or {})}
        super().__init__(group_id, default_args=defaults, **group_args)


# Airflow copies a group by the attributes named in its own class; without them the copy would share its children with
# the original.
EpochTaskGroup.__slots__ = TaskGroup.__slots__  # type: ignore[attr-defined]


def _group_end() -> GroupEnd:
    """A leaf of the DAG: a run fails by its leaves, and `cleanup` isn't one if tasks follow the group. It also
    follows `abort`, which a good run skips: as a leaf of an outer group `abort` would skip all tasks after that."""
    bare: dict[str, Any] = {
        "depends_on_past": False,
        "on_execute_callback": None,
        "on_success_callback": None,
    }  # with these it would be started
    return GroupEnd(
        task_id="moved", doc_md=_GROUP_END_DOC, trigger_rule=TriggerRule.NONE_FAILED_MIN_ONE_SUCCESS, **bare
    )


def _unbind(dag: DAG) -> None:
    """Remove start and end dates from a DAG that is only triggered, where they only bound the tasks of its runs:
    Airflow would leave all tasks out of a run of an earlier interval and end it green. Those in `default_args` stay."""
    for bound in {"start_date", "end_date"} - dag.default_args.keys():
        of_dag = getattr(dag, bound)
        for task in dag.tasks:
            if getattr(task, bound) == of_dag:
                setattr(task, bound, None)
        setattr(dag, bound, None)


def _require_place(dag: DAG, around: TaskGroup | None, pipelines: Sequence[Pipeline]) -> None:
    if dag.fail_fast:
        raise InvalidPipeline(
            f"DAG {dag.dag_id} has fail_fast=True, which ends every other task at the first failure, and allows "
            "no trigger rule but all_success: `abort` could not roll back. Remove it"
        )
    if around is not None and next(around.iter_mapped_task_groups(), None) is not None:
        raise InvalidPipeline(
            f"{around.group_id} is a mapped task group: each of its instances would move the same epoch of "
            f"{pipelines[0].name} for the same run. Put the epoch's group outside of it, or make one for each pipeline"
        )
    for pipeline in pipelines:
        if pipeline.name in pipelines_in(dag):
            raise InvalidPipeline(
                f"pipeline {pipeline.name} is already moved by DAG {dag.dag_id}: a run moves one epoch of a pipeline"
            )
        require_intervals(pipeline, dag)
