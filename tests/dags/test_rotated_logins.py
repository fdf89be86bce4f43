"""Logins that change while a task runs: a rotated password is asked for again where the old one is refused, and a token
is got by the provider's hook whenever a connection is opened. The servers are real; of the cloud only what signs tokens
is a stand-in."""

from __future__ import annotations

import json
import pickle
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import psycopg2
import pytest
from psycopg2 import sql
from psycopg2.extensions import parse_dsn

from lockstep.connections.mariadb.connection import MariaDbDatabase as MariaDb
from lockstep.connections.postgres.connection import PostgresDatabase as Postgres
from lockstep.connections.postgres.connection import read_rows
from lockstep.errors import SINK_ERRORS, LoginUnavailable, NotConfigured, SinkUnavailable
from lockstep.ledger import Ledger, migrate
from lockstep.sources import MariaDbTableSource, PostgresTableSource
from lockstep.sources.base import SourceContext
from stack.mariadb import MariaDbServer
from stack.s3 import S3Server
from tests.cases import cases

if TYPE_CHECKING:
    from lockstep.connections.login import Login

Environment = pytest.MonkeyPatch


@dataclass
class Account:
    """A login of a real server, and the Connection `there` that leads to it."""

    dsn: str  #: of an administrator
    environment: Environment
    fields: dict[str, Any]
    user: str
    asked: list[str] = field(default_factory=list)

    def connection(self, **changed: Any) -> None:
        """What Airflow's secrets backend says from now on."""
        self.environment.setenv("AIRFLOW_CONN_THERE", json.dumps({**self.fields, "login": self.user, **changed}))

    def login(self) -> Login:
        from lockstep.airflow.connections import AirflowConnections
        from lockstep.connections.login import Login

        found = AirflowConnections()["there"]
        assert isinstance(found, Login)
        return found

    def set_password(self, password: str) -> None:
        """At the server, and whoever is connected is sent away."""
        raise NotImplementedError

    def rotate(self, password: str) -> None:
        self.set_password(password)
        self.connection(password=password)


class PostgresAccount(Account):
    def set_password(self, password: str) -> None:
        with closing(psycopg2.connect(self.dsn)) as admin, admin, admin.cursor() as cursor:
            role, secret = sql.Identifier(self.user), sql.Literal(password)
            cursor.execute(sql.SQL("ALTER ROLE {} PASSWORD {}").format(role, secret))
            cursor.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = %s", (self.user,))


class MariaDbAccount(Account):
    server: MariaDbServer

    def set_password(self, password: str) -> None:
        self.server.execute(f"ALTER USER {self.user}@'127.0.0.1' IDENTIFIED BY %s", password)
        self.server.execute(f"KILL USER {self.user}@'127.0.0.1'")


@pytest.fixture
def account(warehouse_dsn: str, monkeypatch: Environment) -> Iterator[Account]:
    parts = parse_dsn(warehouse_dsn)
    with closing(psycopg2.connect(warehouse_dsn)) as admin, admin, admin.cursor() as cursor:
        cursor.execute("CREATE ROLE clerk SUPERUSER LOGIN; CREATE TABLE shop (id bigint PRIMARY KEY)")
    fields = {"conn_type": "postgres", "host": parts["host"], "port": int(parts["port"]), "schema": parts["dbname"]}
    made = PostgresAccount(warehouse_dsn, monkeypatch, fields, "clerk")
    made.rotate("hunter1")
    try:
        yield made
    finally:
        made.set_password("gone")
        with closing(psycopg2.connect(warehouse_dsn)) as admin, admin, admin.cursor() as cursor:
            cursor.execute("REASSIGN OWNED BY clerk TO CURRENT_USER; DROP ROLE clerk")


