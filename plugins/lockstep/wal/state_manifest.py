"""What a manifest says of keyed state: which files, of this epoch or of older ones, are each state's version."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from lockstep.epoch import Json
from lockstep.errors import WalCorrupt
from lockstep.wal._manifest_values import FILE_NAME, number, text


@dataclass(frozen=True)
class StateFile:
    """One sealed file: rows of one bucket, written by execution `token` of `epoch`, which may be an earlier one.

    `sha256`: 64 hex digits. `digest`: of its rows, as `RowDigest` gives it. `earliest`: the smallest value of the
    column `expires`, as ISO text in UTC; None if the state has no such column, or only nulls in it.
    """

    epoch: int
    token: int
    bucket: int
    path: str
    bytes: int
    rows: int
    sha256: str
    digest: str
    earliest: str | None = None

    def __post_init__(self) -> None:
        if not FILE_NAME.fullmatch(self.path):
            raise WalCorrupt(f"manifest names the state file {self.path!r}: expected a plain name inside its folder")


@dataclass(frozen=True)
class StateVersion:
    """One declared state as an epoch left it. `schema`: Spark DDL; `buckets`: how many its keys are hashed into, by
    the columns `found_by` of the key, all of it unless said."""

    schema: str
    key: tuple[str, ...]
    buckets: int
    expires: str | None
    files: tuple[StateFile, ...]
    found_by: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "found_by", self.found_by or self.key)

    @property
    def rows(self) -> int:
        """Keys that have a row."""
        return sum(file.rows for file in self.files)

    @property
    def bytes(self) -> int:
        """Size of all files together, whichever epochs wrote them."""
        return sum(file.bytes for file in self.files)


@dataclass(frozen=True)
class SealedState:
    """All states of an epoch. `based_on`: the manifest hash of the epoch before, "" where there is none.

    `keep`: for how many further published epochs this version is kept. `savepoint`: hash of the savepoint it began
    with, in the first epoch after a start from one.
    """

    based_on: str
    keep: int
    versions: Mapping[str, StateVersion]
    savepoint: str | None = None

    def files(self) -> list[tuple[str, StateFile]]:
        """Every file with the name of its state."""
        return [(name, file) for name, version in self.versions.items() for file in version.files]

    def summary(self) -> Json:
        """Rows, bytes and buckets of each state, for the ledger."""
        return {
            name: {"rows": version.rows, "bytes": version.bytes, "buckets": version.buckets}
            for name, version in self.versions.items()
        }


def state_to_json(state: SealedState) -> Json:
    return {
        "based_on": state.based_on,
        "keep": state.keep,
        "savepoint": state.savepoint,
        "versions": {name: version_to_json(version) for name, version in state.versions.items()},
    }


def state_of(value: Json) -> SealedState:
    """Raises KeyError, TypeError and ValueError for what `state_to_json` didn't write."""
    return SealedState(
        text(value["based_on"]),
        number(value["keep"]),
        {name: version_of(version) for name, version in value["versions"].items()},
        _optional(value["savepoint"]),
    )


def version_to_json(version: StateVersion) -> Json:
    return {
        "schema": version.schema,
        "key": list(version.key),
        "buckets": version.buckets,
        "expires": version.expires,
        "files": [asdict(file) for file in version.files],
        **finding(version.key, version.found_by),
    }


def version_of(value: Json) -> StateVersion:
    return StateVersion(
        text(value["schema"]),
        tuple(map(text, value["key"])),
        number(value["buckets"]),
        _optional(value["expires"]),
        tuple(_file_of(file) for file in value["files"]),
        tuple(map(text, value.get("found_by", ()))),
    )


def finding(key: Sequence[str], found_by: Sequence[str]) -> Json:
    """What JSON says of `found_by`: nothing where it is the key, as older versions had it."""
    return {"found_by": list(found_by)} if tuple(found_by) != tuple(key) else {}


def _file_of(value: Json) -> StateFile:
    return StateFile(
        number(value["epoch"]),
        number(value["token"]),
        number(value["bucket"]),
        text(value["path"]),
        number(value["bytes"]),
        number(value["rows"]),
        text(value["sha256"]),
        text(value["digest"]),
        _optional(value["earliest"]),
    )


def _optional(value: Json) -> str | None:
    return None if value is None else text(value)
