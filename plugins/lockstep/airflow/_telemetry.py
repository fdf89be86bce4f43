"""What tasks report to other systems: metrics by Airflow's client, and datasets by its OpenLineage provider. Neither
can fail an epoch.

Metrics go to StatsD, Datadog or OpenTelemetry, as Airflow's section [metrics] says. A client without tags gets their
values as parts of the name, in the order of the tags, as in Airflow's own old names.

Lineage is collected while the task runs: the provider asks in another process, which has neither the ledger nor
Connections. A START event therefore has no datasets, as the epoch isn't known yet. A COMPLETE event of `begin` and
`stage` has the inputs with their frozen ranges, one of `publish` also what its sink shows, and every other one only the
epoch.
"""

from __future__ import annotations

import json
import logging
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from airflow.configuration import conf
from airflow.sdk import Context

from lockstep.airflow._airflow import Stats
from lockstep.connections.names import Dataset
from lockstep.epoch import Epoch, Json
from lockstep.errors import LockstepError
from lockstep.ledger.measures import GAUGES, measure
from lockstep.ledger.report import Report
from lockstep.protocol.runtime import Runtime
from lockstep.sources.base import planned_source

if TYPE_CHECKING:
    from airflow.providers.openlineage.extractors import OperatorLineage
    from openlineage.client.event_v2 import InputDataset, OutputDataset

_log = logging.getLogger(__name__)
_LONGEST = 4000  #: characters of a position in an event; the ledger has longer ones
_CLIENTS = ("statsd_on", "statsd_datadog_enabled", "otel_on")
_WITH_TAGS = ("statsd_datadog_enabled", "statsd_influxdb_enabled", "otel_on")

DURATION, FAILURES, ROWS = "lockstep.phase.duration", "lockstep.phase.failures", "lockstep.rows"


def metrics_enabled() -> bool:
    """Return whether Airflow's metrics are on."""
    return any(conf.getboolean("metrics", name, fallback=False) for name in _CLIENTS)


@contextmanager
def timed(pipeline: str, phase: str, sink: str | None, waits: tuple[type[Exception], ...]) -> Iterator[None]:
    """Send how long a phase took, or that it failed and by which class of error; nothing for an error in `waits`."""
    began, tags = time.monotonic(), {"pipeline": pipeline, "phase": phase, **({"sink": sink} if sink else {})}
    try:
        yield
    except waits:
        raise
    except Exception as error:
        _send(Stats.incr, FAILURES, 1, tags | {"error": type(error).__name__})
        raise
    _send(Stats.timing, DURATION, timedelta(seconds=time.monotonic() - began), tags)


def count_rows(pipeline: str, sink: str, rows: Mapping[str, int]) -> None:
    """Count the rows that a sink newly shows."""
    for output, number in rows.items():
        _send(Stats.incr, ROWS, number, {"pipeline": pipeline, "sink": sink, "output": output})


def send_gauges(report: Report) -> None:
    """All that is measured of every pipeline. Raises `LedgerUnavailable`, `LedgerRefused`."""
    for sample in measure(report) if metrics_enabled() else ():
        for gauge in GAUGES:
            for labels, value in gauge.of(sample):
                tags = zip(("pipeline", *gauge.labels), (sample.pipeline, *labels), strict=True)
                _send(Stats.gauge, gauge.name.replace("_", ".", 1), value, dict(tags))


def _send(send: Callable[..., object], name: str, value: float | timedelta, tags: Mapping[str, str]) -> None:
    if not metrics_enabled():
        return
    try:
        if not any(conf.getboolean("metrics", setting, fallback=False) for setting in _WITH_TAGS):
            name = ".".join([name, *(re.sub(r"[^A-Za-z0-9_-]", "_", value) for value in tags.values())])
        send(name, value, tags=dict(tags))
    except Exception:  # a client may raise anything
        _log.debug("a metric wasn't sent", exc_info=True)


