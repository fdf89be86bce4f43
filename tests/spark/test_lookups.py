"""What a worker does with questions: how many at a time, how often, in which order. Arrow batches, no Spark."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from threading import Barrier
from typing import Any

import pyarrow as pa
import pytest

from lockstep.compute._lookups import Lookup
from lockstep.errors import StageFailed
from tests.spark.lookup_server import LookupServer, lookup_server

ANSWERS = pa.schema([("price", pa.int64()), ("tags", pa.list_(pa.string()))])


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


def test_every_row_gets_its_answer_and_equal_keys_are_asked_about_once(server: LookupServer) -> None:
    rows = asked(over_http(server.url), ["a", "ccc", "bb", "a"])
    assert [(row["row"], row["name"], row["price"], row["tags"]) for row in rows] == [
        (0, "a", 1, None),
        (1, "ccc", 3, None),
        (2, "bb", 2, None),
        (3, "a", 1, None),
    ]
    assert server.asked == {"/a": 1, "/bb": 1, "/ccc": 1}


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
    assert [row["why"] for row in rows] == [None, "no answer after 1 tries: nothing came within 0.05 s", None]


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
    with pytest.raises(StageFailed, match=re.escape("2 keys were asked about, 0 answers came")):
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


def test_a_function_may_be_named() -> None:
    assert asked("tests.spark.test_lookups:named", ["abc"])[0]["price"] == 3


def named(key: dict[str, Any]) -> dict[str, Any]:
    return {"price": len(key["name"])}
