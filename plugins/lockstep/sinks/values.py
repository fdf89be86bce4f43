"""Values that roles and sinks exchange: an epoch, its rows, a transaction, the marker that proves publication."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Protocol

import pyarrow as pa

from lockstep.epoch import Interval
from lockstep.errors import InvalidPipeline
from lockstep.wal.file_facts import FileFacts
from lockstep.wal.table_staging import TableStaging


class Guarantee(StrEnum):
    """How often a row of a published epoch is in the target."""

    NONE = "none"
    AT_MOST_ONCE = "at_most_once"
    AT_LEAST_ONCE = "at_least_once"
    EXACTLY_ONCE = "exactly_once"


class Publication(StrEnum):
    """How an epoch became visible in a sink; recorded in the ledger."""

    COMMITTED = "committed"  #: the prepared transaction was committed
    SENT = "sent"  #: sent from the WAL after the decision
    FOUND = "found"  #: the marker existed already
    REPAIRED = "repaired"  #: the prepared transaction was lost, the epoch was written again from the WAL
    RESOLVED = "resolved"  #: an operator declared it, see `lockstep resolve`
    CUT_OFF = "cut off"  #: an interrupted sender had begun it; at most once, so the rest is not sent


@dataclass(frozen=True)
class SinkContext:
    """The context of `Sink.open`. `connections` maps connection ids to DSNs or paths; never log its values."""

    deployment: str
    pipeline: str
    connections: Mapping[str, str]

    def dsn(self, connection: str, sink: str) -> str:
        """Return the DSN or path of `connection`. Raises `InvalidPipeline` if there is none; `sink` is for messages."""
        dsn = self.connections.get(connection)
        if dsn is None:
            available = ", ".join(map(repr, sorted(self.connections))) or "no other"
            raise InvalidPipeline(
                f"sink {sink}: no connection with the id {connection!r} was given, but {available}: add it to "
                "connections=, or correct the sink's connection="
            )
        return dsn


@dataclass(frozen=True)
class Replaced:
    """An epoch that another one replaces. It is decided and shown by every sink, and has no other replacement."""

    id: int
    manifest_hash: str  #: what its marker carries
    rows: Mapping[str, int] = field(
        default_factory=dict, hash=False
    )  #: number of sealed rows by output; an output that is missing has an unknown number
    replaced_by: int | None = None  #: in `SinkEpoch.earlier`: the epoch that has replaced it since
    foreign: bool = False  #: decided by a lost ledger, and shown by the sinks that had published it by then


@dataclass(frozen=True)
class SinkEpoch:
    """An epoch as a sink sees it. `token` is unique to this execution and names its sessions and handles.

    `replaced`: epochs whose rows have to disappear in the same step that shows this one's; their markers stay.
    `earlier`: earlier generations of the range. Their rows are gone, unless the target was restored from a backup.
    `lacking`: those of both that the target may lack even before the decision, because an operator declared them lost.
    """

    id: int
    token: int
    manifest_hash: str
    timestamp: datetime  #: when the epoch was planned; the same in every attempt
    interval: Interval | None = None
    replaced: tuple[Replaced, ...] = ()
    generation: int = 0  #: generation number of the range; 0 is the original
    root: int | None = None  #: the range's original, or the last of the epochs it replaces; None: this epoch
    earlier: tuple[Replaced, ...] = ()
    lacking: frozenset[int] = frozenset()

    @property
    def span(self) -> str | None:
        """Interval and generation as text. Markers store it, so that a range is found under any epoch number. For a
        cursor without intervals: the replaced epoch and the generation, or None."""
        if self.interval is None:
            return f"epoch/{self.replaced[0].id}/{self.generation}" if self.replaced else None
        suffix = f"/{self.generation}" if self.generation else ""
        return f"{self.interval.start.isoformat()}/{self.interval.end.isoformat()}{suffix}"


def parse_span(span: str) -> tuple[Interval, int]:
    """Return interval and generation of a `SinkEpoch.span`. Raises `ValueError`."""
    start, end, *generation = span.split("/")
    interval = Interval(datetime.fromisoformat(start), datetime.fromisoformat(end))
    return interval, int(generation[0]) if generation else 0


@dataclass(frozen=True)
class Txn:
    """A transaction of a sink, with everything needed to finish it from any process. `manifest`: 12 hex digits."""

    sink: str
    epoch: int
    token: int
    manifest: str
    handle: str


@dataclass(frozen=True)
class Marker:
    """The proof of publication, which a sink writes in the same transaction as the data."""

    epoch: int
    token: int
    manifest_hash: str
    span: str | None = None  #: see `SinkEpoch.span`
    replaced: tuple[int, ...] = ()  #: epochs whose rows it removed, if the target records that
    whole: bool = True  #: False: sending was interrupted and the rest is never sent, see `Guarantee.AT_MOST_ONCE`


@dataclass(frozen=True)
class RowStatus:
    """Numbers of an epoch's rows of one output in a table where newer rows replace older ones, by their fate."""

    own: int  #: present as they were sealed
    overwritten: int  #: the key has a newer row, of this or a later epoch
    missing: int  #: the key has no row, or an older one
    changed: int  #: present with other content than was sealed


