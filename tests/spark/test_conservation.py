"""What a pipeline says of how its rows travel is proven by the epoch's own job, and what isn't so stops the epoch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lockstep import Pipeline, files, rows_of, run_epoch
from lockstep.audits import conserved
from lockstep.compute._conservation import Balances, counts_of_source
from lockstep.compute._conservation import conserved as counted_outputs
from lockstep.compute._counting import ObservedFrame
from lockstep.compute._local_rows import VARIABLE
from lockstep.definition.conservation import Conservation
from lockstep.errors import EpochHeld, Unbalanced
from lockstep.ledger import Ledger
from lockstep.sinks import FileSink
from lockstep.sources import FileSource
from lockstep.states import EpochState
from tests.spark.pipelines import Nowhere
from tests.spark.staged import Staged, stage

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Frames = Mapping[str, "DataFrame"]
ORDERS = "id BIGINT, customer INT, amount INT, tags STRING"
#: the second has no amount, the third no tags, the fourth's customer isn't known
LINES = "1,10,5,a b\n2,11,,c\n3,10,-3,\n4,12,9,d e f\n"
CUSTOMERS = "10,Ann\n11,Bob\n"
KEPT = rows_of("orders").into("rows")
PAID = rows_of("orders").filtered("no amount", "amount IS NULL").filtered("small", "id < 3").into("rows")
TAGS = rows_of("orders").exploded("split(tags, ' ')").into("rows")
OUTER = rows_of("orders").exploded("split(tags, ' ')", outer=True).into("rows")
NAMED = rows_of("orders").filtered("unknown", "customer > 11").joined("many_to_one", key="id").into("rows")
LEFT = rows_of("orders").joined("left", key="id", unmatched="name IS NULL").into("rows")
WHOLE = rows_of("orders").joined("many_to_one", key="id", unmatched="name IS NULL").into("rows")
PER_CUSTOMER = rows_of("orders").aggregated({"who": "customer"}, count="orders").into("rows")
PAIRED = rows_of("orders").joined("one_to_one", key="id", partner="customers").into("rows")


@pytest.fixture(params=["200000", "0"], ids=["by the task", "by Spark"])
def writer(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who writes the outputs."""
    monkeypatch.setenv(VARIABLE, request.param)


def pipeline_of(
    folder: Path,
    said: Conservation,
    transform: Callable[[Frames], Frames],
    lines: str = LINES,
    customers: str = CUSTOMERS,
    **arguments: Any,
) -> Pipeline:
    sources = {}
    schemas = {"orders": ORDERS, "customers": "id INT, name STRING"}
    for (name, schema), text in zip(schemas.items(), (lines, customers), strict=True):
        (folder / name).mkdir()
        columns = ",".join(column.split()[0] for column in schema.split(", "))
        (folder / name / "2013-01-02.csv").write_text(f"{columns}\n{text}")
        path = f"{folder}/{name}/{{interval_start:%Y-%m-%d}}.csv"
        sources[name] = FileSource(path, schema=schema, **(arguments if name == "orders" else {}))

    def using_both(inputs: Frames) -> Frames:
        found = transform(inputs)
        return {**found, "beside": inputs["customers"]} if "beside" not in found else found

    outputs = tuple(dict.fromkeys([*said.outputs, "beside"]))
    return Pipeline("test", sources, using_both, [Nowhere("nowhere", outputs)], conservation=[said])


def staged(session: SparkSession, folder: Path, said: Conservation, transform: Any, **more: Any) -> Staged:
    return stage(session, folder, pipeline_of(folder, said, transform, **more))


def orders(inputs: Frames) -> DataFrame:
    return inputs["orders"]


def joined(inputs: Frames, how: str) -> DataFrame:
    names = inputs["customers"].withColumnsRenamed({"id": "customer"})
    return inputs["orders"].join(names, "customer", how)


def tags(inputs: Frames, function: str) -> DataFrame:
    return inputs["orders"].selectExpr("id", f"{function}(split(tags, ' ')) tag")


def per_customer(inputs: Frames, condition: str = "true", who: str = "customer") -> DataFrame:
    grouped = inputs["orders"].where(condition).groupBy("customer").count()
    return grouped.selectExpr(f"CAST({who} AS STRING) who", "CAST(count AS INT) orders")


def pairs(inputs: Frames) -> DataFrame:
    return inputs["orders"].join(inputs["customers"], "id", "inner")


SOUND = [
    (KEPT, orders, {"in": 4, "rows": 4}),
    (PAID, lambda inputs: orders(inputs).where("amount IS NOT NULL AND id >= 3"),
     {"in": 4, "no amount": 1, "small": 1, "rows": 2}),
    (TAGS, lambda inputs: tags(inputs, "explode"), {"in": 6, "rows": 6}),
    (OUTER, lambda inputs: tags(inputs, "explode_outer"), {"in": 7, "rows": 7}),
    (NAMED, lambda inputs: joined(inputs, "inner"), {"in": 4, "unknown": 1, "rows": 3}),
    (LEFT, lambda inputs: joined(inputs, "left"), {"in": 4, "rows": 4, "unmatched": 1}),
    (PER_CUSTOMER, per_customer, {"in": 4, "rows": 4}),
]  # fmt: skip
SIGNS = {"paid": ">=", "refunds": "<"}


