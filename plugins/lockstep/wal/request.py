"""Files exchanged between a stage task and its Spark job: the request, the result or error, and rows.

The driver gets no access to the ledger: it reads `_request.json` and writes `_result.json` in the execution's folder.
`JobFiles` are Parquet files that the job's own process reads and writes, where Spark would have more overhead. Reads
are verified against the manifest; writes become durable when the task seals them.
"""

from __future__ import annotations

import io
import uuid
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime

import pyarrow as pa
import pyarrow.parquet as pq

from lockstep import errors
from lockstep.connections.hdfs.address import is_hdfs
from lockstep.connections.object_store.address import from_hadoop
from lockstep.definition.keyed_state import KeyedState
from lockstep.epoch import Interval, Json, SourceRange
from lockstep.errors import LockstepError, StageFailed
from lockstep.wal._storage import Storage, naming_errors
from lockstep.wal.file_digests import FILES, FileDigests
from lockstep.wal.manifest import SourceCount, StateFile, StateVersion, finding, version_of, version_to_json
from lockstep.wal.parquet import ParquetRows, columns_with_statistics
from lockstep.wal.reading import verify_file
from lockstep.wal.staging import Staging
from lockstep.wal.state_staging import WrittenState
from lockstep.wal.storages import storage_at
from lockstep.wal.table_staging import TableStaging

REQUEST = "_request.json"
RESULT = "_result.json"
ERROR = "_error.json"
JOB = "_job.json"  #: handle of a detached job, written by the task


@dataclass(frozen=True)
class StateRequest:
    """Where an execution reads and writes keyed state. `uris`: of the files of each previous version, in order.

    `declared`: the states in the task's definition; the driver's must be equal.
    """

    folder: str  #: absolute URI; each state is written to <folder>/<name>/
    declared: Mapping[str, KeyedState]
    before: Mapping[str, StateVersion]
    uris: Mapping[str, tuple[str, ...]]

    def to_json(self) -> Json:
        return {
            "folder": self.folder,
            "declared": {name: _declared(state) for name, state in self.declared.items()},
            "before": {name: version_to_json(version) for name, version in self.before.items()},
            "uris": {name: list(uris) for name, uris in self.uris.items()},
        }

    @classmethod
    def from_json(cls, value: Json) -> StateRequest:
        return cls(
            value["folder"],
            {name: KeyedState(**state) for name, state in value["declared"].items()},
            {name: version_of(version) for name, version in value["before"].items()},
            {name: tuple(uris) for name, uris in value["uris"].items()},
        )


def _declared(state: KeyedState) -> Json:
    value = asdict(state)
    found_by = finding(value["key"], value.pop("found_by"))
    if not state.self_expiring:
        del value["self_expiring"]
    return {**value, **found_by}


@dataclass(frozen=True)
class TableStagingRequest:
    """The table staging of one output."""

    home: TableStaging
    folder: str  #: absolute URI; the output is written to <folder>/<output>/

    def to_json(self) -> Json:
        return {**self.home.to_json(), "folder": self.folder}

    @classmethod
    def from_json(cls, value: Json) -> TableStagingRequest:
        return cls(TableStaging.from_json(value), value["folder"])


@dataclass(frozen=True)
class StageRequest:
    """One execution of stage. `pipeline` is `module:name`, or "" if only this process knows it."""

    pipeline: str
    epoch: int
    token: int
    folder: str  #: absolute URI; each output is written to <folder>/<output>/
    outputs: tuple[str, ...]
    sources: Mapping[str, SourceRange]
    timestamp: datetime  #: when the epoch was planned: the same in every attempt
    interval: Interval | None = None
    state: StateRequest | None = None  #: of a pipeline with state
    homes: Mapping[str, TableStagingRequest] = field(default_factory=dict)  #: by output
    conserved: tuple[str, ...] = ()  #: outputs with conservation audits
    quarantine: tuple[Json, ...] = ()  #: planned audits that quarantine rows before the seal
    task_seals: int | None = None  #: bytes of all outputs up to which the task reads them; None: unlimited

    def to_json(self) -> Json:
        return {
            "pipeline": self.pipeline,
            "epoch": self.epoch,
            "token": self.token,
            "folder": self.folder,
            "outputs": list(self.outputs),
            "sources": {name: source.to_json() for name, source in self.sources.items()},
            "timestamp": self.timestamp.isoformat(),
            "interval": [self.interval.start.isoformat(), self.interval.end.isoformat()] if self.interval else None,
            "state": self.state.to_json() if self.state else None,
            **({"homes": {name: home.to_json() for name, home in self.homes.items()}} if self.homes else {}),
            **({"conserved": list(self.conserved)} if self.conserved else {}),
            **({"quarantine": list(self.quarantine)} if self.quarantine else {}),
            **({"task_seals": self.task_seals} if self.task_seals is not None else {}),
        }

    @classmethod
    def from_json(cls, value: Json) -> StageRequest:
        bounds = value["interval"]
        return cls(
            pipeline=value["pipeline"],
            epoch=value["epoch"],
            token=value["token"],
            folder=value["folder"],
            outputs=tuple(value["outputs"]),
            sources={name: SourceRange.from_json(source) for name, source in value["sources"].items()},
            timestamp=datetime.fromisoformat(value["timestamp"]),
            interval=Interval(*map(datetime.fromisoformat, bounds)) if bounds else None,
            state=StateRequest.from_json(value["state"]) if value["state"] else None,
            homes={name: TableStagingRequest.from_json(home) for name, home in value.get("homes", {}).items()},
            conserved=tuple(value.get("conserved", ())),
            quarantine=tuple(value.get("quarantine", ())),
            task_seals=value.get("task_seals"),
        )


