"""What the pages ask of Airflow: which DAGs there are, a run of one of them, and what became of that."""

from __future__ import annotations

from dataclasses import dataclass

from airflow.api.common.trigger_dag import trigger_dag
from airflow.exceptions import DagNotFound
from airflow.models.dag import DagModel, DagTag
from airflow.models.dagrun import DagRun
from airflow.utils.session import create_session
from airflow.utils.types import DagRunTriggeredByType
from sqlalchemy import select

from lockstep.epoch import Json, RunKey
from lockstep.errors import NotConfigured
from lockstep.orchestration.recovery import RECOVERY_TAG


@dataclass(frozen=True)
class Asked:
    """A run that somebody asked for. `state`: in Airflow's words; `by`: a user's name."""

    run: RunKey
    state: str
    by: str | None
    why: str | None


def recovery_dags() -> list[str]:
    """The ids of the DAGs that `recovery_dag` made, as Airflow knows them."""
    with create_session() as session:
        found = select(DagModel.dag_id).join(DagTag, DagTag.dag_id == DagModel.dag_id)
        return sorted(session.scalars(found.where(DagTag.name == RECOVERY_TAG, ~DagModel.is_stale)))


def is_paused(dag_id: str) -> bool | None:
    """None: Airflow has no such DAG, or its file is gone."""
    with create_session() as session:
        known = select(DagModel.is_paused).where(DagModel.dag_id == dag_id, ~DagModel.is_stale)
        return session.scalars(known).first()


def trigger(dag_id: str, conf: dict[str, Json], user: str, note: str) -> RunKey:
    """A run in the user's name. Raises `NotConfigured` if the DAG is gone."""
    by = DagRunTriggeredByType.UI
    try:
        run = trigger_dag(dag_id, triggered_by=by, triggering_user_name=user, conf=conf, note=note)
    except DagNotFound:
        run = None
    if run is None:
        raise NotConfigured(f"Airflow has no DAG {dag_id} any more")
    return RunKey(run.dag_id, run.run_id)


def find_asked(run: RunKey) -> Asked | None:
    """None: Airflow has no such run, or no more."""
    with create_session() as session:
        known = select(DagRun).where(DagRun.dag_id == run.dag_id, DagRun.run_id == run.run_id)
        found = session.scalars(known).one_or_none()
        return Asked(run, str(found.state), found.triggering_user_name, found.note) if found else None
