"""Reading a sealed WAL, in the task or in Spark's executors. Every read verifies the files and fails closed.

`read_files` and `read_sealed` reach executors by value, with this package. Executors need pyarrow and numpy, obstore
with credentials from the environment for an object store, and hdfs-native for HDFS.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa

from lockstep.crash import CrashPoint, reach
from lockstep.errors import InvalidPipeline, StagingUnavailable, WalCorrupt
from lockstep.wal._storage import Stamp, Storage, naming_errors
from lockstep.wal.file_digests import FileDigests, Place, read_file_digest
from lockstep.wal.file_facts import FileFacts
from lockstep.wal.manifest import FACTS, Manifest, NotedFacts, OutputManifest, WalFile, bare
from lockstep.wal.parquet import Fingerprint, ParquetRows, ParquetWriter, fingerprint
from lockstep.wal.storages import storage_at
from lockstep.wal.table_staging import TableStaging, TableStagingFolders, with_field_ids


@dataclass(frozen=True)
class SealedWal:
    """A WAL whose manifest has the hash in the ledger."""

    storage: Storage
    folder: str
    manifest: Manifest
    find_home: Callable[[TableStaging, Manifest], tuple[Storage, str]]

    def outputs(self, names: Iterable[str]) -> list[OutputBatches]:
        """Rows of each named output. Raises `InvalidPipeline` for an unknown name."""
        return [self._batches(self._output(name)) for name in names]

    def check(self, names: Iterable[str] | None = None) -> None:
        """Compare size, sha256 and rows of every file, or those of the named outputs, and the facts. Raises
        `WalCorrupt`, `StagingUnavailable`."""
        if self.manifest.facts is not None:
            _ = self._noted
        for output in self.outputs(self.manifest.outputs if names is None else names):
            output.check()

    @property
    def own(self) -> list[str]:
        """Outputs whose files are in this folder, neither in table staging nor in a referenced WAL."""
        return self.staged if self.manifest.rows_in is None else []

    @property
    def staged(self) -> list[str]:
        """Outputs whose files are in staging."""
        return [name for name, output in self.manifest.outputs.items() if output.home is None]

    def _batches(self, output: OutputManifest) -> OutputBatches:
        home = output.home
        own = self.storage, self.manifest.rows_in or self.folder
        storage, folder = own if home is None else self.find_home(home, self.manifest)
        noted = self._facts_of if self.manifest.facts is not None and home is not None else None
        return OutputBatches(storage, f"{folder}/{output.name}", output, noted)

    @cached_property
    def _noted(self) -> NotedFacts:
        path, sha256 = f"{self.folder}/{FACTS}", self.manifest.facts or ""
        try:
            return NotedFacts(path, _read(self.storage, path, fresh=False), sha256)
        except WalCorrupt:  # may be a stale page of a network file system
            return NotedFacts(path, _read(self.storage, path, fresh=True), sha256)

    def _facts_of(self, output: OutputManifest) -> Mapping[str, FileFacts]:
        return self._noted.of(output)

    def _output(self, name: str) -> OutputManifest:
        if name not in self.manifest.outputs:
            has = ", ".join(sorted(self.manifest.outputs))
            raise InvalidPipeline(f"the WAL {self.folder} has no output {name!r}, it has {has}")
        return self.manifest.outputs[name]


@dataclass(frozen=True)
class AdoptableWalFile:
    """A sealed file in table staging; satisfies `lockstep.sinks.values.AdoptableFile`."""

    path: str  #: relative to the table's folder
    uri: str
    bytes: int
    rows: int
    sha256: str
    etag: str | None


class OutputBatches:
    """Rows of one output; satisfies `lockstep.sinks.values.Batches`. Every iteration reads and verifies anew.

    A row is returned only after size, sha256, schema and row count of its file matched the manifest, and from the
    hashed bytes (`lockstep.wal.parquet`). A differing file is read once more, bypassing caches where possible, before
    `WalCorrupt` is raised. An iteration without an error has returned exactly the manifest's rows. Batches have at most
    65,536 rows.
    """

    def __init__(
        self,
        storage: Storage,
        folder: str,
        manifest: OutputManifest,
        noted: Callable[[OutputManifest], Mapping[str, FileFacts]] | None = None,
    ) -> None:
        self._storage, self._folder, self._manifest, self._noted = storage, folder, manifest, noted
        self.output: str = manifest.name
        self.schema: pa.Schema = manifest.schema
        self.rows: int = manifest.rows

    @property
    def home(self) -> TableStaging | None:
        return self._manifest.home

    @cached_property
    def files(self) -> tuple[AdoptableWalFile, ...]:
        """All files of an output in table staging; empty for others, which can't be adopted."""
        home, paths = self.home, [f"{self._folder}/{file.path}" for file in self._manifest.files]
        if home is None:
            return ()
        files = zip(paths, self._manifest.files, strict=True)
        return tuple(
            AdoptableWalFile(path, home.uri_of(path), sealed.bytes, sealed.rows, sealed.sha256, sealed.etag)
            for path, sealed in files
        )

    def facts(self) -> Iterator[tuple[AdoptableWalFile, FileFacts]]:
        """Each file in table staging with its sealed column facts, without opening it. Raises `WalCorrupt`,
        `StagingUnavailable`."""
        assert self._noted is not None
        noted = self._noted(self._manifest)
        return zip(self.files, (noted[file.path] for file in self._manifest.files), strict=True)

    def check_listed(self) -> None:
        """Compare names and sizes with one listing of the folder. Files without a matching etag are read and their
        sha256 compared. Raises `WalCorrupt`, `StagingUnavailable`."""
        stamps = self._stamps()
        for file in self._manifest.files:
            path, stamp = f"{self._folder}/{file.path}", stamps.get(file.path)
            if stamp is None:
                raise _missing(self._storage, path)
            self._compare(file.path, "bytes", stamp.size, file.bytes)
            if stamp.etag != file.etag and file.etag is not None:
                verify_file(self._storage, path, file.bytes, file.sha256)

    def _stamps(self) -> dict[str, Stamp]:
        with naming_damage(self._storage, self._folder):
            return self._storage.stamps(self._folder)

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        return self.of_columns(self.schema.names)

    def of_columns(self, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Rows with these columns, in the schema's order; other columns aren't parsed."""
        total, schema = 0, pa.schema([self.schema.field(name) for name in names])
        for file in self._manifest.files:
            with self._open(file) as rows:
                seen = 0
                for batch in rows.batches(schema, None if schema.equals(self.schema) else names):
                    seen += batch.num_rows
                    yield batch
            self._compare(file.path, "rows", seen, file.rows)
            total += seen
        self._compare("all files", "rows", total, self.rows)

    def by_file(self) -> Iterator[tuple[str, Iterator[pa.RecordBatch]]]:
        """Name and rows of each file. Read each before requesting the next."""
        for file in self._manifest.files:
            with self._open(file) as rows:
                yield file.path, rows.batches(self.schema)

    def check(self) -> None:
        """Verify as an iteration does, up to each file's footer; objects with the sealed etag aren't read. Raises
        `WalCorrupt`, `StagingUnavailable`."""
        compares_etags = self._storage.etags_prove and any(file.etag for file in self._manifest.files)
        stamps = self._stamps() if compares_etags else {}
        for file in self._manifest.files:
            if file.etag is None or stamps.get(file.path) != Stamp(file.bytes, file.etag):
                self._open(file).close()
        self._compare("all files", "rows", sum(file.rows for file in self._manifest.files), self.rows)

    def _open(self, file: WalFile) -> ParquetRows:
        path = f"{self._folder}/{file.path}"
        rows = ParquetRows(self._storage, path, verify_file(self._storage, path, file.bytes, file.sha256))
        try:
            self._compare(file.path, "rows in the footer", rows.rows, file.rows)
            self._require_schema(file.path, rows.schema)
        except WalCorrupt:
            rows.close()
            raise
        return rows

    def _require_schema(self, path: str, schema: pa.Schema) -> None:
        columns = bare(schema)
        if self.home is not None and columns.names[-1:] == [self.home.epoch_column]:
            columns = columns.remove(len(columns) - 1)
        if not columns.equals(self.schema):
            self._differs(path, "schema", schema.to_string(), self.schema.to_string())

    def _compare(self, path: str, what: str, actual: object, expected: object) -> None:
        if actual != expected:
            self._differs(path, what, actual, expected)

    def _differs(self, path: str, what: str, actual: object, expected: object) -> None:
        raise WalCorrupt(f"{self._folder}/{path}: {what} found {actual}, the manifest has {expected}")


class UnsealedFile:
    """Rows of one file before the seal; satisfies `lockstep.sinks.values.Batches`.

    The rows come from the bytes described by `file`, which must be compared with the manifest after the seal. Raises
    `WalCorrupt` for an invalid Parquet file, `StagingUnavailable`.
    """

    def __init__(self, storage: Storage, folder: str, output: str, name: str) -> None:
        self.output = output
        self._storage, self._path = storage, f"{folder}/{output}/{name}"
        with naming_errors("read", self._path):
            self._hashed = fingerprint(storage, self._path)
        with self._parsed() as rows:
            self.schema: pa.Schema = bare(rows.schema)
            self.rows: int = rows.rows
        self.file = WalFile(name, self._hashed.size, self.rows, self._hashed.sha256)

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        with self._parsed() as rows:
            yield from rows.batches(self.schema)

    def _parsed(self) -> ParquetRows:
        return ParquetRows(self._storage, self._path, self._hashed)


def _read(storage: Storage, path: str, fresh: bool) -> bytes:
    with naming_damage(storage, path), closing(storage.open(path, fresh)) as file:
        return file.read()


def verify_file(storage: Storage, path: str, size: int, sha256: str) -> Fingerprint:
    """Fingerprint of the file. Raises `WalCorrupt` unless size and sha256 match."""
    try:
        return _hash_file(storage, path, size, sha256, fresh=False)
    except WalCorrupt:  # may be a stale page of a network file system
        return _hash_file(storage, path, size, sha256, fresh=True)


def _hash_file(storage: Storage, path: str, size: int, sha256: str, fresh: bool) -> Fingerprint:
    with naming_damage(storage, path):
        content = fingerprint(storage, path, fresh)
    for what, value, expected in (("bytes", content.size, size), ("sha256", content.sha256, sha256)):
        if value != expected:
            raise WalCorrupt(f"{path}: {what} found {value}, the manifest has {expected}")
    return content


@contextmanager
def naming_damage(storage: Storage, path: str) -> Iterator[None]:
    """Convert errors on a sealed file: a missing file raises `WalCorrupt`; if the pipeline's folder is missing, too,
    staging isn't mounted, which raises `StagingUnavailable`."""
    with naming_errors("read", path):
        try:
            yield
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError) as error:
            raise _missing(storage, path) from error