@pytest.fixture
def maria(mariadb_server: MariaDbServer, mariadb_dsn: str, monkeypatch: Environment) -> Iterator[MariaDbAccount]:
    parts = urlsplit(mariadb_dsn)
    database = parts.path.strip("/")
    mariadb_server.execute("CREATE USER clerk@'127.0.0.1'")
    mariadb_server.execute(f"GRANT ALL ON `{database}`.* TO clerk@'127.0.0.1'")
    mariadb_server.execute(f"CREATE TABLE `{database}`.shop (id bigint PRIMARY KEY) ENGINE=InnoDB")
    fields = {"conn_type": "mysql", "host": "127.0.0.1", "port": parts.port, "schema": database}
    account = MariaDbAccount(mariadb_dsn, monkeypatch, fields, "clerk")
    account.server = mariadb_server
    account.rotate("hunter1")
    yield account
    mariadb_server.execute("DROP USER clerk@'127.0.0.1'")


# --- passwords that are rotated ---


def of_ledger(login: str) -> Callable[[], object]:
    migrate(login)
    return Ledger(login).deployment


def of_sink(login: str) -> Callable[[], object]:
    database = Postgres("sink there", "there", login, 5.0, SINK_ERRORS)

    def ask() -> object:
        with database.transaction("asking who this is") as cursor:
            cursor.execute("SELECT current_user")
            return cursor.fetchone()

    return ask


def of_source(login: str) -> Callable[[], object]:
    source = PostgresTableSource("shop", connection="there", order_by="id", settle=timedelta(0))
    context = SourceContext("pipe", "shop", lambda paths: set(), {"there": login})

    def ask() -> object:
        with source.opened(context) as opened:
            return opened.latest(None, None)

    return ask


def of_audit(login: str) -> Callable[[], object]:
    return lambda: read_rows("audit", login, "SELECT count(*) FROM shop", {}, max_rows=1, within=timedelta(minutes=1))


@cases("room", [of_ledger, of_sink, of_source, of_audit])
def test_a_password_that_is_rotated_while_a_task_runs_is_asked_for_again(
    room: Callable[[str], Callable[[], object]], account: Account
) -> None:
    ask = room(account.login())
    before = ask()
    account.rotate("hunter2")
    assert ask() == before
    account.rotate("hunter3")
    assert ask() == before


def test_of_mariadb_too(maria: MariaDbAccount) -> None:
    login = maria.login()
    sink = MariaDb("sink there", "there", login, 5.0, SINK_ERRORS)
    source = MariaDbTableSource("shop", connection="there", order_by="id", settle=timedelta(0))
    context = SourceContext("pipe", "shop", lambda paths: set(), {"there": login})
    for password in ("hunter2", "hunter3", "hunter4"):
        with sink.transaction("asking who this is") as cursor:
            cursor.execute("SELECT CURRENT_USER()")
            assert cursor.fetchone() == ("clerk@127.0.0.1",)
        with source.opened(context) as opened:
            opened.latest(None, None)
        maria.rotate(password)


def test_what_is_refused_as_it_stands_is_asked_for_once_more_and_told_without_the_password(
    account: Account, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from airflow.sdk import Connection

    asked: list[str] = []
    get = Connection.get

    def noting(conn_id: str) -> Any:
        asked.append(conn_id)
        return get(conn_id)

    told: list[BaseException | None] = []

    def require_refused() -> None:
        with pytest.raises(SinkUnavailable, match="password authentication failed") as refused:
            ask()
        told.extend([refused.value, refused.value.__cause__])

    ask = of_sink(account.login())
    account.set_password("hunter2")
    monkeypatch.setattr(Connection, "get", noting)
    with caplog.at_level("DEBUG"):
        require_refused()
    assert asked == ["there"]
    account.connection(password="hunter9")
    require_refused()
    account.environment.delenv("AIRFLOW_CONN_THERE")
    require_refused()  # the server's own word, where the Connection is gone by now
    account.connection(password="hunter2", schema="postgres")
    require_refused()  # one that leads elsewhere by now is for the next try: what a sink has seen holds for one server
    assert of_sink(account.login())() == ("clerk",)
    assert "hunter" not in f"{told!r} {caplog.text}"


# --- tokens ---


@pytest.fixture
def signed(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int, str]]:
    """Of whom RDS was asked for a token. The stand-in's tokens are `token 1`, `token 2` …"""
    asked: list[tuple[str, int, str]] = []

    def generate(host: str, port: int, user: str) -> str:
        asked.append((host, port, user))
        return f"token {len(asked)}"

    class AwsBaseHook:
        def __init__(self, aws_conn_id: str, client_type: str) -> None:
            assert (aws_conn_id, client_type) == ("cloud", "rds")
            self.conn = SimpleNamespace(generate_db_auth_token=generate)

    module = ModuleType("airflow.providers.amazon.aws.hooks.base_aws")
    module.AwsBaseHook = AwsBaseHook  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, module.__name__, module)
    return asked


