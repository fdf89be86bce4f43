"""Airflow's Connections as the roles get them: DSNs by id, the staging URI, Spark by any spelling."""

from __future__ import annotations

import json
import pkgutil
import sys
import zipfile
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from psycopg2.extensions import parse_dsn

from lockstep.airflow._launching import ship
from lockstep.epoch import SourceRange
from lockstep.errors import NotConfigured, StageFailed
from lockstep.pipeline import Pipeline
from lockstep.sources import PostgresTableSource
from lockstep.wal.request import StageRequest
from stack.postgres import PostgresServer
from tests.cases import cases
from tests.dags.airflow_parts import before_3_2
from tests.dags.pipelines import ORDERS
from tests.spark.tables import pipeline as TABLES

if TYPE_CHECKING:
    from lockstep.airflow._launching import Launcher
    from lockstep.airflow.connections import AirflowConnections

text = st.text(st.characters(blacklist_characters="\0", blacklist_categories=["Cs"]), min_size=1, max_size=20)


def dsn_of(**fields: Any) -> str:
    """What libpq is given for an Airflow Connection with these fields."""
    from airflow.sdk import Connection

    from lockstep.airflow import connections

    return connections.dsn_of(Connection(conn_id="w", conn_type="postgres", **fields))


@pytest.fixture
def connections() -> AirflowConnections:
    from lockstep.airflow.connections import AirflowConnections

    return AirflowConnections()


def launcher(pipeline: Pipeline) -> Launcher:
    from lockstep.airflow import _launching as launching

    return launching.launcher(pipeline, "spark", {})


@pytest.fixture(scope="module")
def airflow() -> None:
    """Imported beforehand: it takes longer than an example may."""
    dsn_of(host="db")


@pytest.mark.usefixtures("airflow")
@given(password=text, user=text)
def test_libpq_reads_back_any_login(password: str, user: str) -> None:
    found = dsn_of(host="db", login=user, password=password, schema="s")
    assert parse_dsn(found) == {"host": "db", "dbname": "s", "user": user, "password": password}


def test_only_extras_that_libpq_knows_reach_it() -> None:
    extra = json.dumps({"sslmode": "verify-full", "cursor": "dictcursor", "options": "-c search_path=a b"})
    found = parse_dsn(dsn_of(host="/run/pg", extra=extra))
    assert found == {"host": "/run/pg", "sslmode": "verify-full", "options": "-c search_path=a b"}


