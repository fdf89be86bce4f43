"""DeltaSink: the sealed files become a Delta table's, whatever others do to that table meanwhile."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import partial
from itertools import count, product
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from lockstep.errors import (
    InvalidPipeline,
    LockstepError,
    PreflightRefused,
    PublishBlocked,
    SinkRejected,
    SinkUnavailable,
    TargetChanged,
    TargetOwned,
)
from lockstep.sinks.delta import DeltaSink
from lockstep.sinks.delta._locations import location_of
from lockstep.sinks.values import EpochCut, Publication
from lockstep.testing._behaviour import behaviours
from lockstep.testing._sealed_rows import OUTPUT, SCHEMA, SealedRows, sealed, table
from lockstep.testing._under_test import epoch, expect_proof, opened, prepare, publish
from tests.apart import apart
from tests.sinks.delta_target import DeltaUnderTest, append, on_table
from tests.sinks.guarantees import expect_row
from tests.sinks.open_apart import behave

ROWS = 1000
SOME = 60
EPOCH = "lockstep_epoch"
TABLE = pa.schema([*SCHEMA, pa.field(EPOCH, pa.int64())])


pytestmark = pytest.mark.apart
Case = Callable[[str], AbstractContextManager[DeltaUnderTest]]


@pytest.fixture
def target(memory: Path) -> DeltaUnderTest:
    return DeltaUnderTest(memory)


@pytest.fixture
def case(memory: Path, subtests: pytest.Subtests) -> Case:
    """A subtest by a name, with a table of its own."""
    numbers = count(1)

    @contextmanager
    def begin(name: str) -> Iterator[DeltaUnderTest]:
        folder = memory / f"{next(numbers)}"
        folder.mkdir()
        with subtests.test(name):
            yield DeltaUnderTest(folder)

    return begin


def make_table(root: Path, schema: pa.Schema = TABLE, **options: Any) -> None:
    """A table of somebody else's."""

    def run() -> None:
        from deltalake import DeltaTable

        DeltaTable.create(root, schema, raise_if_key_not_exists=False, **options)

    apart(run)


@pytest.fixture
def stride() -> int:
    """Adopting sinks differ in what they send, not in their steps; each call here is a fork or two."""
    return 6


def test_delta_sink(case: Case) -> None:
    for behaviour in behaviours(DeltaUnderTest):
        with case(behaviour.__name__) as target:
            behave(behaviour, target)


def published(target: DeltaUnderTest, number: int = 1, rows: int = ROWS) -> list[SealedRows]:
    wal, at = sealed(rows, start=number * 10_000), epoch(number, token=10 * number)
    publish(target, at, prepare(target, at, wal), wal)
    return wal


# --- what the table consists of --------------------------------------------------------------------------------------


def test_the_sealed_files_are_the_tables_and_no_row_is_written_again(target: DeltaUnderTest) -> None:
    published(target)
    assert all(path.startswith("_lockstep/") for path in target.log.files)
    parquet = [path for path in target.log.root.rglob("*.parquet") if "_delta_log" not in path.parts]
    assert sorted(str(path.relative_to(target.log.root)) for path in parquet) == sorted(files := target.log.files)
    published(target, 2, rows=0)
    assert target.log.files == files, "files without rows aren't the table's"


def test_statistics_are_bounds_of_what_the_files_hold(target: DeltaUnderTest) -> None:
    wal = published(target)
    for path, add in target.log.adds().items():
        told = json.loads(add["stats"])
        rows = pq.ParquetFile(target.log.root / path).read()
        assert told["numRecords"] == rows.num_rows
        assert told["nullCount"] == {name: rows[name].null_count for name in told["nullCount"]}
        for name in ("id", EPOCH):
            bounds = pc.min_max(rows[name]).as_py()
            assert (told["minValues"][name], told["maxValues"][name]) == (bounds["min"], bounds["max"])
        days = pc.min_max(rows["day"]).as_py()
        assert (told["minValues"]["day"], told["maxValues"]["day"]) == (f"{days['min']}", f"{days['max']}")
        assert told["minValues"]["name"] <= min(rows["name"].drop_null().to_pylist())
        assert told["maxValues"]["name"] >= max(rows["name"].drop_null().to_pylist())
        assert not {"ratio", "ok"} & told["minValues"].keys(), "no footer tells of NaN"
    assert sum(batches.rows for batches in wal) == ROWS


