"""Answers of an outside system in a real epoch: asked for while staging, once, and never again afterwards."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

from lockstep import Pipeline, enrich, files, recover, run_epoch
from lockstep.crash import CrashInjected
from lockstep.errors import InvalidPipeline, StageFailed
from lockstep.ledger import Ledger
from lockstep.operations.verify import verify
from lockstep.runtime import Runtime
from lockstep.sinks import FileSink
from lockstep.sources import FileSource
from lockstep.wal.manifest import SourceCount
from lockstep.wal.staging import Staging
from tests.spark.lookup_server import LookupServer, lookup_server
from tests.spark.pipelines import pipeline_of
from tests.spark.staged import csv, stage

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SCHEMA = "id BIGINT, name STRING"
ORDERS = "id,name\n" + "".join(f"{number},{'x' * (number % 4 + 1)}\n" for number in range(20))
ONCE = {"/x": 1, "/xx": 1, "/xxx": 1, "/xxxx": 1}

Transform = Callable[[Mapping[str, "DataFrame"]], Mapping[str, "DataFrame"]]


@pytest.fixture
def server() -> Iterator[LookupServer]:
    with lookup_server() as started:
        yield started


def client_of(url: str) -> Callable[[], Any]:
    def client() -> Any:
        import httpx

        return httpx.Client(base_url=url, trust_env=False)

    return client


def priced(url: str, frame: DataFrame, **settings: Any) -> DataFrame:
    def price(client: Any, key: dict[str, Any]) -> dict[str, Any]:
        return dict(client.get(f"/{key['name']}").raise_for_status().json())

    settings = {"schema": "price BIGINT, seen INT", "keys": ["name"], "backoff": 0.001, **settings}
    return enrich(frame, price, client=client_of(url), **settings)


def test_rows_get_their_answers_and_two_outputs_ask_once(
    session: SparkSession, tmp_path: Path, server: LookupServer
) -> None:
    def discount(client: Any, key: dict[str, Any]) -> dict[str, Any]:
        return {"discount": client.get(f"/discount/{key['price']}").json()["seen"]}

    def transform(inputs: Mapping[str, DataFrame]) -> Mapping[str, DataFrame]:
        rows = priced(url, inputs["input"])
        rows = enrich(rows, discount, client=client_of(url), schema="discount INT", keys=["price"])
        return {"rows": rows, "total": rows.groupBy().sum("price").withColumnRenamed("sum(price)", "total")}

    url = server.url
    source = csv(tmp_path, ORDERS, schema=SCHEMA)
    staged = stage(session, tmp_path, pipeline_of(source, transform, ("rows", "total")))
    assert sorted((row["id"], row["price"], row["seen"]) for row in staged.rows()) == [
        (number, number % 4 + 1, 1) for number in range(20)
    ]
    assert staged.rows("total") == [{"total": 50}]
    assert staged.result.sources == {"input": SourceCount(20)}
    assert server.asked == {**ONCE, **{f"/discount/{price}": 1 for price in (1, 2, 3, 4)}}


def test_a_question_without_answer_fails_the_execution_and_says_why(
    session: SparkSession, tmp_path: Path, server: LookupServer
) -> None:
    server.fails["/xx"] = 1000
    source = csv(tmp_path, ORDERS, schema=SCHEMA)
    failing = pipeline_of(source, lambda inputs: {"rows": priced(server.url, inputs["input"], retries=1)})
    with pytest.raises(StageFailed, match=r"no answer after 2 tries: HTTPStatusError 503"):
        stage(session, tmp_path, failing)

    def split(inputs: Mapping[str, DataFrame]) -> Mapping[str, DataFrame]:
        rows = priced(server.url, inputs["input"], retries=0, on_failure="null", error="why")
        return {"rows": rows.where("why IS NULL").drop("why"), "unknown": rows.where("why IS NOT NULL")}

    staged = stage(session, tmp_path, pipeline_of(source, split, ("rows", "unknown")))
    assert {row["name"] for row in staged.rows("unknown")} == {"xx"}
    assert len(staged.rows()) == 15


def _priced_as(settings: dict[str, Any], inputs: Any) -> Any:
    return {"rows": priced("", inputs["input"], **settings)}


def test_a_question_that_makes_no_sense_is_refused(
    session: SparkSession, tmp_path: Path, subtests: pytest.Subtests
) -> None:
    cases: list[tuple[Any, ...]] = [
        ({"keys": ["nothing"]}, "no columns of the frame"),
        ({"keys": []}, "give keys"),
        ({"schema": "id BIGINT"}, "don't have"),
        ({"error": "why"}, "error column"),
        ({"concurrency": 0}, "at least 1"),
        ({"schema": "no type"}, "(?i)parse|type"),
    ]
    for settings, told in cases:
        with subtests.test(settings=settings):
            pipeline = pipeline_of(
                csv(tmp_path, ORDERS, schema=SCHEMA),
                partial(_priced_as, settings),
            )
            with pytest.raises(InvalidPipeline, match=told):
                stage(session, tmp_path, pipeline)


@pytest.mark.fault("A21")
def test_publish_repair_and_verify_ask_nobody(
    spark_connect: str, ledger_dsn: str, tmp_path: Path, server: LookupServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "landing").mkdir()
    (tmp_path / "landing" / "orders.csv").write_text(ORDERS)
    url, out = server.url, str(tmp_path / "out")
    pipeline = Pipeline(
        "prices",
        {"orders": FileSource(str(tmp_path / "landing"), schema=SCHEMA)},
        lambda inputs: {"priced": priced(url, inputs["orders"])},
        [FileSink("out", output="priced", path=out)],
        version="test",
    )
    places: dict[str, Any] = {"ledger": ledger_dsn, "staging": str(tmp_path / "staging"), "connections": {}}
    monkeypatch.setenv("LOCKSTEP_TESTING", "1")
    monkeypatch.setenv("LOCKSTEP_CRASH", "commit.after_decision:raise")
    with pytest.raises(CrashInjected):
        run_epoch(pipeline, spark=spark_connect, run_id="first", **places)
    assert server.asked == ONCE
    assert files(out) == []
    assert recover(pipeline, **places).problems == []
    run_epoch(pipeline, spark=spark_connect, run_id="first", **places)
    with closing(Ledger(ledger_dsn)) as ledger:
        runtime = Runtime.of(pipeline, ledger, Staging(places["staging"]), {})
        assert all(found.agrees for found in verify(runtime, ledger.epoch("prices", 1)))
    [path] = files(out)
    assert sorted(pq.read_table(path)["seen"].to_pylist()) == [1] * 20
    assert server.asked == ONCE
