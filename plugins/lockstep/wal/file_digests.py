"""Row digests of staged files, computed before the seal: by the task while the job still runs, or by Spark's executors.

The seal does not trust them. It hashes every file after the job and uses an early digest only for exactly these bytes;
it uses an executor's digest only where its own listing shows the size and etag that the executor read.
"""

from __future__ import annotations

import base64
import logging
import threading
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from lockstep.epoch import Json
from lockstep.errors import StageFailed, WalCorrupt
from lockstep.wal._storage import Stamp, Storage, finished_files
from lockstep.wal.digest import DIGEST_VERSION, RowDigest
from lockstep.wal.file_facts import FileFacts, Leaves, leaves_of
from lockstep.wal.manifest import WalFile, bare
from lockstep.wal.parquet import Fingerprint, ParquetRows, fingerprint

MIN_BYTES = 1 << 20  #: of files digested early: smaller ones are as fast later
POLL_SECONDS = 0.05
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class DigestedFile:
    """Content of a digested file. `least`: minimum of the requested time column, in microseconds."""

    schema: pa.Schema
    rows: int
    digest: RowDigest
    least: int | None = None
    facts: FileFacts | None = None  #: in table staging


def digest_file(
    storage: Storage,
    path: str,
    content: Fingerprint,
    min_column: str | None = None,
    epoch_column: EpochColumn | None = None,
) -> DigestedFile:
    """Digest the hashed bytes. Raises `StageFailed` for an invalid Parquet file, a wrong row count in the footer or a
    wrong `epoch_column`, `InvalidPipeline` for a type that can't be digested."""
    facts = None
    try:
        with ParquetRows(storage, path, content) as rows:
            if epoch_column:
                facts = FileFacts.of(rows.footer)
            written = bare(rows.schema)
            schema = epoch_column.left_out(written) if epoch_column else written
            digest, minima = RowDigest(schema), []
            for batch in rows.batches(written):
                if epoch_column:
                    batch = epoch_column.without(batch, schema)
                digest.update(batch)
                if min_column is not None:
                    minima.append(pc.min(batch.column(min_column).cast(pa.int64())).as_py())
    except WalCorrupt as error:
        raise StageFailed(str(error)) from error  # not sealed yet: another execution may succeed
    if digest.rows != rows.rows:
        raise StageFailed(f"{path}: its footer counts {rows.rows} rows, it holds {digest.rows}")
    smallest = min((value for value in minima if value is not None), default=None)
    return DigestedFile(schema, rows.rows, digest, smallest, facts)


