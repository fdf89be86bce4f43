"""The one Spark application, for every pipeline: stage what a request asks for.

    spark-submit --py-files … stage_epoch.py --request file:///…/_request.json

The file is that of the installed package, `lockstep/compute/submit/stage_epoch.py`, or `spark_apps/stage_epoch.py` of a
checkout.

A driver whose request goes meanwhile ends: its attempt is void, and nobody will seal what it writes. So a job that was
left to itself ends, too, of which nobody knows the id.

It needs no ledger. What its sources' connections lead to comes from its environment, under the names that the command
line uses. The master, and everything else of Spark, comes from spark-submit.

Without spark-submit it may be a client of Spark Connect, as a job of its own:

    SPARK_REMOTE=sc://… python -m lockstep.compute.submit.stage_epoch --request …

One that is ended, by SIGTERM or because its request is gone, has the server end what still runs there for it.
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
from lockstep.wal.request import read_request, stands, write_error

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOOK_SECONDS = 5.0  #: between looks at whether the request still stands
GIVE_UP_SECONDS = 10.0  #: for a server to hear that nobody wants what runs there
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
    """Of the driver that spark-submit has started; else, where SPARK_REMOTE leads to a server, of a client of that."""
    remote = os.environ.get("SPARK_REMOTE")
    if remote and _OF_SPARK_SUBMIT not in os.environ:
        # an exception, which closes the session on its way: the server then ends what runs in it
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
    """Stage what the request asks for, with the pipeline it names, as long as it stands. Raises what `stage_epoch`
    raises."""
    try:
        request = read_request(request_uri)
        pipeline = load(request.pipeline)
    except LockstepError as error:
        write_error(request_uri, error)
        raise
    with _ending_when_unwanted(request_uri, partial(_give_up, spark, request.token)):
        run_request(request_uri, spark, pipeline, EnvironmentConnections())


@contextmanager
def _ending_when_unwanted(request_uri: str, give_up: Callable[[], object]) -> Iterator[None]:
    """Whether its request still stands is looked at from a thread, until the block is left."""
    done = threading.Event()
    arguments = (request_uri, done, give_up)
    threading.Thread(target=_end_when_unwanted, args=arguments, daemon=True, name="unwanted").start()
    try:
        yield
    finally:
        done.set()


def _end_when_unwanted(request_uri: str, done: threading.Event, give_up: Callable[[], object]) -> None:
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
        giving_up = threading.Thread(target=give_up, daemon=True)
        giving_up.start()
        giving_up.join(GIVE_UP_SECONDS)
        os._exit(1)  # from a thread nothing else ends a process; spark-submit ends the application with it


def _give_up(spark: SparkSession, token: int) -> None:
    """A driver's own work ends with it, that of a client would go on at its server."""
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