TOKENS = {"iam": True, "aws_conn_id": "cloud", "sslmode": "prefer"}


@cases("conn_type", ["postgres", "lockstep_ledger"])
def test_a_connection_that_asks_for_a_token_gets_one_by_its_hook_whenever_it_is_opened(
    conn_type: str, account: Account, signed: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    from lockstep.airflow import connections

    monkeypatch.setattr(connections, "TOKEN_SECONDS", 0.0)
    signed.clear()
    account.connection(conn_type=conn_type, extra=TOKENS)
    login = account.login()
    assert signed == [(account.fields["host"], account.fields["port"], "clerk")]
    for number in (2, 3):
        account.set_password(f"token {number}")  # the server takes no other one any more
        assert of_sink(login)() == ("clerk",)
    assert len(signed) == 3


def test_a_token_serves_every_connection_of_a_minute_and_one_that_is_refused_is_replaced(
    account: Account, signed: list[Any]
) -> None:
    account.connection(extra=TOKENS)
    login = account.login()
    account.set_password("token 1")
    assert [of_sink(login)() for _ in range(3)] == [("clerk",)] * 3
    assert len(signed) == 1
    account.set_password("token 2")
    assert of_sink(login)() == ("clerk",)
    assert len(signed) == 2


def test_a_service_that_gives_no_token_is_waited_for_and_named(
    account: Account, signed: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    account.connection(extra={**TOKENS, "aws_conn_id": "another"})
    with pytest.raises(LoginUnavailable, match="'there': no token could be obtained: AssertionError"):
        account.login()


@cases(
    "fields, package",
    [
        ({"conn_type": "postgres", "extra": {"iam": True}}, "apache-airflow-providers-amazon"),
        ({"conn_type": "postgres", "extra": {"iam": "true", "redshift": True}}, "apache-airflow-providers-amazon"),
        ({"conn_type": "lockstep_ledger", "extra": {"azure_conn_id": "a"}}, "apache-airflow-providers-microsoft-azure"),
        ({"conn_type": "mysql", "extra": {"iam": True}}, "apache-airflow-providers-mysql"),
        ({"conn_type": "lockstep_mariadb", "extra": {"iam": True}}, "apache-airflow-providers-mysql"),
    ],
)
def test_a_provider_that_is_missing_is_named_with_its_package(
    fields: dict[str, Any], package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from lockstep.airflow.connections import AirflowConnections

    for module in ("amazon.aws.hooks.base_aws", "microsoft.azure.hooks.base_azure", "mysql.hooks.mysql"):
        monkeypatch.setitem(sys.modules, f"airflow.providers.{module}", None)
    monkeypatch.setenv("AIRFLOW_CONN_THERE", json.dumps({**fields, "host": "db", "login": "u", "schema": "s"}))
    with pytest.raises(NotConfigured, match=f"'there' asks for a token.*pip install {package}$"):
        AirflowConnections()["there"]


@cases("extra, password", [({"iam": False, "aws_conn_id": "a"}, "p"), ({"azure_conn_id": "a"}, "p"), ({}, None)])
@cases("conn_type", ["postgres", "mysql"])
def test_who_asks_for_no_token_gets_none_and_the_driver_nothing_that_is_for_the_hook(
    conn_type: str, extra: dict[str, Any], password: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    from lockstep.airflow.connections import AirflowConnections
    from lockstep.connections.mariadb.dsn import parse_dsn as parse_uri

    fields = {"conn_type": conn_type, "host": "db", "schema": "s", "login": "u", "password": password, "extra": extra}
    monkeypatch.setenv("AIRFLOW_CONN_THERE", json.dumps(fields))
    found = AirflowConnections()["there"]
    parts = parse_dsn(found) if conn_type == "postgres" else parse_uri("there", found)
    assert parts.get("password") == password
    assert {"iam", "aws_conn_id", "azure_conn_id"}.isdisjoint(parts)


# --- keys of an object store ---


@pytest.fixture
def lent(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str, str | None]]:
    """Keys that the stand-in gives one after the other, and the last for good."""
    keys: list[tuple[str, str, str | None]] = []

    class AwsBaseHook:
        def __init__(self, aws_conn_id: str, client_type: str) -> None:
            assert (aws_conn_id, client_type) == ("there", "s3")

        def get_credentials(self, region_name: str | None = None) -> Any:
            assert region_name == "eu-west-1"
            names = ("access_key", "secret_key", "token")
            return SimpleNamespace(**dict(zip(names, keys.pop(0) if len(keys) > 1 else keys[0], strict=True)))

    module = ModuleType("airflow.providers.amazon.aws.hooks.base_aws")
    module.AwsBaseHook = AwsBaseHook  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, module.__name__, module)
    return keys


def test_keys_of_a_role_are_got_by_the_hook_and_again_before_they_end(
    s3_server: S3Server, lent: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    from lockstep.airflow import connections
    from lockstep.airflow.connections import AirflowConnections
    from lockstep.connections.object_store import client
    from lockstep.connections.object_store.store import ObjectStore

    s3_server.start()
    monkeypatch.setattr(connections, "TOKEN_SECONDS", 0.0)
    monkeypatch.setattr(client, "_LIFE", timedelta(0))
    extra = {"role_arn": "arn:aws:iam::1:role/x", "region_name": "eu-west-1", "endpoint_url": s3_server.endpoint}
    fields = {"conn_type": "aws", "login": "base", "password": "hunter1", "extra": extra}
    monkeypatch.setenv("AIRFLOW_CONN_THERE", json.dumps(fields))
    good = (s3_server.access_key, s3_server.secret_key, None)
    lent += [good, good, (s3_server.access_key, "hunter2", None), good]
    found = AirflowConnections()["there"]
    assert "hunter1" not in found and "role" not in found
    store = ObjectStore.at("s3://tests/role", found)
    store.replace("a", b"1")
    with pytest.raises(PermissionError) as refused:
        store.replace("b", b"2")
    assert "hunter" not in f"{refused.value!r} {store._login!r}"
    store.replace("c", b"3")
    assert sorted(one.path for one in store.find_below("")) == ["a", "c"]


@cases(
    "login, extra, asks",
    [
        ("key", {}, False),
        (None, {"aws_access_key_id": "key", "aws_secret_access_key": "secret"}, False),
        ("key", {"role_arn": "arn:aws:iam::1:role/x"}, True),
        ("key", {"role_arn": ""}, False),
        (None, {"profile_name": "shop"}, True),
        (None, {}, True),
    ],
)
@cases("conn_type", ["aws", "lockstep_s3"])
def test_keys_are_asked_for_where_a_connection_names_a_role_or_has_none(
    conn_type: str, login: str | None, extra: dict[str, str], asks: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    from lockstep.airflow.connections import AirflowConnections
    from lockstep.connections.object_store.client import S3Login as Keys

    monkeypatch.setitem(sys.modules, "airflow.providers.amazon.aws.hooks.base_aws", None)
    fields = {"conn_type": conn_type, "login": login, "password": "secret" if login else None, "extra": extra}
    monkeypatch.setenv("AIRFLOW_CONN_THERE", json.dumps(fields))
    if asks:
        with pytest.raises(NotConfigured, match=r"'there' asks for keys of a role.*apache-airflow-providers-amazon$"):
            AirflowConnections()["there"]
    else:
        assert Keys.of(AirflowConnections()["there"]).credential()["access_key_id"] == "key"


def test_in_another_process_a_login_is_a_mere_text_and_no_trace_shows_it(account: Account) -> None:
    login = account.login()
    sent = pickle.loads(pickle.dumps(login))  # as Spark ships what its workers run
    assert type(sent) is str and sent == login and "hunter1" in sent
    assert "hunter1" not in repr(login)


def test_messages_are_rid_of_every_password_that_a_login_had(account: Account, maria: MariaDbAccount) -> None:
    """Both are of one Connection here, the later one's."""
    from lockstep.connections.mariadb.dsn import scrub_login
    from lockstep.connections.postgres.dsn import scrub

    uri = maria.login()
    account.rotate("hunter1")
    dsn = account.login()
    for login, change in ((dsn, account), (uri, maria)):
        change.connection(password="hunter2")
        assert login.again(login.now()[0])
        text = f"hunter1, hunter2, {login} and {login.now()[0]}"
        told = scrub(text, login) if login is dsn else scrub_login(text, "there", login)
        assert "hunter" not in told and "clerk" not in told


def test_two_users_in_turn_finish_each_other_s_branches_where_the_connection_names_one_role(account: Account) -> None:
    """A branch is the role's that prepared it."""
    other = f"{account.user}2"
    with closing(psycopg2.connect(account.dsn)) as admin, admin, admin.cursor() as cursor:
        cursor.execute("ALTER ROLE clerk NOSUPERUSER; CREATE ROLE clerk2 LOGIN PASSWORD 'hunter2'; CREATE ROLE writer")
        cursor.execute("GRANT writer TO clerk, clerk2; GRANT INSERT, SELECT ON shop TO writer")
    try:
        account.connection(password="hunter1", extra={"options": "-c role=writer"})
        login = account.login()
        database = Postgres("sink there", "there", login, 5.0, SINK_ERRORS)
        session = database.connect("preparing")
        with closing(session), session.cursor() as cursor:
            cursor.execute("INSERT INTO shop VALUES (1); PREPARE TRANSACTION 'in turn'")
        account.set_password("gone")
        account.user = other
        account.connection(password="hunter2", extra={"options": "-c role=writer"})
        with database.outside_transaction() as cursor:
            cursor.execute("SELECT session_user")
            assert cursor.fetchone() == (other,)
            cursor.execute("COMMIT PREPARED 'in turn'")
        database.close()
    finally:
        account.user = "clerk"
        with closing(psycopg2.connect(account.dsn)) as admin, admin, admin.cursor() as cursor:
            cursor.execute("DROP OWNED BY writer; DROP ROLE writer; DROP ROLE clerk2; ALTER ROLE clerk SUPERUSER")


def test_one_thread_at_a_time_asks_airflows_supervisor_where_airflow_itself_has_no_lock_there() -> None:
    """As 3.1 has it: of a task's socket to its supervisor whoever asks takes the next answer, whose it is."""
    from airflow.sdk.execution_time import comms

    from lockstep.airflow._airflow import one_at_a_time

    class Decoder:
        def __init__(self, max_wait: float) -> None:
            self.max_wait, self.mixed = max_wait, False
            self.two = threading.Barrier(2)  #: which are in the midst of a question

        def send(self, question: str) -> str:
            if question == "of a signal's handler":
                return question
            with suppress(threading.BrokenBarrierError):
                self.two.wait(self.max_wait)
                self.mixed = True
            return self.send("of a signal's handler")

        def ask_twice(self) -> bool:
            with ThreadPoolExecutor(2) as pool:
                list(pool.map(self.send, ["the ledger's login", "a sink's"]))
            return self.mixed

    class WithALock(Decoder):
        _thread_lock = threading.Lock()

    assert Decoder(60).ask_twice(), "threads get each other's answers"
    one_at_a_time(WithALock)
    assert WithALock(60).ask_twice(), "it has a lock of its own"
    one_at_a_time(Decoder)
    assert not Decoder(0.2).ask_twice()
    assert hasattr(comms.CommsDecoder, "_thread_lock") or hasattr(comms.CommsDecoder.send, "__wrapped__")
