"""What a table, a catalog or an output must not be is refused by name before anything is decided."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table.sorting import SortField, SortOrder
from pyiceberg.transforms import BucketTransform, IdentityTransform
from pyiceberg.types import LongType, NestedField, StringType

from lockstep.connections.postgres import connection
from lockstep.errors import (
    InvalidPipeline,
    PreflightRefused,
    PublishBlocked,
    SinkRejected,
    SinkUnavailable,
    TargetChanged,
    TargetOwned,
)
from lockstep.sinks.iceberg import IcebergSink, _sink, _table
from lockstep.sinks.iceberg._catalogs import _PostgresCatalog
from lockstep.sinks.iceberg._sink import OpenIcebergSink
from lockstep.sinks.values import EpochCut
from lockstep.testing._sealed_rows import OUTPUT, SCHEMA, SealedRows, sealed, table
from lockstep.testing._under_test import epoch, expect_rows, opened, prepare, publish
from tests.sinks.iceberg.iceberg_target import TABLE, IcebergUnderTest

ID = NestedField(1, "id", LongType())
NAME = NestedField(2, "name", StringType())


@pytest.fixture
def target(catalog_dsn: str, memory: Path) -> IcebergUnderTest:
    return IcebergUnderTest(catalog_dsn, memory)


def make(target: IcebergUnderTest, **options: Any) -> None:
    with target.catalog() as catalog:
        catalog.create_namespace_if_not_exists("db")
        fields = options.pop("fields", (ID, NAME))
        place = f"file://{target.folder}/{options.pop('folder', 'theirs')}"
        catalog.create_table(TABLE, Schema(*fields), place, **options)


def preflight(target: IcebergUnderTest, schema: pa.Schema | None = None) -> None:
    with opened(target) as sink:
        sink.preflight(None)
        sink.preflight({OUTPUT: schema or SCHEMA})


BYPASSED = {
    "encryption.key-id": "key",
    "write.data.path": "file:///elsewhere",
    "write.format.default": "ORC",
    "write.location-provider.impl": "org.example.Places",
    "write.object-storage.enabled": "true",
    "write.upsert.enabled": "TRUE",
    "write.wap.enabled": "true",
}
UNFIT: list[tuple[dict[str, Any], str]] = [
    *[({"properties": {name: value}}, f"has {name}={value}") for name, value in BYPASSED.items()],
    ({"partition_spec": PartitionSpec(PartitionField(1, 1000, BucketTransform(4), "b"))}, r"bucket\[4\]\(id\)"),
    ({"sort_order": SortOrder(SortField(1, IdentityTransform()), order_id=1)}, "sort order"),
    (
        {"fields": (NestedField(1, "id", StringType()), NAME)},
        r"column id is long, the table has string.*no column ratio",
    ),
]


@pytest.mark.fault("T7")
def test_what_adoption_would_bypass_and_columns_that_do_not_fit_are_refused(
    target: IcebergUnderTest, subtests: pytest.Subtests
) -> None:
    for options, said in UNFIT:
        with subtests.test(said):
            make(target, **options)
            with opened(target) as sink, pytest.raises(PreflightRefused, match=said):
                sink.preflight(None if "fields" not in options else {OUTPUT: SCHEMA})
            with target.catalog() as catalog:
                catalog.drop_table(TABLE)
    make(target, properties={"write.object-storage.enabled": "false", "write.format.default": "parquet"})
    with opened(target) as sink:
        sink.preflight(None)


def test_epochs_that_are_to_add_columns_go_one_by_one(catalog_dsn: str, memory: Path) -> None:
    target = IcebergUnderTest(catalog_dsn, memory, on_new_columns="add")
    publish(target, epoch(), prepare(target, epoch(), wal := sealed(5)), wal)
    with opened(target) as sink:
        sink.preflight({OUTPUT: SCHEMA.append(pa.field("carrier", pa.string()))})
        assert sink.needs_turn
        sink.preflight({OUTPUT: SCHEMA})
        assert not sink.needs_turn, "of the epoch that it is open for"


def test_a_table_of_somebody_elses_gets_the_columns_that_it_lacks_where_asked(catalog_dsn: str, memory: Path) -> None:
    target = IcebergUnderTest(catalog_dsn, memory, on_new_columns="add")
    make(target)
    with target.table() as theirs:
        theirs.append(pa.table({"id": [-1], "name": ["theirs"]}, pa.schema(list(SCHEMA)[:2])))
    wal = sealed(50)
    publish(target, epoch(), prepare(target, epoch(), wal), wal)
    shown = target.visible()
    assert shown.num_rows == 51 and sorted(shown["id"].to_pylist())[0] == -1
    with target.table() as found:
        assert found.scan("lockstep_epoch = 1").to_arrow().num_rows == 50
    wider = [SealedRows(table(50, 100).append_column("carrier", pa.array(["AA"] * 50)))]
    at = epoch(2, token=20, manifest="b")
    publish(target, at, prepare(target, at, wider), wider)
    with target.table() as found:
        assert found.scan("carrier = 'AA'").to_arrow().num_rows == 50
        assert found.scan("carrier is null").to_arrow().num_rows == 51


def test_a_column_by_the_name_of_the_epochs_or_of_a_type_that_iceberg_lacks_is_refused(
    target: IcebergUnderTest,
) -> None:
    with pytest.raises(PreflightRefused, match="lockstep_epoch"):
        preflight(target, SCHEMA.append(pa.field("lockstep_epoch", pa.int64())))
    with pytest.raises(PreflightRefused, match="Iceberg lacks a type"):
        preflight(target, pa.schema({"id": pa.duration("us")}))


def test_a_missing_table_is_made_at_a_place_and_only_if_that_is_asked_for(catalog_dsn: str, memory: Path) -> None:
    sink = IcebergSink("lake", output=OUTPUT, table=TABLE, catalog="lake", create=True)
    target = IcebergUnderTest(catalog_dsn, memory, create=False)
    with sink.opened(target.context()) as live, pytest.raises(PreflightRefused, match="location="):
        live.preflight(None)
    with pytest.raises(PreflightRefused, match=rf"no table {TABLE}: create it, .* or set create=True"):
        preflight(target, None)
    making = IcebergUnderTest(catalog_dsn, memory)
    with opened(making) as live:
        live.preflight(None)
        assert live.find_marker(1) is None and live.find_marker_of_span("2013/2014") is None
        assert live.newest_markers() == list(live.markers()) == []
    preflight(making, SCHEMA)
    preflight(target, SCHEMA)


def test_a_table_at_a_place_that_some_would_unquote_is_neither_made_nor_written_to(
    catalog_dsn: str, memory: Path, subtests: pytest.Subtests
) -> None:
    for number, folder in enumerate(("my%20lake", "a#b", "a?b=c", "a;b", "a\nb")):
        (own := memory / f"{number}").mkdir()
        target = IcebergUnderTest(catalog_dsn, own)
        with subtests.test(folder):
            for place in ({"folder": own / folder}, {"folder": own, "location": f"file://{own}/{folder}"}):
                with pytest.raises(PreflightRefused, match="location of table"):
                    preflight(IcebergUnderTest(catalog_dsn, **place))
            make(target, folder=folder)
            with opened(target) as sink, pytest.raises(PreflightRefused, match=rf"location of table {TABLE} has '.*'"):
                sink.preflight(None)
            with pytest.raises(PreflightRefused, match="location of table"):
                target.sink().home(target.context())
            with target.catalog() as catalog:
                catalog.drop_table(TABLE)


def test_a_table_belongs_to_one_sink_until_it_lets_go(target: IcebergUnderTest) -> None:
    preflight(target)
    others = (target.context(pipeline="other"), target.context(deployment="99999999-2222-4333-8444-555555555555"))
    for context in others:
        with opened(target, context) as other, pytest.raises(TargetOwned, match="pipeline pipe"):
            other.preflight(None)
    with opened(target) as sink:
        sink.disclaim()
        sink.disclaim()
    with opened(target, others[0]) as other:
        other.preflight(None)
        other.disclaim()
    preflight(target)


def test_a_claim_that_another_one_meets_is_made_once(target: IcebergUnderTest, monkeypatch: pytest.MonkeyPatch) -> None:
    make(target)
    real = _PostgresCatalog.commit_table
    context = target.context(pipeline="other")
    tried: list[int] = []

    def racing(self: _PostgresCatalog, *arguments: Any) -> Any:
        tried.append(1)
        if len(tried) == 2:  # the first one tries whether conditions are kept
            with opened(target, context) as other:
                other.preflight(None)
        return real(self, *arguments)

    monkeypatch.setattr(_PostgresCatalog, "commit_table", racing)
    with opened(target) as sink, pytest.raises(TargetOwned, match="pipeline other"):
        sink.preflight(None)


def test_a_table_that_is_made_anew_after_the_vote_gets_nothing(target: IcebergUnderTest) -> None:
    wal = sealed(20)
    vote = prepare(target, epoch(), wal)
    with target.catalog() as catalog:
        catalog.drop_table(TABLE)
    with opened(target) as sink, pytest.raises(TargetChanged, match="lost table"):
        sink.publish(epoch(), vote, target.staged(epoch(), wal))
    preflight(target)
    with opened(target) as sink, pytest.raises(TargetChanged):
        sink.publish(epoch(), vote, target.staged(epoch(), wal))
    expect_rows(target)


def test_a_catalog_that_applies_what_it_should_refuse_is_refused(
    target: IcebergUnderTest, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(target)
    real = _PostgresCatalog.commit_table
    monkeypatch.setattr(
        _PostgresCatalog, "commit_table", lambda self, table, conditions, updates: real(self, table, (), updates)
    )
    with opened(target) as sink, pytest.raises(PreflightRefused, match="compare-and-swap"):
        sink.preflight(None)


def test_a_commit_that_the_catalog_denies_says_so_in_the_end(
    target: IcebergUnderTest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It counts as one of which nobody knows: a proxy's answer may be of a request that went through."""
    wal = sealed(20)
    vote = prepare(target, epoch(), wal)

    def denied(*arguments: Any) -> Any:
        raise PreflightRefused("sink lake: committing: grant the login what it lacks")

    monkeypatch.setattr(_PostgresCatalog, "commit_table", denied)
    with opened(target) as sink, pytest.raises(SinkUnavailable, match=r"the outcome of 6 commits.*grant the login"):
        sink.publish(epoch(), vote, target.staged(epoch(), wal))


