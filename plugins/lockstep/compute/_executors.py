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
from collections.abc import Iterator, Mapping
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
from lockstep.wal._early_digests import EpochColumn
from lockstep.wal._storage import Storage, is_wal_file
from lockstep.wal.executor_reading import TOLD, read_files
from lockstep.wal.found_files import FoundFiles, Place
from lockstep.wal.request import StageRequest, from_hadoop_uri
from lockstep.wal.staging import storage_at

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


_log = logging.getLogger(__name__)
_TASKS = 10_000  #: of the job, at most
_FEW = 16  #: tasks, however small the files are
_TASK_BYTES = 64 << 20  #: smaller files share a task: to take our functions in costs one some 0.1 s


def read_in_executors(spark: SparkSession, request: StageRequest, options: str) -> FoundFiles | None:
    """What the files of all outputs hold, but for those that can't be read there; None where the task reads them all:
    they are few bytes, or the executors can't. `options`: see `Staging.address_of`."""
    if request.task_seals is None:
        return None
    places = [_place_of(request, output, options) for output in request.outputs]
    try:
        listed = {number: _sizes(storage_at(place.storage), place.folder) for number, place in enumerate(places)}
        if sum(size for sizes in listed.values() for size in sizes.values()) <= request.task_seals:
            return None
        return _read(spark, places, listed)
    except Exception as error:  # a job beside the one that counts: the task can do without
        _log.warning("the task reads what Spark has written by itself, the executors couldn't: %s", _line(error))
        return None


def _place_of(request: StageRequest, output: str, options: str) -> Place:
    if (home := request.homes.get(output)) is not None:
        storage = home.home.table
        folder = home.folder.removeprefix(storage_at(storage).uri_of("").rstrip("/")).strip("/")
        return Place(output, storage, f"{folder}/{output}", EpochColumn(home.home.epoch_column, request.epoch))
    parts = request.folder.rsplit("/", 4)
    return Place(output, from_hadoop_uri(parts[0], options), "/".join([*parts[1:], output]))


def _sizes(storage: Storage, folder: str) -> dict[str, int]:
    return {name: stamp.size for name, stamp in storage.stamps(folder).items() if is_wal_file(name)}


def _read(spark: SparkSession, places: list[Place], listed: Mapping[int, Mapping[str, int]]) -> FoundFiles:
    listing = [(place, name) for place, sizes in listed.items() for name in sizes]

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:  # pickled by value, as it is no module's
        return read_files(places, batches)

    size = sum(size for sizes in listed.values() for size in sizes.values())
    tasks = min(len(listing), _TASKS, max(_FEW, size // _TASK_BYTES))
    answers = spread(spark, listing, tasks).mapInArrow(read, TOLD).toArrow()
    if errors := [error for error in answers["error"].to_pylist() if error]:
        _log.warning("the task reads %s of %s files: %s", len(errors), len(listing), errors[0])
    digests = (FoundFiles.from_json(json.loads(text)) for text in answers["found"].to_pylist() if text)
    return FoundFiles(chain.from_iterable(files.values() for files in digests))


def spread(spark: SparkSession, listing: list[tuple[int, str]], tasks: int) -> DataFrame:
    """A row for each file, as evenly spread over tasks as can be: a shuffle would put some files together by chance."""
    columns = {
        "id": range(len(listing)),
        "place": [place for place, _ in listing],
        "name": [name for _, name in listing],
    }
    types = pa.schema([("id", pa.int64()), ("place", pa.int32()), ("name", pa.string())])
    files = frame_of(spark, pa.table({name: list(values) for name, values in columns.items()}, types))
    spread = spark.range(0, len(listing), 1, tasks)
    return spread.join(F.broadcast(files), "id").select("place", "name")


def _line(error: Exception) -> str:
    return " ".join(str(error).split("\n\nJVM stacktrace:")[0].split())[:1000]
