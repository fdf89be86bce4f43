"""Having Spark's executors read the files that an execution has written, where they are too much for one process."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping
from itertools import chain

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from lockstep.compute._local_rows import frame_of
from lockstep.wal._storage import Storage, is_wal_file
from lockstep.wal.file_digests import EpochColumn, FileDigests, Place
from lockstep.wal.reading import DIGESTS_SCHEMA, read_files
from lockstep.wal.request import StageRequest, from_hadoop_uri
from lockstep.wal.storages import storage_at

_log = logging.getLogger(__name__)
_TASKS = 10_000  #: of the job, at most
_FEW = 16  #: tasks, however small the files are
_TASK_BYTES = 64 << 20  #: smaller files share a task: to take our functions in costs one some 0.1 s


def read_in_executors(spark: SparkSession, request: StageRequest, options: str) -> FileDigests | None:
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


def _read(spark: SparkSession, places: list[Place], listed: Mapping[int, Mapping[str, int]]) -> FileDigests:
    asked = [(place, name) for place, sizes in listed.items() for name in sizes]

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:  # pickled by value, as it is no module's
        return read_files(places, batches)

    size = sum(size for sizes in listed.values() for size in sizes.values())
    tasks = min(len(asked), _TASKS, max(_FEW, size // _TASK_BYTES))
    told = spread(spark, asked, tasks).mapInArrow(read, DIGESTS_SCHEMA).toArrow()
    if errors := [error for error in told["error"].to_pylist() if error]:
        _log.warning("the task reads %s of %s files: %s", len(errors), len(asked), errors[0])
    found = (FileDigests.from_json(json.loads(one)) for one in told["found"].to_pylist() if one)
    return FileDigests(chain.from_iterable(files.values() for files in found))


def spread(spark: SparkSession, asked: list[tuple[int, str]], tasks: int) -> DataFrame:
    """A row for each file, as evenly spread over tasks as can be: a shuffle would put some files together by chance."""
    columns = {"id": range(len(asked)), "place": [place for place, _ in asked], "name": [name for _, name in asked]}
    types = pa.schema([("id", pa.int64()), ("place", pa.int32()), ("name", pa.string())])
    files = frame_of(spark, pa.table({name: list(values) for name, values in columns.items()}, types))
    spread = spark.range(0, len(asked), 1, tasks)
    return spread.join(F.broadcast(files), "id").select("place", "name")


def _line(error: Exception) -> str:
    return " ".join(str(error).split("\n\nJVM stacktrace:")[0].split())[:1000]
