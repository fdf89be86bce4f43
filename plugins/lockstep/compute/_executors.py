"""Work in Spark's Python workers: how functions get there, and how executors read files that are too much for one
process.

The functions of a pipeline and Lockstep's own travel by value, with what they use of their package. A worker needs
neither the pipeline's module nor Lockstep on its path, and a warm server never runs yesterday's code. Under
spark-submit --py-files also brings what such a function imports when it runs. Wrap functions with `udf` in the
transform: a decorator at the top of a module runs before pyspark knows whether it serves a driver or Spark Connect.
"""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Iterator
from functools import partial
from itertools import chain

import pyarrow as pa
from pyspark import cloudpickle
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from lockstep import connections, distribution, epoch, errors, wal
from lockstep.compute import _lookups as lookups
from lockstep.compute._local_rows import frame_of
from lockstep.observability import redaction
from lockstep.pipeline import Pipeline
from lockstep.sources.files import line_pieces
from lockstep.wal._storage import is_wal_file
from lockstep.wal.file_digests import EpochColumn, FileDigests, Place
from lockstep.wal.reading import DIGESTS_SCHEMA, read_files
from lockstep.wal.request import StageRequest, from_hadoop_uri
from lockstep.wal.storages import storage_at

#: Modules whose code runs on Spark's workers; that code may only use modules that are listed here.
OURS = (line_pieces, lookups, wal, connections, redaction, epoch, errors, distribution)
_log = logging.getLogger(__name__)
_MAX_TASKS = 10_000
_MIN_TASKS = 16  #: however small the files are
_TASK_BYTES = 64 << 20  #: smaller files share a task: to take our functions in costs one some 0.1 s


def ship_ours() -> None:
    """Have Spark pickle Lockstep's own modules by value from now on, in this process."""
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
    """Have Spark pickle the functions of the package of `module` by value from now on, in this process."""
    package = sys.modules.get(module.partition(".")[0])
    if package is not None and package.__name__ not in {"__main__", "lockstep", *sys.stdlib_module_names}:
        cloudpickle.register_pickle_by_value(package)  # type: ignore[no-untyped-call]


def read_in_executors(spark: SparkSession, request: StageRequest, options: str) -> FileDigests | None:
    """Have executors read the files of all outputs; return their digests, without those that can't be read there.

    None if the task has to read all files: they are few bytes, or the executors can't. `options`: see
    `Staging.address_of`."""
    if request.task_seals is None:
        return None
    places = [_place_of(request, output, options) for output in request.outputs]

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:  # pickled by value: it is nested
        return read_files(places, batches)

    try:
        files, size = [], 0
        for number, place in enumerate(places):
            for name, stamp in storage_at(place.storage).stamps(place.folder).items():
                if is_wal_file(name):
                    files.append((number, name))
                    size += stamp.size
        if size <= request.task_seals:
            return None
        tasks = min(len(files), _MAX_TASKS, max(_MIN_TASKS, size // _TASK_BYTES))
        answers = spread(spark, files, tasks).mapInArrow(read, DIGESTS_SCHEMA).toArrow()
        if errors := [error for error in answers["error"].to_pylist() if error]:
            _log.warning("the task reads %s of %s files: %s", len(errors), len(files), errors[0])
        digests = (FileDigests.from_json(json.loads(text)) for text in answers["found"].to_pylist() if text)
        return FileDigests(chain.from_iterable(by_place.values() for by_place in digests))
    except Exception as error:  # an optional job: the task can read the files itself
        message = " ".join(str(error).split("\n\nJVM stacktrace:")[0].split())[:1000]
        _log.warning("the task reads the files that Spark has written, because the executors couldn't: %s", message)
        return None


def _place_of(request: StageRequest, output: str, options: str) -> Place:
    if (staged_table := request.homes.get(output)) is not None:
        storage = staged_table.home.table
        folder = staged_table.folder.removeprefix(storage_at(storage).uri_of("").rstrip("/")).strip("/")
        return Place(output, storage, f"{folder}/{output}", EpochColumn(staged_table.home.epoch_column, request.epoch))
    parts = request.folder.rsplit("/", 4)
    return Place(output, from_hadoop_uri(parts[0], options), "/".join([*parts[1:], output]))


def spread(spark: SparkSession, files: list[tuple[int, str]], tasks: int) -> DataFrame:
    """One row per file, spread evenly over `tasks` partitions: a shuffle would put some files together by chance."""
    types = pa.schema([("id", pa.int64()), ("place", pa.int32()), ("name", pa.string())])
    columns = [list(range(len(files))), [place for place, _ in files], [name for _, name in files]]
    numbered = frame_of(spark, pa.table(columns, schema=types))
    return spark.range(0, len(files), 1, tasks).join(F.broadcast(numbered), "id").select("place", "name")