WIDE = pa.table(
    {
        "b": pa.array([-128, 127, None], pa.int8()),
        "s": pa.array([-(2**15), None, 2**15 - 1], pa.int16()),
        "i": pa.array([-(2**31), 2**31 - 1, None], pa.int32()),
        "l": pa.array([-(2**63), 2**63 - 1, None], pa.int64()),
        "f": pa.array([float("nan"), float("inf"), None], pa.float32()),
        "d": pa.array([float("nan"), -0.0, 1e308], pa.float64()),
        "price": pa.array([Decimal("-99999999.99"), None, Decimal("0.01")], pa.decimal128(10, 2)),
        "huge": pa.array([Decimal(10) ** 37, -(Decimal(10) ** 37), None], pa.decimal128(38, 0)),
        "text": pa.array(["", "x" * 5000, "\U0010ffff" * 40], pa.string()),
        "blob": pa.array([b"", b"\0\xff" * 3000, None], pa.binary()),
        "day": pa.array([date(1, 1, 1), date(9999, 12, 31), None], pa.date32()),
        "at": pa.array(
            [datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC), None],
            pa.timestamp("us", "UTC"),
        ),
        "tags": pa.array([["a", None], [], None], pa.list_(pa.string())),
        "nested": pa.array(
            [{"a": 1, "b": [{"c": "x"}]}, None, {"a": None, "b": None}],
            pa.struct([("a", pa.int32()), ("b", pa.list_(pa.struct([("c", pa.string())])))]),
        ),
        "none": pa.array([None, None, None], pa.string()),
    }
)


def test_wide_types_come_back_as_they_were(target: DeltaUnderTest) -> None:
    wal = [SealedRows(WIDE)]
    publish(target, epoch(), prepare(target, epoch(), wal), wal)
    with opened(target) as sink:
        found = pa.Table.from_batches(list(sink.read(1, OUTPUT, WIDE.schema)), WIDE.schema)
    assert repr(sorted(map(repr, found.to_pylist()))) == repr(sorted(map(repr, WIDE.to_pylist())))


ODD = [pa.time64("us"), pa.timestamp("ns"), pa.uint8(), pa.null(), pa.duration("us"), pa.list_(pa.uint32())]


def test_a_column_that_delta_or_spark_could_not_have_is_refused_by_name(case: Case) -> None:
    types = [("odd", kind, "column odd is") for kind in ODD]
    for name, kind, said in [
        *types,
        *((name, pa.int64(), "which Spark refuses") for name in ("c d", "a,b", "x=y", "f()")),
    ]:
        with case(f"{name} {kind}") as target, opened(target) as sink, pytest.raises(PreflightRefused, match=said):
            sink.preflight({OUTPUT: pa.schema([(name, kind)])})
    instants = pa.schema([("id", pa.int64()), ("at", pa.timestamp("us", "UTC"))])
    with case("partitions by instants") as target:
        target.arguments["partition_by"] = ["at"]
        with opened(target) as sink, pytest.raises(PreflightRefused, match="by at, TIMESTAMP with a zone"):
            sink.preflight({OUTPUT: instants})
        assert not target.log.root.exists()


# --- markers ---------------------------------------------------------------------------------------------------------


def test_markers_outlive_checkpoints_and_the_clean_up_of_the_log(target: DeltaUnderTest) -> None:
    wal = published(target)

    def forget(found: Any) -> None:
        found.create_checkpoint()
        found.cleanup_metadata()

    on_table(target.log.root, forget)
    for path in (target.log.root / "_delta_log").glob("*.json"):
        path.unlink()
    at = epoch(1, token=10)
    with opened(target) as sink:
        found = sink.find_marker(1)
    assert found is not None and (found.epoch, found.token, found.manifest_hash) == (1, 10, at.manifest_hash)
    expect_proof(target, at, wal)


