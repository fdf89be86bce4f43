"""What audits find in a sealed WAL, and what they refuse to be asked."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lockstep.audits import (
    Audit,
    accepted_values,
    conserved,
    evaluate,
    fresh_until,
    in_range,
    none_where,
    not_null,
    row_count,
    sql,
    steady,
    unique,
    volume,
)
from lockstep.audits.audit import audit_from_spec, quarantining, require_sound, rules_by_output
from lockstep.audits.evaluate import Answer, AuditContext, ask
from lockstep.epoch import Interval, Json
from lockstep.errors import AuditFailed, InvalidPipeline
from lockstep.wal.manifest import canonical
from lockstep.wal.reading import SealedWal
from lockstep.wal.staging import Staging

DEPLOYMENT = "0b2f9c1e-1111-4222-8333-444455556666"
DAY = Interval(datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 2, tzinfo=UTC))
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
ORDERS = pa.table(
    {
        "id": pa.array([1, 2, 2, None, None], pa.int64()),
        "customer": ["ann", "o'hara", None, "ann", 'a "b"'],
        "amount": pa.array(
            [Decimal("1.50"), Decimal("-3.00"), Decimal("99.99"), None, Decimal("0.00")], pa.decimal128(10, 2)
        ),
        "weight": [0.5, math.nan, -1.0, None, 2.0],
        "at": pa.array([NOON, NOON, None, NOON, NOON], pa.timestamp("us", "UTC")),
        "naïve time": pa.array([datetime(2026, 1, 1, 23)] * 5, pa.timestamp("us")),
        "day": [date(2026, 1, 1)] * 5,
        "a.b": [1, 2, 3, 4, 5],
        "tags": [["x"], [], None, ["y"], ["z", "x"]],
    }
)


class Sealed:
    """A sealed WAL in a folder, of any outputs, each in two files."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.staging = Staging(str(root))
        self.tokens = 0

    def __call__(self, **outputs: pa.Table) -> SealedWal:
        self.tokens += 1
        folder = self.staging.folder(DEPLOYMENT, "orders", 7, self.tokens)
        self.staging.create(folder)
        for name, table in outputs.items():
            place = self.root / folder / name
            place.mkdir()
            half = (len(table) + 1) // 2
            pq.write_table(table.slice(0, half), place / "part-0.parquet")
            pq.write_table(table.slice(half), place / "part-1.parquet")
        manifest = self.staging.seal(
            folder,
            deployment=DEPLOYMENT,
            pipeline="orders",
            epoch=7,
            token=self.tokens,
            outputs=tuple(outputs),
            observed={name: len(table) for name, table in outputs.items()},
            sources={},
        )
        return self.staging.open(folder, manifest.hash)


@pytest.fixture
def sealed(tmp_path: Path) -> Sealed:
    return Sealed(tmp_path)


History = Sequence[tuple[Json, Mapping[str, float]]]


def occasion(interval: Interval | None = DAY, history: History = ()) -> AuditContext:
    return AuditContext(7, interval, NOON, lambda limit: history[:limit])


def asked(wal: SealedWal, audit: Audit, at: AuditContext | None = None) -> Answer:
    """As a plan froze it."""
    [answer] = ask([audit_from_spec(audit.spec())], at or occasion(), wal)
    assert answer.result.name == audit.name and answer.result.blocking == audit.blocking
    return answer


ANSWERS: list[tuple[Audit, int]] = [
    (not_null("orders", "customer"), 1),
    (not_null("orders", "id"), 2),
    (not_null("orders", "day"), 0),
    (not_null("orders", "ID"), 2),
    (not_null("orders", "a.b"), 0),
    (not_null("orders", "tags"), 1),
    (unique("orders", "id"), 1),
    (unique("orders", ["id", "customer"]), 0),
    (unique("orders", ["customer"]), 1),
    (unique("orders", ["a.b"]), 0),
    (accepted_values("orders", "customer", ["ann", "o'hara", 'a "b"']), 0),
    (accepted_values("orders", "customer", ["ann"]), 2),
    (accepted_values("orders", "id", [1, 2]), 0),
    (accepted_values("orders", "day", [date(2026, 1, 1)]), 0),
    (in_range("orders", "amount", 0), 1),
    (in_range("orders", "amount", Decimal("-3.00"), Decimal("99.99")), 0),
    (in_range("orders", "amount", at_most=Decimal("99.98")), 1),
    (in_range("orders", "weight", at_most=2.0), 1),
    (in_range("orders", "weight", 0), 1),
    (in_range("orders", "at", NOON, NOON), 0),
    (in_range("orders", "at", NOON + timedelta(seconds=1)), 4),
    (in_range("orders", "day", at_least=date(2026, 1, 2)), 5),
    (row_count("orders"), 0),
    (row_count("orders", 6), 1),
    (row_count("orders", None, 4), 1),
    (fresh_until("orders", "at", timedelta(hours=12)), 0),
    (fresh_until("orders", "at", timedelta(hours=11, minutes=59)), 1),
    (fresh_until("orders", "naïve time", timedelta(hours=1)), 0),
    (fresh_until("orders", "naïve time"), 1),
    (fresh_until("orders", "day", timedelta(days=1)), 0),
    (sql("late", 'SELECT * FROM orders WHERE "at" < $interval_start;', outputs="orders"), 0),
    (sql("late", 'SELECT * FROM orders WHERE "at" < $interval_end -- all', outputs="orders"), 4),
    (sql("own", "SELECT 1 WHERE $epoch = 7", outputs=["orders"]), 1),
]


