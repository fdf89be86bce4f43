"""Catalogs of Iceberg, in a PostgreSQL database or behind a REST server, and durable file I/O for their tables.

pyiceberg never calls fsync, but metadata that a catalog refers to must not be lost.
"""

from __future__ import annotations

import io
import os
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit, urlunsplit
from uuid import uuid4

import requests
from pyarrow.fs import _MockFileSystem
from pyiceberg.catalog import Catalog, MetastoreCatalog
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import (
    AuthorizationExpiredError,
    BadRequestError,
    ForbiddenError,
    NoSuchNamespaceError,
    NoSuchTableError,
    OAuthError,
    RESTError,
    UnauthorizedError,
)
from pyiceberg.io import FileIO, OutputStream
from pyiceberg.io.pyarrow import PyArrowFile, PyArrowFileIO
from pyiceberg.typedef import EMPTY_DICT, Properties
from requests.adapters import HTTPAdapter
from sqlalchemy import create_engine
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from lockstep.connections.postgres.connection import PostgresDatabase
from lockstep.errors import (
    SINK_ERRORS,
    InvalidPipeline,
    LockstepError,
    PreflightRefused,
    SinkUnavailable,
    TargetChanged,
)
from lockstep.sinks.durable_file import sync_folder

LOCAL = "file"
IMPLEMENTATION = "py-io-impl"  #: property by which pyiceberg loads any class that a table's metadata names
_BUFFER = 1 << 20  # bytes
#: Settings that pyarrow's S3 doesn't read from the environment by itself; the last variable wins
_ENVIRONMENT = {
    "s3.endpoint": ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3"),
    "s3.region": ("AWS_DEFAULT_REGION", "AWS_REGION"),
}


class DurableFileIO(PyArrowFileIO):
    """Makes each closed local file and its name durable. Object stores do so by themselves.

    Takes S3 settings from the environment like Amazon's other clients, also where pyiceberg creates it for a new table.
    """

    def __init__(self, properties: Properties = EMPTY_DICT) -> None:
        settings = {
            name: os.environ[variable]
            for name, variables in _ENVIRONMENT.items()
            for variable in variables
            if variable in os.environ
        }
        super().__init__({**settings, **properties})

    def new_output(self, location: str) -> PyArrowFile:
        scheme, netloc, path = self.parse_location(location, self.properties)
        if scheme != LOCAL:
            return super().new_output(location)
        return _DurableFile(location, path, self.fs_by_scheme(scheme, netloc), _BUFFER)


class RehearsalIO(DurableFileIO):
    """Reads existing files; writes to memory."""

    def __init__(self, properties: Properties) -> None:
        super().__init__(properties)
        self._memory, self._written = _MockFileSystem(), dict[str, PyArrowFile]()

    def new_input(self, location: str) -> PyArrowFile:
        return self._written.get(location) or super().new_input(location)

    def new_output(self, location: str) -> PyArrowFile:
        return self._written.setdefault(location, PyArrowFile(location, str(len(self._written)), self._memory))


class _DurableFile(PyArrowFile):
    def create(self, overwrite: bool = False) -> OutputStream:
        _make_folder(Path(self._path).parent)
        return _SyncedFile(Path(self._path), overwrite)


class _SyncedFile(io.BufferedWriter):
    """A new file. With `overwrite` it replaces an existing one atomically when it is closed: another process may have
    committed that name."""

    def __init__(self, path: Path, overwrite: bool) -> None:
        self._path, self._written = path, path.with_name(f".{path.name}.{uuid4().hex}") if overwrite else path
        super().__init__(io.FileIO(self._written, "xb"), _BUFFER)

    def close(self) -> None:
        if not self.closed:
            self.flush()
            os.fsync(self.fileno())
            if self._written != self._path:
                self._written.replace(self._path)
            sync_folder(self._path.parent)
        super().close()


def _make_folder(folder: Path) -> None:
    if folder.is_dir():
        return
    _make_folder(folder.parent)
    folder.mkdir(exist_ok=True)
    sync_folder(folder.parent)


def durable_io(properties: Properties = EMPTY_DICT) -> DurableFileIO:
    """File I/O for a table with these properties, whichever class they name."""
    return DurableFileIO({name: value for name, value in properties.items() if name != IMPLEMENTATION})


_DURABLE = f"{DurableFileIO.__module__}.{DurableFileIO.__name__}"
_CONNECT, _READ = 10, 60  # timeouts of a REST server, in seconds
_DENIED = (UnauthorizedError, ForbiddenError, AuthorizationExpiredError, OAuthError)


class CatalogLink(ABC):
    """A connected catalog, and the translation of its errors."""

    catalog: Catalog
    last_failure: str | None = None  #: reason of the last commit with an unknown outcome

    def __init__(self, label: str, connection: str) -> None:
        self.label, self.connection = label, connection

    @contextmanager
    def naming(self, doing: str) -> Iterator[None]:
        """Translate errors into Lockstep's. Conflicts pass: the caller handles them."""
        try:
            yield
        except NoSuchTableError as error:
            raise TargetChanged(f"{self.label}: {doing}: the catalog has lost the table") from error
        except NoSuchNamespaceError as error:
            raise PreflightRefused(f"{self.label}: {doing}: the catalog has no such namespace") from error
        except OSError as error:
            raise SinkUnavailable(f"{self.label}: {doing}: {_line(error)}") from error
        except (SQLAlchemyError, RESTError) as error:
            raise self._named(error, doing) from None  # its chain may contain the connection's URL

    @abstractmethod
    def _named(self, error: Exception, doing: str) -> LockstepError:
        """Translate an error of a server or its driver."""

    def close(self) -> None:
        """Close every connection."""
        self.catalog.close()