def _missing(storage: Storage, path: str) -> WalCorrupt | StagingUnavailable:
    home = "/".join(path.split("/")[:2])
    if storage.exists(home):
        return WalCorrupt(f"{path} is missing, though it was sealed")
    return StagingUnavailable(f"staging has no {home}, where {path} was sealed: check the mount and the URI")


def rewrite_for_table(
    folders: TableStagingFolders, rows: OutputBatches, home: TableStaging, epoch: int, token: int
) -> None:
    """Write sealed rows to table staging, one file for each file of `rows`, in the same order and with the epoch
    column. Each file is verified and held in memory. Raises `WalCorrupt`, `StagingUnavailable`."""
    for name, batches in rows.by_file():
        path = f"{folders.folder(epoch, token)}/{rows.output}/{name}"
        columns = rows.schema.append(pa.field(home.epoch_column, pa.int64()))
        written = _parquet(batches, with_field_ids(columns, home.ids_of(columns.names)), epoch)
        reach(CrashPoint.STAGE_BEFORE_COPY)
        with naming_errors("write", path):
            folders.storage.put(path, written)
        reach(CrashPoint.STAGE_AFTER_COPY)


def _parquet(batches: Iterator[pa.RecordBatch], schema: pa.Schema, epoch: int) -> bytes:
    with pa.BufferOutputStream() as target:
        with ParquetWriter(target, schema, compression="zstd") as writer:
            for batch in batches:
                number = pa.repeat(pa.scalar(epoch, pa.int64()), batch.num_rows)
                writer.write_batch(pa.RecordBatch.from_arrays([*batch.columns, number], schema=schema))
        content: bytes = target.getvalue().to_pybytes()
    return content


