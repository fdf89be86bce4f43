"""An epoch takes the place of another one whose rows stand in one file with others': compacted by us, or by others."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.typedef import Record
from pyiceberg.types import StringType

from lockstep.errors import PreflightRefused, PublishBlocked
from lockstep.sinks import compacting
from lockstep.sinks.compacting import TableFile
from lockstep.sinks.row_removal import RowRemoval, RowRemover
from lockstep.sinks.values import Publication, Replaced, SinkEpoch
from lockstep.testing._sealed_rows import SealedRows, sealed
from lockstep.testing._under_test import epoch, expect_proof, expect_replaced, expect_rows, opened, prepare, publish
from tests.apart import apart
from tests.sinks.compaction.lakes import ROWS, DeltaLake, IcebergLake, Lake
from tests.sinks.delta_target import on_table
from tests.sinks.open_apart import OpenApart

pytestmark = pytest.mark.apart
NEW, LAST = sealed(ROWS - 3, start=70_000), sealed(ROWS + 2, start=80_000)


def at(number: int) -> SinkEpoch:
    """As `Lake.publish` names it."""
    return epoch(number, token=10 * number, manifest=str(number))


def take_place(lake: Lake, number: int, *replaced: int, between: Callable[[], object] = lambda: None) -> None:
    """Epoch `number` replaces others; `between`: what somebody does after its vote."""
    new = epoch(number, token=10 * number, manifest=str(number), replaced=[at(one) for one in replaced])
    vote = prepare(lake.target, new, NEW)
    between()
    assert publish(lake.target, new, vote, NEW) is Publication.SENT
    expect_proof(lake.target, new, NEW)
    for one in replaced:
        expect_replaced(lake.target, at(one))


@pytest.mark.fault("N5")
def test_rows_that_were_compacted_with_others_are_lifted_out_of_their_file(lake: Lake) -> None:
    wals = lake.fill(1, 2, 3)
    lake.compact()
    take_place(lake, 4, 2)
    expect_rows(lake.target, wals[1], wals[3], NEW)
    for number in (1, 3):
        expect_proof(lake.target, at(number), wals[number])
    new = ROWS - 3
    assert sorted(lake.files().values()) == sorted([2 * ROWS, new - new // 2, new // 2])
    [number] = {int(path.split("/")[4]) for path in lake.files() if "/compacted/" in path}
    assert lake.with_table(lambda table: table.knows(table.load_head(), number)), "the rest's files are rubbish to it"


def test_a_compacted_file_goes_whole_where_no_other_epoch_has_rows_in_it(lake: Lake) -> None:
    lake.fill(1)
    lake.compact()
    below = lake.below()
    take_place(lake, 2, 1)
    expect_rows(lake.target, NEW)
    assert len(lake.below()) == len(below) + 2, "a file was written anew that has no row"


@pytest.mark.fault("N5")
@pytest.mark.parametrize("deed", ["compact", "foreign_compaction", "foreign_delete"])
def test_whoever_changes_the_files_after_the_vote_holds_nobody_up(lake: Lake, deed: str) -> None:
    wals = lake.fill(1, 2)
    if deed == "foreign_delete":
        lake.compact()
    take_place(lake, 3, 1, between=getattr(lake, deed))
    expect_rows(lake.target, wals[2], NEW)
    expect_proof(lake.target, at(2), wals[2])


@pytest.mark.fault("N5")
def test_a_fence_between_writing_and_the_commit_has_the_rest_written_anew(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever fences may delete what was written, as nothing names it."""
    wals, real, numbers = lake.fill(1, 2), RowRemover.removal_at, list[int | None]()
    lake.compact()

    def removal_at(self: RowRemover[Any], head: Any) -> RowRemoval:
        found = real(self, head)
        if not numbers:
            compacting.fence(self._table)
        numbers.append(found.number)
        return found

    new = epoch(3, token=30, manifest="3", replaced=[at(1)])
    vote = prepare(lake.target, new, NEW)

    def run() -> list[int | None]:
        sink = lake.target.sink().open(lake.target.context())
        with closing(sink._open_sink() if isinstance(sink, OpenApart) else sink) as live:
            live.publish(new, vote, lake.target.staged(new, NEW))
        return numbers

    monkeypatch.setattr(RowRemover, "removal_at", removal_at)
    first, second = apart(run)
    assert first != second and None not in (first, second)
    expect_rows(lake.target, wals[2], NEW)


