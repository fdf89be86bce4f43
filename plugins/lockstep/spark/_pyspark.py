"""Differences between the supported versions of pyspark; only this module depends on them.

Types are those of the version that requirements.txt locks. 4.2 brought read limits of streaming data sources, and a
client of Spark Connect that counts its pending releases. Before, Arrow had timestamps in UTC by a flag, and a plan
could read an observed frame only once. Since 4.1 a driver learns of an observed frame that its optimizer removed.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from concurrent.futures import wait
from contextlib import suppress
from functools import cache
from threading import Barrier, Lock
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa
import pyspark
from pyspark.sql.datasource import DataSourceStreamReader
from pyspark.sql.datasource_internal import _SimpleStreamReaderWrapper
from pyspark.sql.pandas import types
from pyspark.sql.types import StructType

from lockstep.spark.versions import line_of

if TYPE_CHECKING:
    from pyspark.sql import Observation, SparkSession
    from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxBytes, ReadMaxFiles, ReadMaxRows

    HAS_READ_LIMITS: bool
else:
    try:
        from pyspark.sql.streaming.datasource import (
            ReadAllAvailable,
            ReadLimit,
            ReadMaxBytes,
            ReadMaxFiles,
            ReadMaxRows,
        )

        HAS_READ_LIMITS = True
    except ImportError:  # 4.0 and 4.1: only our own reader takes one, by its attributes
        from dataclasses import dataclass

        class ReadLimit:
            pass

        @dataclass
        class ReadAllAvailable(ReadLimit):
            pass

        @dataclass
        class ReadMaxRows(ReadLimit):
            max_rows: int

        @dataclass
        class ReadMaxFiles(ReadLimit):
            max_files: int

        @dataclass
        class ReadMaxBytes(ReadLimit):
            max_bytes: int

        HAS_READ_LIMITS = False

__all__ = [
    "ReadAllAvailable",
    "ReadLimit",
    "ReadMaxBytes",
    "ReadMaxFiles",
    "ReadMaxRows",
    "allow_twice_observed",
    "await_releases",
    "counted_in_driver",
    "default_limit_of",
    "end_of_simple",
    "is_simple",
    "release_checkpoints",
    "requests_of",
    "set_all",
    "to_arrow_schema",
]


_one_at_a_time = Lock()  #: for gathering a pool's threads: two gatherings would each hold some


def to_arrow_schema(schema: StructType) -> pa.Schema:
    """Spark's Arrow schema of `schema`, with timestamps in UTC."""
    if "timezone" in inspect.signature(types.to_arrow_schema).parameters:
        return types.to_arrow_schema(schema, timezone="UTC")
    return cast(Any, types).to_arrow_schema(schema)


def release_checkpoints(client: Any, relations: Iterable[str], seconds: float) -> None:
    """Release checkpoints at the server by their ids, waiting up to `seconds` for each."""
    with suppress(Exception):  # they go with the session otherwise
        for relation in relations:
            request = client._execute_plan_request_with_metadata()
            request.plan.command.remove_cached_remote_relation_command.relation.relation_id = relation
            for _ in client._stub.ExecutePlan(request, metadata=client._builder.metadata(), timeout=seconds):
                pass


def await_releases(client: Any, seconds: float) -> None:
    """Wait until a client of Spark Connect has sent, or begun to send, its releases of results to the server."""
    if hasattr(client, "_release_futures"):
        wait(set(client._release_futures), seconds)
        return
    from pyspark.sql.connect.client.reattach import ExecutePlanResponseReattachableIterator as Results

    pool: Any = cast(Any, Results)._get_or_create_release_thread_pool()
    with _one_at_a_time:
        all_here = Barrier(pool._max_workers)  # each of its threads has then done what it had begun
        meeting = [pool.submit(all_here.wait, seconds) for _ in range(all_here.parties)]
    wait(meeting, seconds)


@cache
def allow_twice_observed() -> None:
    """Let a client of Spark Connect before 4.2 run a plan that reads an observed frame twice, such as a self-join: its
    call that gathers observations fails on a name that occurs twice."""
    if HAS_READ_LIMITS:
        return
    from pyspark.sql.connect import plan

    def observations(self: Any) -> dict[str, Any]:
        children = (self._child, getattr(self, "right", None), getattr(self, "other", None))
        return {
            name: observation
            for child in children
            if child is not None
            for name, observation in child.observations.items()
        }

    for name in ("Join", "AsOfJoin", "LateralJoin", "SetOperation"):
        if kind := getattr(plan, name, None):
            kind.observations = property(observations)


def counted_in_driver(observation: Observation) -> dict[str, Any]:
    """The driver's metrics of a complete observation; empty if the optimizer removed its frame from the plan. Before
    4.1 such an observation is never complete."""
    if line_of(pyspark.__version__) >= (4, 1) and cast(Any, observation)._jo.getRow().schema() is None:
        return {}
    return dict(observation.get)


def requests_of(pb2: Any, *names: str) -> tuple[type[Any], ...]:
    """The request classes of Spark Connect's protocol among `names` that this version has."""
    return tuple(getattr(pb2, name) for name in names if hasattr(pb2, name))


def set_all(spark: SparkSession, settings: Mapping[str, str]) -> None:
    """Apply settings at a Spark Connect server, in one call where the client supports it."""
    conf = cast(Any, spark.conf)
    if hasattr(conf, "_set_all"):
        conf._set_all(dict(settings), silent=False)
        return
    for name, value in settings.items():
        conf.set(name, value)


def is_simple(reader: DataSourceStreamReader) -> bool:
    """True for a reader made of a `simpleStreamReader`, which finds the end of a range by reading it."""
    return isinstance(reader, _SimpleStreamReaderWrapper)


def end_of_simple(reader: DataSourceStreamReader, start: dict[str, Any]) -> dict[str, Any]:
    """The end of the range that starts at `start`; for readers that are `is_simple`."""
    if HAS_READ_LIMITS:
        return reader.latestOffset(start, ReadAllAvailable())
    return cast("dict[str, Any]", cast(Any, reader).simple_reader.read(start)[1])


def default_limit_of(reader: DataSourceStreamReader) -> ReadLimit:
    """The reader's default limit; no limit in versions without limits."""
    return reader.getDefaultReadLimit() if HAS_READ_LIMITS else ReadAllAvailable()