def test_the_newest_markers_are_by_number_and_by_token_and_nobody_elses(target: DeltaUnderTest) -> None:
    for number, token in ((7, 70), (3, 90)):
        wal, at = sealed(3, start=number), epoch(number, token=token)
        publish(target, at, prepare(target, at, wal), wal)
    with opened(target) as sink:
        assert {(one.epoch, one.token) for one in sink.newest_markers()} == {(7, 70), (3, 90)}
        assert [one.epoch for one in sink.markers()] == [3, 7]
    with target.sink().opened(target.context(pipeline="another")) as sink:
        assert sink.find_marker(3) is None and sink.newest_markers() == []


# --- others write to the table too -----------------------------------------------------------------------------------


def _add_a_column(found: Any) -> None:
    from deltalake import Field
    from deltalake.schema import PrimitiveType

    found.alter.add_columns([Field("theirs", PrimitiveType("string"))])


UNASKED = {"dry_run": False, "enforce_retention_duration": False}
FOREIGN: dict[str, Callable[[Any], object]] = {
    "append": lambda found: append(
        Path(found.table_uri.removeprefix("file://")),
        table(10, 500_000).append_column(EPOCH, pa.array([None] * 10, pa.int64())),
    ),
    "optimize": lambda found: found.optimize.compact(),
    "vacuum": lambda found: found.vacuum(0, **UNASKED),
    "vacuum of everything": lambda found: found.vacuum(0, full=True, **UNASKED),
    "checkpoint": lambda found: found.create_checkpoint(),
    "new column": _add_a_column,
}


def test_what_others_do_to_the_table_loses_and_doubles_nothing(target: DeltaUnderTest, case: Case) -> None:
    first, wal = sealed(SOME, start=50_000), sealed(SOME)

    def run(copy: DeltaUnderTest, act: Callable[[Any], object], when: str, theirs: int) -> None:
        shutil.copytree(target.log.root, root := copy.log.root)
        if when == "before prepare":
            on_table(root, act)
        vote = prepare(copy, epoch(), wal)
        if when == "between vote and publish":
            on_table(root, act)
        publish(copy, epoch(), vote, wal)
        if when == "after publish":
            on_table(root, act)
        assert publish(copy, epoch(), vote, wal) is Publication.FOUND
        for at, rows in ((epoch(), wal), (epoch(5, token=50), first)):
            expect_proof(copy, at, rows)
        shown = on_table(root, lambda found: pa.table(found.scan(columns=["id"]).read_all()).num_rows)
        assert shown == 3 * SOME + theirs

    apart(lambda: [published(target, number, SOME) for number in (5, 6)])
    for foreign, when in product(FOREIGN, ("before prepare", "between vote and publish", "after publish")):
        with case(f"{foreign} {when}") as copy:
            apart(partial(run, copy, FOREIGN[foreign], when, 10 if foreign == "append" else 0))


def test_a_table_that_was_rolled_back_is_told_and_never_filled_again(target: DeltaUnderTest) -> None:
    published(target, 5)
    before = on_table(target.log.root, lambda found: found.version())
    wal = sealed(ROWS)
    vote = prepare(target, epoch(), wal)
    publish(target, epoch(), vote, wal)
    on_table(target.log.root, lambda found: found.restore(before))
    with opened(target) as sink, pytest.raises(TargetChanged, match=f"shows 0 of the {ROWS} rows"):
        list(sink.read(1, OUTPUT, SCHEMA))
    assert publish(target, epoch(), vote, wal) is Publication.FOUND
    assert len(target.log.rows()) == ROWS, "those of the other epoch"