@dataclass(frozen=True)
class QuarantineCount:
    """Number of quarantined rows of an output, and of offending rows per audit."""

    rows: int
    audits: Mapping[str, int]


@dataclass(frozen=True)
class StageResult:
    """Counts of a stage job. `rows`: per output, by DataFrame.observe, to be compared with the files. `balances`:
    compared counts, by name."""

    rows: Mapping[str, int]
    sources: Mapping[str, SourceCount]
    code_version: str
    state: Mapping[str, WrittenState] = field(default_factory=dict)
    balances: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    files: FileDigests | None = None  #: digests of executors, in a separate file
    quarantined: Mapping[str, QuarantineCount] = field(default_factory=dict)  #: by output with such audits

    def to_json(self) -> Json:
        return {
            "rows": dict(self.rows),
            "sources": {name: {"rows": c.rows, "quarantined": c.quarantined} for name, c in self.sources.items()},
            "code_version": self.code_version,
            "state": {name: written.to_json() for name, written in self.state.items()},
            "balances": {name: dict(counts) for name, counts in self.balances.items()},
            **({"files": FILES} if self.files is not None else {}),
            **(
                {"quarantined": {n: asdict(count) for n, count in self.quarantined.items()}} if self.quarantined else {}
            ),
        }

    @classmethod
    def from_json(cls, value: Json) -> StageResult:
        counts = {name: SourceCount(c["rows"], c["quarantined"]) for name, c in value["sources"].items()}
        state = {name: WrittenState.from_json(written) for name, written in value["state"].items()}
        quarantined = {name: QuarantineCount(**count) for name, count in value.get("quarantined", {}).items()}
        result = cls(dict(value["rows"]), counts, value["code_version"], state, dict(value["balances"]))
        return replace(result, quarantined=quarantined)


def read_request(request_uri: str) -> StageRequest:
    """The request. Raises `StageFailed` if it is missing or invalid JSON."""
    staging, folder = _place(request_uri)
    return StageRequest.from_json(staging.read_json(folder, REQUEST))


def write_result(request_uri: str, result: StageResult) -> None:
    """Write the result next to the request. Raises `StagingRefused` if there is one already."""
    staging, folder = _place(request_uri)
    if result.files is not None:
        staging.write_json(folder, FILES, result.files.to_json())
    staging.write_json(folder, RESULT, result.to_json())


def write_error(request_uri: str, error: Exception) -> None:
    """Write the job's error next to the request; failures to write are ignored, since the error itself matters more."""
    staging, folder = _place(request_uri)
    class_name = type(error).__name__ if isinstance(error, LockstepError) else StageFailed.__name__
    message = str(error) if isinstance(error, LockstepError) else f"{type(error).__name__}: {error}"
    with suppress(LockstepError, OSError):
        staging.write_json(folder, ERROR, {"error": class_name, "message": message})


def read_error(request_uri: str) -> LockstepError:
    """The job's error, with its original class. Raises `FileNotFoundError` if the job wrote none."""
    staging, folder = _place(request_uri)
    try:
        value = staging.read_json(folder, ERROR)
    except StageFailed as error:
        raise FileNotFoundError(f"{folder}/{ERROR}") from error
    error_class = getattr(errors, str(value["error"]), StageFailed)
    is_ours = isinstance(error_class, type) and issubclass(error_class, LockstepError)
    return (error_class if is_ours else StageFailed)(str(value["message"]))


