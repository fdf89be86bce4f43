"""The Spark application of every pipeline: stage one epoch by a request.

    spark-submit --py-files … stage_epoch.py --request file:///…/_request.json

The file is that of the installed package, `lockstep/compute/submit/stage_epoch.py`, or `spark_apps/stage_epoch.py` of a
checkout.

The driver ends if its request is deleted while it runs: its attempt is void, and its output will not be sealed. So a
job whose id was lost ends, too.

It needs no ledger. Its sources' connections come from its environment, under the names that the command line uses. The
master, and all other settings of Spark, come from spark-submit.

Without spark-submit it can be a client of Spark Connect, as a separate job:

    SPARK_REMOTE=sc://… python -m lockstep.compute.submit.stage_epoch --request …

If it is ended, by SIGTERM or because its request is gone, it has the server cancel its operations.
"""

from __future__ import annotations

import argparse
import importlib
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING

from lockstep.compute.stage import run_request
from lockstep.connections.environment import EnvironmentConnections
from lockstep.errors import InvalidPipeline, LockstepError
from lockstep.pipeline import Pipeline
from lockstep.spark.session import cancel, connect, forget_parent_client, is_remote, session
from lockstep.wal.request import is_requested, read_request, write_error

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOOK_SECONDS = 5.0  #: between checks that the request still exists
GIVE_UP_SECONDS = 10.0  #: for the server to cancel operations
_OF_SPARK_SUBMIT = "PYSPARK_GATEWAY_PORT"  #: where pyspark finds the driver that spark-submit has started


def main(arguments: Sequence[str] | None = None) -> int:
    """Return 0 if `_result.json` was written, 1 if it failed; `_error.json` then says why."""
    parser = argparse.ArgumentParser(description="Stage one epoch of a pipeline.")
    parser.add_argument("--request", required=True, help="URI of the execution's _request.json")
    request_uri = parser.parse_args(arguments).request
    try:
        with _session() as spark:
            run(request_uri, spark)
    except LockstepError as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return 1
    return 0


@contextmanager
def _session() -> Iterator[SparkSession]:
    """The session of spark-submit's driver; without that, if SPARK_REMOTE is set, of a client of that server."""
    remote = os.environ.get("SPARK_REMOTE")
    if remote and _OF_SPARK_SUBMIT not in os.environ:
        # the exception closes the session, so the server cancels its operations
        signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
        with session(remote) as spark:
            yield spark
        return
    forget_parent_client()
    spark = connect(None)
    try:
        yield spark
    finally:
        spark.stop()


def run(request_uri: str, spark: SparkSession) -> None:
    """Stage the request with the pipeline that it names, as long as the request exists. Raises as `stage_epoch`."""
    try:
        request = read_request(request_uri)
        pipeline = load(request.pipeline)
    except LockstepError as error:
        write_error(request_uri, error)
        raise
    with _ending_without_request(request_uri, partial(_cancel, spark, request.token)):
        run_request(request_uri, spark, pipeline, EnvironmentConnections())


@contextmanager
def _ending_without_request(request_uri: str, give_up: Callable[[], object]) -> Iterator[None]:
    """Check from a thread, until the block ends, that the request exists; end the process if not."""
    done = threading.Event()
    arguments = (request_uri, done, give_up)
    threading.Thread(target=_watch_request, args=arguments, daemon=True, name="unwanted").start()
    try:
        yield
    finally:
        done.set()


def _watch_request(request_uri: str, done: threading.Event, give_up: Callable[[], object]) -> None:
    missed = 0
    while missed < 2:  # once may be a mount that was briefly unavailable
        if done.wait(LOOK_SECONDS):
            return
        try:
            missed = 0 if is_requested(request_uri) else missed + 1
        except (LockstepError, OSError):  # unknown: go on
            missed = 0
    if not done.is_set():
        print("the request of this job was deleted, as its attempt is void: the job ends", file=sys.stderr, flush=True)
        giving_up = threading.Thread(target=give_up, daemon=True)
        giving_up.start()
        giving_up.join(GIVE_UP_SECONDS)
        os._exit(1)  # nothing else ends a process from a thread; spark-submit then ends the application


def _cancel(spark: SparkSession, token: int) -> None:
    """Cancel a client's operations, which would go on at its server; a driver's end with the driver."""
    if is_remote(spark):
        with suppress(Exception):
            cancel(spark, token)


def load(reference: str) -> Pipeline:
    """Import the pipeline `module:name`. Raises `InvalidPipeline`."""
    module, _, name = reference.partition(":")
    try:
        pipeline = getattr(importlib.import_module(module), name) if module and name else None
    except (ImportError, AttributeError) as error:
        raise InvalidPipeline(
            f"the Spark driver can't import pipeline {reference!r}: {error}; bring its package by --py-files"
        ) from error
    if not isinstance(pipeline, Pipeline):
        raise InvalidPipeline(f"{reference!r} is no Pipeline")
    return pipeline


if __name__ == "__main__":
    sys.exit(main())
