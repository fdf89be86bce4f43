"""Exactly-once output for Airflow + Spark pipelines.

Names that need Airflow or Spark are resolved when first used: `import lockstep` needs neither.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lockstep.extras import import_lazily

if TYPE_CHECKING:
    from lockstep.compute.enrich import enrich as enrich
    from lockstep.conservation import rows_of as rows_of
    from lockstep.keyed_state import KeyedState as KeyedState
    from lockstep.operations.as_of import as_of as as_of
    from lockstep.orchestration.assets import asset_of as asset_of
    from lockstep.orchestration.assets import missing_intervals as missing_intervals
    from lockstep.orchestration.assets import partitions_of as partitions_of
    from lockstep.orchestration.compaction import compaction_dag as compaction_dag
    from lockstep.orchestration.dag import epoch_dag as epoch_dag
    from lockstep.orchestration.recovery import recovery_dag as recovery_dag
    from lockstep.orchestration.task_group import EpochTaskGroup as EpochTaskGroup
    from lockstep.pipeline import Pipeline as Pipeline
    from lockstep.run import recover as recover
    from lockstep.run import run_epoch as run_epoch
    from lockstep.run import run_epochs as run_epochs
    from lockstep.sessions import Sessions as Sessions
    from lockstep.sinks.files import files as files
    from lockstep.sinks.values import Guarantee as Guarantee
    from lockstep.version import __version__ as __version__
    from lockstep.windows import Windows as Windows

_HOMES = {
    "EpochTaskGroup": "lockstep.orchestration.task_group",
    "Guarantee": "lockstep.sinks.values",
    "KeyedState": "lockstep.keyed_state",
    "Pipeline": "lockstep.pipeline",
    "Sessions": "lockstep.sessions",
    "Windows": "lockstep.windows",
    "__version__": "lockstep.version",
    "as_of": "lockstep.operations.as_of",
    "asset_of": "lockstep.orchestration.assets",
    "compaction_dag": "lockstep.orchestration.compaction",
    "enrich": "lockstep.compute.enrich",
    "epoch_dag": "lockstep.orchestration.dag",
    "files": "lockstep.sinks.files",
    "missing_intervals": "lockstep.orchestration.assets",
    "partitions_of": "lockstep.orchestration.assets",
    "recover": "lockstep.run",
    "recovery_dag": "lockstep.orchestration.recovery",
    "rows_of": "lockstep.conservation",
    "run_epoch": "lockstep.run",
    "run_epochs": "lockstep.run",
}
__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    return import_lazily(__name__, _HOMES, name)