class Presence(StrEnum):
    """How the rows of a published epoch are present in a table that has adopted them."""

    LIVE = "live"  #: in the epoch's own files
    COMPACTED = "compacted"  #: all of them, some in other files
    ROLLED_BACK = "rolled back"  #: not all of them: the table was rolled back to before the epoch
    DELETED = "deleted"  #: not all of them, and the table records no rollback


@dataclass(frozen=True)
class EpochCut:
    """The epochs that a reader is to see, the same ones in every sink: all up to `newest` except `without`."""

    newest: int
    without: tuple[int, ...] = ()

    def __contains__(self, epoch: object) -> bool:
        return isinstance(epoch, int) and epoch <= self.newest and epoch not in self.without

    def predicate(self, column: str) -> str:
        """Return an SQL condition on the epoch column; `column` is its quoted name."""
        exclude = f" AND {column} NOT IN ({', '.join(map(str, self.without))})" if self.without else ""
        return f"{column} <= {self.newest}{exclude}"


@dataclass(frozen=True)
class ReadCut:
    """How to read exactly the epochs of a cut from one output's target."""

    output: str
    target: str  #: a table's quoted name, or the location of the table or folder
    predicate: str | None = None  #: an SQL condition, for a table
    files: tuple[str, ...] | None = None  #: absolute paths
    snapshot: int | None = None  #: for a table with time travel, if a snapshot shows exactly these epochs


class Batches(Protocol):
    """The rows of one output of a sealed WAL. Each iteration reads and checks the files again; nothing is cached."""

    @property
    def output(self) -> str: ...

    @property
    def schema(self) -> pa.Schema: ...

    @property
    def rows(self) -> int: ...

    def __iter__(self) -> Iterator[pa.RecordBatch]: ...


class AdoptableFile(Protocol):
    """One sealed Parquet file below the table that is to adopt it. The table owns it from then on."""

    @property
    def path(self) -> str:
        """Relative to the table's folder."""

    @property
    def uri(self) -> str:
        """Absolute; not percent-encoded."""

    @property
    def bytes(self) -> int: ...

    @property
    def rows(self) -> int: ...

    @property
    def sha256(self) -> str: ...


class Adoptable(Batches, Protocol):
    """A sealed output whose files are staged below the table. The files have the epoch column as their last one;
    `schema` and the rows leave it out. An empty output has files without rows."""

    @property
    def home(self) -> TableStaging | None: ...

    @property
    def files(self) -> Sequence[AdoptableFile]: ...

    def check(self) -> None:
        """Compare size, sha256, rows and schema of every file. Reads all files, except on an object store those that
        still have the ETag of the sealed bytes. Raises `WalCorrupt`, `StagingUnavailable`."""

    def check_listed(self) -> None:
        """Check like `check`, but by a listing; reads only files that were written since the seal. Raises as `check`
        does."""

    def facts(self) -> Iterator[tuple[AdoptableFile, FileFacts]]:
        """Yield each file with the column statistics that the seal has noted. Raises as `check` does."""
