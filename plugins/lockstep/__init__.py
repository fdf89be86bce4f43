"""Exactly-once output for Airflow + Spark pipelines.

Names that need Airflow or Spark are resolved when first used: `import lockstep` needs neither.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lockstep.compute.enrich import enrich
    from lockstep.keyed_state import KeyedState
    from lockstep.orchestration.dag import epoch_dag
    from lockstep.pipeline import Pipeline
    from lockstep.run import recover, run_epoch
    from lockstep.sinks.base import Guarantee
    from lockstep.sinks.files import files
    from lockstep.windows import Windows

__all__ = ["Guarantee", "KeyedState", "Pipeline", "Windows", "enrich", "epoch_dag", "files", "recover", "run_epoch"]

_HOMES = {
    "Guarantee": "lockstep.sinks.base",
    "KeyedState": "lockstep.keyed_state",
    "Pipeline": "lockstep.pipeline",
    "Windows": "lockstep.windows",
    "enrich": "lockstep.compute.enrich",
    "epoch_dag": "lockstep.orchestration.dag",
    "files": "lockstep.sinks.files",
    "recover": "lockstep.run",
    "run_epoch": "lockstep.run",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'lockstep' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)
