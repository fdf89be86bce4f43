"""The installed distribution: its name and version, the extra that brings a missing package, and lazy imports."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from lockstep.errors import InvalidPipeline

DISTRIBUTION = "airflow-lockstep"


def _installed() -> str:
    """The version in the metadata of the installed package: pyproject.toml is the only place that states it."""
    try:
        return version(DISTRIBUTION)
    except PackageNotFoundError:  # a zip on a Spark driver, or a folder on the path
        return "unknown: not installed as a package"


__version__ = _installed()

_EXTRAS = {
    "airflow": "airflow",
    "confluent_kafka": "kafka",
    "deltalake": "delta",
    "duckdb": "duckdb",
    "fastavro": "avro",
    "grpc": "spark",
    "hdfs_native": "hdfs",
    "httpx": "http",
    "obstore": "s3",
    "pandas": "spark",
    "openlineage": "openlineage",
    "prometheus_client": "metrics",
    "pyiceberg": "iceberg",
    "pymysql": "mariadb",
    "pyspark": "spark",
}


class PackageMissing(InvalidPipeline, ImportError):
    """Also an ImportError, so that callers that import optional packages can catch it as such."""


class PackageTooOld(InvalidPipeline, ImportError):
    """Also an ImportError: the installed version lacks the name."""


@contextmanager
def naming_extra(who: str) -> Iterator[None]:
    """Say which extra to install where an import fails. Raises `PackageMissing`; any other error is left as it is."""
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in _EXTRAS:
            raise
        raise PackageMissing(
            f"{who} needs {package}: pip install '{DISTRIBUTION}[{_EXTRAS[package]}]'", name=package
        ) from error


def import_lazily(module: str, homes: Mapping[str, str], name: str) -> Any:
    """Import `name` from its module in `homes`: the `__getattr__` of a package with lazy imports."""
    if name not in homes:
        raise AttributeError(f"module {module!r} has no attribute {name!r}")
    with naming_extra(name):
        return getattr(importlib.import_module(homes[name]), name)
