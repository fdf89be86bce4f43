"""What Spark finds of a sealed output is what the task finds: over random tables, and whatever goes wrong."""

from __future__ import annotations

import dataclasses
import math
import random
from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from lockstep import run_epoch
from lockstep.audits import (
    Audit,
    accepted_values,
    fresh_until,
    function,
    in_range,
    none_where,
    not_null,
    row_count,
    sql,
    unique,
)
from lockstep.audits.audit import Function, Query, audit_from_spec
from lockstep.audits.evaluate import VARIABLE, Answer, Found, ask, is_alike
from lockstep.compute import auditing
from lockstep.compute.auditing import ask_spark
from lockstep.errors import AuditFailed, EpochHeld, InvalidPipeline, NotConfigured, StageFailed, WalCorrupt
from lockstep.sinks import FileSink
from lockstep.wal.reading import SealedWal
from tests.audits import checks
from tests.audits.test_evaluate import ANSWERS, ORDERS, Sealed, occasion
from tests.spark.pipelines import pipeline_of
from tests.spark.staged import DAY, csv

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
COLUMNS: dict[str, tuple[pa.DataType, Sequence[Any]]] = {
    "whole": (pa.int64(), (0, 1, -1, 2**63 - 1, -(2**63), 2**53 + 1)),
    "small": (pa.int16(), (0, 1, -1, 2**15 - 1)),
    "real": (pa.float64(), (0.0, -0.0, 1.5, math.nan, math.inf, -math.inf, 1e300)),
    "single": (pa.float32(), (0.0, -0.0, 0.1, math.nan, math.inf)),
    "price": (pa.decimal128(10, 2), tuple(map(Decimal, ("0.00", "-0.01", "0.01", "99999999.99")))),
    "wide": (pa.decimal128(38, 10), tuple(map(Decimal, ("0", "1.0000000001", "-9999999999999999999999999999")))),
    "text": (pa.string(), ("", " ", "a", "A", "ä", "a\u0308", "o'hara", "\U0001f600", "NaN")),
    "flag": (pa.bool_(), (True, False)),
    "day": (pa.date32(), (date(2026, 1, 1), date(2026, 1, 2), date(1582, 10, 4), date(9999, 12, 31))),
    "at": (pa.timestamp("us", "UTC"), (NOON, NOON + timedelta(microseconds=1), datetime(1900, 1, 1, tzinfo=UTC))),
    "local": (pa.timestamp("us"), (datetime(2026, 1, 1, 12), datetime(2026, 3, 29, 2, 30), datetime(1, 1, 1))),
    "raw": (pa.binary(), (b"", b"\0", b"a")),
}


def random_table(seed: int, rows: int) -> pa.Table:
    """Of each column's values, with more or fewer nulls, or nothing else."""
    chance = random.Random(seed)

    def column(kind: pa.DataType, values: Sequence[Any]) -> pa.Array:
        nulls, some = chance.choice([0, 0.1, 1]), chance.sample(values, chance.randint(1, len(values)))
        return pa.array([None if chance.random() < nulls else chance.choice(some) for _ in range(rows)], kind)

    return pa.table({name: column(*told) for name, told in COLUMNS.items()})


def random_audits(seed: int, columns: Collection[str], keys: Sequence[Sequence[str]]) -> list[Audit]:
    """Every one that Spark may be asked of `columns`, and others; `keys`: what may come twice."""
    chance, audits = random.Random(seed), list[Audit]()
    for name in columns:
        values = COLUMNS[name][1]
        known = [one for one in values if not isinstance(one, bytes) and (one == one and abs_(one) != math.inf)]
        audits.append(not_null("rows", name))
        if known:
            some = chance.sample(known, chance.randint(1, len(known)))
            audits += [accepted_values("rows", name, some), in_range("rows", name, some[0])]
            audits += [in_range("rows", name, None, some[-1], name=f"most_{name}")]
    audits += [unique("rows", key, name=f"key_{at}") for at, key in enumerate(keys)]
    hours = timedelta(hours=chance.randint(0, 48))
    audits += [fresh_until("rows", name, hours) for name in ("day", "at", "local") if name in columns]
    return [*audits, row_count("rows"), none_where("rows", "whole < 0"), sql("own", "SELECT 1", outputs="rows")]


def abs_(value: Any) -> Any:
    return abs(value) if isinstance(value, float) else value


@pytest.fixture
def sealed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Sealed:
    monkeypatch.setenv(VARIABLE, "0")
    return Sealed(tmp_path)


class Asked:
    """By Spark, and of what."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self.names: set[str] = set()

    def __call__(
        self, wal: SealedWal, output: str, audits: Sequence[Query | Function], parameters: Any
    ) -> dict[str, Found]:
        found = ask_spark(self._spark, wal, output, audits, parameters)
        self.names |= found.keys()
        return found


def found_by(answers: Sequence[Answer]) -> list[tuple[str, int, int]]:
    return [(one.result.name, one.result.offending, len(one.sample)) for one in answers]


def samples(answer: Answer) -> set[str]:
    """Without NaN, which isn't what it is; aware times are told in UTC."""
    return {repr(sorted((name, str(value)) for name, value in row.items())) for row in answer.sample}


