"""URIs of MariaDB connections, Airflow's included, and the driver's arguments in them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from lockstep.connections.login import given
from lockstep.connections.names import Dataset, Relation
from lockstep.errors import InvalidPipeline

_SCHEMES = ("mysql", "mariadb", "mysql+pymysql")
_TLS = ("ssl_ca", "ssl_cert", "ssl_key", "ssl_key_password", "ssl_verify_cert", "ssl_verify_identity", "ssl_disabled")
_PASSED = frozenset((*_TLS, "unix_socket", "read_default_file", "connect_timeout"))
_IGNORED = frozenset({"charset", "cursor", "local_infile", "client"})  #: for Airflow's own hook
_TRUE = ("true", "1", "yes", "on")
_BOOLEANS = ("ssl_verify_cert", "ssl_verify_identity", "ssl_disabled")
_SECRETS = ("password", "ssl_key_password")


def parse_dsn(connection_id: str, dsn: str) -> dict[str, Any]:
    """Arguments of the driver's connect. Raises `InvalidPipeline`, which never quotes the DSN.

    `mysql://user:password@host:port/database?ssl_ca=…`; with `ssl_ca` the certificate and the host's name are checked.
    """
    try:
        parts = urlsplit(dsn)
        arguments: dict[str, Any] = {"host": parts.hostname or "127.0.0.1", "port": parts.port or 3306}
    except ValueError:
        raise _malformed(connection_id) from None
    # an @ behind the host: an unescaped slash in the password has made the rest of it a database
    if parts.scheme not in _SCHEMES or "@" in parts.path or any(mark in (parts.hostname or "") for mark in "@?#"):
        raise _malformed(connection_id)
    arguments["database"] = _database(connection_id, parts)
    if parts.username:
        arguments["user"] = unquote(parts.username)
    if parts.password:
        arguments["password"] = unquote(parts.password)
    for name, value in _options(connection_id, parts).items():
        if name in _PASSED:
            arguments[name] = _typed(name, value)
        elif name not in _IGNORED:
            raise InvalidPipeline(
                f"connection {connection_id}: its URI has the option {name!r}, which is none of "
                f"{', '.join(sorted(_PASSED))}: a TLS option that is misspelled would protect nothing"
            )
    if arguments.get("ssl_ca"):
        arguments.setdefault("ssl_verify_cert", True)
        arguments.setdefault("ssl_verify_identity", True)
    return arguments


def _database(connection_id: str, parts: SplitResult) -> str:
    database = unquote(parts.path.lstrip("/"))
    if not database:
        raise InvalidPipeline(f"connection {connection_id}: its URI names no database: mysql://user@host:port/database")
    return database


def _options(connection_id: str, parts: SplitResult) -> dict[str, str]:
    """The query's options, with those that Airflow packs into `__extra__` and `ssl`."""
    options = dict(parse_qsl(parts.query))
    try:
        options |= json.loads(options.pop("__extra__", "{}"))
        packed: Any = options.pop("ssl", None) or {}
        tls: dict[str, str] = json.loads(packed) if isinstance(packed, str) else packed
        return {**options, **{f"ssl_{name}": value for name, value in tls.items()}}
    except (ValueError, AttributeError, TypeError):
        raise InvalidPipeline(f"connection {connection_id}: the extra of its URI is not JSON") from None


def _typed(name: str, value: Any) -> Any:
    if name == "connect_timeout":
        return float(value)
    return str(value).lower() in _TRUE if name in _BOOLEANS else value


def _malformed(connection_id: str) -> InvalidPipeline:
    return InvalidPipeline(
        f"connection {connection_id} is not a URI of a MariaDB database: give mysql://user@host:port/database with "
        "special characters of the password percent-encoded"
    )


def scrub_login(text: str, connection_id: str, dsn: str) -> str:
    """`text` without a secret of the DSN, or of an earlier one of the same `Login`."""
    for login in given(dsn):
        text = scrub(text.replace(login, "***"), parse_dsn(connection_id, login))
    return text


def dataset_of(connection_id: str, dsn: str, table: str) -> Dataset:
    """The name of a table, "database.table" or one of the connection's, in lineage. Raises `InvalidPipeline`."""
    parts = parse_dsn(connection_id, dsn)
    return Dataset.on("mysql", parts["host"], parts["port"], str(Relation.parse(table, parts["database"])))


def scrub(text: str, arguments: Mapping[str, Any]) -> str:
    """`text` without a secret of the driver's arguments."""
    for secret in filter(None, map(arguments.get, _SECRETS)):
        text = text.replace(str(secret), "***")
    return text
