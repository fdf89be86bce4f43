"""Connections from environment variables, by id: of the command line and Spark drivers; and what else a driver gets."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import ClassVar

from lockstep.errors import NotConfigured

#: LOCKSTEP_<…> that mean something else; so does every LOCKSTEP_PORT_… of the stack.
RESERVED = frozenset(
    {"AIRFLOW", "CRASH", "HOME", "KEEP", "LEDGER", "OUT", "SEED", "SEEDS", "SHOW_ROWS", "SPARK", "STACK", "STAGING"}
    | {"AUDIT_BYTES", "LOG_FORMAT", "SEAL_BYTES", "STATE_ROWS", "TESTING"}
)
_CONNECTION = "CONNECTION_"
#: What a Spark driver gets of the worker's environment: what Java, Python, Spark, clusters and stores go by. A worker's
#: has the Connections of ledger and sinks, and the key to Airflow's database.
_NAMES = frozenset(
    {"ALL_PROXY", "CLASSPATH", "CONDA_PREFIX", "CURL_CA_BUNDLE", "HOME", "HOSTNAME", "HTTPS_PROXY", "HTTP_PROXY"}
    | {"KUBECONFIG", "LANG", "LANGUAGE", "LOGNAME", "NO_PROXY", "PATH", "REQUESTS_CA_BUNDLE", "SHELL", "TEMP", "TMP"}
    | {"TMPDIR", "TZ", "USER", "VIRTUAL_ENV", "PGPASSFILE", "PGSERVICEFILE", "PGSYSCONFDIR", "_JAVA_OPTIONS"}
    | {f"LOCKSTEP_{name}" for name in RESERVED - {"AIRFLOW", "LEDGER", "SPARK"}}  # SPARK may hold a token
)
_PREFIXES = (
    *("AIRFLOW_CTX_", "ARROW_", "AWS_", "AZURE_", "CLOUDSDK_", "GCE_METADATA_", "GOOGLE_", "HADOOP_", "HDFS_", "HIVE_"),
    *("IDENTITY_", "JAVA_", "JDK_", "KRB5", "KUBERNETES_", "LC_", "LD_", "MALLOC_", "MKL_", "MSI_", "OMP_"),
    *("OPENBLAS_", "OPENLINEAGE_", "PGSSL", "PYARROW_", "PYSPARK_", "PYTHON", "SPARK_", "SSL_CERT_", "XDG_", "YARN_"),
)


def for_driver(environment: Mapping[str, str]) -> dict[str, str]:
    """The part of the worker's environment that a Spark driver and its Python workers get."""
    return {name: value for name, value in environment.items() if name.upper() in _NAMES or name.startswith(_PREFIXES)}


def variable_of(connection: str) -> str:
    """LOCKSTEP_WAREHOUSE for `warehouse`; LOCKSTEP_CONNECTION_STAGING for `staging`, whose short name is reserved."""
    name = re.sub(r"[^A-Z0-9_]", "_", connection.upper())
    is_reserved = name in RESERVED or name.startswith(("PORT_", _CONNECTION))
    return f"LOCKSTEP_{_CONNECTION if is_reserved else ''}{name}"


def variables_of(connections: Iterable[str]) -> dict[str, str]:
    """{variable: connection id}. Raises `NotConfigured` if two ids have one variable, and so one login."""
    ids: dict[str, str] = {}
    for connection in connections:
        first = ids.setdefault(variable_of(connection), connection)
        if first != connection:
            raise NotConfigured(
                f"connections {first!r} and {connection!r} are both read from {variable_of(connection)}: give one of "
                "them an id that differs in more than capitals and signs"
            )
    return ids


class EnvironmentConnections(Mapping[str, str]):
    """{connection id: DSN}. Raises `NotConfigured` naming a variable that is missing, or that has two ids so far."""

    _ids: ClassVar[dict[str, str]] = {}

    def __getitem__(self, connection: str) -> str:
        variable = variable_of(connection)
        variables_of((self._ids.setdefault(variable, connection), connection))
        value = os.environ.get(variable)
        if not value:
            raise NotConfigured(f"connection {connection!r}: set {variable} to its DSN (password through PGPASSFILE)")
        return value

    def __iter__(self) -> Iterator[str]:
        raise TypeError("environment connections can be looked up by id, not listed")

    def __len__(self) -> int:
        raise TypeError("environment connections can be looked up by id, not counted")
