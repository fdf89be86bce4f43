"""Exactly-once output for Airflow + Spark pipelines.

Names that need Airflow or Spark are resolved when first used: `import lockstep` needs neither.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lockstep.distribution import import_lazily

if TYPE_CHECKING:
    from lockstep.airflow.assets import asset_of as asset_of
    from lockstep.airflow.assets import missing_intervals as missing_intervals
    from lockstep.airflow.assets import partitions_of as partitions_of
    from lockstep.airflow.dag import compaction_dag as compaction_dag
    from lockstep.airflow.dag import epoch_dag as epoch_dag
    from lockstep.airflow.dag import recovery_dag as recovery_dag
    from lockstep.airflow.task_group import EpochTaskGroup as EpochTaskGroup
    from lockstep.compute.declared_windows import Sessions as Sessions
    from lockstep.compute.declared_windows import Windows as Windows
    from lockstep.compute.enrich import enrich as enrich
    from lockstep.definition.conservation import rows_of as rows_of
    from lockstep.definition.keyed_state import KeyedState as KeyedState
    from lockstep.distribution import __version__ as __version__
    from lockstep.operations.as_of import as_of as as_of
    from lockstep.pipeline import Pipeline as Pipeline
    from lockstep.run import recover as recover
    from lockstep.run import run_epoch as run_epoch
    from lockstep.run import run_epochs as run_epochs
    from lockstep.sinks.files import files as files
    from lockstep.sinks.values import Guarantee as Guarantee

_HOMES = {
    "EpochTaskGroup": "lockstep.airflow.task_group",
    "Guarantee": "lockstep.sinks.values",
    "KeyedState": "lockstep.definition.keyed_state",
    "Pipeline": "lockstep.pipeline",
    "Sessions": "lockstep.compute.declared_windows",
    "Windows": "lockstep.compute.declared_windows",
    "__version__": "lockstep.distribution",
    "as_of": "lockstep.operations.as_of",
    "asset_of": "lockstep.airflow.assets",
    "compaction_dag": "lockstep.airflow.dag",
    "enrich": "lockstep.compute.enrich",
    "epoch_dag": "lockstep.airflow.dag",
    "files": "lockstep.sinks.files",
    "missing_intervals": "lockstep.airflow.assets",
    "partitions_of": "lockstep.airflow.assets",
    "recover": "lockstep.run",
    "recovery_dag": "lockstep.airflow.dag",
    "rows_of": "lockstep.definition.conservation",
    "run_epoch": "lockstep.run",
    "run_epochs": "lockstep.run",
}
__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    return import_lazily(__name__, _HOMES, name)
