"""Reads Airflow's Connections when a role needs them, never while a DAG file is parsed, and turns them into DSNs.

A Connection may ask for a token in place of its password (RDS, Redshift, Azure), or for the keys of a role (S3), as
Airflow's own hooks do. The hook of the Connection's provider gets them. Lockstep doesn't depend on these providers, and
names the one that is missing.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any
from urllib.parse import quote

from airflow.sdk import Connection

from lockstep.airflow._airflow import AirflowNotFoundException
from lockstep.connections.login import Known, Login
from lockstep.errors import LoginUnavailable, NotConfigured

TOKEN_SECONDS = 60.0  #: a token is used for, in which many connections may be opened; it lives for minutes

#: {type of Connection: its hook, the name of whose argument is a Connection's id, and the package that brings it}
_HOOKS = {
    "postgres": ("airflow.providers.postgres.hooks.postgres", "PostgresHook", "apache-airflow-providers-postgres"),
    "mysql": ("airflow.providers.mysql.hooks.mysql", "MySqlHook", "apache-airflow-providers-mysql"),
}
_AMAZON = ("airflow.providers.amazon.aws.hooks.base_aws", "apache-airflow-providers-amazon")
_AZURE = ("airflow.providers.microsoft.azure.hooks.base_azure", "apache-airflow-providers-microsoft-azure")
#: Of a Connection's extra, for these hooks alone.
EXTRAS = frozenset(
    {"iam", "aws_conn_id", "azure_conn_id", "redshift", "redshift-serverless", "cluster-identifier", "workgroup-name"}
)


#: Of an aws Connection's extra, what its keys are got by.
_ROLES = ("role_arn", "profile_name")
#: Of an aws Connection's extra, what says where the store is.
_STORE = ("region_name", "endpoint_url")


def asks_for_keys(found: Connection) -> bool:
    """Whether an aws Connection names a role or a profile, or has no keys of its own: its hook takes the machine's."""
    extra = found.extra_dejson
    own = found.login or extra.get("aws_access_key_id")
    return found.conn_type == "aws" and (not own or any(extra.get(name) for name in _ROLES))


def with_keys(found: Connection) -> Connection:
    """The same with the keys that its provider's hook gets, good for minutes, and only where the store is beside them.

    Raises `NotConfigured` where the provider is missing, `LoginUnavailable` where no keys are had.
    """
    extra = found.extra_dejson
    hook = _provided(*_AMAZON, found, "keys of a role").AwsBaseHook
    try:
        got = hook(found.conn_id, client_type="s3").get_credentials(extra.get("region_name"))
    except Exception as error:  # of Amazon's client: any
        raise _unavailable(found, "no keys were", error) from None
    from airflow.sdk.log import mask_secret

    for secret in filter(None, (got.secret_key, got.token)):
        mask_secret(secret)
    kept = {name: extra[name] for name in _STORE if extra.get(name)}
    kept |= {"aws_session_token": got.token} if got.token else {}
    return changed(found, login=got.access_key, password=got.secret_key, extra=json.dumps(kept) if kept else None)


def asks_for_token(found: Connection) -> bool:
    """By `iam`, as its hook reads it; `azure_conn_id` alone says so too, where there is no password."""
    if found.conn_type not in _HOOKS:
        return False
    extra = found.extra_dejson
    asked = str(extra.get("iam") or "").lower() not in ("", "false", "0", "no")
    return asked or bool(extra.get("azure_conn_id") and not found.password)


def with_token(found: Connection) -> Connection:
    """The same with a token for its password, and with the login and the port that go with it.

    Raises `NotConfigured` where a provider is missing, `LoginUnavailable` where no token is had.
    """
    module, name, package = _HOOKS[str(found.conn_type)]
    azure = bool(found.extra_dejson.get("azure_conn_id"))
    if azure and found.conn_type != "postgres":
        raise NotConfigured(f"Connection {found.conn_id!r} has azure_conn_id, which only Postgres takes tokens by")
    hook = getattr(_provided(module, package, found), name)
    _provided(*(_AZURE if azure else _AMAZON), found)
    try:
        got = hook(**{hook.conn_name_attr: found.conn_id}).get_iam_token(found)
    except Exception as error:  # of a cloud's own client: any
        raise _unavailable(found, "no token was", error) from None
    from airflow.sdk.log import mask_secret

    login, token, port = got if len(got) == 3 else (found.login, *got)
    mask_secret(token)
    return changed(found, login=login, password=token, port=port)