@dataclass(frozen=True)
class EpochColumn:
    """The last column of files that a table adopts: the epoch's number in every row."""

    name: str
    epoch: int

    def left_out(self, schema: pa.Schema) -> pa.Schema:
        """Schema without this column. Raises `WalCorrupt` if it isn't the last one."""
        if not schema.names or schema.names[-1] != self.name or schema.types[-1] != pa.int64():
            raise WalCorrupt(f"the last column has to be {self.name} BIGINT, the file has {schema.to_string()}")
        return pa.schema(list(schema)[:-1])

    def without(self, batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
        """Batch without this column. Raises `WalCorrupt` for a row of another epoch."""
        epochs = batch.column(len(schema))
        if epochs.null_count or not pc.all(pc.equal(epochs, self.epoch), min_count=0).as_py():
            raise WalCorrupt(f"a row's {self.name} isn't {self.epoch}")
        return pa.RecordBatch.from_arrays(batch.columns[: len(schema)], schema=schema)


class EarlyDigests:
    """Digests computed so far, by path."""

    def __init__(self) -> None:
        self._running: dict[str, Future[tuple[str, DigestedFile]]] = {}

    def find(self, path: str, content: Fingerprint) -> DigestedFile | None:
        """The digest of the file at `path` if it is of these bytes; waits for a digest in progress."""
        future = self._running.get(path)
        if future is None or future.exception() is not None:
            return None
        sha256, digested = future.result()
        return digested if sha256 == content.sha256 else None

    def digest(self, storage: Storage, path: str) -> None:
        """Digest the file now. Errors are left to the seal."""
        future: Future[tuple[str, DigestedFile]] = Future()
        self._running[path] = future
        try:
            content = fingerprint(storage, path)
            future.set_result((content.sha256, digest_file(storage, path, content)))
        except BaseException as error:  # unblocks waiting threads
            _log.debug("%s is digested by the seal: %s", path, error)
            future.set_exception(error)

    def contains(self, path: str) -> bool:
        return path in self._running


@contextmanager
def digesting_early(storage: Storage, folders: tuple[str, ...], max_bytes: int) -> Iterator[EarlyDigests]:
    """Digest new files in `folders` in a thread until the block ends. `max_bytes`: in total; executors are faster
    beyond it."""
    early, done = EarlyDigests(), threading.Event()
    if not storage.shows_files_whole:
        yield early
        return
    arguments = (storage, folders, early, done, max_bytes)
    thread = threading.Thread(target=_watch, args=arguments, daemon=True, name="early digests")
    thread.start()
    try:
        yield early
    finally:
        done.set()


def _watch(
    storage: Storage, folders: tuple[str, ...], early: EarlyDigests, done: threading.Event, remaining_bytes: int
) -> None:
    while not done.wait(POLL_SECONDS):
        for folder in folders:
            for path in _unseen(storage, folder, early):
                remaining_bytes -= _size(storage, path)
                if done.is_set() or remaining_bytes < 0:
                    return
                early.digest(storage, path)


def _size(storage: Storage, path: str) -> int:
    with suppress(OSError):
        return storage.stamp(path).size
    return 0


def _unseen(storage: Storage, folder: str, early: EarlyDigests) -> list[str]:
    with suppress(Exception):  # missing or invalid folders are reported by the seal
        return [path for path in finished_files(storage, folder, MIN_BYTES) if not early.contains(path)]
    return []


FILES = "_files.json"


@dataclass(frozen=True)
class Place:
    """Location of one output. `storage`: a staging URI; `folder`: relative to it."""

    output: str
    storage: str
    folder: str
    epoch: EpochColumn | None = None  #: of an output in table staging


@dataclass(frozen=True)
class SealedFile:
    """Content of a sealed file. `least`: minimum of the requested time column, in microseconds."""

    file: WalFile
    schema: pa.Schema
    digest: RowDigest
    least: int | None = None

    @classmethod
    def of(cls, name: str, size: int, sha256: str, digested: DigestedFile) -> SealedFile:
        file = WalFile(name, size, digested.rows, sha256, facts=digested.facts)
        return cls(file, digested.schema, digested.digest, digested.least)


@dataclass(frozen=True)
class FileDigest:
    """A digested file with its stamp when it was read."""

    output: str
    name: str
    stamp: Stamp
    sha256: str
    digested: DigestedFile

    def sealed(self) -> SealedFile:
        return SealedFile.of(self.name, self.stamp.size, self.sha256, self.digested)


def read_file_digest(storage: Storage, place: Place, name: str) -> FileDigest:
    """Read and digest a file. Raises `StageFailed` for an invalid file, OSError if it changes meanwhile."""
    path = f"{place.folder}/{name}"
    before = storage.stamp(path)
    content = fingerprint(storage, path)
    digested = digest_file(storage, path, content, None, place.epoch)
    after = storage.stamp(path)
    if after != before or after.size != content.size:
        raise OSError(f"{path} changed while it was read")
    return FileDigest(place.output, name, after, content.sha256, digested)


class FileDigests(Mapping[tuple[str, str], FileDigest]):
    """Digested files by output and name."""

    def __init__(self, files: Iterable[FileDigest]) -> None:
        self._files = {(file.output, file.name): file for file in files}

    def __getitem__(self, key: tuple[str, str]) -> FileDigest:
        return self._files[key]

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return iter(self._files)

    def __len__(self) -> int:
        return len(self._files)

    def to_json(self) -> Json:
        """Content of `_files.json`; each schema is stored once."""
        schemas: dict[tuple[bytes, str | None], int] = {}
        files = [_to_json(file, schemas) for file in self._files.values()]
        schema_values = [
            {"columns": base64.b64encode(columns).decode("ascii"), "epoch_column": name} for columns, name in schemas
        ]
        return {"digest_version": DIGEST_VERSION, "schemas": schema_values, "files": files}

    @classmethod
    def from_json(cls, value: Json) -> FileDigests:
        """The digests, or none if they are of another digest version."""
        if value["digest_version"] != DIGEST_VERSION:
            return cls(())
        schemas = [_Schema.read(schema) for schema in value["schemas"]]
        return cls(_from_json(file, schemas[file["schema"]]) for file in value["files"])


@dataclass(frozen=True)
class _Schema:
    """A schema shared by files."""

    columns: pa.Schema
    digest: RowDigest
    written: pa.Schema | None  #: with the epoch's column
    leaves: Leaves

    @classmethod
    def read(cls, value: Json) -> _Schema:
        columns = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(value["columns"], validate=True)))
        name = value["epoch_column"]
        written = columns.append(pa.field(name, pa.int64())) if name is not None else None
        return cls(columns, RowDigest(columns), written, leaves_of(written) if written is not None else ())


def _to_json(file: FileDigest, schemas: dict[tuple[bytes, str | None], int]) -> Json:
    digested = file.digested
    name = digested.facts.schema.names[-1] if digested.facts is not None else None
    schema = schemas.setdefault((digested.schema.serialize().to_pybytes(), name), len(schemas))
    value = {
        "output": file.output,
        "name": file.name,
        "bytes": file.stamp.size,
        "etag": file.stamp.etag,
        "sha256": file.sha256,
        "schema": schema,
        "rows": digested.rows,
        "digest": digested.digest.hexdigest(),
    }
    if digested.facts is not None:
        value["facts"] = digested.facts.to_json()
    return value


def _from_json(value: Json, schema: _Schema) -> FileDigest:
    rows, facts = value["rows"], None
    if "facts" in value:
        facts = FileFacts.from_json(value["facts"], rows, schema.written, schema.leaves)
    digest = schema.digest.of_others(rows, value["digest"])
    digested = DigestedFile(schema.columns, rows, digest, None, facts)
    return FileDigest(value["output"], value["name"], Stamp(value["bytes"], value["etag"]), value["sha256"], digested)
