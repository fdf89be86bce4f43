"""Small files of published epochs become few by one commit: rows, their types, markers and what others wrote stay."""

from __future__ import annotations

import io
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack, closing, suppress
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from deltalake.exceptions import CommitFailedError
from pyiceberg.expressions.visitors import _ManifestEvalVisitor, visit
from pyiceberg.manifest import ManifestFile
from pyiceberg.types import StringType

from lockstep.errors import CompactionOvertaken, CompactionRefused, InvalidPipeline, Retryable
from lockstep.sinks import compacting
from lockstep.sinks.adopting import AdoptingSink, CommitOutcome
from lockstep.sinks.compacting import CompactingTable, Compaction, Goal, Replacement, require_written, rewrite
from lockstep.sinks.delta import DeltaSink
from lockstep.sinks.values import Publication
from lockstep.testing._crash_sweep import ended, fork
from lockstep.testing._sealed_rows import SealedRows, sealed, table
from lockstep.testing._under_test import SinkUnderTest, epoch, expect_proof, expect_rows, opened, prepare, publish
from stack.s3 import S3Server
from tests.apart import apart
from tests.clean_process import CleanProcess
from tests.sinks.compaction.lakes import EVERYTHING, ROWS, DeltaLake, IcebergLake, Lake
from tests.sinks.delta_on_s3 import DeltaOnS3UnderTest
from tests.sinks.delta_target import on_table
from tests.sinks.iceberg.iceberg_target import RestUnderTest
from tests.sinks.test_delta import WIDE

pytestmark = pytest.mark.apart


def test_many_epochs_become_one_file_and_read_as_before(lake: Lake) -> None:
    wals = lake.fill(*range(1, 7))
    before, shown = lake.rows(), list(lake.files())
    done = lake.compact()
    assert (done.files_before, done.files_after, done.rows) == (12, 1, 6 * ROWS)
    assert list(lake.files().values()) == [6 * ROWS] and not set(shown) & set(lake.files())
    assert lake.rows() == before
    assert set(shown) <= set(lake.below()), "who reads the table as it was needs them"
    for number, wal in wals.items():
        at = epoch(number, token=10 * number, manifest=str(number))
        expect_proof(lake.target, at, wal)
        assert publish(lake.target, at, prepare(lake.target, at, wal), wal) is Publication.FOUND
    assert lake.rows() == before, "no epoch comes again"
    lake.publish(7)
    assert sum(lake.files().values()) == 7 * ROWS


def test_what_was_compacted_is_compacted_again_with_newer_epochs_until_it_is_large(lake: Lake) -> None:
    lake.fill(1, 2)
    lake.compact()
    lake.fill(3, 4)
    before = lake.rows()
    done = lake.compact()
    assert (done.files_before, done.files_after) == (5, 1)
    size = lake.plan().bytes_before
    [only] = lake.files()
    assert "/compacted/" in only and size == 0, "one file alone is left as it is"
    assert lake.rows() == before
    lake.publish(5)
    large = Goal(lambda epoch: True, target_bytes=100, min_files=2)
    assert lake.compact(large).files_before == 0, "and so are those that are large enough"


def test_a_plan_writes_nothing_and_few_files_and_those_that_some_sink_does_not_show_stay(lake: Lake) -> None:
    lake.publish(1)
    before = lake.files()
    done = lake.compact(Goal(lambda epoch: True, min_files=3))
    assert (done.number, done.files_before, dict(done.kept)) == (None, 0, {"too few in a partition": 2})
    assert lake.files() == before
    lake.fill(2, 3)
    before, below = lake.files(), lake.below()
    planned = lake.plan()
    assert (planned.files_before, planned.files_after, planned.rows, planned.number) == (6, 1, 3 * ROWS, None)
    assert lake.files() == before and lake.below() == below
    kept = [path for path in lake.files() if "/2/" in path.partition("/pipe")[2]]
    done = lake.compact(Goal(lambda epoch: epoch != 2, min_files=2))
    assert (done.files_before, done.files_after) == (4, 1)
    assert len(kept) == 2 and set(kept) <= set(lake.files())


