"""The features that this installation has, in the order in which roles call them."""

from __future__ import annotations

from collections.abc import Mapping

from lockstep.features.compactions import Compactions
from lockstep.features.inputs import InputReports, IntervalBefore, SourceReports
from lockstep.features.keyed_state import KeyedStates
from lockstep.features.lost_commits import LostCommits
from lockstep.features.merging import Merging
from lockstep.features.restating import Restating
from lockstep.features.retained_wals import RetainedWals
from lockstep.features.table_staging import StagingBelowTables
from lockstep.ledger import Ledger
from lockstep.pipeline import Pipeline
from lockstep.protocol.hooks import Feature
from lockstep.protocol.runtime import Runtime
from lockstep.sinks.base import SinkPool
from lockstep.wal.staging import Staging

FEATURES: tuple[Feature, ...] = (
    IntervalBefore(),
    Merging(),
    Restating(),
    KeyedStates(),
    StagingBelowTables(),
    InputReports(),
    LostCommits(),
    SourceReports(),
    RetainedWals(),
    Compactions(),
)


def runtime_for(
    pipeline: Pipeline | str,
    ledger: Ledger,
    staging: Staging,
    connections: Mapping[str, str],
    definition: Pipeline | None = None,
    pool: SinkPool | None = None,
) -> Runtime:
    """Return what the roles work with, with all features. A pipeline's name is enough for roles that need no source."""
    if isinstance(pipeline, Pipeline):
        return Runtime(pipeline.name, ledger, staging, connections, FEATURES, pipeline, pool)
    return Runtime(pipeline, ledger, staging, connections, FEATURES, definition, pool)