def named(audits: Sequence[Audit]) -> list[Audit]:
    """With names of their own, as a plan froze them."""
    return [audit_from_spec(dataclasses.replace(audit, name=f"audit_{n}").spec()) for n, audit in enumerate(audits)]


def test_an_audit_counts_the_rows_that_offend(sealed: Sealed) -> None:
    found = ask(named([audit for audit, _ in ANSWERS]), occasion(), sealed(orders=ORDERS))
    told = {f"{n} {audit.name}": (offending, sampled(audit, offending)) for n, (audit, offending) in enumerate(ANSWERS)}
    assert {at: (one.result.offending, bool(one.sample)) for at, one in zip(told, found, strict=True)} == told


def sampled(audit: Audit, offending: int) -> bool:
    return offending > 0 and not audit.name.startswith("row_count")


def test_a_sample_has_all_columns_of_rows_that_offend(sealed: Sealed) -> None:
    wal = sealed(orders=ORDERS)
    [row] = asked(wal, not_null("orders", "customer")).sample
    assert row["amount"] == Decimal("99.99") and set(row) == set(ORDERS.column_names)
    many = pa.table({"id": pa.nulls(1000, pa.int64())})
    assert len(asked(sealed(orders=many), not_null("orders", "id")).sample) == evaluate.SAMPLE


def test_an_empty_output_offends_who_counts_or_wants_it_fresh_and_nobody_else(sealed: Sealed) -> None:
    audits = [audit for audit, _ in ANSWERS if audit.name != "own"]
    found = ask(named(audits), occasion(), sealed(orders=ORDERS.slice(0, 0)))
    offending = [audit for audit, one in zip(audits, found, strict=True) if one.result.offending]
    fresh = [audit for audit in audits if audit.name.startswith("fresh")]
    assert {one.result.offending for one in found} == {0, 1}
    assert offending == [row_count("orders"), row_count("orders", 6), *fresh]


def test_a_query_may_join_outputs(sealed: Sealed) -> None:
    customers = pa.table({"name": ["ann", "o'hara"]})
    orphans = sql(
        "orphans", "SELECT * FROM orders ANTI JOIN customers ON customer = name", outputs=["orders", "customers"]
    )
    assert asked(sealed(orders=ORDERS, customers=customers), orphans).result.offending == 2


def test_without_an_interval_an_epoch_is_fresh_as_of_its_planning(sealed: Sealed) -> None:
    wal, newest = sealed(orders=ORDERS), fresh_until("orders", "at")
    assert asked(wal, newest, occasion(None)).result.offending == 0
    started = sql("started", "SELECT 1 WHERE $interval_start IS NOT NULL", outputs="orders")
    assert asked(wal, started, occasion(None)).result.offending == 0


def counts(*rows: int) -> History:
    return [({"outputs": {"orders": {"rows": one}}}, {}) for one in rows]


def test_volume_is_compared_with_the_median_of_the_epochs_before(sealed: Sealed, subtests: pytest.Subtests) -> None:
    cases: list[tuple[History, int]] = [
        (counts(), 0),
        (counts(5, 5, 500), 0),
        (counts(10, 10, 1), 0),
        (counts(11, 11, 1), 1),
        (counts(3, 3, 3), 1),
        (counts(0), 1),
    ]
    wal, audit = sealed(orders=ORDERS), volume("orders", within=0.5)
    for history, offending in cases:
        with subtests.test(history=history, offending=offending):
            answer = asked(wal, audit, occasion(history=history))
            assert (answer.result.offending, answer.result.value) == (offending, 5.0)
            assert offending == bool(answer.result.told)
    for epochs, offending in (2, 0), (5, 1):
        history = counts(5, 5, 100, 100, 100)
        assert asked(wal, volume("orders", epochs=epochs), occasion(history=history)).result.offending == offending