def test_what_others_wrote_and_files_of_a_decided_epoch_stay_where_they_are(lake: Lake) -> None:
    lake.fill(1, 2)
    mine = set(lake.files())
    lake.foreign_append()
    theirs, before = set(lake.files()) - mine, lake.rows()
    wal, at = sealed(ROWS, start=9000), epoch(3, token=30, manifest="3")
    vote = prepare(lake.target, at, wal)
    staged = set(lake.below()) - set(lake.files())
    done = lake.compact()
    assert theirs and theirs <= set(lake.files()) and lake.rows() == before
    assert sum(n for why, n in done.kept.items() if "others" in why) == len(theirs)
    assert staged and staged <= set(lake.below())
    assert publish(lake.target, at, vote, wal) is Publication.SENT
    assert sum(lake.files().values()) == 3 * ROWS + 10


@pytest.mark.fault("S10")
@pytest.mark.parametrize("by", ["compact", "z_order"])
def test_an_optimize_that_began_before_a_compaction_fails_and_doubles_nothing(memory: Path, by: str) -> None:
    lake = DeltaLake(memory)
    lake.fill(1, 2, 3)
    before, metadata = lake.rows(), on_table(lake.root, lambda table: repr(table.metadata()))

    def optimize(stale: Any) -> str:
        lake.compact()
        with pytest.raises(CommitFailedError) as refusal:
            stale.optimize.compact() if by == "compact" else stale.optimize.z_order(["id"])
        return str(refusal.value)

    assert "etadata" in on_table(lake.root, optimize)
    assert lake.rows() == before and len(lake.files()) == 1
    assert on_table(lake.root, lambda table: repr(table.metadata())) == metadata


def _of_day(day: date | None, start: int) -> list[SealedRows]:
    found = table(ROWS, start)
    return [SealedRows(found.set_column(4, "day", pa.array([day] * ROWS, pa.date32())))]


def test_each_partition_is_compacted_by_itself(make_lake: Callable[..., Lake]) -> None:
    lake = make_lake(partition_by=["day"])
    days = [date(2013, 1, 1), date(2013, 1, 1), date(2013, 1, 2), date(2013, 1, 2), None, None]
    wals = {number: lake.publish(number, _of_day(day, 1000 * number)) for number, day in enumerate(days, 1)}
    before = lake.rows()
    done = lake.compact(Goal(lambda epoch: True, min_files=3))
    assert (done.files_before, done.files_after) == (12, 3)
    assert sorted(lake.files().values()) == [2 * ROWS] * 3 and lake.rows() == before
    for number, wal in wals.items():
        expect_proof(lake.target, epoch(number, token=1, manifest=str(number)), wal)


@pytest.mark.fault("T10")
@pytest.mark.parametrize("make_lake", ["iceberg"], indirect=True)
def test_threads_that_look_through_manifests_do_not_meet(
    make_lake: Callable[..., Lake], monkeypatch: pytest.MonkeyPatch
) -> None:
    """pyiceberg's evaluator keeps the bounds of the manifest that it is at."""
    lake = make_lake(partition_by=["day"])
    wals = {n: lake.publish(n, _of_day(date(2013, 1, n), 1000 * n)) for n in range(1, 9)}
    calls = list[ManifestFile]()

    def evaluate(self: _ManifestEvalVisitor, manifest: ManifestFile) -> bool:
        self.partition_fields = manifest.partitions or []
        calls.append(manifest)
        count, until = len(calls), time.monotonic() + 0.05
        while len(calls) == count and time.monotonic() < until:
            time.sleep(0.001)
        return visit(self.partition_filter, self)

    monkeypatch.setattr(_ManifestEvalVisitor, "eval", evaluate)
    old = epoch(4, token=40, manifest="4")
    new, last = epoch(9, token=90, manifest="9", replaced=[old]), _of_day(None, 20_000)
    assert publish(lake.target, new, prepare(lake.target, new, last), last) is Publication.SENT
    expect_rows(lake.target, last, *(wal for number, wal in wals.items() if number != 4))


def test_files_that_lack_columns_become_another_file(make_lake: Callable[..., Lake]) -> None:
    lake = make_lake(on_new_columns="add")
    lake.fill(1, 2)
    more = {
        number: lake.publish(
            number, [SealedRows(table(ROWS, 1000 * number).append_column("extra", pa.array(range(ROWS), pa.int64())))]
        )
        for number in (3, 4)
    }
    before = lake.rows()
    done = lake.compact()
    assert (done.files_before, done.files_after) == (8, 2) and lake.rows() == before
    for number, wal in more.items():
        expect_proof(lake.target, epoch(number, token=1, manifest=str(number)), wal)