def test_a_life_that_somebody_brought_back_goes_with_the_one_that_took_its_place(lake: Lake) -> None:
    """Markers outlive the way back to an older version of the table: by them epoch 3 is shown, and epoch 1 replaced."""
    wals = lake.fill(1, 2)
    lake.compact()
    first, third = (Replaced(one, at(one).manifest_hash, {"rows": ROWS}) for one in (1, 3))
    take_place(lake, 3, 1)
    lake.take_back()
    expect_rows(lake.target, wals[1], wals[2])
    new = replace(at(6), replaced=(replace(third, rows={"rows": ROWS - 3}),), generation=2)
    few = replace(new, earlier=(replace(first, rows={"rows": ROWS - 1}, replaced_by=3),))
    with pytest.raises(PreflightRefused, match=f"{ROWS} rows have the number of epoch 1, which published {ROWS - 1}"):
        prepare(lake.target, few, LAST)
    new = replace(new, earlier=(replace(first, replaced_by=3),))
    vote = prepare(lake.target, new, LAST)
    with opened(lake.target) as sink, pytest.raises(PublishBlocked, match="is decided"):
        sink.publish(few, vote, lake.target.staged(few, LAST))
    assert publish(lake.target, new, vote, LAST) is Publication.SENT
    expect_rows(lake.target, wals[2], LAST)
    expect_proof(lake.target, new, LAST)


@pytest.mark.fault("T11")
@pytest.mark.parametrize("make_lake", ["iceberg"], indirect=True)
def test_files_with_former_names_of_columns_give_back_the_rows_of_one_epoch(make_lake: Callable[..., Lake]) -> None:
    """Also of the epochs' own column; one is dropped, and its name is another one's by now."""
    lake = make_lake()
    assert isinstance(lake, IcebergLake)
    wals = lake.fill(1, 2, 3, 4)
    lake.compact()
    with lake._target.table() as table:
        with table.update_schema() as change:
            change.rename_column("name", "title").delete_column("ratio").rename_column("lockstep_epoch", "batch")
        with table.update_schema() as change:
            change.rename_column("ok", "ratio").add_column("name", StringType())
    lake._target.arguments["epoch_column"] = "batch"
    lake._target._homes.clear()
    names = {"name": "title", "ok": "ratio"}

    def renamed(wal: Sequence[SealedRows]) -> pa.Table:
        rows = wal[0].table.drop_columns(["ratio"])
        return rows.rename_columns([names.get(name, name) for name in rows.column_names])

    new = [SealedRows(renamed(NEW))]
    for number, replaced in ((5, 1), (6, 3)):
        at_number = epoch(number, token=10 * number, manifest=str(number), replaced=[at(replaced)])
        assert publish(lake.target, at_number, prepare(lake.target, at_number, new), new) is Publication.SENT
        assert lake.compact().files_after == 1
    with lake._target.table() as table:
        found = table.scan().to_arrow()
        for name in ("title", "ratio", "name"):
            assert table.scan(row_filter=f"{name} is null").to_arrow().num_rows == found[name].null_count
    assert found["name"].null_count == found.num_rows
    expected = {2: renamed(wals[2]), 4: renamed(wals[4]), 5: new[0].table, 6: new[0].table}
    for number, rows in expected.items():
        shown = found.filter(pc.equal(found["batch"], number)).select(rows.column_names)
        assert shown.sort_by("id").cast(rows.schema).equals(rows.sort_by("id"))
    assert set(found["batch"].to_pylist()) == set(expected)


# --- what can't be done ----------------------------------------------------------------------------------------------