def test_a_table_that_was_made_anew_is_another_one(target: DeltaUnderTest) -> None:
    wal = sealed(ROWS)
    vote = prepare(target, epoch(), wal)
    for path in (target.log.root / "_delta_log").iterdir():
        path.unlink()
    make_table(target.log.root)
    with opened(target) as sink, pytest.raises(TargetChanged, match="voted"):
        sink.publish(epoch(), vote, target.staged(epoch(), wal))


# --- whose it is, and what it must be --------------------------------------------------------------------------------


def test_a_table_belongs_to_one_sink(target: DeltaUnderTest) -> None:
    published(target)
    with target.sink().opened(target.context(pipeline="another")) as other, pytest.raises(TargetOwned, match="belongs"):
        other.preflight(None)
    with opened(target) as sink:
        sink.disclaim()
    with target.sink().opened(target.context(pipeline="another")) as other:
        other.preflight(None)


def test_an_existing_table_is_claimed_and_keeps_its_rows_and_columns_in_its_order(target: DeltaUnderTest) -> None:
    target.arguments["create"] = False
    with opened(target) as sink, pytest.raises(PreflightRefused, match="create=True"):
        sink.preflight(None)
    schema = pa.schema([pa.field("more", pa.string()), *reversed(list(TABLE))])
    make_table(target.log.root, schema)
    theirs = table(10).append_column(EPOCH, pa.nulls(10, pa.int64())).append_column("more", pa.nulls(10, pa.string()))
    append(target.log.root, theirs.select(schema.names))
    wal = published(target)
    assert len(target.log.rows()) == ROWS + 10
    expect_proof(target, epoch(1, token=10), wal)


BYPASSED: dict[str, tuple[Callable[[Any], object], str]] = {
    "a constraint": (lambda found: found.alter.add_constraint({"positive": "id >= 0"}), "constraint positive"),
    "a retention of transactions": (
        lambda found: found.alter.set_table_properties({"delta.setTransactionRetentionDuration": "interval 7 days"}),
        "setTransactionRetentionDuration",
    ),
}


def test_what_adoption_would_bypass_is_refused_by_name_and_blocks_a_decided_epoch(case: Case) -> None:
    wal = sealed(SOME)
    for what, (act, named) in BYPASSED.items():
        with case(what) as target:
            vote = prepare(target, epoch(), wal)
            on_table(target.log.root, act)
            with opened(target) as sink:
                with pytest.raises(PreflightRefused, match=named):
                    sink.preflight(None)
                with pytest.raises(PublishBlocked, match=named):
                    sink.publish(epoch(), vote, target.staged(epoch(), wal))
            assert target.log.added() == []


def _require(root: Path, **protocol: Any) -> None:
    """Have the table ask this of whoever reads or writes it, as nothing but Spark can."""
    entry = root / "_delta_log" / f"{len(list((root / '_delta_log').glob('*.json'))):020}.json"
    entry.write_text(json.dumps({"protocol": {"minReaderVersion": 1, "minWriterVersion": 7, **protocol}}) + "\n")


ASKING: dict[str, dict[str, Any]] = {
    "the feature clustering, the feature domainMetadata": {"writerFeatures": ["clustering", "domainMetadata"]},
    **{
        f"the feature {one}": {"writerFeatures": [one]}
        for one in ("identityColumns", "inCommitTimestamp", "rowTracking")
    },
    "writer version 6": {"minWriterVersion": 6},
}


ENFORCED = [
    ("name", "string", "__CHAR_VARCHAR_TYPE_STRING", "varchar(3)"),
    ("name", "string", "delta.generationExpression", "upper(x)"),
    ("inner", "long", "delta.invariants", "{}"),
]