@pytest.mark.fault("T5")
@pytest.mark.parametrize("make_lake", ["iceberg"], indirect=True)
def test_what_was_compacted_stays_in_its_column_when_another_one_gets_its_name(make_lake: Callable[..., Lake]) -> None:
    lake = make_lake()
    lake.fill(1, 2)
    assert lake.compact().files_after == 1
    assert isinstance(lake, IcebergLake)
    with lake._target.table() as table:
        before = table.scan().to_arrow()["name"].to_pylist()
        with table.update_schema() as change:
            change.rename_column("name", "title")
        with table.update_schema() as change:
            change.add_column("name", StringType())
    with lake._target.table() as table:
        found = table.scan().to_arrow()
    assert found["title"].to_pylist() == before and found["name"].null_count == len(before)


def test_bundles_have_about_the_size_that_is_asked_for(lake: Lake) -> None:
    with pytest.raises(InvalidPipeline, match="are out of range"):
        Goal(lambda epoch: True, target_bytes=0)
    with pytest.raises(InvalidPipeline, match="are out of range"):
        Goal(lambda epoch: True, min_files=1)
    lake.fill(*range(1, 7))
    size = lake.plan().bytes_before
    goal, before = Goal(lambda epoch: True, target_bytes=size // 3 + 100, min_files=2), lake.rows()
    assert (lake.plan(goal).files_after, lake.compact(goal).files_after) == (3, 3)
    assert lake.rows() == before


# --- on a real S3 server: Delta's log there, and Iceberg by a REST catalog -------------------------------------------


def expect_compacted(target: SinkUnderTest) -> None:
    wals = {number: sealed(ROWS, start=1000 * number) for number in (1, 2, 3)}
    for number, wal in wals.items():
        at = epoch(number, token=number, manifest=str(number))
        publish(target, at, prepare(target, at, wal), wal)

    def compacted() -> Compaction:
        sink = target.sink()
        opened = DeltaSink.open(sink, target.context()) if isinstance(sink, DeltaSink) else sink.open(target.context())
        assert isinstance(opened, AdoptingSink)
        with closing(opened):
            found = opened.compaction()
            assert found is not None
            return compacting.compact(found, EVERYTHING)

    done = apart(compacted) if isinstance(target, DeltaOnS3UnderTest) else compacted()
    assert (done.files_before, done.files_after, done.rows) == (6, 1, 3 * ROWS)
    expect_rows(target, *wals.values())
    for number, wal in wals.items():
        expect_proof(target, epoch(number, token=1, manifest=str(number)), wal)


def expect_compacted_delta(uri: str) -> None:
    expect_compacted(DeltaOnS3UnderTest(uri))


@pytest.mark.tier("all")
@pytest.mark.apart(False)
def test_tables_on_s3(s3_environment: S3Server, s3_uri: str) -> None:
    with CleanProcess() as clean:
        clean.call(expect_compacted_delta, f"{s3_uri}/table")
    s3_environment.create_table_bucket("compacted")
    expect_compacted(RestUnderTest(s3_environment, "compacted", "dbcompacted"))


# --- rewriting -------------------------------------------------------------------------------------------------------


def _written(folder: Path, *tables: pa.Table) -> list[Path]:
    paths = [folder / f"{number}.parquet" for number in range(len(tables))]
    for path, rows in zip(paths, tables, strict=True):
        pq.write_table(rows, path, store_schema=False, compression="zstd")
    return paths


def _rewritten(paths: list[Path], target: Path) -> pq.FileMetaData:
    with target.open("wb") as file:
        read = rewrite([partial(path.open, "rb") for path in paths], file)
    return require_written(partial(target.open, "rb"), read, "sink lake", target.name)


@pytest.mark.apart(False)
def test_values_of_every_type_and_field_ids_come_back_as_they_were(tmp_path: Path) -> None:
    target = tmp_path / "new.parquet"
    paths = _written(tmp_path, WIDE, WIDE.slice(0, 1), WIDE.slice(0, 0))
    footer = _rewritten(paths, target)
    expected, found = pa.concat_tables([pq.read_table(path) for path in paths]), pq.read_table(target)
    assert repr(found.to_pylist()) == repr(expected.to_pylist()) and found.schema.equals(expected.schema)
    assert footer.row_group(0).column(0).compression == "ZSTD", "as it was"
    number = pa.field("id", pa.int64(), nullable=False, metadata={"PARQUET:field_id": "7"})
    _rewritten(_written(tmp_path, *[pa.table({"id": [1, 2]}, schema=pa.schema([number]))] * 2), target)
    assert pq.read_schema(target).field("id").equals(number, check_metadata=True)
    with pytest.raises(ValueError, match="another schema"):
        _rewritten(_written(tmp_path, pa.table({"id": [1]}), pa.table({"id": ["1"]})), target)


@pytest.mark.apart(False)
def test_memory_does_not_grow_with_the_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compacting, "GROUP_BYTES", 1 << 20)
    monkeypatch.setattr(compacting, "BATCH_BYTES", 1 << 18)
    peaks = []
    for times in (1, 12):
        rows = pa.table({"id": range(60_000 * times), "text": [f"{i:>40}" for i in range(60_000 * times)]})
        paths = _written(tmp_path, rows, rows)
        del rows
        pool, usual = pa.proxy_memory_pool(pa.default_memory_pool()), pa.default_memory_pool()
        pa.set_memory_pool(pool)
        try:
            footer = _rewritten(paths, tmp_path / "new.parquet")
        finally:
            pa.set_memory_pool(usual)
        assert footer.num_rows == 120_000 * times and footer.num_row_groups > 3 * times
        peaks.append(pool.max_memory())
    assert peaks[1] < 2 * peaks[0], peaks


