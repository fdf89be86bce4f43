"""The template of tables that adopt: whatever happens to a commit and to whom, an epoch's files are adopted once."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import Enum, auto
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pytest

from lockstep.epoch import Interval, Vote
from lockstep.errors import InvalidPipeline, LedgerConflict, PublishBusy, SinkUnavailable, TargetChanged
from lockstep.pipeline import Pipeline
from lockstep.sinks.adopting import AdoptingSink, CommitOutcome
from lockstep.sinks.base import Sink
from lockstep.sinks.values import Adoptable, Marker, Publication, SinkContext, SinkEpoch
from lockstep.testing._behaviour import BEHAVIOURS
from lockstep.testing._sealed_rows import OUTPUT, SCHEMA
from lockstep.testing._under_test import SinkUnderTest
from lockstep.wal.table_staging import TableStaging
from tests.crash.world import Numbers, untouched
from tests.sinks.folder_table import FolderTable, OpenFolderTable

DAY = Interval(datetime(2013, 1, 1, tzinfo=UTC), datetime(2013, 1, 2, tzinfo=UTC))


class FolderTableUnderTest(SinkUnderTest):
    votes_with_data = False

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def sink(self, *, shared: bool = False) -> FolderTable:
        return FolderTable("table", OUTPUT, str(self.folder / "table"))

    def elsewhere(self) -> tuple[Sink, SinkContext]:
        sink = FolderTable("table", OUTPUT, str(self.folder / "elsewhere"))
        with sink.opened(self.context()) as live:
            live.preflight(None)
        return sink, self.context()

    def visible(self) -> pa.Table:
        with self.sink().opened(self.context()) as sink:
            assert isinstance(sink, OpenFolderTable)
            return sink.rows().select(SCHEMA.names) if sink.load_head().files else SCHEMA.empty_table()

    def unsettled(self) -> list[str]:
        return []

    def lose(self, handle: str) -> None:
        raise AssertionError("there is no handle")


def test_the_smallest_table_keeps_what_it_promises(memory: Path, subtests: pytest.Subtests) -> None:
    for behaviour in BEHAVIOURS:
        with subtests.test(behaviour.__name__):
            behaviour(FolderTableUnderTest(memory / behaviour.__name__))


# --- every fate of every commit --------------------------------------------------------------------------------------


class Fate(Enum):
    """Of one commit that was sent on the newest state."""

    ANSWERED = auto()
    BEATEN = auto()  #: somebody else's commit was quicker
    APPLIED_UNANSWERED = auto()
    LOST = auto()
    LATE = auto()  #: no answer, and it arrives just before the next commit does
    LATE_UNSEEN = auto()  #: … and it arrives before the table is next looked at
    REFUSED_UNCLEARLY = auto()  #: not applied, and the answer doesn't say so


@dataclass
class Table:
    """In memory: what was adopted, by whom, in the order of commits. `None`: a foreign commit."""

    fates: Iterator[Fate]
    log: list[tuple[int, SinkEpoch] | None] = field(default_factory=list)
    late: list[tuple[int, tuple[int, SinkEpoch], Fate]] = field(default_factory=list)
    id: str = "the table"

    def land(self, *fates: Fate) -> None:
        """Have late requests arrive: each is applied only to the state that it was made for."""
        for base, entry, fate in [one for one in self.late if one[2] in fates]:
            self.late.remove((base, entry, fate))
            if len(self.log) == base:
                self.log.append(entry)

    def commit(self, base: int, entry: tuple[int, SinkEpoch]) -> CommitOutcome:
        self.land(Fate.LATE)
        fate = next(self.fates, Fate.ANSWERED)
        if fate is Fate.BEATEN:
            self.log.append(None)
        if len(self.log) != base:
            return CommitOutcome.CONFLICT
        match fate:
            case Fate.LATE | Fate.LATE_UNSEEN:
                self.late.append((base, entry, fate))
                return CommitOutcome.UNKNOWN
            case Fate.LOST | Fate.REFUSED_UNCLEARLY:
                return CommitOutcome.UNKNOWN
            case _:
                self.log.append(entry)
                return CommitOutcome.UNKNOWN if fate is Fate.APPLIED_UNANSWERED else CommitOutcome.APPLIED

    def adopted(self, epoch: int) -> int:
        return sum(entry is not None and entry[0] == epoch for entry in self.log)


class OpenTable(AdoptingSink[int]):
    """A head is the number of commits."""

    def __init__(self, table: Table, between: Callable[[], object] = lambda: None) -> None:
        super().__init__(FolderTable("table", OUTPUT, "/nowhere"))
        self.table, self.between = table, between

    def preflight(self, schemas: Mapping[str, pa.Schema] | None) -> None: ...

    def load_head(self) -> int:
        self.table.land(Fate.LATE_UNSEEN)
        return len(self.table.log)

    def target_of(self, head: int) -> str:
        return self.table.id

    def marker_in(self, head: int, epoch: int) -> Marker | None:
        found = [entry[1] for entry in self.table.log[:head] if entry and entry[0] == epoch]
        return Marker(epoch, found[0].token, found[0].manifest_hash, found[0].span) if found else None

    def marker_of_span_in(self, head: int, span: str) -> Marker | None:
        found = [entry[1] for entry in self.table.log[:head] if entry and entry[1].span == span]
        return Marker(found[0].id, found[0].token, found[0].manifest_hash, span) if found else None

    def validate(self, head: int, epoch: SinkEpoch, output: Adoptable) -> None: ...

    def adopt(self, head: int, epoch: SinkEpoch, output: Adoptable) -> CommitOutcome:
        self.between()
        return self.table.commit(head, (epoch.id, epoch))

    def read(self, epoch: int, output: str, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        raise NotImplementedError


HOME = TableStaging("/nowhere", "lockstep_epoch")


@dataclass(frozen=True)
class Output:
    output: str = OUTPUT
    home: TableStaging | None = HOME

    def check_listed(self) -> None:
        pass


def epoch(id: int = 1, *, token: int = 10, manifest: str = "a" * 64, interval: Interval | None = None) -> SinkEpoch:
    return SinkEpoch(id, token, manifest, datetime(2013, 1, 2, tzinfo=UTC), interval)


VOTE = Vote(5, None, "the table", {OUTPUT: 0})


def publish(sink: OpenTable, at: SinkEpoch, output: Output | None = None) -> Publication:
    return sink.publish(at, VOTE, [cast(Any, output or Output())])


def test_whatever_becomes_of_each_commit_the_files_are_adopted_once() -> None:
    for fates in itertools.chain.from_iterable(itertools.product(Fate, repeat=depth) for depth in (1, 2, 3, 4)):
        table = Table(iter(fates))
        found = publish(OpenTable(table), epoch())
        table.land(*Fate)  # what is still on its way comes after everything
        assert (found, table.adopted(1)) == (Publication.SENT, 1), fates


def test_two_publishers_at_once_adopt_once_however_they_overtake_each_other() -> None:
    for fates in itertools.product(Fate, repeat=4):
        table = Table(iter(fates))
        other: list[Publication] = []

        def overtake(table: Table = table, other: list[Publication] = other) -> None:
            if not other:  # once, between the look and the commit of the first
                other.append(publish(OpenTable(table), epoch(token=11)))

        found = publish(OpenTable(table, overtake), epoch(token=10))
        table.land(*Fate)
        assert table.adopted(1) == 1, fates
        assert {found, *other} <= {Publication.SENT, Publication.FOUND}


def test_what_is_found_is_made_durable_before_it_is_believed() -> None:
    durable: list[int] = []

    class Noting(OpenTable):
        def make_durable(self, head: int) -> None:
            durable.append(head)

    table = Table(iter([Fate.APPLIED_UNANSWERED]))
    publish(Noting(table), epoch())
    publish(Noting(table), epoch(token=11))
    assert durable == [1, 1]


def test_a_range_that_is_shown_under_another_number_is_a_conflict() -> None:
    table = Table(iter(()))
    publish(OpenTable(table), epoch(1, interval=DAY))
    with pytest.raises(LedgerConflict):
        publish(OpenTable(table), epoch(2, interval=DAY))
    other = Interval(DAY.end, DAY.end + timedelta(days=1))
    publish(OpenTable(table), epoch(3, interval=other))
    assert len(table.log) == 2


def test_who_is_always_beaten_gives_way_and_says_so() -> None:
    table = Table(itertools.repeat(Fate.BEATEN))
    with pytest.raises(PublishBusy):
        publish(OpenTable(table), epoch())
    assert table.adopted(1) == 0


def test_a_table_that_cannot_be_read_after_a_lost_answer_is_tried_again_later() -> None:
    class Unreachable(OpenTable):
        def load_head(self) -> int:
            if self.table.log:
                raise SinkUnavailable("gone")
            return super().load_head()

    table = Table(iter([Fate.APPLIED_UNANSWERED]))
    with pytest.raises(SinkUnavailable):
        publish(Unreachable(table), epoch())
    assert publish(OpenTable(table), epoch()) is Publication.FOUND
    assert table.adopted(1) == 1


def test_an_output_that_was_staged_elsewhere_is_not_adopted() -> None:
    with pytest.raises(TargetChanged, match="stage the epoch again"):
        publish(OpenTable(Table(iter(()))), epoch(), Output(home=None))


# --- which sinks go together -----------------------------------------------------------------------------------------


def test_an_output_has_one_table_that_adopts_its_files() -> None:
    def pipeline(*sinks: Sink) -> Pipeline:
        return Pipeline("numbers", {"numbers": Numbers()}, untouched, sinks)

    pipeline(FolderTable("one", "numbers", "/one"), FolderTable("two", "others", "/two"))
    with pytest.raises(InvalidPipeline, match=r"numbers.*two sinks that adopt"):
        pipeline(FolderTable("one", "numbers", "/one"), FolderTable("two", "numbers", "/two"))
