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

TOKEN_SECONDS = 60.0  #: for which a token is used; it is valid for minutes

#: {type of Connection: module and name of its hook, and the package that contains it}
_HOOKS = {
    "postgres": ("airflow.providers.postgres.hooks.postgres", "PostgresHook", "apache-airflow-providers-postgres"),
    "mysql": ("airflow.providers.mysql.hooks.mysql", "MySqlHook", "apache-airflow-providers-mysql"),
}
_AMAZON = ("airflow.providers.amazon.aws.hooks.base_aws", "apache-airflow-providers-amazon")
_AZURE = ("airflow.providers.microsoft.azure.hooks.base_azure", "apache-airflow-providers-microsoft-azure")
#: keys of a Connection's extra that only these hooks use
EXTRAS = frozenset(
    {"iam", "aws_conn_id", "azure_conn_id", "redshift", "redshift-serverless", "cluster-identifier", "workgroup-name"}
)


#: keys of an aws Connection's extra that say how to get credentials
_ROLES = ("role_arn", "profile_name")
#: keys of an aws Connection's extra that say where the store is
_STORE = ("region_name", "endpoint_url")
LEDGER = "lockstep_ledger"  #: id of the Connection to the ledger's database
STAGING = "lockstep_staging"  #: id of the Connection whose host, or extra `uri`, is the staging URI
STAGING_VARIABLE = "LOCKSTEP_STAGING"
#: {our type of Connection (`provider.py`): the provider's type that it is a form of}
_OWN_TYPES = {
    "lockstep_ledger": "postgres",
    "lockstep_kafka": "kafka",
    "lockstep_mariadb": "mysql",
    "lockstep_s3": "aws",
}
_SAME_TYPES = {"postgresql": "postgres", "mariadb": "mysql"}
#: types of Connections that are read again if the server refuses their login
_ROTATED = frozenset({"postgres", "mysql", "kafka"})
#: keys of an extra that say where a Connection leads, not with which login
_LOCATION_KEYS = ("bootstrap.servers", "endpoint_url", "service", "target_session_attrs", "unix_socket")
_URL_TYPES = ("http", "https", "tcp")  #: types of Connections that are a URL
#: keys of a Connection's extra for libpq; others are for Airflow's hooks
_LIBPQ_EXTRAS = frozenset(
    {"channel_binding", "connect_timeout", "krbsrvname", "options", "passfile", "require_auth", "service", "sslcert"}
    | {"sslcrl", "sslkey", "sslmode", "sslnegotiation", "sslrootcert", "target_session_attrs"}
)


def asks_for_keys(conn: Connection) -> bool:
    """Return whether an aws Connection names a role or a profile, or has no keys, so that its hook uses the
    machine's."""
    extra = conn.extra_dejson
    has_keys = conn.login or extra.get("aws_access_key_id")
    return conn.conn_type == "aws" and (not has_keys or any(extra.get(name) for name in _ROLES))


def with_keys(conn: Connection) -> Connection:
    """The Connection with the keys that its provider's hook returns, valid for minutes, and of the extra only what
    says where the store is.

    Raises `NotConfigured` if the provider isn't installed, `LoginUnavailable` if it returns no keys.
    """
    extra = conn.extra_dejson
    hook = _provided(*_AMAZON, conn, "keys of a role").AwsBaseHook
    try:
        keys = hook(conn.conn_id, client_type="s3").get_credentials(extra.get("region_name"))
    except Exception as error:  # Amazon's client may raise anything
        raise _unavailable(conn, "no keys could be obtained", error) from None
    from airflow.sdk.log import mask_secret

    for secret in filter(None, (keys.secret_key, keys.token)):
        mask_secret(secret)
    store_extra = {name: extra[name] for name in _STORE if extra.get(name)}
    store_extra |= {"aws_session_token": keys.token} if keys.token else {}
    return changed(
        conn, login=keys.access_key, password=keys.secret_key, extra=json.dumps(store_extra) if store_extra else None
    )


