"""Reads DAGs and runs from Airflow's database, and triggers runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count

from airflow.api.common.trigger_dag import trigger_dag
from airflow.exceptions import DagNotFound, DagRunAlreadyExists
from airflow.models.dag import DagModel, DagTag
from airflow.models.dagbag import DBDagBag
from airflow.models.dagrun import DagRun
from airflow.utils.session import create_session
from airflow.utils.state import State
from airflow.utils.types import DagRunTriggeredByType, DagRunType
from sqlalchemy import select
from sqlalchemy.exc import IntegrityError

from lockstep.airflow.dag import RECOVERY_TAG
from lockstep.airflow.ui._access import FormRefused
from lockstep.epoch import Json, RunKey
from lockstep.errors import NotConfigured


@dataclass(frozen=True)
class RequestedRun:
    """A run that a user requested. `state`: as Airflow calls it; `by`: the user's name."""

    run: RunKey
    state: str
    by: str | None
    reason: str | None


def recovery_dags() -> list[str]:
    """Ids of the DAGs made by `recovery_dag`."""
    with create_session() as session:
        statement = select(DagModel.dag_id).join(DagTag, DagTag.dag_id == DagModel.dag_id)
        return sorted(session.scalars(statement.where(DagTag.name == RECOVERY_TAG, ~DagModel.is_stale)))


def is_paused(dag_id: str) -> bool | None:
    """Return whether the DAG is paused; None if Airflow has no such DAG or its file is gone."""
    with create_session() as session:
        statement = select(DagModel.is_paused).where(DagModel.dag_id == dag_id, ~DagModel.is_stale)
        return session.scalars(statement).first()


def trigger(run: RunKey, conf: dict[str, Json], user: str, note: str) -> None:
    """Trigger the run in the user's name, unless a concurrent request has created it. Raises `NotConfigured` if the DAG
    is gone, `FormRefused` if it doesn't allow such a run."""
    by = DagRunTriggeredByType.UI
    try:
        with _translate_errors(run.dag_id):
            trigger_dag(run.dag_id, run_id=run.run_id, triggered_by=by, triggering_user_name=user, conf=conf, note=note)
    except DagRunAlreadyExists:
        return
    except IntegrityError:
        if find_run(run) is None:
            raise


def require_triggerable(dag_id: str, conf: dict[str, Json]) -> None:
    """Raise what `trigger` would raise, before anything is stored for the run."""
    with _translate_errors(dag_id), create_session() as session:
        model = DagModel.get_current(dag_id, session=session)
        dag = DBDagBag().get_latest_version_of_dag(dag_id, session=session)
        if model is None or dag is None:
            raise DagNotFound(dag_id)
        allowed = getattr(model, "allowed_run_types", None)  # missing in older versions
        if allowed is not None and DagRunType.MANUAL not in allowed:
            raise ValueError(f"it does not allow {DagRunType.MANUAL} runs")
        dag.params.deep_merge(conf).validate()


@contextmanager
def _translate_errors(dag_id: str) -> Iterator[None]:
    """Translate Airflow's refusals: a type of run that the DAG doesn't allow, or a param of its own without a value."""
    try:
        yield
    except DagNotFound:
        raise NotConfigured(f"Airflow no longer has DAG {dag_id}") from None
    except DagRunAlreadyExists:
        raise
    except ValueError as error:  # ParamValidationError is one
        first, *_ = str(error).strip().splitlines() or [type(error).__name__]
        raise FormRefused(f"Airflow refuses such a run of DAG {dag_id}: {first}") from error


def number_of(dag_id: str, stem: str, is_known: Callable[[str], bool]) -> int:
    """Number of the next run with this prefix: the first that is unfinished or doesn't exist. Ids of deleted runs that
    the ledger knows (`is_known`), are skipped, as a new run would continue the old one's epoch."""
    runs = select(DagRun.run_id, DagRun.state).where(
        DagRun.dag_id == dag_id, DagRun.run_id.startswith(stem, autoescape=True)
    )
    with create_session() as session:
        ended = {run_id: state in State.finished_dr_states for run_id, state in session.execute(runs)}
    names = (f"{stem}{number}" for number in count(1))
    return next(
        number for number, name in enumerate(names, 1) if not (ended[name] if name in ended else is_known(name))
    )


def find_run(run: RunKey) -> RequestedRun | None:
    """The run; None if Airflow has no such run, or no longer."""
    with create_session() as session:
        statement = select(DagRun).where(DagRun.dag_id == run.dag_id, DagRun.run_id == run.run_id)
        dag_run = session.scalars(statement).one_or_none()
        return RequestedRun(run, str(dag_run.state), dag_run.triggering_user_name, dag_run.note) if dag_run else None