def test_a_connection_that_leads_to_no_catalog_is_refused() -> None:
    sink = IcebergSink("lake", output=OUTPUT, table=TABLE, catalog="lake")
    context = IcebergUnderTest("mysql://secret:password@host/db", Path()).context()
    with pytest.raises(InvalidPipeline, match="neither a PostgreSQL") as refused:
        sink.open(context)
    assert "password" not in str(refused.value)


def test_a_server_that_may_lose_what_it_acknowledged_is_refused(
    target: IcebergUnderTest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "_GUARD", connection._GUARD.replace("current_setting('fsync')", "'off'"))
    with pytest.raises(PreflightRefused, match="fsync = on"), opened(target):
        pass


MEANINGLESS: list[tuple[dict[str, Any], str]] = [
    ({"table": "rows"}, "namespace.table"),
    ({"table": "db..rows"}, "namespace.table"),
    ({"on_new_columns": "drop"}, "on_new_columns"),
    ({"partition_by": ("bucket(id)",)}, "partition_by"),
    ({"output": "no name"}, "output"),
]


def test_a_definition_that_has_no_meaning_is_refused(subtests: pytest.Subtests) -> None:
    for arguments, said in MEANINGLESS:
        with subtests.test(f"{arguments}"), pytest.raises(InvalidPipeline, match=said):
            IcebergSink("lake", **{"output": OUTPUT, "table": TABLE, "catalog": "lake", **arguments})