def has_ended(request_uri: str) -> bool:
    """Whether the job has written a result or an error."""
    staging, folder = _place(request_uri)
    return any(staging.has_json(folder, word) for word in (RESULT, ERROR))


def is_requested(request_uri: str) -> bool:
    """Whether the request exists: it is deleted when its attempt is void. Raises `StagingUnavailable` if that can't be
    determined."""
    staging, folder = _place(request_uri)
    with suppress(StageFailed):
        staging.read_json(folder, REQUEST)
        return True
    return False


def read_result(staging: Staging, folder: str) -> StageResult:
    """The result of the job in `folder`. Raises `StageFailed` if it is missing or invalid JSON."""
    value = staging.read_json(folder, RESULT)
    result = StageResult.from_json(value)
    return (
        replace(result, files=FileDigests.from_json(staging.read_json(folder, FILES))) if "files" in value else result
    )


def storage_of(root: str, options: str) -> Storage:
    """Storage for a Hadoop URI with `options`. Raises `StagingRefused`."""
    return storage_at(from_hadoop_uri(root, options))


def _place(request_uri: str) -> tuple[Staging, str]:
    """A staging for the parent of the execution's folder, and the folder's name: the driver knows no other."""
    parent, folder, name = request_uri.rsplit("/", 2)
    return Staging(from_hadoop_uri(parent, name.partition("?")[2])), folder


def from_hadoop_uri(uri: str, options: str) -> str:
    """Staging URI for the result of `Staging.address_of`: paths aren't percent-encoded, s3 is called s3a."""
    scheme, _, path = uri.partition("://")
    if scheme == "file":
        return path
    return uri if is_hdfs(uri) else from_hadoop(uri, options)


_THREADS = 4
#: Tells Spark's readers not to rebase dates and times to another calendar.
_WRITER = {"org.apache.spark.version": "4.2.0"}


@dataclass(frozen=True)
class JobFiles:
    """Files below the staging whose Hadoop URI is `root`."""

    storage: Storage
    root: str

    @classmethod
    def of(cls, request: StageRequest, options: str = "") -> JobFiles:
        """Files of an execution. `options`: as of `Staging.address_of`. Raises `StagingRefused`."""
        root = request.folder.rsplit("/", 4)[0]
        return cls(storage_of(root, options), root)

    @classmethod
    def at_home(cls, home: TableStaging) -> JobFiles:
        """Files in an output's table staging. Raises `StagingRefused`."""
        storage = storage_at(home.table)
        return cls(storage, storage.uri_of("").rstrip("/"))

    def holds(self, uri: str) -> bool:
        """Whether `uri` is below this staging."""
        return uri.startswith(f"{self.root}/")

    def read_state(self, files: Iterable[tuple[StateFile, str]], schema: pa.Schema) -> list[pa.Table]:
        """Rows of state files, given with their URIs, under `schema`; columns that a file lacks are null.

        Raises `WalCorrupt` unless a file is as sealed, `StagingUnavailable`.
        """
        with ThreadPoolExecutor(_THREADS, "state") as pool:
            return list(pool.map(lambda pair: self._read(pair[0], pair[1], schema), files))

    def _read(self, file: StateFile, uri: str, schema: pa.Schema) -> pa.Table:
        path = self._relative(uri)
        with ParquetRows(self.storage, path, verify_file(self.storage, path, file.bytes, file.sha256)) as rows:
            table = pa.Table.from_batches(list(rows.batches(rows.schema)), rows.schema)
        columns = [
            table[field.name].cast(field.type) if field.name in table.column_names else pa.nulls(len(table), field.type)
            for field in schema
        ]
        return pa.Table.from_arrays(columns, schema=schema)

    def create_folder(self, uri: str) -> None:
        """Create a folder exclusively. Raises `StagingUnavailable`."""
        with naming_errors("create", uri):
            self.storage.make_folder(self._relative(uri))

    def write(self, folder: str, table: pa.Table, *, for_queries: bool = False) -> None:
        """Write the rows to one file in the folder at this URI, creating parents. `for_queries`: with statistics and
        dictionaries."""
        buffer = io.BytesIO()
        pq.write_table(
            table.replace_schema_metadata(_WRITER),
            buffer,
            compression="zstd",
            use_dictionary=for_queries,
            write_statistics=for_queries and columns_with_statistics(table.schema),
            store_schema=False,
            store_decimal_as_integer=True,
        )
        path = f"{self._relative(folder)}/part-00000-{uuid.uuid4()}.zstd.parquet"
        with naming_errors("write", path):
            self.storage.put(path, buffer.getvalue())

    def _relative(self, uri: str) -> str:
        return uri[len(self.root) + 1 :]
