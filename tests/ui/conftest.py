"""Airflow's own application with the plugin in it, on a database of its own, and a ledger behind its Connection.

These tests import Airflow within them, as those of tests/dags do.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg2
import pytest
from psycopg2.extensions import parse_dsn

from lockstep.epoch import KeyedBy
from lockstep.ledger import Ledger, migrate
from stack.postgres import PostgresServer
from tests.ledger.epochs import CLICKS, FLIGHTS, Sql

if TYPE_CHECKING:
    from fastapi import FastAPI
    from starlette.testclient import TestClient

_home = tempfile.TemporaryDirectory(prefix="lockstep-airflow-")
os.environ.setdefault("AIRFLOW_HOME", _home.name)
os.environ.setdefault("AIRFLOW__CORE__LOAD_EXAMPLES", "False")
os.environ.setdefault("AIRFLOW__CORE__PLUGINS_FOLDER", str(Path(__file__).parents[2] / "plugins"))
_numbers = count(1)

#: user → DAG → methods; None: every DAG there is
GRANTS: dict[str, dict[str | None, set[str]]] = {
    "stranger": {},
    "reader": {"flights": {"GET"}},
    "operator": {"flights": {"GET", "PUT"}, "lockstep_recovery": {"GET", "POST"}},
    "auditor": {None: {"GET"}},
    "admin": {None: {"GET", "PUT", "POST"}},
    "<b>Eve</b>": {"flights": {"GET", "PUT"}},
}


@pytest.fixture(scope="session")
def application() -> Iterator[FastAPI]:
    """As the api-server makes it; who may do what stands in GRANTS. Without a DAG, who has a right to the runs of any
    has it to runs, as in Airflow's FAB auth manager."""
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS", "nobody:viewer")
        environment.setenv("AIRFLOW__API_AUTH__JWT_SECRET", "j" * 64)
        environment.setenv("AIRFLOW__API__SECRET_KEY", "k" * 64)
        from airflow import settings
        from airflow.api_fastapi import app as airflow_app
        from airflow.models import import_all_models
        from airflow.models.base import Base

        settings.configure_orm()  # type: ignore[no-untyped-call]
        import_all_models()  # type: ignore[no-untyped-call]
        Base.metadata.create_all(settings.engine)
        environment.setattr(airflow_app, "get_auth_manager_cls", _auth_manager)
        yield airflow_app.create_app(apps="core")
        airflow_app.purge_cached_app()


def _auth_manager() -> type[Any]:
    from airflow.api_fastapi.auth.managers.models.resource_details import DagAccessEntity, DagDetails
    from airflow.api_fastapi.auth.managers.simple.simple_auth_manager import SimpleAuthManager
    from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser

    class Granting(SimpleAuthManager):
        def is_authorized_dag(
            self,
            *,
            method: str,
            user: SimpleAuthManagerUser,
            access_entity: DagAccessEntity | None = None,
            details: DagDetails | None = None,
        ) -> bool:
            granted = GRANTS[user.username]
            if details is None and access_entity is DagAccessEntity.RUN:  # FAB asks for the resource "DAG Runs" alone
                return any(method in methods for methods in granted.values())
            dag_id = details.id if details else None
            return method in granted.get(dag_id, set()) | granted.get(None, set())

    return Granting


Browser = Callable[..., "TestClient"]


@pytest.fixture
def browser(application: FastAPI, dsn: str, monkeypatch: pytest.MonkeyPatch) -> Browser:
    """Of a user, or of nobody; it follows no redirect."""
    from airflow.api_fastapi.app import get_auth_manager
    from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser
    from starlette.testclient import TestClient

    point_to(dsn, monkeypatch)

    def opened(user: str | None) -> TestClient:
        token = {}
        if user is not None:
            token["_token"] = get_auth_manager().generate_jwt(SimpleAuthManagerUser(username=user, role="VIEWER"))
        return TestClient(application, cookies=token, follow_redirects=False)

    return opened