def test_rows_of_one_partition_are_found_by_it(catalog_dsn: str, memory: Path) -> None:
    """Trap: a file without its partition's value is found by no filter, though its rows match."""
    target = IcebergUnderTest(catalog_dsn, memory, partition_by=("month(at)", "day"))
    rows = table(20, 1).filter(pa.compute.is_valid(table(20, 1)["at"]))
    one_day = rows.set_column(4, "day", pa.array([None] * len(rows), pa.date32()))
    wal = [SealedRows(one_day)]
    publish(target, epoch(), prepare(target, epoch(), wal), wal)
    expect_rows(target, wal)
    with target.table() as found:
        assert found.scan("at >= '2013-01-01T00:00:00+00:00'").to_arrow().num_rows == len(rows)
        assert found.scan("at >= '2013-02-01T00:00:00+00:00'").to_arrow().num_rows == 0
        assert found.scan("day is null").to_arrow().num_rows == len(rows)


@pytest.mark.fault("T13")
@pytest.mark.parametrize("when", ["before", "after the vote", "dropped"])
def test_a_table_of_format_version_1_may_have_lost_a_partition_field(catalog_dsn: str, memory: Path, when: str) -> None:
    """The field stays there, as one without values."""
    target = IcebergUnderTest(catalog_dsn, memory, create=False)
    fields = pa.schema([*SCHEMA, pa.field("lockstep_epoch", pa.int64())])
    with target.catalog() as catalog:
        catalog.create_namespace_if_not_exists("db")
        catalog.create_table(TABLE, fields, f"file://{memory}/theirs", properties={"format-version": "1"})
    wal, vote = sealed(4), prepare(target, epoch(), sealed(4)) if when == "after the vote" else None
    with target.table() as found, found.update_spec() as spec:
        spec.add_field("name", BucketTransform(4), "b")
    if vote is not None:
        with opened(target) as sink, pytest.raises(PublishBlocked, match=r"bucket\[4\]\(name\)"):
            sink.publish(epoch(), vote, target.staged(epoch(), wal))
    with target.table() as found, found.update_spec() as spec:
        spec.remove_field("b")
    if when == "dropped":
        with target.table() as found, found.update_schema() as columns:
            columns.delete_column("name")
        with pytest.raises(PreflightRefused, match="of a dropped column"):
            prepare(target, epoch(), wal)
        return
    publish(target, epoch(), vote or prepare(target, epoch(), wal), wal)
    expect_rows(target, wal)


