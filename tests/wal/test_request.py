"""Requests, results and errors that a stage task and its Spark job leave for each other."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar
from urllib.parse import unquote

import pytest

from lockstep.column_lineage import ColumnLineage, How, Part
from lockstep.epoch import SourceRange
from lockstep.errors import SourceChanged, StageFailed
from lockstep.wal.request import (
    REQUEST,
    RESULT,
    StageRequest,
    StageResult,
    read_error,
    read_request,
    write_error,
    write_result,
)
from lockstep.wal.staging import Staging
from tests.cases import cases

FOLDER = "11111111-2222-4333-8444-555555555555/flights/epoch=3/17"


def _request(folder: str) -> StageRequest:
    moment = datetime(2013, 1, 2, tzinfo=UTC)
    return StageRequest("", 3, 17, folder, ("rows",), {"numbers": SourceRange(None, {"day": 1})}, moment)


@cases("name", ["plain", "two words", "50%20", "what?", "#1"])
def test_the_job_finds_its_request_whatever_the_staging_folder_is_called(tmp_path: Path, name: str) -> None:
    staging = Staging(str(tmp_path / name))
    staging.create(FOLDER)
    request = _request(staging.uri_of(FOLDER))
    staging.write_json(FOLDER, REQUEST, request.to_json())
    uri = staging.uri_of(f"{FOLDER}/{REQUEST}")
    assert read_request(uri) == request
    result = StageResult({"rows": 1}, {}, "v1")
    write_result(uri, result)
    assert StageResult.from_json(staging.read_json(FOLDER, RESULT)) == result
    write_error(uri, SourceChanged("it grew"))
    with pytest.raises(SourceChanged, match="it grew"):
        raise read_error(uri)


LINEAGE = ColumnLineage(
    {"id": frozenset({Part("numbers", "id", How.IDENTITY)}), "x": None}, frozenset({Part("numbers", "id", How.SORT)})
)


def test_lineage_is_asked_for_and_told_only_where_somebody_wants_it() -> None:
    plain, result = _request("file:///x"), StageResult({"rows": 1}, {}, "v1")
    asking, telling = replace(plain, column_lineage=True), replace(result, column_lineage={"rows": LINEAGE})
    assert "column_lineage" not in plain.to_json() and "column_lineage" not in result.to_json(), "as older versions"
    assert StageRequest.from_json(json.loads(json.dumps(asking.to_json()))) == asking
    assert StageResult.from_json(json.loads(json.dumps(telling.to_json()))) == telling


@cases("lineage", [None, 3, ["rows"], {"rows": {}}, {"rows": {"columns": [["id", [["a", "b", "HOW"]]]]}}])
def test_a_result_is_read_whatever_it_says_of_lineage(lineage: object) -> None:
    result = StageResult({"rows": 1}, {}, "v1")
    assert StageResult.from_json({**result.to_json(), "column_lineage": lineage}) == result


class _Store(BaseHTTPRequestHandler):
    """An S3 endpoint that holds nothing, and keeps what it was asked for."""

    asked: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        self.asked.append(unquote(self.path))
        self.send_error(404)

    do_HEAD = do_GET

    def log_message(self, *_: object) -> None:
        """Keep quiet."""


@pytest.fixture
def endpoint(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "x")
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    monkeypatch.setattr(_Store, "asked", [])
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Store)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    yield f"127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@cases("bucket", ["bucket/lockstep", "bucket/two%20words"])
def test_the_job_asks_the_endpoint_that_the_staging_address_names(endpoint: str, bucket: str) -> None:
    staging = Staging(f"s3://{bucket}?region=eu-central-1&scheme=http&endpoint_override={endpoint}")
    address = staging.address_of(f"{FOLDER}/{REQUEST}")
    assert address.startswith(f"s3a://{unquote(bucket)}/{FOLDER}/{REQUEST}?")
    with pytest.raises(StageFailed, match="missing"):
        read_request(address)
    assert f"/{unquote(bucket)}/{FOLDER}/{REQUEST}" in _Store.asked


def test_what_spark_writes_to_has_no_options(endpoint: str) -> None:
    staging = Staging(f"s3://bucket/lockstep?region=eu-central-1&endpoint_override={endpoint}")
    assert staging.uri_of(FOLDER) == f"s3a://bucket/lockstep/{FOLDER}"