# --- beside epochs, other people's commits, lost answers and fences ---------------------------------------------------


pytestmark = pytest.mark.apart
Send = Callable[[Any, Replacement], CommitOutcome]
Meeting = Callable[[Send, Any, Replacement], CommitOutcome]


@pytest.fixture
def full(lake: Lake) -> Lake:
    lake.fill(1, 2, 3)
    return lake


def compact_meeting(lake: Lake, meeting: Meeting, times: int = 1) -> Compaction:
    """The first commits that the compaction sends go by `meeting`."""

    def act(table: CompactingTable[Any]) -> Compaction:
        real, left = table.replace, [times]

        def replace(head: Any, replacement: Replacement) -> CommitOutcome:
            left[0] -= 1
            return meeting(real, head, replacement) if left[0] >= 0 else real(head, replacement)

        table.replace = replace  # type: ignore[method-assign]
        return compacting.compact(table, EVERYTHING)

    return lake.with_table(act)


def first(deed: Callable[[], object]) -> Meeting:
    """Somebody else's commit is before ours."""

    def meeting(send: Send, head: Any, replacement: Replacement) -> CommitOutcome:
        deed()
        return send(head, replacement)

    return meeting


def test_an_epoch_and_rows_of_others_that_come_first_stay_beside_what_is_compacted(full: Lake) -> None:
    def act() -> None:
        full.publish(4)
        full.foreign_append()

    done = compact_meeting(full, first(act))
    assert (done.files_before, done.files_after) == (6, 1)
    files = list(full.files().values())
    assert sum(files) == 4 * ROWS + 10 == sum(full.rows().values())
    assert files.count(ROWS // 2) >= 2 and 3 * ROWS in files


@pytest.mark.parametrize("deed", ["foreign_delete", "foreign_compaction"])
def test_a_compaction_whose_files_others_change_first_gives_up(full: Lake, deed: str) -> None:
    with pytest.raises(CompactionOvertaken, match="of the 6 files were compacted, deleted from or removed"):
        compact_meeting(full, first(getattr(full, deed)))
    assert sum(full.files().values()) == (2 if deed == "foreign_delete" else 3) * ROWS
    assert not any("/compacted/" in path for path in full.files())


def test_a_lost_answer_is_found_out_by_looking_again(full: Lake) -> None:
    for number, applied in enumerate((True, False), 4):
        full.fill(number)
        before = full.rows()

        def meeting(send: Send, head: Any, replacement: Replacement, applied: bool = applied) -> CommitOutcome:
            if applied:
                assert send(head, replacement) is CommitOutcome.APPLIED
            return CommitOutcome.UNKNOWN

        assert compact_meeting(full, meeting).files_after == 1
        assert full.rows() == before and len(full.files()) == 1, f"applied: {applied}"


def test_a_commit_that_comes_late_changes_nothing(full: Lake) -> None:
    before = full.rows()

    def act(table: CompactingTable[Any]) -> CommitOutcome:
        sent: list[tuple[Any, Replacement]] = []
        real = table.replace

        def replace(head: Any, replacement: Replacement) -> CommitOutcome:
            sent.append((head, replacement))
            return CommitOutcome.UNKNOWN if len(sent) == 1 else real(head, replacement)

        table.replace = replace  # type: ignore[method-assign]
        compacting.compact(table, EVERYTHING)
        return real(*sent[0])

    assert full.with_table(act) is not CommitOutcome.APPLIED
    assert full.rows() == before and len(full.files()) == 1


def test_a_compaction_gives_up_where_somebody_fenced_it_or_another_one_was_committed(full: Lake) -> None:
    before, files = full.rows(), full.files()
    with pytest.raises(CompactionOvertaken, match="another compaction was committed in the meantime, or recovery"):
        compact_meeting(full, first(lambda: full.with_table(lambda other: compacting.fence(other) and None)))
    assert full.rows() == before and full.files() == files
    with pytest.raises(CompactionOvertaken, match="another compaction was committed"):
        compact_meeting(full, first(full.compact))
    assert full.rows() == before and list(full.files().values()) == [3 * ROWS]


def test_a_table_that_never_stands_still_is_given_way_to(full: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compacting, "_ROUNDS", 2)
    with pytest.raises(CompactionOvertaken, match="2 commits of the compaction weren't applied: another writer"):
        compact_meeting(full, first(full.foreign_append), times=2)
    assert sum(full.files().values()) == 3 * ROWS + 20
    assert full.compact().files_after == 1


def test_what_comes_out_otherwise_than_it_went_in_is_never_committed(
    full: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = full.files()

    def act(table: CompactingTable[Any]) -> Compaction:
        real = table.open_file

        def open_file(head: Any, path: str) -> Any:
            file = real(head, path)
            if "/compacted/" not in path:
                return file
            rows = pq.read_table(io.BytesIO(file.read()))
            data = io.BytesIO()
            pq.write_table(rows.set_column(0, rows.field(0), pc.add(rows["id"], pa.scalar(1, pa.int64()))), data)
            data.seek(0)
            return data

        table.open_file = open_file  # type: ignore[method-assign]
        return compacting.compact(table, EVERYTHING)

    with pytest.raises(CompactionRefused, match="the table was not changed"):
        full.with_table(act)
    assert full.files() == files
    real = rewrite
    monkeypatch.setattr(compacting, "rewrite", lambda sources, target, **options: real(sources[1:], target, **options))
    with pytest.raises(CompactionRefused, match="the table records 60"):
        full.compact()
    assert full.files() == files


FEW = 4


@pytest.mark.apart(False)
def test_beside_publishers_every_row_is_shown_once(lake: Lake, tmp_path: Path) -> None:
    """Two publishers of every epoch, two compactions and a reader, who never sees a row twice, or one go."""
    wals = {number: sealed(FEW, start=100 * number) for number in range(1, 6)}
    votes = apart(lambda: {n: prepare(lake.target, epoch(n, token=n, manifest=str(n)), wal) for n, wal in wals.items()})
    over = tmp_path / "over"

    def publish_all(token: int) -> None:
        for number, wal in wals.items():
            at = epoch(number, token=token + number, manifest=str(number))
            with opened(lake.target) as sink:
                sink.publish(at, votes[number], lake.target.staged(at, wal))

    def compact_all() -> None:
        def act(table: CompactingTable[Any]) -> None:
            while not over.exists():
                with suppress(CompactionOvertaken):
                    compacting.compact(table, EVERYTHING)

        lake.with_table(act)

    def read_all() -> None:
        shown = 0
        while not over.exists():
            with suppress(Retryable, FileNotFoundError):
                now = sum(lake.files().values())
                assert now >= shown and now % FEW == 0
                shown = now

    with ExitStack() as children:
        publishers = [children.enter_context(ended(fork(partial(publish_all, token)))) for token in (1000, 2000)]
        others = [children.enter_context(ended(fork(act))) for act in (compact_all, compact_all, read_all)]
        assert [child.wait() for child in publishers] == [0, 0]
        over.touch()
        assert [child.wait() for child in others] == [0, 0, 0]
    expected = Counter(100 * number + row for number in wals for row in range(FEW))
    assert Counter(lake.target.visible()["id"].to_pylist()) == expected
