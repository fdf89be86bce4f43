"""Who may look at a pipeline and who may act on it: whoever may do as much with a DAG of it, by Airflow's own word."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from airflow.api_fastapi.app import get_auth_manager
from airflow.api_fastapi.auth.managers.models.base_user import BaseUser
from airflow.api_fastapi.auth.managers.models.resource_details import DagAccessEntity, DagDetails

from lockstep.airflow._airflow import teams_of


class Right(Enum):
    """To the runs of a DAG, as Airflow's auth managers call it."""

    READ = "GET"
    TRIGGER = "POST"
    ACT = "PUT"  #: what clearing a run, or marking it failed, needs


def may(user: BaseUser, right: Right, dag_ids: frozenset[str]) -> bool:
    """Whether the user has the right to one of these DAGs; where there is none, to all DAGs that there are."""
    return bool(permitted(user, right, {"": dag_ids}))


def permitted(user: BaseUser, right: Right, pipelines: Mapping[str, frozenset[str]]) -> set[str]:
    """Those of `pipelines`, given with their DAGs, for which `may` is true."""
    every = sorted({dag_id for dag_ids in pipelines.values() for dag_id in dag_ids})
    teams = teams_of(every)
    granted = {one for one in every if _is_granted(user, right, DagDetails(id=one, team_name=teams.get(one)))}
    of_no_dag = not all(pipelines.values()) and _is_granted_everywhere(user, right)
    return {name for name, dag_ids in pipelines.items() if (dag_ids & granted if dag_ids else of_no_dag)}


def _is_granted_everywhere(user: BaseUser, right: Right) -> bool:
    """To all DAGs and to all runs. Asked for runs without a DAG, FAB's auth manager looks at the right to the resource
    "DAG Runs" alone, which a role has that may change the runs of one DAG. Like it, no run without changing the DAG."""
    of_dags = Right.READ if right is Right.READ else Right.ACT
    every_dag = bool(get_auth_manager().is_authorized_dag(method=of_dags.value, user=user))
    return every_dag and _is_granted(user, right, None)


def _is_granted(user: BaseUser, right: Right, details: DagDetails | None) -> bool:
    return bool(
        get_auth_manager().is_authorized_dag(
            method=right.value, access_entity=DagAccessEntity.RUN, details=details, user=user
        )
    )