@pytest.mark.usefixtures("writer")
def test_what_a_transform_does_as_was_said_is_counted(
    session: SparkSession, tmp_path: Path, subtests: pytest.Subtests
) -> None:
    for number, (said, transform, counts) in enumerate(SOUND):
        with subtests.test(counts=counts):
            (tmp_path / str(number)).mkdir()
            found = staged(session, tmp_path / str(number), said, lambda i, t=transform: {"rows": t(i)})
            assert found.result.balances == {"orders into rows": counts}
            assert found.result.sources["orders"].rows == 4


FAULTS = [
    (KEPT, lambda inputs: orders(inputs).where("amount > -10"), "in must be rows, found 4 in, 3 rows, 1 lost"),
    (KEPT, lambda inputs: orders(inputs).union(orders(inputs).limit(1)), "found 4 in, 5 rows, 1 too many"),
    (PAID, lambda inputs: orders(inputs).where("id >= 2"),
     r"in must be rows \+ no amount \+ small, found 4 in, 1 no amount, 1 small, 3 rows, 1 too many"),
    (PAID, lambda inputs: orders(inputs).where("id = 4"), "1 rows, 1 lost"),
    (TAGS, lambda inputs: tags(inputs, "explode_outer"), "found 6 in, 7 rows, 1 too many"),
    (OUTER, lambda inputs: tags(inputs, "explode"), "found 7 in, 6 rows, 1 lost"),
    (WHOLE, lambda inputs: joined(inputs, "inner"), "found 4 in, 3 rows, 0 unmatched, 1 lost"),
    (WHOLE, lambda inputs: joined(inputs, "left"), "none may be unmatched, found 4 in, 4 rows, 1 unmatched"),
    (NAMED, lambda inputs: joined(inputs, "left"), "found 4 in, 1 unknown, 4 rows, 1 too many"),
    (LEFT, lambda inputs: joined(inputs, "left").selectExpr("greatest(id, 2) id", "name"),
     "what goes in must come out, found 4 in, 4 rows, 1 unmatched, but other ones: some lost, some doubled"),
    (PER_CUSTOMER, lambda inputs: per_customer(inputs, "amount IS NOT NULL"), "found 4 in, 3 rows, 1 lost"),
    (PER_CUSTOMER, lambda inputs: per_customer(inputs, who="least(customer, 11)"),
     "found 4 in, 4 rows, but other ones: some lost, some doubled"),
]  # fmt: skip


@pytest.mark.fault("K12")
def test_what_a_transform_loses_or_doubles_against_its_word_stops_the_epoch(
    session: SparkSession, tmp_path: Path, subtests: pytest.Subtests
) -> None:
    for number, (said, transform, told) in enumerate(FAULTS):
        (tmp_path / str(number)).mkdir()
        message = rf"^balance of orders into rows: .*{told}; nothing was sealed\. Correct the"
        with subtests.test(told), pytest.raises(Unbalanced, match=message):
            staged(session, tmp_path / str(number), said, lambda i, t=transform: {"rows": t(i)})


def test_a_one_to_one_join_is_proven_from_both_sides(session: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "sound").mkdir()
    both = {"lines": "1,10,5,a\n2,11,6,b\n", "customers": "1,Ann\n2,Bob\n"}
    found = staged(session, tmp_path / "sound", PAIRED, lambda i: {"rows": pairs(i), "beside": pairs(i)}, **both)
    assert found.result.balances == {
        "orders into rows": {"in": 2, "rows": 2},
        "customers into rows": {"in": 2, "rows": 2},
    }
    more = {**both, "customers": "1,Ann\n2,Bob\n3,Cid\n"}
    with pytest.raises(Unbalanced, match="balance of customers into rows: in must be rows, found 3 in, 2 rows, 1 lost"):
        staged(session, tmp_path, PAIRED, lambda i: {"rows": pairs(i)}, **more)


def test_rows_may_stand_in_one_of_several_outputs(session: SparkSession, tmp_path: Path) -> None:
    """Each job reads all rows: they are counted once."""
    said = rows_of("orders").into("paid", "refunds")

    def split(inputs: Frames) -> Frames:
        return {name: orders(inputs).where(f"amount {sign} 0") for name, sign in (("paid", ">="), ("refunds", "<"))}

    with pytest.raises(Unbalanced, match=r"in must be paid \+ refunds, found 4 in, 2 paid, 1 refunds, 1 lost"):
        staged(session, tmp_path, said, split)
    (tmp_path / "again").mkdir()
    honest = rows_of("orders").filtered("no amount", "amount IS NULL").into("paid", "refunds")
    found = staged(session, tmp_path / "again", honest, split)
    assert found.result.balances == {"orders into paid, refunds": {"in": 4, "no amount": 1, "paid": 2, "refunds": 1}}