class OneFile:
    """Satisfies what `RowRemover` asks of a table: it has one file, with rows of epochs 1 and 2."""

    name = "lake"

    def __init__(self, **told: Any) -> None:
        self._file, data = TableFile("part-0.parquet", 1, told.pop("rows", 2), "", None, **told), io.BytesIO()
        pq.write_table(pa.table({"id": [1, 2], "lockstep_epoch": [1, 2]}), data)
        self._data = data.getvalue()

    def files(self, head: object) -> Iterator[TableFile]:
        yield self._file

    def open_file(self, head: object, path: str) -> io.BytesIO:
        return io.BytesIO(self._data)

    def numbered(self, head: object, schema: pa.Schema) -> pa.Schema:
        return schema

    def fault(self, head: object, facts: object) -> str:
        return "of an older partitioning"

    def last(self, head: object) -> int | None:
        return None


REPLACEMENT = SinkEpoch(3, 30, "c", at(1).timestamp, None, (Replaced(1, "a"),), 1)


def lifting(table: OneFile, **taking: Any) -> RowRemover[Any]:
    return RowRemover[Any](table, "lockstep_epoch", replace(REPLACEMENT, **taking), "rows")  # type: ignore[arg-type]


def test_a_file_that_can_not_be_written_anew_is_refused_before_the_decision_and_waited_for_after_it() -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        ({}, "an older partitioning"),
        ({"rows": 0, "skip_reason": "without statistics"}, "an older partitioning"),
        ({"hides_rows": True, "skip_reason": "with rows that a deletion vector takes away"}, "PURGE"),
    ]
    for told, why in cases:
        of_one_file = lifting(OneFile(**told))
        with pytest.raises(PreflightRefused, match=f"epoch 1.*{why}"):
            of_one_file.require_removable(None)
        with pytest.raises(PublishBlocked, match=f"{why}.*is decided"):
            of_one_file.removal_at(None)


def test_rows_of_a_former_owner_with_the_same_number_are_never_lifted() -> None:
    for rows, told in ((0, "1 rows have the number of epoch 1, which published 0"), (1, "an older partitioning")):
        with pytest.raises(PreflightRefused, match=told):
            lifting(OneFile(), replaced=(Replaced(1, "a", {"rows": rows}),)).require_removable(None)


def test_an_earlier_life_is_lifted_where_it_came_back_and_never_beside_the_one_that_took_its_place() -> None:
    def with_heir(replaced_by: int) -> RowRemover[Any]:
        earlier = Replaced(1, "a", {"rows": 1}, replaced_by=replaced_by)
        return lifting(OneFile(), replaced=(Replaced(2, "b", {"rows": 1}),), earlier=(earlier,))

    with pytest.raises(PreflightRefused, match="1 rows have the number of epoch 1, which epoch 2 replaced, besides 1"):
        with_heir(2).require_removable(None)
    with pytest.raises(PublishBlocked, match=r"which epoch 2 replaced.*is decided"):
        with_heir(2).removal_at(None)
    lifted = with_heir(7).removal_at(None)  # its own heir has no row here
    assert [file.path for file in lifted.removed] == ["part-0.parquet"] and lifted.added == ()


@pytest.mark.fault("T12")
@pytest.mark.parametrize("make_lake", ["iceberg"], indirect=True)
def test_files_that_can_not_be_looked_through_are_refused_by_name_before_the_decision(
    make_lake: Callable[..., Lake], tmp_path: Path
) -> None:
    lake = make_lake()
    assert isinstance(lake, IcebergLake)
    lake.fill(1, 2)

    def bring(name: str, **told: Any) -> None:
        """A file of ORC, which others bring."""
        rows = sealed(10, start=500_000)[0].table.append_column("lockstep_epoch", pa.nulls(10, pa.int64()))
        orc.write_table(rows.select(["id", "lockstep_epoch"]), tmp_path / name)
        usual: dict[str, Any] = {"file_size_in_bytes": 1, "record_count": 10, "partition": Record(), "spec_id": 0}
        usual |= {"content": DataFileContent.DATA, "file_format": FileFormat.ORC}
        with lake._target.table() as table, table.transaction() as change, change._append_snapshot_producer({}) as new:
            new.append_data_file(DataFile.from_args(file_path=f"file://{tmp_path / name}", **usual | told))

    def restate(number: int, replaced: int) -> Publication:
        new = epoch(number, token=10 * number, manifest=str(number), replaced=[at(replaced)])
        return publish(lake.target, new, prepare(lake.target, new, NEW), NEW)

    bring("nobodys.orc", null_value_counts={7: 10})
    assert restate(3, 1) is Publication.SENT
    bring("anybodys.orc")
    with pytest.raises(PreflightRefused, match=r"anybodys\.orc may have rows of epoch 2, and isn't a readable Parquet"):
        restate(4, 2)
    assert lake.compact().files_after == 1
    bring("deletes.orc", content=DataFileContent.EQUALITY_DELETES, equality_ids=[1])
    for act in (lambda: restate(4, 2), lake.compact):
        with pytest.raises(PreflightRefused, match=r"the table's files can't be listed: .*equality deletes"):
            act()