@cases(
    "fields, meant",
    [
        ("https://u:p%2Fw@h:8443/a/b", "https://u:p%2Fw@h:8443/a/b"),
        ("http://:tok%3Aen@h/", "http://:tok%3Aen@h/"),
        ("tcp://127.0.0.1:99", "tcp://127.0.0.1:99/"),
        ({"conn_type": "http", "host": "https://h/a/b?c=d", "login": "u", "password": "@"}, "https://u:%40@h/a/b?c=d"),
        ({"conn_type": "http", "host": "h", "schema": "https", "port": 1, "extra": {"x": "y"}}, "https://h:1/"),
        ({"conn_type": "http", "host": "::1", "port": 80, "schema": "a/b"}, "http://[::1]:80/a/b"),
        (
            {"conn_type": "lockstep_ledger", "host": "db", "extra": {"sslmode": "require", "sslrootcert": None}},
            "host='db' sslmode='require'",
        ),
        (
            {"conn_type": "lockstep_kafka", "host": "b", "port": 9092, "extra": {"security.protocol": "SSL", "x": ""}},
            "kafka://b:9092/?security.protocol=SSL",
        ),
        (
            {"conn_type": "lockstep_mariadb", "host": "m", "schema": "d", "login": "u", "password": "p@"},
            "mysql://u:p%40@m/d",
        ),
        (
            {"conn_type": "lockstep_s3", "login": "key", "password": "s/cret", "extra": {"region_name": "eu"}},
            "aws://key:s%2Fcret@/?region_name=eu",
        ),
    ],
)
def test_a_connection_becomes_the_login_that_it_means(
    fields: str | dict[str, Any], meant: str, connections: AirflowConnections, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_THERE", fields if isinstance(fields, str) else json.dumps(fields))
    assert connections["there"] == meant


def test_connections_are_looked_up_when_asked_for(
    connections: AirflowConnections, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_SHOP", "postgresql://clerk:s%40fe@db:5433/shop?sslmode=require")
    assert parse_dsn(connections["shop"])["password"] == "s@fe"
    with pytest.raises(NotConfigured, match=r"no Connection 'nowhere'.*AIRFLOW_CONN_NOWHERE"):
        connections["nowhere"]


@cases("extra", ["{'sslmode': 'verify-full', 'key': 'hunter2'}", "null", '["hunter2"]', "hunter2"])
def test_an_extra_that_cant_be_read_is_refused_and_not_passed_over(
    monkeypatch: pytest.MonkeyPatch, connections: AirflowConnections, extra: str
) -> None:
    fields = {"conn_type": "postgres", "host": "h", "extra": extra}
    monkeypatch.setenv("AIRFLOW_CONN_WAREHOUSE", json.dumps(fields))
    with pytest.raises(NotConfigured, match="Connection 'warehouse': its extra isn't a JSON object") as refused:
        connections["warehouse"]
    assert "hunter2" not in str(refused.value)


def test_staging_comes_from_the_environment_first_and_then_from_a_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    from lockstep.airflow.connections import staging_uri

    monkeypatch.delenv("LOCKSTEP_STAGING", raising=False)
    monkeypatch.setenv("AIRFLOW_CONN_LOCKSTEP_STAGING", json.dumps({"conn_type": "generic", "host": "s3://wal/all"}))
    assert staging_uri() == "s3://wal/all"
    monkeypatch.setenv("AIRFLOW_CONN_LOCKSTEP_STAGING", json.dumps({"conn_type": "generic", "extra": {"uri": "/wal"}}))
    assert staging_uri() == "/wal"
    monkeypatch.setenv("LOCKSTEP_STAGING", "file:///staging")
    assert staging_uri() == "file:///staging"


CONNECT = "sc://127.0.0.1:15002"


@cases(
    "spelling, master",
    [
        ("spark-connect://127.0.0.1:15002", None),
        (json.dumps({"conn_type": "spark_connect", "host": "sc://127.0.0.1", "port": 15002}), None),
        (json.dumps({"conn_type": "spark", "host": CONNECT}), None),
        ("spark://master:7077", "spark://master:7077"),
        (json.dumps({"conn_type": "spark", "host": "spark://master", "port": 7077}), "spark://master:7077"),
        (json.dumps({"conn_type": "spark", "host": "yarn"}), "yarn"),
    ],
)
def test_spark_connect_is_understood_however_it_is_written_and_every_other_spark_goes_through_spark_submit(
    monkeypatch: pytest.MonkeyPatch, spelling: str, master: str | None
) -> None:
    from lockstep.airflow._launching import ConnectLauncher, SubmitLauncher, _url, asking
    from lockstep.compute import auditing

    monkeypatch.setenv("AIRFLOW_CONN_SPARK", spelling)
    asked: list[Any] = []
    monkeypatch.setattr(auditing, "ask_spark", lambda target, *arguments: asked.append((target, *arguments)))
    found = launcher(ORDERS)
    audit: tuple[Any, ...] = ("wal", "orders", [], {})
    if master is None:
        assert isinstance(found, ConnectLauncher)
        assert _url("spark").rstrip("/") == CONNECT
        asking("spark")(*audit)
        assert asked == [(_url("spark"), *audit)]
    else:
        assert isinstance(found, SubmitLauncher) and found.master == master
        with pytest.raises(NotConfigured, match="to a Spark Connect server"):
            asking("spark")(*audit)


@pytest.mark.fault("Q12")
@cases("planned", [None, PostgresTableSource("events", connection="old_shop", order_by="xid").spec()])
def test_a_driver_of_its_own_gets_the_connections_of_the_planned_sources_and_no_other(
    monkeypatch: pytest.MonkeyPatch, planned: Any
) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_SPARK", json.dumps({"conn_type": "spark", "host": "local[*]"}))
    monkeypatch.setenv("AIRFLOW_CONN_TABLE_SHOP", "postgresql://clerk:hunter2@db:5433/shop")
    monkeypatch.setenv("AIRFLOW_CONN_WAREHOUSE", "postgresql://clerk:hunter3@db:5433/shop")
    monkeypatch.setenv("AIRFLOW_CONN_OLD_SHOP", "postgresql://clerk:hunter4@db:5433/shop")
    from lockstep.airflow._launching import SubmitLauncher

    found = launcher(TABLES)
    assert isinstance(found, SubmitLauncher)
    environment = found._environment({"events": SourceRange(None, {}, planned)})
    given = {name: value for name, value in environment.items() if not name.startswith("AIRFLOW")}
    name, password = ("LOCKSTEP_OLD_SHOP", "hunter4") if planned else ("LOCKSTEP_TABLE_SHOP", "hunter2")
    assert given[name] == f"host='db' port='5433' dbname='shop' user='clerk' password='{password}'"
    assert [word for word in ("hunter2", "hunter3", "hunter4") if word in str(given)] == [password]
    alike = PostgresTableSource("events", connection="Table.Shop", order_by="xid").spec()
    with pytest.raises(NotConfigured, match=r"'Table\.Shop' are both read from LOCKSTEP_TABLE_SHOP"):
        found._environment({"events": SourceRange(None, {}, None), "more": SourceRange(None, {}, alike)})


@pytest.mark.fault("R8", "R12")
@cases("host", ["local[*]", "spark://master:7077", "yarn"])
def test_env_vars_take_from_a_driver_nothing_of_what_lockstep_gives_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, host: str
) -> None:
    from airflow.providers.apache.spark.hooks import spark_submit
    from airflow.sdk.exceptions import AirflowException

    from lockstep.airflow import _launching as launching

    if host != "yarn":  # once is enough: it takes its time
        monkeypatch.setattr(launching, "_packages", lambda reference: [])
    monkeypatch.setenv("AIRFLOW_CONN_SPARK", json.dumps({"conn_type": "spark", "host": host}))
    monkeypatch.setenv("AIRFLOW_CONN_TABLE_SHOP", "postgresql://clerk:hunter2@db:5433/shop")
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    connections = ["AIRFLOW_CONN_SINK", "LOCKSTEP_LEDGER", "LOCKSTEP_SINK", "LOCKSTEP_SPARK"]
    for name in [*connections, "AIRFLOW__CORE__FERNET_KEY", "MY_TOKEN", "PGPASSWORD"]:
        monkeypatch.setenv(name, "hunter3")
    passed = ["AIRFLOW_CTX_DAG_ID", "AWS_PROFILE", "LOCKSTEP_HOME", "HADOOP_CONF_DIR", "http_proxy", "LC_ALL"]
    passed += ["_JAVA_OPTIONS", "IDENTITY_ENDPOINT", "MSI_SECRET", "GCE_METADATA_HOST", "PGSSLROOTCERT"]
    for name in passed:
        monkeypatch.setenv(name, "/passed")
    started: list[tuple[list[str], dict[str, str]]] = []

    def popen(command: list[str], *, env: dict[str, str], **_: Any) -> None:
        started.append((command, env))
        raise AirflowException("it was only looked at")

    monkeypatch.setattr(spark_submit, "subprocess", SimpleNamespace(Popen=popen, PIPE=-1, STDOUT=-2))
    folder = tmp_path / "1"
    folder.mkdir()
    ranges = {"events": SourceRange(None, {}, None)}
    request = StageRequest("", 1, 1, folder.as_uri(), (), ranges, datetime.now(UTC))
    (folder / "_request.json").write_text(json.dumps(request.to_json()))
    made = launching.launcher(TABLES, "spark", {"env_vars": {"MY_ZONE": "UTC"}})
    with pytest.raises(StageFailed, match="only looked at"):
        made((folder / "_request.json").as_uri())
    [(command, env)] = started
    assert "hunter3" not in str(env) and sum(value == "/passed" for value in env.values()) == len(passed)
    assert "hunter2" in env["LOCKSTEP_TABLE_SHOP"] and "hunter2" not in str(command)
    assert env["PATH"].startswith(str(Path(sys.executable).parent))
    assert ("PYSPARK_PYTHON" in env) == (host != "yarn")
    assert env["MY_ZONE"] == "UTC"
    assert ("spark.yarn.appMasterEnv.MY_ZONE=UTC" in command) == (host == "yarn")


@pytest.mark.fault("R19")
@cases("host", ["local[*]", "yarn"])
def test_neither_the_error_nor_the_log_of_spark_submit_has_a_value_of_a_setting(
    host: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: pytest.CaptureFixture[str], caplog: Any
) -> None:
    from airflow.providers.apache.spark.hooks import spark_submit

    from lockstep.airflow import _launching as launching

    monkeypatch.setattr(launching, "_packages", lambda reference: [])
    monkeypatch.setattr(launching, "read_request", lambda uri: SimpleNamespace(sources={}))
    monkeypatch.setenv("AIRFLOW_CONN_SPARK", json.dumps({"conn_type": "spark", "host": host}))
    commands: list[list[str]] = []

    def popen(command: list[str], **_: Any) -> Any:
        commands.append(command)
        return SimpleNamespace(stdout=["the driver's last line"], wait=lambda: 1)

    monkeypatch.setattr(spark_submit, "subprocess", SimpleNamespace(Popen=popen, PIPE=-1, STDOUT=-2))
    conf = {
        "spark.hadoop.fs.azure.account.key.a": "hunter2",
        "spark.hadoop.session.token": "x. Error code is: \nhunter2",
    }
    made = launching.launcher(TABLES, "spark", {"conf": conf, "env_vars": {"MY_TOKEN": "hunter2"}})
    with pytest.raises(StageFailed, match=r"^spark-submit failed, see this task's log: Error code is: 1\.$"):
        made((tmp_path / "_request.json").as_uri())
    shown = "".join((*capfd.readouterr(), caplog.text))
    assert "hunter2" in str(commands) and "hunter2" not in shown
    assert "account.key.a=*** --conf" in shown and "the driver's last line" in shown


def test_every_type_of_connection_has_a_hook_and_a_form_that_airflow_takes(caplog: pytest.LogCaptureFixture) -> None:
    from importlib.resources import files

    import jsonschema  # type: ignore[import-untyped]
    from airflow.providers_manager import ProvidersManager

    from lockstep.airflow.connections import _OWN_TYPES
    from lockstep.airflow.provider import get_provider_info

    info = get_provider_info()
    jsonschema.validate(info, json.loads(files("airflow").joinpath("provider_info.schema.json").read_text()))
    types = {one["connection-type"]: one for one in info["connection-types"]}
    assert set(types) == {*_OWN_TYPES, "lockstep_staging"}
    manager = ProvidersManager()  # type: ignore[no-untyped-call]
    for name, one in types.items():
        hook = pkgutil.resolve_name(one["hook-class-name"])
        assert (hook.conn_type, hook.hook_name) == (name, one["hook-name"])
        assert name in manager.hooks
        if before_3_2():  # which takes no fields from a provider's list
            continue
        assert manager.field_behaviours[name]["relabeling"] == one["ui-field-behaviour"]["relabeling"]
        for field in one.get("conn-fields", {}):
            assert f"extra__{name}__{field}" in manager.connection_form_widgets
    assert "lockstep" not in caplog.text


def test_the_ledger_s_and_the_staging_s_connections_can_be_tried(
    ledger_server: PostgresServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from airflow.sdk import Connection

    from lockstep.ledger import migrate

    def tried(conn_id: str, fields: dict[str, Any]) -> tuple[bool, str]:
        monkeypatch.setenv(f"AIRFLOW_CONN_{conn_id.upper()}", json.dumps(fields))
        worked, told = Connection.get(conn_id).get_hook().test_connection()
        return bool(worked), str(told)

    dsn = ledger_server.create_database("tried")
    migrate(dsn)
    given = parse_dsn(dsn)
    ledger = {"conn_type": "lockstep_ledger", "host": given["host"], "port": int(given["port"]), "login": given["user"]}
    ledger |= {"schema": given["dbname"], "password": given.get("password")}
    assert tried("lockstep_ledger", ledger) == (True, "the ledger knows 0 pipelines")
    worked, told = tried("lockstep_ledger", {**ledger, "schema": "nowhere", "password": "hunter2"})
    assert not worked and "hunter2" not in told
    staging = {"conn_type": "lockstep_staging", "host": str(tmp_path / "wal")}
    assert tried("lockstep_staging", staging) == (True, "a file was made, read and deleted there")
    assert not tried("lockstep_staging", {**staging, "host": ""})[0]


def test_of_a_package_in_several_folders_the_module_that_python_imports_is_shipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder, modules in (("first", ["ours"]), ("second", ["ours", "more"])):
        package = tmp_path / folder / "in_several_folders"
        package.mkdir(parents=True)
        for module in modules:
            (package / f"{module}.py").write_text(f"FROM = {folder!r}\n")
    for folder in ("second", "first"):
        monkeypatch.syspath_prepend(str(tmp_path / folder))
    with zipfile.ZipFile(ship(["in_several_folders"], tmp_path)) as shipped:
        assert sorted(shipped.namelist()) == ["in_several_folders/more.py", "in_several_folders/ours.py"]
        assert shipped.read("in_several_folders/ours.py") == b"FROM = 'first'\n"
