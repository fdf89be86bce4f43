"""The one Spark application, for every pipeline: stage what a request asks for.

    spark-submit --py-files … stage_epoch.py --request file:///…/_request.json

The file is that of the installed package, `lockstep/compute/submit/stage_epoch.py`, or `spark_apps/stage_epoch.py` of a
checkout.

A driver whose request goes meanwhile ends: its attempt is void, and nobody will seal what it writes. So a job that was
left to itself ends, too, of which nobody knows the id.

It needs no ledger. What its sources' connections lead to comes from its environment, under the names that the command
line uses. The master, and everything else of Spark, comes from spark-submit.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from lockstep.compute.stage import run_request
from lockstep.environment import EnvironmentConnections
from lockstep.errors import InvalidPipeline, LockstepError
from lockstep.pipeline import Pipeline
from lockstep.spark.session import connect, forget_parent_client
from lockstep.wal.request import read_request, stands, write_error

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOOK_SECONDS = 5.0  #: between looks at whether the request still stands


def main(arguments: Sequence[str] | None = None) -> int:
    """Return 0 if `_result.json` was written, 1 if it failed; `_error.json` then says why."""
    parser = argparse.ArgumentParser(description="Stage one epoch of a pipeline.")
    parser.add_argument("--request", required=True, help="URI of the execution's _request.json")
    request_uri = parser.parse_args(arguments).request
    forget_parent_client()
    spark = connect(None)
    try:
        with _ending_when_unwanted(request_uri):
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


@contextmanager
def _ending_when_unwanted(request_uri: str) -> Iterator[None]:
    """Whether its request still stands is looked at from a thread, until the block is left."""
    done = threading.Event()
    threading.Thread(target=_end_when_unwanted, args=(request_uri, done), daemon=True, name="unwanted").start()
    try:
        yield
    finally:
        done.set()


def _end_when_unwanted(request_uri: str, done: threading.Event) -> None:
    missed = 0
    while missed < 2:  # once may be a mount that was away for a moment
        if done.wait(LOOK_SECONDS):
            return
        try:
            missed = 0 if stands(request_uri) else missed + 1
        except (LockstepError, OSError):  # who knows: it goes on
            missed = 0
    if not done.is_set():
        print("the request of this job is gone, as its attempt is void: it ends", file=sys.stderr, flush=True)
        os._exit(1)  # from a thread nothing else ends a process; spark-submit ends the application with it


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
