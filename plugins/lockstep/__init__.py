"""Exactly-once output for Airflow + Spark pipelines.

Names that need Airflow or Spark are resolved when first used: `import lockstep` needs neither.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lockstep.extras import import_lazily

if TYPE_CHECKING:
    from lockstep.compute.enrich import enrich
    from lockstep.conservation import rows_of
    from lockstep.keyed_state import KeyedState
    from lockstep.operations.as_of import as_of
    from lockstep.orchestration.assets import asset_of, missing_intervals, partitions_of
    from lockstep.orchestration.compaction import compaction_dag
    from lockstep.orchestration.dag import epoch_dag
    from lockstep.orchestration.recovery import recovery_dag
    from lockstep.orchestration.task_group import EpochTaskGroup
    from lockstep.pipeline import Pipeline
    from lockstep.run import recover, run_epoch, run_epochs
    from lockstep.sessions import Sessions
    from lockstep.sinks.files import files
    from lockstep.sinks.values import Guarantee
    from lockstep.version import __version__
    from lockstep.windows import Windows

__all__ = [
    "EpochTaskGroup",
    "Guarantee",
    "KeyedState",
    "Pipeline",
    "Sessions",
    "Windows",
    "__version__",
    "as_of",
    "asset_of",
    "compaction_dag",
    "enrich",
    "epoch_dag",
    "files",
    "missing_intervals",
    "partitions_of",
    "recover",
    "recovery_dag",
    "rows_of",
    "run_epoch",
    "run_epochs",
]

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


def __getattr__(name: str) -> Any:
    return import_lazily(__name__, _HOMES, name)