@dataclass(frozen=True)
class InputPlace:
    """A place that an epoch read. `rows`: of its source, once counted; None if that has several places."""

    place: Dataset
    start: Json
    end: Json
    rows: int | None


@dataclass(frozen=True)
class OutputPlace:
    """A place that shows an epoch. `rows`: of its output; None if that has several places."""

    place: Dataset
    rows: int | None
    size: int | None  #: bytes in the WAL
    schema: pa.Schema | None


@dataclass(frozen=True)
class Lineage:
    """Lineage of the epochs that a task has moved."""

    epochs: tuple[Epoch, ...] = ()
    inputs: tuple[InputPlace, ...] = ()
    outputs: tuple[OutputPlace, ...] = ()


def lineage_enabled() -> bool:
    """Return whether the OpenLineage provider is installed and enabled."""
    try:
        from airflow.providers.openlineage import conf as settings

        return not settings.is_disabled()
    except ImportError:
        return False
    except Exception as error:  # an unreadable setting
        _log.warning("no lineage is reported: %s", type(error).__name__)
        return False


def collect_lineage(
    runtime: Runtime, epochs: Iterable[Epoch], *, reads: bool = False, sinks: Sequence[str] = ()
) -> Lineage | None:
    """The inputs of these epochs, and what `sinks` show of them; None if lineage is off or can't be determined."""
    if not lineage_enabled():
        return None
    try:
        lineage = Lineage()
        for epoch in epochs:
            inputs = _inputs(epoch, _places(runtime, epoch)) if reads else ()
            outputs = [place for sink in sinks for place in _outputs(runtime, epoch, sink)]
            lineage = replace(
                lineage,
                epochs=(*lineage.epochs, epoch),
                inputs=(*lineage.inputs, *inputs),
                outputs=(*lineage.outputs, *outputs),
            )
        return lineage
    except Exception:
        _log.debug("no lineage is reported", exc_info=True)
        return None


def _inputs(epoch: Epoch, sources: Mapping[str, Sequence[Dataset]]) -> list[InputPlace]:
    counts = (epoch.summary or {}).get("sources", {})
    inputs = []
    for name, places in sources.items():
        planned = epoch.plan.sources[name]
        rows = counts.get(name, {}).get("rows") if len(places) == 1 else None
        inputs += [InputPlace(place, planned.start, planned.end, rows) for place in places]
    return inputs


def _places(runtime: Runtime, epoch: Epoch) -> dict[str, Sequence[Dataset]]:
    """The places of each source, at least one."""
    places_by_source: dict[str, Sequence[Dataset]] = {}
    for name, planned in epoch.plan.sources.items():
        defined = runtime.definition.sources.get(name) if runtime.definition else None
        try:
            places = planned_source(name, planned.spec, defined).datasets(runtime.connections)
        except LockstepError as error:
            _log.debug("source %s has no dataset in lineage: %s", name, error)
            places = ()
        places_by_source[name] = places or (Dataset(f"lockstep://{epoch.pipeline}", name),)
    return places_by_source


def _outputs(runtime: Runtime, epoch: Epoch, name: str) -> list[OutputPlace]:
    if name not in epoch.plan.sinks:
        return []
    sink = runtime.sink_of(epoch, name)
    try:
        places = sink.datasets(runtime.connections)
    except LockstepError as error:
        _log.debug("sink %s has no dataset in lineage: %s", name, error)
        places = {}
    counts, schemas = epoch.counted, _schemas(runtime, epoch)
    outputs = []
    for output in sink.outputs:
        dataset = places.get(output) or Dataset(f"lockstep://{epoch.pipeline}", f"{name}/{output}")
        several = dataset if isinstance(dataset, tuple) else (dataset,)
        count = counts.get(output, {}) if len(several) == 1 else {}
        outputs += [OutputPlace(place, count.get("rows"), count.get("bytes"), schemas.get(output)) for place in several]
    return outputs


