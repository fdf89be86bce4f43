"""Answers of an outside system in a real epoch: asked for while staging, once, and never again afterwards."""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import asynccontextmanager, closing, contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Barrier, Lock, Thread
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lockstep import Pipeline, enrich, files, recover, run_epoch
from lockstep.compute._lookups import Lookup
from lockstep.crash import CrashInjected
from lockstep.errors import InvalidPipeline, StageFailed
from lockstep.features.assembly import runtime_for
from lockstep.ledger import Ledger
from lockstep.operations.verify import verify
from lockstep.sinks import FileSink
from lockstep.sources import FileSource
from lockstep.wal.manifest import SourceCount
from lockstep.wal.staging import Staging
from tests.spark.pipelines import pipeline_of
from tests.spark.staged import csv, stage

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


SCHEMA = "id BIGINT, name STRING"
ORDERS = "id,name\n" + "".join(f"{number},{'x' * (number % 4 + 1)}\n" for number in range(20))
ONCE = {"/x": 1, "/xx": 1, "/xxx": 1, "/xxxx": 1}


class LookupServer(ThreadingHTTPServer):
    """`fails`: how many more times a path is refused; `at_once`: the most questions that were open at a time."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answer)
        self.asked: Counter[str] = Counter()
        self.fails: Counter[str] = Counter()
        self.together: Barrier | None = None  #: answer only when so many questions are open
        self.at_once = self._open = 0
        self._lock = Lock()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def answer(self, path: str) -> tuple[int, bytes]:
        with self._lock:
            self.asked[path] += 1
            self._open += 1
            self.at_once = max(self.at_once, self._open)
            refused = self.fails[path] > 0
            self.fails[path] -= refused
        try:
            if self.together is not None:
                self.together.wait(20)
        finally:
            with self._lock:
                self._open -= 1
        name = path.rpartition("/")[2]
        return (503, b"") if refused else (200, json.dumps({"price": len(name), "seen": self.asked[path]}).encode())


class _Answer(BaseHTTPRequestHandler):
    server: LookupServer

    def do_GET(self) -> None:
        status, body = self.server.answer(self.path)
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None: ...


@contextmanager
def lookup_server() -> Iterator[LookupServer]:
    server = LookupServer()
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture(scope="module")
def started() -> Iterator[LookupServer]:
    with lookup_server() as server:
        yield server


@pytest.fixture
def server(started: LookupServer) -> LookupServer:
    started.asked.clear()
    started.fails.clear()
    started.together, started.at_once = None, 0
    return started


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


def test_a_question_without_answer_leaves_a_null_and_the_reason(
    session: SparkSession, tmp_path: Path, server: LookupServer
) -> None:
    def split(inputs: Mapping[str, DataFrame]) -> Mapping[str, DataFrame]:
        rows = priced(url, inputs["input"], retries=0, on_failure="null", error="why")
        return {"rows": rows.where("why IS NULL").drop("why"), "unknown": rows.where("why IS NOT NULL")}

    url, server.fails["/xx"] = server.url, 1000
    staged = stage(session, tmp_path, pipeline_of(csv(tmp_path, ORDERS, schema=SCHEMA), split, ("rows", "unknown")))
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
            pipeline = pipeline_of(csv(tmp_path, ORDERS, schema=SCHEMA), partial(_priced_as, settings))
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
        runtime = runtime_for(pipeline, ledger, Staging(places["staging"]), {})
        assert all(found.agrees for found in verify(runtime, ledger.epoch("prices", 1)))
    [path] = files(out)
    assert sorted(pq.read_table(path)["seen"].to_pylist()) == [1] * 20
    assert server.asked == ONCE


ANSWERS = pa.schema([("price", pa.int64()), ("tags", pa.list_(pa.string()))])


def asked(function: Callable[..., Any] | str, names: list[str | None], **settings: Any) -> list[dict[str, Any]]:
    defaults = {"keys": ("name",), "answers": ANSWERS, "client": None, "batch": None, "concurrency": 4, "timeout": 20.0}
    more = {"retries": 2, "backoff": 0.001, "ordered": True, "fails": True, "error": None}
    lookup = Lookup(function=function, **{**defaults, **more, **settings})
    batch = pa.RecordBatch.from_pydict({"row": list(range(len(names))), "name": pa.array(names, pa.string())})
    return [row for found in lookup([batch]) for row in found.to_pylist()]


def over_http(url: str) -> Callable[[dict[str, Any]], dict[str, Any]]:
    def lookup(key: dict[str, Any]) -> dict[str, Any]:
        import httpx

        return {"price": httpx.get(f"{url}/{key['name']}").raise_for_status().json()["price"]}

    return lookup


def test_so_many_are_asked_at_a_time_and_no_more(server: LookupServer) -> None:
    server.together = Barrier(3)
    asked(over_http(server.url), [f"n{number}" for number in range(12)], concurrency=3)
    assert server.at_once == 3


def test_a_refused_question_is_asked_again(server: LookupServer) -> None:
    server.fails["/a"] = 2
    assert [row["price"] for row in asked(over_http(server.url), ["a", "b"])] == [1, 1]
    assert server.asked == {"/a": 3, "/b": 1}


@pytest.mark.fault("A21")
def test_one_that_fails_for_good_fails_the_task_or_leaves_a_null_and_the_reason(server: LookupServer) -> None:
    server.fails["/a"] = 100
    with pytest.raises(StageFailed, match=re.escape("no answer after 3 tries: HTTPStatusError 503")) as failure:
        asked(over_http(server.url), ["a", "b"])
    assert server.url not in str(failure.value)
    assert server.url in str(failure.value.__cause__)
    server.fails["/a"] = 100
    rows = asked(over_http(server.url), ["a", "b"], fails=False, error="why")
    assert [(row["price"], row["why"] is None) for row in rows] == [(None, False), (1, True)]
    assert "503" in rows[0]["why"]


def test_an_async_function_waits_no_longer_than_its_timeout() -> None:
    async def lookup(key: dict[str, Any]) -> dict[str, Any] | None:
        if key["name"] == "never":
            await asyncio.Event().wait()
        return None if key["name"] is None else {"price": 1, "tags": [key["name"]]}

    settings = {"timeout": 0.05, "retries": 0, "fails": False, "error": "why"}
    rows = asked(lookup, ["a", "never", None], **settings)
    assert [row["tags"] for row in rows] == [["a"], None, None]
    assert [row["why"] for row in rows] == [None, "no answer after 1 tries: no answer within 0.05 s", None]


def test_rows_keep_their_places_or_come_as_they_are_answered() -> None:
    async def lookup(key: dict[str, Any]) -> dict[str, Any]:
        for _ in range(int(key["name"])):
            await asyncio.sleep(0)
        return {"price": int(key["name"])}

    names = ["50", "9", "1", "50"]
    assert [row["name"] for row in asked(lookup, list(names))] == names
    found = asked(lookup, list(names), ordered=False)
    assert [(row["row"], row["name"], row["price"]) for row in found] == [
        (2, "1", 1),
        (1, "9", 9),
        (0, "50", 50),
        (3, "50", 50),
    ]


def test_a_batch_of_keys_is_one_question() -> None:
    questions: list[int] = []

    def lookup(keys: list[dict[str, Any]]) -> list[dict[str, Any]]:
        questions.append(len(keys))
        return [{"price": len(key["name"])} for key in keys]

    names = ["x" * number for number in range(5)]
    assert [row["price"] for row in asked(lookup, list(names), batch=2, concurrency=1)] == [0, 1, 2, 3, 4]
    assert questions == [2, 2, 1]
    with pytest.raises(StageFailed, match=re.escape("2 keys were sent, 0 answers received")):
        asked(lambda keys: [], list(names), batch=2, retries=0)


def test_an_answer_with_a_column_that_nobody_declared_is_an_error() -> None:
    with pytest.raises(StageFailed, match=re.escape("an answer has ['cost']")):
        asked(lambda key: {"cost": 1}, ["a"], retries=0)


def test_a_client_is_opened_once_a_task_and_closed_whatever_happens() -> None:
    opened: list[str] = []

    @contextmanager
    def client() -> Iterator[str]:
        opened.append("open")
        yield "x"
        opened.append("closed")

    @asynccontextmanager
    async def waiting() -> Any:
        with client() as made:
            yield made

    def plain(client: str, key: dict[str, Any]) -> dict[str, Any]:
        return {"tags": [client + key["name"]]}

    async def lookup(client: str, key: dict[str, Any]) -> dict[str, Any]:
        return plain(client, key)

    for function, opener in ((plain, client), (lookup, waiting)):
        assert [row["tags"] for row in asked(function, ["a", "b"], client=opener)] == [["xa"], ["xb"]]
    assert opened == ["open", "closed"] * 2