@pytest.mark.fault("S6")
def test_a_table_that_asks_for_what_a_commit_does_not_do_is_refused_before_the_vote(case: Case) -> None:
    for named, protocol in ASKING.items():
        with case(named) as target:
            make_table(target.log.root)
            _require(target.log.root, **protocol)
            with opened(target) as sink:
                with pytest.raises(PreflightRefused, match=named):
                    sink.preflight(None)
                with pytest.raises(PreflightRefused, match=named):
                    sink.prepare(epoch(), target.staged(epoch(), sealed(SOME)))
    text, parts = pa.field("name", pa.string()), pa.field("more", pa.struct([pa.field("inner", pa.int64())]))
    for column, type, named, value in ENFORCED:
        with case(f"{named} of {column}") as target:
            make_table(target.log.root, pa.schema([text, parts, (EPOCH, pa.int64())]))
            old = rf"\"{column}\",\"type\":\"{type}\",\"nullable\":true,\"metadata\":{{"
            _alter_schema(target.log.root, old, old + rf"\"{named}\":\"{value}\"")
            said = r"varchar\(3\) of column name" if value == "varchar(3)" else f"{named} of column .*{column}"
            with opened(target) as sink, pytest.raises(PreflightRefused, match=said):
                sink.preflight(None)
    with case("column mapping") as target:
        make_table(target.log.root)
        _alter_schema(target.log.root, '"configuration":{}', '"configuration":{"delta.columnMapping.mode":"name"}')
        said = "column mapping|columnMapping"
        with opened(target) as sink, pytest.raises((PreflightRefused, SinkUnavailable), match=said):
            sink.preflight(None)


def _alter_schema(root: Path, old: str, new: str) -> None:
    """Change the table's schema by one log entry, as nothing but Spark can."""
    entries = sorted((root / "_delta_log").glob("*.json"))
    [*_, metadata] = [line for entry in entries for line in entry.read_text().splitlines() if '"metaData"' in line]
    assert old in metadata
    (root / "_delta_log" / f"{len(entries):020}.json").write_text(metadata.replace(old, new) + "\n")


ALTERED: dict[str, tuple[str, str, type[LockstepError], str]] = {
    "another type": (r"\"id\",\"type\":\"long", r"\"id\",\"type\":\"string", PublishBlocked, "column id is string"),
    "required": (
        r"\"name\",\"type\":\"string\",\"nullable\":true",
        r"\"name\",\"type\":\"string\",\"nullable\":false",
        PublishBlocked,
        "nulls in name",
    ),
    "partitioned": ('"partitionColumns":[]', '"partitionColumns":["day"]', PublishBlocked, "old .* several values"),
    "lost column": (r"\"name\":\"name", r"\"name\":\"other", PublishBlocked, "lacks the columns name"),
    "other owner": ("/pipe/", "/another/", TargetChanged, "belongs to"),
}


def test_a_table_that_was_altered_since_the_decision_blocks_the_epoch(target: DeltaUnderTest, case: Case) -> None:
    wal = sealed(SOME)
    vote = prepare(target, epoch(), wal)
    for what, (old, new, raised, named) in ALTERED.items():
        with case(what) as copy:
            shutil.copytree(target.log.root, copy.log.root)
            _alter_schema(copy.log.root, old, new)
            with opened(copy) as sink, pytest.raises(raised, match=named) as no:
                sink.publish(epoch(), vote, copy.staged(epoch(), wal))
            assert copy.log.added() == [] and "replan" not in str(no.value), "which a decided epoch refuses"


def test_what_the_library_refuses_is_no_conflict(target: DeltaUnderTest) -> None:
    wal = sealed(ROWS)
    vote = prepare(target, epoch(), wal)

    def run() -> None:
        from deltalake import DeltaTable
        from deltalake.exceptions import CommitFailedError

        def refuse(*_: object, **__: object) -> None:
            raise CommitFailedError("the table is append-never")

        DeltaTable.create_write_transaction = refuse  # type: ignore[method-assign]  # in this child only
        with opened(target) as sink:
            sink.publish(epoch(), vote, target.staged(epoch(), wal))

    with pytest.raises(PublishBlocked, match="append-never"):
        apart(run)


OF_OTHERS: list[tuple[pa.Schema, list[str], str]] = [
    (TABLE.set(0, pa.field("id", pa.string())), [], "column id is string in the table and long"),
    (SCHEMA, [], f"no column {EPOCH}"),
    (TABLE.append(pa.field("region", pa.string())), ["region"], "by region, which the output lacks"),
    (TABLE, ["name"], "partitioned by name"),
]


