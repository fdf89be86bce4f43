"""The manifest: the exact content of a sealed WAL and of keyed state. The ledger stores its sha256."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace

import pyarrow as pa

from lockstep.epoch import Json
from lockstep.errors import FormatUnknown, WalCorrupt
from lockstep.wal.file_facts import FileFacts, leaves_of
from lockstep.wal.table_staging import TableStaging

FILE_NAME = re.compile(r"[A-Za-z0-9][^/\\\x00-\x1f]*")


def text(value: Json) -> str:
    """`value` if it is a text. Raises TypeError otherwise."""
    if not isinstance(value, str):
        raise TypeError(f"expected a text, found {value!r}")
    return value


def number(value: Json) -> int:
    """`value` if it is a whole number from 0 on. Raises TypeError otherwise."""
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise TypeError(f"expected a count, found {value!r}")
    return value


@dataclass(frozen=True)
class StateFile:
    """One sealed file with rows of one bucket, written by execution `token` of `epoch`, which may be an earlier one.

    `sha256`: 64 hex digits. `digest`: as of `RowDigest`. `earliest`: minimum of the column `expires`, as ISO text in
    UTC; None without such a column or value.
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
    """One declared state after an epoch. `schema`: Spark DDL; `buckets`: number of buckets that keys are hashed into,
    by the columns `found_by`, by default the whole key."""

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
        """Number of rows, one per key."""
        return sum(file.rows for file in self.files)

    @property
    def bytes(self) -> int:
        """Total size of the files."""
        return sum(file.bytes for file in self.files)


@dataclass(frozen=True)
class SealedState:
    """All states of an epoch. `based_on`: manifest hash of the preceding epoch, "" if there is none.

    `keep`: number of further published epochs for which this version is kept. `savepoint`: hash of the savepoint, in
    the first epoch after a start from one.
    """

    based_on: str
    keep: int
    versions: Mapping[str, StateVersion]
    savepoint: str | None = None

    def files(self) -> list[tuple[str, StateFile]]:
        """All files with the name of their state."""
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
    """State from `state_to_json`. Raises KeyError, TypeError, ValueError."""
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
        tuple(_state_file_of(file) for file in value["files"]),
        tuple(map(text, value.get("found_by", ()))),
    )


def finding(key: Sequence[str], found_by: Sequence[str]) -> Json:
    """JSON of `found_by`: omitted if it is the key."""
    return {"found_by": list(found_by)} if tuple(found_by) != tuple(key) else {}


def _state_file_of(value: Json) -> StateFile:
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


MANIFEST_FORMAT = 1


def canonical(value: Json) -> bytes:
    """Canonical JSON: sorted keys, no spaces, ASCII. Raises ValueError for NaN and infinities."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False).encode("ascii")


def bare(schema: pa.Schema) -> pa.Schema:
    """`schema` without metadata: names, types and nullability."""
    return pa.schema([column.remove_metadata() for column in schema])


@dataclass(frozen=True)
class WalFile:
    """One sealed file. `path` is relative to the output's folder, `sha256` 64 hex digits."""

    path: str
    bytes: int
    rows: int
    sha256: str
    etag: str | None = None  #: of these bytes; in table staging
    facts: FileFacts | None = None  #: in table staging, see `Manifest.facts`

    def __post_init__(self) -> None:
        if not FILE_NAME.fullmatch(self.path):
            raise WalCorrupt(f"manifest names the file {self.path!r}: expected a plain name inside its output's folder")


@dataclass(frozen=True)
class OutputManifest:
    """One output. `digest`: of `RowDigest` over the rows of all files.

    `home`: the table staging that has the files, if they are not in the WAL's folder; `schema` and `digest` exclude
    their epoch column.
    """

    name: str
    schema: pa.Schema
    rows: int
    digest: str
    files: tuple[WalFile, ...]
    home: TableStaging | None = None

    @property
    def bytes(self) -> int:
        """Total size of the files."""
        return sum(file.bytes for file in self.files)

    @property
    def columns(self) -> str:
        """Hash of names, types and nullability in order, 16 hex digits."""
        description = "\n".join(f"{c.name}\t{c.type}\t{c.nullable}" for c in self.schema)
        return hashlib.sha256(description.encode()).hexdigest()[:16]

    def summary(self) -> Json:
        """Summary for the ledger."""
        counts = {"rows": self.rows, "bytes": self.bytes, "files": len(self.files)}
        return {**counts, "digest": self.digest, "columns": self.columns}