@pytest.mark.sample(1)
@pytest.mark.parametrize(("seed", "rows"), [(0, 300), (1, 300), (2, 1), (2, 0)])
def test_spark_finds_what_the_task_finds(
    session: SparkSession, sealed: Sealed, monkeypatch: pytest.MonkeyPatch, seed: int, rows: int
) -> None:
    """Which rows offend is compared below."""
    monkeypatch.setattr(auditing._Output, "_rows", lambda self, rule, name, count: (count, []))
    keys = [["real"], ["single"], ["text"], ["wide"], ["raw"], ["at", "flag"], ["local", "whole"]]
    wal, asked = sealed(rows=random_table(seed, rows)), Asked(session)
    audits = [audit_from_spec(one.spec()) for one in random_audits(seed, COLUMNS, keys)]
    here, there = ask(audits, occasion(), wal), ask(audits, occasion(), wal, asked)
    assert [one[:2] for one in found_by(there)] == [one[:2] for one in found_by(here)]
    assert len(asked.names) > 40 and not asked.names & {"row_count_rows", "own"}


def test_rows_that_offend_are_the_same_ones(session: SparkSession, sealed: Sealed) -> None:
    audits = [dataclasses.replace(audit, name=f"audit_{at}") for at, (audit, _) in enumerate(ANSWERS)]
    wal, asked = sealed(orders=ORDERS), Asked(session)
    here, there = ask(audits, occasion(), wal), ask(audits, occasion(), wal, asked)
    assert (
        found_by(there)
        == found_by(here)
        == [(one.name, n, len(a.sample)) for one, (_, n), a in zip(audits, ANSWERS, here, strict=True)]
    )
    assert [samples(one) for one in there] == [samples(one) for one in here]
    assert len(asked.names) > 20


@pytest.mark.fault("N9")
def test_a_damaged_wal_is_named_and_not_audited(session: SparkSession, sealed: Sealed) -> None:
    wal, asked = sealed(orders=ORDERS), Asked(session)
    path = sealed.root / wal.folder / "orders" / "part-1.parquet"
    content = bytearray(path.read_bytes())
    content[40] ^= 1
    path.write_bytes(content)
    with pytest.raises(Exception, match="sha256"):
        ask_spark(session, wal, "orders", [not_null("orders", "id")], {})  # type: ignore[list-item]
    functions = (checks.all_of_them, checks.counts)  # the second one reads as it is called
    reading = [not_null("orders", "id"), *(function("orders", check, over="spark") for check in functions)]
    for audit in reading:
        with pytest.raises(WalCorrupt, match="sha256"):
            ask([audit_from_spec(audit.spec())], occasion(), wal, asked)
    assert not asked.names


@pytest.mark.fault("N9")
def test_without_spark_the_task_asks(sealed: Sealed) -> None:
    def broken(*_: Any) -> dict[str, Found]:
        raise OSError("nobody answers")

    [answer] = ask([not_null("orders", "id")], occasion(), sealed(orders=ORDERS), broken)
    assert answer.result.offending == 2


def test_what_is_small_is_asked_in_the_task(sealed: Sealed, monkeypatch: pytest.MonkeyPatch) -> None:
    wal, asked = sealed(orders=ORDERS), list[str]()

    def noting(wal: SealedWal, output: str, audits: Sequence[Query | Function], parameters: Any) -> dict[str, Found]:
        asked.append(output)
        return {}

    size = wal.manifest.outputs["orders"].bytes
    for most in (size, size - 1, 10**12):
        monkeypatch.setenv(VARIABLE, str(most))
        ask([not_null("orders", "id")], occasion(), wal, noting)
    assert asked == ["orders"]
    monkeypatch.setenv(VARIABLE, "much")
    with pytest.raises(NotConfigured, match=VARIABLE):
        ask([not_null("orders", "id")], occasion(), wal, noting)


def test_what_two_engines_might_answer_otherwise_stays_in_the_task() -> None:
    audits: list[Any] = [
        accepted_values("orders", "id", [1, 2.5]),
        accepted_values("orders", "id", [1.0]),
        accepted_values("orders", "customer", [1]),
        in_range("orders", "weight", Decimal("0.1")),
        not_null("orders", "ID "),
        unique("orders", "tags"),
        none_where("orders", "id > 1"),
        fresh_until("orders", "id"),
    ]
    assert [audit for audit in audits if is_alike(audit.asked, ORDERS.schema)] == []


# --- functions over a DataFrame --------------------------------------------------------------------------------------