def asks_for_token(conn: Connection) -> bool:
    """Return whether the Connection asks for a token: by `iam`, or by `azure_conn_id` without a password, as its
    hook reads them."""
    if conn.conn_type not in _HOOKS:
        return False
    extra = conn.extra_dejson
    by_iam = str(extra.get("iam") or "").lower() not in ("", "false", "0", "no")
    return by_iam or bool(extra.get("azure_conn_id") and not conn.password)


def with_token(conn: Connection) -> Connection:
    """The Connection with a token as its password, and with the login and the port that belong to it.

    Raises `NotConfigured` if a provider isn't installed, `LoginUnavailable` if it returns no token.
    """
    module, name, package = _HOOKS[str(conn.conn_type)]
    azure = bool(conn.extra_dejson.get("azure_conn_id"))
    if azure and conn.conn_type != "postgres":
        raise NotConfigured(f"Connection {conn.conn_id!r} has azure_conn_id, which only Postgres supports")
    hook = getattr(_provided(module, package, conn), name)
    _provided(*(_AZURE if azure else _AMAZON), conn)
    try:
        credentials = hook(**{hook.conn_name_attr: conn.conn_id}).get_iam_token(conn)
    except Exception as error:  # a cloud's client may raise anything
        raise _unavailable(conn, "no token could be obtained", error) from None
    from airflow.sdk.log import mask_secret

    login, token, port = credentials if len(credentials) == 3 else (conn.login, *credentials)
    mask_secret(token)
    return changed(conn, login=login, password=token, port=port)


def without_extras(conn: Connection) -> Connection:
    """The Connection without those keys of its extra that are for hooks that get tokens."""
    extra = conn.extra_dejson
    if conn.conn_type not in _HOOKS or not EXTRAS & extra.keys():
        return conn
    rest = {name: value for name, value in extra.items() if name not in EXTRAS}
    return changed(conn, extra=json.dumps(rest) if rest else None)


def changed(conn: Connection, **fields: Any) -> Connection:
    """A copy of the Connection with other values of these fields."""
    names = ("conn_id", "conn_type", "host", "schema", "login", "password", "port", "extra")
    return Connection(**{**{name: getattr(conn, name) for name in names}, **fields})


def _provided(module: str, package: str, conn: Connection, what: str = "a token in place of a password") -> Any:
    try:
        return import_module(module)
    except ImportError as error:
        raise NotConfigured(
            f"Connection {conn.conn_id!r} asks for {what}, and the package that gets it is "
            f"missing ({error.name or module}): pip install {package}"
        ) from error


def _unavailable(conn: Connection, what: str, error: Exception) -> LoginUnavailable:
    reason = (str(error).strip().splitlines() or [""])[0]
    text = f"Connection {conn.conn_id!r}: {what}: {type(error).__name__}: {reason}"
    return LoginUnavailable(text.replace(conn.password, "***") if conn.password else text)


class AirflowConnections(Mapping[str, str]):
    """{connection id: DSN}, each looked up on access. Raises what `login` raises."""

    def __getitem__(self, conn_id: str) -> str:
        return login(conn_id)

    def __iter__(self) -> Iterator[str]:
        raise TypeError("Airflow's Connections can be looked up by id, not listed")

    def __len__(self) -> int:
        raise TypeError("Airflow's Connections can be looked up by id, not counted")


def login(conn_id: str) -> str:
    """The DSN of a Connection. It is a `Login`, which can be renewed, if a running task may outlive it: for
    databases and brokers, whose passwords are rotated, and for tokens and keys of a provider's hook. Raises
    `NotConfigured`, `LoginUnavailable`."""

    def ask() -> Known:
        return _resolve(connection(conn_id))  # not cached: Airflow asks the secrets backend each time

    conn = connection(conn_id)
    resolved = _resolve(conn)
    return Login(resolved, ask) if resolved.life is not None or _plain_type(conn) in _ROTATED else resolved.dsn


def _resolve(conn: Connection) -> Known:
    plain = _as_provider_type(conn)
    place = (plain.conn_type, plain.host, plain.port, plain.schema, *map(plain.extra_dejson.get, _LOCATION_KEYS))
    if asks_for_token(plain):
        return Known(dsn_of(with_token(plain)), place, TOKEN_SECONDS)
    if asks_for_keys(plain):
        return Known(dsn_of(with_keys(plain)), place, TOKEN_SECONDS)
    return Known(dsn_of(plain), place)