@dataclass(frozen=True)
class SourceCount:
    """Rows read from one source, and those quarantined."""

    rows: int
    quarantined: int = 0


@dataclass(frozen=True)
class Quarantined:
    """Rows of an output quarantined before the seal. `audits`: number of offending rows per audit; a row may offend
    several. `sealed` None: there are no rows."""

    audits: Mapping[str, int]
    sealed: OutputManifest | None = None

    @property
    def rows(self) -> int:
        return self.sealed.rows if self.sealed else 0

    def summary(self) -> Json:
        """Summary for the ledger."""
        return {**(self.sealed.summary() if self.sealed else {"rows": 0}), "audits": dict(self.audits)}


@dataclass(frozen=True)
class Manifest:
    """Content sealed by one execution of `stage`, whose token is `token`.

    `facts`: sha256 of `_facts.json`, 64 hex digits. `rows_in`: WAL of an earlier generation whose files are referenced
    for outputs outside table staging.
    """

    deployment: str
    pipeline: str
    epoch: int
    token: int
    outputs: Mapping[str, OutputManifest]
    sources: Mapping[str, SourceCount]
    digest_version: int
    state: SealedState | None = None
    balances: Mapping[str, Mapping[str, int]] = field(default_factory=dict)  #: compared counts, by name
    facts: str | None = None
    quarantined: Mapping[str, Quarantined] = field(default_factory=dict)  #: by output whose rows audits may quarantine
    rows_in: str | None = None
    _bytes: bytes = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_bytes", canonical(_to_json(self)))

    def to_bytes(self) -> bytes:
        """Canonical JSON; for a manifest that was read, the original bytes."""
        return self._bytes

    @property
    def hash(self) -> str:
        """sha256 of `to_bytes()`, 64 hex digits."""
        return hashlib.sha256(self._bytes).hexdigest()

    @classmethod
    def from_bytes(cls, data: bytes) -> Manifest:
        """Parse a manifest. Raises `WalCorrupt` for invalid data, `FormatUnknown` for a newer format."""
        try:
            value = json.loads(data)
            version = value["format"]
            if version == MANIFEST_FORMAT:
                manifest = _from_json(value)
        except (ValueError, KeyError, TypeError, AttributeError, OSError) as error:
            raise WalCorrupt(f"the manifest can't be parsed: {type(error).__name__}: {error}") from error
        if version != MANIFEST_FORMAT:
            raise FormatUnknown(f"manifest has format {version!r}, this Lockstep reads {MANIFEST_FORMAT}: upgrade it")
        object.__setattr__(manifest, "_bytes", data)  # other versions of pyarrow may serialize the schema differently
        return manifest

    def summary(self) -> Json:
        """Summary that stays in the ledger after cleanup: rows, digest, bytes and columns per output; counts per
        source; rows, bytes and buckets per state; compared counts; quarantined rows per output."""
        summary: dict[str, Json] = {
            "digest_version": self.digest_version,
            "outputs": {name: output.summary() for name, output in self.outputs.items()},
            "sources": {name: _count(count) for name, count in self.sources.items()},
        }
        if self.state is not None:
            summary["state"] = self.state.summary()
        if self.balances:
            summary["balances"] = {name: dict(counts) for name, counts in self.balances.items()}
        if self.quarantined:
            summary["quarantined"] = {name: quarantined.summary() for name, quarantined in self.quarantined.items()}
        return summary


def _to_json(manifest: Manifest) -> Json:
    value: dict[str, Json] = {
        "format": MANIFEST_FORMAT,
        "deployment": manifest.deployment,
        "pipeline": manifest.pipeline,
        "epoch": manifest.epoch,
        "token": manifest.token,
        "digest_version": manifest.digest_version,
        "outputs": {name: _output(output) for name, output in manifest.outputs.items()},
        "sources": {name: _count(count) for name, count in manifest.sources.items()},
    }
    if manifest.state is not None:
        value["state"] = state_to_json(manifest.state)
    if manifest.rows_in is not None:
        value["rows_in"] = manifest.rows_in
    if manifest.balances:
        value["balances"] = {name: dict(counts) for name, counts in manifest.balances.items()}
    if manifest.facts is not None:
        value["facts"] = manifest.facts
    if manifest.quarantined:
        value["quarantined"] = {
            name: {
                "audits": dict(quarantined.audits),
                "sealed": _output(quarantined.sealed) if quarantined.sealed else None,
            }
            for name, quarantined in manifest.quarantined.items()
        }
    return value


