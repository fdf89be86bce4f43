"""A user's mistake is told in one sentence: what was found, what was expected, what to do."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from lockstep import Pipeline, run_epoch
from lockstep.epoch import EpochReport
from lockstep.errors import (
    IntervalMissing,
    InvalidPipeline,
    LedgerRefused,
    LedgerUnavailable,
    LockstepError,
    NotConfigured,
    PreflightRefused,
    SinkUnavailable,
    SourceNotReady,
    SparkUnavailable,
    StageFailed,
)
from lockstep.sinks import FileSink, PostgresSink
from lockstep.sources import FileSource

INTERVAL = (datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 2, tzinfo=UTC))
NEXT_DAY = (datetime(2026, 1, 2, tzinfo=UTC), datetime(2026, 1, 3, tzinfo=UTC))


def split(inputs: Mapping[str, Any]) -> Any:
    orders = inputs["orders"]
    return {"paid": orders.where("amount >= 0"), "refunds": orders.where("amount < 0")}


def wrong_column(inputs: Mapping[str, Any]) -> Any:
    return {"paid": inputs["orders"].where("amont >= 0"), "refunds": inputs["orders"]}


def wrong_input(inputs: Mapping[str, Any]) -> Any:
    return {"paid": inputs["order"], "refunds": inputs["orders"]}


def a_frame(inputs: Mapping[str, Any]) -> Any:
    return inputs["orders"]


def fewer(inputs: Mapping[str, Any]) -> Any:
    return {"paid": inputs["orders"]}


def own_bug(inputs: Mapping[str, Any]) -> Any:
    return {"paid": inputs["orders"].where(len(7)), "refunds": inputs["orders"]}  # type: ignore[arg-type]


def misspelled(inputs: Mapping[str, Any]) -> Any:
    return [inputs["orders"]].lenght  # type: ignore[attr-defined]


def quotes(inputs: Mapping[str, Any]) -> Any:
    row = inputs["orders"].where("id = 2").first()
    try:
        return {"paid": inputs["orders"].limit(int(f"{row.customer} of {row.amount}"))}
    except ValueError:
        return {"paid": inputs[WANTED]}


WANTED = "refunds"


def adds_up(inputs: Mapping[str, Any]) -> Any:
    raise TypeError(f"Could not convert {inputs['orders'].where('id = 2').first().amount}")


class Flaky(Exception):
    """What a transform may meet outside."""


def casts(inputs: Mapping[str, Any]) -> Any:
    """Not a number in one row."""
    orders = inputs["orders"]
    return {
        "paid": orders.selectExpr("CAST(concat(customer, amount) AS INT) AS id", "customer", "amount"),
        **_rest(orders),
    }


def parses(inputs: Mapping[str, Any]) -> Any:
    def parse(batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            [int(str(amount)) for amount in batch.column("amount").to_pylist() if amount > 10]
            yield batch

    orders = inputs["orders"]
    return {"paid": orders.repartition(1).mapInArrow(parse, orders.schema), **_rest(orders)}


def _rest(orders: Any) -> dict[str, Any]:
    return {"refunds": orders.where("amount < 0")}


def flaky(inputs: Mapping[str, Any]) -> Any:
    raise Flaky("the service of rates doesn't answer")


@dataclass(frozen=True)
class Notebook:
    """The README's example, in a folder of its own, with a mistake in it."""

    folder: Path
    arguments: Mapping[str, Any]
    transform: Callable[..., Any] = split
    table: str = "public.paid"
    output: str = "paid"
    connection: str = "warehouse"
    create: bool = True

    @property
    def pipeline(self) -> Pipeline:
        path = f"{self.folder}/landing/orders/{{interval_start:%Y-%m-%d}}.csv"
        source = FileSource(path, schema="id BIGINT, customer STRING, amount DECIMAL(10,2)")
        tables = {self.output: self.table}
        warehouse = PostgresSink("warehouse", tables=tables, connection=self.connection, create=self.create)
        refunds = FileSink("refunds", output="refunds", path=f"{self.folder}/out/refunds")
        return Pipeline("orders", {"orders": source}, self.transform, [warehouse, refunds])

    def run(self, **arguments: Any) -> EpochReport:
        return run_epoch(self.pipeline, **{**self.arguments, "interval": INTERVAL, **arguments})

    def mistaken(self, expected: type[LockstepError], **arguments: Any) -> str:
        """What is said of the mistake, which has to be all that is printed, but for the line that asked for it."""
        with pytest.raises(expected) as raised:
            self.run(**arguments)
        shown = traceback.format_exception(raised.value)
        frames = traceback.extract_tb(raised.value.__traceback__)
        assert [frame.name for frame in frames] == ["mistaken", "run", "wrapped"]
        assert "".join(shown).count("Traceback") == 1, "".join(shown)
        said = str(raised.value)
        assert "\n" not in said
        assert "stacktrace" not in said
        return said


