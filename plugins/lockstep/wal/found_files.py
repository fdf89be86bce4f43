"""What Spark's executors have found the files of an execution to hold, for the task that seals them.

The task believes it of a file only where its own listing names the very bytes that were read, by size and etag; any
other one it reads itself.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa

from lockstep.epoch import Json
from lockstep.wal._early_digests import DigestedFile, EpochColumn, digest_file
from lockstep.wal._parquet import fingerprint
from lockstep.wal._storage import Stamp, Storage
from lockstep.wal.digest import DIGEST_VERSION, RowDigest
from lockstep.wal.file_facts import FileFacts, Leaves, leaves_of
from lockstep.wal.manifest import WalFile

FILES = "_files.json"


@dataclass(frozen=True)
class Place:
    """Where one output was written. `storage`: a URI as staging takes it; `folder`: relative to that."""

    output: str
    storage: str
    folder: str
    epoch: EpochColumn | None = None  #: of an output that a table adopts


@dataclass(frozen=True)
class SealedFile:
    """What a file was found to hold. `least`: the smallest time in the column that was asked about, in microseconds."""

    file: WalFile
    schema: pa.Schema
    digest: RowDigest
    least: int | None = None

    @classmethod
    def of(cls, name: str, size: int, sha256: str, digested: DigestedFile) -> SealedFile:
        file = WalFile(name, size, digested.rows, sha256, facts=digested.facts)
        return cls(file, digested.schema, digested.digest, digested.least)


@dataclass(frozen=True)
class FoundFile:
    """One file, and by which stamp it was known when it was read."""

    output: str
    name: str
    stamp: Stamp
    sha256: str
    digested: DigestedFile

    def sealed(self) -> SealedFile:
        return SealedFile.of(self.name, self.stamp.size, self.sha256, self.digested)


def find_file(storage: Storage, place: Place, name: str) -> FoundFile:
    """Read a file. Raises `StageFailed` for what is no file of an output, OSError for what changes meanwhile."""
    path = f"{place.folder}/{name}"
    before = storage.stamp(path)
    hashed = fingerprint(storage, path)
    digested = digest_file(storage, path, hashed, None, place.epoch)
    after = storage.stamp(path)
    if after != before or after.size != hashed.size:
        raise OSError(f"{path} changed while it was read")
    return FoundFile(place.output, name, after, hashed.sha256, digested)


class FoundFiles(Mapping[tuple[str, str], FoundFile]):
    """By output and name."""

    def __init__(self, files: Iterable[FoundFile]) -> None:
        self._files = {(file.output, file.name): file for file in files}

    def __getitem__(self, key: tuple[str, str]) -> FoundFile:
        return self._files[key]

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return iter(self._files)

    def __len__(self) -> int:
        return len(self._files)

    def to_json(self) -> Json:
        """What `_files.json` holds: a schema that many files have stands there once."""
        schemas: dict[tuple[bytes, str | None], int] = {}
        files = [_to_json(file, schemas) for file in self._files.values()]
        told = [
            {"columns": base64.b64encode(columns).decode("ascii"), "epoch_column": name} for columns, name in schemas
        ]
        return {"digest_version": DIGEST_VERSION, "schemas": told, "files": files}

    @classmethod
    def from_json(cls, value: Json) -> FoundFiles:
        """None of them if their digests are of another version than ours."""
        if value["digest_version"] != DIGEST_VERSION:
            return cls(())
        schemas = [_Schema.read(one) for one in value["schemas"]]
        return cls(_from_json(file, schemas[file["schema"]]) for file in value["files"])


@dataclass(frozen=True)
class _Schema:
    """What many files have in common."""

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


def _to_json(file: FoundFile, schemas: dict[tuple[bytes, str | None], int]) -> Json:
    digested = file.digested
    name = digested.facts.schema.names[-1] if digested.facts is not None else None
    schema = schemas.setdefault((digested.schema.serialize().to_pybytes(), name), len(schemas))
    told = {
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
        told["facts"] = digested.facts.to_json()
    return told


def _from_json(value: Json, schema: _Schema) -> FoundFile:
    rows, facts = value["rows"], None
    if "facts" in value:
        facts = FileFacts.from_json(value["facts"], rows, schema.written, schema.leaves)
    digest = schema.digest.of_others(rows, value["digest"])
    digested = DigestedFile(schema.columns, rows, digest, None, facts)
    return FoundFile(value["output"], value["name"], Stamp(value["bytes"], value["etag"]), value["sha256"], digested)