def test_malformed_records_do_not_go_in(session: SparkSession, tmp_path: Path) -> None:
    bad = f"{LINES}x,10,5,a\n"
    found = staged(session, tmp_path, KEPT, lambda i: {"rows": orders(i)}, lines=bad, on_bad_records="quarantine")
    assert found.result.balances == {"orders into rows": {"in": 4, "rows": 4}}
    assert (found.result.sources["orders"].rows, found.result.sources["orders"].quarantined) == (5, 1)


def test_an_empty_epoch_is_balanced(session: SparkSession, tmp_path: Path) -> None:
    for number, (said, transform, counts) in enumerate(SOUND[3:]):
        (tmp_path / str(number)).mkdir()
        found = staged(session, tmp_path / str(number), said, lambda i, t=transform: {"rows": t(i)}, lines="")
        assert found.result.balances == {"orders into rows": dict.fromkeys(counts, 0)}


Row = tuple[int, bool, int]  #: its id, whether it is to be dropped, how often the transform shows it
ROWS = st.lists(st.tuples(st.integers(-3, 3), st.booleans(), st.sampled_from([0, 1, 1, 1, 2])), max_size=8)


@pytest.mark.fault("K12")
@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=ROWS)
def test_rows_are_proven_exactly_where_each_comes_out_once(session: SparkSession, rows: list[Row]) -> None:
    said = rows_of("orders").filtered("odd", "drops").joined("many_to_one", key="id").into("rows")
    source = FileSource("nowhere/{interval_start:%Y}", schema=ORDERS)
    pipeline = Pipeline("test", {"orders": source}, dict, [Nowhere("nowhere")], conservation=[said])
    frame = session.createDataFrame(rows, "id INT, drops BOOLEAN, copies INT")
    read, balances = ObservedFrame.of(frame, **counts_of_source([said], "orders")), Balances()
    shown = read.frame.selectExpr("CAST(id AS STRING) id", "explode(array_repeat(1, copies)) one")
    outputs = counted_outputs(pipeline, {"rows": shown}, balances)
    outputs["rows"].write.format("noop").mode("overwrite").save()
    balances.sources["orders"] = read.counts()
    wanted = Counter(id for id, drops, _ in rows if not drops)
    found = Counter({id: n for id, n in Counter(id for id, _, copies in rows for _ in range(copies)).items() if n})
    try:
        counts = balances.settle_counts(list(outputs.values()))
    except Unbalanced:
        assert found != wanted
    else:
        assert found == wanted
        assert counts == {
            "orders into rows": {"in": len(rows), "odd": len(rows) - wanted.total(), "rows": len(shown.collect())}
        }


def test_what_an_audit_is_to_tell_of_is_sealed_and_held_until_a_person_answers(
    spark_connect: str, ledger_dsn: str, tmp_path: Path
) -> None:
    (tmp_path / "landing").mkdir()
    (tmp_path / "landing" / "2013-01-01.csv").write_text("id,amount\n1,\n2,7\n3,-1\n")
    pipeline = Pipeline(
        "orders",
        {"orders": FileSource(f"{tmp_path}/landing/{{interval_start:%Y-%m-%d}}.csv", schema="id INT, amount INT")},
        lambda inputs: {name: inputs["orders"].where(f"amount {sign} 0") for name, sign in SIGNS.items()},
        [FileSink(name, output=name, path=str(tmp_path / name)) for name in SIGNS],
        conservation=[rows_of("orders").into("paid", "refunds")],
        audits=[conserved("paid", "refunds")],
        version="test",
    )
    places: dict[str, Any] = {
        "ledger": ledger_dsn, "staging": str(tmp_path / "staging"), "spark": spark_connect, "connections": {}
    }  # fmt: skip
    first = (datetime(2013, 1, 1, tzinfo=UTC), datetime(2013, 1, 2, tzinfo=UTC))
    told = r"conserved_paid_refunds \(orders into paid, refunds: 3 in, 1 paid, 1 refunds, 1 unaccounted\)"
    for _ in range(2):
        with pytest.raises(EpochHeld, match=told):
            run_epoch(pipeline, interval=first, run_id="first", **places)
    assert not (tmp_path / "paid").exists() or not files(str(tmp_path / "paid"))
    with closing(Ledger(ledger_dsn)) as ledger:
        assert ledger.epoch("orders", 1).state is EpochState.STAGED
        ledger.release_epoch("orders", 1, "the source is known for that")
        assert run_epoch(pipeline, interval=first, run_id="first", **places).state is EpochState.CLEANED
        counts = {"in": 3, "paid": 1, "refunds": 1, "unaccounted": 1}
        assert ledger.epoch("orders", 1).summary["balances"] == {"orders into paid, refunds": counts}