def _output(output: OutputManifest) -> Json:
    return {
        "schema": base64.b64encode(output.schema.serialize().to_pybytes()).decode("ascii"),
        "rows": output.rows,
        "digest": output.digest,
        "files": [_file(file) for file in output.files],
        **({"home": output.home.to_json()} if output.home else {}),
    }


def _file(file: WalFile) -> Json:
    value: dict[str, Json] = {"path": file.path, "bytes": file.bytes, "rows": file.rows, "sha256": file.sha256}
    if file.etag is not None:
        value["etag"] = file.etag
    return value


def _count(count: SourceCount) -> Json:
    return {"rows": count.rows, "quarantined": count.quarantined}


def _from_json(value: Json) -> Manifest:
    return Manifest(
        deployment=text(value["deployment"]),
        pipeline=text(value["pipeline"]),
        epoch=number(value["epoch"]),
        token=number(value["token"]),
        outputs={name: _output_of(name, output) for name, output in value["outputs"].items()},
        sources={
            name: SourceCount(number(count["rows"]), number(count["quarantined"]))
            for name, count in value["sources"].items()
        },
        digest_version=number(value["digest_version"]),
        state=state_of(value["state"]) if "state" in value else None,
        balances={
            name: {part: number(count) for part, count in counts.items()}
            for name, counts in value.get("balances", {}).items()
        },
        facts=text(value["facts"]) if "facts" in value else None,
        quarantined={
            name: _quarantined_of(name, quarantined) for name, quarantined in value.get("quarantined", {}).items()
        },
        rows_in=text(value["rows_in"]) if "rows_in" in value else None,
    )


def _quarantined_of(output: str, value: Json) -> Quarantined:
    audits = {name: number(rows) for name, rows in value["audits"].items()}
    return Quarantined(audits, _output_of(output, value["sealed"]) if value["sealed"] else None)


def _output_of(name: str, value: Json) -> OutputManifest:
    schema = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(value["schema"], validate=True)))
    home = TableStaging.from_json(value["home"]) if "home" in value else None
    files = tuple(map(_file_of, value["files"]))
    return OutputManifest(name, schema, number(value["rows"]), text(value["digest"]), files, home)


def _file_of(value: Json) -> WalFile:
    etag = text(value["etag"]) if "etag" in value else None
    return WalFile(text(value["path"]), number(value["bytes"]), number(value["rows"]), text(value["sha256"]), etag)


FACTS = "_facts.json"


def facts_of(outputs: Mapping[str, OutputManifest]) -> bytes | None:
    """Content of `_facts.json` for these outputs; None without table staging."""
    facts = {name: _facts_of(output) for name, output in outputs.items() if output.home is not None}
    return canonical(facts) if facts else None


def _facts_of(output: OutputManifest) -> Json:
    return {file.path: file.facts.to_json() for file in output.files if file.facts is not None}


def without_facts(outputs: Mapping[str, OutputManifest]) -> dict[str, OutputManifest]:
    """The outputs without facts, as in the manifest."""
    return {
        name: replace(output, files=tuple(replace(file, facts=None) for file in output.files))
        for name, output in outputs.items()
    }


class NotedFacts:
    """Facts of `_facts.json`. Raises `WalCorrupt` unless `data` has the manifest's hash."""

    def __init__(self, path: str, data: bytes, sha256: str) -> None:
        self._path, actual = path, hashlib.sha256(data).hexdigest()
        if actual != sha256:
            raise WalCorrupt(f"{path}: sha256 found {actual}, the manifest has {sha256}")
        self._facts_by_output: dict[str, dict[str, Json]] = json.loads(data)

    def of(self, output: OutputManifest) -> dict[str, FileFacts]:
        """Facts of each file of an output by name. Raises `WalCorrupt` for a missing one."""
        schema = output.schema.append(pa.field(output.home.epoch_column, pa.int64())) if output.home else output.schema
        leaves = leaves_of(schema)
        try:
            facts = self._facts_by_output[output.name]
            return {
                file.path: FileFacts.from_json(facts[file.path], file.rows, schema, leaves) for file in output.files
            }
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise WalCorrupt(f"{self._path} can't be understood: {type(error).__name__}: {error}") from error
