"""The features that this installation has, in the order in which roles call them."""

from __future__ import annotations

from collections.abc import Mapping

from lockstep.features.input_report import InputReports
from lockstep.features.retained_wals import RetainedWals
from lockstep.ledger import Ledger
from lockstep.pipeline import Pipeline
from lockstep.protocol.hooks import Feature
from lockstep.protocol.runtime import Runtime
from lockstep.sinks.kept import SinkPool
from lockstep.wal.staging import Staging

FEATURES: tuple[Feature, ...] = (
    InputReports(),
    RetainedWals(),
)


def runtime_for(
    pipeline: Pipeline | str,
    ledger: Ledger,
    staging: Staging,
    connections: Mapping[str, str],
    definition: Pipeline | None = None,
    kept: SinkPool | None = None,
) -> Runtime:
    """Return what the roles work with, with all features. A pipeline's name is enough for roles that need no source."""
    if isinstance(pipeline, Pipeline):
        return Runtime(pipeline.name, ledger, staging, connections, FEATURES, pipeline, kept)
    return Runtime(pipeline, ledger, staging, connections, FEATURES, definition, kept)