class _PostgresCatalog(SqlCatalog):
    """pyiceberg's, with connections that make acknowledged commits durable."""

    def __init__(self, name: str, database: PostgresDatabase, **properties: str) -> None:
        MetastoreCatalog.__init__(self, name, **properties)
        self._database = database
        self.engine = create_engine("postgresql+psycopg2://", creator=self._connect, pool_size=1, pool_pre_ping=True)
        self._init_catalog()

    def _connect(self) -> Any:
        connection = self._database.connect(f"lockstep {self._database.where}")
        try:
            with connection.cursor() as cursor:
                self._database.guard(cursor, local=False)
            connection.commit()
        except BaseException:
            connection.close()
            raise
        return connection

    def _load_file_io(self, properties: Properties = EMPTY_DICT, location: str | None = None) -> FileIO:
        return durable_io({**self.properties, **properties})


class PostgresLink(CatalogLink):
    """Catalog in the tables `iceberg_tables` and `iceberg_namespace_properties` of a database, as in Iceberg's JDBC
    catalog."""

    def __init__(self, label: str, connection: str, dsn: str, properties: Mapping[str, str]) -> None:
        super().__init__(label, connection)
        self._database = PostgresDatabase(label, connection, dsn, 10.0, SINK_ERRORS)
        with self.naming("looking for the catalog's tables"):
            self.catalog = _PostgresCatalog(connection, self._database, **properties)

    def _named(self, error: Exception, doing: str) -> LockstepError:
        if isinstance(error, DBAPIError) and error.orig is not None:
            return self._database.named(error.orig, doing)  # type: ignore[arg-type]  # psycopg2's: no other is used
        return SinkUnavailable(f"{self.label}: {doing}: {type(error).__name__}")


class _ImpatientAdapter(HTTPAdapter):
    """Sends every request with a timeout."""

    def send(self, request: Any, **options: Any) -> Any:  # type: ignore[override]
        return super().send(request, **{**options, "timeout": options.get("timeout") or (_CONNECT, _READ)})


class _ImpatientRestCatalog(RestCatalog):
    def _create_session(self) -> requests.Session:
        session = super()._create_session()
        for scheme in ("http://", "https://"):
            session.mount(scheme, _ImpatientAdapter())
        return session

    def _load_file_io(self, properties: Properties = EMPTY_DICT, location: str | None = None) -> FileIO:
        return durable_io({**self.properties, **properties})


class RestLink(CatalogLink):
    """Server of Iceberg's REST protocol. A login in the URL is an OAuth2 client's; the query gives further properties
    for pyiceberg, such as `scope` or `prefix`."""

    def __init__(self, label: str, connection: str, url: str, properties: Mapping[str, str]) -> None:
        super().__init__(label, connection)
        parts = urlsplit(url)
        options = dict(parse_qsl(parts.query))
        uri = urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path.rstrip("/"), "", ""))
        if parts.username:
            options["credential"] = ":".join(unquote(part) for part in (parts.username, parts.password) if part)
            options.setdefault("oauth2-server-uri", f"{uri}/v1/oauth/tokens")
        with self.naming("reading the catalog's configuration"):
            self.catalog = _ImpatientRestCatalog(connection, **{**options, **properties, "uri": uri})

    def _named(self, error: Exception, doing: str) -> LockstepError:
        message = f"{self.label}: {doing}: {type(error).__name__} of the catalog: {_line(error)}"
        if isinstance(error, _DENIED):
            return PreflightRefused(f"{message}; grant the login of connection {self.connection} that permission")
        return PreflightRefused(message) if isinstance(error, BadRequestError) else SinkUnavailable(message)


def connect_catalog(label: str, connection: str, dsn: str, warehouse: str | None) -> CatalogLink:
    """Connect to a catalog. `dsn`: postgresql://… or libpq's key=value, or the http(s):// URL of a REST server.

    Raises `InvalidPipeline`, `SinkUnavailable`, `PreflightRefused`.
    """
    properties = {IMPLEMENTATION: _DURABLE, **({"warehouse": warehouse} if warehouse else {})}
    scheme = dsn.partition("://")[0].lower() if "://" in dsn else ""
    if scheme in ("http", "https"):
        return RestLink(label, connection, dsn, properties)
    if scheme in ("postgres", "postgresql") or (not scheme and "=" in dsn):
        return PostgresLink(label, connection, dsn, properties)
    raise InvalidPipeline(
        f"{label}: connection {connection} is neither a PostgreSQL database nor the http(s) URL of a REST catalog"
    )


def _line(error: Exception) -> str:
    return " ".join(str(error).split())
