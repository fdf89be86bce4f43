"""How the functions of a pipeline reach Spark's Python workers: by value, with whatever of its package they use.

A worker needs neither the pipeline's module nor Lockstep on its path, and a warm server never runs yesterday's code.
Under spark-submit --py-files also brings what such a function imports when it runs. Wrap functions with `udf` in the
transform: a decorator at the top of a module runs before pyspark knows whether it serves a driver or Spark Connect.
"""

from __future__ import annotations

import sys
from functools import partial

from pyspark import cloudpickle

from lockstep import connections, distribution, epoch, errors, wal
from lockstep.compute import _lookups as lookups
from lockstep.observability import redaction
from lockstep.pipeline import Pipeline
from lockstep.sources.files import line_pieces

#: What Lockstep itself has run on Spark's workers; nothing of it may use what isn't named here.
OURS = (line_pieces, lookups, wal, connections, redaction, epoch, errors, distribution)


def ship_ours() -> None:
    """Have Spark pickle what is ours by value from now on, in this process."""
    for module in OURS:
        cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]


def ship_by_value(pipeline: Pipeline) -> None:
    """Have Spark pickle the functions of the transform's package, and ours, by value from now on, in this process."""
    ship_ours()
    transform = pipeline.transform
    while isinstance(transform, partial):
        transform = transform.func
    ship_package(getattr(transform, "__module__", None) or "__main__")


def ship_package(module: str) -> None:
    """The same of the functions of the package that has this module."""
    package = sys.modules.get(module.partition(".")[0])
    if package is not None and package.__name__ not in {"__main__", "lockstep", *sys.stdlib_module_names}:
        cloudpickle.register_pickle_by_value(package)  # type: ignore[no-untyped-call]