@pytest.mark.fault("N4")
def test_a_delta_table_that_only_grows_is_refused_before_anything_is_planned(tmp_path: Path) -> None:
    lake = DeltaLake(tmp_path)
    lake.fill(1)
    on_table(lake.root, lambda table: table.alter.set_table_properties({"delta.appendOnly": "true"}) and None)
    with opened(lake.target) as sink:
        sink.preflight(None)
        with pytest.raises(PreflightRefused, match="appendOnly"):
            sink.require_replaceable()


def test_delta_removes_files_with_the_partitions_that_they_were_added_with(tmp_path: Path) -> None:
    lake = DeltaLake(tmp_path, partition_by=["ok"])
    one = [SealedRows(sealed(ROWS)[0].table.slice(0, 1))]
    lake.publish(1, one)
    added = lake.target.log.adds()  # type: ignore[attr-defined]
    new = epoch(2, token=20, manifest="2", replaced=[at(1)])
    publish(lake.target, new, prepare(lake.target, new, one), one)
    entry = max((lake.root / "_delta_log").glob("*.json")).read_text().splitlines()
    removes = [action["remove"] for action in map(json.loads, entry) if "remove" in action]
    assert [(remove["path"], remove["partitionValues"]) for remove in removes] == [
        (path, add["partitionValues"]) for path, add in added.items()
    ]
    assert all(remove["partitionValues"] for remove in removes)


@pytest.mark.fault("S11")
def test_rows_are_lifted_out_of_what_deltalake_wrote_with_other_types_of_text(memory: Path) -> None:
    """Its DELETE, UPDATE and MERGE write views, and Arrow's name of that type into the file."""
    lake = DeltaLake(memory)
    wals = lake.fill(1, 2, 3)
    lake.compact()
    on_table(lake.root, lambda table: table.delete("id = 1000") and None)
    [only] = [pq.read_schema(lake.root / path) for path in lake.files()]
    assert only.field("name").type != pa.string(), "deltalake has learnt better"
    take_place(lake, 4, 2)
    expect_rows(lake.target, [SealedRows(wals[1][0].table.slice(1)), *wals[1][1:]], wals[3], NEW)


@pytest.mark.fault("S11")
def test_rows_are_lifted_out_of_files_with_timestamps_as_int96(memory: Path) -> None:
    """As Spark's OPTIMIZE writes them by default."""
    lake, utc = DeltaLake(memory), pa.timestamp("us", "UTC")
    moments = pa.array([-62_135_596_800_000_000, -1, None, 253_402_300_799_999_999], utc)  # of the years 1 and 9999
    wals = {number: [SealedRows(pa.table({"id": [number] * 4, "at": moments}))] for number in (1, 2, 3)}
    for number in (1, 2):
        lake.publish(number, wals[number])
    lake.compact()
    [only], [entry] = lake.files(), [path for path in lake.root.rglob("*.json") if "/compacted/" in path.read_text()]
    size = (lake.root / only).stat().st_size
    pq.write_table(pq.read_table(lake.root / only), lake.root / only, use_deprecated_int96_timestamps=True)
    entry.write_text(entry.read_text().replace(f'"size": {size}', f'"size": {(lake.root / only).stat().st_size}'))
    new = epoch(3, token=30, manifest="3", replaced=[at(2)])
    assert publish(lake.target, new, prepare(lake.target, new, wals[3]), wals[3]) is Publication.SENT
    shown = on_table(lake.root, lambda table: pa.table(table.scan(columns=["id", "at"]).read_all()))
    assert shown.equals(pa.concat_tables([wals[1][0].table, wals[3][0].table]))
