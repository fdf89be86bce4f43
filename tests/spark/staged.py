"""Staging one epoch of a test's pipeline, and looking at what it left."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq

from lockstep.audits.audit import quarantining
from lockstep.compute.stage import stage_epoch
from lockstep.epoch import Interval, SourceRange
from lockstep.pipeline import Pipeline
from lockstep.sources import FileSource, SourceContext
from lockstep.wal.request import StageRequest, StageResult

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DAY = Interval(datetime(2013, 1, 2, tzinfo=UTC), datetime(2013, 1, 3, tzinfo=UTC))
_tokens = itertools.count(1)


@dataclass(frozen=True)
class Staged:
    folder: Path
    result: StageResult

    def rows(self, output: str = "rows") -> list[dict[str, Any]]:
        return rows_in(self.folder / output)


def rows_in(folder: Path) -> list[dict[str, Any]]:
    return [row for file in sorted(folder.glob("*.parquet")) for row in pq.read_table(file).to_pylist()]


def plan(pipeline: Pipeline, interval: Interval = DAY) -> dict[str, SourceRange]:
    contexts = {name: SourceContext(pipeline.name, name, lambda paths: set()) for name in pipeline.sources}
    opened = {name: source.open(contexts[name]) for name, source in pipeline.sources.items()}
    return {name: SourceRange(None, source.latest(None, interval)) for name, source in opened.items()}


def request_of(
    folder: Path, pipeline: Pipeline, ranges: Mapping[str, SourceRange] | None = None, reference: str = ""
) -> StageRequest:
    token = next(_tokens)
    path = folder / "staging" / str(token)
    path.mkdir(parents=True)
    found = ranges if ranges is not None else plan(pipeline)
    outputs = pipeline.outputs
    away = quarantining(pipeline.audit_specs())
    return StageRequest(reference, 1, token, path.as_uri(), outputs, found, datetime.now(UTC), DAY, quarantine=away)


def stage(
    spark: SparkSession,
    folder: Path,
    pipeline: Pipeline,
    ranges: Mapping[str, SourceRange] | None = None,
    connections: Mapping[str, str] = MappingProxyType({}),
) -> Staged:
    request = request_of(folder, pipeline, ranges)
    return Staged(folder / "staging" / str(request.token), stage_epoch(spark, pipeline, request, connections))


def csv(folder: Path, text: str, **arguments: Any) -> FileSource:
    """A source of one CSV file with this text."""
    (folder / "2013-01-02.csv").write_bytes(text.encode())
    schema = arguments.pop("schema", "id BIGINT, name STRING, at TIMESTAMP")
    return FileSource(f"{folder}/{{interval_start:%Y-%m-%d}}.csv", schema=schema, **arguments)