def replacing(*rows: int, history: History = ()) -> AuditContext:
    """Of an epoch in the place of several, of so many rows."""
    return dataclasses.replace(occasion(history=history), replaced=tuple(one for one, _ in counts(*rows)))


def test_the_volume_of_an_epoch_in_the_place_of_several_is_compared_with_the_sum_of_theirs(sealed: Sealed) -> None:
    wal, audit = sealed(orders=ORDERS), volume("orders", within=0.5)
    assert asked(wal, audit, replacing(1, 1, 2, history=counts(1, 1, 2))).result.offending == 0
    short = asked(wal, audit, replacing(5, 5, 5, history=counts(5, 5, 5))).result
    assert (short.offending, short.told) == (1, "5, the 3 epochs that it replaces let expect 7.5 to 22.5")
    unknown = dataclasses.replace(replacing(1), replaced=({}, *replacing(1).replaced))
    assert asked(wal, audit, unknown).result.offending == 0, "of one of them nobody has counted the output"


def test_what_can_not_be_summed_is_left_out_for_an_epoch_in_the_place_of_several_and_the_result_says_so(
    sealed: Sealed,
) -> None:
    wal, at = sealed(orders=ORDERS), replacing(1, 1, 2, history=[({}, {"ids": 1.0})])
    for audit in (steady("orders", "count(id)", name="ids", within=0), row_count("orders", 1, at_most=2)):
        found = asked(wal, audit, at).result
        assert (found.offending, found.value) == (0, None)
        assert found.told is not None and "replaces several epochs" in found.told
    assert asked(wal, row_count("orders", 6, 9), at).result.told == "5 rows, at least 6 expected"
    assert asked(wal, row_count("orders", 5), at).result.told is None


def test_a_measure_is_compared_with_what_the_same_audit_measured_before(sealed: Sealed) -> None:
    nulls = steady("orders", "count(*) FILTER (WHERE id IS NULL)", name="nulls", within=0)
    wal = sealed(orders=ORDERS)
    first = asked(wal, nulls, occasion(history=[({}, {"another": 9.0})])).result
    assert (first.offending, first.value) == (0, 2.0)
    later = asked(wal, nulls, occasion(history=[({}, {"nulls": 3.0}), ({}, {})])).result
    assert (later.offending, later.told) == (1, "2, the 1 epochs before let expect 3 to 3")


def test_what_cant_be_asked_fails_closed_and_by_name(sealed: Sealed, subtests: pytest.Subtests) -> None:
    cases: list[Audit] = [
        not_null("orders", "nope"),
        sql("typo", "SELEC 1", outputs="orders"),
        sql("two", "SELECT 1; SELECT 2", outputs="orders"),
        sql("parameter", "SELECT $nope", outputs="orders"),
        sql("elsewhere", "SELECT * FROM customers", outputs="orders"),
        sql("a_file", "SELECT * FROM read_text('/etc/hostname')", outputs="orders"),
        sql("a_setting", "SET memory_limit = '1TB'", outputs="orders"),
        sql("a_change", "DELETE FROM orders", outputs="orders"),
        steady("orders", "sum(amount) FILTER (WHERE id > 99)", name="null_sum"),
        steady("orders", "max(customer)", name="text"),
        steady("orders", "id", name="many"),
    ]
    wal = sealed(orders=ORDERS)
    for audit in cases:
        with subtests.test(audit=audit), pytest.raises(AuditFailed, match=f"audit {audit.name}"):
            asked(wal, audit)


def test_a_failure_tells_no_value_of_a_row(sealed: Sealed) -> None:
    planted = pa.table({"secret": ["p4ssw0rd"]})
    with pytest.raises(AuditFailed, match="ConversionException") as failed:
        asked(sealed(orders=planted), sql("cast", "SELECT 1 FROM orders WHERE secret::INT > 1", outputs="orders"))
    chain: BaseException | None = failed.value
    while chain is not None:
        assert "p4ssw0rd" not in str(chain)
        chain = chain.__cause__


def test_columns_that_differ_in_case_alone_are_not_taken_for_each_other(sealed: Sealed) -> None:
    twins = pa.table({"a": [1, None], "A": [1, 1], "b": [1, 2]})
    with pytest.raises(AuditFailed, match="differ in case alone"):
        asked(sealed(orders=twins), not_null("orders", "A"))
    assert asked(sealed(orders=twins), not_null("orders", "b")).result.offending == 0


@pytest.mark.fault("J26")
def test_outputs_that_differ_in_case_alone_are_not_taken_for_each_other(sealed: Sealed) -> None:
    twins = {"Paid": pa.table({"id": [7, 7]}), "paid": pa.table({"id": [1, 2]})}
    audits = [not_null("Paid", "id"), not_null("paid", "id"), unique("Paid", "id")]
    with pytest.raises(AuditFailed, match="can't tell the outputs Paid and paid apart"):
        ask(audits, occasion(), sealed(**twins))  # as an older plan may have frozen them
    with pytest.raises(InvalidPipeline, match="the outputs Paid and paid"):
        require_sound("orders", audits, ("Paid", "paid"))
    assert asked(sealed(**twins), unique("Paid", "id")).result.offending == 1


