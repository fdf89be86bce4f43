"""What sinks and roles tell each other: an epoch, its rows, a transaction, the marker that proves publication."""

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
    """How often a row of a published epoch stands in the sink."""

    NONE = "none"
    AT_MOST_ONCE = "at_most_once"
    AT_LEAST_ONCE = "at_least_once"
    EXACTLY_ONCE = "exactly_once"


class Publication(StrEnum):
    """How an epoch came to be visible in a sink; recorded in the ledger."""

    COMMITTED = "committed"  #: the prepared transaction was committed
    SENT = "sent"  #: sent from the WAL after the decision
    FOUND = "found"  #: the marker was there already
    REPAIRED = "repaired"  #: the prepared transaction was gone: written again from the WAL
    RESOLVED = "resolved"  #: a person said so
    CUT_OFF = "cut off"  #: begun by somebody who was cut off, and at most once: what is missing isn't sent any more


@dataclass(frozen=True)
class SinkContext:
    """What a sink is opened with. `connections` gives a DSN or path by connection id; never log its values."""

    deployment: str
    pipeline: str
    connections: Mapping[str, str]

    def dsn(self, connection: str, sink: str) -> str:
        """What `connection` leads to. Raises `InvalidPipeline` when nobody gave it."""
        found = self.connections.get(connection)
        if found is None:
            given = ", ".join(map(repr, sorted(self.connections))) or "no other"
            raise InvalidPipeline(
                f"sink {sink}: no connection with the id {connection!r} was given, but {given}: add it to "
                "connections=, or correct the sink's connection="
            )
        return found


@dataclass(frozen=True)
class Replaced:
    """An epoch whose place another one takes: decided, shown by every sink, and nobody else's to replace."""

    id: int
    manifest_hash: str  #: what its marker carries
    rows: Mapping[str, int] = field(default_factory=dict, hash=False)  #: sealed, by output; one left out isn't known
    replaced_by: int | None = None  #: of `SinkEpoch.earlier`: the epoch that has taken its place since
    foreign: bool = False  #: decided by a ledger that was lost, and shown by those sinks that had published it then


@dataclass(frozen=True)
class SinkEpoch:
    """What a sink is told of an epoch. `token` names this execution's sessions and handles.

    `replaced`: the epochs whose rows go with the very step that shows this one's; their markers stay. `earlier`: the
    lives of its range before those. Their rows are gone, unless the target was restored from a backup since. `lacking`:
    those of both that the target may lack before the decision, too: it has lost them, by a person's word.
    """

    id: int
    token: int
    manifest_hash: str
    timestamp: datetime  #: when the epoch was planned: the same in every attempt
    interval: Interval | None = None
    replaced: tuple[Replaced, ...] = ()
    generation: int = 0  #: the how-manieth life of its range; 0: the original
    root: int | None = None  #: the original of its range, or the last of those that it replaces; None: itself
    earlier: tuple[Replaced, ...] = ()
    lacking: frozenset[int] = frozenset()

    @property
    def span(self) -> str | None:
        """The interval, and its generation, as markers carry them, by which they are found whatever number the epoch
        has; of a cursor, whose place it takes, or None."""
        if self.interval is None:
            return f"epoch/{self.replaced[0].id}/{self.generation}" if self.replaced else None
        life = f"/{self.generation}" if self.generation else ""
        return f"{self.interval.start.isoformat()}/{self.interval.end.isoformat()}{life}"


def parse_span(span: str) -> tuple[Interval, int]:
    """Interval and generation of a `SinkEpoch.span`. Raises `ValueError`."""
    start, end, *life = span.split("/")
    interval = Interval(datetime.fromisoformat(start), datetime.fromisoformat(end))
    return interval, int(life[0]) if life else 0


@dataclass(frozen=True)
class Txn:
    """A transaction of a sink: enough to finish it from any process. `manifest` is the first 12 hex digits."""

    sink: str
    epoch: int
    token: int
    manifest: str
    handle: str


@dataclass(frozen=True)
class Marker:
    """What a sink wrote in the same transaction as the data: proof of publication."""

    epoch: int
    token: int
    manifest_hash: str
    span: str | None = None  #: see `SinkEpoch.span`
    replaced: tuple[int, ...] = ()  #: epochs whose rows are gone since, where the target keeps that
    whole: bool = True  #: False: its sending was cut off, and nobody sends the rest: see `Guarantee.AT_MOST_ONCE`


@dataclass(frozen=True)
class RowStatus:
    """What became of an epoch's rows of one output in a table where newer rows replace older ones."""

    own: int  #: rows of this epoch, as they were sealed
    overwritten: int  #: a newer row has the key now, from a later epoch or from this one
    missing: int  #: nothing has the key, or something older
    changed: int  #: rows of this epoch with other content than was sealed


class Presence(StrEnum):
    """How a published epoch's rows stand in a table that has adopted them."""

    LIVE = "live"  #: in the files that the epoch brought
    COMPACTED = "compacted"  #: all of them, and some in other files
    ROLLED_BACK = "rolled back"  #: not all of them: somebody has taken the table back to before the epoch
    DELETED = "deleted"  #: not all of them, and the table tells of no way back


@dataclass(frozen=True)
class EpochCut:
    """The epochs that a reader is to see: all up to `newest`, but `without`. The same ones in every sink."""

    newest: int
    without: tuple[int, ...] = ()

    def __contains__(self, epoch: object) -> bool:
        return isinstance(epoch, int) and epoch <= self.newest and epoch not in self.without

    def predicate(self, column: str) -> str:
        """A condition of SQL on the epoch column, whose name comes quoted."""
        exclude = f" AND {column} NOT IN ({', '.join(map(str, self.without))})" if self.without else ""
        return f"{column} <= {self.newest}{exclude}"


@dataclass(frozen=True)
class ReadCut:
    """What a reader of one output's target asks for to see the epochs of a cut, each whole, and no other."""

    output: str
    target: str  #: a table's quoted name, or where it or the folder is
    predicate: str | None = None  #: of SQL, for the rows of a table
    files: tuple[str, ...] | None = None  #: absolute paths
    snapshot: int | None = None  #: of a table with time travel, where one shows exactly these epochs


class Batches(Protocol):
    """The rows of one output of a sealed WAL; every iteration reads, and checks, the files anew."""

    @property
    def output(self) -> str: ...

    @property
    def schema(self) -> pa.Schema: ...

    @property
    def rows(self) -> int: ...

    def __iter__(self) -> Iterator[pa.RecordBatch]: ...


class AdoptableFile(Protocol):
    """One sealed Parquet file below the table that is to adopt it: Lockstep's until then, the table's from then on."""

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
    """A sealed output whose files are at home. `schema` and the rows are without the epoch column, which is the last
    one of each file. An empty output has files without rows."""

    @property
    def home(self) -> TableStaging | None: ...

    @property
    def files(self) -> Sequence[AdoptableFile]: ...

    def check(self) -> None:
        """Compare size, sha256, rows and schema of every file: reads all of them, but for those of an object store that
        have the ETag of the bytes that were sealed. Raises `WalCorrupt`, `StagingUnavailable`."""

    def check_listed(self) -> None:
        """As `check`, by a listing alone, unless the storage says of a file that it was written since the seal: that
        one is read. Raises as `check` does."""

    def facts(self) -> Iterator[tuple[AdoptableFile, FileFacts]]:
        """What each file says of its columns, as the seal has noted it. Raises as `check` does."""