def without_extras(found: Connection) -> Connection:
    """The same without what its extra says to a hook that gets"""
    extra = found.extra_dejson
    if found.conn_type not in _HOOKS or not EXTRAS & extra.keys():
        return found
    kept = {name: value for name, value in extra.items() if name not in EXTRAS}
    return changed(found, extra=json.dumps(kept) if kept else None)


def changed(found: Connection, **fields: Any) -> Connection:
    """The same with other values of these fields."""
    names = ("conn_id", "conn_type", "host", "schema", "login", "password", "port", "extra")
    return Connection(**{**{name: getattr(found, name) for name in names}, **fields})


def _provided(module: str, package: str, found: Connection, what: str = "a token in place of a password") -> Any:
    try:
        return import_module(module)
    except ImportError as error:
        raise NotConfigured(
            f"Connection {found.conn_id!r} asks for {what}, and the package that gets it is "
            f"missing ({error.name or module}): pip install {package}"
        ) from error


def _unavailable(found: Connection, what: str, error: Exception) -> LoginUnavailable:
    told = (str(error).strip().splitlines() or [""])[0]
    text = f"Connection {found.conn_id!r}: {what} had: {type(error).__name__}: {told}"
    return LoginUnavailable(text.replace(found.password, "***") if found.password else text)


LEDGER = "lockstep_ledger"  #: id of the Connection to the ledger's database
STAGING = "lockstep_staging"  #: id of the Connection whose host, or extra `uri`, is the staging URI
STAGING_VARIABLE = "LOCKSTEP_STAGING"

#: Types of our own (`provider.py`), and of whose Connections they are a form.
_OWN_TYPES = {
    "lockstep_ledger": "postgres",
    "lockstep_kafka": "kafka",
    "lockstep_mariadb": "mysql",
    "lockstep_s3": "aws",
}
_SAME_TYPES = {"postgresql": "postgres", "mariadb": "mysql"}
#: Of Connections that are asked for again where their login is refused: who connects there knows that it was.
_ROTATED = frozenset({"postgres", "mysql", "kafka"})
#: What of an extra says where a Connection leads, and not who comes.
_PLACES = ("bootstrap.servers", "endpoint_url", "service", "target_session_attrs", "unix_socket")
_URL_TYPES = ("http", "https", "tcp")  #: of Connections that are a URL

#: What a Connection's extra may say to libpq; the rest is for Airflow's own hooks.
_LIBPQ_EXTRAS = frozenset(
    {"channel_binding", "connect_timeout", "krbsrvname", "options", "passfile", "require_auth", "service", "sslcert"}
    | {"sslcrl", "sslkey", "sslmode", "sslnegotiation", "sslrootcert", "target_session_attrs"}
)


class AirflowConnections(Mapping[str, str]):
    """{connection id: DSN}: each is looked up when it is asked for. Raises what `login` raises."""

    def __getitem__(self, conn_id: str) -> str:
        return login(conn_id)

    def __iter__(self) -> Iterator[str]:
        raise TypeError("Airflow's Connections can be looked up by id, not listed")

    def __len__(self) -> int:
        raise TypeError("Airflow's Connections can be looked up by id, not counted")


def login(conn_id: str) -> str:
    """The DSN of a Connection, a `Login` where a task that runs may outlive it: of databases and brokers, whose
    passwords are rotated, and where a provider's hook got it. Raises `NotConfigured`, `LoginUnavailable`."""

    def ask() -> Known:
        return _known(connection(conn_id))  # a worker keeps none: Airflow asks the secrets backend each time

    found = connection(conn_id)
    known = _known(found)
    return Login(known, ask) if known.life is not None or _plain_type(found) in _ROTATED else known.dsn