@pytest.fixture
def notebook(tmp_path: Path, ledger_dsn: str, warehouse_dsn: str, spark_connect: str) -> Notebook:
    landing = tmp_path / "landing" / "orders"
    landing.mkdir(parents=True)
    (landing / "2026-01-01.csv").write_text("id,customer,amount\n1,a,10.50\n2,b,-3.00\n3,a,1.25\n")
    arguments = {
        "ledger": ledger_dsn,
        "staging": str(tmp_path / "staging"),
        "spark": spark_connect,
        "connections": {"warehouse": warehouse_dsn},
    }
    return Notebook(tmp_path, arguments)


def test_a_mistake_in_a_transform_is_one_sentence_with_its_cause(notebook: Notebook, subtests: pytest.Subtests) -> None:
    mistakes: list[tuple[Callable[..., Any], list[str]]] = [
        (wrong_column, ["`amont` cannot be resolved", "`amount`, `id`, `customer`"]),
        (wrong_input, ["asks for the input 'order'; there is 'orders'", "test_mistakes.py:", 'inputs["order"]']),
        (a_frame, ["returns a DataFrame", "return {'paid': …, 'refunds': …}"]),
        (fewer, ["returns the outputs ['paid']", "sink refunds takes 'refunds', which it doesn't return"]),
        (own_bug, ["raises TypeError (LOCKSTEP_SHOW_ROWS=1 ", "test_mistakes.py:", "in own_bug: ", "len(7)"]),
        (misspelled, ["raises AttributeError: 'list' object has no attribute 'lenght' (", "in misspelled: "]),
    ]
    for transform, says in mistakes:
        with subtests.test(transform.__name__):
            said = replace(notebook, transform=transform).mistaken(InvalidPipeline)
            assert said.startswith("pipeline orders: ")
            assert [part for part in says if part not in said] == []
    assert notebook.run().rows == {"paid": 2, "refunds": 1}  # once it is mended


def test_what_may_pass_by_itself_is_tried_again(notebook: Notebook) -> None:
    said = replace(notebook, transform=flaky).mistaken(StageFailed)
    assert "raises Flaky (LOCKSTEP_SHOW_ROWS=1 " in said and "in flaky: raise Flaky(" in said


