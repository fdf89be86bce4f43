"""The smallest table that adopts: a folder whose numbered log entries are created exclusively.

It shows what an adopting sink has to do, and is what the foundation is tested with: no library, no server.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import ClassVar

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lockstep.epoch import Json
from lockstep.errors import TargetChanged
from lockstep.sinks.adopting import AdoptingSink, CommitOutcome
from lockstep.sinks.base import Sink
from lockstep.sinks.durable_file import create_atomically
from lockstep.sinks.values import Adoptable, Marker, SinkContext, SinkEpoch
from lockstep.wal.table_staging import TableStaging

EPOCH = "lockstep_epoch"
LOG = "log"


@dataclass(frozen=True)
class FolderTable(Sink):
    """`path`: the table's folder."""

    name: str
    output: str
    path: str

    adopts: ClassVar[bool] = True
    local_paths: ClassVar[frozenset[str]] = frozenset({"path"})

    def open(self, context: SinkContext) -> OpenFolderTable:
        return OpenFolderTable(self, context)

    def home(self, context: SinkContext) -> TableStaging:
        return TableStaging(self.path, EPOCH)


@dataclass(frozen=True)
class State:
    """The log entries up to one of them."""

    entries: tuple[Json, ...]

    @cached_property
    def files(self) -> list[str]:
        """Relative to the table."""
        found: list[str] = []
        for entry in self.entries:
            found = [path for path in found if path not in entry.get("removes", ())] + entry.get("adds", [])
        return found


class OpenFolderTable(AdoptingSink[State]):
    def __init__(self, sink: FolderTable, context: SinkContext) -> None:
        super().__init__(sink)
        self.root, self.owner = Path(sink.path), f"{context.deployment}/{context.pipeline}/{sink.name}"

    @property
    def log(self) -> Path:
        return self.root / LOG

    def preflight(self, schemas: Mapping[str, pa.Schema] | None) -> None:
        self.log.mkdir(parents=True, exist_ok=True)
        self.append(0, {"id": str(uuid.uuid4())})

    def append(self, number: int, entry: Json) -> bool:
        """Whether the entry by this number wasn't there."""
        with suppress(FileNotFoundError):  # of a draft that another one has taken away
            return create_atomically(self.log / f"{number}.json", json.dumps(entry).encode(), self.root)
        return False

    # --- the template ---

    def load_head(self) -> State:
        entries: list[Json] = []
        with suppress(FileNotFoundError):
            while True:
                entries.append(json.loads((self.log / f"{len(entries)}.json").read_text()))
        if not entries:
            raise TargetChanged(f"{self.root} is no table")
        return State(tuple(entries))

    def target_of(self, head: State) -> str:
        return str(head.entries[0]["id"])

    def marker_in(self, head: State, epoch: int) -> Marker | None:
        found = [one for one in self._markers(head) if one["epoch"] == epoch]
        return _marker(found[0]) if found else None

    def marker_of_span_in(self, head: State, span: str) -> Marker | None:
        found = [one for one in self._markers(head) if one["span"] == span]
        return _marker(found[0]) if found else None

    def newest_markers(self) -> list[Marker]:
        return [_marker(one) for one in self._markers(self.load_head())[-1:]]

    def _markers(self, head: State) -> list[Json]:
        return [entry["marker"] for entry in head.entries if entry.get("marker", {}).get("owner") == self.owner]

    def validate(self, head: State, epoch: SinkEpoch, output: Adoptable) -> None:
        assert all(facts.rows == file.rows for file, facts in output.facts())

    def adopt(self, head: State, epoch: SinkEpoch, output: Adoptable) -> CommitOutcome:
        told = {"owner": self.owner, "epoch": epoch.id, "token": epoch.token, "span": epoch.span}
        marker = {**told, "manifest": epoch.manifest_hash}
        entry = {"marker": marker, "adds": [file.path for file in output.files if file.rows]}
        return CommitOutcome.APPLIED if self.append(len(head.entries), entry) else CommitOutcome.CONFLICT

    def read(self, epoch: int, output: str, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        for path in self.load_head().files:
            rows = pq.ParquetFile(self.root / path).read()
            mine = rows.filter(pc.equal(rows[EPOCH], epoch)).select(schema.names)
            yield from mine.cast(schema).to_batches()

    def rows(self) -> pa.Table:
        """All that a reader of the table sees."""
        return pa.concat_tables([pq.ParquetFile(self.root / path).read() for path in self.load_head().files])


def _marker(told: Json) -> Marker:
    return Marker(told["epoch"], told["token"], told["manifest"], told["span"])