def test_a_table_whose_columns_do_not_fit_is_refused_by_name(case: Case) -> None:
    for schema, partition_by, said in OF_OTHERS:
        with case(said) as target:
            make_table(target.log.root, schema, partition_by=partition_by)
            if schema is TABLE:
                target.arguments["partition_by"] = ["day"]
            with opened(target) as sink, pytest.raises(PreflightRefused, match=said):
                sink.preflight({OUTPUT: SCHEMA})
            with pytest.raises(PreflightRefused, match=said):
                prepare(target, epoch(), sealed(SOME))
    with case("a required column without values") as target:
        make_table(target.log.root, TABLE.set(1, pa.field("name", pa.string(), nullable=False)))
        with pytest.raises(SinkRejected, match=r"nulls in name.*NOT NULL"):
            prepare(target, epoch(), sealed(ROWS))
    with case("required floats, of which footers tell no bounds") as target:
        make_table(target.log.root, pa.schema([pa.field("f", pa.float64(), nullable=False), (EPOCH, pa.int64())]))
        prepare(target, epoch(), [SealedRows(pa.table({"f": [float("nan"), 1.0]}))])
        with pytest.raises(SinkRejected, match=r"nulls in f.*NOT NULL"):
            prepare(target, epoch(2), [SealedRows(pa.table({"f": [None, 1.0]}))])


def test_new_columns_are_refused_or_added_as_asked(target: DeltaUnderTest) -> None:
    first = published(target, 5)
    more = [SealedRows(table(ROWS).append_column("extra", pa.array(range(ROWS), pa.int64())))]
    with pytest.raises(PreflightRefused, match="lacks the columns extra"):
        prepare(target, epoch(), more)
    target.arguments["on_new_columns"] = "add"
    vote = prepare(target, epoch(), more)
    assert "extra" not in json.dumps(target.log.actions()), "nothing is changed before the decision"
    publish(target, epoch(), vote, more)
    assert publish(target, epoch(), vote, more) is Publication.FOUND
    expect_proof(target, epoch(5, token=50), first)
    found = on_table(target.log.root, lambda found: pa.table(found.scan(columns=["extra"]).read_all())["extra"])
    assert (found.null_count, len(found)) == (ROWS, 2 * ROWS)


# --- partitions ------------------------------------------------------------------------------------------------------


def test_an_epoch_of_one_partition_goes_into_it_and_one_of_several_is_refused(memory: Path) -> None:
    target = DeltaUnderTest(memory, partition_by=["day"])
    with pytest.raises(SinkRejected, match=r"several values of day, .*`lockstep replan`"):
        prepare(target, epoch(9, token=90), sealed(ROWS))
    assert target.log.files == []
    for number, day in enumerate((date(2013, 1, 2), None, date(2013, 1, 3)), 1):
        wal = [SealedRows(table(100).set_column(4, "day", pa.array([day] * 100, pa.date32())))]
        at = epoch(number, token=number)
        publish(target, at, prepare(target, at, wal), wal)
        expect_proof(target, at, wal)
    told = [add["partitionValues"] for add in target.log.adds().values()]
    assert [one["day"] for one in told] == ["2013-01-02"] * 2 + [None] * 2 + ["2013-01-03"] * 2
    days = on_table(memory / "table", lambda found: pa.table(found.scan(columns=["day"]).read_all())["day"].to_pylist())
    assert days.count(None) == 100 and days.count(date(2013, 1, 2)) == 100