def _known(found: Connection) -> Known:
    told = _plainly(found)
    place = (told.conn_type, told.host, told.port, told.schema, *map(told.extra_dejson.get, _PLACES))
    if asks_for_token(told):
        return Known(dsn_of(with_token(told)), place, TOKEN_SECONDS)
    if asks_for_keys(told):
        return Known(dsn_of(with_keys(told)), place, TOKEN_SECONDS)
    return Known(dsn_of(told), place)


def connection(conn_id: str) -> Connection:
    """Airflow's Connection by id; Airflow masks its password in every log. Raises `NotConfigured`."""
    try:
        found: Connection = Connection.get(conn_id)
    except AirflowNotFoundException as error:
        raise NotConfigured(
            f"Airflow has no Connection {conn_id!r}: define it under Admin > Connections, by `airflow connections add` "
            f"or as AIRFLOW_CONN_{conn_id.upper()}"
        ) from error
    _require_readable(found)
    return found


def _require_readable(found: Connection) -> None:
    """Raise `NotConfigured` for an extra that Airflow's database would refuse; a variable and a secrets backend may
    hold any, of which Airflow passes over what it can't read, and with it what that says of TLS."""
    try:
        readable = not found.extra or isinstance(json.loads(found.extra), dict)
    except ValueError:
        readable = False
    if not readable:
        raise NotConfigured(
            f"Connection {found.conn_id!r}: its extra is no JSON object (it isn't shown, it may hold a secret); "
            'expected one such as {"sslmode": "verify-full"}, with double quotes'
        )


def dsn_of(found: Connection) -> str:
    """A libpq connection string for a Postgres Connection, a URL for a web or TCP one, else Airflow's own URI."""
    found = without_extras(_plainly(found))
    if found.conn_type in _URL_TYPES:
        return _url_of(found)
    if found.conn_type != "postgres":
        return str(found.get_uri())
    parts = {
        "host": found.host,
        "port": found.port,
        "dbname": found.schema,
        "user": found.login,
        "password": found.password,
        **{name: value for name, value in found.extra_dejson.items() if name in _LIBPQ_EXTRAS},
    }
    return " ".join(f"{name}={_quoted(str(value))}" for name, value in parts.items() if value not in (None, ""))


def staging_uri() -> str:
    """LOCKSTEP_STAGING, or else what the Connection `lockstep_staging` says. Raises `NotConfigured`."""
    if uri := os.environ.get(STAGING_VARIABLE):
        return uri
    return staging_of(connection(STAGING))


def staging_of(found: Connection) -> str:
    """The staging URI that a Connection names. Raises `NotConfigured`."""
    uri = found.extra_dejson.get("uri") or found.host
    if not uri:
        raise NotConfigured(
            f"Connection {found.conn_id!r} names no place: put the staging URI (s3://…, /…) into its host"
        )
    return str(uri)


def _plain_type(found: Connection) -> str | None:
    return _OWN_TYPES.get(str(found.conn_type)) or _SAME_TYPES.get(str(found.conn_type), found.conn_type)


def _plainly(found: Connection) -> Connection:
    """The same as the type that it is a form of, without the fields of the form that were left empty."""
    conn_type = _plain_type(found)
    if conn_type == found.conn_type:
        return found
    extra = {name: value for name, value in found.extra_dejson.items() if value not in (None, "")}
    return changed(found, conn_type=conn_type, extra=json.dumps(extra) if extra else None)


def _url_of(found: Connection) -> str:
    """As its fields say it: the path stands in the schema, or behind the host, which may be a URL without login.

    Airflow's own URI has every slash of a path percent-encoded, and the extra, which is for hooks, for its query.
    """
    schema, host = found.schema or "", found.host or ""
    scheme, _, place = host.rpartition("://")
    scheme = scheme or (schema if schema in _URL_TYPES else str(found.conn_type))
    place, _, path = place.partition("/")
    path = path or ("" if schema in _URL_TYPES else schema.lstrip("/"))
    login = f"{quote(found.login or '', safe='')}:{quote(found.password or '', safe='')}@"
    place = f"[{place}]" if place.count(":") > 1 and not place.startswith("[") else place
    port = f":{found.port}" if found.port else ""
    return f"{scheme}://{'' if login == ':@' else login}{place}{port}/{path}"


def _quoted(value: str) -> str:
    """A value of a libpq connection string; backslash escapes, as its manual says."""
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
