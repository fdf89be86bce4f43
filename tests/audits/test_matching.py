"""Outputs that are to match: another output of the epoch, or what a database of others says."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from datetime import date
from decimal import Decimal

import psycopg2
import pyarrow as pa
import pytest

from lockstep.audits import Audit, evaluate, foreign, matches
from lockstep.audits.audit import audit_from_spec
from lockstep.audits.evaluate import Answer, ask
from lockstep.errors import AuditFailed, InvalidPipeline, SourceUnavailable
from lockstep.wal.reading import SealedWal
from tests.audits.test_evaluate import Sealed, occasion, sealed

__all__ = ["sealed"]
DAYS = [date(2026, 1, 1), date(2026, 1, 1), date(2026, 1, 2), None]
PAID = pa.table({"day": DAYS, "amount": pa.array([Decimal(n) for n in ("1.50", "2.50", "10.00", "7.00")])})
SAID = "SELECT day, sum(amount) FROM shop_payments WHERE %(interval_start)s <= %(planned_at)s AND %(epoch)s = 7"
BY_DAY = f"{SAID} GROUP BY day"


@pytest.fixture
def shop(warehouse_dsn: str) -> Iterator[str]:
    """A table that says the same."""
    with psycopg2.connect(warehouse_dsn) as connection, connection.cursor() as cursor:
        cursor.execute("CREATE TABLE shop_payments (day date, amount numeric(10,2))")
        rows = zip(*PAID.to_pydict().values(), strict=True)
        cursor.executemany("INSERT INTO shop_payments VALUES (%s, %s)", list(rows))
    connection.close()
    yield warehouse_dsn
    change(warehouse_dsn, "DROP TABLE shop_payments")


def change(dsn: str, statement: str) -> None:
    connection = psycopg2.connect(dsn)
    with connection, connection.cursor() as cursor:
        cursor.execute(statement)
    connection.close()


def asked(wal: SealedWal, audit: Audit, dsn: str) -> Answer:
    """As a plan froze it."""
    at = replace(occasion(), connections={"shop": dsn})
    [answer] = ask([audit_from_spec(audit.spec())], at, wal)
    return answer


def by_day(query: str = BY_DAY, within: float = 0.0) -> Audit:
    return matches("paid", "sum(amount)", foreign("shop", query), by="day", within=within)


def test_what_matches_a_foreign_table_passes_and_each_group_that_differs_offends(sealed: Sealed, shop: str) -> None:
    wal = sealed(paid=PAID)
    assert asked(wal, by_day(), shop).result.offending == 0
    change(shop, "UPDATE shop_payments SET amount = 10.10 WHERE day = '2026-01-02'")
    found = asked(wal, by_day(), shop)
    assert found.result.offending == 1
    assert found.sample == [{"day": date(2026, 1, 2), "found": Decimal("10.00"), "expected": Decimal("10.10")}]
    assert asked(wal, by_day(within=0.01), shop).result.offending == 0
    assert asked(wal, by_day(within=0.009), shop).result.offending == 1


def test_a_group_that_one_side_lacks_offends_whatever_the_tolerance(sealed: Sealed, shop: str) -> None:
    wal = sealed(paid=PAID)
    change(shop, "DELETE FROM shop_payments WHERE day IS NULL")
    assert asked(wal, by_day(within=9.0), shop).result.offending == 1
    change(shop, "INSERT INTO shop_payments VALUES ('2026-01-03', NULL)")
    assert asked(wal, by_day(within=9.0), shop).result.offending == 2
    change(shop, "DELETE FROM shop_payments")
    assert asked(wal, by_day(), shop).result.offending == 3
    assert asked(sealed(paid=PAID.slice(0, 0)), by_day(), shop).result.offending == 0
    whole = matches("paid", "count(*)", foreign("shop", "SELECT 4"))  # all rows are one group
    assert asked(wal, whole, shop).result.offending == 0
    assert asked(sealed(paid=PAID.slice(0, 3)), whole, shop).result.offending == 1


def test_outputs_of_one_epoch_match_each_other(sealed: Sealed) -> None:
    audit = matches("paid", "sum(amount)", "booked", by=["day"], within=0.1)
    assert asked(sealed(paid=PAID, booked=PAID), audit, "").result.offending == 0
    found = asked(sealed(paid=PAID, booked=PAID.slice(1)), audit, "")
    assert found.sample == [{"day": date(2026, 1, 1), "found": Decimal("4.00"), "expected": Decimal("2.50")}]
    assert asked(sealed(paid=PAID, booked=PAID.slice(0, 3)), audit, "").result.offending == 1


def test_nothing_is_near_what_is_no_finite_number(sealed: Sealed, subtests: pytest.Subtests) -> None:
    one = pa.table({"amount": [5.0]})
    audits = [matches("paid", "sum(amount)", "booked", within=within, name=f"within_{within:.0f}") for within in (0, 9)]
    for odd in (math.nan, math.inf, -math.inf):
        other = pa.table({"amount": [odd]})
        for paid, booked, offending in ((one, other, 1), (other, one, 1), (other, other, 0)):
            with subtests.test(paid=paid["amount"][0], booked=booked["amount"][0]):
                found = ask(audits, occasion(), sealed(paid=paid, booked=booked))
                assert [answer.result.offending for answer in found] == [offending] * 2


def test_groups_go_by_a_column_of_any_name(sealed: Sealed, shop: str, subtests: pytest.Subtests) -> None:
    """And are compared by what was measured, not by that column with itself."""
    for name in ("value", "here", "Value", "odd value"):
        with subtests.test(name=name):
            paid, booked = (pa.table({name: [1, 2], "amount": [10, twenty]}) for twenty in (20, 21))
            [group] = asked(
                sealed(paid=paid, booked=booked), matches("paid", "sum(amount)", "booked", by=name), ""
            ).sample
            assert group == {name: 2, "found": 20, "expected": 21}
            said = foreign("shop", "VALUES (1::bigint, 10::bigint), (2, 21)")
            [group] = asked(sealed(paid=paid), matches("paid", "sum(amount)", said, by=name), shop).sample
            assert group == {name: 2, "found": 20, "expected": 21}


def test_a_foreign_system_that_does_not_answer_is_no_answer(sealed: Sealed) -> None:
    """The task is tried again; nothing passed, nothing is held, and no login is told."""
    with pytest.raises(SourceUnavailable, match="audit matches_paid_sum_amount_day, connection shop") as caught:
        asked(sealed(paid=PAID), by_day(), "postgresql://me:hush@127.0.0.1:1/nowhere")
    assert "hush" not in str(caught.value)
    with pytest.raises(AuditFailed, match="connection other: there is no connection of that id"):
        asked(sealed(paid=PAID), matches("paid", "count(*)", foreign("other", "SELECT 1")), "")


def test_what_cant_be_compared_gets_no_verdict(sealed: Sealed, shop: str, subtests: pytest.Subtests) -> None:
    cases: list[tuple[str, str]] = [
        ("SELECT day, nope FROM shop_payments", "nope"),
        ("SELECT day FROM shop_payments", "it gave 1 columns, expected are 2: day, value"),
        ("SELECT day, amount FROM shop_payments", "it gave a group more than once, by day"),
        ("SELECT day, sum(amount) FROM shop_payments WHERE %(nope)s GROUP BY 1", r"there are %\(epoch\)s"),
        ("DELETE FROM shop_payments RETURNING day, amount", "syntax error"),
        (
            "SELECT day, 'NaN'::numeric FROM shop_payments GROUP BY day",
            r"what it gave can't be compared \(\w+\)\. Give",
        ),
        ("SELECT '{\"a\": 1}'::json, sum(amount) FROM shop_payments", "what it gave can't be compared"),
        ("SELECT array[]::int[], sum(amount) FROM shop_payments", "what it gave can't be compared"),
        ("SELECT '[1,3)'::int4range, sum(amount) FROM shop_payments", "what it gave can't be compared"),
        ("SELECT day, 'text' FROM shop_payments GROUP BY day", "can't be asked"),
    ]
    wal = sealed(paid=PAID)
    for query, told in cases:
        with subtests.test(query=query), pytest.raises(AuditFailed, match=told):
            asked(wal, by_day(query), shop)
    assert asked(wal, by_day(), shop).result.offending == 0


def test_too_many_groups_are_refused_before_they_are_fetched(
    sealed: Sealed, shop: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(evaluate, "_MOST_GROUPS", 1000)
    many = "SELECT date '2026-01-01' + n, 1 / (n < 50000)::int FROM generate_series(1, 99999) AS n"
    with pytest.raises(AuditFailed, match="more than 1,000 rows came"):  # and not that the 50,000th divides by zero
        asked(sealed(paid=PAID), by_day(many), shop)


def test_a_comparison_judges_the_whole_output() -> None:
    for against in ("booked", foreign("shop", BY_DAY)):
        with pytest.raises(InvalidPipeline, match="judges the whole output"):
            matches("paid", "count(*)", against, quarantine=True)
    for name in ("lockstep_value", "Lockstep_Here"):  # what a comparison calls its own
        with pytest.raises(InvalidPipeline, match=name):
            matches("paid", "count(*)", "booked", by=["day", name])
    with pytest.raises(InvalidPipeline, match="within is a share"):
        matches("paid", "count(*)", "booked", within=-1)