def test_a_partition_may_be_a_long_text_or_a_moment_of_no_zone(case: Case) -> None:
    site, moment = "https://example.org/" + "x" * 300, datetime(2013, 1, 2, 3, 4, 5, 6)
    for told, values in (
        (site, pa.array([site] * 2)),
        ("2013-01-02 03:04:05.000006", pa.array([moment] * 2, pa.timestamp("us"))),
    ):
        with case(told) as target:
            target.arguments["partition_by"] = ["by"]
            wal = [SealedRows(pa.table({"id": [1, 2], "by": values}))]
            publish(target, epoch(), prepare(target, epoch(), wal), wal)
            found = [add["partitionValues"] for add in target.log.adds().values()]
            assert found == [{"by": told}] * len(target.log.files)
    several = [SealedRows(pa.table({"id": range(4), "by": [site + end for end in "abab"]}))]
    with case("two long texts") as target:
        target.arguments["partition_by"] = ["by"]
        with pytest.raises(SinkRejected, match="several values of by"):
            prepare(target, epoch(), several)


#: text to partition by, the folder that Spark makes of it, and how its log names that
OPTIMIZED = [("São", "city=São", "city=São"), ("a/b 50%", "city=a%2Fb 50%25", "city=a%252Fb%2050%2525")]
DELETED = {"storageType": "i", "sizeInBytes": 36, "cardinality": 2}  # the rows 3 and 4
DELETED["pathOrInlineDv"] = "^Bg9^0rr910000000000iXQKl0rr91000315c8Xg0@@D7"


def _optimize(target: DeltaUnderTest, city: str, folder: str, path: str, vector: dict[str, Any] | None) -> None:
    """As Spark does it, with its names of files."""
    root, adds = target.log.root, target.log.adds()
    (root / folder).mkdir()
    rows = pa.concat_tables([pq.ParquetFile(root / name).read() for name in adds]).drop_columns(["city"])
    pq.write_table(rows, root / folder / "part-0.parquet")
    add = {"path": f"{path}/part-0.parquet", "partitionValues": {"city": city}, "dataChange": False}
    add |= {"size": (root / folder / "part-0.parquet").stat().st_size, "modificationTime": 0}
    add |= {"stats": json.dumps({"numRecords": rows.num_rows}), **({"deletionVector": vector} if vector else {})}
    gone = [{"remove": {"path": name, "dataChange": False, "deletionTimestamp": 0}} for name in adds]
    entry = root / "_delta_log" / f"{len(list((root / '_delta_log').glob('*.json'))):020}.json"
    entry.write_text("".join(f"{json.dumps(action, ensure_ascii=False)}\n" for action in [*gone, {"add": add}]))


@pytest.mark.fault("S1")
def test_rows_that_spark_has_optimized_are_replaced_whatever_text_partitions_them(case: Case) -> None:
    for (city, folder, path), vector in product(OPTIMIZED, (None, DELETED)):
        with case(f"{city} {'with' if vector else 'without'} deleted rows") as target:
            target.arguments["partition_by"] = ["city"]
            wals = [[SealedRows(table(40, n * 100).append_column("city", pa.array([city] * 40)))] for n in range(2)]
            publish(target, epoch(1), prepare(target, epoch(1), wals[1]), wals[1])
            if vector:
                features = {name: ["deletionVectors"] for name in ("readerFeatures", "writerFeatures")}
                _require(target.log.root, minReaderVersion=3, **features)
            _optimize(target, city, folder, path, vector)
            new = epoch(3, token=30, manifest="3", replaced=[epoch(1)])
            if vector:
                with pytest.raises(PreflightRefused, match="PURGE"):
                    prepare(target, new, wals[0])
                continue
            publish(target, new, prepare(target, new, wals[0]), wals[0])
            shown = on_table(target.log.root, lambda found: pa.table(found.scan(columns=["id"]).read_all())["id"])
            assert sorted(shown.to_pylist()) == list(range(40))
            with pytest.raises(FileExistsError):
                location_of(str(target.log.root)).append(1, b"")