@pytest.mark.fault("J26")
def test_a_column_that_isnt_there_is_none_of_what_sql_has_by_that_name(
    sealed: Sealed, subtests: pytest.Subtests
) -> None:
    wal = sealed(paid=pa.table({"id": pa.array([None, None], pa.int64())}))
    for column in ("paid", "rowid", "file_row_number"):
        for audit in (not_null("paid", column), unique("paid", ["id", column])):
            told = f"the column {column} of output paid, which has id"
            with subtests.test(audit=audit), pytest.raises(AuditFailed, match=told):
                asked(wal, audit)


def test_names_are_only_names(sealed: Sealed) -> None:
    odd = pa.table({"select": [1, None], 'we"ird {x} $1': ["{x}", "{y}"]})
    audits = [
        not_null("a.b-c", "select"),
        accepted_values("a.b-c", 'we"ird {x} $1', ["{x}"]),
        sql("own", """SELECT * FROM "a.b-c" WHERE "we""ird {x} $1" = '{y}'""", outputs="a.b-c"),
    ]
    found = ask(audits, occasion(), sealed(**{"a.b-c": odd}))
    assert [one.result.offending for one in found] == [1, 1, 1]


def test_what_makes_no_sense_is_refused_where_it_is_written(subtests: pytest.Subtests) -> None:
    cases: list[Callable[[], Audit]] = [
        lambda: in_range("orders", "id"),
        lambda: row_count("orders", None),
        lambda: accepted_values("orders", "id", []),
        lambda: accepted_values("orders", "id", [math.nan]),
        lambda: accepted_values("orders", "id", [b"bytes"]),  # type: ignore[list-item]
        lambda: unique("orders", []),
        lambda: not_null("orders", ""),
        lambda: volume("orders", epochs=0),
        lambda: volume("orders", within=-1),
        lambda: sql("no name!", "SELECT 1", outputs="orders"),
        lambda: sql("nothing", "SELECT 1", outputs=[]),
    ]
    for make in cases:
        with subtests.test(make=make), pytest.raises(InvalidPipeline):
            make()


# --- what may send rows to quarantine ---

ROWS: list[Audit] = [
    not_null("orders", "id", quarantine=True),
    accepted_values("orders", "customer", ["ann", "o'hara", 3, True, 0.5], quarantine=True),
    in_range("orders", "amount", Decimal("-3.00"), 7, quarantine=True),
    in_range("orders", "at", NOON, NOON.replace(tzinfo=None), name="at", quarantine=True),
    in_range("orders", "day", at_most=date(2026, 1, 2), quarantine=True),
    none_where("orders", "amount < 0 AND customer = 'ann'", quarantine=True),
]
WHOLE: list[Callable[[], Audit]] = [
    lambda: row_count("orders", quarantine=True),
    lambda: volume("orders", quarantine=True),
    lambda: steady("orders", "sum(amount)", quarantine=True),
    lambda: fresh_until("orders", "at", quarantine=True),
    lambda: conserved("orders", quarantine=True),
    lambda: sql("own", "SELECT * FROM orders", outputs="orders", quarantine=True),
]


def test_a_plan_freezes_what_sends_a_row_to_quarantine(subtests: pytest.Subtests) -> None:
    for audit in ROWS:
        with subtests.test(audit=audit):
            spec = audit.spec()
            assert canonical(spec) and audit_from_spec(spec).spec() == spec
            assert rules_by_output([spec]) == {"orders": {audit.name: audit.rule}}
            assert quarantining([spec]) == (spec,) and not audit.blocking


def test_a_judgement_of_the_whole_output_can_send_no_row_to_quarantine(subtests: pytest.Subtests) -> None:
    told = "judges the whole output, not its rows one by one"
    for audit in WHOLE:
        with subtests.test(audit=audit), pytest.raises(InvalidPipeline, match=told):
            audit()


def test_of_rows_with_one_key_nobody_says_which_one_goes() -> None:
    with pytest.raises(InvalidPipeline, match="nobody has said which is the right one; choose it in the transform"):
        unique("orders", "id", quarantine=True)


def test_an_audit_of_an_earlier_plan_is_asked_as_it_was_frozen() -> None:
    spec = not_null("orders", "id").spec()
    before = {key: value for key, value in spec.items() if key not in ("asked", "quarantine")}
    assert audit_from_spec(before).spec() == before and quarantining([spec, before]) == ()