def test_what_a_function_makes_of_a_dataframe_offends_whatever_the_size(
    session: SparkSession, sealed: Sealed, monkeypatch: pytest.MonkeyPatch, subtests: pytest.Subtests
) -> None:
    wal, told = sealed(orders=ORDERS), dict[str, list[dict[str, Any]]]()
    cases = [(checks.many, 2, "0"), (checks.many, 2, "1000000000")]
    for check, offending, most in [*cases, (checks.all_of_them, 5, "0"), (checks.by_a_function_of_python, 2, "0")]:
        with subtests.test(check=check.__name__, most=most):
            monkeypatch.setenv(VARIABLE, most)
            asked = Asked(session)
            audits = [function("orders", check, over="spark"), not_null("orders", "customer")]
            [answer, other] = ask([audit_from_spec(one.spec()) for one in audits], occasion(), wal, asked)
            assert (answer.result.offending, len(answer.sample), other.result.offending) == (offending, offending, 1)
            assert asked.names == {audits[0].name} | ({audits[1].name} if most == "0" else set())
            told[check.__name__] = [*answer.sample]
    assert sorted(told["many"], key=str) == [{"customer": "o'hara", "ID": 2}, {"customer": None, "ID": 2}]
    tags = sorted(str(row["tags"]) for row in told["all_of_them"])
    assert tags == sorted(map(str, ORDERS["tags"].to_pylist()))


def test_an_output_without_rows_or_files_has_none_that_offend(session: SparkSession, sealed: Sealed) -> None:
    wal = sealed(orders=ORDERS.slice(0, 0))
    none = {"orders": replace(wal.manifest.outputs["orders"], files=())}
    audit = audit_from_spec(function("orders", checks.all_of_them, over="spark").spec())
    for one in (wal, replace(wal, manifest=replace(wal.manifest, outputs=none))):
        [answer] = ask([audit], occasion(), one, Asked(session))
        assert (answer.result.offending, answer.sample) == (0, [])


def test_a_function_over_a_dataframe_that_fails_has_not_passed(
    session: SparkSession, sealed: Sealed, subtests: pytest.Subtests
) -> None:
    wal = sealed(orders=ORDERS)
    failing: list[tuple[Any, type[Exception], str]] = [
        (checks.asks_for_more, AuditFailed, r"asks_for_more fails: .*nope"),
        (checks.asks_python_for_more, AuditFailed, "gives a Column: give a DataFrame"),
        (checks.mentions, AuditFailed, r"mentions fails: .*checks\.py:\d+, in mentions"),
        (checks.doubles, AuditFailed, "gives 10 rows, and the output has 5"),
        (checks.adds_a_column, AuditFailed, r"doesn't have: why \(int\)"),
        (checks.counts, AuditFailed, "gives a int: give a DataFrame"),
        (checks.gives_nothing, AuditFailed, "gives None: give a DataFrame"),
        (checks.casts, StageFailed, "Spark fails to run the query of tests.audits.checks:casts: "),
    ]
    for check, kind, said in failing:
        with subtests.test(said):
            audit = audit_from_spec(function("orders", check, over="spark", blocking=False).spec())
            with pytest.raises(kind, match=said) as told:
                ask([audit], occasion(), wal, Asked(session))
            assert f"audit {audit.name}: " in str(told.value) and "hara" not in str(told.value)


def test_a_function_over_a_dataframe_holds_an_epoch(spark_connect: str, ledger_dsn: str, tmp_path: Path) -> None:
    source = csv(tmp_path, "id,name\n1,x\n2,y\n", schema="id BIGINT, name STRING")
    audit = function("rows", checks.twos, over="spark")
    files, other = (FileSink("files", output="rows", path=str(tmp_path / name)) for name in ("files", "other"))
    held = replace(pipeline_of(source), name="own", sinks=[files], audits=[audit])
    places: dict[str, Any] = {"ledger": ledger_dsn, "staging": str(tmp_path / "staging"), "connections": {}}
    with pytest.raises(EpochHeld, match=r"twos_rows \(1 row\)"):
        run_epoch(held, interval=(DAY.start, DAY.end), spark=spark_connect, **places)
    warned = replace(held, name="warned", sinks=[other], audits=[replace(audit, blocking=False)])
    told = run_epoch(warned, interval=(DAY.start, DAY.end), spark=spark_connect, **places).verdict
    assert told is not None and [str(one) for one in told.warnings] == ["twos_rows (1 row)"]


def test_what_a_table_adopts_is_no_dataframe_for_audits(tmp_path: Path) -> None:
    from lockstep.sinks import DeltaSink

    source = csv(tmp_path, "id,name\n1,x\n", schema="id BIGINT, name STRING")
    table = DeltaSink("table", output="rows", path=str(tmp_path / "table"))
    with pytest.raises(InvalidPipeline, match="over a DataFrame, and a table adopts the files of output rows"):
        replace(pipeline_of(source), sinks=[table], audits=[function("rows", checks.twos, over="spark")])
    replace(pipeline_of(source), sinks=[table], audits=[function("rows", checks.twos)])