class Traces(logging.Handler):
    """What is logged, with what errors came from, as it was then: `raise … from None` takes that away, and so does
    pyspark's formatter."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.text = ""

    def emit(self, record: logging.LogRecord) -> None:
        found = traceback.format_exception(record.exc_info[1]) if record.exc_info else []
        self.text += "".join([record.getMessage(), *found])


@pytest.fixture
def traces(caplog: pytest.LogCaptureFixture) -> Iterator[Traces]:
    handler = Traces()
    caplog.set_level(logging.DEBUG, "lockstep")
    logging.getLogger("lockstep").addHandler(handler)
    yield handler
    logging.getLogger("lockstep").removeHandler(handler)


@pytest.mark.fault("J22")
@pytest.mark.parametrize("transform", [quotes, adds_up])
def test_what_a_transform_raises_tells_no_value_of_a_row_but_to_who_asks(
    notebook: Notebook, transform: Callable[..., Any], traces: Traces, monkeypatch: pytest.MonkeyPatch
) -> None:
    mistaken = replace(notebook, transform=transform)
    said = mistaken.mistaken(InvalidPipeline)
    assert "3.00" not in said + traces.text
    assert f"in {transform.__name__}: " in said
    monkeypatch.setenv("LOCKSTEP_SHOW_ROWS", "1")
    assert "3.00" in mistaken.mistaken(InvalidPipeline) + traces.text


NOWHERE = "postgresql://postgres:hunter2@127.0.0.1:1/nowhere"


def test_a_mistake_around_a_pipeline_is_one_sentence_without_a_secret(
    notebook: Notebook, caplog: pytest.LogCaptureFixture, subtests: pytest.Subtests
) -> None:
    cases: list[tuple[Any, ...]] = [
        ({"create": False}, {}, PreflightRefused, ["table public.paid is missing; create it, or say create=True"]),
        (
            {"connection": "warehose"},
            {},
            InvalidPipeline,
            ["sink warehouse: no connection with the id 'warehose' was given, but 'warehouse'"],
        ),
        ({}, {"connections": {"warehouse": NOWHERE}}, SinkUnavailable, ["connection warehouse", "refused"]),
        ({}, {"ledger": NOWHERE}, LedgerUnavailable, ["the ledger can't be reached", "refused"]),
        ({}, {"ledger": "postgresql://me:hunter2@x@y/z"}, LedgerRefused, ["the ledger's DSN can't be parsed"]),
        ({}, {"spark": "sc://127.0.0.1:1"}, SparkUnavailable, ["no Spark Connect server answers at 127.0.0.1:1"]),
        ({}, {"spark": "sc://127.0.0.1:1;token=hunter2"}, NotConfigured, ["expected sc://host:port"]),
        ({}, {"spark": "sc://127.0.0.1:1/;token=hunter2=="}, NotConfigured, ["percent-encoded"]),
        ({}, {"interval": None}, IntervalMissing, ["give run_epoch interval=(start, end)"]),
        ({}, {"interval": ("2026-01-01", "2026-01-02")}, IntervalMissing, ["'2026-01-01' is a str", "tzinfo=UTC"]),
        ({}, {"interval": (datetime(2026, 1, 1), datetime(2026, 1, 2))}, IntervalMissing, ["has no time zone"]),
        ({}, {"interval": NEXT_DAY}, SourceNotReady, ["expects", "2026-01-02.csv"]),
    ]
    for mistake, arguments, expected, says in cases:
        with subtests.test(says=says):
            caplog.set_level(logging.DEBUG, "lockstep")
            said = replace(notebook, **mistake).mistaken(expected, **arguments)
            for part in says:
                assert part in said
            assert "hunter2" not in said + caplog.text


@pytest.mark.fault("J24")
@pytest.mark.parametrize(
    ("transform", "tells"),
    [
        (casts, ["CAST_INVALID_INPUT", "SQLSTATE: 22018"]),
        (parses, ["ValueError", "test_mistakes.py"]),
    ],
)
def test_what_spark_says_of_a_failing_query_tells_no_value_of_a_row_but_to_who_asks(
    notebook: Notebook,
    transform: Callable[..., Any],
    tells: list[str],
    traces: Traces,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    mistaken = replace(notebook, transform=transform)
    said = mistaken.mistaken(StageFailed)
    assert "0.50" not in said + traces.text
    for part in (*tells, "LOCKSTEP_SHOW_ROWS=1"):
        assert part in said
    monkeypatch.setenv("LOCKSTEP_SHOW_ROWS", "1")
    with pytest.raises(StageFailed, match=r"0\.50"):
        mistaken.run()
