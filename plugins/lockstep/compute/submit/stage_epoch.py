"""The one Spark application, for every pipeline: stage what a request asks for.

    spark-submit --py-files … stage_epoch.py --request file:///…/_request.json

The file is that of the installed package, `lockstep/compute/submit/stage_epoch.py`, or `spark_apps/stage_epoch.py` of a
checkout.

It needs no ledger. What its sources' connections lead to comes from its environment, under the names that the command
line uses. The master, and everything else of Spark, comes from spark-submit.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from lockstep.compute.stage import run_request
from lockstep.environment import EnvironmentConnections
from lockstep.errors import InvalidPipeline, LockstepError
from lockstep.pipeline import Pipeline
from lockstep.spark.session import connect, forget_parent_client
from lockstep.wal.request import read_request, write_error

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def main(arguments: Sequence[str] | None = None) -> int:
    """Return 0 if `_result.json` was written, 1 if it failed; `_error.json` then says why."""
    parser = argparse.ArgumentParser(description="Stage one epoch of a pipeline.")
    parser.add_argument("--request", required=True, help="URI of the execution's _request.json")
    request_uri = parser.parse_args(arguments).request
    forget_parent_client()
    spark = connect(None)
    try:
        run(request_uri, spark)
    except LockstepError as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return 1
    finally:
        spark.stop()
    return 0


def run(request_uri: str, spark: SparkSession) -> None:
    """Stage what the request asks for, with the pipeline it names. Raises what `stage_epoch` raises."""
    try:
        pipeline = load(read_request(request_uri).pipeline)
    except LockstepError as error:
        write_error(request_uri, error)
        raise
    run_request(request_uri, spark, pipeline, EnvironmentConnections())


def load(reference: str) -> Pipeline:
    """Import the pipeline `module:name`. Raises `InvalidPipeline`."""
    module, _, name = reference.partition(":")
    try:
        found = getattr(importlib.import_module(module), name) if module and name else None
    except (ImportError, AttributeError) as error:
        raise InvalidPipeline(
            f"the Spark driver can't import pipeline {reference!r}: {error}; bring its package by --py-files"
        ) from error
    if not isinstance(found, Pipeline):
        raise InvalidPipeline(f"{reference!r} is no Pipeline")
    return found


if __name__ == "__main__":
    sys.exit(main())
