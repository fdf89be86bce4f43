"""What the roles need from Airflow's Connections, resolved when asked for and never while a DAG file is parsed."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from urllib.parse import quote

from airflow.sdk import Connection

from lockstep.airflow import _tokens as tokens
from lockstep.airflow._airflow import AirflowNotFoundException
from lockstep.connections.login import Known, Login
from lockstep.errors import NotConfigured

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
    if tokens.asks_for_token(told):
        return Known(dsn_of(tokens.with_token(told)), place, tokens.SECONDS)
    if tokens.asks_for_keys(told):
        return Known(dsn_of(tokens.with_keys(told)), place, tokens.SECONDS)
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
    found = tokens.without_extras(_plainly(found))
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
    return tokens.changed(found, conn_type=conn_type, extra=json.dumps(extra) if extra else None)


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