def _schemas(runtime: Runtime, epoch: Epoch) -> Mapping[str, pa.Schema]:
    """The sealed schema of each output; empty once the WAL is deleted."""
    if epoch.wal is None:
        return {}
    try:
        manifest = runtime.staging.manifest(epoch.wal, epoch.manifest_hash or "")
    except (LockstepError, OSError) as error:
        _log.debug("%s: its columns aren't reported: %s", epoch, error)
        return {}
    return {name: output.schema for name, output in manifest.outputs.items()}


def with_parent_run(submit: Mapping[str, Any], context: Context) -> dict[str, Any]:
    """Arguments of SparkSubmitHook that make this task the parent in Spark's own listener, if the provider's setting
    `spark_inject_parent_job_info` is on."""
    arguments = dict(submit)
    if not conf.getboolean("openlineage", "spark_inject_parent_job_info", fallback=False):
        return arguments
    from airflow.providers.common.compat.openlineage.utils.spark import (
        inject_parent_job_information_into_spark_properties as inject,
    )

    return {**arguments, "conf": inject(dict(arguments.get("conf") or {}), context)}


def to_operator_lineage(lineage: Lineage | None) -> OperatorLineage[Any, Any]:
    """Convert to the provider's class."""
    from airflow.providers.openlineage.extractors import OperatorLineage

    if lineage is None:
        return OperatorLineage()
    from lockstep.airflow._facets import EpochsFacet

    facets = (
        {"lockstep_epochs": EpochsFacet(epochs=[_epoch_facts(epoch) for epoch in lineage.epochs])}
        if lineage.epochs
        else {}
    )
    return OperatorLineage(
        inputs=[_input(place) for place in lineage.inputs],
        outputs=[_output(place) for place in lineage.outputs],
        run_facets=facets,
    )


def _epoch_facts(epoch: Epoch) -> dict[str, Any]:
    span = epoch.interval
    return {
        "pipeline": epoch.pipeline,
        "epoch": epoch.id,
        "state": epoch.state.value,
        "attempt": epoch.attempt,
        "intervalStart": span.start.isoformat() if span else None,
        "intervalEnd": span.end.isoformat() if span else None,
        "manifest": epoch.manifest_hash,
    }


def _input(read: InputPlace) -> InputDataset:
    from openlineage.client.event_v2 import InputDataset
    from openlineage.client.facet_v2 import input_statistics_input_dataset

    from lockstep.airflow._facets import RangeFacet

    facets: dict[str, Any] = {"lockstep_range": RangeFacet(start=_position(read.start), end=_position(read.end))}
    if read.rows is not None:
        facets["inputStatistics"] = input_statistics_input_dataset.InputStatisticsInputDatasetFacet(rowCount=read.rows)
    return InputDataset(namespace=read.place.namespace, name=read.place.name, inputFacets=facets)


def _output(place: OutputPlace) -> OutputDataset:
    from openlineage.client.event_v2 import OutputDataset
    from openlineage.client.facet_v2 import output_statistics_output_dataset, schema_dataset

    counted = output_statistics_output_dataset.OutputStatisticsOutputDatasetFacet(rowCount=place.rows, size=place.size)
    facets: dict[str, Any] = {}
    if place.schema is not None:
        columns = [
            schema_dataset.SchemaDatasetFacetFields(name=column.name, type=str(column.type)) for column in place.schema
        ]
        facets["schema"] = schema_dataset.SchemaDatasetFacet(fields=columns)
    return OutputDataset(
        namespace=place.place.namespace,
        name=place.place.name,
        facets=facets,
        outputFacets={"outputStatistics": counted},
    )


def _position(value: Json) -> str:
    """The value as JSON; if too long, only its length."""
    text = json.dumps(value, sort_keys=True)
    return text if len(text) <= _LONGEST else f"{len(text)} characters, in the ledger"