def connection(conn_id: str) -> Connection:
    """Airflow's Connection by id; Airflow masks its password in every log. Raises `NotConfigured`."""
    try:
        conn: Connection = Connection.get(conn_id)
    except AirflowNotFoundException as error:
        raise NotConfigured(
            f"Airflow has no Connection {conn_id!r}: define it under Admin > Connections, by `airflow connections add` "
            f"or as AIRFLOW_CONN_{conn_id.upper()}"
        ) from error
    _require_readable(conn)
    return conn


def _require_readable(conn: Connection) -> None:
    """Raise `NotConfigured` for an extra that isn't a JSON object. Airflow's database refuses one, but a variable or
    a secrets backend may contain it; Airflow ignores it there, and with it any TLS settings."""
    try:
        readable = not conn.extra or isinstance(json.loads(conn.extra), dict)
    except ValueError:
        readable = False
    if not readable:
        raise NotConfigured(
            f"Connection {conn.conn_id!r}: its extra isn't a JSON object (not shown, it may contain a secret); "
            'expected one such as {"sslmode": "verify-full"}, with double quotes'
        )


def dsn_of(conn: Connection) -> str:
    """A libpq connection string for a Postgres Connection, a URL for a web or TCP one, else Airflow's own URI."""
    conn = without_extras(_as_provider_type(conn))
    if conn.conn_type in _URL_TYPES:
        return _url_of(conn)
    if conn.conn_type != "postgres":
        return str(conn.get_uri())
    parts = {
        "host": conn.host,
        "port": conn.port,
        "dbname": conn.schema,
        "user": conn.login,
        "password": conn.password,
        **{name: value for name, value in conn.extra_dejson.items() if name in _LIBPQ_EXTRAS},
    }
    escaped = {
        name: str(value).replace("\\", "\\\\").replace("'", "\\'")
        for name, value in parts.items()
        if value not in (None, "")
    }
    return " ".join(f"{name}='{value}'" for name, value in escaped.items())


def staging_uri() -> str:
    """LOCKSTEP_STAGING, or else the URI in the Connection `lockstep_staging`. Raises `NotConfigured`."""
    if uri := os.environ.get(STAGING_VARIABLE):
        return uri
    return staging_of(connection(STAGING))


def staging_of(conn: Connection) -> str:
    """The staging URI in a Connection. Raises `NotConfigured`."""
    uri = conn.extra_dejson.get("uri") or conn.host
    if not uri:
        raise NotConfigured(f"Connection {conn.conn_id!r} has no staging URI: put it (s3://…, /…) into its host")
    return str(uri)


def _plain_type(conn: Connection) -> str | None:
    return _OWN_TYPES.get(str(conn.conn_type)) or _SAME_TYPES.get(str(conn.conn_type), conn.conn_type)


def _as_provider_type(conn: Connection) -> Connection:
    """The Connection as the provider's type that its own type is a form of, without the form's empty fields."""
    conn_type = _plain_type(conn)
    if conn_type == conn.conn_type:
        return conn
    extra = {name: value for name, value in conn.extra_dejson.items() if value not in (None, "")}
    return changed(conn, conn_type=conn_type, extra=json.dumps(extra) if extra else None)


def _url_of(conn: Connection) -> str:
    """The URL in a Connection's fields: the path is in the schema, or after the host, which may be a URL without
    login. Airflow's own URI percent-encodes the slashes of a path and uses the extra, which is for hooks, as the
    query."""
    schema, host = conn.schema or "", conn.host or ""
    scheme, _, place = host.rpartition("://")
    scheme = scheme or (schema if schema in _URL_TYPES else str(conn.conn_type))
    place, _, path = place.partition("/")
    path = path or ("" if schema in _URL_TYPES else schema.lstrip("/"))
    login = f"{quote(conn.login or '', safe='')}:{quote(conn.password or '', safe='')}@"
    place = f"[{place}]" if place.count(":") > 1 and not place.startswith("[") else place
    port = f":{conn.port}" if conn.port else ""
    return f"{scheme}://{'' if login == ':@' else login}{place}{port}/{path}"
