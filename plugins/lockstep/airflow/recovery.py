"""The DAG that recovers every pipeline of the ledger, so that a deleted or paused DAG leaves nothing hanging."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from airflow.sdk import DAG, Param, TriggerRule

from lockstep.airflow._airflow import CronTriggerTimetable
from lockstep.airflow.dag import OWNER, TAG, require_no_dag_around, with_own
from lockstep.airflow.operators import (
    EmitAssetEventsOperator,
    FailOnUnemittedEvents,
    ListPipelinesOperator,
    RecoverOperator,
    StuckEpochsCheck,
)
from lockstep.airflow.resolving import EPOCH, PIPELINE, SINK, WORD

ROUNDS_AT_ONCE = 4  #: so that one pipeline that takes long doesn't hold the others up
RECOVERY_TAG = "lockstep recovery"  #: by it the pages find the DAG, whatever it is called

_PIPELINE = Param(
    None, type=["null", "string"], title="Pipeline", description="Recover this one alone. Empty: every pipeline."
)
_HOLD = Param(
    None,
    type=["null", "integer"],
    minimum=0,
    title="Hold, in minutes",
    description="Void undecided attempts that gave no sign of life for longer, and have no task of Airflow's to come. "
    "Empty: as long as the pipeline says, or two hours.",
)
_EPOCH = Param(
    None,
    type=["null", "integer"],
    title="Resolve: epoch",
    description="For the page: first do what a person has asked for there, of this epoch of the pipeline.",
)
_SINK = Param(None, type=["null", "string"], title="Resolve: sink", description="In this sink of the epoch.")
_WORD = Param(None, type=["null", "integer"], title="Resolve: word", description="The history's entry that has it.")


def recovery_dag(dag_id: str = "lockstep_recovery", *, schedule: str = "*/5 * * * *", **dag_args: Any) -> DAG:
    """List the pipelines that the ledger knows, then recover each in a task of its own. `dag_args` are Airflow's.

    A `recover` fails with the problems that it is left with, `nothing_stuck` with what waits for a person. `tell` has
    assets know what nobody else got to tell them, and `all_told` fails with what it couldn't. There are no retries: the
    next run is one. While a `recover` takes long, later runs leave its pipeline to it and do the others.
    """
    require_no_dag_around("recovery_dag")
    own = {
        "schedule": CronTriggerTimetable(schedule, timezone="UTC"),
        "start_date": datetime(2024, 1, 1, tzinfo=UTC),
        "default_args": {"owner": OWNER, "retries": 0},
        "params": {"recovery_grace_minutes": _HOLD, PIPELINE: _PIPELINE, EPOCH: _EPOCH, SINK: _SINK, WORD: _WORD},
        "doc_md": __doc__,
        "tags": {TAG, RECOVERY_TAG},
        "max_active_runs": ROUNDS_AT_ONCE,
        "catchup": False,
        "is_paused_upon_creation": False,
    }
    with DAG(dag_id, **with_own(own, dag_args)) as dag:
        pipelines = ListPipelinesOperator(task_id="pipelines", doc_md="Asks the ledger which pipelines there are.")
        recovered = RecoverOperator.partial(
            task_id="recover",
            doc_md="Finishes decided epochs, voids dead attempts, sweeps what nobody owns.",
            map_index_template="{{ task.pipeline }}",
        ).expand(pipeline=pipelines.output)
        told = EmitAssetEventsOperator(
            task_id="tell",
            doc_md="Tells assets of what sinks show, where whoever has shown it didn't get to: recovery itself, a "
            "worker that died, a pack of which one epoch was given up.",
            trigger_rule=TriggerRule.ALL_DONE,
            max_active_tis_per_dag=1,  # or two rounds that look at the same moment would both tell
        )
        recovered >> told
        FailOnUnemittedEvents.partial(
            task_id="all_told",
            doc_md="Fails where `tell` couldn't look what assets know, and says of which sinks: `tell` itself has to "
            "succeed, or Airflow writes none of its events. Skipped where there is nothing to say.",
        ).expand(unemitted=told.output)
        recovered >> StuckEpochsCheck(
            task_id="nothing_stuck",
            doc_md="Fails while `lockstep status` would say that something is stuck: one sentence a pipeline, and what "
            "moves it.",
            trigger_rule=TriggerRule.ALL_DONE,
        )
    return dag
