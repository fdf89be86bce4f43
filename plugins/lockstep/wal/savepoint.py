"""Savepoints: the source positions after one epoch and its state, in a separate folder.

Like Flink's canonical savepoints, a savepoint is a full copy without dependencies. A pipeline started from it continues
after that epoch. `<folder>/_savepoint.json` is written last; a folder without it is no savepoint.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, replace

from lockstep.epoch import Json, Position
from lockstep.errors import FormatUnknown, StagingRefused, WalCorrupt
from lockstep.wal._storage import Storage, naming_errors
from lockstep.wal.manifest import StateFile, StateVersion, canonical, number, text, version_of, version_to_json
from lockstep.wal.state_staging import BUCKET, StateStaging, read_checked
from lockstep.wal.storages import storage_at

SAVEPOINT_FORMAT = 1
NAME = "_savepoint.json"
START = 0  #: number and token of an epoch before the first


@dataclass(frozen=True)
class Savepoint:
    """`positions`: end of each source's range. `manifest_hash`: of the epoch it was taken from. `versions`: by state,
    empty for a pipeline without state."""

    deployment: str
    pipeline: str
    epoch: int
    manifest_hash: str
    positions: Mapping[str, Position]
    versions: Mapping[str, StateVersion]

    @property
    def hash(self) -> str:
        """sha256 of the JSON, 64 hex digits."""
        return hashlib.sha256(canonical(self.to_json())).hexdigest()

    def to_json(self) -> Json:
        return {
            "format": SAVEPOINT_FORMAT,
            "deployment": self.deployment,
            "pipeline": self.pipeline,
            "epoch": self.epoch,
            "manifest_hash": self.manifest_hash,
            "positions": dict(self.positions),
            "versions": {name: version_to_json(version) for name, version in self.versions.items()},
        }

    @classmethod
    def from_json(cls, value: Json) -> Savepoint:
        """Parse a savepoint. Raises `WalCorrupt` for invalid data, `FormatUnknown` for a newer format."""
        try:
            if value["format"] != SAVEPOINT_FORMAT:
                raise FormatUnknown(
                    f"savepoint has format {value['format']!r}, this Lockstep reads {SAVEPOINT_FORMAT}: upgrade it"
                )
            return cls(
                text(value["deployment"]),
                text(value["pipeline"]),
                number(value["epoch"]),
                text(value["manifest_hash"]),
                dict(value["positions"]),
                {name: version_of(version) for name, version in value["versions"].items()},
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise WalCorrupt(f"this is no savepoint: {type(error).__name__}: {error}") from error


def write_savepoint(savepoint: Savepoint, states: StateStaging, uri: str) -> Savepoint:
    """Copy and verify every file of `savepoint` from staging to the folder `uri`, then write the description.

    Raises `StagingRefused` if there is a savepoint already, `WalCorrupt` unless a file is as sealed. Holds one file,
    which is one bucket, in memory.
    """
    target = storage_at(uri)
    if target.exists(NAME):
        raise StagingRefused(f"{uri} contains a savepoint already: use another folder")
    versions = {
        name: replace(version, files=tuple(_copied(states, name, file, target) for file in version.files))
        for name, version in savepoint.versions.items()
    }
    written = replace(savepoint, versions=versions)
    with naming_errors("write", f"{uri}/{NAME}"):
        target.replace(NAME, canonical(written.to_json()))
    return written


def _moved(file: StateFile) -> StateFile:
    """The file as named in a savepoint."""
    return replace(file, epoch=START, token=START, path=f"{file.epoch}-{file.token}-{file.path}")


def _copied(states: StateStaging, name: str, file: StateFile, target: Storage) -> StateFile:
    moved = _moved(file)
    content = read_checked(states.storage, states.path_of(name, file), file)
    path = _path_of(name, moved)
    with naming_errors("write", path):
        target.replace(path, content)
    return moved


def read_savepoint(uri: str) -> Savepoint:
    """The savepoint in the folder `uri`. Raises `StagingRefused` if there is none, `WalCorrupt`."""
    storage = storage_at(uri)
    with naming_errors("read", f"{uri}/{NAME}"):
        if not storage.exists(NAME):
            raise StagingRefused(f"{uri} contains no savepoint: {NAME} is missing")
        with closing(storage.open(NAME)) as file:
            data = file.read()
    try:
        return Savepoint.from_json(json.loads(data))
    except ValueError as error:
        raise WalCorrupt(f"{uri}/{NAME} isn't JSON: {error}") from error


def import_savepoint(savepoint: Savepoint, uri: str, states: StateStaging) -> None:
    """Copy and verify the savepoint's files into staging, as those of an epoch before the first. Idempotent."""
    source = storage_at(uri)
    for name, file in files_of(savepoint):
        content = read_checked(source, _path_of(name, file), file)
        path = states.path_of(name, file)
        with naming_errors("write", path):
            states.storage.replace(path, content)


def restore_state_files(
    savepoint: Savepoint, uri: str, versions: Mapping[str, StateVersion], states: StateStaging
) -> int:
    """Copy missing or damaged files of `versions` from their savepoint into staging; returns their number. Idempotent.
    Raises `WalCorrupt` if the savepoint lacks one of the files."""
    saved_files, copied = set(files_of(savepoint)), 0
    files = [(name, file) for name, version in versions.items() for file in version.files]
    if missing := [name for name, file in files if (name, _moved(file)) not in saved_files]:
        raise WalCorrupt(f"{uri} lacks files of the state {', '.join(sorted(set(missing)))} as it was sealed")
    source = storage_at(uri)
    for name, file in files:
        try:
            states.check(name, [file])
        except WalCorrupt:
            content, path = read_checked(source, _path_of(name, _moved(file)), file), states.path_of(name, file)
            with naming_errors("write", path):
                states.storage.replace(path, content)
            copied += 1
    return copied


def files_of(savepoint: Savepoint) -> Iterator[tuple[str, StateFile]]:
    """All files with the name of their state."""
    for name, version in savepoint.versions.items():
        for file in version.files:
            yield name, file


def _path_of(name: str, file: StateFile) -> str:
    return f"{name}/{BUCKET}={file.bucket}/{file.path}"