@pytest.fixture(scope="session")
def dags(application: FastAPI) -> None:
    """Those of the tests' pipelines and one of recovery, as Airflow's scheduler would know them."""
    from airflow.models.dag import DagModel
    from airflow.models.dagbundle import DagBundleModel
    from airflow.models.serialized_dag import SerializedDagModel
    from airflow.sdk import DAG
    from airflow.serialization.serialized_objects import LazyDeserializedDAG
    from airflow.utils.db import synchronize_log_template
    from airflow.utils.session import create_session

    from lockstep.airflow.dag import recovery_dag

    with create_session() as session:
        synchronize_log_template(session=session)
        session.merge(DagBundleModel(name="dags"))
        session.flush()
        for dag in (DAG(FLIGHTS, schedule=None), DAG(CLICKS, schedule=None), recovery_dag()):
            known = DagModel(dag_id=dag.dag_id, bundle_name="dags", is_stale=False, is_paused=dag.dag_id == CLICKS)  # type: ignore[no-untyped-call]
            session.add(known)
            session.flush()
            SerializedDagModel.write_dag(LazyDeserializedDAG.from_dag(dag), bundle_name="dags", session=session)


@pytest.fixture
def triggered(dags: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[dict[str, Any]]]:
    """What Airflow was asked to run, and runs; it knows two recovery DAGs, one of which is somebody else's."""
    from airflow.api.common.trigger_dag import trigger_dag
    from airflow.models.dagrun import DagRun
    from airflow.utils.session import create_session
    from sqlalchemy import select

    found: list[dict[str, Any]] = []

    def trigger(dag_id: str, **arguments: Any) -> Any:
        run = trigger_dag(dag_id, **arguments)
        found.append({"dag_id": dag_id, **arguments})
        return run

    monkeypatch.setattr("lockstep.airflow.ui.app.recovery_dags", lambda: ["a_strangers", "lockstep_recovery"])
    monkeypatch.setattr("lockstep.airflow.ui._runs.trigger_dag", trigger)
    yield found
    with create_session() as session:
        for one in session.scalars(select(DagRun)):
            session.delete(one)


SECRET = "never-to-be-seen"


def point_to(dsn: str, monkeypatch: pytest.MonkeyPatch, password: str | None = None) -> None:
    """Airflow's Connection to the ledger; the password as PGPASSFILE has it."""
    parts = parse_dsn(dsn)
    found = {"conn_type": "postgres", "host": parts["host"], "port": int(parts["port"])}
    found |= {"login": parts["user"], "schema": parts["dbname"], "password": password}
    monkeypatch.setenv("AIRFLOW_CONN_LOCKSTEP_LEDGER", json.dumps(found))


@pytest.fixture(scope="module")
def module_dsn(ledger_server: PostgresServer) -> Iterator[str]:
    name = f"ui_{next(_numbers)}"
    dsn = ledger_server.create_database(name)
    migrate(dsn)
    yield dsn
    ledger_server.drop_database(name)


@pytest.fixture
def dsn(module_dsn: str) -> str:
    """Of a ledger with two pipelines and no epoch."""
    with closing(psycopg2.connect(module_dsn)) as connection:
        sql = Sql(connection)
        with sql.unwatched():
            sql.delete_epochs()
            sql("DELETE FROM lockstep.pipeline")
    with closing(Ledger(module_dsn)) as ledger:
        ledger.ensure_pipeline(FLIGHTS, KeyedBy.INTERVAL)
        ledger.ensure_pipeline(CLICKS, KeyedBy.CURSOR)
    return module_dsn


@pytest.fixture
def ledger(dsn: str) -> Iterator[Ledger]:
    with closing(Ledger(dsn, actor="tester")) as opened:
        yield opened


def seal_in(page: str) -> str:
    """What the form carries."""
    found = re.search(r'name="seal" value="([^"]+)"', page)
    assert found, page
    return found[1]