@pytest.mark.fault("S7")
def test_of_a_partition_that_spark_has_optimized_the_rows_of_one_epoch_are_replaced(target: DeltaUnderTest) -> None:
    """Its files lack the columns that they are partitioned by; so does what is written anew of them."""
    target.arguments["partition_by"] = ["city"]
    wals = [[SealedRows(table(40, n * 100).append_column("city", pa.array(["São"] * 40)))] for n in range(5)]
    for number in (1, 2):
        publish(target, epoch(number), prepare(target, epoch(number), wals[number]), wals[number])
    _optimize(target, "São", "city=São", "city=São", None)
    for number, replaced in ((3, 1), (4, 2)):
        new = epoch(number, token=30, manifest="3", replaced=[epoch(replaced)])
        publish(target, new, prepare(target, new, wals[number]), wals[number])
        shown = on_table(target.log.root, lambda found: pa.table(found.scan(columns=["id", "city", EPOCH]).read_all()))
        rows = Counter((row[EPOCH], row["id"] // 100, row["city"]) for row in shown.to_pylist())
        assert rows == {(left, left, "São"): 40 for left in (number - 1, number)}


# --- as described ----------------------------------------------------------------------------------------------------


MEANINGLESS: list[tuple[dict[str, Any], str]] = [
    ({"path": "gs://bucket/table"}, "gs:// isn't supported"),
    ({"path": "s3a://bucket/table"}, "s3a:// is s3://"),
    ({"path": "s3://bucket"}, "s3://bucket/prefix"),
    ({"path": "s3://bucket/a table"}, "letters, digits"),
    ({"path": "s3://bucket/table?secret_access_key=hush"}, "carries a secret"),
    ({"path": "s3://me:hush@bucket/table"}, "carries a login"),
    ({"path": "/lake/a%41b"}, "has '%41', which deltalake or Spark decodes"),
    ({"path": "file:///lake/a%20b"}, "has '%20'"),
    ({"path": "/lake/a?b"}, r"has '\?'"),
    ({"on_new_columns": "drop"}, "on_new_columns"),
    ({"partition_by": "day"}, r"give \['day'\]"),
    ({"partition_by": [EPOCH]}, "partition by"),
    ({"epoch_column": ""}, "epoch_column"),
]


@pytest.mark.fault("S12")
def test_a_description_that_makes_no_sense_is_refused(subtests: pytest.Subtests) -> None:
    for arguments, said in MEANINGLESS:
        with subtests.test(said):
            with pytest.raises(InvalidPipeline, match=said) as refused:
                DeltaSink(**{"name": "delta", "output": OUTPUT, "path": "/table", **arguments})
            assert "hush" not in str(refused.value)


@pytest.mark.fault("S5")
def test_a_file_that_is_missing_or_damaged_gives_a_verdict_and_other_epochs_can_be_read(target: DeltaUnderTest) -> None:
    wals = {number: published(target, number, SOME) for number in (1, 2)}
    file = next(target.log.root / path for path in target.log.files if "/1/" in path)
    for damage in (partial(file.write_bytes, b"PAR1"), file.unlink):
        damage()
        with opened(target) as sink, pytest.raises(SinkUnavailable, match="can't be read"):
            list(sink.read(1, OUTPUT, SCHEMA))
        expect_proof(target, epoch(2, token=20), wals[2])


@pytest.mark.apart(False)
@pytest.mark.tier("all")
def test_the_page_of_guarantees_tells_the_truth_about_delta_sink(memory: Path) -> None:
    expect_row("DeltaSink", DeltaUnderTest(memory))


# --- read as of an epoch ---------------------------------------------------------------------------------------------


def test_a_cut_shows_its_epochs_and_no_other(target: DeltaUnderTest) -> None:
    for number in (1, 3, 2):
        published(target, number, rows=20)

    def count(cut: EpochCut) -> int:
        from deltalake import DeltaTable

        with closing(DeltaSink.open(target.sink(), target.context())) as sink:
            [told] = sink.cut(cut)
        rows = DeltaTable(target.folder / "table").scan(predicate=(told.predicate or "").replace("`", '"'))
        return sum(batch.num_rows for batch in pa.RecordBatchReader.from_stream(rows))

    for cut, rows in {EpochCut(1): 20, EpochCut(2): 40, EpochCut(3): 60, EpochCut(3, (2,)): 40}.items():
        assert apart(partial(count, cut)) == rows