@pytest.mark.fault("T14")
def test_a_table_that_has_another_format_or_breaks_the_library_after_the_vote_blocks_the_epoch(
    target: IcebergUnderTest, monkeypatch: pytest.MonkeyPatch
) -> None:
    wal = sealed(4)
    vote = prepare(target, epoch(), wal)
    for owner, name, wrong, said in (
        (_sink, "FORMATS", (3,), "has format version 2"),
        (_table, "data_files", lambda *_: 1 // 0, "can't be built: ZeroDivisionError"),
    ):
        with monkeypatch.context() as patch, opened(target) as sink, pytest.raises(PublishBlocked, match=said):
            patch.setattr(owner, name, wrong)
            sink.publish(epoch(), vote, target.staged(epoch(), wal))
    publish(target, epoch(), vote, wal)


def test_a_file_of_several_partitions_is_refused_before_the_decision(catalog_dsn: str, memory: Path) -> None:
    target = IcebergUnderTest(catalog_dsn, memory, partition_by=("day",))
    with pytest.raises(SinkRejected, match=r"several partitions by day.*`lockstep replan`"):
        prepare(target, epoch(), sealed(50))
    expect_rows(target)


@pytest.mark.fault("T3")
def test_any_text_is_published_and_the_vote_builds_the_very_commit(
    target: IcebergUnderTest, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [f"{'x' * 15}\ud7ffz", "", f"{'x' * 15}\U0010ffffz", "\U0010ffff" * 17]  # two a file
    wal = [SealedRows(table(4, 1).set_column(1, "name", pa.array(names)))]
    publish(target, epoch(), prepare(target, epoch(), wal), wal)
    expect_rows(target, wal)
    with target.table() as found:
        assert [found.scan(f"name = '{name}'").to_arrow().num_rows for name in names] == [1] * 4
        before = sorted(target.folder.rglob("*.*"))
    later, more = epoch(2, token=20, manifest="2"), sealed(20)
    monkeypatch.setattr("pyiceberg.manifest.ManifestWriter.add", lambda *_: None)
    with pytest.raises(SinkRejected, match="its commit can't be built: ValueError"):
        prepare(target, later, more)
    written = [path for path in sorted(target.folder.rglob("*.*")) if path not in before]
    assert {path.suffix for path in written} == {".parquet"}, "a vote writes nothing into the table"
    monkeypatch.undo()
    publish(target, later, prepare(target, later, more), more)
    expect_rows(target, wal, more)


def test_a_cut_names_a_snapshot_only_where_one_shows_just_its_epochs(target: IcebergUnderTest) -> None:
    for number in (1, 3, 2):  # as a backfill publishes them
        wal, at = sealed(20, start=100 * number), epoch(number, token=10 + number, manifest=str(number))
        publish(target, at, prepare(target, at, wal), wal)
    cuts = {EpochCut(1): 20, EpochCut(2): 40, EpochCut(3): 60, EpochCut(3, (2,)): 40}
    with opened(target) as sink, target.table() as found:
        assert isinstance(sink, OpenIcebergSink)
        for number, rows in ((1, 20), (3, 40), (2, 60)):
            assert found.scan(snapshot_id=sink.snapshot_of(number)).to_arrow().num_rows == rows, "as it was then"
        for cut, rows in cuts.items():
            [told] = sink.cut(cut)
            predicate = (told.predicate or "").replace("`", '"')
            assert found.scan(predicate).to_arrow().num_rows == rows
            assert (told.snapshot is None) is (cut == EpochCut(2))  # no snapshot has 1 and 2 without 3
            if told.snapshot is not None:
                assert found.scan(snapshot_id=told.snapshot).to_arrow().num_rows == rows