DIGESTS_SCHEMA = "found STRING, error STRING"


def read_files(places: Sequence[Place], batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """For each row (index of a place, name of a file), `FileDigests` as JSON or an error, as `DIGESTS_SCHEMA`."""
    for batch in batches:
        for number, name in zip(*batch.to_pydict().values(), strict=True):
            digests, error = _read_digests(places[number], name)
            yield pa.RecordBatch.from_pydict(
                {"found": pa.array([digests], pa.string()), "error": pa.array([error], pa.string())}
            )


@dataclass(frozen=True)
class Sealed:
    """Files of one sealed output. `storage`: a staging URI; `schema`: of every file."""

    storage: str
    folder: str
    schema: pa.Schema
    files: Sequence[WalFile]


def read_sealed(sealed: Sealed, columns: Sequence[str], batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """For each row (index of a file, name), the file's rows with these columns, verified against the manifest. Used in
    executors, since `OutputBatches` can't be pickled. Raises `WalCorrupt`."""
    storage, schema = storage_at(sealed.storage), pa.schema([sealed.schema.field(name) for name in columns])
    for batch in batches:
        for number in batch.column(0).to_pylist():
            file = sealed.files[number]
            path = f"{sealed.folder}/{file.path}"
            with ParquetRows(storage, path, verify_file(storage, path, file.bytes, file.sha256)) as rows:
                if rows.rows != file.rows or not bare(rows.schema).equals(sealed.schema):
                    raise WalCorrupt(f"{path}: rows or schema aren't those of the manifest")
                yield from rows.batches(schema, None if schema.equals(sealed.schema) else columns)


def _read_digests(place: Place, name: str) -> tuple[str | None, str | None]:
    try:
        digests = FileDigests([read_file_digest(storage_at(place.storage), place, name)])
    except Exception as error:  # the task then reads the file and reports the error
        return None, f"{place.folder}/{name}: {type(error).__name__}: {error}"
    return json.dumps(digests.to_json()), None
