"""What may send rows to quarantine is said when a pipeline is declared, and frozen as it was said."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal

import pytest

from lockstep.audits import (
    Audit,
    accepted_values,
    conserved,
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
from lockstep.audits.audit import audit_from_spec, quarantining, rules_by_output
from lockstep.errors import InvalidPipeline
from lockstep.wal.manifest import canonical

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
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
